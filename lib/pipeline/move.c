/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP goes from one worker to another while packets come for it. The control lcore goes round:
 *
 *   PARK     to every worker but the old owner: from now on packets of the QP go to the new owner's
 *            hand-off ring, and the new owner keeps them aside
 *   RELEASE  to the old owner: nobody adds to its hand-off ring for this QP any more, so it serves
 *            what stands there, takes the QP off its lists, and sends on what it receives itself
 *   ADOPT    to the new owner: the QP is its own, and what it has kept aside comes first
 *   UNPARK   to all others
 *
 * Packets of one receive queue so are served in the order in which they arrived.
 * not hot: a message of the control lcore.
 */
#include <errno.h>

#include <rte_ring.h>

#include "answers.h"
#include "count.h"
#include "flush.h"
#include "handoff.h"
#include "intake.h"
#include "kept.h"
#include "local.h"
#include "report.h"
#include "sending.h"
#include "shares.h"
#include "stage.h"
#include "tx.h"

/** What was kept aside is a burst like any other. */
static void
replay(struct worker *w)
{
	struct move *v = &w->moving;
	uint32_t n = v->kept_n;

	ASSERT(n <= MOVE_ROOM);
	v->qp = NULL;
	v->kept_n = 0;
	for (uint32_t at = 0, some; at < n; at += some) {
		some = RTE_MIN(n - at, (uint32_t)PIPELINE_BURST);
		pipeline_handoff_take(w, &w->burst, v->kept + at, some);
		pipeline_burst_run(w, &w->burst);
	}
}

static bool
keeps_another(const struct worker *w, const struct qp *qp)
{
	return w->moving.qp != NULL && w->moving.qp != qp;
}

int
pipeline_move_park(struct worker *w, struct qp *qp, uint32_t to)
{
	if (keeps_another(w, qp))
		return -EBUSY;
	w->moving.qp = qp;
	w->moving.to = (uint8_t)to;
	return 0;
}

void
pipeline_move_unpark(struct worker *w, const struct qp *qp)
{
	if (w->moving.qp == qp)
		replay(w);
}

void
pipeline_move_keep(struct worker *w, struct rte_mbuf *m, uint8_t port)
{
	struct move *v = &w->moving;

	if (LIKELY(v->kept_n < MOVE_ROOM)) {
		v->kept[v->kept_n++] = m;
		return;
	}
	count(w, port, NULL, STAT_rx_handoff_lost);
	rte_pktmbuf_free(m); /* a group's comes behind its burst, when nobody re-uses buffers */
}

/**
 * What the QP has sent to addresses of this process comes before what its new worker sends. Packets
 * that are served make others wait there: answers, and no more than three in a row.
 * @return false: their owners have no room.
 */
static bool
locals_leave(struct worker *w)
{
	for (uint32_t out = w->wires_n; out < w->outs_n; out++) {
		while (w->tx[out].head != w->tx[out].tail) {
			if (pipeline_local_receive(w, &w->burst, out, PIPELINE_BURST) == 0)
				return false;
			if (w->burst.n != 0)
				pipeline_burst_run(w, &w->burst);
			local_over(w);
		}
	}
	return true;
}

/**
 * What other workers have handed over so far: what waits for its peer's turn came first. Of a burst
 * for an impaired port less may be left, or nothing.
 */
static void
handed_serve(struct worker *w)
{
	uint32_t left = w->conf.handoff_in != NULL ? rte_ring_count(w->conf.handoff_in) : 0;

	while (w->intake != NULL && pipeline_intake_take(w, &w->burst))
		pipeline_burst_run(w, &w->burst);
	for (; left != 0; left -= RTE_MIN(left, (uint32_t)PIPELINE_BURST)) {
		pipeline_handoff_receive(w, &w->burst, PIPELINE_BURST);
		if (w->burst.n != 0)
			pipeline_burst_run(w, &w->burst);
	}
}

int
pipeline_move_release(struct worker *w, struct qp *qp, uint32_t to)
{
	uint8_t port = w->port_of[qp->out];
	int rc;

	if (keeps_another(w, qp)) /* before it lets go of anything */
		return -EBUSY;
	handed_serve(w);
	/* What it sends from now on goes through another queue: this one's comes first. */
	stage_tx(w);
	if (local_is_used(w) && !locals_leave(w))
		return -EAGAIN;
	if (port != PORT_NONE && w->tx[port].head != w->tx[port].tail)
		return -EAGAIN;
	clock_read(w);
	pipeline_tx_departed(w);
	if (pipeline_tx_waits_since(w, qp) != 0) /* of the path that it had before */
		return -EAGAIN;
	pipeline_kept_forget(w, qp);
	pipeline_answers_leave(w, qp);
	pipeline_sends_stop(w, qp);
	rc = pipeline_move_park(w, qp, to);
	if (rc == 0) { /* the last that this worker has to say of it */
		pipeline_flush_leave(w, qp);
		pipeline_report_note(w, qp, AEQ_SUSPEND_COMPLETE);
	}
	return rc;
}

int
pipeline_move_adopt(struct worker *w, struct qp *qp)
{
	const uint8_t state = qp_state_of(qp);
	const struct qp_feed *feed = qp->send_feed;

	ASSERT((qp->flags & (QPF_DIRTY | QPF_SENDING | QPF_ANSWERING | QPF_FLUSHING)) ==
		0); /* released */
	/* Of groups' datagrams that were handed over before the move, the old owner had its own. */
	handed_serve(w);
	qp_table_give(w->qps, qp, (uint8_t)w->index);
	local_note(w, qp->out);
	pipeline_share_join(w, qp);
	qp->flags &= ~(uint32_t)QPF_CNP_SCHEDULED; /* what the old owner asked for is forgotten */
	pipeline_answers_join(w, qp);
	if (feed != NULL && feed->resting) {
		timer_by(w, qp, feed->rest_until);
	} else if (state == QPS_RTS || state == QPS_SQD) {
		timer_update(w, qp);
		pipeline_send_wake(w, qp);
	}
	pipeline_flush_resume(w, qp);
	pipeline_move_unpark(w, qp);
	return 0;
}
