/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of shared receive queues. */
#include <errno.h>

#include "methods.h"
#include "method_sge.h"

static int
srq_create(struct rpc_call *call)
{
	const struct conf_srq *conf = call->params;
	struct refusal r;

	if (object_srq_create(call->m->objects, conf, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, object_srq_json(object_srq_find(call->m->objects, conf->name, &r)));
}

static int
srq_destroy(struct rpc_call *call)
{
	const struct p_name *p = call->params;
	struct refusal r;
	struct object_srq *srq = object_srq_find(call->m->objects, p->name, &r);

	if (srq == NULL || object_srq_destroy(call->m->objects, srq, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
srq_list(struct rpc_call *call)
{
	json_t *list = json_array();
	struct named *o;

	TAILQ_FOREACH (o, &call->m->objects->srqs.all, all)
		list = conf_json_append(list, object_srq_json((struct object_srq *)(void *)o));
	return rpc_result(call, list);
}

static int
srq_query(struct rpc_call *call)
{
	const struct p_name *p = call->params;
	struct refusal r;
	struct object_srq *srq = object_srq_find(call->m->objects, p->name, &r);

	if (srq == NULL)
		return rpc_refused(call, &r);
	return rpc_result(call, object_srq_json(srq));
}

/* ---- srq_modify ---------------------------------------------------------------------------- */

enum { SRQ_MAX_WR = 1, SRQ_LIMIT = 2 };

struct p_srq_modify {
	uint64_t given;
	char name[CONF_NAME_MAX];
	uint32_t max_wr;
	uint32_t srq_limit;
};

static const struct conf_field modify_rows[] = {
	P_NAME(p_srq_modify, name, P_REQUIRED),
	P_U32(p_srq_modify, max_wr, 1, CONF_MAX_WR, P_OPTIONAL, .given = SRQ_MAX_WR),
	P_U32(p_srq_modify, srq_limit, 0, CONF_MAX_WR, P_OPTIONAL, .given = SRQ_LIMIT),
};
static const struct conf_table modify_table = P_TABLE_GIVEN(p_srq_modify, modify_rows, "params");

static int
srq_modify(struct rpc_call *call)
{
	const struct p_srq_modify *p = call->params;
	struct refusal r;
	struct object_srq *srq = object_srq_find(call->m->objects, p->name, &r);

	if (srq == NULL || object_srq_modify(call->m->objects, srq,
				   (p->given & SRQ_MAX_WR) != 0 ? &p->max_wr : NULL,
				   (p->given & SRQ_LIMIT) != 0 ? &p->srq_limit : NULL, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, object_srq_json(srq));
}

/* ---- post_srq_recv ------------------------------------------------------------------------- */

struct p_post_srq {
	char srq[CONF_NAME_MAX];
	uint32_t n_wrs;
	struct p_recv_wr *wrs;
};

static const struct conf_field post_rows[] = {
	P_NAME(p_post_srq, srq, P_REQUIRED),
	P_ARRAY(p_post_srq, wrs, n_wrs, &method_recv_wr_table, 65536, P_REQUIRED),
};
static const struct conf_table post_table = P_TABLE(p_post_srq, post_rows, "params");

static int
post_one(struct rpc_call *call, void *queue, const void *wr, struct refusal *r)
{
	struct object_srq *srq = queue;
	const struct method_recv_limits most = { .max_sge = srq->q.max_sge,
		.sge_name = "max_sge",
		.max_wr = srq->conf.max_wr,
		.full = "the shared receive queue is full: max_wr" };

	if (atomic_load_explicit(&srq->q.error, memory_order_relaxed))
		return refuse(r, EINVAL, "srq \"%s\" is in error", srq->n.name);
	return method_recv_put(call, wr, &srq->rq, &most, r);
}

static int
post_srq_recv(struct rpc_call *call)
{
	const struct p_post_srq *p = call->params;
	struct refusal r;
	struct object_srq *srq = object_srq_find(call->m->objects, p->srq, &r);

	if (srq == NULL)
		return rpc_refused(call, &r);
	return method_post_all(call, &(struct method_posting){ .queue = srq,
					     .post = post_one,
					     .wrs = p->wrs,
					     .wr_size = sizeof(p->wrs[0]),
					     .n_wrs = p->n_wrs });
}

const struct rpc_method methods_srq[] = {
	{ "srq_create", srq_create, &conf_table_srq },
	{ "srq_destroy", srq_destroy, &method_name_table },
	{ "srq_list", srq_list, &method_no_params },
	{ "srq_query", srq_query, &method_name_table },
	{ "srq_modify", srq_modify, &modify_table },
	{ "post_srq_recv", post_srq_recv, &post_table },
	{ NULL, NULL, NULL },
};
