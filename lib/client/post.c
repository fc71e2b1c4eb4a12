/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests into the rings. What can be known here is refused here (CQ-09). */
#include <errno.h>
#include <string.h>

#include <arpa/inet.h>

#include "client_priv.h"
#include "verbs_wr.h"

_Static_assert(sizeof(struct rl_sge) == sizeof(struct ring_sge) &&
		       offsetof(struct rl_sge, lkey) == offsetof(struct ring_sge, lkey),
	"an SGE is copied as it is");

static uint64_t
bytes_of(const struct rl_sge *sge, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += sge[i].length;
	return sum;
}

/* Not inlined: the good path does not come here. @return -EINVAL. */
static __attribute__((noinline)) int
refused(const struct qp *qp, const struct rl_send_wr *wr, uint64_t bytes, enum verbs_wr_fault fault)
{
	switch (fault) {
	case VERBS_WR_NO_SERVICE:
		return client_fail(EINVAL, "opcode %d: a %s QP has no such operation",
			(int)wr->opcode, verbs_qp_type_name(qp->pub.qp_type));
	case VERBS_WR_SGES:
		return client_fail(EINVAL, "%d SGEs, and max_send_sge is %u", wr->num_sge,
			qp->cap.max_send_sge);
	case VERBS_WR_NO_LIST:
		return client_fail(EINVAL, "opcode %d has no sg_list", (int)wr->opcode);
	case VERBS_WR_NOT_INLINE:
		return client_fail(EINVAL, "opcode %d cannot be inline", (int)wr->opcode);
	case VERBS_WR_INLINE_LENGTH:
		return client_fail(EINVAL, "%llu bytes inline, and max_inline_data is %u",
			(unsigned long long)bytes, qp->cap.max_inline_data);
	case VERBS_WR_LENGTH:
		return client_fail(EINVAL,
			"a message of %llu bytes, and at most %u are sent in one",
			(unsigned long long)bytes, atomic_load(&qp->longest));
	case VERBS_WR_ATOMIC_SHORT:
	case VERBS_WR_ATOMIC_LONG:
		return client_fail(
			EINVAL, "an ATOMIC needs 8 bytes in its list, no more and no less");
	default:
		return client_fail(EINVAL, "opcode %d does not exist", (int)wr->opcode);
	}
}

/* Of a UD or an XRC QP: does it say where to? @return 0 or -errno. */
static __attribute__((noinline)) int
check_address(const struct qp *qp, const struct rl_send_wr *wr)
{
	if (qp->pub.qp_type == RL_QPT_XRC_SEND)
		return wr->qp_type.xrc.remote_srqn - 1 < 0xffffff
			       ? 0
			       : client_fail(EINVAL,
					 "qp_type.xrc.remote_srqn %u: must be the number of the "
					 "peer's SRQ, from 1 to 0xffffff",
					 wr->qp_type.xrc.remote_srqn);
	if (wr->wr.ud.ah == NULL)
		return client_fail(EINVAL, "a UD QP's requests need wr.ud.ah: rl_create_ah()");
	if (wr->wr.ud.ah->pd != qp->pub.pd)
		return client_fail(EINVAL, "wr.ud.ah is of another protection domain than the QP");
	return 0;
}

static uint32_t
feth_of(const struct rl_send_wr *wr)
{
	return wr->wr.flush.type | (uint32_t)wr->wr.flush.level << 4;
}

/* @return 0 with the sum of the SGEs, or -errno. In line: a call cost 6 cycles of 24. */
static ALWAYS_INLINE int
check_send(const struct qp *qp, const struct rl_send_wr *wr, uint64_t *bytes)
{
	/* What max_rd_atomic is the dataplane knows. */
	const struct verbs_wr_limits limits = { qp->cap.max_send_sge, qp->cap.max_inline_data,
		UINT32_MAX, qp->pub.qp_type,
		atomic_load_explicit(&qp->longest, memory_order_relaxed) };
	const uint32_t flags = wr->send_flags, n = (uint32_t)wr->num_sge;
	const bool listed = (flags & SEND_INLINE) == 0 || wr->num_sge < 0;
	enum verbs_wr_fault fault = verbs_wr_form(&limits, wr->opcode, flags, listed ? n : 0);

	*bytes = 0;
	if (UNLIKELY(fault == VERBS_WR_NO_OPCODE && wr->opcode == RL_WR_REG_MR)) {
		if (wr->reg_mr.mr == NULL || wr->reg_mr.of == NULL ||
			!((const struct mr *)wr->reg_mr.mr)->fast)
			return client_fail(EINVAL, "reg_mr needs `mr`, of rl_alloc_mr(), and `of`");
		fault = verbs_wr_form(&limits, RL_WR_BIND_MW, flags, listed ? n : 0);
	}
	if (UNLIKELY(fault == VERBS_WR_GOOD && wr->opcode == RL_WR_BIND_MW) &&
		wr->bind_mw.mw == NULL)
		return client_fail(EINVAL, "bind_mw.mw is missing");
	if (UNLIKELY(fault == VERBS_WR_GOOD && wr->opcode == RL_WR_FLUSH) &&
		!verbs_flush_exists(feth_of(wr)))
		return client_fail(EINVAL, "wr.flush: a type is missing, or of no kind");
	if (LIKELY(fault == VERBS_WR_GOOD)) {
		*bytes = UNLIKELY(wr->opcode == RL_WR_FLUSH) ? wr->wr.flush.length
							     : bytes_of(wr->sg_list, n);
		fault = verbs_wr_length(&limits, wr->opcode, flags, *bytes);
	}
	if (UNLIKELY(fault != VERBS_WR_GOOD))
		return refused(qp, wr, *bytes, fault);
	return UNLIKELY(qp->pub.qp_type >= RL_QPT_UD) ? check_address(qp, wr) : 0;
}

