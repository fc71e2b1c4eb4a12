/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_STEP_H
#define REQUESTER_STEP_H
/**
 * @file requester_step.h  Each change of a requester's state that has two callers, written once.
 *
 * The fast path, which has no verdict, calls these, and so do requester_next() and
 * requester_response().
 *
 * Owner:   the QP's worker.
 * Memory:  the caller's.
 * Depends: requester.h.
 * Spec:    rules REQ-01, REQ-03, REQ-04, REQ-07, REQ-RETRY-04, REQ-RNR-07, TMR-02, TMR-05, TMR-06.
 */
#include "compiler.h"
#include "invariant.h"
#include "requester.h"

#define REQUESTER_PSNS_MAX 0x7fffffu /* outstanding at most (REQ-13, AMB-05) */

/** The work request at this position; positions count up without end. */
static ALWAYS_INLINE struct requester_wr *
requester_slot(const struct requester *r, uint32_t position)
{
	return &r->wr[position & r->wr_mask];
}

/** Is it answered by more than an ACK: READ, FETCH_ADD, CMP_AND_SWP, ATOMIC WRITE, FLUSH? */
static ALWAYS_INLINE bool
requester_is_read_or_atomic(const struct requester_wr *w)
{
	return verbs_wr_has(w->opcode, WR_HAS_RESPONSE | WR_HAS_ANSWER);
}

/** Request packets sent in this pass and not acknowledged. */
static ALWAYS_INLINE uint32_t
requester_in_flight(const struct requester *r)
{
	return psn_distance(r->cur, r->una) - r->reply_psns;
}

/* ---- the transport timer --------------------------------------------------------------------- */

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

/** Start the timer unless it runs. Where there is none, `deadline` says when it was. */
static ALWAYS_INLINE void
requester_timer_start(struct requester *r, ns_t now)
{
	if (r->timing)
		return;
	r->timing = r->timeout != 0;
	r->deadline = now + requester_wait_ns(r->timeout);
}

