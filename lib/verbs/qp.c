/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs. */
#include <stdlib.h>
#include <string.h>

#include "psn.h"
#include "vl.h"

/* The attributes that the kernel takes in some step: bits 0 to 20, but for one. */
#define KNOWN_ATTRS (((1 << 21) - 1) & ~IBV_QP_CAP)

/* What a program posts is handed on as it is: ours reads no member behind these. */
#define SAME(field)     \
	_Static_assert( \
		offsetof(struct ibv_send_wr, field) == offsetof(struct rl_send_wr, field), #field)
SAME(wr_id);
SAME(next);
SAME(sg_list);
SAME(num_sge);
SAME(opcode);
SAME(send_flags);
SAME(imm_data);
SAME(wr.rdma.remote_addr);
SAME(wr.rdma.rkey);
SAME(wr.atomic.compare_add);
SAME(wr.atomic.swap);
SAME(wr.atomic.rkey);
SAME(qp_type.xrc.remote_srqn);
_Static_assert(sizeof(struct ibv_sge) == sizeof(struct rl_sge), "sge");

/* ---- create ---------------------------------------------------------------------------------- */

static int
type_of(enum ibv_qp_type type, enum rl_qp_type *to)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		*to = (enum rl_qp_type)type;
		return 0;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		return vl_why(EOPNOTSUPP, "queue pairs are RC, UC, UD, XRC_SEND and XRC_RECV");
	default:
		return vl_why(EINVAL, "no type of queue pairs");
	}
}

/*
 * Adapters have room for 64 requests or so in any queue, and programs have come to need that:
 * "ib_send_lat -e" asks for one place and posts two requests before it polls.
 */
#define LEAST_WR 64

static uint32_t
at_least(uint32_t wr)
{
	return wr != 0 && wr < LEAST_WR ? LEAST_WR : wr;
}

static struct rl_cq *
cq_behind(struct ibv_cq *cq)
{
	return cq != NULL ? ((struct vl_cq *)cq)->rl : NULL;
}

static int
create(struct vl_qp *qp, const struct ibv_qp_init_attr_ex *init, struct rl_qp_cap *cap)
{
	struct vl_xrcd *xrcd =
		init->qp_type == IBV_QPT_XRC_RECV ? (struct vl_xrcd *)init->xrcd : NULL;
	struct rl_qp_init_attr a = { .qp_context = qp,
		.send_cq = cq_behind(init->send_cq),
		.recv_cq = cq_behind(init->recv_cq),
		.srq = init->srq != NULL ? ((struct vl_srq *)init->srq)->rl : NULL,
		.cap = { at_least(init->cap.max_send_wr), at_least(init->cap.max_recv_wr),
			init->cap.max_send_sge, init->cap.max_recv_sge, init->cap.max_inline_data },
		.sq_sig_all = init->sq_sig_all };
	int rc = type_of(init->qp_type, &a.qp_type);

	if (rc != 0)
		return rc;
	/* The bytes of an ATOMIC WRITE go inline, whatever the program does otherwise. */
	if ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 &&
		(init->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE) != 0 &&
		a.cap.max_inline_data < sizeof(uint64_t))
		a.cap.max_inline_data = sizeof(uint64_t);
	/* As Soft-RoCE: in place of a list of buffers. rdma_xclient counts on it. */
	if (a.cap.max_inline_data < a.cap.max_send_sge * sizeof(struct ibv_sge))
		a.cap.max_inline_data = a.cap.max_send_sge * sizeof(struct ibv_sge);
	/* A target has none of the queues that a program may name, its peer nothing to receive. */
	if (xrcd != NULL || init->qp_type == IBV_QPT_XRC_SEND) {
		a.recv_cq = NULL;
		a.srq = NULL;
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	}
	if (xrcd != NULL) {
		a.send_cq = NULL;
		a.cap = (struct rl_qp_cap){ 0 };
		a.xrcd = xrcd->rl;
	}
	rc = rl_create_qp(xrcd != NULL ? xrcd->pd : ((struct vl_pd *)init->pd)->rl, &a, &qp->rl);
	*cap = a.cap;
	return -rc;
}

