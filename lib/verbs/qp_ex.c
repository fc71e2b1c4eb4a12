/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_qp_ex: requests that are put together by calls, and posted as one list at the end. */
#include <stdlib.h>
#include <string.h>

#include "verbs.h"
#include "vl.h"

struct vl_builder {
	pthread_mutex_t lock; /* from wr_start() to wr_complete() or wr_abort() */
	int err;              /* the first that happened since wr_start() */
	uint32_t n;           /* requests since then */
	uint32_t sge_n;       /* their SGEs */
	uint32_t max_wr;
	uint32_t max_sge; /* of one request */
	uint32_t max_inline;
	struct rl_send_wr *wr; /* max_wr */
	struct rl_sge *sge;    /* max_wr * max_sge */
	uint8_t *bytes;        /* max_wr * max_inline: inline data must be copied at the call */
};

static struct vl_builder *
builder_of(struct ibv_qp_ex *qp)
{
	return ((struct vl_qp *)qp)->builder;
}

static void
wr_start(struct ibv_qp_ex *qp)
{
	struct vl_builder *b = builder_of(qp);

	pthread_mutex_lock(&b->lock);
	b->err = 0;
	b->n = 0;
	b->sge_n = 0;
}

static void
wr_abort(struct ibv_qp_ex *qp)
{
	pthread_mutex_unlock(&builder_of(qp)->lock);
}

static int
wr_complete(struct ibv_qp_ex *qp)
{
	struct vl_builder *b = builder_of(qp);
	int rc = b->err;

	for (uint32_t i = 1; i < b->n; i++)
		b->wr[i - 1].next = &b->wr[i];
	if (rc == 0 && b->n != 0)
		rc = -rl_post_send_all(((struct vl_qp *)qp)->rl, b->wr);
	pthread_mutex_unlock(&b->lock);
	if (rc != 0)
		errno = rc;
	return rc;
}

/* The next request, or the one that nobody will see, since something is wrong already. */
static struct rl_send_wr *
begin(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode)
{
	struct vl_builder *b = builder_of(qp);
	struct rl_send_wr *wr;

	if (b->n == b->max_wr && b->err == 0)
		b->err = ENOMEM;
	wr = &b->wr[b->n < b->max_wr ? b->n++ : b->max_wr];
	*wr = (struct rl_send_wr){ .wr_id = qp->wr_id,
		.sg_list = &b->sge[b->sge_n],
		.opcode = (enum rl_wr_opcode)opcode,
		.send_flags = qp->wr_flags };
	return wr;
}

/* The one that was begun last. */
static struct rl_send_wr *
current(struct vl_builder *b)
{
	if (b->n == 0 && b->err == 0)
		b->err = EINVAL;
	return b->err == 0 ? &b->wr[b->n - 1] : NULL;
}

static void
wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, IBV_WR_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	begin(qp, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void
wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void
wr_bind_mw(
	struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	vl_bind_to(mw, rkey, info, begin(qp, IBV_WR_BIND_MW));
}

static void
wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void
remote(struct rl_send_wr *wr, uint32_t rkey, uint64_t addr)
{
	wr->wr.rdma.remote_addr = addr;
	wr->wr.rdma.rkey = rkey;
}

static void
wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	remote(begin(qp, IBV_WR_RDMA_WRITE), rkey, addr);
}

static void
wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct rl_send_wr *wr = begin(qp, IBV_WR_RDMA_WRITE_WITH_IMM);

	remote(wr, rkey, addr);
	wr->imm_data = imm;
}

static void
wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	remote(begin(qp, IBV_WR_RDMA_READ), rkey, addr);
}

static void
atomic(struct rl_send_wr *wr, uint32_t rkey, uint64_t addr, uint64_t compare_add, uint64_t swap)
{
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
	wr->wr.atomic.rkey = rkey;
}

static void
wr_atomic_cmp_swp(
	struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	atomic(begin(qp, IBV_WR_ATOMIC_CMP_AND_SWP), rkey, addr, compare, swap);
}

static void
wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
	atomic(begin(qp, IBV_WR_ATOMIC_FETCH_AND_ADD), rkey, addr, add, 0);
}

/* ---- data of the request that was begun ------------------------------------------------------ */

static void
wr_set_sge_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *list)
{
	struct vl_builder *b = builder_of(qp);
	struct rl_send_wr *wr = current(b);

	if (wr == NULL)
		return;
	if (n > b->max_sge) {
		b->err = EINVAL;
		return;
	}
	memcpy(wr->sg_list, list, n * sizeof(*list));
	wr->num_sge = (int)n;
	b->sge_n += (uint32_t)n;
}

