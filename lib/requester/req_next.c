/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next packet. New packets and resent ones are made the same way from the work request and
 * `cur`, so that a second copy cannot differ from the first but in AckReq (REQ-14).
 */
#include "requester_priv.h"

/* ---- one packet --------------------------------------------------------------------------------
 */

/** PSNs that the packet at `cur` uses: a READ those of all its responses still due. */
static ALWAYS_INLINE uint32_t
span_of(const struct requester *r, const struct requester_wr *w, const struct segment *s,
	bool starts)
{
	if (LIKELY(s->kind != SEGMENT_READ))
		return 1;
	if (UNLIKELY(r->holes) && !starts && req_piece(r, w).begin > psn_distance(r->cur, w->first))
		return req_piece(r, w).begin - psn_distance(r->cur, w->first);
	return starts ? requester_psns_of(w->len, (uint32_t)__builtin_ctz(r->pmtu))
		      : psn_distance(w->last, r->cur) + 1;
}

/**
 * Must this packet ask for a response (REQ-07)? It may be the last for now: the window counts
 * request packets, resent ones too; the limit on PSNs counts READ responses (REQ-13).
 */
static ALWAYS_INLINE bool
window_asks(const struct requester *r, uint32_t flying, uint32_t span)
{
	const uint32_t room = req_room(r);

	return (uint32_t)(flying + 1 >= room) |
	       (r->since_ackreq + 1u >= requester_asks_each(r, room)) |
	       (psn_distance(r->cur, r->una) + span >= PSNS_MAX);
}

/**
 * Bytes that the READ asks for: as much as is left, or what is missing before those kept. Beyond
 * them the answer to the request before is on its way.
 */
static ALWAYS_INLINE uint32_t
read_asks(const struct requester *r, const struct requester_wr *w, uint32_t offset)
{
	if (LIKELY(w->imm == 0) || req_piece(r, w).begin <= psn_distance(r->cur, w->first))
		return w->len - offset;
	return (req_piece(r, w).begin << __builtin_ctz(r->pmtu)) - offset;
}

/** A READ or ATOMIC went out. */
static __attribute__((noinline)) void
sent_read(struct requester *r, struct requester_wr *w, uint32_t span, bool starts, ns_t now)
{
	r->reads += starts;
	r->reply_psns += span - (psn_eq(r->cur, w->first) || psn_eq(r->cur, r->una));
	w->sent_at = requester_stamp(now);
	if (starts && is_read(w))
		requester_read_begins(w);
	if (!psn_eq(r->cur, w->first) || (is_read(w) && w->imm != 0)) { /* REQ-IMPL-04 */
		w->resumed += w->resumed < UINT8_MAX;
		r->asked = r->cur;
	}
}

/** How a packet comes about. Constants at each call, so that the compiler sorts the cases out. */
enum {
	EMIT_START = BIT32(0), /* the first packet of the work request, never sent before */
	EMIT_DATA = BIT32(1),  /* SEND or WRITE */
	EMIT_ASK = BIT32(2),   /* a response is wanted whatever the packet */
};

/** Fill *out and move on. */
static ALWAYS_INLINE void
emit(struct requester *r, struct requester_wr *w, const struct segment *s, uint32_t how, ns_t now,
	struct requester_packet *out)
{
	bool starts = (how & EMIT_START) != 0, data = (how & EMIT_DATA) != 0;
	uint32_t shift = (uint32_t)__builtin_ctz(r->pmtu), position = r->sending;
	uint32_t offset = starts ? 0 : psn_distance(r->cur, w->first) << shift;
	uint32_t left = w->len - offset, span = data ? 1 : span_of(r, w, s, starts);
	bool last = !data | (left <= r->pmtu), ask = data & ((how & EMIT_ASK) != 0);
	uint32_t len = !data ? s->bytes : last ? left : r->pmtu;
	psn_t at = r->cur;
	bool resend = !starts && !psn_eq(at, r->next);
	uint8_t flags = requester_migreq(r);

