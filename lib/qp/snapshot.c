/* SPDX-License-Identifier: BSD-3-Clause */
/* What a QP looks like at a moment. */
#include "qp_snapshot.h"

#include <string.h>

#include "invariant.h"
#include "qp.h"
#include "qp_cc.h"
#include "requester_fast.h"

/** Entries posted and not given back. A copy of the view: looking leaves no trace in the QP. */
static uint32_t
posted_in(struct ring view)
{
	return ring_consume_count(&view);
}

static void
snapshot_oldest(const struct requester *r, struct qp_waiting *out)
{
	const struct requester_wr *w = &r->wr[r->head & r->wr_mask];
	uint32_t i = r->head;

	ASSERT(r->tail - r->head <= r->wr_mask + 1);
	ASSERT(r->fresh - r->head <= r->tail - r->head);
	out->started = r->fresh - r->head;
	out->has_oldest = true;
	out->oldest_opcode = w->opcode;
	out->oldest_id = w->wr_id;
	out->reads = r->reads;
	if (r->reads == 0)
		return;
	while (i != r->fresh && !requester_is_read_or_atomic(&r->wr[i & r->wr_mask]))
		i++;
	ASSERT(i != r->fresh);
	out->read_psn = r->wr[i & r->wr_mask].first.v;
	out->read_id = r->wr[i & r->wr_mask].wr_id;
}

static void
snapshot_waiting(const struct qp *qp, ns_t now, struct qp_waiting *out)
{
	const struct requester *r = &qp->req;
	const struct qp_feed *feed = qp->send_feed;

	out->established = (qp->flags & QPF_UNHEARD) == 0 &&
			   (wire_is_connected(qp->resp.transport) || qp->resp.msn != 0);
	out->narrowed = qp->req.window < qp->window;
	out->starved = qp->resp.starved;
	out->rnr_until = qp->resp.latched ? qp->resp.rnr_until : 0;
	if (r->dead)
		return;
	out->stop = (uint8_t)requester_waits(r, now);
	out->since = requester_waits_since(r);
	out->resends = r->patching || psn_cmp(r->cur, r->next) < 0;
	out->timeout = r->timeout;
	out->rnr_code = r->rnr_code;
	out->flying = requester_in_flight(r);
	out->open = r->open;
	out->rest_until = feed != NULL && feed->resting ? feed->rest_until : 0;
	out->unstarted = r->tail - r->fresh;
	/* Entries stay in the ring until they complete, so those in progress are subtracted. */
	if (qp->sq.ring.sh != NULL) {
		const uint32_t posted = posted_in(qp->sq.ring);

		out->unstarted += posted > qp->sq.taken ? posted - qp->sq.taken : 0;
	}
	if (r->tail != r->head)
		snapshot_oldest(r, out);
}

/** A copy is brought up to `now` and `line`: the QP's own rate is when it sends. */
static void
snapshot_rate(const struct qp *qp, ns_t now, uint32_t line, struct qp_rate *out)
{
	const struct qp_cc *at = (const struct qp_cc *)(const void *)(qp + 1);
	struct cc c = at->cc;

	cc_line(&c, line);
	cc_advance(&c, now);
	*out = (struct qp_rate){ .current = c.rate,
		.target = c.target,
		.alpha = (double)c.alpha / CC_ALPHA_ONE,
		.cnps = c.cnps,
		.stage = c.stage,
		.has = true,
		.by_delay = c.p.by_delay,
		.window = (double)c.delay.window / CC_PACKET,
		.rtt_ns = c.delay.rtt,
		.rtt_target_ns = c.delay.target,
		.waits_until = at->sends_wait || at->answers_wait ? c.due : 0 };
}

/** From RTS on the PSN is live, before that it is the configured one (QP-19). */
static void
snapshot_send(const struct qp *qp, uint8_t state, struct qp_snapshot *out)
{
	const struct requester *r = &qp->req;
	bool live = state >= QPS_RTS;

	if (live)
		out->attr.sq_psn = r->next.v;
	out->next_psn = out->attr.sq_psn;
	out->una_psn = live ? r->una.v : out->attr.sq_psn;
	out->retry_left = live ? r->retry_left : qp->attr.retry_cnt;
	out->rnr_left = live ? r->rnr_left : qp->attr.rnr_retry;
	out->timing = r->timing;
	out->waiting_rnr = r->waiting_rnr;
	out->drained = state == QPS_SQD && r->head == r->fresh;
	out->deadline = r->deadline;
	out->window = r->window;
	out->outstanding = r->dead ? 0 : r->tail - r->head;
	if (qp->send_feed != NULL) {
		out->feed_posted = qp->send_feed->posted;
		out->feed_completed = qp->send_feed->completed;
	}
}

void
qp_snapshot(const struct qp *qp, ns_t now, uint32_t line, struct qp_snapshot *out)
{
	const struct responder *r = &qp->resp;
	uint8_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	ASSERT(state < QPS_MAX);
	memset(out, 0, sizeof(*out));
	out->attr = qp->attr;
	out->state = state;
	out->attr.qp_state = state;
	out->attr.cur_qp_state = state;
	/* From RTR on the PSN is live, before that it is the configured one (QP-19). */
	if (state >= QPS_RTR)
		out->attr.rq_psn = r->epsn.v;
	out->latched = r->latched;
	out->open = r->open;
	out->unfinished = r->unfinished;
	out->fatal = qp->fatal;
	out->error = qp->last_error;
	out->epsn = r->epsn.v;
	out->msn = r->msn;
	out->rq_posted = posted_in(qp->rq);
	out->answers = qp->answers.count;
	out->resolved = (qp->flags & QPF_RESOLVED) != 0;
	out->migrations = atomic_load_explicit(&qp->migrations, memory_order_relaxed);
	out->migration_rule = qp->migration_rule;
	out->migration_ns = qp->migration_ns;
	for (uint32_t s = 0; s < STAT_MAX; s++)
		out->stats.c[s] = qp_stat(qp, (enum stats_counter)s);
	snapshot_send(qp, state, out);
	out->nowhere =
		qp_nowhere_count(qp, out->error.time_ns != 0 ? out->error.psn : out->una_psn);
	if ((qp->flags & QPF_CC_RATE) != 0)
		snapshot_rate(qp, now, line, &out->rate);
	if (state >= QPS_RTR && state <= QPS_SQD)
		snapshot_waiting(qp, now, &out->waiting);
}
