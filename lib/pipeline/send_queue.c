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

/** What of an entry says how the rest is to be read: each word is read once. */
struct shape {
	uint32_t num_sge;
	uint32_t inline_len;
	uint8_t opcode;
	uint8_t flags;
};

/** One entry of a list in the ring to its private place. @return its length. */
static ALWAYS_INLINE uint32_t
copy_sge(struct ring_sge *to, const struct ring_sge *from)
{
	uint64_t addr, rest;

	memcpy(&addr, &from->addr, sizeof(addr));
	memcpy(&rest, &from->length, sizeof(rest));
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(&to->addr, &addr, sizeof(addr));
	memcpy(&to->length, &rest, sizeof(rest));
	return (uint32_t)rest; /* the hosts are little-endian */
}

/**
 * What is wrong with the copy (REQ-CLS-B-05, REQ-18); keys are judged when memory is used.
 * @param sge where its entries are copied from the ring.
 */
static ALWAYS_INLINE uint8_t
judge(const struct qp_sendq *q, struct shape c, const struct ring_sge *from, struct ring_sge *sge,
	struct requester_wr *wr)
{
	uint64_t bytes;

	if (UNLIKELY(!is_known(c.opcode)))
		return WR_FAULT_MALFORMED;
	if ((c.flags & WR_INLINE) != 0) {
		if (c.opcode == WR_RDMA_READ || is_atomic(c.opcode) || c.inline_len > q->max_inline)
			return WR_FAULT_MALFORMED;
		wr->len = c.inline_len;
		return WR_FAULT_NONE;
	}
	if (UNLIKELY(c.num_sge > q->max_sge))
		return WR_FAULT_MALFORMED;
	if (LIKELY(c.num_sge == 1)) {
		bytes = copy_sge(sge, from);
	} else {
		memcpy(sge, from, c.num_sge * sizeof(*sge));
		atomic_signal_fence(memory_order_seq_cst);
		bytes = mem_sge_bytes(sge, c.num_sge);
	}
	if (UNLIKELY(bytes > MESSAGE_MAX))
		return WR_FAULT_LENGTH;
	wr->num_sge = (uint8_t)c.num_sge;
	wr->len = (uint32_t)bytes;
	if (UNLIKELY(is_atomic(c.opcode))) {
		if (bytes < ATOMIC_LEN)
			return WR_FAULT_LENGTH;
		wr->len = ATOMIC_LEN;
	}
	return WR_FAULT_NONE;
}

/* What an entry and its work request begin with is the same. */
#define SAME_BYTES offsetof(struct requester_wr, len)
_Static_assert(offsetof(struct requester_wr, remote_addr) ==
			       offsetof(struct ring_send_wqe, remote_addr) &&
		       offsetof(struct requester_wr, compare_add) ==
			       offsetof(struct ring_send_wqe, compare_add) &&
		       offsetof(struct requester_wr, swap) == offsetof(struct ring_send_wqe, swap) &&
		       offsetof(struct requester_wr, rkey) == offsetof(struct ring_send_wqe, rkey) &&
		       offsetof(struct requester_wr, imm) == offsetof(struct ring_send_wqe, imm) &&
		       offsetof(struct ring_send_wqe, num_sge) == SAME_BYTES,
	"wr_id, remote_addr, compare_add, swap, rkey, imm");

static ALWAYS_INLINE void
take_one(struct qp *qp, const struct ring_send_wqe *wqe, uint32_t position)
{
	uint32_t slot = position & qp->req.wr_mask, what;
	struct requester_wr *wr = &qp->req.wr[slot];
	struct shape c;
	uint64_t counts;
	uint16_t kind;

	memcpy(wr, wqe, SAME_BYTES);
	memcpy(&counts, &wqe->num_sge, sizeof(counts));
	memcpy(&kind, &wqe->opcode, sizeof(kind));
	/* The host may still be writing: from here on only the copies are looked at. */
	atomic_signal_fence(memory_order_seq_cst);
	c = (struct shape){ .num_sge = (uint32_t)counts,
		.inline_len = (uint32_t)(counts >> 32),
		.opcode = (uint8_t)kind,
		.flags = (uint8_t)(kind >> 8) };
	wr->len = 0;
	wr->first = wr->last = psn(0);
	wr->num_sge = 0;
	what = c.opcode | (c.flags & (WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE)) << 8;
	what |= (qp->flags & QPF_SIG_ALL) != 0 ? WR_SIGNALED << 8 : 0;
	what |= (uint32_t)judge(
			&qp->sq, c, wqe->sge, qp->sq.sges + (size_t)slot * qp->sq.max_sge, wr)
		<< 16;
	memcpy(&wr->opcode, &what, sizeof(what)); /* as requester_what() reads it */
}

void
sendq_take(const struct worker *w, struct qp *qp)
{
	struct requester *r = &qp->req;
	const uint32_t used = r->tail - r->head;
	uint32_t n = waiting(&qp->sq), room = used <= r->wr_mask ? r->wr_mask + 1 - used : 0;

	if (UNLIKELY((qp->flags & QPF_SEND_FEED) != 0)) {
		feed_take(qp, w->now);
		return;
	}
	n = n < room ? n : room;
	for (uint32_t i = 0; i < n; i++)
		take_one(qp, ring_consume_peek(&qp->sq.ring, qp->sq.taken + i), r->tail + i);
	qp->sq.taken += n;
	requester_posted(r, r->tail + n);
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
