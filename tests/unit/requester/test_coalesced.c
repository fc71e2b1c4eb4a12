/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that acknowledge everything at once, after a resend: an answer to a READ that is lost once
 * more is missed, without a transport timer too (REQ-IMPL-01), and not before it can be (-05).
 */
#include "req.h"

#define RTT UINT64_C(10000)

/** SEND S, READ S+1, SEND S+2, all of it sent. */
static void
start(struct bed *s, uint8_t timeout)
{
	bed_init(s);
	s->r.timeout = timeout;
	requester_reset(&s->r, psn(S));
	POST(s, SEND(64));
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	s->now += RTT;
}

/** All of it leaves again; the peer's one answer comes. */
static void
resent_and_acked(struct bed *s)
{
	pump(s);
	expect_psns(s, S, S + 1, S + 2);
	s->now += RTT;
	ack(s, S + 2, ACK);
	expect_done(s, 1);
}

static void
goes_on_well(struct bed *s)
{
	pump(s);
	expect_psns(s, S + 1, S + 2);
	s->now += RTT;
	ONLY(s, S + 1, 64);
	expect_done(s, 2);
	ack(s, S + 2, ACK);
	expect_done(s, 3);
	assert_false(s->r.timing);
}

static const uint8_t timeouts[] = { 14, 0 };

/* What the peer refused it answers for the first time: the READ's answer is missed at once. */
static void
REQ_IMPL_01_after_a_sequence_nak(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
		start(s, timeouts[i]);
		ack(s, S, NSEQ);
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
		resent_and_acked(s);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
		assert_int_equal(s->r.retry_left, 2); /* the SEND was progress */
		goes_on_well(s);
	}
}

static void
REQ_IMPL_01_after_an_rnr_nak(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
		start(s, timeouts[i]);
		ack(s, S, RNR + 1);
		expect_resend(s, QC_RNR_NAK, "REQ-RNR-03");
		expire(s);
		expect_rule(s, "REQ-RNR-01");
		resent_and_acked(s);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
		assert_int_equal(s->r.retry_left, 2);
		goes_on_well(s);
	}
}

/* The ACK may have been made from the first SEND's copy: the READ's answer gets some time. */
static void
REQ_IMPL_01_after_a_timeout(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
		start(s, 14);
		expire(s);
		expect_resend(s, QC_TIMEOUT, "TMR-07");
		s->r.timeout = timeouts[i]; /* modified */
		resent_and_acked(s);
		assert_int_equal(s->v.cause, QC_NONE);
		assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_TIMER);
		expect_rule(s, "REQ-IMPL-05");
		assert_true(s->r.deadline > s->now);
		assert_true(s->r.deadline < s->now + 100 * RTT);
		expire(s);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
		assert_int_equal(s->r.retry_left, 2);
		goes_on_well(s);
	}
}

/* REQ-IMPL-01: nor is the third copy forgotten, whichever pass the ACK answers. */
static void
REQ_IMPL_01_after_an_implied_nak(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
		start(s, timeouts[i]);
		ack(s, S + 2, ACK);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
		for (uint32_t left = 1; left != UINT32_MAX; left--) {
			pump(s);
			expect_psns(s, S + 1, S + 2);
			s->now += RTT;
			ack(s, S + 2, ACK);
			assert_int_equal(s->v.act, REQACT_TIMER);
			assert_true(s->r.deadline < s->now + 100 * RTT);
			expire(s);
			expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
			assert_int_equal(s->r.retry_left, left);
		}
		goes_on_well(s);
	}
}

/* REQ-IMPL-06: with the last retry used up, the READ fails. */
static void
REQ_IMPL_06_acks_only(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
		start(s, timeouts[i]);
		s->r.retry_cnt = 1;
		ack(s, S + 2, ACK);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
		pump(s);
		s->now += RTT;
		ack(s, S + 2, ACK);
		expire(s);
		assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
		assert_int_equal(s->v.outcome, QC_RETRY_EXCEEDED);
		expect_error(s, 1, WC_RETRY_EXC, 6);
	}
}

