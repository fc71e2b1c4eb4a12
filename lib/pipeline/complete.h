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

/** Where a completion goes. Returned by value, so that it stays in registers. */
struct cq_place {
	struct ring_cq *ring;
	struct ring_cqe *slot; /* or NULL */
	uint32_t index;
};

/** The first ring is full, left, or has failed: the place in the one that it was resized to. */
struct cq_place pipeline_cq_moved(struct qp_cq *cq);

/** @return the place in the queue's first ring; NULL: it is full, or left. */
static ALWAYS_INLINE struct ring_cqe *
cq_begin_first(const struct worker *w, struct qp_cq *cq, uint32_t *index)
{
	if (UNLIKELY(atomic_load_explicit(&cq->error, memory_order_relaxed)))
		return NULL;
	return LIKELY(qp_cq_is_alone(cq, w->index)) ? ring_cq_reserve_alone(&cq->ring, index)
						    : ring_cq_reserve(&cq->ring, index);
}

/** @return false: there is no place. See cq_take(). */
static ALWAYS_INLINE bool
cq_begin(const struct worker *w, struct qp_cq *cq, struct cq_place *to)
{
	to->ring = &cq->ring;
	to->slot = cq_begin_first(w, cq, &to->index);
	if (UNLIKELY(to->slot == NULL))
		*to = pipeline_cq_moved(cq);
	return LIKELY(to->slot != NULL);
}

/** The same for callers without another way: a full queue goes to error, and that is reported. */
static ALWAYS_INLINE bool
cq_take(struct worker *w, struct qp_cq *cq, struct cq_place *to)
{
	if (LIKELY(cq_begin(w, cq, to)))
		return true;
	pipeline_cq_failed(w, cq);
	return false;
}

/** A line of the recorder. */
static inline void
cq_trace(struct worker *w, const struct qp *qp, const struct ring_completion *c)
{
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = qp->qpn,
				    .psn = c->psn,
				    .kind = TRACE_cqe,
				    .opcode = TRACE_NO_PACKET,
				    .fault = VERDICT_NO_FAULT,
				    .state = qp_state_of(qp),
				    .detail = c->status });
}

/** Write the completion to its place, publish it, and raise what it is an event for. */
static ALWAYS_INLINE void
cq_write(struct worker *w, const struct qp *qp, struct qp_cq *cq, const struct cq_place *to,
	const struct ring_completion *c)
{
	ring_cqe_write(to->slot, qp->qpn, w->now, c);
	ring_cq_publish(to->ring, to->slot, to->index);
	/* The entry is the host's as well by now: it is not read back. */
	qp_cq_notify(cq, to->index, c->solicited || c->status != WC_SUCCESS);
}

/** The same, and a line of the recorder. */
static ALWAYS_INLINE void
cq_put(struct worker *w, struct qp *qp, struct qp_cq *cq, const struct cq_place *to,
	const struct ring_completion *c)
{
	cq_write(w, qp, cq, to, c);
	if (traced(w, qp))
		cq_trace(w, qp, c);
}

/**
 * Completions of one queue, one behind the other, of a worker that is alone there: their places are
 * taken, and the host is told, once for all of them. Nothing else of the worker may add to the
 * queue before cq_run_end().
 */
struct cq_run {
	struct qp_cq *cq; /* NULL: none yet */
	struct ring_cqe *slots;
	uint32_t mask;
	uint32_t bits;  /* ring_turn_bits() */
	uint32_t from;  /* index of the first */
	uint32_t at;    /* of the next */
	uint32_t end;   /* one behind the last that there is room for */
	uint32_t asked; /* one behind the last that asks for an event, if `asks` */
	bool asks;
};

/** Their places are taken, and whoever waits for them is told. The run may go on with any queue. */
static ALWAYS_INLINE void
cq_run_end(struct cq_run *run)
{
	if (LIKELY(run->at != run->from)) {
		ring_cq_taken_alone(&run->cq->ring, run->from, run->at - run->from);
		qp_cq_notify(run->cq, run->asks ? run->asked - 1 : run->at - 1, run->asks);
	}
	run->cq = NULL;
	run->from = run->at = run->end = 0;
}

/** Go on with another queue. @return false: it has no room, or others add to it as well. */
bool pipeline_cq_run_begin(const struct worker *w, struct cq_run *run, struct qp_cq *cq);

/** Is there a place in this queue? Otherwise see pipeline_cq_run_begin(). */
static ALWAYS_INLINE bool
cq_run_has(const struct worker *w, struct cq_run *run, struct qp_cq *cq)
{
	return (LIKELY(run->cq == cq) && LIKELY(run->at != run->end)) ||
	       pipeline_cq_run_begin(w, run, cq);
}

/**
 * Have n more completions a place in the queue, by what the host says now? Other workers may take
 * some of them meanwhile. The run ends.
 */
bool pipeline_cq_run_fits(struct cq_run *run, struct qp_cq *cq, uint32_t n);

/** The same, which the run knows as a rule. */
static ALWAYS_INLINE bool
cq_run_fits(const struct worker *w, struct cq_run *run, struct qp_cq *cq, uint32_t n)
{
	return UNLIKELY(cq == NULL) ||
	       (LIKELY(cq_run_has(w, run, cq)) && LIKELY(run->end - run->at >= n)) ||
	       pipeline_cq_run_fits(run, cq, n);
}

/** Write the next one, of this QP number, for which there is a place, and publish it. */
static ALWAYS_INLINE void
cq_run_write(struct cq_run *run, uint32_t qpn, ns_t now, const struct ring_completion *c)
{
	struct ring_cqe *slot = &run->slots[run->at & run->mask];

	ASSERT(run->at != run->end && slot == ring_cq_at(&run->cq->ring, run->at));
	/* The host has read those ahead: they are in its cache. */
	__builtin_prefetch(&run->slots[(run->at + AHEAD) & run->mask], 1);
	ring_cqe_write(slot, qpn, now, c);
	ring_cqe_publish(slot, ring_seq_of(run->at++, run->bits));
	if (UNLIKELY(c->solicited)) {
		run->asks = true;
		run->asked = run->at;
	}
}

/** The same of this QP, now. */
static ALWAYS_INLINE void
cq_run_put(const struct worker *w, struct cq_run *run, const struct qp *qp,
	const struct ring_completion *c)
{
	cq_run_write(run, qp->qpn, w->now, c);
}

/**
 * Add a completion. @param cq NULL: nobody wants it. @return 0, or -ENOSPC: the queue is in error,
 * which was reported.
 */
static ALWAYS_INLINE int
cq_add(struct worker *w, struct qp *qp, struct qp_cq *cq, const struct ring_completion *c)
{
	struct cq_place to;

	if (UNLIKELY(cq == NULL))
		return 0;
	if (UNLIKELY(!cq_take(w, cq, &to)))
		return -ENOSPC;
	cq_put(w, qp, cq, &to, c);
	return 0;
}

#endif
