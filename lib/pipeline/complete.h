/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETE_H
#define COMPLETE_H
/**
 * @file complete.h  Adding a completion: one writer for both sides of a QP and all of their paths.
 *
 * Owner:   complete.c, send_actions.c, stage_06_fast.c; the worker's lcore.
 * Memory:  the completion queue's.
 * Depends: worker.h.
 *
 * Inline, because each good message passes here: members that a caller knows cost nothing, and the
 * entry is written where the host reads it. Others call pipeline_cq_add().
 */
#include <errno.h>

#include "count.h"

/** CQ-05: reported once for each queue, by the first producer that meets the overflow. */
void pipeline_cq_failed(struct worker *w, struct qp_cq *cq);

/** The queue's first ring is full: the place in the one that it was resized to, or NULL. */
struct ring_cqe *pipeline_cq_moved(struct qp_cq *cq, uint32_t *seq);

/**
 * @param seq out: what publishes it. @return the place of the next completion; NULL: there is
 * none. See cq_take().
 */
static ALWAYS_INLINE struct ring_cqe *
cq_begin(const struct worker *w, struct qp_cq *cq, uint32_t *seq)
{
	struct ring_cqe *slot;
	uint32_t index;

	if (UNLIKELY(atomic_load_explicit(&cq->error, memory_order_relaxed)))
		return NULL;
	slot = LIKELY(qp_cq_is_alone(cq, w->index)) ? ring_cq_reserve_alone(&cq->ring, &index)
						    : ring_cq_reserve(&cq->ring, &index);
	if (UNLIKELY(slot == NULL))
		return pipeline_cq_moved(cq, seq);
	*seq = ring_cq_seq(&cq->ring, index);
	return slot;
}

/** The same for callers without another way: a full queue goes to error, and that is reported. */
static ALWAYS_INLINE struct ring_cqe *
cq_take(struct worker *w, struct qp_cq *cq, uint32_t *seq)
{
	struct ring_cqe *slot = cq_begin(w, cq, seq);

	if (UNLIKELY(slot == NULL))
		pipeline_cq_failed(w, cq);
	return slot;
}

/** Write the completion to its place, publish it, and do what follows: events, the recorder. */
static ALWAYS_INLINE void
cq_put(struct worker *w, struct qp *qp, struct qp_cq *cq, struct ring_cqe *slot, uint32_t seq,
	const struct ring_completion *c)
{
	ring_cqe_write(slot, qp->qpn, w->now, c);
	ring_cqe_publish(slot, seq);
	/* The entry is the host's as well by now: it is not read back. */
	qp_cq_notify(cq, c->solicited || c->status != WC_SUCCESS);
	if (traced(w, qp))
		trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
					    .qpn = qp->qpn,
					    .psn = c->psn,
					    .kind = TRACE_cqe,
					    .fault = VERDICT_NO_FAULT,
					    .state = qp_state_of(qp),
					    .detail = c->status });
}

/**
 * Add a completion. @param cq NULL: nobody wants it. @return 0, or -ENOSPC: the queue is in error,
 * which was reported.
 */
static ALWAYS_INLINE int
cq_add(struct worker *w, struct qp *qp, struct qp_cq *cq, const struct ring_completion *c)
{
	struct ring_cqe *slot;
	uint32_t seq;

	if (UNLIKELY(cq == NULL))
		return 0;
	slot = cq_take(w, cq, &seq);
	if (UNLIKELY(slot == NULL))
		return -ENOSPC;
	cq_put(w, qp, cq, slot, seq, c);
	return 0;
}

#endif