static void
put_inline(uint8_t *to, const struct rl_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length == 0)
			continue;
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static __attribute__((noinline)) void
put_bind(struct ring_send_wqe *w, const struct rl_send_wr *wr)
{
	const struct rl_mw_bind_info *b = &wr->bind_mw.bind_info;

	w->rkey = wr->bind_mw.mw->rkey;
	w->imm = wr->bind_mw.rkey;
	w->remote_addr = b->addr;
	w->compare_add = b->length;
	w->swap = RING_BIND(b->mr != NULL ? b->mr->lkey : 0, b->mw_access_flags & UINT16_MAX);
}

/* To the dataplane it is a bind; the index of the key says of what. */
static __attribute__((noinline)) void
put_register(struct ring_send_wqe *w, const struct rl_send_wr *wr)
{
	struct rl_mr *mr = wr->reg_mr.mr;

	w->rkey = mr->rkey;
	w->imm = wr->reg_mr.key;
	w->remote_addr = wr->reg_mr.addr;
	w->compare_add = wr->reg_mr.length;
	w->swap = RING_BIND(wr->reg_mr.of->lkey, wr->reg_mr.access & UINT16_MAX);
	mr->lkey = mr->rkey = wr->reg_mr.key;
	mr->addr = (wr->reg_mr.access & RL_ACCESS_ZERO_BASED) != 0
			   ? NULL
			   : (void *)(uintptr_t)wr->reg_mr.addr;
	mr->length = wr->reg_mr.length;
}

