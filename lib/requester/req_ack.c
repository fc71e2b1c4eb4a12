/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a PSN acknowledges, and what follows when the oldest unacknowledged PSN moves. */
#include "requester_priv.h"

/** The transport timer counts from the last valid response, if anything owes one (TMR-06). */
static ALWAYS_INLINE void
timer_restart(struct requester *r, ns_t now, struct requester_verdict *v)
{
	r->timing = r->timeout != 0 && response_owed(r);
	r->deadline = now + requester_wait_ns(r->timeout);
	v->act |= REQACT_TIMER;
}

/** `cur` was overtaken, an RNR wait is over before its time, a resend or SQD is under way. */
static __attribute__((noinline)) void
moved_rarely(struct requester *r, psn_t from, bool overtaken, struct requester_verdict *v)
{
	if (overtaken) { /* REQ-17: the rest is resent from here on */
		r->cur = r->una;
		r->sending = r->head;
		r->reply_psns = 0;
		r->since_ackreq = 0;
	}
	r->doubting = false;
	if (r->waiting_rnr) {
		r->waiting_rnr = false;
		v->act |= REQACT_RESEND;
	}
	if (r->recovering && psn_distance(r->una, from) >= psn_distance(r->recover, from))
		r->recovering = false;
	if (!requester_is_free(r))
		req_pace_progress(r, psn_distance(r->una, from));
	if (r->draining && r->head == r->fresh) /* QP-09: comes once, for then nothing moves */
		v->act |= REQACT_DRAINED;
}

/** Both counters are reloaded by any progress (REQ-RETRY-04, REQ-RNR-07, AMB-04). */
static ALWAYS_INLINE void
moved(struct requester *r, psn_t from, ns_t now, struct requester_verdict *v)
{
	bool overtaken = psn_distance(r->cur, from) < psn_distance(r->una, from);

	r->retry_left = r->retry_cnt;
	r->rnr_left = r->rnr_retry;
	r->implied = false;
	if (UNLIKELY(overtaken | r->waiting_rnr | r->draining | r->recovering |
		     !requester_is_free(r)))
		moved_rarely(r, from, overtaken, v);
	if (r->timed_at != 0 && psn_cmp(r->timed, r->una) < 0)
		req_pace_round(r, now);
	timer_restart(r, now, v);
}

void
req_moved(struct requester *r, psn_t from, ns_t now, struct requester_verdict *v)
{
	moved(r, from, now, v);
}

/* READs and ATOMICs are never acknowledged by a PSN beyond them, only by their data. */
static ALWAYS_INLINE enum reach
acknowledge(struct requester *r, uint32_t psns, ns_t now, struct requester_verdict *v)
{
	psn_t from = r->una;
	uint32_t head = r->head, left = psns;
	enum reach reach = REACH_ALL;

	while (left != 0) {
		const struct requester_wr *w = slot(r, head);
		uint32_t due;

		if (UNLIKELY(r->failed) && head == r->failed_at) {
			reach = REACH_FAULT;
			break;
		}
		if (UNLIKELY(is_read_or_atomic(w))) {
			reach = REACH_READ;
			break;
		}
		due = psn_distance(w->last, psn_add(from, psns - left)) + 1;
		if (due > left) {
			left = 0;
			break;
		}
		left -= due;
		head++;
	}
	if (UNLIKELY(left == psns))
		return reach;
	v->completed += head - r->head;
	v->act |= head != r->head ? REQACT_COMPLETE : 0;
	r->head = head;
	r->una = psn_add(from, psns - left);
	moved(r, from, now, v);
	return reach;
}

enum reach
req_acknowledge(struct requester *r, uint32_t psns, ns_t now, struct requester_verdict *v)
{
	return acknowledge(r, psns, now, v);
}

static __attribute__((noinline)) void
ack_meets_read(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v)
{
	const struct requester_wr *w = slot(r, r->head);

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
	if (UNLIKELY(acknowledge(r, ahead + 1, now, v) == REACH_READ))
		ack_meets_read(r, p, now, v);
}
