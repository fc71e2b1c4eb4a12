/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 8: transport timers and RNR waits. Progress only moves a QP's deadline; the node that fires
 * too early for it is armed again (lazy re-arm), and one that fires for nothing is forgotten.
 */
#include "count.h"
#include "pace.h"
#include "report.h"
#include "requester_fast.h"
#include "send_feed.h"
#include "sending.h"
#include "shares.h"
#include "stage.h"
#include "tx.h"

#define DUE_BURST 32
#define DUE_TURNS 8

static void
trace_timer(struct worker *w, const struct qp *qp, const struct requester_verdict *v)
{
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = qp->qpn,
				    .psn = qp->req.una.v,
				    .rule = send_rule(v),
				    .kind = TRACE_timer,
				    .opcode = TRACE_NO_PACKET,
				    .fault = VERDICT_NO_FAULT,
				    .state = qp_state_of(qp) });
}

/**
 * A request that waits for its port is not lost: its timer begins when it leaves. That is so for
 * TX_PATIENCE timeouts; a port that takes nothing for longer loses what it is given.
 */
static void
wait_for_port(const struct worker *w, struct qp *qp)
{
	struct requester *r = &qp->req;
	const ns_t made = r->timing ? pipeline_tx_waits_since(w, qp) : 0;

	if (made != 0 && w->now < made + TX_PATIENCE * requester_wait_ns(r->timeout))
		requester_departed(r, made, w->now);
}

static void
expired(struct worker *w, struct qp *qp)
{
	const struct requester *r = &qp->req;
	struct requester_verdict v;
	uint8_t state = qp_state_of(qp);

	ASSERT(qp->worker == w->index);
	qp->sq.alarm = 0;
	if (UNLIKELY((qp->flags & QPF_CC_RATE) != 0))
		pipeline_pace_timer(w, qp);
	if ((state != QPS_RTS && state != QPS_SQD) || pipeline_feed_timer(w, qp))
		return;
	wait_for_port(w, qp);
	if (w->now < r->deadline || (!r->timing && !r->waiting_rnr)) {
		timer_update(w, qp);
		return;
	}
	requester_timer(&qp->req, w->now, &v);
	if (traced(w, qp))
		trace_timer(w, qp, &v);
	pipeline_act_requester(w, qp, NULL, &v);
	/* Half of the retries are used up: is the peer there at all? */
	if (v.rule == REQRULE_TIMEOUT && r->retry_left == r->retry_cnt / 2)
		pipeline_report_note(w, qp, AEQ_DOUBT_REACHABILITY);
}

static inline struct qp *
qp_of(struct wheel_node *n)
{
	return (struct qp *)(void *)((uint8_t *)n - offsetof(struct qp, sq.timer));
}

ns_t
worker_next(const struct worker *w)
{
	const tick_t next = wheel_next(&w->wheel);
	ns_t timer = next > tick_of(UINT64_MAX) ? UINT64_MAX : next << TICK_SHIFT;

	if (w->answering != 0)
		return 0;
	if (w->senders_n != 0)
		timer = RTE_MIN(timer, pipeline_shares_next(w));
	for (uint32_t i = 0; i < w->outs_n; i++)
		if (w->tx[i].head != w->tx[i].tail)
			return 0;
	return timer;
}

uint32_t
stage_timers(struct worker *w)
{
	struct wheel_node *due[DUE_BURST];
	uint32_t total = 0;

	for (uint32_t turn = 0; turn < DUE_TURNS; turn++) {
		uint32_t n = wheel_advance(&w->wheel, tick_of(w->now), due, DUE_BURST);

		ASSERT(n <= DUE_BURST);
		for (uint32_t i = 0; i < n; i++) {
			rte_prefetch0(qp_of(due[i]));
			rte_prefetch0(&qp_of(due[i])->req.deadline);
		}
		for (uint32_t i = 0; i < n; i++)
			expired(w, qp_of(due[i]));
		total += n;
		if (n < DUE_BURST)
			break;
	}
	return total;
}
