/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_05_LOOK_H
#define STAGE_05_LOOK_H
/**
 * @file stage_05_look.h  Does a packet need a closer look? By its fields, one after another.
 *
 * Owner:   stage_05_steer.c, stage_05_half.c; the worker's lcore.
 * Memory:  none.
 * Depends: stage_05_faults.h.
 */
#include "stage_05_faults.h"

/** What an ACK completes: a request, its place in the ring. */
static ALWAYS_INLINE void
response_fetch(const struct qp *qp, psn_t p, bool again)
{
	const struct requester *r = &qp->req;

	/* Right where requests have one packet each; otherwise another of the QP's. */
	rte_prefetch0(&r->wr[(r->head + psn_distance(p, r->una)) & r->wr_mask]);
	if (again)
		return;
	if (LIKELY(qp->sq.ring.sh != NULL))
		__builtin_prefetch(&qp->sq.ring.sh->cons, 1);
}

/** What the next stages look at. */
static ALWAYS_INLINE void
fetch(const struct burst *b, uint32_t i)
{
	const struct qp *qp = b->qp[i];

	if (op_has(b->pkt[i].op, OPF_RESPONSE))
		response_fetch(qp, b->pkt[i].psn, i != 0 && b->qp[i - 1] == qp);
	else
		rte_prefetch0(&qp->tmpl);
}

/** @return is the packet one that needs a closer look? What the next stages need is fetched. */
static ALWAYS_INLINE bool
is_slow(const struct worker *w, const struct burst *b, uint32_t i)
{
	const struct wire_pkt *p = &b->pkt[i];
	const struct qp *qp = b->qp[i];

	if (UNLIKELY(qp == NULL) || UNLIKELY(p->faults != 0))
		return true;
	if (UNLIKELY(!is_fast(qp, p, w->steer[b->port[i]])))
		return !is_fast_datagram(qp, p, w->steer[b->port[i]]);
	fetch(b, i); /* a core does not fetch more at once */
	return false;
}

/**
 * Look at the packets of a burst that came to one port, whose first one is of plain_has(), with
 * 32-byte registers (wire_has_half()). @return a bit for each that needs a closer look.
 */
uint32_t pipeline_look_half(const struct worker *w, struct burst *b);
/** The same where the first one is an ACK. */
uint32_t pipeline_look_acks_half(const struct worker *w, struct burst *b);
/** How many of them from the first on are plain, likewise. */
uint32_t pipeline_plain_n_half(const struct worker *w, const struct burst *b);

#endif