	if (data) {
		if (last && (w->flags & SEND_SOLICITED) != 0)
			flags |= s->se;
		ask |= requester_must_ask(last ? w->flags : 0,
			last & ((position + 1 == r->tail) | r->draining), r->since_ackreq,
			r->ackreq_interval);
		ask &= is_acked(r);
		flags |= ask ? PKT_ACKREQ : 0;
	} else {
		flags |= PKT_ACKREQ; /* of no effect: answered in any case */
	}

	ASSERT(offset <= w->len && len <= r->pmtu && offset + len <= w->len);
	ASSERT(starts || psn_between(at, w->first, w->last));
	*out = (struct requester_packet){ .position = position,
		.offset = offset,
		.len = (uint16_t)len,
		.opcode = wire_opcode_on(
			r->transport, s->op[(offset == 0 ? AT_FIRST : 0) | (last ? AT_LAST : 0)]),
		.flags = flags,
		.pad = (uint8_t)(-len & 3),
		.resend = resend,
		.psn = at,
		.va = w->remote_addr + offset,
		.rkey = w->rkey,
		.dma_len = s->kind == SEGMENT_READ && !starts ? read_asks(r, w, offset) : left,
		.imm = w->imm };

	if (starts) {
		const uint32_t psns =
			s->kind == SEGMENT_ATOMIC ? 1 : requester_psns_of(w->len, shift);

		requester_assign(w, at, psns, requester_stamp(now));
	}
	if (!data)
		sent_read(r, w, span, starts, now);

	if (UNLIKELY(r->holes) && !data && !starts)
		last = psn_eq(psn_add(at, span - 1), w->last);
	requester_sent(r, position + last, starts ? position + 1 : r->fresh, psn_add(at, span),
		starts || psn_eq(at, r->next),
		(ask | !data | !is_acked(r)) ? 0 : r->since_ackreq + 1u);
}

/** A packet that asks for a response leaves: the timer runs from the first one on (TMR-05). */
static ALWAYS_INLINE void
ask_timer(struct requester *r, ns_t now)
{
	if (r->timing)
		return;
	requester_timer_start(r, now);
	if (UNLIKELY(req_probes(r)))
		req_probe_arm(r, now);
}

/**
 * Sending stops, maybe for long. If the newest packet in flight went out without AckReq, in the
 * hope of one behind it, send it once more to be told about it (REQ-07).
 */
static __attribute__((noinline)) enum requester_stop
stop(struct requester *r, enum requester_stop why, ns_t now, struct requester_packet *out)
{
	struct requester_wr *w;

	if (why == REQ_FENCED || why == REQ_READ_LIMIT)
		return why; /* a READ is outstanding */
	if (LIKELY(r->since_ackreq == 0 || psn_eq(r->cur, r->una)))
		return why;
	if (r->sending == r->fresh || psn_eq(r->cur, requester_slot(r, r->sending)->first))
		r->sending--;
	w = requester_slot(r, r->sending);
	if (requester_is_read_or_atomic(w)) { /* its own response is owed */
		r->sending++;
		r->since_ackreq = 0;
		return why;
	}
	r->cur = psn_sub(r->cur, 1);
	w->sent_at = requester_stamp(now);
	w->resumed = 1;
	emit(r, w, segment_of(w), EMIT_DATA | EMIT_ASK, now, out);
	ask_timer(r, now);
	return REQ_SEND;
}

/** Room in the window? Then the packet at `cur`. */
static ALWAYS_INLINE enum requester_stop
send(struct requester *r, struct requester_wr *w, const struct segment *s, uint32_t how, ns_t now,
	struct requester_packet *out)
{
	bool data = (how & EMIT_DATA) != 0;
	uint32_t flying = requester_in_flight(r);
	uint32_t span = data ? 1 : span_of(r, w, s, (how & EMIT_START) != 0);

