/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_06_COMPLETE_FAST_H
#define STAGE_06_COMPLETE_FAST_H
/**
 * @file stage_06_complete_fast.h  Usual ACKs, and ACKs of nothing that waits.
 *
 * Owner:   stage_06_respond.c; the worker's lcore.
 * Memory:  none.
 * Depends: pipeline_priv.h, requester_fast.h.
 *
 * Whatever is not plain returns false with nothing done, and goes to stage_complete(), which would
 * come to the same.
 */
#include "mem_reach.h"
#include "pipeline_priv.h"
#include "requester_fast.h"

/** ACKs of a burst that one stands for. */
struct acks {
	uint32_t n;
	uint32_t ahead; /* of the newest: PSNs beyond una */
	uint32_t bytes; /* of their frames */
};

/**
 * Positive ACKs of one QP that stand one behind the other, with rising PSNs.
 * @param end one behind the last packet that may be looked at.
 * @return false: the first is not such a one.
 */
static ALWAYS_INLINE bool
acks_find(const struct burst *b, uint32_t i, uint32_t end, struct acks *out)
{
	const struct qp *qp = b->qp[i];
	const uint32_t limit = requester_ack_limit(&qp->req);
	uint32_t at = i, bytes = 0, newest = 0;

	for (; at < end && b->qp[at] == qp; at++) {
		const struct wire_pkt *p = &b->pkt[at];
		uint32_t ahead;

		if (p->opcode != OP_RC_ACKNOWLEDGE || UNLIKELY((p->flags & PKT_CE) != 0))
			break;
		ahead = requester_ack_ahead(&qp->req, p);
		if (UNLIKELY(ahead >= limit) || UNLIKELY(at != i && ahead <= newest))
			break;
		newest = ahead;
		bytes += p->frame_len;
	}
	*out = (struct acks){ .n = at - i, .ahead = newest, .bytes = bytes };
	return LIKELY(at != i);
}

/** @param a out. @return false: nothing was done. */
static ALWAYS_INLINE bool
plain_responses(struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct acks *a)
{
	struct qp *qp = b->qp[i];
	struct requester *r = &qp->req;
	const uint32_t first = r->head;
	uint32_t n;

	if (UNLIKELY((qp->flags & (QPF_TRACE | QPF_SEND_FEED)) != 0) ||
		UNLIKELY(qp_state_of(qp) != QPS_RTS) || UNLIKELY(!acks_find(b, i, end, a)))
		return false;
	n = requester_take_acks(r, a->ahead, w->now);
	if (UNLIKELY(pipeline_sends_complete(w, qp, first, n) != 0)) {
		pipeline_sends_overflow(w, qp, &b->pkt[i + a->n - 1]);
		return true;
	}
	timer_update(w, qp);
	if (r->sending != r->tail)
		pipeline_send_wake(w, qp);
	return true;
}

/**
 * ACKs of nothing that is outstanding, one behind the other: all that comes of them is a count
 * (REQ-CLS-E-01).
 * @param end, out as above. @return false: the first is not such a one.
 */
static __attribute__((noinline)) bool
plain_ghosts(struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct acks *out)
{
	struct qp *qp = b->qp[i];
	uint32_t at = i, bytes = 0;

	if ((qp->flags & QPF_TRACE) != 0 || !qp_receives(qp_state_of(qp)) ||
		w->port_of[qp->port] != b->port[i])
		return false;
	for (; at < end && b->qp[at] == qp; at++) {
		const struct wire_pkt *p = &b->pkt[at];

		if (!requester_is_ghost_ack(&qp->req, p) || UNLIKELY((p->flags & PKT_CE) != 0))
			break;
		bytes += p->frame_len;
	}
	if (at == i)
		return false;
	*out = (struct acks){ .n = at - i, .bytes = bytes };
	qp_count(w, qp, STAT_rx_responses_unmatched, out->n);
	if (UNLIKELY(qp->req.sending != qp->req.tail) || UNLIKELY(qp->sq.feed != NULL))
		pipeline_send_wake(w, qp);
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
	host = mem_reach(w->mem, g->lkey, qp->pd, g->addr, g->length, ACCESS_LOCAL_WRITE, &region);
	if (host != NULL && offset < g->length)
		__builtin_prefetch(host + offset, 1);
}

#endif
