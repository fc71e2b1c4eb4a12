/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_FAST_H
#define REQUESTER_FAST_H
/**
 * @file requester_fast.h  What a requester with nothing unusual does all the time, in place.
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

#define REQUESTER_PSNS_MAX 0x7fffffu /* outstanding at most (REQ-13, AMB-05) */

/**
 * What the transport timer of an exponent 1..31 waits: 4.096 us * 2^n, and as much longer (977 ppm)
 * as two clocks may differ, each within 100 ppm as its crystal and 500 ppm as NTP pulls it, less
 * what is never so: no wait is too short by the peer's clock (TMR-02).
 */
static ALWAYS_INLINE ns_t
requester_wait_ns(uint8_t timeout)
{
	return UINT64_C(4100) << (timeout & 31);
}

/**
 * Packets that were made at `made` have left, before `left`: a transport timer that began with
 * them, or since, begins now. One that began before them goes on: they are not the oldest.
 */
static ALWAYS_INLINE void
requester_departed(struct requester *r, ns_t made, ns_t left)
{
	const ns_t wait = requester_wait_ns(r->timeout);

	/* A nanosecond less, so that a turn whose time is this one does not take it for its own. */
	if (r->timing && r->deadline >= made + wait && r->deadline < left + wait - 1)
		r->deadline = left + wait - 1;
}

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
 * Positive ACKs of PSNs less than so far beyond una are plain: in flight is nothing but SENDs and
 * WRITEs, sent once, and no round trip ends with them. 0: none is.
 */
static ALWAYS_INLINE uint32_t
requester_ack_limit(const struct requester *r)
{
	uint32_t odd, limit = psn_distance(r->next, r->una);

	odd = r->reads | r->waiting_rnr | r->draining | r->failed | r->dead | r->recovering;
	odd |= (r->knobs & REQ_KNOB_CREDITS) | (r->cur.v ^ r->next.v) | ~r->open;
	if (UNLIKELY(odd != 0))
		return 0;
	if (r->timed_at != 0) {
		const int32_t timed = psn_cmp(r->timed, r->una);

		if (UNLIKELY(timed <= 0))
			return 0;
		limit = limit < (uint32_t)timed ? limit : (uint32_t)timed;
	}
	return limit;
}

/** Is this ACKNOWLEDGE positive? How far beyond una its PSN is, else UINT32_MAX. */
static ALWAYS_INLINE uint32_t
requester_ack_ahead(const struct requester *r, const struct wire_pkt *p)
{
	return LIKELY((wire_ext(p)[0] & AETH_KIND_MASK) == 0) ? psn_distance(p->psn, r->una)
							      : UINT32_MAX;
}

/**
 * The newest of ACKs that rose up to una + `ahead`, below the limit: it says what the others do.
 * @return how many work requests, from the head on, they complete: the caller does that. Then
 * r->deadline may have changed, as with REQACT_TIMER.
 */
static ALWAYS_INLINE uint32_t
requester_take_acks(struct requester *r, uint32_t ahead, ns_t now)
{
	const uint32_t n = requester_reach(r, ahead);

	r->head += n;
	r->una = psn_add(r->una, ahead + 1);
	r->retry_left = r->retry_cnt;
	r->rnr_left = r->rnr_retry;
	r->implied = false;
	r->timing = r->timeout != 0 && requester_in_flight(r) > r->since_ackreq;
	r->deadline = now + requester_wait_ns(r->timeout);
	return n;
}
_Static_assert(AETH_ACK == 0, "the kind of a positive ACK");

/**
 * One packet of so many asks for a response at least: of a small window so many that sending does
 * not stall for an ACK, but not each.
 */
