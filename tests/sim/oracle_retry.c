/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference of retries. What was lost is known here: over a link that keeps the order of what
 * it does not lose, a retry that a response leads to goes back to a PSN at which something was
 * lost, once for each loss. When a timer may end is judged by TMR-02.
 */
#include "sim.h"

#define RETRY_FOREVER 7 /* rnr_retry */

/* data.rnr_timer, in microseconds */
static const uint32_t rnr_us[32] = { 655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640,
	960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920,
	122880, 163840, 245760, 327680, 491520 };

/* ---- what was lost ------------------------------------------------------------------------ */

static uint8_t *
lost_at(struct end *e, psn_t p)
{
	return &e->lost[p.v % LOST_PSNS];
}

void
oracle_lost(struct sim *s, struct end *e, psn_t p)
{
	if (psn_distance(p, e->req.una) >= psn_distance(e->next_new, e->req.una))
		return;
	TRACE(s, e, "lost: PSN %06x", p.v);
	*lost_at(e, p) += *lost_at(e, p) != UINT8_MAX;
}

/*
 * Which pass a response belongs to does not stand in it. The requester judges by the order in which
 * PSNs come, and an answer that had to wait and comes between those to second copies misleads it;
 * but seldom: about once in 1000 retries, and here it may be one in 64.
 */
enum { NEEDLESS_MOST = 8, NEEDLESS_SHARE = 64 };

/** REQ-IMPL-05: one loss, one retry, however many responses show that something is missing. */
static void
paid_for(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	/* The NAK tells of another loss than the one that was asked for again. */
	if (v->rule == REQRULE_IMPLIED_NAK && (e->req.knobs & REQ_KNOB_READ_KEEP) != 0)
		return;
	if (*lost_at(e, e->req.una) != 0) {
		--*lost_at(e, e->req.una);
		s->needed++;
		return;
	}
	if (peer_of(s, e)->state == END_ERR) /* it has taken its answers with it */
		return;
	/* One that keeps requests tells of a gap that who has gone back is about to fill. */
	if (v->cause == QC_SEQ_NAK && (peer_of(s, e)->resp.knobs & RESP_KNOB_KEEP) != 0 &&
		(e->req.knobs & REQ_KNOB_PATCH) == 0)
		return;
	s->t.needless++;
	s->needless++;
	TRACE(s, e, "needless: nothing was lost at PSN %06x since the last retry", e->req.una.v);
	CHECK(s, s->needless <= NEEDLESS_MOST + s->needed / NEEDLESS_SHARE,
		"REQ-IMPL-05: %u retries where nothing was lost since the last one, and %u where "
		"something was; now PSN %06x: %s",
		s->needless, s->needed, e->req.una.v,
		requester_rule_text((enum requester_rule)v->rule));
}

/* ---- what was told --------------------------------------------------------------------------- */

/*
 * How long the requester may wait for a response that it was told is lost: it cannot know which
 * pass the one beyond it answers. In times of what the newest pass has taken until then.
 */
enum { TOLD_TIMES = 8, UNHEARD_MOST = 8, UNHEARD_SHARE = 16 };

/**
 * REQ-IMPL-01: over a link that keeps the order, a response that was made behind the READ's own
 * shows that this one is lost. The READ need not wait for a timer, which there may not be.
 */
void
oracle_told(struct sim *s, struct end *e)
{
	if (s->fifo && e->told_at == 0 && e->answers_to.pass == e->pass &&
		psn_cmp(e->answers_to.psn, e->req.una) > 0)
		e->told_at = s->now;
}

void
oracle_stuck(struct sim *s, struct end *e)
{
	CHECK(s, e->told_at == 0,
		"REQ-IMPL-01: the response due at PSN %06x is lost, which was told, and it is not "
		"asked for again",
		e->req.una.v);
}

static void
timed_out(struct sim *s, const struct end *e)
{
	s->timeouts += s->fifo;
	if (e->told_at == 0 || s->now < e->told_at + TOLD_TIMES * (e->told_at - e->pass_at))
		return;
	s->t.unheard++;
	s->unheard++;
	TRACE(s, e, "unheard: that the response due at PSN %06x is lost was told", e->req.una.v);
	CHECK(s, s->unheard <= UNHEARD_MOST + s->timeouts / UNHEARD_SHARE,
		"REQ-IMPL-01: %u of %u timeouts for a response of which was told that it is lost; "
		"now PSN %06x",
		s->unheard, s->timeouts, e->req.una.v);
}

/** Is a request of this end, or an answer to one, on its way? */
static bool
is_under_way(struct sim *s, struct end *e)
{
	const struct end *peer = peer_of(s, e);

	for (uint32_t i = 0; i < s->flying_n; i++)
		if (s->flying[i].p->asker == e->index)
			return true;
	return peer->answers.count != 0 || peer->ack_pending;
}

