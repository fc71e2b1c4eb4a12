/* SPDX-License-Identifier: BSD-3-Clause */
/* Posted work of a QP in ERR, the sends of one in SQE: WR_FLUSH_ERR, in posting order (CQ-02). */
#include "flush.h"

#include "count.h"
#include "kept.h"
#include "sending.h"
#include "shared_rq.h"
#include "shares.h"
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
flush_send(struct worker *w, struct qp *qp, uint64_t wr_id, uint8_t opcode)
{
	const struct ring_completion c = { .wr_id = wr_id,
		.status = pipeline_flush_status(w, AEQ_SQ, 0),
		.opcode = verbs_wc_opcode(opcode),
		.vendor_err = qp->fatal };

	stats_inc(&w->stats, STAT_req_cqe_flush_error);
	qp_count(w, qp, STAT_req_cqe_flush_error, 1);
	pipeline_cq_add(w, qp, qp->send_cq, &c);
}

static void
flush_receive(struct worker *w, struct qp *qp, uint64_t wr_id, uint32_t index)
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

/* ---- some of each queue ---------------------------------------------------------------------- */

/**
 * Posted when the flush began, or when its host rang last, and not flushed yet: a host that goes on
 * posting cannot keep us. The ring's own view has it.
 */
static uint32_t
posted(const struct ring *r)
{
	return r->sh != NULL ? r->prod - r->cons : 0;
}

/** The oldest of them, at most so many; copies that were made stand for their entries. */
static uint32_t
some_sends(struct worker *w, struct qp *qp, uint32_t most)
{
	struct qp_sendq *q = &qp->sq;
	const uint32_t n = RTE_MIN(posted(&q->ring), most);
	const uint32_t taken = q->taken, copied = RTE_MIN(taken, n), first = qp->req.tail - taken;

	ASSERT(qp_state_of(qp) == QPS_ERR || qp_state_of(qp) == QPS_SQE);
	for (uint32_t i = 0; i < copied; i++) {
		const struct requester_wr *wr = &qp->req.wr[(first + i) & qp->req.wr_mask];

		flush_send(w, qp, wr->wr_id, wr->opcode);
	}
	for (uint32_t i = copied; i < n; i++) {
		const struct ring_send_wqe *wqe = ring_consume_peek(&q->ring, i);

		flush_send(w, qp, wqe->wr_id, wqe->opcode);
	}
	q->taken -= copied;
	if (n != 0)
		ring_consume_done(&q->ring, n);
	return n;
}

static uint32_t
some_receives(struct worker *w, struct qp *qp, uint32_t most)
{
	const uint32_t n = RTE_MIN(posted(&qp->rq), most);

	for (uint32_t i = 0; i < n; i++) {
		const struct ring_recv_wqe *wqe = ring_consume_peek(&qp->rq, i);

		flush_receive(w, qp, wqe->wr_id, (qp->rq.cons + i) & qp->rq.mask);
	}
	if (n != 0)
		ring_consume_done(&qp->rq, n);
	return n;
}

/** In SQE the receive queue lives (QP-11). */
static bool
is_left(const struct qp *qp)
{
	return posted(&qp->sq.ring) != 0 || (qp_state_of(qp) == QPS_ERR && posted(&qp->rq) != 0);
}

/* ---- those in line --------------------------------------------------------------------------- */

/** Such a QP sends nothing: it hangs on the line where it would hang among the senders. */
static void
line_up(struct worker *w, struct qp *qp)
{
	struct qp_share *s = share_of(w, qp);

	ASSERT((qp->flags & (QPF_SENDING | QPF_FLUSHING)) == 0);
	qp->flags |= QPF_FLUSHING;
	if (TAILQ_EMPTY(&s->flushing))
		TAILQ_INSERT_TAIL(&w->flushing, s, flush_turn);
	TAILQ_INSERT_TAIL(&s->flushing, qp, sq.sending);
}

void
pipeline_flush_leave(struct worker *w, struct qp *qp)
{
	struct qp_share *s = share_of(w, qp);

	if (!pipeline_is_flushing(qp))
		return;
	qp->flags &= ~(uint32_t)QPF_FLUSHING;
	TAILQ_REMOVE(&s->flushing, qp, sq.sending);
	if (TAILQ_EMPTY(&s->flushing))
		TAILQ_REMOVE(&w->flushing, s, flush_turn);
}

