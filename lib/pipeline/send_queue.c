/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP's send queue: entries of the ring become the worker's own work requests, which are judged
 * after they were copied; QPs with something to send are on the worker's list.
 */
#include <string.h>

#include "pipeline_priv.h"

#define MESSAGE_MAX UINT32_C(0x80000000) /* bytes (REQ-18) */
#define ATOMIC_LEN  8

/** Entries of the ring that were not copied yet; a producer's index is not believed blindly. */
static inline uint32_t
waiting(struct qp_sendq *q)
{
	uint32_t n;

	if (q->ring.sh == NULL)
		return 0;
	n = ring_consume_count(&q->ring);
	return n > q->taken && n <= q->ring.mask + 1 ? n - q->taken : 0;
}

static inline bool
is_known(uint8_t opcode)
{
	return opcode <= WR_ATOMIC_FETCH_AND_ADD || opcode == WR_SEND_WITH_INV;
}

static inline bool
is_atomic(uint8_t opcode)
{
	return opcode == WR_ATOMIC_CMP_AND_SWP || opcode == WR_ATOMIC_FETCH_AND_ADD;
}

/**
 * What is wrong with the copy (REQ-CLS-B-05, REQ-18); keys are judged when memory is used.
 * @param sge where its entries are copied from the ring.
 */
static uint8_t
judge(const struct qp_sendq *q, const struct ring_send_wqe *c, const struct ring_sge *from,
	struct ring_sge *sge, struct requester_wr *wr)
{
	uint64_t bytes;

	if (UNLIKELY(!is_known(c->opcode)))
		return WR_FAULT_MALFORMED;
	if ((c->flags & WR_INLINE) != 0) {
		if (c->opcode == WR_RDMA_READ || is_atomic(c->opcode) ||
			c->inline_len > q->max_inline)
			return WR_FAULT_MALFORMED;
		wr->len = c->inline_len;
		return WR_FAULT_NONE;
	}
	if (UNLIKELY(c->num_sge > q->max_sge))
		return WR_FAULT_MALFORMED;
	if (LIKELY(c->num_sge == 1)) {
		sge[0] = from[0];
		bytes = sge[0].length;
	} else {
		memcpy(sge, from, c->num_sge * sizeof(*sge));
		bytes = mem_sge_bytes(sge, c->num_sge);
	}
	if (UNLIKELY(bytes > MESSAGE_MAX))
		return WR_FAULT_LENGTH;
	wr->num_sge = (uint8_t)c->num_sge;
	wr->len = (uint32_t)bytes;
	if (UNLIKELY(is_atomic(c->opcode))) {
		if (bytes < ATOMIC_LEN)
			return WR_FAULT_LENGTH;
		wr->len = ATOMIC_LEN;
	}
	return WR_FAULT_NONE;
}

static void
take_one(struct qp *qp, const struct ring_send_wqe *wqe, uint32_t position)
{
	uint32_t slot = position & qp->req.wr_mask;
	struct requester_wr *wr = &qp->req.wr[slot];
	struct ring_send_wqe c;

	memcpy(&c, wqe, sizeof(c));
	/* The host may still be writing: from here on only the copy is looked at. */
	atomic_signal_fence(memory_order_seq_cst);
	*wr = (struct requester_wr){ .wr_id = c.wr_id,
		.remote_addr = c.remote_addr,
		.compare_add = c.compare_add,
		.swap = c.swap,
		.rkey = c.rkey,
		.imm = c.imm,
		.opcode = c.opcode,
		.flags = c.flags & (WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE) };
	if ((qp->flags & QPF_SIG_ALL) != 0)
		wr->flags |= WR_SIGNALED;
	wr->fault = judge(&qp->sq, &c, wqe->sge, qp->sq.sges + (size_t)slot * qp->sq.max_sge, wr);
}

void
sendq_take(const struct worker *w, struct qp *qp)
{
	struct requester *r = &qp->req;
	uint32_t n = waiting(&qp->sq);

	if (UNLIKELY((qp->flags & QPF_SEND_FEED) != 0)) {
		feed_take(qp, w->now);
		return;
	}
	while (n-- != 0 && r->tail - r->head <= r->wr_mask) {
		take_one(qp, ring_consume_peek(&qp->sq.ring, qp->sq.taken), r->tail);
		qp->sq.taken++;
		requester_posted(r, r->tail + 1);
	}
}

void
sendq_release(struct qp *qp, uint32_t n)
{
	if (UNLIKELY(is_fed(qp))) {
		qp->sq.feed->completed += n;
		return;
	}
	qp->sq.taken -= n;
	ring_consume_done(&qp->sq.ring, n);
}

/** Ring entry 0 is the oldest that was copied and has not completed. */
static inline uint32_t
oldest(const struct qp *qp)
{
	return qp->req.tail - qp->sq.taken;
}

const void *
sendq_inline(const struct qp *qp, uint32_t position)
{
	const struct ring_send_wqe *wqe = ring_consume_peek(&qp->sq.ring, position - oldest(qp));

	return wqe->sge;
}

/* ---- the worker's list ----------------------------------------------------------------------- */

void
send_wake(struct worker *w, struct qp *qp)
{
	if ((qp->flags & QPF_SENDING) != 0)
		return;
	qp->flags |= QPF_SENDING;
	TAILQ_INSERT_TAIL(&w->senders, qp, sq.sending);
	w->senders_n++;
}

void
send_sleep(struct worker *w, struct qp *qp)
{
	if ((qp->flags & QPF_SENDING) == 0)
		return;
	qp->flags &= ~(uint32_t)QPF_SENDING;
	TAILQ_REMOVE(&w->senders, qp, sq.sending);
	w->senders_n--;
}

void
sends_stop(struct worker *w, struct qp *qp)
{
	send_sleep(w, qp);
	wheel_cancel(&w->wheel, &qp->sq.timer); /* TMR-10 */
	qp->sq.alarm = 0;
}

/* ---- flushing -------------------------------------------------------------------------------- */

static void
flush_one(struct worker *w, struct qp *qp, uint64_t wr_id, uint8_t opcode)
{
	struct ring_cqe cqe = { .wr_id = wr_id,
		.status = flush_status(w, AEQ_SQ, 0),
		.opcode = wc_opcode_of(opcode),
		.vendor_err = qp->fatal };

	stats_inc(&w->stats, STAT_req_cqe_flush_error);
	qp_count(w, qp, STAT_req_cqe_flush_error, 1);
	cq_add_to(w, qp, qp->send_cq, &cqe);
}

void
flush_sends(struct worker *w, struct qp *qp)
{
	struct requester_verdict ignored;
	struct qp_sendq *q = &qp->sq;
	uint32_t n;

	sends_stop(w, qp);
	requester_context_fault(&qp->req, &ignored); /* it is dead from here on */
	if (q->ring.sh == NULL)
		return;
	/* No more than were posted when this began: a host that goes on posting cannot keep us. */
	n = q->taken + waiting(q);
	for (uint32_t i = 0; i < n; i++) {
		const struct ring_send_wqe *wqe = ring_consume_peek(&q->ring, i);
		const struct requester_wr *wr = &qp->req.wr[(oldest(qp) + i) & qp->req.wr_mask];

		if (i < q->taken)
			flush_one(w, qp, wr->wr_id, wr->opcode);
		else
			flush_one(w, qp, wqe->wr_id, wqe->opcode);
	}
	q->taken = 0;
	ring_consume_done(&q->ring, n);
}
