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

/** @return 0, or -ENOSPC: the queue is in error, which was reported, and the run has ended. */
static ALWAYS_INLINE int
complete_one(
	struct worker *w, struct qp *qp, const struct requester_wr *wr, struct cq_run *const run)
{
	const bool returns = verbs_wr_returns(wr->opcode);
	const struct ring_completion c = { .wr_id = wr->wr_id,
		.byte_len = returns ? wr->len : 0,
		.psn = wr->last.v,
		.opcode = verbs_wc_opcode(wr->opcode) };

	if (run == NULL || UNLIKELY(qp->send_cq == NULL) ||
		UNLIKELY(!cq_run_has(w, run, qp->send_cq)))
		return cq_add(w, qp, qp->send_cq, &c);
	cq_run_put(w, run, qp, &c);
	if (traced(w, qp))
		cq_trace(w, qp, &c);
	return 0;
}

/**
 * pipeline_sends_complete() but for the worker's counters. @param run where completions go as long
 * as it has a place, or NULL (known when this is compiled). @param all added to.
 */
static ALWAYS_INLINE int
sends_complete(struct worker *w, struct qp *qp, uint32_t first, uint32_t n,
	struct cq_run *const run, struct succeeded *all)
{
	const struct requester *r = &qp->req;
	uint64_t bytes = 0;
	uint32_t i;
	int rc = 0;

	pipeline_sendq_release(qp, n);
	if (UNLIKELY(is_fed(qp)))
		pipeline_feed_completed(w, qp, first, n);
	for (i = 0; i < n && LIKELY(rc == 0); i++) {
		const struct requester_wr *wr = &r->wr[(first + i) & r->wr_mask];

		bytes += wr->len;
		if ((wr->flags & SEND_SIGNALED) != 0) /* REQ-09: others complete in silence */
			rc = complete_one(w, qp, wr, run);
	}
	qp_count_messages(w, qp, i, bytes);
	all->n += i;
	all->bytes += bytes;
	return rc;
}

#endif
