/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_6_PLAIN_H
#define STAGE_6_PLAIN_H
/**
 * @file stage_6_plain.h  Positive ACKs where nothing is unusual, or nothing waits: no verdict.
 *
 * Owner:   stage_5_respond.c; the worker's lcore.
 * Memory:  none.
 * Depends: pipeline_priv.h, requester_plain.h.
 *
 * Whatever is not plain returns false with nothing done, and goes to stage_complete(), which would
 * come to the same.
 */
#include "mem_reach.h"
#include "pipeline_priv.h"
#include "requester_plain.h"

/** @return false: nothing was done. */
static ALWAYS_INLINE bool
plain_response(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	struct requester *r = &qp->req;
	uint32_t n, first = r->head;

	if (UNLIKELY((qp->flags & (QPF_TRACE | QPF_SEND_FEED)) != 0) ||
		UNLIKELY((p->flags & PKT_CE) != 0) || UNLIKELY(qp_state_of(qp) != QPS_RTS))
		return false;
	n = requester_take_ack(r, p, w->now);
	if (UNLIKELY(n == REQUESTER_NOT_PLAIN))
		return false;
	if (UNLIKELY(sends_complete(w, qp, first, n) != 0)) {
		sends_overflow(w, qp, p);
		return true;
	}
	timer_update(w, qp);
	if (r->sending != r->tail)
		send_wake(w, qp);
	return true;
}

/** An ACK of nothing that is outstanding: all that comes of it is a count (REQ-CLS-E-01). */
static __attribute__((noinline)) bool
plain_ghost(struct worker *w, struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	if (!requester_is_ghost_ack(&qp->req, p) || (qp->flags & QPF_TRACE) != 0 ||
		(p->flags & PKT_CE) != 0 || !qp_receives(qp_state_of(qp)) ||
		w->port_of[qp->port] != port)
		return false;
	qp_count(w, qp, STAT_rx_responses_unmatched, 1);
	if (UNLIKELY(qp->req.sending != qp->req.tail) || UNLIKELY(qp->sq.feed != NULL))
		send_wake(w, qp);
	return true;
}

/**
 * Fetch, for writing, where the data of a READ response will go if it is in order: it is the
 * answer to the request so many PSNs behind the oldest one, or a part of that.
 */
static ALWAYS_INLINE void
response_place_fetch(const struct worker *w, const struct qp *qp, const struct wire_pkt *p)
{
	const struct requester *r = &qp->req;
	uint32_t at = psn_distance(p->psn, r->una), started = r->fresh - r->head;
	const struct mem_region *region;
	const struct requester_wr *wr;
	const struct ring_sge *g;
	uint64_t offset = 0;
	uint8_t *host;

	if (started == 0)
		return;
	if (at >= started || !psn_eq(r->wr[(r->head + at) & r->wr_mask].first, p->psn))
		at = 0;
	wr = &r->wr[(r->head + at) & r->wr_mask];
	if (wr->opcode != WR_RDMA_READ || wr->num_sge != 1)
		return;
	if (at == 0)
		offset = (uint64_t)psn_distance(p->psn, wr->first) * r->pmtu;
	g = request_sges(qp, r->head + at);
	host = mem_reach(w->mem, g->lkey, qp->pd, g->addr, g->length, MEM_LOCAL_WRITE, &region);
	if (host != NULL && offset < g->length)
		__builtin_prefetch(host + offset, 1);
}

#endif
