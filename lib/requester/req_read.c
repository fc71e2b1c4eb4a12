/* SPDX-License-Identifier: BSD-3-Clause */
/* READ and ATOMIC responses, and what looks like them: each must be the one due at una. */
#include "requester_priv.h"

void
req_bad_response(
	struct requester *r, enum requester_rule rule, uint8_t fatal, struct requester_verdict *v)
{
	v->rule = (uint16_t)rule;
	v->fault = FAULT_BAD_RESPONSE;
	fail_head(r, v, WC_BAD_RESP_ERR, fatal);
}

/**
 * May a response of this opcode stand at una? After a part-way resend the responder starts again
 * with FIRST (ONLY), or goes on with MIDDLE (LAST): REQ-IMPL-09.
 */
static bool
position_fits(const struct requester *r, const struct requester_wr *w, opflags_t op)
{
	bool end = psn_eq(r->una, w->last);
	uint32_t opens = end ? OPF_ONLY : OPF_FIRST;
	uint32_t continues = end ? OPF_LAST : OPF_MIDDLE;

	if (is_read(w) && req_meets_piece(r, w, r->una)) { /* the request may have ended here */
		opens |= OPF_ONLY;
		continues |= OPF_LAST;
	}
	if (w->resumed != 0 && (psn_eq(r->una, r->asked) || (r->knobs & REQ_KNOB_READ_KEEP) != 0))
		return op_has(op, opens | continues);
	if (psn_eq(r->una, w->first))
		return op_has(op, opens);
	return op_has(op, continues);
}

/** Data must be an ACK's kind; NAK and RNR come as ACKNOWLEDGE only (REQ-CLS-B-02). */
static bool
syndrome_fits(struct requester *r, const struct wire_pkt *p, struct requester_verdict *v)
{
	if (!op_has(p->op, OPF_AETH))
		return true;
	switch (req_syndrome_kind(r, wire_aeth(p).syndrome)) {
	case SYNDROME_ACK:
		return true;
	case SYNDROME_RESERVED:
		req_bad_response(r, REQRULE_BAD_SYNDROME, FATAL_BAD_AETH, v);
		v->fault = FAULT_AETH;
		return false;
	default:
		req_bad_response(r, REQRULE_READ_SYNDROME, FATAL_UNEXPECTED_RESPONSE, v);
		return false;
	}
}

/** FATAL code of a response of the wrong length, or 0. */
static uint8_t
length_fault(const struct requester *r, const struct requester_wr *w, const struct wire_pkt *p,
	uint32_t offset)
{
	if (op_has(p->op, OPF_FIRST | OPF_MIDDLE))
		return p->payload_len == r->pmtu && p->pad == 0 ? 0 : FATAL_READ_MIDDLE_LENGTH;
	if (p->payload_len == (req_meets_piece(r, w, r->una) ? r->pmtu : w->len - offset))
		return 0;
	return op_has(p->op, OPF_LAST) ? FATAL_READ_LAST_LENGTH : FATAL_READ_LENGTH;
}

/** May a response that others have overtaken be late, and not lost (req.reorder)? */
static inline bool
waits_for_late(const struct requester *r)
{
	return (r->knobs >> REQ_KNOB_REORDER_SHIFT & REQ_KNOB_REORDER_MASK) > 1 && !r->recovering;
}

/**
 * With `fill`: was a response not kept because it is behind a second gap? Then it is heard of. It
 * may be of an older answer, and yet the last sign that something is missing where no timer runs.
 */
static inline void
behind_another(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v)
{
	const struct requester_wr *w = requester_slot(r, r->head);

	if (psn_distance(p, w->first) < req_piece(r, w).end || psn_cmp(p, r->heard) <= 0)
		return;
	r->heard = p;
	if (r->timeout == 0)
		req_overtaken(r, p, now, v);
}

/**
 * With `fill`: is it kept behind the piece, while what is missing before that has been asked for?
 * Where the peer answers that first, the response at una is lost once more; else it comes later.
 * Which it is nobody can tell, and where no timer runs this may be the last response.
 */
static inline bool
is_last_sign(const struct requester *r, enum req_kept kept)
{
	return r->timeout == 0 && r->recovering && kept == KEPT_MORE;
}

/**
 * With `fill`: does it lie in front of the piece that is kept, or has it just become its first?
 * Older requests had all in front of the piece answered before it. So this answers the one for the
 * missing part, and the response at una has not come before it.
 */
