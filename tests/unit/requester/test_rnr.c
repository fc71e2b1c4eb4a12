/* SPDX-License-Identifier: BSD-3-Clause */
/* RNR NAKs: wait, come back, give up. */
#include "req.h"

static void
with_rnr(struct bed *s, uint8_t rnr_retry, uint32_t sends)
{
	bed_init(s);
	s->r.rnr_retry = rnr_retry;
	requester_reset(&s->r, psn(S));
	post_sends(s, sends);
	pump(s);
}

/*
 * REQ-RNR-01: all 32 codes, in microseconds, typed from data.rnr_timer, and a thousandth more: the
 * peer's clock may be so much slower. REQ-RNR-02
 */
static void
REQ_RNR_01_wait(void **state)
{
	static const uint64_t us[32] = { 655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480,
		640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960,
		61440, 81920, 122880, 163840, 245760, 327680, 491520 };

	(void)state;
	for (uint8_t code = 0; code < 32; code++) {
		struct bed bed, *s = &bed;

		with_rnr(s, 3, 1);
		ack(s, S, (uint8_t)(RNR + code));
		expect_resend(s, QC_RNR_NAK, "REQ-RNR-03");
		assert_true(s->r.waiting_rnr);
		assert_true(s->r.deadline == T0 + us[code] * 1001);
		assert_int_equal(pump(s), REQ_RNR_WAIT);
		s->now = T0 + us[code] * 1001 - 1;
		fire(s);
		assert_int_equal(s->v.act, 0);
		assert_int_equal(pump(s), REQ_RNR_WAIT);
		assert_int_equal(s->n, 0);
		s->now++;
		fire(s);
		assert_int_equal(s->v.act, REQACT_RESEND | REQACT_TIMER);
		expect_rule(s, "REQ-RNR-01");
		pump(s);
		expect_psns(s, S);
	}
}

/* REQ-RNR-03, REQ-RNR-08 */
static void
REQ_RNR_03_rewind(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_rnr(s, 3, 4);
	ack(s, S + 2, RNR + 12);
	expect_done(s, 2);
	post_sends(s, 1);
	assert_int_equal(pump(s), REQ_RNR_WAIT);
	assert_int_equal(s->n, 0);
	expire(s);
	pump(s);
	expect_psns(s, S + 2, S + 3, S + 4);
	assert_true(s->out[1].resend);
	assert_false(s->out[2].resend);
}

/* REQ-RNR-04, AMB-01, REQ-RNR-05, RX-FATAL-09 */
static void
REQ_RNR_04_number(void **state)
{
	static const uint8_t counts[] = { 0, 1, 3, 6 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct bed bed, *s = &bed;
		uint32_t copies = 1;

		with_rnr(s, counts[i], 4);
		ack(s, S, RNR + 1);
		while ((s->v.act & REQACT_ERROR) == 0) {
			expire(s);
			pump(s);
			assert_int_equal(s->out[0].psn.v, S);
			copies++;
			ack(s, S, RNR + 1);
		}
		assert_int_equal(copies, 1u + counts[i]);
		assert_int_equal(s->v.cause, QC_RNR_NAK);
		assert_int_equal(s->v.outcome, QC_RNR_EXCEEDED);
		expect_rule(s, "REQ-RNR-05");
		expect_error(s, 0, WC_RNR_RETRY_EXC, 9);
	}
}

static void
REQ_RNR_06_for_ever(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_rnr(s, 7, 1);
	for (uint32_t i = 0; i < 100; i++) {
		ack(s, S, RNR + 1);
		assert_int_equal(s->r.rnr_left, 7);
		expire(s);
		pump(s);
		expect_psns(s, S);
	}
	ack(s, S, ACK);
	expect_done(s, 1);
}

static void
REQ_RNR_07_reload(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_rnr(s, 1, 2);
	for (uint32_t i = 0; i < 2; i++) {
		ack(s, S + i, RNR + 1);
		assert_int_equal(s->r.rnr_left, 0);
		expire(s);
		pump(s);
		ack(s, S + i, ACK);
		assert_int_equal(s->r.rnr_left, 1);
	}
	expect_done(s, 2);
}

/* REQ-RNR-09, TMR-08 */
static void
REQ_RNR_09_transport_timer(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.timeout = 8;
	post_sends(s, 1);
	pump(s);
	assert_true(s->r.timing);
	ack(s, S, RNR + 20);
	assert_false(s->r.timing);
	for (uint32_t i = 0; i < 10; i++) {
		s->now += MS;
		fire(s);
		assert_int_equal(s->v.act, 0);
	}
	assert_int_equal(s->r.retry_left, 3);
	expire(s);
	assert_false(s->r.timing);
	assert_false(s->r.waiting_rnr);
	pump(s);
	assert_true(s->r.timing && s->r.deadline == s->now + 1048576 + 1024);
	/* Further NAKs for the same copy say nothing new. */
	ack(s, S, RNR + 20);
	ack(s, S, RNR + 20);
	expect_no_effect(s, "REQ-RNR-09");
	ack(s, S, NSEQ);
	expect_no_effect(s, "REQ-RNR-09");
	assert_int_equal(s->r.rnr_left, 1);
}

/* An ACK of the refused packet ends the wait: another copy was taken. */
static void
REQ_RNR_03_ack_in_the_wait(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_rnr(s, 3, 3);
	ack(s, S, RNR + 20);
	ack(s, S, ACK);
	expect_done(s, 1);
	assert_false(s->r.waiting_rnr);
	assert_int_equal(s->v.act & REQACT_RESEND, REQACT_RESEND); /* who slept is to be woken */
	assert_int_equal(pump(s), REQ_IDLE);
	expect_psns(s, S + 1, S + 2);
}

static void
REQ_RNR_10_stray(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_rnr(s, 3, 3);
	ack(s, S + 1, ACK);
	ack(s, S + 1, RNR + 12);
	expect_no_effect(s, "REQ-RNR-10");
	ack(s, S + 9, RNR + 12);
	expect_no_effect(s, "REQ-RNR-10");
}

static void
REQ_RNR_11_any_request(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(3000));
	POST(s, WRITE(10));
	POST(s, FADD);
	POST(s, READ(3000));
	pump(s);
	for (uint32_t at = 0; at < 6; at++) { /* SEND's three packets, WRITE, ATOMIC, READ */
		ack(s, S + at, RNR + 1);
		expect_resend(s, QC_RNR_NAK, "REQ-RNR-03");
		expire(s);
		pump(s);
		assert_int_equal(s->n, 6 - at);
		assert_int_equal(s->out[0].psn.v, S + at);
		if (at == 4)
			FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = S + 4, .syn = ACK);
	}
	FIRST(s, S + 5); /* and in the middle of the READ */
	ack(s, S + 6, RNR + 1);
	expire(s);
	pump(s);
	expect_psns(s, S + 6);
	assert_int_equal(s->out[0].dma_len, 1976);
}

RUN(T(REQ_RNR_01_wait), T(REQ_RNR_03_rewind), T(REQ_RNR_04_number), T(REQ_RNR_06_for_ever),
	T(REQ_RNR_07_reload), T(REQ_RNR_09_transport_timer), T(REQ_RNR_03_ack_in_the_wait),
	T(REQ_RNR_10_stray), T(REQ_RNR_11_any_request))