/* The answer was only behind: nothing is resent, and the timer is the transport's again. */
static void
REQ_IMPL_05_answer_comes_in_time(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
		start(s, 14);
		expire(s);
		s->r.timeout = timeouts[i];
		resent_and_acked(s);
		s->now++;
		ONLY(s, S + 1, 64);
		expect_done(s, 2);
		assert_int_equal(s->r.timing, timeouts[i] != 0);
		if (s->r.timing) {
			assert_true(s->r.deadline >= s->now + TTR_14);
			expire(s);
			expect_resend(s, QC_TIMEOUT, "TMR-07");
			pump(s);
			expect_psns(s, S + 2);
		}
		ack(s, S + 2, ACK);
		expect_done(s, 3);
		assert_int_equal(s->r.retry_left, 3);
	}
}

/* What follows neither puts the retry off nor counts once more. */
static void
REQ_IMPL_05_one_for_a_pass(void **state)
{
	struct bed bed, *s = &bed;
	ns_t deadline;

	(void)state;
	start(s, 14);
	ack(s, S + 2, ACK);
	pump(s);
	s->now += RTT;
	ack(s, S + 2, ACK);
	deadline = s->r.deadline;
	for (uint32_t i = 0; i < 100; i++) {
		s->now += 10;
		ack(s, S + 2, ACK);
		assert_int_equal(s->v.act, REQACT_DROP);
		expect_rule(s, "REQ-IMPL-05");
		assert_true(s->r.deadline == deadline);
	}
	assert_int_equal(s->r.retry_left, 2);
	expire(s);
	assert_int_equal(s->r.retry_left, 1);
}

/* TMR-02, TMR-12: a transport timer that is due before that is not put off. */
static void
TMR_02_is_not_put_off(void **state)
{
	struct bed bed, *s = &bed;
	ns_t deadline;

	(void)state;
	start(s, 1); /* 8.192 us */
	ack(s, S + 2, ACK);
	pump(s);
	deadline = s->r.deadline;
	s->now += 6000;
	ack(s, S + 2, ACK);
	assert_int_equal(s->v.act, REQACT_DROP);
	assert_true(s->r.deadline == deadline);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
}

