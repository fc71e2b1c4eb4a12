/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods that deliver: asynchronous events, and records of dropped packets. */
#include <stdlib.h>
#include <string.h>

#include "methods.h"
#include "object_notify.h"
#include "wall.h"
#include "why.h"

/* A reply ends before it fills a line; what is left is delivered next time. */
#define REPLY_BYTES (RPC_LINE_MAX - 65536)
#define RECORDS_MAX 1024

struct p_events {
	uint32_t max;
	bool follow;
	bool peek; /* the newest that wait, and they stay */
};

static const struct conf_field events_rows[] = {
	P_U32(p_events, max, 1, EVENTS_MAX, P_DEFAULT(EVENTS_MAX)),
	P_BOOL(p_events, follow, P_DEFAULT(0)),
};
static const struct conf_field async_rows[] = {
	P_U32(p_events, max, 1, EVENTS_MAX, P_DEFAULT(EVENTS_MAX)),
	P_BOOL(p_events, follow, P_DEFAULT(0)),
	P_BOOL(p_events, peek, P_DEFAULT(0)),
};
static const struct conf_table async_table = P_TABLE(p_events, async_rows, "params");
static const struct conf_table events_table = P_TABLE(p_events, events_rows, "params");

/* As conf_json_append(), in front. */
static json_t *
prepend(json_t *list, json_t *v)
{
	if (json_array_insert_new(list, 0, v) == 0)
		return list;
	json_decref(list);
	return NULL;
}

/* From the newest back, until a line would be full; the list is oldest first. */
static int
look_at_events(struct rpc_call *call, uint32_t max)
{
	const uint32_t n = events_waiting(call->m->diagnose);
	json_t *list = json_array();
	size_t bytes = 0;

	for (uint32_t i = 0; i < n && i < max && bytes < REPLY_BYTES && list != NULL; i++) {
		json_t *e = events_look(call->m->diagnose, n - 1 - i);

		bytes += conf_json_size(e) + 1;
		list = prepend(list, e);
	}
	return rpc_result(call, list);
}

static int
async_events(struct rpc_call *call)
{
	const struct p_events *p = call->params;
	json_t *list;
	size_t bytes = 0;

	if (p->follow && p->peek)
		return rpc_invalid(call, "peek: goes without follow, which takes what waits");
	if (p->follow && call->client == NULL)
		return rpc_invalid(call, "follow: there is no connection to carry notifications");
	env_drain(call->m->env);
	if (p->peek)
		return look_at_events(call, p->max);
	list = json_array();
	for (uint32_t n = 0; n < p->max && bytes < REPLY_BYTES && list != NULL; n++) {
		json_t *e = events_take(call->m->diagnose);

		if (e == NULL)
			break;
		bytes += conf_json_size(e) + 1;
		list = conf_json_append(list, e);
	}
	if (p->follow)
		rpc_server_follow(call->m->rpc, call->client, RPC_ASYNC_EVENTS);
	return rpc_result(call, list);
}

/* ---- completion events (CQ-06) ------------------------------------------------------------- */

struct p_notify {
	char cq[CONF_NAME_MAX];
	bool solicited_only;
};

static const struct conf_field notify_rows[] = {
	P_NAME(p_notify, cq, P_REQUIRED),
	P_BOOL(p_notify, solicited_only, P_DEFAULT(0)),
};
static const struct conf_table notify_table = P_TABLE(p_notify, notify_rows, "params");