/* Field by field where it is: a copy of the whole would wait for the stores of its parts. */
static void
fill(struct ring_send_wqe *w, const struct rl_send_wr *wr, uint64_t bytes, enum rl_qp_type type)
{
	const uint8_t opcode = (uint8_t)wr->opcode;
	const bool has_inv = verbs_wr_has(opcode, WR_HAS_INV);
	const bool is_inline = (wr->send_flags & RL_SEND_INLINE) != 0;

	w->wr_id = wr->wr_id;
	w->remote_addr = wr->wr.rdma.remote_addr;
	w->compare_add = 0;
	w->swap = 0;
	w->rkey = wr->wr.rdma.rkey;
	w->imm = has_inv ? wr->invalidate_rkey : ntohl(wr->imm_data);
	w->num_sge = is_inline ? 0 : (uint32_t)wr->num_sge;
	w->inline_len = is_inline ? (uint32_t)bytes : 0;
	w->opcode = opcode;
	w->flags = (uint8_t)wr->send_flags;
	w->xrc_srqn = UNLIKELY(type == RL_QPT_XRC_SEND) ? wr->qp_type.xrc.remote_srqn : 0;
	if (UNLIKELY(type == RL_QPT_UD)) {
		w->remote_addr = ring_send_to(wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		w->rkey = ((const struct ah *)wr->wr.ud.ah)->key;
	} else if (verbs_wr_is_atomic(opcode)) {
		w->remote_addr = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->compare_add = wr->wr.atomic.compare_add;
		w->swap = wr->wr.atomic.swap;
	} else if (UNLIKELY(opcode == RL_WR_FLUSH)) {
		w->remote_addr = wr->wr.flush.remote_addr;
		w->rkey = wr->wr.flush.rkey;
		w->compare_add = wr->wr.flush.length;
		w->swap = feth_of(wr);
	} else if (UNLIKELY(verbs_wr_has(opcode, WR_HAS_BIND))) {
		(wr->opcode == RL_WR_REG_MR ? put_register : put_bind)(w, wr);
	}
	if (is_inline)
		put_inline((uint8_t *)w->sge, wr);
	else if (wr->num_sge > 0) /* none: the list may be NULL */
		memcpy(w->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(w->sge[0]));
}

/* Tell the QP's worker, unless it has yet to look. */
static int
ring_doorbell(struct qp *qp, struct ring *r, uint32_t which)
{
	struct context *ctx = context_of(qp->pub.context);
	const uint32_t worker = atomic_load_explicit(&qp->worker, memory_order_relaxed);

	if (!ring_bell_is_due(r) || worker >= ctx->workers)
		return 0;
	if (ring_bells_put(&ctx->bells[worker], qp->pub.qp_num | which) != 0)
		return client_lost(ctx)
			       ? client_no_dataplane()
			       : client_fail(EIO, "the dataplane does not answer its doorbell");
	if (ctx->presence != NULL && ring_presence_is_asleep(ctx->presence, worker))
		client_wake(ctx);
	return 0;
}

/* A free entry, or NULL: the completions of all are still to come, or to be polled. */
static inline void *
slot(struct ring *r, const _Atomic uint32_t *done, uint32_t limit)
{
	if (UNLIKELY(r->prod - atomic_load_explicit(done, memory_order_acquire) >= limit))
		return NULL;
	return ring_produce_slot(r, limit);
}

/* Would all of them be taken? @return 0, or -errno. */
static __attribute__((noinline, cold)) int
check_all(const struct qp *qp, const struct rl_send_wr *wr)
{
	const uint32_t done = atomic_load_explicit(&qp->sq_done, memory_order_acquire);
	const uint32_t room = qp->cap.max_send_wr - (qp->sq.prod - done);
	uint64_t bytes;

	for (uint32_t n = 0; wr != NULL; wr = wr->next) {
		const int rc = check_send(qp, wr, &bytes);

		if (rc != 0)
			return rc;
		if (n++ == room)
			return -ENOMEM;
	}
	return 0;
}

static __attribute__((noinline)) int
post_send(struct rl_qp *pub, struct rl_send_wr *wr, struct rl_send_wr **bad, bool whole)
{
	struct qp *qp = qp_of(pub);
	struct context *ctx = context_of(pub->context);
	uint32_t posted = 0;
	int rc = 0;

	if (client_gone(ctx)) {
		if (bad != NULL)
			*bad = wr;
		return client_no_dataplane();
	}
	if (UNLIKELY(!verbs_wr_may_post(atomic_load_explicit(&qp->state, memory_order_relaxed)) ||
		     qp->sq.sh == NULL)) {
		if (bad != NULL)
			*bad = wr;
		return client_fail(EINVAL, "QP %u is in %s: send requests need RTS, and a queue",
			pub->qp_num, rl_qp_state_str(pub->state));
	}
	spin_lock(&qp->sq_lock);
	if (whole && (rc = check_all(qp, wr)) != 0)
		wr = NULL;
	for (; wr != NULL; wr = wr->next) {
		struct ring_send_wqe *wqe;
		uint64_t bytes = 0;

		rc = check_send(qp, wr, &bytes);
		if (UNLIKELY(rc != 0))
			break;
		wqe = slot(&qp->sq, &qp->sq_done, qp->cap.max_send_wr);
		if (UNLIKELY(wqe == NULL)) {
			rc = -ENOMEM;
			break;
		}
		fill(wqe, wr, bytes, pub->qp_type);
		qp->signaled[qp->sq.prod & qp->sq.mask] =
			qp->sig_all || (wr->send_flags & RL_SEND_SIGNALED) != 0;
		ring_produce_commit(&qp->sq);
		posted++;
	}
	spin_unlock(&qp->sq_lock);
	if (UNLIKELY(rc != 0) && bad != NULL)
		*bad = wr;
	if (UNLIKELY(rc == -ENOMEM) && client_lost(ctx))
		rc = client_no_dataplane();
	else if (UNLIKELY(rc == -ENOMEM))
		client_fail(
			ENOMEM, "the send queue is full: max_send_wr is %u", qp->cap.max_send_wr);
	if (posted != 0) {
		const int rang = ring_doorbell(qp, &qp->sq, 0);

		rc = rc != 0 ? rc : rang;
	}
	return rc;
}

int
rl_post_send(struct rl_qp *pub, struct rl_send_wr *wr, struct rl_send_wr **bad)
{
	return post_send(pub, wr, bad, false);
}

int
rl_post_send_all(struct rl_qp *pub, struct rl_send_wr *wr)
{
	return post_send(pub, wr, NULL, true);
}

/*
 * QP-13, FLOW-07: a worker that flushes, or has told the peer that no receive is left, either sees
 * what was posted, or we see here that it asks.
 */
static int
tell_if_asked(struct qp *qp)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (LIKELY(atomic_load_explicit(&qp->rq.sh->alert, memory_order_relaxed) == 0))
		return 0;
	return ring_doorbell(qp, &qp->rq, RING_BELL_RECV);
}

