/* SPDX-License-Identifier: BSD-3-Clause */
/* The two timers, and the retries that they and the NAKs lead to. */
#include "requester_priv.h"

ns_t
requester_timeout_ns(uint8_t exponent)
{
	return UINT64_C(4096) << (exponent & 31);
}

uint8_t
requester_timeout_exponent(ns_t life, ns_t ack_delay)
{
	uint8_t n = 1; /* 0 would mean no timer */

	while (n < 31 && requester_timeout_ns(n) < 2 * life + ack_delay)
		n++;
	return n;
}

/*
 * Nothing of this pass has been sent, so nothing is owed: the timer starts with the resend
 * (REQ-RNR-09).
 */
void
req_rewind(struct requester *r, struct requester_verdict *v)
{
	uint32_t flying = in_flight(r);

	if (r->acks_due > flying) /* the peer may acknowledge several at once */
		r->acks_due = flying;
	r->cur = r->una;
	r->sending = r->head;
	r->reply_psns = 0;
	r->since_ackreq = 0;
	r->timing = false;
	r->timed_at = 0;
	r->recovering = true;
	r->recover = r->next;
	v->act |= REQACT_RESEND | REQACT_TIMER;
}

void
req_retry(struct requester *r, enum requester_counter cause, enum requester_rule rule,
	struct requester_verdict *v)
{
	v->cause = (uint8_t)cause;
	v->rule = (uint16_t)rule;
	if (r->retry_left == 0 && r->armed) { /* REQ-RETRY-09 */
		r->armed = false;
		r->retry_left = r->retry_cnt;
		v->rule = REQRULE_MIGRATED;
		v->act |= REQACT_MIGRATE;
		r->open = REQ_OPEN_ALL; /* of the other path nothing is known */
		r->rtt = 0;
		r->rtt_min = 0;
		req_rewind(r, v);
		return;
	}
	if (r->retry_left == 0) { /* AMB-02: the retry that finds the counter at 0 */
		v->outcome = QC_RETRY_EXCEEDED;
		v->rule = REQRULE_RETRY_EXHAUSTED;
		fail_head(r, v, STATUS_RETRY_EXC, FATAL_RESPONSE_HANDLER);
		return;
	}
	r->retry_left--;
	req_pace_lost(r, cause == QC_TIMEOUT);
	req_rewind(r, v);
}

/*
 * One retry for one gap (REQ-IMPL-05), not one for each packet that shows it: a lost response of a
 * long READ must not use up all retries. After a resend, what arrives may still answer the pass
 * before; it counts only if it shows that the newest pass was in vain, else the timer decides.
 * - ACKs of second copies all carry the newest PSN that the peer has completed (REQ-17), so they
 *   lie beyond READs whose answers are merely behind them. The last that can be on its way counts.
 * - Anything else goes on with rising PSNs within a pass, and begins again lower with the next.
 */
static bool
is_old(struct requester *r, psn_t p, bool is_ack, bool pending)
{
	uint32_t ahead = psn_distance(p, r->una), heard = psn_distance(r->heard, r->una);

	if (is_ack && r->recovering)
		return r->acks_due != 0;
	if (!r->implied) {
		r->behind = pending;
	} else if (ahead <= heard && r->behind > pending) {
		r->behind--;
	}
	r->implied = true;
	r->heard = p;
	return r->behind != 0;
}

void
req_implied_nak(struct requester *r, psn_t p, bool is_ack, enum requester_rule rule,
	struct requester_verdict *v)
{
	bool pending = psn_eq(r->cur, r->una); /* a resend that is not out yet */

	if (is_old(r, p, is_ack, pending) || pending) {
		verdict_drop(v, REQRULE_IMPLIED_AGAIN);
		return;
	}
	r->implied = true;
	r->heard = p;
	r->behind = 1;
	req_retry(r, QC_IMPLIED_NAK, rule, v);
}

void
requester_timer(struct requester *r, ns_t now, struct requester_verdict *v)
{
	*v = verdict_blank(r);
	if (r->dead || now < r->deadline)
		return;
	if (r->waiting_rnr) {
		r->waiting_rnr = false;
		v->act = REQACT_RESEND | REQACT_TIMER;
		v->rule = REQRULE_RNR_OVER;
		return;
	}
	if (!r->timing)
		return;
	r->timing = false;
	r->acks_due = 0; /* after so long nothing is on its way */
	r->implied = false;
	if (requester_outstanding(r))
		req_retry(r, QC_TIMEOUT, REQRULE_TIMEOUT, v);
	else
		v->act = REQACT_TIMER;
}
