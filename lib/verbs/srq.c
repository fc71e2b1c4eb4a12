/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#include <stdlib.h>

#include "vl.h"

_Static_assert((int)IBV_SRQT_XRC == (int)RL_SRQT_XRC, "types of SRQs");
_Static_assert(
	sizeof(struct ibv_recv_wr) == sizeof(struct rl_recv_wr) &&
		offsetof(struct ibv_recv_wr, sg_list) == offsetof(struct rl_recv_wr, sg_list) &&
		offsetof(struct ibv_recv_wr, num_sge) == offsetof(struct rl_recv_wr, num_sge),
	"a receive is handed on as it is");

/* @param a type, domain and CQ, if it has them. */
static struct ibv_srq *
create_srq(
	struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr, struct rl_srq_init_attr *a)
{
	struct vl_srq *srq = calloc(1, sizeof(*srq));
	int rc;

	if (srq == NULL)
		return vl_none(vl_no_memory());
	a->srq_context = srq;
	a->attr.max_wr = attr->max_wr;
	/* As Soft-RoCE: who hears of WRITEs with immediate data alone asks for none. */
	a->attr.max_sge = attr->max_sge != 0 ? attr->max_sge : 1;
	rc = rl_create_srq(((struct vl_pd *)pd)->rl, a, &srq->rl);
	if (rc != 0) {
		free(srq);
		return vl_none(-rc);
	}
	srq->pub.context = pd->context;
	srq->pub.srq_context = srq_context;
	srq->pub.pd = pd;
	vl_pd_used(pd, 1);
	pthread_mutex_init(&srq->pub.mutex, NULL);
	pthread_cond_init(&srq->pub.cond, NULL);
	attr->max_wr = a->attr.max_wr;
	attr->max_sge = a->attr.max_sge;
	return &srq->pub;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct rl_srq_init_attr a = { .srq_type = RL_SRQT_BASIC };

	return create_srq(pd, init->srq_context, &init->attr, &a);
}

struct ibv_srq *
vl_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t of_xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | of_xrc;
	const enum ibv_srq_type type =
		(init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? init->srq_type : IBV_SRQT_BASIC;
	struct rl_srq_init_attr a = { .srq_type = (enum rl_srq_type)type };

	(void)ctx;
	if ((init->comp_mask & ~known) != 0 || type > IBV_SRQT_XRC)
		return vl_none(vl_why(EOPNOTSUPP, "a comp_mask or a type that no SRQ has here"));
	if ((init->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 ||
		(type == IBV_SRQT_XRC) != ((init->comp_mask & of_xrc) == of_xrc))
		return vl_none(
			vl_why(EINVAL, "without a pd, or type XRC without its domain and CQ"));
	if (type == IBV_SRQT_XRC) {
		a.xrcd = ((struct vl_xrcd *)init->xrcd)->rl;
		a.cq = ((struct vl_cq *)init->cq)->rl;
	}
	return create_srq(init->pd, init->srq_context, &init->attr, &a);
}

int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	const struct rl_srq_attr a = {
		.max_wr = attr->max_wr, .max_sge = attr->max_sge, .srq_limit = attr->srq_limit
	};

	return vl_result(rl_modify_srq(((struct vl_srq *)srq)->rl, &a, mask));
}

int
ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct rl_srq_attr a;
	const int rc = rl_query_srq(((struct vl_srq *)srq)->rl, &a);

	if (rc == 0)
		*attr = (struct ibv_srq_attr){
			.max_wr = a.max_wr, .max_sge = a.max_sge, .srq_limit = a.srq_limit
		};
	return vl_result(rc);
}

int
ibv_destroy_srq(struct ibv_srq *pub)
{
	struct vl_srq *srq = (struct vl_srq *)pub;
	const int rc = rl_destroy_srq(srq->rl);

	if (rc != 0)
		return vl_result(rc);
	vl_pd_used(pub->pd, -1);
	pthread_mutex_destroy(&pub->mutex);
	pthread_cond_destroy(&pub->cond);
	free(srq);
	return 0;
}

int
vl_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return vl_result(rl_post_srq_recv(
		((struct vl_srq *)srq)->rl, (struct rl_recv_wr *)wr, (struct rl_recv_wr **)bad));
}
