/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "methods.h"

/* A page ends before the reply fills a line; `after` goes on. */
#define PAGE_BYTES  (RPC_LINE_MAX - 65536)
#define NUMBERS_MAX 65536

enum { GIVEN_STATE = 1, GIVEN_WORKER = 2, GIVEN_AFTER = 4 };

struct p_qp_list {
	uint64_t given;
	uint32_t qp_state;
	uint32_t worker;
	uint32_t limit;
	uint32_t after;
};

static const struct conf_field list_rows[] = {
	P_ENUM(p_qp_list, qp_state, conf_names_qp_state, P_OPTIONAL, .given = GIVEN_STATE),
	P_U32(p_qp_list, worker, 0, CONF_MAX_WORKERS - 1, P_OPTIONAL, .given = GIVEN_WORKER),
	P_U32(p_qp_list, limit, 1, UINT32_MAX, P_DEFAULT(UINT32_MAX)),
	P_QPN(p_qp_list, after, P_OPTIONAL, .given = GIVEN_AFTER),
};
static const struct conf_table list_table = P_TABLE_GIVEN(p_qp_list, list_rows, "params");

static void
set_warnings(json_t *result, const struct conf_errors *err)
{
	json_t *list;

	if (err->n_warnings == 0)
		return;
	list = json_array();
	for (uint32_t i = 0; i < err->n; i++) {
		if (err->v[i].is_warning)
			json_array_append_new(list,
				json_sprintf("%s: %s", err->v[i].pointer + 1, err->v[i].message));
	}
	json_object_set_new(result, "warnings", list);
}

static json_t *
numbers_of(struct admin_qp *const *recs, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n && list != NULL; i++)
		list = conf_json_append(list, json_integer(recs[i]->qpn));
	return list;
}

static int
create(struct rpc_call *call, const struct conf_qp *conf, const struct conf_errors *err)
{
	struct admin_qp **recs = calloc(conf->count, sizeof(recs[0]));
	struct refusal r = { .err = 0 };
	json_t *result;

	if (recs == NULL)
		return rpc_result(call, NULL);
	if (admin_create(call->m->admin, conf, recs, &r) != 0) {
		free(recs);
		return rpc_refused(call, &r);
	}
	result = admin_json(call->m->admin, recs[0]);
	if (result != NULL) {
		json_object_set_new(result, "count", json_integer(conf->count));
		if (conf->count > 1 && conf->count <= NUMBERS_MAX)
			json_object_set_new(result, "qp_nums", numbers_of(recs, conf->count));
		set_warnings(result, err);
	}
	free(recs);
	return rpc_result(call, result);
}

static int
qp_create(struct rpc_call *call)
{
	struct conf_errors err;
	struct conf_qp conf;
	int rc;

	conf_errors_init(&err);
	if (conf_decode_qp(call->raw, &conf, &err) != 0)
		rc = rpc_faults(call, RPC_INVALID_PARAMS, &err);
	else
		rc = create(call, &conf, &err);
	conf_errors_free(&err);
	return rc;
}

/*
 * QP-04: a known attribute with a number that it cannot have is the modify's EINVAL; what is no
 * attribute, or no number at all, is a fault of the call. Only when all faults are of the first
 * kind and the QP is known.
 */
static int
modify_fault_code(struct rpc_call *call, const struct conf_errors *err)
{
	static const char *const ranged[] = { "path_mtu", "timeout", "retry_cnt", "rnr_retry",
		"min_rnr_timer", "rq_psn", "sq_psn", "max_rd_atomic", "max_dest_rd_atomic",
		"dest_qp_num", "pkey", "alt_timeout", "alt_pkey" };

	for (uint32_t i = 0; i < err->n; i++) {
		const char *key = err->v[i].pointer[0] == '/' ? err->v[i].pointer + 1 : "";
		bool is_range = false;

		if (err->v[i].is_warning)
			continue;
		for (unsigned int k = 0; k < ARRAY_LEN(ranged); k++)
			is_range = is_range || strcmp(ranged[k], key) == 0;
		if (!is_range || !json_is_integer(json_object_get(call->raw, key)))
			return RPC_INVALID_PARAMS;
	}
	return RPC_REFUSED - EINVAL;
}