static inline bool
is_of_missing_part(const struct requester *r, const struct wire_pkt *p, enum req_kept kept)
{
	const struct requester_wr *w = requester_slot(r, r->head);
	const uint32_t at = psn_distance(p->psn, w->first);

	return r->recovering && (kept == KEPT_BEFORE || kept == KEPT_MORE) &&
	       at < req_piece(r, w).begin + (kept == KEPT_MORE);
}

/** A response beyond the one due at una, which may be lost, or late (req.reorder). */
static void
beyond(struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v)
{
	const enum req_kept kept = op_has(p->op, OPF_READ) ? req_keep(r, p, now, v) : KEPT_NOTHING;
	const uint32_t most = r->knobs >> REQ_KNOB_REORDER_SHIFT & REQ_KNOB_REORDER_MASK;
	bool lost = kept == KEPT_NOTHING || kept == KEPT_FIRST;

	if (kept != KEPT_NOTHING && (r->knobs & REQ_KNOB_READ_KEEP) != 0)
		req_hole(r, p->psn, now, v);
	else if (kept == KEPT_BEFORE && r->implied)
		behind_another(r, p->psn, now, v);
	if ((r->knobs & REQ_KNOB_READ_KEEP) == 0 &&
		(is_of_missing_part(r, p, kept) || is_last_sign(r, kept)))
		req_overtaken(r, p->psn, now, v);
	if (kept == KEPT_BEFORE && v->act == 0)
		verdict_drop(v, REQRULE_UNMATCHED_DATA);
	if (kept == KEPT_BEFORE || (kept != KEPT_NOTHING && (r->knobs & REQ_KNOB_READ_KEEP) != 0))
		return;
	if (waits_for_late(r) && kept != KEPT_NOTHING) {
		const struct req_piece k = req_piece(r, requester_slot(r, r->head));

		lost = k.end - k.begin >= most;
		if (kept == KEPT_FIRST)
			req_overtaken(r, p->psn, now, v);
	}
	if (lost)
		req_implied_nak(r, p->psn, BEYOND_DATA, REQRULE_IMPLIED_DATA, now, v);
}

/** What lies below is acknowledged; is this packet the one due? */
static bool
is_due(struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v)
{
	switch (req_acknowledge(r, p->psn, now, v)) {
	case REACH_READ:
		beyond(r, p, now, v);
		return false;
	case REACH_FAULT:
		return false;
	case REACH_ALL:
		break;
	}
	return !fault_is_due(r);
}

/** One of two that were overtaken was late: the other one is missing from now on. */
static __attribute__((noinline)) void
still_missing(struct requester *r, ns_t now, struct requester_verdict *v)
{
	const uint16_t rule = v->rule;

	req_overtaken(r, r->una, now, v);
	v->rule = rule;
}

/**
 * PSNs that the response at una acknowledges, with those kept behind it, and the work requests that
 * end with them.
 */
static uint32_t
reaches(const struct requester *r, struct requester_wr *w, uint32_t *wrs)
{
	uint32_t psns = 1;
	psn_t at = psn_add(r->una, 1);

	*wrs = 0;
	for (;;) {
		uint32_t more = is_read(w) && UNLIKELY(w->imm != 0) ? req_piece_joins(r, w, at) : 0;

		psns += more;
		at = psn_add(at, more);
		if (psn_cmp(at, w->last) <= 0)
			return psns;
		++*wrs;
		if (LIKELY(!r->holes) || r->head + *wrs == r->fresh ||
			(r->failed && r->head + *wrs == r->failed_at))
			return psns;
		w = requester_slot(r, r->head + *wrs);
		if (!is_read(w))
			return psns;
	}
}

/** The response at una was taken. */
static void
take(struct requester *r, struct requester_wr *w, ns_t now, struct requester_verdict *v)
{
	const psn_t from = r->una;
	uint32_t wrs;
	const uint32_t psns = reaches(r, w, &wrs);

	ASSERT(r->reads != 0 && psn_between(from, w->first, w->last));
	v->act |= wrs != 0 ? REQACT_COMPLETE : 0;
	v->completed += wrs;
	if (UNLIKELY(r->rtt_min == 0) && !r->recovering)
		r->rtt_min = 1 + requester_age(w->sent_at, now);
	requester_answered(r, psns, wrs);
	req_moved(r, from, now, v);
	if (UNLIKELY(r->holes))
		req_hole_filled(r, psns != 1 || wrs != 0, now, v);
	if ((UNLIKELY(r->holes) || (UNLIKELY(w->imm != 0) && is_read(w))) && wrs == 0 &&
		!r->patching && waits_for_late(r))
		still_missing(r, now, v);
}

