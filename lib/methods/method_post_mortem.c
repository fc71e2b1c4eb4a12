/* SPDX-License-Identifier: BSD-3-Clause */
/* The method that tells what became of queue pairs that failed, gone ones too. */
#include <errno.h>

#include "methods.h"
#include "wall.h"

enum { GIVEN_QP = 1 };

struct p_post_mortem {
	uint64_t given;
	uint32_t qp_num;
};

static const struct conf_field rows[] = {
	P_QPN(p_post_mortem, qp_num, P_OPTIONAL, .given = GIVEN_QP),
};
static const struct conf_table table = P_TABLE_GIVEN(p_post_mortem, rows, "params");

static json_t *
owner_json(const struct failed_owner *o)
{
	static const char *const kinds[] = { [FAILED_OF_CONFIGURATION] = "configuration",
		[FAILED_OF_OPERATOR] = "operator",
		[FAILED_OF_CLIENT] = "client" };
	char text[FAILED_OWNER_TEXT];
	json_t *v;

	failed_owner_text(o, text, sizeof(text));
	v = json_pack("{s:s, s:s}", "kind", kinds[o->kind], "text", text);
	if (o->kind != FAILED_OF_CLIENT)
		return v;
	json_object_set_new(v, "client", json_integer(o->client));
	json_object_set_new(v, "pid", json_integer(o->pid));
	json_object_set_new(v, "uid", json_integer(o->uid));
	json_object_set_new(v, "name", json_string(o->name));
	return v;
}

/* What a line of the list has. */
static json_t *
head_json(struct methods *ctx, const struct failed_qp *q)
{
	static const char *const ends[] = { [ADMIN_END_NONE] = "in ERR",
		[ADMIN_END_RESET] = "reset",
		[ADMIN_END_DESTROYED] = "destroyed",
		[ADMIN_END_OWNER] = "gone with its owner" };
	const struct qp_error *e = &q->f.error;
	json_t *o = json_object();

	if (o == NULL)
		return NULL;
	wall_set(ctx->env, o, e->time_ns);
	json_object_set_new(o, "qp_num", json_integer(q->f.qpn));
	json_object_set_new(o, "owner", owner_json(&q->owner));
	json_object_set_new(o, "summary", failure_summary(ctx->diagnose, &q->f));
	failure_set_reports(o, e);
	json_object_set_new(o, "fatal_code", json_integer(e->fatal));
	json_object_set_new(o, "end", json_string(ends[q->end]));
	json_object_set_new(
		o, "ended_ns", q->ended_ns != 0 ? conf_json_u64(q->ended_ns) : json_null());
	json_object_set_new(o, "ended", wall_json(ctx->env, q->ended_ns));
	return o;
}

/* What the QP was set to, where that has a part in failures. */
static json_t *
attributes_json(const struct failed_qp *q)
{
	return json_pack("{s:i, s:o, s:i, s:i, s:i}", "timeout", q->timeout, "timeout_us",
		q->timeout != 0 ? json_real(4.096 * (double)(1ull << q->timeout)) : json_null(),
		"retry_cnt", q->retry_cnt, "rnr_retry", q->rnr_retry, "path_mtu", q->path_mtu);
}

static json_t *
story_json(struct methods *ctx, struct failed_qp *q, const uint64_t *flushed)
{
	json_t *o = head_json(ctx, q);

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "error", failure_json(ctx->diagnose, &q->f));
	json_object_set_new(o, "port",
		q->port >= 0
			? json_pack("{s:s, s:s}", "name", ctx->env->w.conf->ports[q->port].name,
				  "link", q->port_down ? "down" : "up")
			: json_null());
	json_object_set_new(o, "neighbor",
		q->neigh != FAILED_NO_NEIGHBOR
			? json_pack("{s:s, s:I}", "state",
				  neigh_state_name((enum neigh_state)q->neigh, q->neigh_tries),
				  "asked", (json_int_t)q->neigh_tries)
			: json_null());
	json_object_set_new(
		o, "network", q->network[0] != '\0' ? json_string(q->network) : json_null());
	json_object_set_new(o, "attributes", attributes_json(q));
	if (q->end == ADMIN_END_DESTROYED || q->end == ADMIN_END_OWNER)
		flushed = &q->flushed;
	json_object_set_new(o, "flushed",
		flushed != NULL && q->end != ADMIN_END_RESET ? conf_json_u64(*flushed)
							     : json_null());
	json_object_set_new(o, "recorder", json_boolean(q->recorder));
	if (q->end == ADMIN_END_NONE && q->story.n != 0)
		story_go_on(&q->story, ctx->env->w.workers[q->worker].trace, q->f.qpn);
	story_set(ctx->diagnose, o, &q->story, q->worker);
	return o;
}

/* Completions flushed behind the failure of a QP that is still there. @return false: it is not. */
static bool
flushed_now(struct methods *ctx, uint32_t qpn, uint64_t *flushed)
{
	struct admin_qp *rec = admin_find(ctx->admin, qpn);
	struct qp_snapshot *s = ctx->admin->snapshots;
	struct refusal ignored;

	if (rec == NULL || !rec->failed || admin_snapshots(ctx->admin, &rec, 1, s, &ignored) != 0)
		return false;
	*flushed = s->stats.c[STAT_resp_cqe_flush_error] + s->stats.c[STAT_req_cqe_flush_error];
	return true;
}

static int
none(struct rpc_call *call, uint32_t qpn)
{
	const struct post_mortem *p = &call->m->diagnose->post_mortem;
	struct refusal r;

	if (admin_find(call->m->admin, qpn) != NULL)
		refuse(&r, ENOENT, "QP %u is there and has not failed (qp explain %u)", qpn, qpn);
	else if (p->total > p->n)
		refuse(&r, ENOENT,
			"no failure of a QP %u is among the %u that are kept; %llu are forgotten",
			qpn, p->n, (unsigned long long)(p->total - p->n));
	else
		refuse(&r, ENOENT, "no QP %u has failed since the dataplane was started", qpn);
	return rpc_refused(call, &r);
}

static int
qp_post_mortem(struct rpc_call *call)
{
	const struct p_post_mortem *p = call->params;
	const bool one = (p->given & GIVEN_QP) != 0;
	struct methods *ctx = call->m;
	json_t *list = json_array();
	uint64_t flushed;
	bool known;

	env_drain(ctx->env); /* what was raised before is in the answer */
	known = one && flushed_now(ctx, p->qp_num, &flushed);
	for (uint32_t i = ctx->diagnose->post_mortem.n; i-- > 0 && list != NULL;) {
		struct failed_qp *q =
			&ctx->diagnose->post_mortem.v[ctx->diagnose->post_mortem.order[i]];

		if (!one)
			list = conf_json_append(list, head_json(ctx, q));
		else if (q->f.qpn == p->qp_num)
			list = conf_json_append(list, story_json(ctx, q, known ? &flushed : NULL));
	}
	if (one && json_array_size(list) == 0) {
		json_decref(list);
		return none(call, p->qp_num);
	}
	return rpc_result(call, list);
}

const struct rpc_method methods_post_mortem[] = {
	{ "qp_post_mortem", qp_post_mortem, &table },
	{ NULL, NULL, NULL },
};
