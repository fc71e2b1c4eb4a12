/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses of a READ that come behind one that is missing, with req.read_gap=fill: those of one
 * piece are placed and kept, and the resend asks for what is missing before it alone. One piece of
 * the oldest READ is all that is kept. What lies beyond that READ is asked for again as ever, for a
 * peer reads memory in the order of the READs, and data of a later one may not be older.
 *
 * What was kept stays kept whatever happens next: it is the READ's data, and the peer may answer
 * each of the requests that were sent, the one for the missing part with a LAST in mid-stream.
 */
#include "requester_priv.h"

/** Is it the response to this place, in any of the ways in which a stream may go on there? */
static bool
is_whole(const struct requester *r, const struct requester_wr *w, const struct wire_pkt *p)
{
	const uint32_t offset = psn_distance(p->psn, w->first) << __builtin_ctz(r->pmtu);
	const bool end = psn_eq(p->psn, w->last);
	const uint32_t due = end ? w->len - offset : r->pmtu;

	if (!op_has(p->op, end ? OPF_LAST | OPF_ONLY : OPF_FIRST | OPF_MIDDLE) ||
		p->payload_len != due || (!end && p->pad != 0))
		return false;
	return !op_has(p->op, OPF_AETH) ||
	       req_syndrome_kind(r, wire_aeth(p).syndrome) == SYNDROME_ACK;
}

enum req_kept
req_keep(struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v)
{
	struct requester_wr *w = requester_slot(r, r->head);
	const uint32_t at = psn_distance(p->psn, w->first);
	struct req_piece k;
	bool begins;

	if ((r->knobs & REQ_KNOB_READ_FILL) == 0 || !is_read(w) ||
		!psn_between(p->psn, r->una, w->last) || at >= REQ_PIECE_MAX || !is_whole(r, w, p))
		return KEPT_NOTHING;
	k = req_piece(w);
	begins = k.end == 0;
	if (begins)
		k = (struct req_piece){ at, at + 1 };
	else if (at == k.end)
		k.end++;
	else if (at + 1 == k.begin)
		k.begin--;
	else
		return at >= k.begin ? KEPT_BEFORE : KEPT_NOTHING;
	ASSERT(k.begin > psn_distance(r->una, w->first) && k.begin < k.end);
	w->imm = k.begin << 16 | k.end;
	v->act |= REQACT_PLACE;
	v->rule = REQRULE_READ_KEPT;
	v->position = r->head;
	v->offset = at << __builtin_ctz(r->pmtu);
	if (r->timing && !r->doubting) { /* TMR-06 */
		requester_timer_restart(r, now);
		if (!requester_is_free(r))
			req_probe_arm(r, now);
		v->act |= REQACT_TIMER;
	}
	return begins ? KEPT_FIRST : KEPT_MORE;
}

uint32_t
req_piece_joins(struct requester_wr *w, psn_t at)
{
	const struct req_piece k = req_piece(w);

	if (k.end == 0 || psn_distance(at, w->first) != k.begin)
		return 0;
	w->imm = 0;
	return k.end - k.begin;
}
