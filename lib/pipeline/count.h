/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COUNT_H
#define COUNT_H
/**
 * @file count.h  Counting at worker, port and QP; a QP's state.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 */
#include "worker.h"

/** A compact QP needs its side. @return false: the worker's stock is empty. */
bool pipeline_side_take(struct worker *w, struct qp *qp);

/** Has the QP its side now? A compact one takes it. @return false: the stock is empty. */
static ALWAYS_INLINE bool
has_side(struct worker *w, struct qp *qp)
{
	return LIKELY(qp->stats != NULL) || pipeline_side_take(w, qp);
}

/** Count at the QP. Cost: a line of the QP that is hot, or one of its side. */
static ALWAYS_INLINE void
qp_count(struct worker *w, struct qp *qp, enum stats_counter s, uint64_t n)
{
	if (s < STATS_HOT)
		qp->hot[s] += n;
	else if (LIKELY(has_side(w, qp)))
		stats_add(qp->stats, s, n);
	else
		stats_add(&w->stats, STAT_qp_counts_lost, n);
}

/** Counts of the send queue are about to be full. */
void pipeline_sendq_carry(struct worker *w, struct qp *qp);

/** Count request packets at the QP, but no more than a turn sends. */
static ALWAYS_INLINE void
qp_count_sent(struct worker *w, struct qp *qp, uint32_t n)
{
	qp->sq.sent += n;
	if (UNLIKELY((qp->sq.sent & BIT32(31)) != 0))
		pipeline_sendq_carry(w, qp);
}

/** Count responses at the QP, each a packet that it has received: of one burst at most. */
static ALWAYS_INLINE void
qp_count_responses(struct worker *w, struct qp *qp, uint32_t n, uint32_t bytes)
{
	qp->sq.responses += n;
	qp->sq.response_bytes += bytes;
	if (UNLIKELY(((qp->sq.responses | qp->sq.response_bytes) & BIT32(31)) != 0))
		pipeline_sendq_carry(w, qp);
}

/** Count messages that succeeded at the QP. */
static ALWAYS_INLINE void
qp_count_messages(struct worker *w, struct qp *qp, uint32_t n, uint64_t bytes)
{
	qp->sq.messages += n;
	if (UNLIKELY(qp->sq.message_bytes + bytes >= BIT32(31)) ||
		UNLIKELY((qp->sq.messages & BIT32(31)) != 0))
		pipeline_sendq_carry(w, qp);
	if (LIKELY(bytes < BIT32(31)))
		qp->sq.message_bytes += (uint32_t)bytes;
	else
		qp_count(w, qp, STAT_req_message_bytes, bytes);
}

/** Count at the worker, its port, and the QP (or NULL). */
static inline void
count(struct worker *w, uint8_t port, struct qp *qp, enum stats_counter s)
{
	stats_inc(&w->stats, s);
	stats_inc(&w->port_stats[port], s);
	if (qp != NULL)
		qp_count(w, qp, s, 1);
}

/** Does the flight recorder follow the QP? */
static inline bool
traced(const struct worker *w, const struct qp *qp)
{
	return UNLIKELY((qp->flags & QPF_TRACE) != 0) && w->trace != NULL;
}

/** The QP's state, a value of enum ibv_qp_state. */
static inline uint8_t
qp_state_of(const struct qp *qp)
{
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/** May packets go to the QP's logic? */
static inline bool
qp_receives(uint8_t state)
{
	return state >= QPS_RTR && state <= QPS_SQE;
}

#endif
