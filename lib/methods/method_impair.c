/* SPDX-License-Identifier: BSD-3-Clause */
/* A bad wire in front of a port: set its rules, look at them, read what they decided. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "methods.h"

enum { GIVEN_PORT = 1, GIVEN_IMPAIR = 2 };

struct p_impair {
	uint64_t given;
	char port[CONF_NAME_MAX];
	struct impair_conf impair;
};

struct p_impair_log {
	char port[CONF_NAME_MAX];
	uint64_t from;
	uint32_t max;
};

static const struct conf_field get_rows[] = {
	P_NAME(p_impair, port, P_OPTIONAL, .given = GIVEN_PORT),
};
static const struct conf_table get_table = P_TABLE_GIVEN(p_impair, get_rows, "params");

static const struct conf_field set_rows[] = {
	P_NAME(p_impair, port, P_REQUIRED),
	{ .name = "impair",
		.type = CONF_T_OBJECT,
		.offset = offsetof(struct p_impair, impair),
		.sub = &conf_table_impair,
		.flags = CONF_F_NULL,
		.given = GIVEN_IMPAIR },
};
static const struct conf_table set_table = P_TABLE_GIVEN(p_impair, set_rows, "params");

static const struct conf_field log_rows[] = {
	P_NAME(p_impair_log, port, P_REQUIRED),
	P_U64(p_impair_log, from, P_DEFAULT(0)),
	P_U32(p_impair_log, max, 1, IMPAIR_RULES_MAX, P_DEFAULT(IMPAIR_RULES_MAX)),
};
static const struct conf_table log_table = P_TABLE(p_impair_log, log_rows, "params");

static int
find_port(struct rpc_call *call, const char *name, uint32_t *out)
{
	const struct env_wiring *env = &call->m->env->w;
	struct refusal r;

	for (uint32_t i = 0; i < env->ports_n; i++) {
		if (strcmp(env->conf->ports[i].name, name) != 0)
			continue;
		if (env->ports[i].impair == NULL) {
			refuse(&r, ENOTSUP, "port %s cannot be impaired", name);
			return rpc_refused(call, &r);
		}
		*out = i;
		return 0;
	}
	return rpc_invalid(call, "port: there is no port \"%s\"", name);
}

static json_t *
counters_json(const struct impair_counters *c)
{
	json_t *o = json_object();

#define COUNTER(name, help) json_object_set_new(o, #name, conf_json_u64(c->name));
	IMPAIR_COUNTERS(COUNTER)
#undef COUNTER
	return o;
}

static json_t *
port_json(const struct methods *ctx, uint32_t port)
{
	const struct env_port *p = &ctx->env->w.ports[port];
	struct impair_counters counters = { 0 };
	const struct impair_conf *conf = NULL;

	if (p->impair != NULL)
		conf = p->impair->get(p->impair_ctx, &counters);
	return json_pack("{s:s, s:o, s:o}", "port", ctx->env->w.conf->ports[port].name, "impair",
		conf != NULL ? conf_encode(&conf_table_impair, conf) : json_null(), "counters",
		counters_json(&counters));
}

static int
impair_get(struct rpc_call *call)
{
	const struct p_impair *p = call->params;
	json_t *list;
	uint32_t port;

	if ((p->given & GIVEN_PORT) != 0)
		return find_port(call, p->port, &port) == 0
			       ? rpc_result(call, port_json(call->m, port))
			       : -1;
	list = json_array();
	for (uint32_t i = 0; i < call->m->env->w.ports_n; i++)
		list = conf_json_append(list, port_json(call->m, i));
	return rpc_result(call, list);
}

static int
impair_set(struct rpc_call *call)
{
	static const struct impair_conf nothing = { .held_max = IMPAIR_HELD_DEFAULT,
		.log_size = IMPAIR_LOG_DEFAULT };
	const struct p_impair *p = call->params;
	const bool some = (p->given & GIVEN_IMPAIR) != 0;
	const struct env_port *cp;
	struct refusal r;
	uint32_t port = 0;
	int rc;

	if (json_object_get(call->raw, "impair") == NULL)
		return rpc_invalid(call, "impair: is missing: an object, or null for no rules");
	if (find_port(call, p->port, &port) != 0)
		return -1;
	cp = &call->m->env->w.ports[port];
	rc = cp->impair->set(cp->impair_ctx, some ? &p->impair : &nothing);
	if (rc != 0) {
		refuse(&r, -rc, "port %s: the rules cannot be set: %s%s", p->port, strerror(-rc),
			rc == -ENOTSUP ? " (only a port with one receive queue can be impaired)"
				       : "");
		return rpc_refused(call, &r);
	}
	return rpc_result(call, port_json(call->m, port));
}

/* The text of a rule is the form that people and scripts use, so it is the one that is sent. */
static json_t *
rule_json(const struct impair_rule *rule)
{
	char text[512];

	impair_rule_print(rule, text, sizeof(text));
	return json_loads(text, 0, NULL);
}

static int
impair_log(struct rpc_call *call)
{
	const struct p_impair_log *p = call->params;
	const struct env_port *cp;
	struct impair_rule *rules;
	json_t *list = json_array();
	uint64_t next = p->from, from = p->from;
	uint32_t port, n;

	if (find_port(call, p->port, &port) != 0) {
		json_decref(list);
		return -1;
	}
	cp = &call->m->env->w.ports[port];
	rules = calloc(p->max, sizeof(*rules));
	if (rules == NULL) {
		json_decref(list);
		return rpc_result(call, NULL);
	}
	n = cp->impair->log(cp->impair_ctx, &next, rules, p->max);
	for (uint32_t i = 0; i < n; i++)
		list = conf_json_append(list, rule_json(&rules[i]));
	free(rules);
	if (from > next) /* beyond the end */
		from = next;
	return rpc_result(call, json_pack("{s:s, s:o, s:o, s:{s:i, s:o}}", "port", p->port, "next",
					conf_json_u64(next), "lost", conf_json_u64(next - from - n),
					"impair", "seed", 0, "rules", list));
}

const struct rpc_method methods_impair[] = {
	{ "impair_get", impair_get, &get_table },
	{ "impair_set", impair_set, &set_table },
	{ "impair_log", impair_log, &log_table },
	{ NULL, NULL, NULL },
};
