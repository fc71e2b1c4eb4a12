/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TX_H
#define TX_H
/**
 * @file tx.h  Frames on their way to a port, and waits that begin when they leave.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    TMR-02, CC-03.
 */
#include "worker.h"

/** Ownership of `m` moves; a full backlog drops it and counts. */
void pipeline_tx_push(struct worker *w, uint8_t port, struct rte_mbuf *m);
/** Does the port have so many frames waiting that no requests should be added? */
static inline bool
tx_is_congested(const struct worker *w, uint8_t port)
{
	return w->tx[port].tail - w->tx[port].head > TX_HIGH;
}

/**
 * The same, or is there no place for one more wait? A visit of stage 10 needs one, also where what
 * it makes goes elsewhere, or nowhere.
 */
static ALWAYS_INLINE bool
tx_takes_no_requests(const struct worker *w, uint8_t port)
{
	const struct tx_queue *q = &w->tx[port];

	return tx_is_congested(w, port) || UNLIKELY(q->starts_tail - q->starts_head == TX_STARTS);
}

/** The ports were given what there is, and the clock was read: waits begin. */
void pipeline_tx_departed(struct worker *w);
/** Has a frame been made for which a wait begins when it leaves? */
static ALWAYS_INLINE bool
tx_has_starts(const struct worker *w)
{
	for (uint32_t i = 0; i < w->outs_n; i++)
		if (w->tx[i].starts_head != w->tx[i].starts_tail)
			return true;
	return false;
}
/** There is no room in q->starts. @return false: nor can any be made. */
bool pipeline_tx_starts_room(struct worker *w, struct tx_queue *q);
/**
 * Frames of the QP stand at the end of the port's queue. What they start began with w->now, and
 * begins anew when they have left.
 */
static ALWAYS_INLINE void
tx_departs(struct worker *w, uint8_t port, struct qp *qp, enum tx_what what)
{
	struct tx_queue *q = &w->tx[port];
	const uint32_t upto = q->gone + (q->tail - q->head);
	struct tx_start *s;

	ASSERT(port < w->outs_n && qp->worker == w->index);
	ASSERT(q->starts_tail - q->starts_head <= TX_STARTS);
	if (UNLIKELY(q->starts_tail - q->starts_head == TX_STARTS) &&
		!pipeline_tx_starts_room(w, q))
		return; /* cannot be: see there */
	s = &q->starts[q->starts_tail++ % TX_STARTS];
	*s = (struct tx_start){ qp, w->now, upto, what | qp->req.cur.v << TX_WHAT_BITS };
}
/** When the oldest request of the QP was made that still waits for its port. 0: none waits. */
ns_t pipeline_tx_waits_since(const struct worker *w, const struct qp *qp);
/** The QP stops: nothing begins for it any more. */
void pipeline_tx_forget(struct worker *w, const struct qp *qp);

#endif
