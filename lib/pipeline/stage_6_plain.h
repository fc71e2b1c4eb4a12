/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_6_PLAIN_H
#define STAGE_6_PLAIN_H
/**
 * @file stage_6_plain.h  Positive ACKs where nothing is unusual: no verdict.
 *
 * Owner:   stage_5_respond.c; the worker's lcore.
 * Memory:  none.
 * Depends: pipeline_priv.h, requester_plain.h.
 *
 * Whatever is not plain returns false with nothing done, and goes to stage_complete(), which would
 * come to the same.
 */
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

#endif
