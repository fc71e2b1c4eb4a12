/* SPDX-License-Identifier: BSD-3-Clause */
/* The two timers, and the retries that they and the NAKs lead to. */
#include "requester_priv.h"

ns_t
requester_timeout_ns(uint8_t exponent)
{
	return UINT64_C(4096) << (exponent & 31);
}

void
requester_timeout_set(struct requester *r, uint8_t timeout)
{
	const ns_t was = requester_wait_ns(r->timeout), is = requester_wait_ns(timeout);
	const bool other = r->waiting_rnr | r->doubting | r->patching | r->dead;

	if (timeout == r->timeout)
		return;
	r->timeout = timeout;
	if (other || (r->probing && timeout != 0)) /* what runs, if anything, is not this timer */
		return;
	if (r->deadline > was)
		r->deadline = r->deadline - was + is;
	r->probing = 0;
	r->timing = timeout != 0 && requester_in_flight(r) > r->since_ackreq;
}

/*
 * Nothing of this pass has been sent, so nothing is owed: the timer starts with the resend
 * (REQ-RNR-09).
 */
void
req_rewind(struct requester *r, struct requester_verdict *v)
{
	r->cur = r->una;
	r->sending = r->head;
	r->reply_psns = 0;
	r->since_ackreq = 0;
	r->timing = false;
	r->timed_at = 0;
	r->recovering = true;
	r->recover = r->next;
	r->overlaps = true;
	r->doubting = false;
	r->probing = 0;
	r->patching = false;
	r->patched = false;
	r->alone = 0;
	r->keeps = 0;
	r->anew = true;
	r->timed_out = 0;
	v->act |= REQACT_RESEND | REQACT_TIMER;
}

/*
 * Did a timer end while what it waited for was on its way? After a timeout an answer beyond `cur`
 * may be one to the first packet that was sent again: if all ACKs were lost, the peer says with it
 * how far it has come (REQ-17). But that is as far as it comes. A second one, beyond what was sent
 * again since, shows that it goes on: packets of the earlier pass reach it, or its answers to them
 * reach us, after all. Nothing is told where the first one was cut short by a READ whose response
 * is missing: what it said comes once more, behind that response. Nor with req.gap=patch: a peer
 * that keeps what is behind a gap comes further with what was sent again. Such a peer without
 * req.gap=patch here may have a timer told of that was none too early.
 */
enum { TIMED_OUT = 1, TIMED_OUT_OVERTAKEN };

void
req_overtook(struct requester *r, struct requester_verdict *v)
{
	if (r->timed_out == TIMED_OUT_OVERTAKEN)
		v->outcome = QC_TIMEOUT_EARLY;
	r->timed_out = r->timed_out == TIMED_OUT ? TIMED_OUT_OVERTAKEN : 0;
}

/** All is sent again over another path, of which nothing is known; some was answered before. */
static void
go_over(struct requester *r, struct requester_verdict *v)
{
	req_pace_forget(r);
	r->rtt = 0;
	req_rewind(r, v);
}

void
req_retry(struct requester *r, enum requester_counter cause, enum requester_rule rule,
	struct requester_verdict *v)
{
	v->cause = (uint8_t)cause;
	v->rule = (uint16_t)rule;
	v->act &= ~(uint32_t)REQACT_ROUND;    /* r->rtt is forgotten */
	if (r->retry_left == 0 && r->armed) { /* REQ-RETRY-09 */
		r->armed = false;
		r->retry_left = r->retry_cnt;
		v->rule = REQRULE_MIGRATED;
		v->act |= REQACT_MIGRATE;
		go_over(r, v);
		return;
	}
	if (r->retry_left == 0) { /* AMB-02: the retry that finds the counter at 0 */
		v->outcome = QC_RETRY_EXCEEDED;
		v->rule = REQRULE_RETRY_EXHAUSTED;
		fail_head(r, v, WC_RETRY_EXC_ERR, FATAL_RESPONSE_HANDLER);
		return;
	}
	r->retry_left--;
	req_pace_lost(r, cause == QC_TIMEOUT ? REQ_LOST_TIMEOUT : REQ_LOST_TOLD);
	if (cause == QC_SEQ_NAK && req_patch_request(r, v)) {
		v->rule = REQRULE_NAK_SEQ_ALONE;
	} else if (cause != QC_IMPLIED_NAK || !req_patch(r, rule, v)) {
		if (cause == QC_TIMEOUT)
			req_not_patched(r);
		req_rewind(r, v);
		if (cause == QC_TIMEOUT && (r->knobs & REQ_KNOB_PATCH) == 0)
			r->timed_out = TIMED_OUT;
	}
}