/* What comes sooner than the shortest round trip ever did waits as long at least. */
static void
REQ_IMPL_05_sooner_than_a_round_trip(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	pump(s);
	s->now += RTT;
	ONLY(s, S, 64);
	POST(s, READ(64));
	post_sends(s, 3);
	pump(s);
	s->now += RTT;
	ack(s, S + 2, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	pump(s);
	s->now += RTT / 4;
	ack(s, S + 3, ACK);
	assert_int_equal(s->v.act, REQACT_TIMER);
	expect_rule(s, "REQ-IMPL-05");
	assert_true(s->r.deadline >= s->now + RTT);
	assert_true(s->r.deadline < s->now + 100 * RTT);
	s->now += RTT / 4;
	ack(s, S + 4, ACK);
	assert_int_equal(s->v.act, REQACT_DROP);
	expect_rule(s, "REQ-IMPL-05");
	assert_int_equal(s->r.retry_left, 2);
	expire(s);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
}

/** A READ and a SEND leave; the ACK of the SEND, at `beyond`, comes after RTT. */
static void
read_is_missed(struct bed *s, uint32_t beyond)
{
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	s->now += RTT;
	ack(s, beyond, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
}

/** All of it leaves again, that ACK comes again. @return how long the READ's answer has. */
static ns_t
waits_again(struct bed *s, uint32_t beyond)
{
	s->r.probes = 3; /* used up: one would come before the longer waits end */
	pump(s);
	s->now += RTT;
	ack(s, beyond, ACK);
	assert_int_equal(s->v.act, REQACT_TIMER);
	expect_rule(s, "REQ-IMPL-05");
	return s->r.deadline - s->now;
}

/*
 * Where the way has become longer, the wait that the shortest round trip allows is in vain each
 * time. So each one doubles the next, up to eight times and a quarter of the transport timer's.
 */
static void
REQ_IMPL_05_waits_grow(void **state)
{
	static const struct {
		uint8_t timeout;
		uint8_t most; /* times as long as the first */
	} rows[] = { { 14, 8 }, { 0, 8 }, { 6, 2 }, { 5, 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;
		ns_t first, want;

		start(s, rows[i].timeout);
		s->r.retry_left = s->r.retry_cnt = 7;
		ack(s, S + 2, ACK);
		first = want = waits_again(s, S + 2);
		assert_true(first >= RTT);
		assert_true(first <= 4 * RTT);
		for (uint32_t k = 0; k < 5; k++) {
			expire(s);
			expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
			want *= want < rows[i].most * first ? 2 : 1;
			assert_in_range(waits_again(s, S + 2), want - want / 50, want + want / 50);
		}
		/* A round trip is measured: it is as the shortest, and so is the next wait. */
		ONLY(s, S + 1, 64);
		ack(s, S + 2, ACK);
		s->r.rounds = true;
		POST(s, SEND(64));
		round_trip(s, RTT);
		assert_int_equal(s->r.retry_left, 7);
		read_is_missed(s, S + 5);
		assert_in_range(waits_again(s, S + 5), first - first / 50, first + first / 50);
	}
}

/* What a queue adds to round trips counts: the newest one may be longer than the shortest. */
static void
REQ_IMPL_05_waits_for_the_newest(void **state)
{
	static const struct {
		ns_t newest;
		uint8_t times;
	} rows[] = { { RTT, 1 }, { 2 * RTT, 1 }, { 5 * RTT / 2, 2 }, { 5 * RTT, 4 },
		{ 10 * RTT, 8 }, { 100 * RTT, 8 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		s->r.rounds = true;
		for (uint32_t k = 0; k < 2; k++) {
			POST(s, SEND(64));
			round_trip(s, k == 0 ? RTT : rows[i].newest);
		}
		read_is_missed(s, S + 3);
		assert_in_range(waits_again(s, S + 3), rows[i].times * 2 * RTT,
			rows[i].times * 2 * (s->r.rtt_min + RTT / 100));
	}
}

/* An ACK of what was never sent before this pass can only come of this pass. */
static void
REQ_IMPL_01_ack_of_something_new(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	start(s, 0);
	ack(s, S + 2, ACK);
	pump(s);
	POST(s, SEND(64));
	pump(s);
	expect_psns(s, S + 3);
	s->now += RTT;
	ack(s, S + 3, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
}

/* READs alone: of the first pass the second is answered, of the second pass the third. */
static void
REQ_IMPL_02_another_each_time(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
		bed_init(s);
		s->r.timeout = timeouts[i];
		for (uint32_t k = 0; k < 3; k++)
			POST(s, READ(64));
		pump(s);
		s->now += RTT;
		ONLY(s, S + 1, 64);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
		pump(s);
		s->now += RTT;
		ONLY(s, S + 2, 64);
		assert_int_equal(s->v.act, REQACT_TIMER);
		assert_true(s->r.deadline < s->now + 100 * RTT);
		expire(s);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
		pump(s);
		expect_psns(s, S, S + 1, S + 2);
	}
}

RUN(T(REQ_IMPL_01_after_a_sequence_nak), T(REQ_IMPL_01_after_an_rnr_nak),
	T(REQ_IMPL_01_after_a_timeout), T(REQ_IMPL_01_after_an_implied_nak),
	T(REQ_IMPL_06_acks_only), T(REQ_IMPL_05_answer_comes_in_time),
	T(REQ_IMPL_05_one_for_a_pass), T(TMR_02_is_not_put_off),
	T(REQ_IMPL_05_sooner_than_a_round_trip), T(REQ_IMPL_01_ack_of_something_new),
	T(REQ_IMPL_02_another_each_time), T(REQ_IMPL_05_waits_grow),
	T(REQ_IMPL_05_waits_for_the_newest))
