/* SPDX-License-Identifier: BSD-3-Clause */
/* Posted work of a QP in ERR: completed with WR_FLUSH_ERR, in posting order (CQ-02, QP-12). */
#include "count.h"
#include "shared_rq.h"
#include "verdict.h"

uint8_t
pipeline_flush_status(struct worker *w, uint8_t queue, uint16_t index)
{
	if (LIKELY(w->failing.queue != queue) || w->failing.taken)
		return WC_WR_FLUSH_ERR;
	/* Sends fail in order: the oldest is the one. */
	if (queue == AEQ_RQ && w->failing.index != index)
		return WC_WR_FLUSH_ERR;
	w->failing.taken = true;
	return w->failing.status;
}

static void
flush_one(struct worker *w, struct qp *qp, uint64_t wr_id, uint32_t index)
{
	const struct ring_completion c = {
		.wr_id = wr_id,
		.status = pipeline_flush_status(w, AEQ_RQ, (uint16_t)index),
		.opcode = WC_RECV,
		.solicited = true,
		.vendor_err = qp->fatal,
	};

	stats_inc(&w->stats, STAT_resp_cqe_flush_error);
	qp_count(w, qp, STAT_resp_cqe_flush_error, 1);
	pipeline_cq_add(w, qp, qp->recv_cq, &c);
}

void
pipeline_flush_receives(struct worker *w, struct qp *qp)
{
	uint32_t n;

	/* The WQE of a SEND that will never end is the oldest one. */
	if (qp->active != NULL) {
		const struct ring_recv_copy *a = qp->active;
		uint32_t index = (qp->flags & QPF_SRQ) != 0 ? ring_srq_slot(&qp->srq->ring, a)
							    : (qp->rq.cons - 1) & qp->rq.mask;

		qp->active = NULL;
		if ((qp->flags & QPF_RECV_FEED) == 0)
			flush_one(w, qp, a->wr_id, index);
	}
	qp->resp.wqe_active = false;
	qp->resp.open = OPEN_NONE;

	/* A client that posts from here on either is seen below, or sees this and rings (QP-13). */
	atomic_store_explicit(&qp->rq.sh->dead, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	/* No more than were posted when this began: a host that goes on posting cannot keep us. */
	n = ring_consume_count(&qp->rq);
	for (uint32_t i = 0; i < n; i++) {
		const struct ring_recv_wqe *wqe = ring_consume_peek(&qp->rq, i);

		flush_one(w, qp, wqe->wr_id, (qp->rq.cons + i) & qp->rq.mask);
	}
	ring_consume_done(&qp->rq, n);
	if (UNLIKELY((qp->flags & (QPF_SRQ | QPF_LAST_WQE)) == QPF_SRQ))
		pipeline_srq_last_wqe(w, qp);
}
