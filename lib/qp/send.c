/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's share of a modify. */
#include "invariant.h"
#include "qp.h"
#include "qp_cc.h"

/** TMR-04: shorter than a software peer can answer is not honoured; 0 stays "no timer". */
static uint8_t
honoured_timeout(const struct qp *qp)
{
	uint8_t n = qp->attr.timeout & 31;

	if (!wire_is_acked(qp->req.transport)) /* nothing is waited for */
		return 0;
	return n != 0 && n < qp->min_timeout ? qp->min_timeout : n;
}

/** The rate is that before any CNP. */
static void
restart_rate(struct qp *qp)
{
	const struct cc_params p = qp_cc(qp)->cc.p;

	qp_cc_start(qp, &p);
}

/** Nothing posted, nothing sent, the window as before any CNP (CC-06). */
static void
start_again(struct qp *qp)
{
	if (qp->sq.ring.sh != NULL)
		ring_consume_done(&qp->sq.ring, ring_consume_count(&qp->sq.ring));
	qp->sq.taken = 0;
	qp->req.window = qp->window;
	qp->flags &= ~(uint32_t)QPF_SQD_NOTIFY;
	if ((qp->flags & QPF_CC_RATE) != 0)
		restart_rate(qp);
	if (qp->send_feed != NULL) {
		qp->send_feed->posted = 0;
		qp->send_feed->completed = 0;
		qp->send_feed->resting = false;
		qp->send_feed->rest = 0;
	}
	requester_reset(&qp->req, psn(qp->attr.sq_psn));
	ASSERT(qp->req.head == qp->req.tail && !qp->req.timing);
}

void
qp_send_apply(struct qp *qp, uint32_t mask, uint8_t from, uint8_t to)
{
	struct requester *r = &qp->req;

	if ((mask & QP_ATTR_PATH_MTU) != 0)
		r->pmtu = qp->attr.path_mtu;
	if ((mask & QP_ATTR_TIMEOUT) != 0)
		requester_timeout_set(r, honoured_timeout(qp));
	/* In SQD, too: what is left of the old number would hold until the next acknowledgement. */
	if ((mask & QP_ATTR_RETRY_CNT) != 0)
		r->retry_left = r->retry_cnt = qp->attr.retry_cnt & 7;
	if ((mask & QP_ATTR_RNR_RETRY) != 0)
		r->rnr_left = r->rnr_retry = qp->attr.rnr_retry & 7;
	if ((mask & QP_ATTR_MAX_QP_RD_ATOMIC) != 0)
		r->max_rd_atomic = qp->attr.max_rd_atomic;
	/* QP-08: the first PSN sent is sq_psn. */
	if (from == QPS_SQE && to == QPS_RTS)
		requester_resume(r);
	if (to == QPS_RESET || (from == QPS_RTR && to == QPS_RTS))
		start_again(qp);
}