/*
 * One retry for one gap (REQ-IMPL-05), not one for each packet that shows it: a lost response of a
 * long READ must not use up all retries. Yet each retry that shows nothing must lead to the next,
 * and where no timer runs nothing else will (REQ-IMPL-01).
 *
 * After a resend, what arrives may still answer the pass before. No response tells which copy it
 * answers, and how many come cannot be told: a peer may acknowledge each packet, or all at once. So
 * nothing is counted. What can be known is what a response cannot have been made from. The READ or
 * ATOMIC at una stands in its pass before everything that lies beyond it, and a peer answers in the
 * order of arrival, so
 * - it is not missed before it has left again;
 * - it is missed at once where nobody answers an older copy: in a first pass; where the PSN was
 *   never sent before this pass; in a pass that a NAK began, as all_anew() says.
 *
 * Everything else may come of either pass, or of a copy that stands before the READ in this one:
 * copies are acknowledged with the newest PSN that the peer has taken (REQ-17). The READ's own
 * response then comes soon, or it is lost. So it is given time, and the time is a multiple of what
 * has passed since it left, or since that left which was answered, or of the shortest round trip if
 * that is longer: whatever the round trip is, it is over when the answer to a later packet has been
 * here for so long. Then a retry is due, one for a pass, since the next starts all this anew. It is
 * in vain only where one round trip takes several times as long as another. More time is given
 * where none is known, where the PSN goes on from the last one heard of (an old pass does; a new
 * one begins again lower), and where the retry would be the last.
 */
enum pass { PASS_OLD, PASS_NEW, PASS_UNKNOWN };

/** Which pass does a response at PSN `p` answer, beyond the READ that left `age` ns ago? */
static enum pass
pass_of(const struct requester *r, psn_t p, bool goes_on, uint32_t age)
{
	if (psn_eq(r->cur, r->una) || r->patching) /* a resend that is not out yet */
		return PASS_OLD;
	if (!r->recovering || psn_cmp(p, r->recover) >= 0)
		return PASS_NEW;
	return age == 0 && goes_on ? PASS_OLD : PASS_UNKNOWN; /* nothing comes back at once */
}

/*
 * How long the response at una may be behind one beyond it. The shortest round trip is a poor guide
 * where a queue makes the others longer, or the way has become longer and it has not been
 * forgotten yet. So the newest one that was measured counts, too, in powers of two; and as long as
 * none is measured, each wait that has ended so doubles the next one, as timers of retransmission
 * back off. But a quarter of the transport timer's is enough: it is set to several round trips.
 */
static ns_t
patience(const struct requester *r, bool goes_on, uint32_t age)
{
	const ns_t enough = r->timeout == 0 ? INT64_MAX : requester_wait_ns(r->timeout) / 4;
	ns_t wait = age > r->rtt_min ? age : r->rtt_min;

	wait <<= 1 + goes_on + 2 * (r->rtt_min == 0) + 2 * (r->retry_left == 0);
	for (unsigned i = 0; i < r->longer && 2 * wait <= enough; i++)
		wait *= 2;
	return wait;
}

/**
 * How long ago that left which a response at PSN `p` beyond una answers: a round trip is no longer.
 * The READ at una, which left `age` ns ago, may have been lost long before. In a resend all leaves
 * at once, but for a last SEND or WRITE that is sent once more to ask (REQ-07).
 */
static uint32_t
answered_age(const struct requester *r, psn_t p, uint32_t age, ns_t now)
{
	const struct requester_wr *w = req_answered(r, p);
	uint32_t answered;

	if (r->recovering && !req_is_copied(w))
		return age;
	answered = requester_age(w->sent_at, now);
	if (answered == 0 && r->rtt_min == 0) /* a peer far away does not answer at once */
		return age;
	return answered < age ? answered : age;
}

/**
 * No round trip is known, and a response at PSN `p` beyond una has come, where none answers an
 * older copy. What it answers left a round trip ago at least, and so did the READ at una, which
 * left `age` ns ago. Of what was sent once more to ask it cannot be told which copy is answered.
 */
static void
round_from(struct requester *r, psn_t p, uint32_t age, ns_t now)
{
	const struct requester_wr *w = req_answered(r, p);
	const uint32_t answered = requester_age(w->sent_at, now);

	if (!req_is_copied(w))
		r->rtt_min = answered < age ? answered : age;
}

static void
implied_nak(struct requester *r, enum requester_rule rule, struct requester_verdict *v)
{
	r->implied = true;
	req_retry(r, QC_IMPLIED_NAK, rule, v);
}

/**
 * The first doubt counts: what follows does not put the retry off. Nor is a timer put off, but for
 * a probe where the retry would be the last: that would be one copy more than there are retries
 * (REQ-IMPL-06).
 */
static void
doubt(struct requester *r, ns_t until, struct requester_verdict *v)
{
	if (r->timing && r->deadline <= until && (!r->probing || r->retry_left != 0)) {
		verdict_drop(v, REQRULE_IMPLIED_UNCLEAR);
		return;
	}
	r->doubting = true;
	r->probing = 0;
	r->timing = true;
	r->deadline = until;
	v->rule = REQRULE_IMPLIED_UNCLEAR;
	v->act |= REQACT_TIMER;
}