/** Does the place in the stream fit, and the syndrome? If not, the verdict says so. */
static bool
head_fits(struct requester *r, const struct requester_wr *w, const struct wire_pkt *p,
	struct requester_verdict *v)
{
	if (!position_fits(r, w, p->op)) {
		bool single = psn_eq(w->first, w->last) && op_has(p->op, OPF_LAST);

		req_bad_response(r, single ? REQRULE_LAST_FOR_ONLY : REQRULE_BAD_POSITION,
			single ? FATAL_LAST_FOR_ONLY : FATAL_UNEXPECTED_RESPONSE, v);
		return false;
	}
	return syndrome_fits(r, p, v);
}

/** A READ response where no READ is due: right for what is answered by one without data alone. */
static __attribute__((noinline)) void
empty_response(struct requester *r, struct requester_wr *w, const struct wire_pkt *p, ns_t now,
	struct requester_verdict *v)
{
	if (!is_placement(w)) {
		req_bad_response(r, REQRULE_BAD_KIND, FATAL_RESPONSE_OPCODE, v);
		return;
	}
	if (!head_fits(r, w, p, v))
		return;
	if (p->payload_len != 0) {
		v->rule = REQRULE_READ_LENGTH;
		v->fault = FAULT_PAYLOAD_LEN;
		fail_head(r, v, WC_LOC_LEN_ERR, FATAL_READ_LENGTH);
		return;
	}
	v->rule = REQRULE_PLACEMENT;
	take(r, w, now, v);
}

/**
 * The missing part is there. If a response behind those kept had come, which cannot be kept as
 * well, the one that is due now is lost. Otherwise the rest may be on its way: some peers answer
 * the request for the part after all that they had to send before, some in the order of PSNs.
 */
static __attribute__((noinline)) void
part_ends(struct requester *r, const struct requester_wr *w, struct requester_verdict *v)
{
	if (!psn_between(r->una, w->first, w->last) || psn_eq(r->cur, r->una) ||
		psn_cmp(r->heard, r->una) <= 0)
		return;
	r->implied = true;
	req_retry(r, QC_IMPLIED_NAK, REQRULE_IMPLIED_DATA, v);
}

void
req_read_response(
	struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v)
{
	struct requester_wr *w;
	uint32_t offset;
	uint8_t fatal;
	bool part, told;

	if (!is_due(r, p, now, v))
		return;
	w = requester_slot(r, r->head);
	if (UNLIKELY(!is_read(w))) {
		empty_response(r, w, p, now, v);
		return;
	}
	if (!head_fits(r, w, p, v))
		return;
	offset = psn_distance(r->una, w->first) << __builtin_ctz(r->pmtu);
	fatal = length_fault(r, w, p, offset);
	if (fatal != 0) {
		v->rule = REQRULE_READ_LENGTH;
		v->fault = op_has(p->op, OPF_FIRST | OPF_MIDDLE) && p->pad != 0 ? FAULT_PAD
										: FAULT_PAYLOAD_LEN;
		fail_head(r, v, WC_LOC_LEN_ERR, fatal);
		return;
	}
	part = op_has(p->op, OPF_LAST | OPF_ONLY) && !psn_eq(p->psn, w->last);
	told = r->implied; /* `heard` is of a response beyond una */
	v->rule = REQRULE_READ_DATA;
	v->act |= p->payload_len != 0 ? REQACT_PLACE : 0;
	v->position = r->head;
	v->offset = offset;
	take(r, w, now, v);
	if (UNLIKELY(part & told) && (r->knobs & REQ_KNOB_READ_KEEP) == 0)
		part_ends(r, w, v);
}

void
req_atomic_response(
	struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v)
{
	struct requester_wr *w;

	if (!is_due(r, p, now, v))
		return;
	w = requester_slot(r, r->head);
	if (!verbs_wr_is_atomic(w->opcode)) {
		req_bad_response(r, REQRULE_BAD_KIND, FATAL_RESPONSE_OPCODE, v);
		return;
	}
	if (!syndrome_fits(r, p, v))
		return;
	v->rule = REQRULE_ATOMIC_RESULT;
	v->act |= REQACT_ATOMIC;
	v->position = r->head;
	v->original = wire_atomicack(p);
	take(r, w, now, v);
}