/* @return 0 or an errno. */
static int
check_init(const struct ibv_qp_init_attr_ex *init)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;

	if ((init->comp_mask & ~known) != 0 ||
		((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0))
		return vl_why(
			EOPNOTSUPP, "a comp_mask beyond PD, XRCD, SEND_OPS_FLAGS; or create_flags");
	if (init->qp_type == IBV_QPT_XRC_RECV &&
		((init->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || init->xrcd == NULL))
		return vl_why(EINVAL, "XRC_RECV without an xrcd");
	if (init->qp_type != IBV_QPT_XRC_RECV &&
		((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || init->pd == NULL))
		return vl_why(EINVAL, "no pd");
	return 0;
}

/* Programs take it from here whether there is ATOMIC WRITE and FLUSH. @return 0 or an errno. */
static int
check_ops(struct ibv_context *ctx, const struct ibv_qp_init_attr_ex *init)
{
	const uint64_t placement = IBV_QP_EX_WITH_ATOMIC_WRITE | VL_QP_EX_WITH_FLUSH;
	struct rl_device_attr device;
	int rc;

	if ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0 ||
		(init->send_ops_flags & placement) == 0)
		return 0;
	rc = rl_query_device(vl_context_of(ctx)->rl, &device);
	if (rc != 0)
		return -rc;
	if (device.placement == 0)
		return vl_why(EOPNOTSUPP, "ATOMIC_WRITE and FLUSH: knob ops.placement is off");
	return 0;
}

/* What programs read of it. */
static void
put_base(struct vl_qp *qp, struct ibv_context *ctx, const struct ibv_qp_init_attr_ex *init)
{
	qp->pub.qp_base = (struct ibv_qp){ .context = ctx,
		.qp_context = init->qp_context,
		.pd = (init->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? init->pd : NULL,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.qp_num = qp->rl->qp_num,
		.handle = qp->rl->qp_num,
		.state = (enum ibv_qp_state)qp->rl->state,
		.qp_type = init->qp_type };
	pthread_mutex_init(&qp->pub.qp_base.mutex, NULL);
	pthread_cond_init(&qp->pub.qp_base.cond, NULL);
	vl_pd_used(qp->pub.qp_base.pd, 1);
}

struct ibv_qp *
vl_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *init)
{
	struct rl_qp_cap cap;
	struct vl_qp *qp;
	int rc = check_init(init);

	if (rc == 0)
		rc = check_ops(ctx, init);
	if (rc != 0)
		return vl_none(rc);
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return vl_none(vl_no_memory());
	rc = create(qp, init, &cap);
	if (rc == 0 && (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0)
		rc = vl_builder_init(qp, init, &cap);
	if (rc != 0) {
		if (qp->rl != NULL)
			rl_destroy_qp(qp->rl);
		free(qp);
		return vl_none(rc);
	}
	put_base(qp, ctx, init);
	init->cap = (struct ibv_qp_cap){ cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge,
		cap.max_recv_sge, cap.max_inline_data };
	return &qp->pub.qp_base;
}

struct ibv_qp *
vl_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	const struct vl_xrcd *xrcd = (const struct vl_xrcd *)attr->xrcd;
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV };
	struct rl_qp_open_attr a;
	struct vl_qp *qp;
	int rc;

	if ((attr->comp_mask & needed) != needed || attr->qp_type != IBV_QPT_XRC_RECV ||
		(attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) != 0)
		return vl_none(vl_why(EINVAL, "XRC_RECV alone is opened, by NUM, XRCD and TYPE"));
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return vl_none(vl_no_memory());
	if ((attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0)
		init.qp_context = attr->qp_context;
	a = (struct rl_qp_open_attr){ xrcd->rl, attr->qp_num, qp };
	rc = rl_open_qp(xrcd->pd, &a, &qp->rl);
	if (rc != 0) {
		free(qp);
		return vl_none(-rc);
	}
	put_base(qp, ctx, &init);
	return &qp->pub.qp_base;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex ex = { .qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd };
	struct ibv_qp *qp = vl_create_qp_ex(pd->context, &ex);

	if (qp != NULL)
		init->cap = ex.cap;
	return qp;
}

int
ibv_destroy_qp(struct ibv_qp *pub)
{
	struct vl_qp *qp = (struct vl_qp *)pub;
	const int rc = rl_destroy_qp(qp->rl);

	if (rc != 0)
		return vl_result(rc);
	vl_pd_used(pub->pd, -1);
	vl_builder_free(qp);
	pthread_mutex_destroy(&pub->mutex);
	pthread_cond_destroy(&pub->cond);
	free(qp);
	return 0;
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *pub)
{
	struct vl_qp *qp = (struct vl_qp *)pub;

	return qp->builder != NULL ? &qp->pub : NULL;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Members that are plain numbers, the same on both sides. */
/* clang-format off */
#define NUMBERS(X)                                                                               \
	X(qkey)                                                                                  \
	X(rq_psn)                                                                                \
	X(sq_psn)                                                                                \
	X(dest_qp_num)                                                                           \
	X(qp_access_flags) X(pkey_index) X(alt_pkey_index) X(en_sqd_async_notify) X(sq_draining) \
		X(max_rd_atomic) X(max_dest_rd_atomic) X(min_rnr_timer) X(timeout) X(retry_cnt)  \
			X(rnr_retry) X(alt_timeout)
/* clang-format on */
#define COPY(member) to->member = from->member;

static int
attr_to(struct vl_context *c, const struct ibv_qp_attr *from, int mask, struct rl_qp_attr *to)
{
	*to = (struct rl_qp_attr){ .qp_state = (enum rl_qp_state)from->qp_state,
		.cur_qp_state = (enum rl_qp_state)from->cur_qp_state,
		.path_mtu = (enum rl_mtu)from->path_mtu,
		.path_mig_state = (enum rl_mig_state)from->path_mig_state,
		.port_num = c->port };
	NUMBERS(COPY)
	/* Programs give whole random numbers: a PSN has 24 bits. */
	to->rq_psn &= PSN_MASK;
	to->sq_psn &= PSN_MASK;
	if ((mask & IBV_QP_PORT) != 0 && from->port_num != 1)
		return vl_why(EINVAL, VL_ONE_PORT);
	if ((mask & IBV_QP_ALT_PATH) != 0) {
		/* Each port is a device of its own. */
		to->alt_port_num = c->port;
		if (from->alt_port_num != 1)
			return vl_why(EINVAL, VL_ONE_PORT);
		if (vl_path_to(c, &from->alt_ah_attr, &to->alt_ah_attr) != 0)
			return EINVAL;
	}
	return (mask & IBV_QP_AV) != 0 ? vl_path_to(c, &from->ah_attr, &to->ah_attr) : 0;
}

static void
path_from(struct vl_context *c, const struct rl_ah_attr *from, struct ibv_ah_attr *to)
{
	const bool v4 = vl_is_v4(from->grh.dgid.raw);
	union rl_gid own;

	*to = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	memcpy(to->grh.dgid.raw, from->grh.dgid.raw, sizeof(to->grh.dgid.raw));
	to->grh.flow_label = from->grh.flow_label;
	to->grh.hop_limit = from->grh.hop_limit;
	to->grh.traffic_class = from->grh.traffic_class;
	/* The port's address of the same family. */
	for (int i = 0; rl_query_gid(c->rl, c->port, i, &own) == 0; i++) {
		if (vl_is_v4(own.raw) == v4) {
			to->grh.sgid_index = (uint8_t)i;
			break;
		}
	}
}

/* As the kernel does it: programs set of both halves of an XRC connection what RC has. */
static int
without_other_half(enum ibv_qp_type type, int mask)
{
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (type == IBV_QPT_XRC_RECV)
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

int
ibv_modify_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask)
{
	struct vl_qp *qp = (struct vl_qp *)pub;
	struct rl_qp_attr a;
	int rc;

	if ((mask & ~KNOWN_ATTRS) != 0)
		return vl_result(vl_why(-EINVAL, "an attribute that no queue pair has here"));
	mask = without_other_half(pub->qp_type, mask);
	rc = attr_to(vl_context_of(pub->context), attr, mask, &a);
	if (rc != 0)
		return vl_result(-rc);
	rc = rl_modify_qp(qp->rl, &a, mask);
	if (rc == 0 && (mask & IBV_QP_STATE) != 0)
		pub->state = attr->qp_state;
	return vl_result(rc);
}

int
ibv_query_qp(struct ibv_qp *pub, struct ibv_qp_attr *to, int mask, struct ibv_qp_init_attr *init)
{
	struct vl_context *c = vl_context_of(pub->context);
	struct vl_qp *qp = (struct vl_qp *)pub;
	struct rl_qp_init_attr i;
	struct rl_qp_attr a;
	const struct rl_qp_attr *from = &a;
	const int rc = rl_query_qp(qp->rl, &a, mask, &i);

	if (rc != 0)
		return vl_result(rc);
	*to = (struct ibv_qp_attr){ .qp_state = (enum ibv_qp_state)a.qp_state,
		.cur_qp_state = (enum ibv_qp_state)a.cur_qp_state,
		.path_mtu = (enum ibv_mtu)a.path_mtu,
		.path_mig_state = (enum ibv_mig_state)a.path_mig_state,
		.cap = { i.cap.max_send_wr, i.cap.max_recv_wr, i.cap.max_send_sge,
			i.cap.max_recv_sge, i.cap.max_inline_data },
		.port_num = a.port_num != 0 };
	NUMBERS(COPY)
	if (a.ah_attr.is_global != 0)
		path_from(c, &a.ah_attr, &to->ah_attr);
	if (a.alt_ah_attr.is_global != 0) {
		path_from(c, &a.alt_ah_attr, &to->alt_ah_attr);
		to->alt_port_num = 1;
	}
	pub->state = to->qp_state;
	if (init != NULL)
		*init = (struct ibv_qp_init_attr){ .qp_context = pub->qp_context,
			.send_cq = pub->send_cq,
			.recv_cq = pub->recv_cq,
			.srq = pub->srq,
			.cap = to->cap,
			.qp_type = pub->qp_type,
			.sq_sig_all = i.sq_sig_all };
	return 0;
}

/* ---- enhanced connection establishment, order of data: neither is there ---------------------- */

#define NO_ECE "no enhanced connection establishment: nothing but RoCE v2 to agree on"

int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return vl_result(vl_why(-EOPNOTSUPP, NO_ECE));
}

int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return vl_result(vl_why(-EOPNOTSUPP, NO_ECE));
}

