/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP's send queue: its ring behind send_take.c, and the worker's list of QPs with work. */

#include "count.h"
#include "send_feed.h"
#include "sending.h"
#include "shares.h"
#include "tx.h"
#include "verdict.h"

void
pipeline_sendq_release(struct qp *qp, uint32_t n)
{
	if (UNLIKELY(is_fed(qp))) {
		qp->sq.feed->completed += n;
		return;
	}
	ASSERT(n <= qp->sq.taken);
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
pipeline_sendq_inline(const struct qp *qp, uint32_t position)
{
	const struct ring_send_wqe *wqe = ring_consume_peek(&qp->sq.ring, position - oldest(qp));

	return wqe->sge;
}

/* ---- the worker's list ----------------------------------------------------------------------- */

void
pipeline_send_wake(struct worker *w, struct qp *qp)
{
	if ((qp->flags & QPF_SENDING) != 0)
		return;
	ASSERT(qp->worker == w->index);
	qp->flags |= QPF_SENDING;
	share_add(w, share_of(w, qp), qp);
}

void
pipeline_send_sleep(struct worker *w, struct qp *qp)
{
	if ((qp->flags & QPF_SENDING) == 0)
		return;
	qp->flags &= ~(uint32_t)QPF_SENDING;
	share_remove(w, share_of(w, qp), qp);
}

void
pipeline_sends_stop(struct worker *w, struct qp *qp)
{
	pipeline_send_sleep(w, qp);
	wheel_cancel(&w->wheel, &qp->sq.timer); /* TMR-10 */
	qp->sq.alarm = 0;
	pipeline_tx_forget(w, qp);
}

/* ---- flushing -------------------------------------------------------------------------------- */

static void
flush_one(struct worker *w, struct qp *qp, uint64_t wr_id, uint8_t opcode)
{
	const struct ring_completion c = { .wr_id = wr_id,
		.status = pipeline_flush_status(w, AEQ_SQ, 0),
		.opcode = verbs_wc_opcode(opcode),
		.vendor_err = qp->fatal };

	stats_inc(&w->stats, STAT_req_cqe_flush_error);
	qp_count(w, qp, STAT_req_cqe_flush_error, 1);
	pipeline_cq_add(w, qp, qp->send_cq, &c);
}

void
pipeline_flush_sends(struct worker *w, struct qp *qp)
{
	struct requester_verdict ignored;
	struct qp_sendq *q = &qp->sq;
	uint32_t n;

	pipeline_sends_stop(w, qp);
	requester_context_fault(&qp->req, &ignored); /* it is dead from here on */
	if (q->ring.sh == NULL)
		return;
	/* No more than were posted when this began: a host that goes on posting cannot keep us. */
	n = q->taken + sendq_waiting(q);
	for (uint32_t i = 0; i < n; i++) {
		const struct ring_send_wqe *wqe = ring_consume_peek(&q->ring, i);
		const struct requester_wr *wr = &qp->req.wr[(oldest(qp) + i) & qp->req.wr_mask];

		if (i < q->taken)
			flush_one(w, qp, wr->wr_id, wr->opcode);
		else
			flush_one(w, qp, wqe->wr_id, wqe->opcode);
	}
	ASSERT(qp_state_of(qp) == QPS_ERR || qp_state_of(qp) == QPS_SQE);
	q->taken = 0;
	ring_consume_done(&q->ring, n);
}