static int
req_notify(struct rpc_call *call)
{
	const struct p_notify *p = call->params;
	struct refusal r;
	struct object_cq *cq = object_cq_find(call->m->objects, p->cq, &r);

	if (cq == NULL || object_notify_arm(call->m->objects, cq, p->solicited_only, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
cq_events(struct rpc_call *call)
{
	const struct p_events *p = call->params;
	json_t *list = json_array();

	if (p->follow && call->client == NULL) {
		json_decref(list);
		return rpc_invalid(call, "follow: there is no connection to carry notifications");
	}
	object_notify_poll(call->m->objects);
	for (uint32_t n = 0; n < p->max && list != NULL; n++) {
		json_t *e = object_notify_take(call->m->objects);

		if (e == NULL)
			break;
		list = conf_json_append(list, e);
	}
	if (p->follow)
		rpc_server_follow(call->m->rpc, call->client, RPC_CQ_EVENTS);
	return rpc_result(call, list);
}

/* ---- dropped packets ----------------------------------------------------------------------- */

struct p_records {
	uint32_t max;
	bool peek; /* the newest that wait, and they stay */
};

static const struct conf_field records_rows[] = {
	P_U32(p_records, max, 1, RECORDS_MAX, P_DEFAULT(256)),
	P_BOOL(p_records, peek, P_DEFAULT(0)),
};
static const struct conf_table records_table = P_TABLE(p_records, records_rows, "params");

static json_t *
names_json(uint64_t faults)
{
	json_t *list = json_array();

	for (unsigned int bit = 0; bit < FAULT_MAX; bit++) {
		if ((faults >> bit & 1) != 0 && wire_faults[bit].name != NULL)
			json_array_append_new(list, json_string(wire_faults[bit].name));
	}
	return list;
}

static json_t *
header_json(const struct errbuf_record *r)
{
	static const char digits[] = "0123456789abcdef";
	const uint32_t len =
		r->header_len < ERRBUF_HEADER_BYTES ? r->header_len : ERRBUF_HEADER_BYTES;
	char hex[2 * ERRBUF_HEADER_BYTES];

	for (uint32_t i = 0; i < len; i++) {
		hex[2 * i] = digits[r->header[i] >> 4];
		hex[2 * i + 1] = digits[r->header[i] & 15];
	}
	return json_stringn(hex, 2 * len);
}

/* What became of the packet: profile, knobs and latches decide, not the fault alone. */
static const char *
impact_of(const struct errbuf_record *r)
{
	static const char *const names[] = { [ERRBUF_DROP] = "drop",
		[ERRBUF_NAK] = "nak",
		[ERRBUF_RNR] = "rnr",
		[ERRBUF_FATAL] = "fatal" };

	return r->impact < ARRAY_LEN(names) ? names[r->impact] : "drop";
}

/* The rule, or the fault of the header, in words; then what was wrong with the memory. */
static json_t *
why_json(struct methods *ctx, const struct errbuf_record *r)
{
	const struct why_view view = { .time_ns = r->time_ns };
	const char *rule = r->rule != 0             ? qp_rule_text(r->rule)
			   : r->charged < FAULT_MAX ? wire_faults[r->charged].text
						    : "";
	json_t *memory = r->memory ? why_text(ctx->diagnose, &view, &r->refusal) : NULL;
	const char *text = json_string_value(memory);
	json_t *v = json_sprintf("%s%s%s", rule != NULL ? rule : "", text != NULL ? ": " : "",
		text != NULL ? text : "");

	json_decref(memory);
	return v;
}

static json_t *
record_json(struct methods *ctx, const struct errlog_entry *e)
{
	const struct errbuf_record *r = &e->r;
	const struct why_view view = { .time_ns = r->time_ns };
	const char *opcode = wire_opcodes[r->opcode].name;
	const int port = env_port_index(ctx->env, r->port);
	json_t *o = json_object();

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "syndrome", json_integer((uint32_t)r->faults));
	json_object_set_new(o, "names", names_json(r->faults));
	json_object_set_new(o, "impact", json_string(impact_of(r)));
	json_object_set_new(o, "port",
		port >= 0 ? json_string(ctx->env->w.conf->ports[port].name) : json_null());
	json_object_set_new(o, "worker", json_integer(e->worker));
	json_object_set_new(o, "qp_num", json_integer(r->qpn));
	json_object_set_new(o, "opcode", json_integer(r->opcode));
	json_object_set_new(o, "opcode_name", opcode != NULL ? json_string(opcode) : json_null());
	json_object_set_new(o, "psn", json_integer(r->psn));
	json_object_set_new(o, "length", json_integer(r->frame_len));
	json_object_set_new(o, "header", header_json(r));
	wall_set(ctx->env, o, r->time_ns);
	if (r->rule != 0)
		json_object_set_new(o, "rule", json_string(qp_rule_id(r->rule)));
	json_object_set_new(o, "why", why_json(ctx, r));
	if (r->memory)
		json_object_set_new(o, "memory", why_memory(ctx->diagnose, &view, &r->refusal));
	return o;
}

static int
look_at_errors(struct rpc_call *call, uint32_t max)
{
	struct errlog_entry *e = calloc(max, sizeof(*e));
	json_t *list = json_array();
	uint32_t n = e != NULL ? errlog_look(call->m->diagnose, e, max) : 0;
	size_t bytes = 0;

	if (e == NULL) {
		json_decref(list);
		list = NULL;
	}
	for (uint32_t i = 0; i < n && bytes < REPLY_BYTES && list != NULL; i++) {
		json_t *o = record_json(call->m, &e[n - 1 - i]);

		bytes += conf_json_size(o) + 1;
		list = prepend(list, o);
	}
	free(e);
	return rpc_result(call, list);
}

static int
rx_errors(struct rpc_call *call)
{
	const struct p_records *p = call->params;
	json_t *list = p->peek ? NULL : json_array();
	struct errlog_entry e;
	size_t bytes = 0;

	if (p->peek)
		return look_at_errors(call, p->max);
	for (uint32_t n = 0; n < p->max && bytes < REPLY_BYTES && list != NULL; n++) {
		json_t *o;

		if (!errlog_take(call->m->diagnose, &e))
			break;
		o = record_json(call->m, &e);
		bytes += conf_json_size(o) + 1;
		list = conf_json_append(list, o);
	}
	return rpc_result(call, list);
}

const struct rpc_method methods_event[] = {
	{ "async_events", async_events, &async_table },
	{ "req_notify", req_notify, &notify_table },
	{ "cq_events", cq_events, &events_table },
	{ "rx_errors", rx_errors, &records_table },
	{ NULL, NULL, NULL },
};