/** It counts from the last valid response, if anything in flight owes one (TMR-05, TMR-06). */
static ALWAYS_INLINE void
requester_timer_restart(struct requester *r, ns_t now)
{
	r->timing = r->timeout != 0 && requester_in_flight(r) > r->since_ackreq;
	r->deadline = now + requester_wait_ns(r->timeout);
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

/** How far an acknowledgement reaches. */
enum requester_reach {
	REACH_ALL,   /* as far as it says */
	REACH_READ,  /* to a READ or ATOMIC that is not answered */
	REACH_FAULT, /* to the work request with a local fault */
};

/**
 * What an acknowledgement of the *psns oldest PSNs reaches. READs and ATOMICs are acknowledged by
 * their data alone, never by a PSN beyond them.
 * @param data_only constant; true: none of the work requests is a READ, an ATOMIC, or at fault.
 * @param psns in: as the packet says; out: those that are acknowledged.
 * @param wrs out: work requests, from the head on, that complete.
 */
static ALWAYS_INLINE enum requester_reach
requester_reach(const struct requester *r, bool data_only, uint32_t *psns, uint32_t *wrs)
{
	uint32_t left = *psns, n = 0;
	enum requester_reach reach = REACH_ALL;

	/* Each that was sent has a PSN at least. As many as there are PSNs have one each. */
	if (data_only && LIKELY(left <= r->fresh - r->head) &&
		LIKELY(psn_eq(
			requester_slot(r, r->head + left - 1)->last, psn_add(r->una, left - 1)))) {
		*wrs = left;
		return REACH_ALL;
	}
	for (psn_t at = r->una; left != 0; n++) {
		const struct requester_wr *w = requester_slot(r, r->head + n);
		uint32_t due;

		if (!data_only && UNLIKELY(r->failed) && r->head + n == r->failed_at) {
			reach = REACH_FAULT;
			break;
		}
		if (!data_only && UNLIKELY(requester_is_read_or_atomic(w))) {
			reach = REACH_READ;
			break;
		}
		ASSERT(!requester_is_read_or_atomic(w) && r->head + n != r->fresh);
		due = psn_distance(w->last, at) + 1;
		if (due > left) { /* part of a message */
			left = 0;
			break;
		}
		left -= due;
		at = psn_add(w->last, 1);
	}
	*psns -= left;
	*wrs = n;
	return reach;
}

/**
 * The `psns` oldest PSNs are acknowledged, and with them the `wrs` oldest work requests. Any
 * progress reloads both retry counters (REQ-RETRY-04, REQ-RNR-07, AMB-04).
 */
static ALWAYS_INLINE void
requester_acknowledge(struct requester *r, uint32_t psns, uint32_t wrs)
{
	ASSERT(psns != 0 && psns <= psn_distance(r->next, r->una));
	ASSERT(wrs <= psns && wrs <= r->fresh - r->head);
	r->head += wrs;
	r->una = psn_add(r->una, psns);
	r->retry_left = r->retry_cnt;
	r->rnr_left = r->rnr_retry;
	r->implied = false;
}

/**
 * READ responses at una are taken: `psns` of them, with those kept behind it, that end `wrs` work
 * requests. Unless the READ waits to be resent, the rest of it is counted in reply_psns.
 */
static ALWAYS_INLINE void
requester_answered(struct requester *r, uint32_t psns, uint32_t wrs)
{
	ASSERT(wrs <= r->reads && requester_is_read_or_atomic(requester_slot(r, r->head)));
	r->reads = (uint8_t)(r->reads - wrs);
	if (psn_distance(r->cur, r->una) > psns)
		r->reply_psns -= psns - wrs;
	else
		r->reply_psns = 0;
	requester_acknowledge(r, psns, wrs);
}

/* ---- sending --------------------------------------------------------------------------------- */

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

/**
 * Must the packet ask for a response (REQ-07)? For a signalled work request, for the last packet
 * for now, and for one of `each`.
 * @param flags WR_* of the work request that ends with it; 0: none does.
 * @param newest nothing is posted behind it.
 * @param since packets since one that asked.
 */
static ALWAYS_INLINE bool
requester_must_ask(uint32_t flags, bool newest, uint32_t since, uint32_t each)
{
	return ((flags & SEND_SIGNALED) != 0) | newest | (since + 1 >= each);
}

/** MigReq in what it sends (WIRE-18). */
static ALWAYS_INLINE uint8_t
requester_migreq(const struct requester *r)
{
	return r->unmigrated ? 0 : PKT_MIGREQ;
}

/** PSNs of a message of `len` bytes: max(1, ceil(len / 2^shift)), the path MTU (WIRE-12). */
static ALWAYS_INLINE uint32_t
requester_psns_of(uint32_t len, uint32_t shift)
{
	return len == 0 ? 1 : ((len - 1) >> shift) + 1;
}

/** A work request starts at PSN `at`: it gets its PSNs (REQ-01). @param stamp of now. */
static ALWAYS_INLINE void
requester_assign(struct requester_wr *w, psn_t at, uint32_t psns, uint32_t stamp)
{
	ASSERT(psns != 0 && psns <= PSN_HALF);
	w->first = at;
	w->last = psn_add(at, psns - 1);
	w->resumed = 0;
	w->sent_at = stamp;
}

/**
 * Packets were made, up to PSN `cur` of the work request `sending`, where the next one begins.
 * @param fresh the first work request that never was sent.
 * @param first they are new: `next` goes along.
 * @param since packets since one that asked for a response.
 */
static ALWAYS_INLINE void
requester_sent(struct requester *r, uint32_t sending, uint32_t fresh, psn_t cur, bool first,
	uint32_t since)
{
	ASSERT(fresh - r->head <= r->tail - r->head && sending - r->head <= fresh - r->head);
	ASSERT(since <= UINT8_MAX);
	r->sending = sending;
	r->fresh = fresh;
	r->cur = cur;
	if (first)
		r->next = cur;
	r->since_ackreq = (uint8_t)since;
	ASSERT(psn_distance(r->next, r->una) <= REQUESTER_PSNS_MAX);
	ASSERT(psn_distance(r->cur, r->una) <= psn_distance(r->next, r->una));
}

/** A READ is asked for, for the first time: nothing of it is kept. */
static ALWAYS_INLINE void
requester_read_begins(struct requester_wr *w)
{
	ASSERT(w->opcode == WR_RDMA_READ);
	w->imm = 0;
}

/* PSNs in flight: with fewer, a loss costs little, and so must its accounts. */
#define REQUESTER_PACED 4

/** A packet sent for the first time so many PSNs beyond una, or more, may time a round trip. */
static ALWAYS_INLINE uint32_t
requester_timed_from(const struct requester *r)
{
	return r->rounds || (r->knobs & REQ_KNOB_PROBE) != 0 ? 0 : REQUESTER_PACED;
}

/** Time the round trip of packet `p`, which owes a response, unless another is being timed. */
static ALWAYS_INLINE void
requester_time_round(struct requester *r, psn_t p, ns_t now)
{
	if (r->timed_at != 0)
		return;
	r->timed = p;
	r->timed_at = (uint32_t)now | 1;
}

/* The shortest round trip moves to the newest by 1/2^n of the difference. */
#define REQUESTER_MIN_AGES 10
/* The most that `longer` says: eight times rtt_min. */
#define REQUESTER_LONGER 3

/** Is the PSN acknowledged whose round trip is timed? */
static ALWAYS_INLINE bool
requester_round_is_over(const struct requester *r)
{
	return r->timed_at != 0 && psn_cmp(r->timed, r->una) < 0;
}

/**
 * Without a transport timer: the round trip that ends with the response at PSN `p`, if since the
 * packet that is timed so many nanoseconds have passed. 0: that cannot be told.
 */
uint32_t requester_round_of(const struct requester *r, psn_t p, uint32_t passed, ns_t now);

/**
 * A round trip is over, as a response at PSN `p` acknowledges so much. What follows for the window
 * is req_pace_round()'s. Where no timer ends the wait for an answer that is lost, what came in its
 * place may answer what was sent long after: then the round trip is the latter's.
 * @return false: how long it was cannot be told.
 */
static ALWAYS_INLINE bool
requester_round_take(struct requester *r, psn_t p, ns_t now)
{
	uint32_t rtt = ((uint32_t)now | 1) - r->timed_at;

	ASSERT(r->timed_at != 0);
	rtt += rtt == 0;
	r->timed_at = 0;
	if (UNLIKELY(r->timeout == 0)) {
		rtt = requester_round_of(r, p, rtt, now);
		if (rtt == 0)
			return false;
	}
	r->rtt = rtt;
	if (r->rtt_min == 0 || rtt < r->rtt_min)
		r->rtt_min = rtt;
	else
		r->rtt_min += (rtt - r->rtt_min) >> REQUESTER_MIN_AGES;
	r->longer = (rtt / 2 >= r->rtt_min) + (rtt / 4 >= r->rtt_min) + (rtt / 8 >= r->rtt_min);
	return true;
}

#endif