/** TMR-07: who says that a timer has ended early is right, but for a peer that keeps requests. */
static void
told_early(struct sim *s, struct end *e)
{
	s->t.early++;
	CHECK(s, !e->silent || (peer_of(s, e)->resp.knobs & RESP_KNOB_KEEP) != 0,
		"TMR-07: early, and nothing was on its way when the timer ended; now PSN %06x",
		e->req.una.v);
}

/* ---- progress and retries ----------------------------------------------------------------- */

/* Eight, one that asks for a response once more (REQ-07), and the one that is too many. */
#define PROBES 10

void
oracle_progress(struct sim *s, struct end *e)
{
	if (psn_eq(e->req.una, e->seen_una))
		return;
	for (psn_t p = e->seen_una; !psn_eq(p, e->req.una); p = psn_add(p, 1))
		*lost_at(e, p) = 0;
	e->seen_una = e->req.una;
	e->tries = 0;
	e->rnr_tries = 0;
	e->rnr_until = 0;
	e->probes = 0;
	e->told_at = 0;
	e->progress_at = s->now;
	if (psn_cmp(e->req.una, e->recovered) >= 0)
		e->recovering = false;
	if (e->asked_at != 0) /* TMR-06 */
		e->asked_at = psn_cmp(e->asked_last, e->req.una) < 0 ? 0 : s->now;
}

static void
transport_retry(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	ns_t wait = UINT64_C(4096) << e->req.timeout;
	bool over;

	CHECK(s, !s->perfect || peer_of(s, e)->state == END_ERR,
		"a retry over a link without fault: %s",
		requester_rule_id((enum requester_rule)v->rule));
	s->t.timeouts += v->cause == QC_TIMEOUT;
	s->t.nak_seq += v->cause == QC_SEQ_NAK;
	s->t.implied += v->cause == QC_IMPLIED_NAK;
	if (v->cause == QC_TIMEOUT) {
		timed_out(s, e);
		e->silent = !is_under_way(s, e);
		CHECK(s, e->req.timeout != 0, "TMR-03: timeout without a timer");
		CHECK(s, e->asked_at != 0, "TMR-05: timeout, and no response was asked for");
		CHECK(s, s->now >= e->asked_at + wait, "TMR-02: timeout %llu ns too early",
			(unsigned long long)(e->asked_at + wait - s->now));
		CHECK(s, s->now <= e->asked_at + 4 * wait, "TMR-02: timeout %llu ns too late",
			(unsigned long long)(s->now - e->asked_at - 4 * wait));
	}
	CHECK(s, v->cause != QC_IMPLIED_NAK || !psn_eq(e->next_out, e->req.una),
		"REQ-IMPL-05: another retry before anything of the last resend is out");
	if (s->fifo && v->cause != QC_TIMEOUT)
		paid_for(s, e, v);
	e->tries++;
	over = e->tries > e->req.retry_cnt;
	CHECK(s, (over && e->armed) == ((v->act & REQACT_MIGRATE) != 0),
		"REQ-RETRY-09: retry %u of %u, act %x", e->tries, e->req.retry_cnt, v->act);
	CHECK(s, (over && !e->armed) == (v->outcome == QC_RETRY_EXCEEDED),
		"REQ-RETRY-02: retry %u of %u, outcome %u", e->tries, e->req.retry_cnt, v->outcome);
	if (over && e->armed) {
		e->armed = false;
		e->tries = 0;
		s->t.migrations++;
	}
}

static void
rnr_retry(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	bool last = e->req.rnr_retry != RETRY_FOREVER && e->rnr_tries == e->req.rnr_retry;

	s->t.rnr++;
	e->rnr_tries++;
	CHECK(s, last == (v->outcome == QC_RNR_EXCEEDED),
		"REQ-RNR-04: RNR NAK %u, rnr_retry %u, outcome %u", e->rnr_tries, e->req.rnr_retry,
		v->outcome);
	if (!last)
		e->rnr_until = s->now + rnr_us[peer_of(s, e)->resp.min_rnr_timer] * 1000ull;
}

void
oracle_retry(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	if (v->outcome == QC_TIMEOUT_EARLY)
		told_early(s, e);
	if ((v->act & (REQACT_RESEND | REQACT_ERROR)) != 0) {
		if (v->cause == QC_SEQ_NAK || v->cause == QC_IMPLIED_NAK || v->cause == QC_TIMEOUT)
			transport_retry(s, e, v);
		else if (v->cause == QC_RNR_NAK)
			rnr_retry(s, e, v);
	}
	if (v->rule == REQRULE_RNR_OVER)
		CHECK(s, s->now >= e->rnr_until, "REQ-RNR-01: the wait ends early");
	if ((v->act & REQACT_RESEND) != 0 && (psn_eq(e->req.cur, e->req.una) || e->req.patching)) {
		if (!e->req.patching) {
			e->next_out = e->req.una;
			e->asked_at = 0;
		}
		e->told_at = 0;
		e->pass_at = s->now;
		e->pass++;
		e->recovering = true;
		e->recovered = e->next_new;
		e->probes = v->cause == QC_TIMEOUT && (v->act & REQACT_MIGRATE) == 0 ? PROBES : 0;
	}
}
