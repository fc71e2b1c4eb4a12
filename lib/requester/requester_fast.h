/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_FAST_H
#define REQUESTER_FAST_H
/**
 * @file requester_fast.h  What a requester with nothing unusual does all the time, in place.
 *
 * Owner:   the QP's worker.
 * Memory:  the caller's.
 * Depends: requester_step.h.
 * Spec:    rules REQ-01, REQ-03, REQ-04, REQ-05, REQ-07, TMR-06.
 *
 * Whatever the fast path does not take is left alone, and goes to requester_response() and
 * requester_next(), which would do the same.
 */
#include <stddef.h>
#include <string.h>

#include "compiler.h"
#include "requester.h"
#include "requester_step.h"

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

/** 0: what is in flight was sent once, and nothing but progress comes of a response. */
static ALWAYS_INLINE uint32_t
requester_odd(const struct requester *r)
{
	return (r->waiting_rnr | r->draining | r->failed | r->dead | r->recovering | r->holes) |
	       (r->knobs & REQ_KNOB_CREDITS) | (r->cur.v ^ r->next.v) | ~r->open;
}

/**
 * Positive ACKs of PSNs less than so far beyond una are for the fast path: in flight is nothing but
 * SENDs and WRITEs, sent once, and nobody has to be told of a round trip that ends with them. 0:
 * none is.
 */
static ALWAYS_INLINE uint32_t
requester_ack_limit(const struct requester *r)
{
	uint32_t limit = psn_distance(r->next, r->una);

	if (UNLIKELY((requester_odd(r) | r->reads) != 0))
		return 0;
	if (UNLIKELY(r->rounds) && r->timed_at != 0) {
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
	uint32_t psns = ahead + 1, n;

	ASSERT(ahead < requester_ack_limit(r));
	requester_reach(r, true, &psns, &n);
	requester_acknowledge(r, psns, n);
	/* The window is open: see requester_odd(). */
	if (requester_round_is_over(r))
		requester_round_take(r, psn_sub(r->una, 1), now);
	requester_timer_restart(r, now);
	return n;
}
_Static_assert(AETH_ACK == 0, "the kind of a positive ACK");

/**
 * Is this the whole answer to the oldest work request, a READ of one packet that was sent once, and
 * does no round trip end with it? Then it is all that comes of it that its data is placed, and
 * requester_take_read().
 */
static ALWAYS_INLINE bool
requester_fits_read(const struct requester *r, const struct wire_pkt *p)
{
	const struct requester_wr *w = requester_slot(r, r->head);
	uint32_t odd = requester_odd(r) | (p->psn.v ^ r->una.v);

	odd |= (uint32_t)(p->opcode ^ OP_RC_READ_RESPONSE_ONLY) | (r->rtt_min == 0) |
	       (wire_ext(p)[0] & AETH_KIND_MASK);
	if (UNLIKELY(odd != 0) || UNLIKELY(r->head == r->fresh) ||
		(r->timed_at != 0 && UNLIKELY(psn_cmp(r->timed, r->una) <= 0)))
		return false;
	return LIKELY(w->opcode == WR_RDMA_READ) && LIKELY(w->len == p->payload_len) &&
	       LIKELY(p->payload_len != 0) && LIKELY(psn_eq(w->first, r->una)) &&
	       LIKELY(psn_eq(w->last, r->una));
}

/** It is answered: the caller completes it. r->deadline may have changed, as with REQACT_TIMER. */
static ALWAYS_INLINE void
requester_take_read(struct requester *r, ns_t now)
{
	ASSERT(r->reads != 0 && requester_is_read_or_atomic(requester_slot(r, r->head)));
	r->reads--;
	requester_acknowledge(r, 1, 1);
	requester_timer_restart(r, now);
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

/* An opcode with an immediate, or without; that is the same but for this bit. */
#define REQUESTER_WHAT_IMM 1
/* A fault, a fence, or another opcode than WR_RDMA_WRITE (0) and WR_SEND. */
#define REQUESTER_WHAT_ODD (UINT8_MAX << 16 | SEND_FENCE << 8 | (UINT8_MAX & ~WR_SEND))
/* A READ has nothing else of these: no fault, no fence, nothing inline. */
#define REQUESTER_WHAT_READ (UINT8_MAX << 16 | (SEND_FENCE | SEND_INLINE) << 8 | UINT8_MAX)

/** How a message of one packet starts. */
struct requester_start {
	psn_t psn;
	uint8_t flags; /* PKT_SE, PKT_MIGREQ */
	bool ask;      /* PKT_ACKREQ */
};

/**
 * Packets of a requester that are sent one after another, each the only one of a SEND or RDMA WRITE
 * (with immediate or not) that is sent for the first time while nothing holds up, or each a READ
 * that one packet answers: requester_next(), without a packet to fill. Between begin and end the
 * requester stays as it was, and nobody else may touch it.
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
	uint32_t reads;  /* how many are READs */
	uint32_t pmtu;
	uint32_t stamp;     /* of now */
	psn_t timed;        /* with `times` */
	bool times;         /* a round trip is being timed */
	bool acked;         /* something answers */
	uint8_t timed_from; /* requester_timed_from() */
	uint8_t migreq;
};

/** @return packets at most; 0: none is for the fast path, and there is nothing to end. */
static ALWAYS_INLINE uint32_t
requester_run_begin(const struct requester *r, struct requester_run *run, ns_t now)
{
	const uint32_t flying = psn_distance(r->cur, r->una), used = flying - r->reply_psns + 1;
	uint32_t odd, most = r->tail - r->sending;

	odd = r->waiting_rnr | r->dead | r->draining | r->failed | (r->knobs & REQ_KNOB_CREDITS);
	odd |= (r->sending ^ r->fresh) | ~r->open;
	/* The last that the window lets out asks for a response: that is for the full path. */
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
		.stamp = requester_stamp(now),
		.times = r->timed_at != 0,
		.acked = wire_is_acked(r->transport),
		.timed_from = (uint8_t)requester_timed_from(r),
		.migreq = requester_migreq(r) };
	return most;
}

