/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_COMPLETE_H
#define SEND_COMPLETE_H
/**
 * @file send_complete.h  Requests have succeeded: one loop, for one QP's and for those of a burst.
 *
 * Owner:   send_actions.c, stage_06_fast_acks.c; the worker's lcore.
 * Memory:  the completion queue's.
 * Depends: complete.h, sending.h.
 */
#include "complete.h"
#include "sending.h"

/** Requests that have succeeded, not counted at the worker yet. */
struct succeeded {
	uint64_t bytes;
	uint32_t n;
};

/** Count them there. */
static ALWAYS_INLINE void
succeeded_count(struct worker *w, const struct succeeded *all)
{
	stats_add(&w->stats, STAT_req_messages, all->n);
	stats_add(&w->stats, STAT_req_message_bytes, all->bytes);
}

/** What a work request that has succeeded completes with. @param data_only as below. */
static ALWAYS_INLINE struct ring_completion
completion_of(const struct requester_wr *wr, const bool data_only)
{
	const bool returns = !data_only && verbs_wr_returns(wr->opcode);

	ASSERT(!data_only || !verbs_wr_returns(wr->opcode));
	return (struct ring_completion){ .wr_id = wr->wr_id,
		.byte_len = returns ? wr->len : 0,
		.psn = wr->last.v,
		.opcode = verbs_wc_opcode(wr->opcode) };
}

/** @return 0, or -ENOSPC: the queue is in error, which was reported, and the run has ended. */
static ALWAYS_INLINE int
complete_one(
	struct worker *w, struct qp *qp, const struct requester_wr *wr, struct cq_run *const run)
{
	const struct ring_completion c = completion_of(wr, false);

	if (run == NULL || UNLIKELY(qp->send_cq == NULL) ||
		UNLIKELY(!cq_run_has(w, run, qp->send_cq)))
		return cq_add(w, qp, qp->send_cq, &c);
	cq_run_put(w, run, qp, &c);
	if (traced(w, qp))
		cq_trace(w, qp, &c);
	return 0;
}

/** Work requests in a row, from position `at` up to `end`, and their bytes. */
struct successes {
	uint32_t at;
	uint32_t end;
	uint64_t bytes;
};

/**
 * Those that the run has places for: what does not change is read before the first one.
 * @param run of the QP's queue; nobody traces it.
 */
static ALWAYS_INLINE void
complete_in_run(const struct worker *w, const struct qp *qp, struct successes *s,
	struct cq_run *const run, const bool data_only)
{
	const struct requester_wr *const wrs = qp->req.wr;
	const uint32_t mask = qp->req.wr_mask, qpn = qp->qpn, end = s->end;
	const ns_t now = w->now;
	struct cq_run here = *run;
	uint32_t at = s->at;
	uint64_t bytes = s->bytes;

	for (; at != end; at++) {
		const struct requester_wr *wr = &wrs[at & mask];

		if ((wr->flags & SEND_SIGNALED) != 0) { /* REQ-09: others complete in silence */
			const struct ring_completion c = completion_of(wr, data_only);

			if (UNLIKELY(here.at == here.end))
				break;
			cq_run_write(&here, qpn, now, &c);
		}
		bytes += wr->len;
	}
	run->at = here.at;
	s->at = at;
	s->bytes = bytes;
}

/**
 * pipeline_sends_complete() but for the worker's counters. @param run where completions go as long
 * as it has a place, or NULL (known when this is compiled). @param data_only constant; true: none
 * is a READ or ATOMIC, and nobody traces the QP. @param all added to.
 */
static ALWAYS_INLINE int
sends_complete(struct worker *w, struct qp *qp, uint32_t first, uint32_t n,
	struct cq_run *const run, const bool data_only, struct succeeded *all)
{
	const struct requester *r = &qp->req;
	struct successes s = { first, first + n, 0 };
	int rc = 0;

	pipeline_sendq_release(qp, n);
	if (UNLIKELY(is_fed(qp)))
		pipeline_feed_completed(w, qp, first, n);
	while (LIKELY(rc == 0)) {
		const struct requester_wr *wr;

		if (run != NULL && data_only && LIKELY(run->cq == qp->send_cq))
			complete_in_run(w, qp, &s, run, data_only);
		if (s.at == s.end)
			break;
		wr = &r->wr[s.at++ & r->wr_mask];
		s.bytes += wr->len;
		if ((wr->flags & SEND_SIGNALED) != 0) /* as above */
			rc = complete_one(w, qp, wr, run);
	}
	qp_count_messages(w, qp, s.at - first, s.bytes);
	all->n += s.at - first;
	all->bytes += s.bytes;
	return rc;
}

#endif
