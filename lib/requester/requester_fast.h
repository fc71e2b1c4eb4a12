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

/** The transport timer was set: so is the probe's, where there is one. */
static ALWAYS_INLINE void
requester_probe_follows(struct requester *r, bool progress, ns_t now)
{
	if (UNLIKELY((r->knobs & REQ_KNOB_PROBE) != 0))
		requester_probe_anew(r, progress, now);
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
	requester_probe_follows(r, true, now);
	return n;
}
_Static_assert(AETH_ACK == 0, "the kind of a positive ACK");

/**
 * May the fast path take the READ response due at una, which p is to be? Then nothing comes of it
 * but that its data is placed, and requester_take_read(): no round trip ends with it, and what is
 * in flight was sent once.
 */
static ALWAYS_INLINE bool
requester_awaits_read(const struct requester *r, const struct wire_pkt *p)
{
	const uint32_t odd = requester_odd(r) | (p->psn.v ^ r->una.v) | (r->rtt_min == 0) |
			     (r->head == r->fresh);

	return LIKELY(odd == 0) && (r->timed_at == 0 || LIKELY(psn_cmp(r->timed, r->una) > 0)) &&
	       LIKELY(requester_slot(r, r->head)->opcode == WR_RDMA_READ);
}

/** Is it that, and the whole answer to a READ of one packet? */
static ALWAYS_INLINE bool
requester_fits_read(const struct requester *r, const struct wire_pkt *p)
{
	const struct requester_wr *w = requester_slot(r, r->head);

	return LIKELY(p->opcode == OP_RC_READ_RESPONSE_ONLY) &&
	       LIKELY((wire_ext(p)[0] & AETH_KIND_MASK) == 0) && requester_awaits_read(r, p) &&
	       LIKELY(w->len == p->payload_len) && LIKELY(p->payload_len != 0) &&
	       LIKELY(psn_eq(w->first, r->una)) && LIKELY(psn_eq(w->last, r->una));
}

/**
 * Is it that, and a part of the answer to a READ of several packets, of which nothing is kept?
 * @param offset out: of its data in the answer.
 */
static ALWAYS_INLINE bool
requester_fits_read_part(const struct requester *r, const struct wire_pkt *p, uint32_t *offset)
{
	const struct requester_wr *w = requester_slot(r, r->head);
	const bool first = psn_eq(r->una, w->first), last = psn_eq(r->una, w->last);
	uint8_t due = OP_RC_READ_RESPONSE_MIDDLE;

	if (UNLIKELY(!requester_awaits_read(r, p)) || UNLIKELY(first & last) ||
		UNLIKELY(w->imm != 0))
		return false;
	*offset = psn_distance(r->una, w->first) << __builtin_ctz(r->pmtu);
	if (first | last) {
		due = first ? OP_RC_READ_RESPONSE_FIRST : OP_RC_READ_RESPONSE_LAST;
		if (UNLIKELY((wire_ext(p)[0] & AETH_KIND_MASK) != 0))
			return false;
	}
	return LIKELY(p->opcode == due) &&
	       (last ? LIKELY(p->payload_len == w->len - *offset)
		     : LIKELY(p->payload_len == r->pmtu) && LIKELY(p->pad == 0));
}

/**
 * It is taken. r->deadline may have changed, as with REQACT_TIMER.
 * @return how many READs it ends, 0 or 1: the caller completes it.
 */