void
req_implied_nak(struct requester *r, psn_t p, enum beyond kind, enum requester_rule rule, ns_t now,
	struct requester_verdict *v)
{
	bool goes_on = r->implied ? psn_cmp(p, r->heard) > 0 : r->overlaps;
	uint32_t age = requester_age(requester_slot(r, r->head)->sent_at, now);
	enum pass pass = pass_of(r, p, goes_on, age);

	if (kind == BEYOND_NAK && r->patched) /* it comes once, and nothing newer is taken */
		pass = PASS_NEW;

	/* What has brought a NAK is not at its PSN. */
	if (!r->recovering && r->rtt_min == 0 && (kind != BEYOND_NAK || r->timeout != 0))
		round_from(r, p, age, now);
	if (pass == PASS_NEW || (pass == PASS_UNKNOWN && age == 0)) {
		if (!r->holes)
			r->heard = p;
		implied_nak(r, rule, v);
		r->overlaps = kind != BEYOND_NAK; /* after it the peer was silent */
		return;
	}
	if ((goes_on || kind == BEYOND_DATA) && !r->holes)
		r->heard = p;
	r->implied |= kind == BEYOND_DATA;
	if (pass == PASS_UNKNOWN)
		doubt(r, now + patience(r, goes_on, answered_age(r, p, age, now)), v);
	else
		verdict_drop(v, REQRULE_IMPLIED_AGAIN);
}

void
req_overtaken(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v)
{
	const uint32_t age = requester_age(requester_slot(r, r->head)->sent_at, now);

	if (psn_eq(r->cur, r->una)) /* it is asked for again anyway, maybe behind an RNR wait */
		return;
	doubt(r, now + patience(r, false, answered_age(r, p, age, now)), v);
}

/*
 * A probe, req_probe_arm(). Behind a lost packet a peer is silent once it has sent its NAK, and it
 * says nothing at all if the lost one was the last. So if the NAK is lost, the packet that answers
 * it, or the end of what was sent, only the transport timer helps, which is many round trips. On a
 * link that loses packets, silence of some round trips therefore sends again what a timeout would:
 * some of the oldest packets, of which one wants a response. Whatever was lost, that response
 * tells: the oldest is the one packet that the peer takes in any case, new or again. It comes
 * after two round trips and some, or shortly before a short timer would end; not where the
 * shortest round trip is nearly as long as that, unless one too many costs no more than its own
 * packet. One that a queue has made long is no reason: then answers come all the time. It is no
 * retry: the transport timer begins anew with it, and after some probes without progress nothing
 * but the timer is left, nor after a timeout: who has vanished sees its retries and no more. Where
 * nothing was lost of late there are none, so that a quiet link does not pay; unless req.probe is
 * `always`: then the first loss does not wait for the timer, either.
 */
static void
probe(struct requester *r, struct requester_verdict *v)
{
	const bool in_vain = req_was_in_vain(r); /* the peer has been heard of */
	const bool lossy = req_is_lossy(r);
	bool alone;

	r->probing = 0;
	v->act = REQACT_TIMER;
	if (!requester_outstanding(r))
		return;
	r->probes++;
	alone = req_patch_request(r, v);
	if (!alone || !lossy)
		req_pace_lost(r, in_vain || alone ? REQ_LOST_TOLD : REQ_LOST_PROBE);
	if (!alone)
		req_rewind(r, v);
	v->rule = REQRULE_PROBE;
}

void
requester_probe_anew(struct requester *r, bool progress, ns_t now)
{
	r->probing = 0;
	r->probes = progress ? 0 : r->probes;
	req_probe_arm(r, now);
}

static void
timer(struct requester *r, ns_t now, struct requester_verdict *v)
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
	if (r->doubting) {
		r->longer += r->longer != REQUESTER_LONGER;
		implied_nak(r, REQRULE_IMPLIED_WAITED, v);
		return;
	}
	r->implied = false;
	if (r->probing) {
		probe(r, v);
		return;
	}
	if (requester_outstanding(r)) {
		r->probes = REQ_PROBES_MOST;
		req_retry(r, QC_TIMEOUT, REQRULE_TIMEOUT, v);
	} else {
		v->act = REQACT_TIMER;
	}
	r->overlaps = false; /* after so long nothing is on its way */
}

void
requester_timer(struct requester *r, ns_t now, struct requester_verdict *v)
{
	req_check_state(r);
	timer(r, now, v);
	req_check_state(r);
	req_check_verdict(r, v);
}

void
requester_stranded(struct requester *r, struct requester_verdict *v)
{
	*v = verdict_blank(r);
	if (r->dead || r->waiting_rnr || !requester_outstanding(r))
		return;
	ASSERT(is_acked(r));
	go_over(r, v);
	req_check_state(r);
}

void
requester_found(struct requester *r, struct requester_verdict *v)
{
	*v = verdict_blank(r);
	if (r->dead || r->waiting_rnr || !requester_outstanding(r) || !is_acked(r))
		return;
	r->implied = false;
	req_path_forget(r);
	req_rewind(r, v);
	r->overlaps = false; /* nobody got anything */
	req_check_state(r);
}
