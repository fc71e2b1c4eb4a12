/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP's send queue: its ring behind send_take.c, and the worker's list of QPs with work. */

#include "pace.h"
#include "send_feed.h"
#include "sending.h"
#include "shares.h"
#include "tx.h"

void
pipeline_sendq_release(struct qp *qp, uint32_t n)
{
	if (UNLIKELY(is_fed(qp))) {
		qp->send_feed->completed += n;
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
	ASSERT(qp->worker == w->index && (qp->flags & QPF_FLUSHING) == 0); /* the same links */
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
	struct qp_share *s = share_of(w, qp);

	pipeline_send_sleep(w, qp);
	if (s->last == qp) /* the next QP at this address is another one */
		s->last = NULL;
	wheel_cancel(&w->wheel, &qp->sq.timer); /* TMR-10 */
	qp->sq.alarm = 0;
	pipeline_tx_forget(w, qp);
	/* What is owed to the peer leaves all the same, at the QP's rate. */
	if (UNLIKELY((qp->flags & QPF_CC_RATE) != 0))
		pipeline_pace_answers(w, qp);
}
