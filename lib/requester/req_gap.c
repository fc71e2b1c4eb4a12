/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses of a READ that come behind one that is missing, with req.read_gap=fill: those of one
 * piece are placed and kept, and the resend asks for what is missing before it alone. One piece of
 * the oldest READ is all that is kept. What lies beyond that READ is asked for again as ever, for a
 * peer reads memory in the order of the READs, and data of a later one may not be older.
 *
 * With req.read_gap=keep those of later READs are kept, too: of each all that came without a gap,
 * and one piece behind. Then nothing is sent again but a request for the responses missing at
 * una, a patch, which leaves `cur` where it is. The next gap has its patch when the one before is
 * filled: ascending, one at a time, as a peer may take requests for parts of READs that it has
 * answered. What came before the patch was sent says nothing of it; a response to a request that
 * was sent behind it says that it is lost, and silence leads to a probe.
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

/** The READ that the PSN beyond una is of: the oldest, or with `keep` one behind READs alone. */
static struct requester_wr *
read_of(const struct requester *r, psn_t p, uint32_t *position)
{
	const uint32_t end = (r->knobs & REQ_KNOB_READ_KEEP) != 0 ? r->fresh : r->head + 1;

	for (uint32_t i = r->head; i != end; i++) {
		struct requester_wr *w = requester_slot(r, i);

		if (!is_read(w) || (r->failed && i == r->failed_at))
			return NULL;
		*position = i;
		if (psn_cmp(p, w->last) <= 0)
			return w;
	}
	return NULL;
}

/** What was kept of the READ is this from now on. */
static void
put(const struct requester *r, struct requester_wr *w, struct req_piece k)
{
	ASSERT(k.end == 0 || (k.upto < k.begin && k.begin < k.end));
	w->imm = (r->knobs & REQ_KNOB_READ_KEEP) != 0
			 ? k.upto << 2 * REQ_KEEP_BITS | k.begin << REQ_KEEP_BITS | k.end
			 : k.begin << 16 | k.end;
}

/** The response at this place joins what is there. @return false: it is there, or cannot. */
static bool
grow(struct req_piece *k, uint32_t at)
{
	if (at == k->upto) { /* never of the oldest READ: una is in it */
		k->upto++;
		if (k->upto == k->begin)
			*k = (struct req_piece){ .upto = k->end };
		return true;
	}
	if (at < k->upto)
		return false;
	if (k->end == 0)
		k->begin = k->end = at;
	if (at == k->end) {
		k->end++;
		return true;
	}
	if (at + 1 != k->begin)
		return false;
	k->begin--;
	return true;
}

enum req_kept
req_keep(struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v)
{
	const bool all = (r->knobs & REQ_KNOB_READ_KEEP) != 0;
	uint32_t position = 0, at;
	struct requester_wr *w;
	struct req_piece k;
	bool begins;

	if ((r->knobs & REQ_KNOB_READ_FILL) == 0)
		return KEPT_NOTHING;
	w = read_of(r, p->psn, &position);
	if (w == NULL)
		return KEPT_NOTHING;
	at = psn_distance(p->psn, w->first);
	if (at >= (all ? REQ_KEEP_MAX : REQ_PIECE_MAX) || !is_whole(r, w, p))
		return KEPT_NOTHING;
	k = req_piece(r, w);
	begins = w->imm == 0;
	if (!grow(&k, at))
		return KEPT_BEFORE;
	put(r, w, k);
	v->act |= REQACT_PLACE;
	v->rule = REQRULE_READ_KEPT;
	v->position = position;
	v->offset = at << __builtin_ctz(r->pmtu);
	if (r->timing && !r->doubting) { /* TMR-06 */
		requester_timer_restart(r, now);
		if (req_probes(r))
			req_probe_arm(r, now);
		v->act |= REQACT_TIMER;
	}
	return begins ? KEPT_FIRST : KEPT_MORE;
}

uint32_t
req_piece_joins(const struct requester *r, struct requester_wr *w, psn_t at)
{
	const uint32_t from = psn_distance(at, w->first);
	struct req_piece k = req_piece(r, w);
	uint32_t to = from;

	if (from == 0) {
		to = k.upto;
		k.upto = 0;
	}
	if (k.end != 0 && to == k.begin) {
		to = k.end;
		k.begin = k.end = 0;
	}
	if (to != from)
		put(r, w, k);
	return to - from;
}

/* ---- with `keep` ----------------------------------------------------------------------------- */

