/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits for receives. A worker looks at a receive queue when a packet comes, so it would never
 * hear of receives that a peer without credit waits for. While at most one is left, it asks the
 * host, by a word of the ring, to ring the doorbell for each one that is posted. Either the host
 * sees that, or its entry is seen here: the fences on both sides leave no third way.
 */
#include "credits.h"

#include "acks.h"
#include "flush.h"
#include "qp_control.h"
#include "reply.h"
#include "report.h"
#include "verdict.h"

#define FEW 1 /* receives left, before the packet at hand has taken its own */

uint32_t
pipeline_credits_left(struct qp *qp)
{
	uint32_t n;

	if ((qp->flags & QPF_SRQ) != 0)
		return UINT32_MAX; /* SRQ-03 */
	if ((qp->flags & QPF_RECV_FEED) != 0)
		return qp->feed_buffers;
	n = ring_consume_count(&qp->rq);
	if (n <= FEW && (qp->resp.knobs & RESP_KNOB_CREDITS) != 0) {
		ring_alert(&qp->rq, true);
		n = ring_consume_count(&qp->rq);
	}
	if (n > FEW)
		ring_alert(&qp->rq, false);
	return n;
}

void
pipeline_receives_low(struct worker *w, struct qp *qp)
{
	const struct report r = { .psn = qp->resp.epsn.v,
		.event = EVENT_RQ_LIMIT_REACHED,
		.fault = VERDICT_NO_FAULT,
		.source = SOURCE_RQ };

	qp_rq_limit_set(qp, 0);
	pipeline_report_event(w, qp, &r);
}

void
pipeline_receives_posted(struct worker *w, struct qp *qp)
{
	struct responder_verdict v;

	if (qp_state_of(qp) == QPS_ERR) {
		pipeline_flush_receives(w, qp);
		return;
	}
	if (!qp_receives(qp_state_of(qp)) || (qp->resp.knobs & RESP_KNOB_CREDITS) == 0)
		return;
	if (!responder_posted(&qp->resp, pipeline_credits_left(qp), &v))
		return;
	ASSERT((qp->flags & QPF_DIRTY) == 0);
	if (qp->answers.count != 0)
		resp_answers_ack(&qp->answers, &v);
	else
		pipeline_reply_ack(w, qp, v.syndrome, v.reply_psn, v.reply_msn);
}
