/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of the flight recorder. */
#include <stdlib.h>

#include "methods.h"

#define READ_MAX 2048 /* a reply fits a line */

enum { GIVEN_QP = 1 };

struct p_trace {
	uint64_t given;
	uint32_t qp_num;
	uint32_t max;
};

static const struct conf_field switch_rows[] = {
	P_QPN(p_trace, qp_num, P_OPTIONAL, .given = GIVEN_QP),
};
static const struct conf_table switch_table = P_TABLE_GIVEN(p_trace, switch_rows, "params");

static const struct conf_field read_rows[] = {
	P_QPN(p_trace, qp_num, P_OPTIONAL, .given = GIVEN_QP),
	P_U32(p_trace, max, 1, READ_MAX, P_DEFAULT(256)),
};
static const struct conf_table read_table = P_TABLE_GIVEN(p_trace, read_rows, "params");

/* One QP, or all that there are now. */
static int
turn(struct rpc_call *call, bool on)
{
	const struct p_trace *p = call->params;
	struct admin_qp *rec;
	struct refusal r;
	uint32_t n;

	if ((p->given & GIVEN_QP) != 0) {
		rec = admin_get(call->m->admin, p->qp_num, &r);
		if (rec == NULL || admin_trace(call->m->admin, rec, on, &r) != 0)
			return rpc_refused(call, &r);
		return rpc_result(call, json_pack("{s:i}", "qps", 1));
	}
	if (admin_trace_all(call->m->admin, on, &n, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_pack("{s:I}", "qps", (json_int_t)n));
}

static int
trace_start(struct rpc_call *call)
{
	return turn(call, true);
}

static int
trace_stop(struct rpc_call *call)
{
	return turn(call, false);
}

struct row {
	struct trace_entry e;
	uint32_t worker;
};

static int
by_time(const void *a, const void *b)
{
	const ns_t x = ((const struct row *)a)->e.time_ns, y = ((const struct row *)b)->e.time_ns;

	return (x > y) - (x < y);
}

/* The newest of all workers, oldest first. @return how many. */
static uint32_t
collect(const struct methods *ctx, uint32_t qpn, struct row *rows, struct trace_entry *one,
	uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < ctx->env->w.workers_n; w++) {
		const struct trace *t = ctx->env->w.workers[w].trace;
		const uint32_t got = t != NULL ? trace_read(t, qpn, one, max) : 0;

		for (uint32_t i = 0; i < got; i++)
			rows[n++] = (struct row){ one[i], w };
	}
	if (ctx->env->w.workers_n > 1)
		qsort(rows, n, sizeof(rows[0]), by_time);
	return n;
}

static int
read_trace(struct rpc_call *call)
{
	const struct p_trace *p = call->params;
	const uint32_t qpn = (p->given & GIVEN_QP) != 0 ? p->qp_num : UINT32_MAX;
	struct row *rows = calloc((size_t)p->max * call->m->env->w.workers_n, sizeof(rows[0]));
	struct trace_entry *one = calloc(p->max, sizeof(one[0]));
	json_t *list = rows != NULL && one != NULL ? json_array() : NULL;
	uint32_t n = list != NULL ? collect(call->m, qpn, rows, one, p->max) : 0;

	for (uint32_t i = n > p->max ? n - p->max : 0; i < n && list != NULL; i++)
		list = conf_json_append(
			list, explain_trace_entry(call->m->diagnose, &rows[i].e, rows[i].worker));
	free(rows);
	free(one);
	return rpc_result(call, list);
}

const struct rpc_method methods_trace[] = {
	{ "trace_start", trace_start, &switch_table },
	{ "trace_stop", trace_stop, &switch_table },
	{ "trace_read", read_trace, &read_table },
	{ NULL, NULL, NULL },
};
