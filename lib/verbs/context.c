/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of verbs.h that go through the context, not through the linker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vl.h"

/* A slot of verbs_context that is NULL gives EOPNOTSUPP in verbs.h itself. */
void
vl_context_ops(struct vl_context *c)
{
	struct ibv_context_ops *ops = &c->pub.context.ops;

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
	c->pub.query_rt_values = vl_query_rt_values;
	vl_domain_ops(&c->pub);
	vl_mw_ops(ops);
	vl_xrc_ops(&c->pub);
}