static void
wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(qp, 1, &sge);
}

static void
wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *list)
{
	struct vl_builder *b = builder_of(qp);
	struct rl_send_wr *wr = current(b);
	uint8_t *to;
	size_t sum = 0;

	if (wr == NULL)
		return;
	to = b->bytes + (size_t)(b->n - 1) * b->max_inline;
	for (size_t i = 0; i < n; i++) {
		if (list[i].length > b->max_inline - sum) {
			b->err = EINVAL;
			return;
		}
		if (list[i].length != 0)
			memcpy(to + sum, list[i].addr, list[i].length);
		sum += list[i].length;
	}
	wr->send_flags |= RL_SEND_INLINE;
	if (sum == 0)
		return;
	wr->sg_list[0] =
		(struct rl_sge){ .addr = (uint64_t)(uintptr_t)to, .length = (uint32_t)sum };
	wr->num_sge = 1;
	b->sge_n++;
}

static void
wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(qp, 1, &buf);
}

/* Its 8 bytes are not named by an SGE: they go with the request. */
static void
wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *word)
{
	const struct ibv_data_buf buf = { .addr = (void *)(uintptr_t)word, .length = 8 };

	remote(begin(qp, IBV_WR_ATOMIC_WRITE), rkey, addr);
	wr_set_inline_data_list(qp, 1, &buf);
}

static void
wr_flush(
	struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type, uint8_t level)
{
	begin(qp, (enum ibv_wr_opcode)VL_WR_FLUSH)->wr.flush =
		(struct rl_wr_flush){ addr, len, rkey, type, level };
}

static void
wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct rl_send_wr *wr = current(builder_of(qp));

	if (wr == NULL)
		return;
	wr->wr.ud.ah = ((struct vl_ah *)ah)->rl;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
}

static void
wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t srqn)
{
	struct rl_send_wr *wr = current(builder_of(qp));

	if (wr != NULL)
		wr->qp_type.xrc.remote_srqn = srqn;
}

/* ---- made and freed -------------------------------------------------------------------------- */

static void
put_calls(struct vl_qp *v)
{
	struct ibv_qp_ex *qp = &v->pub;

	v->later.wr_flush = wr_flush;
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_atomic_write = wr_atomic_write;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_xrc_srqn = wr_set_xrc_srqn;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
}

/* What queue pairs of this type may be given, as send_ops_flags. */
static uint64_t
ops_of(enum ibv_qp_type type)
{
#define IBV_QP_EX_WITH_FLUSH VL_QP_EX_WITH_FLUSH
#define WR_OPCODE(value, name, completion, has, on) \
	| (((on) & (1 << type)) != 0 ? (uint64_t)IBV_QP_EX_WITH_##name : 0)
	return 0
#include "tables/wr_opcodes.def"
		;
#undef WR_OPCODE
#undef IBV_QP_EX_WITH_FLUSH
}

int
vl_builder_init(
	struct vl_qp *qp, const struct ibv_qp_init_attr_ex *init, const struct rl_qp_cap *cap)
{
	struct vl_builder *b;

	if ((init->send_ops_flags & ~ops_of(init->qp_type)) != 0)
		return vl_why(EOPNOTSUPP, "send_ops_flags has an operation that the type has not");
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return vl_no_memory();
	qp->builder = b;
	b->max_wr = cap->max_send_wr;
	b->max_sge = cap->max_send_sge;
	b->max_inline = cap->max_inline_data;
	/* One more of each: what is begun beyond the end goes there. */
	b->wr = calloc((size_t)b->max_wr + 1, sizeof(b->wr[0]));
	b->sge = calloc(((size_t)b->max_wr + 1) * (b->max_sge + 1), sizeof(b->sge[0]));
	b->bytes = calloc((size_t)b->max_wr + 1, b->max_inline + 1);
	if (b->wr == NULL || b->sge == NULL || b->bytes == NULL) {
		vl_builder_free(qp);
		return vl_no_memory();
	}
	pthread_mutex_init(&b->lock, NULL);
	put_calls(qp);
	return 0;
}

void
vl_builder_free(struct vl_qp *qp)
{
	struct vl_builder *b = qp->builder;

	if (b == NULL)
		return;
	free(b->wr);
	free(b->sge);
	free(b->bytes);
	free(b);
	qp->builder = NULL;
}
