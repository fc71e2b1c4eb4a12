/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets leave at the QP's rate (CC-21, CC-22): the wheel wakes those that wait for their turn. */
#include "pace.h"
#include "answers.h"
#include "congestion.h"
#include "qp_cc.h"
#include "sending.h"

/** @return how many packets may leave now. */
static uint32_t
packets_now(struct worker *w, struct qp *qp)
{
	struct cc *c = &qp_cc(qp)->cc;

	pipeline_congestion_line(w, qp);
	cc_advance(c, w->now);
	qp_cc_note(qp);
	if ((qp->flags & QPF_PACED) == 0)
		return CC_BURST_PKTS;
	return cc_packets(c, qp->req.pmtu, w->now);
}

uint32_t
pipeline_pace_requests(struct worker *w, struct qp *qp)
{
	const uint32_t n = packets_now(w, qp);

	if (n == 0) {
		qp_cc(qp)->sends_wait = true;
		pipeline_send_sleep(w, qp);
		timer_by(w, qp, qp_cc(qp)->cc.due);
	}
	return n;
}

bool
pipeline_pace_response(struct worker *w, struct qp *qp)
{
	if (packets_now(w, qp) != 0)
		return true;
	timer_by(w, qp, qp_cc(qp)->cc.due);
	return false;
}

void
pipeline_pace_sent(struct worker *w, struct qp *qp, uint8_t port, uint32_t place)
{
	const struct tx_queue *q = &w->tx[port];
	uint32_t bytes = 0, n = pace_place(q) - place;

	ASSERT(n <= q->tail);
	for (uint32_t i = q->tail - n; i != q->tail; i++)
		bytes += q->m[i]->pkt_len;
	if (bytes != 0)
		cc_sent(&qp_cc(qp)->cc, bytes);
}

void
pipeline_pace_sent_one(struct worker *w, struct qp *qp)
{
	const uint8_t port = w->port_of[qp->out];

	pipeline_pace_sent(w, qp, port, pace_place(&w->tx[port]) - 1);
}

void
pipeline_pace_timer(struct worker *w, struct qp *qp)
{
	struct qp_cc *c = qp_cc(qp);
	const uint8_t state = qp_state_of(qp);

	if (!c->sends_wait && !c->answers_wait)
		return;
	if (w->now < c->cc.due) {
		timer_by(w, qp, c->cc.due);
		return;
	}
	if (c->answers_wait)
		pipeline_answers_wake(w, qp);
	if (c->sends_wait && (state == QPS_RTS || state == QPS_SQD))
		pipeline_send_wake(w, qp);
	c->sends_wait = false;
}

void
pipeline_pace_answers(struct worker *w, struct qp *qp)
{
	qp_cc(qp)->sends_wait = false;
	pipeline_pace_timer(w, qp);
}
