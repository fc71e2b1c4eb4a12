/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send_feed: work requests that the worker makes itself, all alike, as long as there is room. Their
 * completions are counted and go nowhere.
 */
#include "count.h"
#include "send_feed.h"
#include "sending.h"

#define REST_MIN (100 * TIME_NS_PER_MS)
#define REST_MAX (2 * TIME_NS_PER_S)

void
pipeline_feed_take(struct qp *qp, ns_t now)
{
	struct qp_feed *f = qp->send_feed;
	struct requester *r = &qp->req;

	while (r->tail - r->head < f->depth && r->tail - r->head <= r->wr_mask &&
		(f->count == 0 || f->posted < f->count)) {
		/* Nobody polls for it: its wr_id is the time of posting (latency). */
		r->wr[r->tail & r->wr_mask] = (struct requester_wr){ .wr_id = now,
			.remote_addr = f->remote_addr,
			.compare_add = 1,
			.rkey = f->rkey,
			.len = f->sge.length,
			.opcode = f->opcode,
			.num_sge = 1,
			.xrc_srqn = { f->xrc_srqn[0], f->xrc_srqn[1], f->xrc_srqn[2] } };
		f->posted++;
		requester_posted(r, r->tail + 1);
	}
}

void
pipeline_feed_completed(struct worker *w, const struct qp *qp, uint32_t first, uint32_t n)
{
	static const uint8_t kinds[] = {
		[WC_SEND] = LATENCY_SEND,
		[WC_RDMA_WRITE] = LATENCY_WRITE,
		[WC_RDMA_READ] = LATENCY_READ,
		[WC_COMP_SWAP] = LATENCY_ATOMIC,
		[WC_FETCH_ADD] = LATENCY_ATOMIC,
		[WC_ATOMIC_WRITE] = LATENCY_ATOMIC,
	};
	struct latency *l = &w->latency[kinds[verbs_wc_opcode(qp->send_feed->opcode)]];

	for (uint32_t i = 0; i < n; i++)
		latency_add(l, w->now - qp->req.wr[(first + i) & qp->req.wr_mask].wr_id);
}

/**
 * The retries of a feed that never got an answer are used up: its peer is not there yet. Everything
 * is taken back; it begins again with its first PSN after a rest that grows.
 * @return false: this is an error like any other's.
 */
bool
pipeline_feed_rests(struct worker *w, struct qp *qp, const struct requester_verdict *v)
{
	struct qp_feed *f = is_fed(qp) ? qp->send_feed : NULL;
	const bool draining = qp->req.draining;

	if (f == NULL || v->outcome != QC_RETRY_EXCEEDED || f->completed != 0 ||
		(v->act & REQACT_COMPLETE) != 0)
		return false;
	f->rest = f->rest == 0 ? REST_MIN : f->rest * 2;
	if (f->rest > REST_MAX)
		f->rest = REST_MAX;
	f->posted = 0;
	f->resting = true;
	f->rest_until = w->now + f->rest;
	requester_reset(&qp->req, psn(qp->attr.sq_psn));
	pipeline_sends_stop(w, qp);
	timer_by(w, qp, f->rest_until);
	if (draining) /* QP-09: it begins again in RTS, and nothing is under way any more */
		pipeline_sqd(w, qp, true);
	return true;
}

/** The timer of a feed that rests. @return true: it does, so there is nothing else to look at. */
bool
pipeline_feed_timer(struct worker *w, struct qp *qp)
{
	struct qp_feed *f = is_fed(qp) ? qp->send_feed : NULL;

	if (f == NULL || !f->resting)
		return false;
	if (w->now < f->rest_until) {
		timer_by(w, qp, f->rest_until);
		return true;
	}
	f->resting = false;
	pipeline_send_wake(w, qp);
	return true;
}