static ALWAYS_INLINE uint32_t
requester_take_read(struct requester *r, ns_t now)
{
	const uint32_t ends = psn_eq(r->una, requester_slot(r, r->head)->last);

	requester_answered(r, 1, ends);
	requester_timer_restart(r, now);
	requester_probe_follows(r, true, now);
	return ends;
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

/** PKT_SE of the last packet of a work request that is no READ. @param what requester_what(). */
static ALWAYS_INLINE uint8_t
requester_solicits(uint32_t what)
{
	return (what & SEND_SOLICITED << 8) != 0 && (what & UINT8_MAX) != WR_RDMA_WRITE ? PKT_SE
											: 0;
}

/* An opcode with an immediate, or without; that is the same but for this bit. */
#define REQUESTER_WHAT_IMM 1
/* A fault, a fence, or another opcode than WR_RDMA_WRITE (0) and WR_SEND. */
#define REQUESTER_WHAT_ODD (UINT8_MAX << 16 | SEND_FENCE << 8 | (UINT8_MAX & ~WR_SEND))
/* A READ has nothing else of these: no fault, no fence, nothing inline. */
#define REQUESTER_WHAT_READ (UINT8_MAX << 16 | (SEND_FENCE | SEND_INLINE) << 8 | UINT8_MAX)

/** What of a packet's headers its run knows. */
struct requester_start {
	psn_t psn;
	uint8_t flags; /* PKT_SE, PKT_MIGREQ */
	bool ask;      /* PKT_ACKREQ */
};

/** A packet of a message that may have several. */
struct requester_part {
	struct requester_start start;
	uint32_t offset; /* of its payload in the message */
	uint32_t len;
	bool last;
};

/**
 * Packets of a requester that are sent one after another, all for the first time while nothing
 * holds up: of SENDs and RDMA WRITEs (with immediate or not), or of READs that one packet answers
 * each. It is requester_next(), without a packet to fill. Between begin and end the requester stays
 * as it was, and nobody else may touch it.
 */
struct requester_run {
	psn_t psn;       /* of the next packet */
	uint32_t at;     /* its work request */
	uint32_t offset; /* its payload's in the message */
	uint32_t end;    /* one behind the last that may leave now; not of parts */
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

/**
 * A run begins. @param odd not 0: it is not for the fast path. @param most packets there are, or
 * more. @return packets at most.
 */
static ALWAYS_INLINE uint32_t
requester_run_open(
	const struct requester *r, struct requester_run *run, ns_t now, uint32_t odd, uint32_t most)
{
	const uint32_t flying = psn_distance(r->cur, r->una), used = flying - r->reply_psns + 1;

	odd |= r->waiting_rnr | r->dead | r->draining | r->failed | (r->knobs & REQ_KNOB_CREDITS);
	odd |= ~r->open;
	/* The last that the window lets out asks for a response: that is for the full path. */
	if (UNLIKELY(odd != 0) || UNLIKELY(used >= r->window) ||
		UNLIKELY(flying + 1 >= REQUESTER_PSNS_MAX))
		return 0;
	ASSERT(!r->patching);
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

/** @return packets at most; 0: none is for the fast path, and there is nothing to end. */
static ALWAYS_INLINE uint32_t
requester_run_begin(const struct requester *r, struct requester_run *run, ns_t now)
{
	return requester_run_open(r, run, now, r->sending ^ r->fresh, r->tail - r->sending);
}

/** The same where the first message may have begun: then the run goes on with it. */
static ALWAYS_INLINE uint32_t
requester_parts_begin(const struct requester *r, struct requester_run *run, ns_t now)
{
	uint32_t odd = r->sending == r->tail;
	uint32_t begun = 0, most;

	if (r->sending != r->fresh && odd == 0) {
		odd = ((r->sending + 1) ^ r->fresh) | (r->cur.v ^ r->next.v);
		begun = psn_distance(r->cur, requester_slot(r, r->sending)->first);
	}
	most = requester_run_open(r, run, now, odd, UINT32_MAX);
	if (most == 0)
		return 0;
	ASSERT(r->sending == r->fresh || begun != 0);
	run->offset = begun * r->pmtu;
	return most;
}

/** Is what is sent next a SEND or RDMA WRITE of several packets, or its rest? */
static ALWAYS_INLINE bool
requester_next_is_long(const struct requester *r)
{
	const struct requester_wr *w = requester_slot(r, r->sending);

	return w->len > r->pmtu && w->opcode <= WR_SEND_WITH_IMM;
}

/**
 * Packets of SENDs and RDMA WRITEs that are next and have room in the window, `most` and more as
 * that. Where losses have left less of it, there may be fewer: what is sent again is not counted.
 */
static inline uint32_t
requester_parts_wait(const struct requester *r, uint32_t most)
{
	const uint32_t shift = (uint32_t)__builtin_ctz(r->pmtu), flying = requester_in_flight(r);
	uint32_t n = 0;

	if (flying >= r->window)
		return 1;
	most = most < r->window - flying ? most : r->window - flying;
	if (!requester_is_free(r))
		return most;
	if (r->sending != r->fresh)
		n = psn_distance(requester_slot(r, r->fresh - 1)->last, r->cur) + 1;
	for (uint32_t at = r->fresh; at != r->tail && n < most; at++) {
		const struct requester_wr *w = requester_slot(r, at);

		if (w->opcode > WR_SEND_WITH_IMM)
			break;
		n += requester_psns_of(w->len, shift);
	}
	return n < most ? n : most;
}

/** Does the next packet ask? @param flags SEND_* of the work request that ends with it, or 0. */
static ALWAYS_INLINE bool
requester_run_asks(const struct requester_run *run, uint32_t flags, bool newest)
{
	return requester_must_ask(flags, newest, run->since, run->each) & run->acked;
}

/** One more packet of a run. @param ask it asks for a response. @param flags of the packet. */
static ALWAYS_INLINE void
requester_run_packet(
	struct requester_run *run, bool ask, uint8_t flags, struct requester_start *out)
{
	out->psn = run->psn;
	out->ask = ask;
	out->flags = run->migreq | flags;
	if (ask && run->flying >= run->timed_from && !run->times) {
		run->times = true;
		run->timed = run->psn;
	}
	run->asked += ask;
	run->since = ask ? 0 : run->since + 1;
	run->psn = psn_add(run->psn, 1);
	run->flying++;
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
	const uint32_t what = requester_what(w);
	const uint32_t odd = imm ? REQUESTER_WHAT_ODD & ~REQUESTER_WHAT_IMM : REQUESTER_WHAT_ODD;

	if (UNLIKELY((what & odd) != 0) || UNLIKELY(w->len - 1 >= run->pmtu))
		return false;
	ASSERT(run->at != run->end && run->flying < REQUESTER_PSNS_MAX);
	run->at++;
	requester_assign(w, run->psn, 1, run->stamp);
	requester_run_packet(run, requester_run_asks(run, what >> 8, run->at == run->tail),
		requester_solicits(what), out);
	return true;
}

/**
 * The next packet of a message that may have several, for as many as requester_parts_begin() says
 * and while run->at is not run->tail.
 * @return false: it is for the full path, and the run ends before it.
 */
static ALWAYS_INLINE bool
requester_run_part(struct requester_run *run, struct requester_wr *w, struct requester_part *out)
{
	const uint32_t what = requester_what(w), left = w->len - run->offset;
	const bool last = left <= run->pmtu;

	if (UNLIKELY((what & REQUESTER_WHAT_ODD & ~REQUESTER_WHAT_IMM) != 0) ||
		UNLIKELY(w->len - 1 >= VERBS_MESSAGE_MAX))
		return false;
	ASSERT(run->at != run->tail && run->flying < REQUESTER_PSNS_MAX);
	ASSERT(run->offset < w->len);
	if (run->offset == 0)
		requester_assign(w, run->psn,
			requester_psns_of(w->len, (uint32_t)__builtin_ctz(run->pmtu)), run->stamp);
	out->offset = run->offset;
	out->len = last ? left : run->pmtu;
	out->last = last;
	run->at += last;
	run->offset = last ? 0 : run->offset + run->pmtu;
	requester_run_packet(run,
		requester_run_asks(run, last ? what >> 8 : 0, last & (run->at == run->tail)),
		last ? requester_solicits(what) : 0, &out->start);
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
	requester_run_packet(run, true, 0, out);
	run->reads++;
	return true;
}

/** What was sent is in flight. May start the transport timer. */
static ALWAYS_INLINE void
requester_run_end(struct requester *r, const struct requester_run *run, ns_t now)
{
	ASSERT(run->at - r->sending <= psn_distance(run->psn, r->cur));
	requester_sent(r, run->at, run->at + (run->offset != 0), run->psn, true,
		run->acked ? run->since : 0);
	r->reads = (uint8_t)(r->reads + run->reads);
	ASSERT(run->reads == 0 || r->reads <= r->max_rd_atomic);
	if (run->times)
		requester_time_round(r, run->timed, now);
	if (run->asked == 0 || r->timing)
		return;
	requester_timer_start(r, now);
	requester_probe_follows(r, false, now);
}
_Static_assert(WR_RDMA_WRITE == 0 && WR_SEND == 2 && WR_SEND_WITH_IMM == 3 &&
		       WR_RDMA_WRITE_WITH_IMM == (WR_RDMA_WRITE | REQUESTER_WHAT_IMM) &&
		       WR_SEND_WITH_IMM == (WR_SEND | REQUESTER_WHAT_IMM),
	"bits of them are used");

#endif