/* 0: nothing is promised. */
int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* A request that names the program's address handle or window: a copy names ours. It would save
 * registers for all others. */
static __attribute__((noinline)) int
post_copies(struct vl_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr != NULL; wr = wr->next) {
		struct rl_send_wr copy, *failed;
		int rc;

		memcpy(&copy, wr, offsetof(struct rl_send_wr, bind_mw));
		copy.next = NULL;
		if (qp->pub.qp_base.qp_type == IBV_QPT_UD)
			copy.wr.ud.ah =
				wr->wr.ud.ah != NULL ? ((struct vl_ah *)wr->wr.ud.ah)->rl : NULL;
		else if (wr->opcode == IBV_WR_BIND_MW)
			vl_bind_to(wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info, &copy);
		rc = rl_post_send(qp->rl, &copy, &failed);
		if (rc != 0) {
			*bad = wr;
			return rc;
		}
	}
	return 0;
}

int
vl_post_send(struct ibv_qp *pub, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vl_qp *qp = (struct vl_qp *)pub;

	if (__builtin_expect(pub->qp_type == IBV_QPT_UD || vl_context_of(pub->context)->windows, 0))
		return vl_result(post_copies(qp, wr, bad));
	return vl_result(rl_post_send(
		qp->rl, (struct rl_send_wr *)(void *)wr, (struct rl_send_wr **)(void *)bad));
}

int
vl_post_recv(struct ibv_qp *pub, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return vl_result(rl_post_recv(((struct vl_qp *)pub)->rl, (struct rl_recv_wr *)(void *)wr,
		(struct rl_recv_wr **)(void *)bad));
}
