/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a PSN acknowledges, and what follows when the oldest unacknowledged PSN moves. */
#include "requester_priv.h"

/**
 * What losses of late have left: the window, the probe, the resend under way.
 * @param patches constant; false: nothing is kept, patched or doubted.
 */
static ALWAYS_INLINE void
moved_lossy(struct requester *r, psn_t from, bool patches)
{
	const uint32_t psns = psn_distance(r->una, from);

	if (!patches) {
		ASSERT(!(r->holes | r->patching | r->patched | r->doubting));
		r->alone = 0; /* as req_patch_brought() */
	} else {
		r->doubting = false;
		if (!r->holes) { /* req.gap=patch */
			req_patch_brought(r, psns);
			r->patching = false;
			r->patched = false;
		}
	}
	r->probing = 0;
	r->probes = 0;
	if ((r->recovering | r->anew) && psns >= psn_distance(r->recover, from)) {
		r->recovering = false;
		r->anew = false;
	}
	if (!requester_is_free(r))
		req_pace_progress(r, psns);
}

/** `cur` was overtaken, an RNR wait ends early, responses are kept or patched, or SQD is on. */
static __attribute__((noinline)) void
moved_rarely(struct requester *r, psn_t from, bool overtaken, struct requester_verdict *v)
{
	if (overtaken) { /* REQ-17: the rest is resent from here on */
		req_overtook(r, v);
		r->cur = r->una;
		r->sending = r->head;
		r->reply_psns = 0;
		r->since_ackreq = 0;
	}
	moved_lossy(r, from, true);
	if (r->waiting_rnr) {
		r->waiting_rnr = false;
		v->act |= REQACT_RESEND;
	}
	if (r->draining && r->head == r->fresh) /* QP-09: comes once, for then nothing moves */
		v->act |= REQACT_DRAINED;
}

/**
 * What follows from progress, once requester_acknowledge() has moved una on from `from`.
 * @param p what was answered.
 */
static ALWAYS_INLINE void
moved(struct requester *r, psn_t from, psn_t p, ns_t now, struct requester_verdict *v)
{
	bool overtaken = psn_distance(r->cur, from) < psn_distance(r->una, from);

	if (UNLIKELY(overtaken | r->waiting_rnr | r->draining | r->recovering | r->doubting |
		     req_probes(r))) {
		if (overtaken | r->waiting_rnr | r->draining | r->doubting | r->holes |
			r->patching | r->patched)
			moved_rarely(r, from, overtaken, v);
		else
			moved_lossy(r, from, false);
	}
	if (requester_round_is_over(r))
		req_pace_round(r, p, now, v);
	requester_timer_restart(r, now);
	if (UNLIKELY(req_probes(r)))
		req_probe_arm(r, now);
	v->act |= REQACT_TIMER;
}

void
req_moved(struct requester *r, psn_t from, ns_t now, struct requester_verdict *v)
{
	moved(r, from, psn_sub(r->una, 1), now, v);
}

/** The next `psns` PSNs from una on are acknowledged, by a response at PSN `p`. */
static ALWAYS_INLINE enum requester_reach
acknowledge(struct requester *r, uint32_t psns, psn_t p, ns_t now, struct requester_verdict *v)
{
	const psn_t from = r->una;
	uint32_t wrs;
	const enum requester_reach reach = requester_reach(r, false, &psns, &wrs);

	if (UNLIKELY(psns == 0))
		return reach;
	v->completed += wrs;
	v->act |= wrs != 0 ? REQACT_COMPLETE : 0;
	requester_acknowledge(r, psns, wrs);
	moved(r, from, p, now, v);
	if (UNLIKELY(reach == REACH_READ))
		r->timed_out = 0; /* req_overtook(): the peer was further than this */
	return reach;
}

enum requester_reach
req_acknowledge(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v)
{
	return acknowledge(r, psn_distance(p, r->una), p, now, v);
}

static __attribute__((noinline)) void
ack_meets_read(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v)
{
	const struct requester_wr *w = requester_slot(r, r->head);

	if (!psn_eq(p, r->una))
		req_implied_nak(r, p, BEYOND_ACK,
			psn_between(p, r->una, w->last) ? REQRULE_IMPLIED_INSIDE
							: REQRULE_IMPLIED_ACK,
			now, v);
	else if ((r->knobs & REQ_KNOB_ACK_FOR_READ_FATAL) != 0)
		req_bad_response(r, REQRULE_BAD_KIND, FATAL_RESPONSE_OPCODE, v);
	else
		verdict_drop(v, REQRULE_ACK_FOR_READ); /* AMB-17 */
}

void
req_ack(struct requester *r, uint32_t ahead, ns_t now, struct requester_verdict *v)
{
	psn_t p = psn_add(r->una, ahead);

	v->rule = REQRULE_ACK;
	if (UNLIKELY(acknowledge(r, ahead + 1, p, now, v) == REACH_READ))
		ack_meets_read(r, p, now, v);
}