	/* Losses are the responses' too: then those of a READ count with its request. */
	if (!data && !requester_is_free(r))
		flying = req_flying(r);
	if (UNLIKELY(flying >= req_room(r) && flying != 0) ||
		UNLIKELY(psn_distance(r->cur, r->una) + span > PSNS_MAX))
		return stop(r, REQ_WINDOW, now, out);
	emit(r, w, s, how | (window_asks(r, flying, span) ? EMIT_ASK : 0), now, out);
	if (r->since_ackreq == 0 && LIKELY(is_acked(r))) {
		ask_timer(r, now);
		if (psn_distance(out->psn, r->una) >= requester_timed_from(r) &&
			(!out->resend || (r->rtt_min == 0 && !r->recovering)) &&
			(!r->patched | r->holes))
			requester_time_round(r, out->psn, now);
	}
	return REQ_SEND;
}

/**
 * Ask for the READ responses that are missing at una, or send the request at una that is missing.
 * Nothing else is sent again.
 */
static __attribute__((noinline)) enum requester_stop
send_patch(struct requester *r, ns_t now, struct requester_packet *out)
{
	struct requester_wr *w = requester_slot(r, r->head);
	const struct segment *s = segment_of(w);
	const uint32_t sending = r->sending, reply_psns = r->reply_psns;
	const uint8_t since = r->since_ackreq;
	const psn_t cur = r->cur;

	r->cur = r->una;
	r->sending = r->head;
	emit(r, w, s, s->kind == SEGMENT_DATA ? EMIT_DATA | EMIT_ASK : 0, now, out);
	r->cur = cur;
	r->sending = sending;
	r->reply_psns = reply_psns;
	r->since_ackreq = since;
	r->patching = false;
	r->patched = true;
	r->anew = false;
	r->recovering = true;
	r->recover = r->next;
	requester_timer_start(r, now);
	req_probe_arm(r, now);
	return REQ_SEND;
}

/** Start a work request, go on with one, or send one again. */
static ALWAYS_INLINE enum requester_stop
next_packet(struct requester *r, ns_t now, struct requester_packet *out)
{
	bool starts = r->sending == r->fresh;
	struct requester_wr *w = requester_slot(r, r->sending);
	const struct segment *s = segment_of(w);
	enum requester_stop why = REQ_SEND;

	if (starts)
		why = req_may_start(r, w);
	else if (r->failed && r->sending == r->failed_at)
		why = REQ_FAULT;
	if (why != REQ_SEND)
		return stop(r, why, now, out);
	if (s->kind == SEGMENT_DATA)
		return send(r, w, s, EMIT_DATA | (starts ? EMIT_START : 0), now, out);
	return send(r, w, s, starts ? EMIT_START : 0, now, out);
}

static ALWAYS_INLINE enum requester_stop
next(struct requester *r, ns_t now, struct requester_packet *out)
{
	if (UNLIKELY(r->waiting_rnr | r->dead)) {
		if (r->dead)
			return REQ_FAULT;
		if (now < r->deadline)
			return REQ_RNR_WAIT;
		r->waiting_rnr = false;
	}
	if (UNLIKELY(r->holes | r->patching)) {
		if (r->patching)
			return send_patch(r, now, out);
		while (req_skip(r)) {
		}
	}
	if (UNLIKELY(r->sending == r->tail))
		return stop(r, r->draining ? REQ_DRAINED : REQ_IDLE, now, out);
	return next_packet(r, now, out);
}

enum requester_stop
requester_next(struct requester *r, ns_t now, struct requester_packet *out)
{
	enum requester_stop why;

	req_check_state(r);
	why = next(r, now, out);
	req_check_state(r);
	ASSERT(why != REQ_SEND || out->len <= r->pmtu);
	ASSERT(why != REQ_SEND || psn_distance(out->psn, r->una) < psn_distance(r->next, r->una));
	return why;
}
