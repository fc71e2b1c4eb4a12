/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PLAIN_H
#define REQUESTER_PLAIN_H
/**
 * @file requester_plain.h  A positive ACK for a requester with nothing unusual, without a verdict.
 *
 * Owner:   the QP's worker.
 * Memory:  the caller's.
 * Depends: requester.h.
 * Spec:    rules REQ-03, REQ-04, TMR-06.
 *
 * Whatever is not plain is left alone, and goes to requester_response(), which would do the same.
 */
#include "compiler.h"
#include "requester.h"

#define REQUESTER_NOT_PLAIN UINT32_MAX

/** Request packets sent in this pass and not acknowledged. */
static ALWAYS_INLINE uint32_t
requester_in_flight(const struct requester *r)
{
	return psn_distance(r->cur, r->una) - r->reply_psns;
}

/**
 * The work requests from r->head on that an ACK of PSN una + `ahead` completes, where none of them
 * is a READ or ATOMIC.
 */
static ALWAYS_INLINE uint32_t
requester_reach(const struct requester *r, uint32_t ahead)
{
	uint32_t n = 0, left = ahead + 1;

	for (psn_t at = r->una; left != 0; n++) {
		psn_t last = r->wr[(r->head + n) & r->wr_mask].last;
		uint32_t due = psn_distance(last, at) + 1;

		if (due > left)
			break;
		left -= due;
		at = psn_add(last, 1);
	}
	return n;
}

/**
 * An ACKNOWLEDGE packet.
 * @return how many work requests, from the head on, it completes: the caller does that. Then
 * r->deadline may have changed, as with REQACT_TIMER. REQUESTER_NOT_PLAIN: nothing was done.
 */
static ALWAYS_INLINE uint32_t
requester_take_ack(struct requester *r, const struct wire_pkt *p, ns_t now)
{
	const uint32_t ahead = psn_distance(p->psn, r->una);
	uint32_t odd, n;

	/* Of what is in flight nothing is a READ or ATOMIC, nor being resent, nor waits. */
	odd = r->reads | r->waiting_rnr | r->draining | r->failed | r->dead | r->recovering;
	odd |= (r->knobs & REQ_KNOB_CREDITS) | (r->cur.v ^ r->next.v);
	odd |= wire_ext(p)[0] & AETH_KIND_MASK;
	if (UNLIKELY(odd != 0) || UNLIKELY(ahead >= psn_distance(r->next, r->una)))
		return REQUESTER_NOT_PLAIN;
	n = requester_reach(r, ahead);
	r->head += n;
	r->una = psn_add(p->psn, 1);
	r->acks_due -= r->acks_due != 0;
	r->retry_left = r->retry_cnt;
	r->rnr_left = r->rnr_retry;
	r->implied = false;
	r->timing = r->timeout != 0 && requester_in_flight(r) > r->since_ackreq;
	r->deadline = now + (UINT64_C(4096) << (r->timeout & 31));
	return n;
}
_Static_assert(AETH_ACK == 0, "the kind of a positive ACK");

#endif