void
req_hole(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v)
{
	const uint32_t most = r->knobs >> REQ_KNOB_REORDER_SHIFT & REQ_KNOB_REORDER_MASK;
	const bool first = !r->holes;

	if (first || psn_cmp(p, r->heard) > 0)
		r->heard = p;
	r->holes = true;
	if (psn_eq(r->cur, r->una) || r->patching) /* what is missing is asked for anyway */
		return;
	if (r->patched && psn_cmp(p, r->recover) < 0) { /* this was asked for before that */
		if (r->timeout == 0)
			req_overtaken(r, p, now, v);
		return;
	}
	if (most > 1 && !r->recovering && psn_distance(r->heard, r->una) < most) {
		if (first)
			req_overtaken(r, p, now, v);
		return;
	}
	req_implied_nak(r, p, BEYOND_DATA, REQRULE_IMPLIED_DATA, now, v);
}

static void
patch(struct requester *r, struct requester_verdict *v)
{
	r->patching = true;
	r->patched = false;
	r->timing = false; /* it begins anew with the request */
	r->doubting = false;
	r->probing = 0;
	v->act |= REQACT_RESEND | REQACT_TIMER;
}

bool
req_patch(struct requester *r, enum requester_rule rule, struct requester_verdict *v)
{
	if (!r->holes || psn_eq(r->cur, r->una) || psn_cmp(r->heard, r->una) < 0 ||
		(rule != REQRULE_IMPLIED_DATA && rule != REQRULE_IMPLIED_WAITED))
		return false;
	/* What acknowledges anything else is not kept. */
	for (uint32_t i = r->head; i != r->fresh; i++)
		if (!is_read(requester_slot(r, i)))
			return false;
	patch(r, v);
	return true;
}

void
req_hole_filled(struct requester *r, bool joined, ns_t now, struct requester_verdict *v)
{
	if (!joined || !r->holes)
		return;
	r->patching = false;
	r->patched = false;
	if (psn_cmp(r->heard, r->una) < 0) {
		r->holes = false;
		if (r->probing && !req_probes(r)) {
			r->probing = 0;
			requester_timer_restart(r, now);
		}
	} else if (!psn_eq(r->cur, r->una) && !r->failed &&
		   (!r->anew || psn_cmp(r->heard, r->recover) >= 0)) {
		req_retry(r, QC_IMPLIED_NAK, REQRULE_IMPLIED_DATA, v);
	}
}

bool
req_skip(struct requester *r)
{
	const struct requester_wr *w = requester_slot(r, r->sending);
	struct req_piece k;
	uint32_t at, to;

	if (r->sending == r->fresh || !is_read(w) || w->imm == 0)
		return false;
	if (r->failed && r->sending == r->failed_at) /* nothing from there on leaves any more */
		return false;
	k = req_piece(r, w);
	at = psn_distance(r->cur, w->first);
	to = at < k.upto ? k.upto : at >= k.begin && at < k.end ? k.end : at;
	if (to == at)
		return false;
	r->reply_psns += to - at - psn_eq(r->cur, w->first);
	r->cur = psn_add(w->first, to);
	r->sending += psn_cmp(r->cur, w->last) > 0;
	return true;
}

/* ---- with req.gap=patch ----------------------------------------------------------------------
 *
 * A peer that keeps what came behind a missing request (resp.gap=keep) needs that one alone. It
 * takes the others then, and says so, or it names the next one that is missing. A peer that keeps
 * nothing takes the one and names the next: where a patch brings no more than its own packet, what
 * the next NAK or probe leads to is going back. Of two packets in a row that are lost the first
 * brings no more, too; so where a patch has brought more before, it takes two. At a READ or ATOMIC
 * it is going back in any case: what is known of its answer (REQ-IMPL) begins with the request.
 *
 * Such a try costs a round trip and what is in flight, so a peer that never keeps anything sees few
 * of them: after the first in vain the next loss is patched, too, then one loss is not, then three,
 * seven, fifteen. A patch that brings more ends that.
 */

#define IN_VAIN_MOST 5 /* 2^(5 - 1) - 1 losses: as many as `unpatched` holds */

bool
requester_goes_back(const struct requester *r)
{
	return !r->holes &&
	       ((r->knobs & REQ_KNOB_PATCH) == 0 || req_was_in_vain(r) || r->unpatched != 0);
}

bool
req_peer_keeps(const struct requester *r)
{
	return !requester_goes_back(r) && !r->holes && r->head != r->fresh &&
	       segment_of(requester_slot(r, r->head))->kind == SEGMENT_DATA;
}

void
req_not_patched(struct requester *r)
{
	if (req_was_in_vain(r)) {
		r->in_vain += r->in_vain < IN_VAIN_MOST;
		r->unpatched = (1u << (r->in_vain - 1)) - 1;
	} else if (r->unpatched != 0) {
		r->unpatched--;
	}
}

bool
req_patch_request(struct requester *r, struct requester_verdict *v)
{
	if (!req_peer_keeps(r)) {
		req_not_patched(r);
		return false;
	}
	if (psn_eq(r->cur, r->una))
		return false;
	patch(r, v);
	return true;
}