/* A queue that receives are posted to, locked. */
struct recv_queue {
	struct ring *ring;
	const _Atomic uint32_t *done; /* see slot(); NULL: an entry that is taken leaves a place */
	uint32_t max_wr;
	uint32_t max_sge;
};

/* @return 0, or -errno with *wr at the request that was refused; *posted counts in any case. */
static inline int
put_receives(const struct recv_queue *q, struct rl_recv_wr **list, uint32_t *posted)
{
	struct rl_recv_wr *wr;

	for (wr = *list; wr != NULL; wr = wr->next) {
		struct ring_recv_wqe *wqe;

		*list = wr;
		if (UNLIKELY(wr->num_sge < 0 || (uint32_t)wr->num_sge > q->max_sge))
			return -EINVAL;
		wqe = q->done != NULL ? slot(q->ring, q->done, q->max_wr)
				      : ring_produce_slot(q->ring, q->max_wr);
		if (UNLIKELY(wqe == NULL))
			return -ENOMEM;
		ring_recv_fill(wqe, wr->wr_id, wr->sg_list, (uint32_t)wr->num_sge);
		ring_produce_commit(q->ring);
		(*posted)++;
	}
	return 0;
}

int
rl_post_recv(struct rl_qp *pub, struct rl_recv_wr *wr, struct rl_recv_wr **bad)
{
	struct qp *qp = qp_of(pub);
	const struct recv_queue q = { .ring = &qp->rq,
		.done = &qp->rq_done,
		.max_wr = qp->cap.max_recv_wr,
		.max_sge = qp->cap.max_recv_sge };
	struct context *ctx = context_of(pub->context);
	uint32_t posted = 0;
	int rc;

	if (client_gone(ctx)) {
		if (bad != NULL)
			*bad = wr;
		return client_no_dataplane();
	}
	if (UNLIKELY(atomic_load_explicit(&qp->state, memory_order_relaxed) == RL_QPS_RESET ||
		     qp->rq.sh == NULL)) {
		if (bad != NULL)
			*bad = wr;
		return client_fail(EINVAL,
			qp->rq.sh == NULL
				? "QP %u has no receive queue of its own: use rl_post_srq_recv()"
				: "QP %u is in RESET",
			pub->qp_num);
	}
	spin_lock(&qp->rq_lock);
	rc = put_receives(&q, &wr, &posted);
	spin_unlock(&qp->rq_lock);
	if (UNLIKELY(rc != 0)) {
		if (bad != NULL)
			*bad = wr;
		if (client_lost(ctx))
			rc = client_no_dataplane();
		else
			client_fail(-rc,
				rc == -ENOMEM ? "the receive queue is full: max_recv_wr is %u"
					      : "too many SGEs: max_recv_sge is %u",
				rc == -ENOMEM ? qp->cap.max_recv_wr : qp->cap.max_recv_sge);
	}
	if (posted != 0) {
		const int rang = tell_if_asked(qp);

		rc = rc != 0 ? rc : rang;
	}
	return rc;
}

/* No bell: a QP looks when a message for it comes. */
int
rl_post_srq_recv(struct rl_srq *pub, struct rl_recv_wr *wr, struct rl_recv_wr **bad)
{
	struct srq *srq = srq_of(pub);
	struct context *ctx = context_of(pub->context);
	struct recv_queue q = { .ring = &srq->ring };
	uint32_t posted = 0;
	bool dead;
	int rc;

	if (client_gone(ctx)) {
		if (bad != NULL)
			*bad = wr;
		return client_no_dataplane();
	}
	spin_lock(&srq->lock);
	q.max_wr = srq->max_wr;
	q.max_sge = srq->max_sge;
	dead = atomic_load_explicit(&srq->ring.sh->alert, memory_order_acquire) != 0;
	rc = UNLIKELY(dead) ? -EINVAL : put_receives(&q, &wr, &posted);
	spin_unlock(&srq->lock);
	if (LIKELY(rc == 0))
		return 0;
	if (bad != NULL)
		*bad = wr;
	if (client_lost(ctx))
		return client_no_dataplane();
	if (dead)
		return client_fail(EINVAL,
			"the shared receive queue is in error (RL_EVENT_SRQ_ERR): it gives nothing "
			"more, make another one");
	return client_fail(-rc,
		rc == -ENOMEM ? "the shared receive queue is full: max_wr is %u"
			      : "too many SGEs: max_sge is %u",
		rc == -ENOMEM ? q.max_wr : q.max_sge);
}
