/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PLAIN_H
#define REQUESTER_PLAIN_H
/**
 * @file requester_plain.h  What a requester with nothing unusual does all the time, in place.
 *
 * Owner:   the QP's worker.
 * Memory:  the caller's.
 * Depends: requester.h.
 * Spec:    rules REQ-01, REQ-03, REQ-04, REQ-07, TMR-06.
 *
 * Whatever is not plain is left alone, and goes to requester_response() and requester_next(), which
 * would do the same.
 */
#include <stddef.h>
#include <string.h>

#include "compiler.h"
#include "requester.h"

#define REQUESTER_NOT_PLAIN UINT32_MAX
#define REQUESTER_PSNS_MAX  0x7fffffu /* outstanding at most (REQ-13, AMB-05) */

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
	/* The window grows, or a round trip ends: once in a while. */
	odd |= ~r->open | ((r->timed_at != 0) & (psn_cmp(r->timed, p->psn) <= 0));
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

/** How a message of one packet starts. */
struct requester_start {
	psn_t psn;
	uint8_t flags; /* PKT_ACKREQ, PKT_SE, PKT_MIGREQ */
};

/** So often in a small window that sending does not stall for an ACK, but not with each packet. */
static ALWAYS_INLINE bool
requester_asks_often(const struct requester *r, uint32_t room)
{
	enum { ASKS = 4, ASK_LEAST = 4 };
	const uint32_t asked = r->since_ackreq + 1u;

	return (asked >= room / ASKS) & (asked >= ASK_LEAST);
}

/* PSNs in flight: with fewer, a loss costs little, and so must its accounts. */
#define REQUESTER_PACED 4

/** Time the round trip of a packet that is sent for the first time and owes a response. */
static ALWAYS_INLINE void
requester_time_round(struct requester *r, psn_t p, ns_t now)
{
	if (r->timed_at != 0)
		return;
	r->timed = p;
	r->timed_at = (uint32_t)now | 1;
}

/**
 * opcode, flags, fault and `resumed` of a work request, lowest byte first. Read at once: a byte that
 * the compiler has to put aside and reads back as a word stalls store forwarding.
 */
static ALWAYS_INLINE uint32_t
requester_what(const struct requester_wr *w)
{
	uint32_t what;

	memcpy(&what, &w->opcode, sizeof(what));
	return what;
}
_Static_assert(offsetof(struct requester_wr, flags) == offsetof(struct requester_wr, opcode) + 1 &&
		       offsetof(struct requester_wr, fault) ==
			       offsetof(struct requester_wr, opcode) + 2,
	"the order of that word");

/* A fault, a fence, or another opcode than WR_RDMA_WRITE (0) and WR_SEND. */
#define REQUESTER_WHAT_ODD (UINT8_MAX << 16 | WR_FENCE << 8 | (UINT8_MAX & ~WR_SEND))

/**
 * The next packet, if it is the only one of a SEND or RDMA WRITE that is sent for the first time
 * and nothing holds up: requester_next(), without a packet to fill. The work request is that at
 * r->sending, of one to pmtu bytes. May start the transport timer.
 * @return false: nothing was done.
 */
static ALWAYS_INLINE bool
requester_start_plain(struct requester *r, ns_t now, struct requester_start *out)
{
	struct requester_wr *w = &r->wr[r->sending & r->wr_mask];
	const uint32_t position = r->sending, flying = psn_distance(r->cur, r->una);
	const uint32_t what = requester_what(w), flags = what >> 8;
	uint32_t odd, ask;

	odd = r->waiting_rnr | r->dead | r->draining | r->failed | (r->knobs & REQ_KNOB_CREDITS);
	odd |= (r->sending ^ r->fresh) | (what & REQUESTER_WHAT_ODD) | ~r->open;
	/* The last that the window lets out asks for a response. */
	if (UNLIKELY(odd != 0) || UNLIKELY(r->sending == r->tail) ||
		UNLIKELY(w->len - 1 >= r->pmtu) ||
		UNLIKELY(flying - r->reply_psns + 1 >= r->window) ||
		UNLIKELY(flying + 1 >= REQUESTER_PSNS_MAX))
		return false;
	ask = ((flags & WR_SIGNALED) != 0) | (position + 1 == r->tail) |
	      (r->since_ackreq + 1 >= r->ackreq_interval) | requester_asks_often(r, r->window);
	out->psn = r->cur;
	out->flags = (uint8_t)((r->unmigrated ? 0 : PKT_MIGREQ) | ask * PKT_ACKREQ);
	if ((flags & WR_SOLICITED) != 0 && (what & UINT8_MAX) == WR_SEND)
		out->flags |= PKT_SE;
	w->first = w->last = r->cur;
	w->resumed = 0;
	r->fresh = r->sending = position + 1;
	r->acks_due += ask;
	r->since_ackreq = ask != 0 ? 0 : r->since_ackreq + 1;
	r->cur = r->next = psn_add(r->cur, 1);
	if (ask != 0 && flying >= REQUESTER_PACED)
		requester_time_round(r, out->psn, now);
	if (ask != 0 && !r->timing && r->timeout != 0) {
		r->timing = true;
		r->deadline = now + (UINT64_C(4096) << (r->timeout & 31));
	}
	return true;
}
_Static_assert(WR_RDMA_WRITE == 0 && WR_SEND == 2 && PKT_ACKREQ == 1, "bits of them are used");

#endif