void
pipeline_flush_resume(struct worker *w, struct qp *qp)
{
	const uint8_t state = qp_state_of(qp);

	if ((state == QPS_ERR || state == QPS_SQE) && is_left(qp))
		line_up(w, qp);
}

/** Nobody overtakes those in line, but for an abnormal event: its status is told now. */
static bool
may_begin(const struct worker *w, const struct qp *qp)
{
	return !pipeline_is_flushing(qp) && (TAILQ_EMPTY(&w->flushing) || w->failing.queue != 0);
}

/** @param left whether there is more of what the caller flushes. */
static void
flushed(struct worker *w, struct qp *qp, uint32_t n, bool left)
{
	struct qp_share *s = share_of(w, qp);

	w->flush_left -= n;
	if (n != 0 && !s->listed && w->shares_n != 0)
		pipeline_share_enter(w, s); /* beside others it pays */
	share_charge(w, s, (int64_t)n * COST_FLUSH);
	if (UNLIKELY(left) && !pipeline_is_flushing(qp))
		line_up(w, qp);
}

/** The client whose turn it is: while others send, one that has credit for it. NULL: none. */
static struct qp_share *
next_share(struct worker *w)
{
	struct qp_share *s;

	TAILQ_FOREACH (s, &w->flushing, flush_turn)
		if (w->senders_n == 0 || w->alone != NULL || !s->listed || s->credit > 0)
			return s;
	return NULL;
}

uint32_t
pipeline_flush_turn(struct worker *w)
{
	struct qp_share *s;
	uint32_t done = 0;

	while (w->flush_left != 0 && (s = next_share(w)) != NULL) {
		struct qp *qp = TAILQ_FIRST(&s->flushing);
		const uint32_t most = RTE_MIN(w->flush_left, (uint32_t)FLUSH_CLIENT);
		uint32_t n = some_sends(w, qp, most);

		if (qp_state_of(qp) == QPS_ERR)
			n += some_receives(w, qp, most - n);
		done += n;
		/* It stands behind the others then, and so does its client. */
		pipeline_flush_leave(w, qp);
		if (!TAILQ_EMPTY(&s->flushing)) {
			TAILQ_REMOVE(&w->flushing, s, flush_turn);
			TAILQ_INSERT_TAIL(&w->flushing, s, flush_turn);
		}
		flushed(w, qp, n, is_left(qp));
	}
	return done;
}

/* ---- the beginning --------------------------------------------------------------------------- */

void
pipeline_flush_sends(struct worker *w, struct qp *qp)
{
	struct requester_verdict ignored;
	uint32_t n;

	pipeline_sends_stop(w, qp);
	requester_context_fault(&qp->req, &ignored); /* it is dead from here on */
	if (qp->sq.ring.sh == NULL)
		return;
	ring_consume_count(&qp->sq.ring);
	n = may_begin(w, qp) ? some_sends(w, qp, w->flush_left) : 0;
	flushed(w, qp, n, posted(&qp->sq.ring) != 0);
}

void
pipeline_flush_receives(struct worker *w, struct qp *qp)
{
	uint32_t n;

	if (UNLIKELY((qp->flags & QPF_XRC) != 0) && qp->active != NULL)
		pipeline_srq_again(w, qp);
	pipeline_kept_forget(w, qp);
	/* The WQE of a SEND that will never end is the oldest one. */
	if (qp->active != NULL) {
		const struct ring_recv_copy *a = qp->active;
		uint32_t index = (qp->flags & QPF_SRQ) != 0 ? ring_srq_slot(&qp->srq->ring, a)
							    : (qp->rq.cons - 1) & qp->rq.mask;

		qp->active = NULL;
		if ((qp->flags & QPF_RECV_FEED) == 0)
			flush_receive(w, qp, a->wr_id, index);
	}
	qp->resp.wqe_active = false;
	qp->resp.open = OPEN_NONE;

	/* A client that posts from here on either is seen below, or sees this and rings (QP-13). */
	ring_alert(&qp->rq, true);
	ring_consume_count(&qp->rq);
	n = may_begin(w, qp) ? some_receives(w, qp, w->flush_left) : 0;
	flushed(w, qp, n, posted(&qp->rq) != 0);
	/* An XRC target is tied to no SRQ. */
	if (UNLIKELY((qp->flags & (QPF_SRQ | QPF_LAST_WQE | QPF_XRC)) == QPF_SRQ))
		pipeline_srq_last_wqe(w, qp);
}