/**
 * The next one: the work request at run->at, which is not run->end.
 * @param imm constant; true: those with an immediate, too.
 * @return false: it is for the full path, and the run ends before it.
 */
static ALWAYS_INLINE bool
requester_run_next(
	struct requester_run *run, struct requester_wr *w, bool imm, struct requester_start *out)
{
	const uint32_t what = requester_what(w), flags = what >> 8;
	const uint32_t odd = imm ? REQUESTER_WHAT_ODD & ~REQUESTER_WHAT_IMM : REQUESTER_WHAT_ODD;
	bool ask;

	if (UNLIKELY((what & odd) != 0) || UNLIKELY(w->len - 1 >= run->pmtu))
		return false;
	ASSERT(run->at != run->end && run->flying < REQUESTER_PSNS_MAX);
	run->at++;
	ask = requester_must_ask(flags, run->at == run->tail, run->since, run->each) & run->acked;
	requester_assign(w, run->psn, 1, run->stamp);
	out->psn = run->psn;
	out->ask = ask;
	out->flags = run->migreq;
	if ((flags & SEND_SOLICITED) != 0 && (what & UINT8_MAX) != WR_RDMA_WRITE)
		out->flags |= PKT_SE;
	if (ask && run->flying >= run->timed_from && !run->times) {
		run->times = true;
		run->timed = run->psn;
	}
	run->asked += ask;
	run->since = ask ? 0 : run->since + 1;
	run->psn = psn_add(run->psn, 1);
	run->flying++;
	return true;
}

/** READs that may be outstanding besides those that are (REQ-10). 0: none, for the fast path. */
static ALWAYS_INLINE uint32_t
requester_reads_most(const struct requester *r)
{
	return LIKELY(r->reads < r->max_rd_atomic) && LIKELY(!r->holes)
		       ? (uint32_t)r->max_rd_atomic - r->reads
		       : 0;
}

/** requester_run_next() of a READ of one packet, for as many as requester_reads_most() says. */
static ALWAYS_INLINE bool
requester_run_read(struct requester_run *run, struct requester_wr *w, struct requester_start *out)
{
	if (UNLIKELY((requester_what(w) & REQUESTER_WHAT_READ) != WR_RDMA_READ) ||
		UNLIKELY(w->len - 1 >= run->pmtu) || UNLIKELY(!run->acked))
		return false;
	ASSERT(run->at != run->end && run->flying < REQUESTER_PSNS_MAX);
	run->at++;
	requester_assign(w, run->psn, 1, run->stamp);
	requester_read_begins(w);
	*out = (struct requester_start){ .psn = run->psn, .flags = run->migreq, .ask = true };
	if (run->flying >= run->timed_from && !run->times) {
		run->times = true;
		run->timed = run->psn;
	}
	run->reads++;
	run->asked++;
	run->since = 0;
	run->psn = psn_add(run->psn, 1);
	run->flying++;
	return true;
}

/** What was sent is in flight. May start the transport timer. */
static ALWAYS_INLINE void
requester_run_end(struct requester *r, const struct requester_run *run, ns_t now)
{
	ASSERT(run->at != r->sending && r->sending == r->fresh);
	ASSERT(run->at - r->sending == psn_distance(run->psn, r->cur));
	requester_sent(r, run->at, run->at, run->psn, true, run->acked ? run->since : 0);
	r->reads = (uint8_t)(r->reads + run->reads);
	ASSERT(run->reads == 0 || r->reads <= r->max_rd_atomic);
	if (run->times)
		requester_time_round(r, run->timed, now);
	if (run->asked != 0)
		requester_timer_start(r, now);
}
_Static_assert(WR_RDMA_WRITE == 0 && WR_SEND == 2 &&
		       WR_RDMA_WRITE_WITH_IMM == (WR_RDMA_WRITE | REQUESTER_WHAT_IMM) &&
		       WR_SEND_WITH_IMM == (WR_SEND | REQUESTER_WHAT_IMM),
	"bits of them are used");

#endif