int
method_qp_modify(struct rpc_call *call)
{
	struct refusal r = { .err = 0 };
	struct conf_errors err;
	struct conf_qp conf;
	struct admin_qp *rec;
	json_t *result;
	int rc;

	conf_errors_init(&err);
	if (conf_decode_qp_modify(call->raw, &conf, &err) != 0) {
		rc = rpc_faults(call, modify_fault_code(call, &err), &err);
		conf_errors_free(&err);
		return rc;
	}
	rec = admin_get(call->m->admin, conf.qp_num, &r);
	if (rec == NULL || admin_modify(call->m->admin, rec, &conf, &r) != 0) {
		rc = rpc_refused(call, &r);
	} else {
		result = admin_json(call->m->admin, rec);
		set_warnings(result, &err);
		rc = rpc_result(call, result);
	}
	conf_errors_free(&err);
	return rc;
}

int
method_qp_query(struct rpc_call *call)
{
	const struct p_qp *p = call->params;
	struct refusal r;
	struct admin_qp *rec = admin_get(call->m->admin, p->qp_num, &r);
	struct qp_snapshot s;

	env_drain(call->m->env); /* a fatal status that was raised before is in the answer */
	if (rec == NULL || admin_snapshots(call->m->admin, &rec, 1, &s, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, admin_json_live(call->m->admin, rec, &s));
}

static bool
is_wanted(const struct p_qp_list *p, const struct admin_qp *rec)
{
	if ((p->given & GIVEN_STATE) != 0 && admin_state(rec) != p->qp_state)
		return false;
	return (p->given & GIVEN_WORKER) == 0 || rec->worker == p->worker;
}

/* Rows come in the order of the table; `after` names the last one of the page before. */
static int
qp_list(struct rpc_call *call)
{
	const struct p_qp_list *p = call->params;
	struct qp_snapshot *s = call->m->admin->snapshots;
	struct admin_qp *recs[ADMIN_SNAPSHOTS];
	json_t *list = json_array();
	uint32_t slot =
		(p->given & GIVEN_AFTER) != 0 ? (p->after & call->m->env->w.qps->mask) + 1 : 0;
	uint32_t left = p->limit, n;
	size_t bytes = 0;
	struct refusal r;

	do {
		struct admin_qp *rec;

		n = 0;
		while (n < ADMIN_SNAPSHOTS && n < left &&
			(rec = admin_next(call->m->admin, &slot)) != NULL) {
			if (is_wanted(p, rec))
				recs[n++] = rec;
		}
		if (admin_snapshots(call->m->admin, recs, n, s, &r) != 0) {
			json_decref(list);
			return rpc_refused(call, &r);
		}
		for (uint32_t i = 0; i < n; i++) {
			json_t *row = admin_json_live(call->m->admin, recs[i], &s[i]);

			bytes += conf_json_size(row) + 1;
			if (bytes > PAGE_BYTES) {
				json_decref(row);
				return rpc_result(call, list);
			}
			list = conf_json_append(list, row);
		}
		left -= n;
	} while (n > 0 && left > 0);
	return rpc_result(call, list);
}

/* How many there are in each state, without looking into any of them. */
static int
qp_count(struct rpc_call *call)
{
	const struct methods *ctx = call->m;
	json_int_t n[QPS_MAX] = { 0 };
	json_t *o = json_object();

	for (uint32_t slot = 0; slot < ctx->env->w.qps->entries; slot++) {
		const int state = admin_slot_state(&ctx->admin->slots[slot]);

		if (state >= 0 && state < QPS_MAX)
			n[state]++;
	}
	for (const struct conf_name *name = conf_names_qp_state; name->name != NULL; name++)
		json_object_set_new(o, name->name, json_integer(n[name->value]));
	return rpc_result(call, o);
}

int
method_qp_destroy(struct rpc_call *call)
{
	const struct p_qp *p = call->params;
	struct refusal r;
	struct admin_qp *rec = admin_get(call->m->admin, p->qp_num, &r);

	if (rec == NULL || admin_destroy(call->m->admin, rec, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

const struct rpc_method methods_qp[] = {
	{ "qp_create", qp_create, NULL },
	{ "qp_modify", method_qp_modify, NULL },
	{ "qp_query", method_qp_query, &method_qp_table },
	{ "qp_list", qp_list, &list_table },
	{ "qp_count", qp_count, &method_no_params },
	{ "qp_destroy", method_qp_destroy, &method_qp_table },
	{ NULL, NULL, NULL },
};
