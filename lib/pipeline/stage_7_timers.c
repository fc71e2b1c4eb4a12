/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 7: transport timers and RNR waits. Progress only moves a QP's deadline; the node that fires
 * too early for it is armed again (lazy re-arm), and one that fires for nothing is forgotten.
 */
#include "pipeline_priv.h"

#define DUE_BURST 32
#define DUE_TURNS 8

void
timer_update(struct worker *w, struct qp *qp)
{
	const struct requester *r = &qp->req;

	if (r->timing || r->waiting_rnr)
		wheel_arm(&w->wheel, &qp->sq.timer, tick_after(r->deadline));
}

static void
trace_timer(struct worker *w, const struct qp *qp, const struct requester_verdict *v)
{
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = qp->qpn,
				    .psn = qp->req.una.v,
				    .rule = send_rule(v),
				    .kind = TRACE_timer,
				    .fault = VERDICT_NO_FAULT,
				    .state = qp_state_of(qp) });
}

static void
expired(struct worker *w, struct qp *qp)
{
	const struct requester *r = &qp->req;
	struct requester_verdict v;
	uint8_t state = qp_state_of(qp);

	if ((state != QPS_RTS && state != QPS_SQD) || feed_timer(w, qp))
		return;
	if (w->now < r->deadline || (!r->timing && !r->waiting_rnr)) {
		timer_update(w, qp);
		return;
	}
	requester_timer(&qp->req, w->now, &v);
	if (traced(w, qp))
		trace_timer(w, qp, &v);
	requester_act(w, qp, NULL, &v);
}

uint32_t
stage_timers(struct worker *w)
{
	struct wheel_node *due[DUE_BURST];
	uint32_t total = 0;

	for (uint32_t turn = 0; turn < DUE_TURNS; turn++) {
		uint32_t n = wheel_advance(&w->wheel, tick_of(w->now), due, DUE_BURST);

		for (uint32_t i = 0; i < n; i++)
			expired(w, (struct qp *)(void *)((uint8_t *)due[i] -
							 offsetof(struct qp, sq.timer)));
		total += n;
		if (n < DUE_BURST)
			break;
	}
	return total;
}
