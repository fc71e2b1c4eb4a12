/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Did the transport timer end while answers were on their way? Behind the resend of TMR-07 a peer
 * may answer beyond what was sent again, once, if its ACKs were lost: with the newest PSN that it
 * has (REQ-17). A second such answer is of packets that the timer took for lost.
 */
#include "req.h"

enum { SENDS = 64, FEW = 8 /* packets of a resend after a timeout */, BEFORE = 12 /* of a READ */ };

/** All sent, and nothing heard until the timer ends. */
static void
sends_time_out(struct bed *s)
{
	post_sends(s, SENDS);
	pump(s);
	expect_run(s, S, SENDS);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	assert_int_equal(s->v.outcome, QC_NONE);
	pump(s);
	expect_run(s, S, FEW);
}

static void
timed_out(struct bed *s)
{
	bed_init(s);
	sends_time_out(s);
}

/** A positive ACK, beyond what was sent again or not. @return did the timer end too early? */
static bool
tells(struct bed *s, uint32_t p)
{
	ack(s, p, ACK);
	assert_int_equal(s->r.una.v, p + 1);
	assert_true(s->v.outcome == QC_NONE || s->v.outcome == QC_TIMEOUT_EARLY);
	return s->v.outcome == QC_TIMEOUT_EARLY;
}

static void
TMR_07_answers_go_on(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	timed_out(s);
	assert_false(tells(s, S + 15));
	pump(s);
	assert_true(s->out[s->n - 1].psn.v < S + 47);
	assert_true(tells(s, S + 47));
	assert_true(psn_eq(s->r.cur, psn(S + 48))); /* it goes on behind them */
	assert_false(tells(s, S + 55));             /* a timeout is told of once */
	assert_false(tells(s, S + SENDS - 1));
	expect_done(s, SENDS);
}

/* The last answer there is may be the second one. */
static void
TMR_07_up_to_the_last(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	timed_out(s);
	assert_false(tells(s, S + 15));
	assert_true(tells(s, S + SENDS - 1));
}

/* What was sent again since is no sign. */
static void
TMR_07_answers_to_the_resend(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	timed_out(s);
	assert_false(tells(s, S + 15));
	pump(s);
	expect_run(s, S + 16, s->n);
	assert_false(tells(s, S + 16 + s->n - 1));
	assert_true(tells(s, S + 16 + s->n)); /* what comes beyond it is */
}

/* With req.gap=patch the peer may keep what is behind a gap: to fill one brings it to the next. */
static void
REQ_NAK_11_a_peer_that_keeps(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.knobs |= REQ_KNOB_PATCH;
	sends_time_out(s);
	assert_false(tells(s, S + 15));
	assert_false(tells(s, S + 47));
	assert_false(tells(s, S + SENDS - 1));
}

/* REQ-17: all ACKs were lost, and PSN S + 40. The resend is answered with what the peer has. */
static void
REQ_17_lost_answers(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	timed_out(s);
	assert_false(tells(s, S + 39));
	pump(s);
	expect_run(s, S + 40, s->n);
	assert_true(s->n >= FEW);
	for (uint32_t p = S + 40; !psn_eq(s->r.una, s->r.next); p += s->n) {
		assert_false(tells(s, p + s->n - 1));
		pump(s);
		if (s->n == 0)
			break;
	}
}

/*
 * REQ-17, REQ-IMPL-01: the same with a READ in between, up to which an ACK beyond it acknowledges.
 * Its response was lost, too. What follows it is acknowledged once that has come, by an answer to
 * what was sent again: the peer has come no further meanwhile.
 */
static void
lost_answers_of_a_read(uint8_t syndrome)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	post_sends(s, BEFORE);
	POST(s, READ(64));
	post_sends(s, SENDS - BEFORE - 1);
	pump(s);
	expect_run(s, S, SENDS);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	pump(s);
	expect_run(s, S, FEW);
	ack(s, S + 39 + (syndrome != ACK), syndrome);
	assert_int_equal(s->r.una.v, S + BEFORE);
	assert_int_equal(s->v.outcome, QC_NONE);
	pump(s);
	expect_run(s, S + BEFORE, s->n);
	assert_in_range(s->n, 2, 20);
	ONLY(s, S + BEFORE, 64);
	assert_int_equal(s->r.una.v, S + BEFORE + 1);
	assert_false(tells(s, S + 39));
}

static void
REQ_17_lost_answers_of_a_read(void **state)
{
	(void)state;
	lost_answers_of_a_read(ACK);
}

static void
REQ_17_lost_answers_of_a_read_and_a_nak(void **state)
{
	(void)state;
	lost_answers_of_a_read(NSEQ);
}

/* A NAK tells of a loss: what is answered beyond that resend is of no timer. */
static void
REQ_NAK_01_ends_it(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	timed_out(s);
	ack(s, S + 20, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	assert_false(tells(s, S + 31));
	assert_false(tells(s, S + 47));
}

/* So does an RNR NAK: nothing was lost, and nothing is on its way. */
static void
REQ_RNR_01_ends_it(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	timed_out(s);
	assert_false(tells(s, S + 15));
	ack(s, S + 16, RNR + 1);
	assert_int_equal(s->v.cause, QC_RNR_NAK);
	assert_false(tells(s, S + 31));
	assert_false(tells(s, S + 47));
}

/* What follows a NAK without any timeout is of no timer, either. */
static void
REQ_NAK_01_no_timeout(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	post_sends(s, SENDS);
	pump(s);
	ack(s, S + 4, NSEQ);
	assert_false(tells(s, S + 15));
	assert_false(tells(s, S + 31));
	assert_false(tells(s, S + SENDS - 1));
}

RUN(T(TMR_07_answers_go_on), T(TMR_07_up_to_the_last), T(TMR_07_answers_to_the_resend),
	T(REQ_17_lost_answers), T(REQ_17_lost_answers_of_a_read),
	T(REQ_17_lost_answers_of_a_read_and_a_nak), T(REQ_NAK_11_a_peer_that_keeps),
	T(REQ_NAK_01_ends_it), T(REQ_RNR_01_ends_it), T(REQ_NAK_01_no_timeout))