static ALWAYS_INLINE uint32_t
requester_asks_each(const struct requester *r, uint32_t room)
{
	enum { ASKS = 4, ASK_LEAST = 4 };
	const uint32_t each = room / ASKS > ASK_LEAST ? room / ASKS : ASK_LEAST;

	return each < r->ackreq_interval ? each : r->ackreq_interval;
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
 * opcode, flags, fault and `resumed` of a work request, lowest byte first. Read at once: a byte
 * that the compiler has to put aside and reads back as a word stalls store forwarding.
 */
static ALWAYS_INLINE uint32_t
requester_what(const struct requester_wr *w)
{
	uint32_t what;

	memcpy(&what, &w->opcode, sizeof(what));
	return what;
}
_Static_assert(
	offsetof(struct requester_wr, flags) == offsetof(struct requester_wr, opcode) + 1 &&
		offsetof(struct requester_wr, fault) == offsetof(struct requester_wr, opcode) + 2,
	"the order of that word");

/* A fault, a fence, or another opcode than WR_RDMA_WRITE (0) and WR_SEND. */
#define REQUESTER_WHAT_ODD (UINT8_MAX << 16 | WR_FENCE << 8 | (UINT8_MAX & ~WR_SEND))

/** How a message of one packet starts. */
struct requester_start {
	psn_t psn;
	uint8_t flags; /* PKT_SE, PKT_MIGREQ */
	bool ask;      /* PKT_ACKREQ */
};

/**
 * Packets of a requester that are sent one after another, each the only one of a SEND or RDMA WRITE
 * that is sent for the first time while nothing holds up: requester_next(), without a packet to
 * fill. Between begin and end the requester stays as it was, and nobody else may touch it.
 */
struct requester_run {
	psn_t psn;    /* of the next packet */
	uint32_t at;  /* its work request */
	uint32_t end; /* one behind the last that may leave now */
	uint32_t tail;
	uint32_t flying; /* PSNs outstanding */
	uint32_t since;  /* packets since one that asks for a response */
	uint32_t each;   /* requester_asks_each() */
	uint32_t asked;  /* how many ask */
	uint32_t pmtu;
	psn_t timed; /* with `times` */
	bool times;  /* a round trip is being timed */
	uint8_t migreq;
};

/** @return packets at most; 0: none of them is plain, and there is nothing to end. */
static ALWAYS_INLINE uint32_t
requester_run_begin(const struct requester *r, struct requester_run *run)
{
	const uint32_t flying = psn_distance(r->cur, r->una), used = flying - r->reply_psns + 1;
	uint32_t odd, most = r->tail - r->sending;

	odd = r->waiting_rnr | r->dead | r->draining | r->failed | (r->knobs & REQ_KNOB_CREDITS);
	odd |= (r->sending ^ r->fresh) | ~r->open;
	/* The last that the window lets out asks for a response: it is not plain. */
	if (UNLIKELY(odd != 0) || UNLIKELY(used >= r->window) ||
		UNLIKELY(flying + 1 >= REQUESTER_PSNS_MAX))
		return 0;
	most = most < r->window - used ? most : r->window - used;
	if (UNLIKELY(most > REQUESTER_PSNS_MAX - flying - 1))
		most = REQUESTER_PSNS_MAX - flying - 1;
	*run = (struct requester_run){ .psn = r->cur,
		.at = r->sending,
		.end = r->sending + most,
		.tail = r->tail,
		.flying = flying,
		.since = r->since_ackreq,
		.each = requester_asks_each(r, r->window),
		.pmtu = r->pmtu,
		.times = r->timed_at != 0,
		.migreq = r->unmigrated ? 0 : PKT_MIGREQ };
	return most;
}

/**
 * The next one: the work request at run->at, which is not run->end.
 * @return false: it is not plain, and the run ends before it.
 */
static ALWAYS_INLINE bool
requester_run_next(struct requester_run *run, struct requester_wr *w, struct requester_start *out)
{
	const uint32_t what = requester_what(w), flags = what >> 8;
	bool ask;

	if (UNLIKELY((what & REQUESTER_WHAT_ODD) != 0) || UNLIKELY(w->len - 1 >= run->pmtu))
		return false;
	run->at++;
	ask = ((flags & WR_SIGNALED) != 0) | (run->at == run->tail) | (run->since + 1 >= run->each);
	out->psn = w->first = w->last = run->psn;
	out->ask = ask;
	out->flags = run->migreq;
	if ((flags & WR_SOLICITED) != 0 && (what & UINT8_MAX) == WR_SEND)
		out->flags |= PKT_SE;
	w->resumed = 0;
	if (ask && run->flying >= REQUESTER_PACED && !run->times) {
		run->times = true;
		run->timed = run->psn;
	}
	run->asked += ask;
	run->since = ask ? 0 : run->since + 1;
	run->psn = psn_add(run->psn, 1);
	run->flying++;
	return true;
}

/** What was sent is in flight. May start the transport timer. */
static ALWAYS_INLINE void
requester_run_end(struct requester *r, const struct requester_run *run, ns_t now)
{
	r->fresh = r->sending = run->at;
	r->cur = r->next = run->psn;
	r->since_ackreq = (uint8_t)run->since;
	if (run->times)
		requester_time_round(r, run->timed, now);
	if (run->asked != 0 && !r->timing) {
		r->timing = r->timeout != 0;
		r->deadline = now + requester_wait_ns(r->timeout);
	}
}
_Static_assert(WR_RDMA_WRITE == 0 && WR_SEND == 2, "bits of them are used");

#endif
