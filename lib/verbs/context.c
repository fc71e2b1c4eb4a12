/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of verbs.h that go through the context, not through the linker. */
#include "vl.h"

/* ---- what is not there ----------------------------------------------------------------------- */

static struct ibv_mw *
alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	(void)pd;
	(void)type;
	return vl_none(EOPNOTSUPP);
}

static int
bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp;
	(void)mw;
	(void)bind;
	return vl_result(-EOPNOTSUPP);
}

static int
dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return vl_result(-EOPNOTSUPP);
}

/* A slot of verbs_context that is NULL gives EOPNOTSUPP in verbs.h itself. */
void
vl_context_ops(struct vl_context *c)
{
	struct ibv_context_ops *ops = &c->pub.context.ops;

	ops->alloc_mw = alloc_mw;
	ops->bind_mw = bind_mw;
	ops->dealloc_mw = dealloc_mw;
	ops->poll_cq = vl_poll_cq;
	ops->req_notify_cq = vl_req_notify_cq;
	ops->post_send = vl_post_send;
	ops->post_recv = vl_post_recv;
	ops->post_srq_recv = vl_post_srq_recv;
	c->pub.query_port = vl_query_port;
	c->pub.query_device_ex = vl_query_device_ex;
	c->pub.create_cq_ex = vl_create_cq_ex;
	c->pub.create_qp_ex = vl_create_qp_ex;
	c->pub.create_srq_ex = vl_create_srq_ex;
}
