/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETE_H
#define COMPLETE_H
/**
 * @file complete.h  Adding a completion: a place for it, and what follows when it is there.
 *
 * Owner:   complete.c, stage_06_fast.c; the worker's lcore.
 * Memory:  the completion queue's.
 * Depends: pipeline_priv.h.
 *
 * An entry is written where it is to be read: a copy would read wide what was just written narrow.
 */
#include "pipeline_priv.h"

/** CQ-05: reported once per queue, whoever of its producers meets the overflow first. */
void pipeline_cq_failed(struct worker *w, struct qp_cq *cq);

/** @return the place of the next completion; NULL: there is none. See cq_take(). */
static ALWAYS_INLINE struct ring_cqe *
cq_begin(const struct worker *w, struct qp_cq *cq, uint32_t *index)
{
	if (UNLIKELY(atomic_load_explicit(&cq->error, memory_order_relaxed)))
		return NULL;
	return LIKELY(qp_cq_is_alone(cq, w->index)) ? ring_cq_reserve_alone(&cq->ring, index)
						    : ring_cq_reserve(&cq->ring, index);
}

/** The same for whoever has no other way: that there is none is the queue's end, and reported. */
static ALWAYS_INLINE struct ring_cqe *
cq_take(struct worker *w, struct qp_cq *cq, uint32_t *index)
{
	struct ring_cqe *slot = cq_begin(w, cq, index);

	if (UNLIKELY(slot == NULL))
		pipeline_cq_failed(w, cq);
	return slot;
}

/** What follows from a completion: not read back, since an entry is the host's as well. */
struct added {
	uint32_t psn;
	uint8_t status;
	bool solicited;
};

static inline void
cq_end(struct worker *w, struct qp *qp, struct qp_cq *cq, struct added a)
{
	qp_cq_notify(cq, a.solicited || a.status != WC_SUCCESS);
	if (traced(w, qp))
		trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
					    .qpn = qp->qpn,
					    .psn = a.psn,
					    .kind = TRACE_cqe,
					    .fault = VERDICT_NO_FAULT,
					    .state = qp_state_of(qp),
					    .detail = a.status });
}

#endif
