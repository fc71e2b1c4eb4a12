/* SPDX-License-Identifier: BSD-3-Clause */
/* Transport timer and the error retry counter. */
#include "req.h"

static void
with_retries(struct bed *s, uint8_t retry_cnt, uint32_t sends)
{
	bed_init(s);
	s->r.retry_cnt = retry_cnt;
	requester_reset(&s->r, psn(S));
	post_sends(s, sends);
	pump(s);
}

/* REQ-RETRY-01: timeout, NAK-SEQ and implied NAK share one counter; RNR does not touch it. */
static void
REQ_RETRY_01_causes(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	assert_int_equal(s->r.retry_left, 2);
	pump(s);
	ack(s, S, RNR + 1);
	assert_int_equal(s->r.retry_left, 2);
	expire(s);
	pump(s);
	ack(s, S, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	assert_int_equal(s->r.retry_left, 1);
	pump(s);
	ack(s, S + 1, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	assert_int_equal(s->r.retry_left, 0);
	assert_int_equal(s->r.rnr_left, 2);
	pump(s);
	expire(s);
	expect_error(s, 0, WC_RETRY_EXC, 6);
}

/* REQ-RETRY-02, REQ-RETRY-03, AMB-02, AMB-03: 1 + N transmissions, for 7 too. RX-FATAL-06 */
static void
REQ_RETRY_02_number(void **state)
{
	static const uint8_t counts[] = { 0, 1, 3, 7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct bed bed, *s = &bed;
		uint32_t copies = 0;

		with_retries(s, counts[i], 1);
		do {
			copies += s->n;
			assert_int_equal(s->out[0].psn.v, S);
			assert_int_equal(s->out[0].resend, copies > 1);
			expire(s);
			if ((s->v.act & REQACT_ERROR) == 0)
				pump(s);
		} while ((s->v.act & REQACT_ERROR) == 0);
		assert_int_equal(copies, 1u + counts[i]);
		assert_int_equal(s->v.cause, QC_TIMEOUT);
		assert_int_equal(s->v.outcome, QC_RETRY_EXCEEDED);
		expect_rule(s, "REQ-RETRY-07");
		expect_error(s, 0, WC_RETRY_EXC, 6);
	}
}

static void
REQ_RETRY_04_reload(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 2, 4);
	for (uint32_t i = 0; i < 2; i++) {
		expire(s);
		pump(s);
	}
	assert_int_equal(s->r.retry_left, 0);
	ack(s, S, ACK);
	assert_int_equal(s->r.retry_left, 2);
	for (uint32_t i = 0; i < 2; i++) {
		expire(s);
		expect_resend(s, QC_TIMEOUT, "TMR-07");
		pump(s);
	}
	ack(s, S + 3, ACK);
	expect_done(s, 4);
}

static void
REQ_RETRY_05_ghosts_do_not_reload(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 2, 1);
	for (uint32_t i = 0; i < 2; i++) {
		expire(s);
		pump(s);
		ack(s, S - 1, ACK);
		expect_no_effect(s, "REQ-CLS-E-01");
	}
	expire(s);
	expect_error(s, 0, WC_RETRY_EXC, 6);
}

static void
REQ_RETRY_06_nak_that_makes_progress(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 1, 10);
	for (uint32_t i = 1; i < 10; i++) {
		ack(s, S + i, NSEQ);
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
		assert_int_equal(s->r.retry_left, 0);
		expect_done(s, i);
		pump(s);
		assert_int_equal(s->out[0].psn.v, S + i);
		assert_int_equal(s->n, 10 - i);
	}
	ack(s, S + 9, ACK);
	expect_done(s, 10);
}

static void
REQ_RETRY_07_exhaustion(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 1, 4);
	ack(s, S, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	pump(s);
	assert_int_equal(s->n, 4);
	ack(s, S, NSEQ);
	assert_int_equal(s->v.cause, QC_SEQ_NAK);
	assert_int_equal(s->v.outcome, QC_RETRY_EXCEEDED);
	expect_error(s, 0, WC_RETRY_EXC, 6);
}

/* REQ-RETRY-08, REQ-CLS-A-01: one of each, and nobody hears of it. */
static void
REQ_RETRY_08_recovered(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 3, 1);
	expire(s);
	assert_int_equal(s->v.act, REQACT_RESEND | REQACT_TIMER);
	pump(s);
	ack(s, S, NSEQ);
	assert_int_equal(s->v.act, REQACT_RESEND | REQACT_TIMER);
	pump(s);
	ack(s, S, RNR + 1);
	assert_int_equal(s->v.act, REQACT_RESEND | REQACT_TIMER);
	expire(s);
	assert_int_equal(s->v.act, REQACT_RESEND | REQACT_TIMER);
	pump(s);
	ack(s, S, ACK);
	assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_TIMER);
	expect_done(s, 1);
}

static void
REQ_RETRY_10_independent(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.retry_cnt = 1;
	s->r.rnr_retry = 1;
	requester_reset(&s->r, psn(S));
	post_sends(s, 1);
	pump(s);
	expire(s);
	pump(s);
	ack(s, S, RNR + 1);
	assert_int_equal(s->r.retry_left, 0);
	assert_int_equal(s->r.rnr_left, 0);
	expire(s);
	pump(s);
	ack(s, S, ACK);
	expect_done(s, 1);
	assert_int_equal(s->r.retry_left, 1);
	assert_int_equal(s->r.rnr_left, 1);
}

/* REQ-14: second copies are the first ones but for AckReq; a READ may start part-way. */
static void
REQ_14_identical(void **state)
{
	static struct requester_packet first[OUT_MAX];
	struct bed bed, *s = &bed;
	uint32_t n;

	(void)state;
	bed_init(s);
	POSTF(s, 0, .opcode = WR_SEND_WITH_IMM, .len = 2500, .imm = 0xaabbccdd);
	POSTF(s, SOLICITED, WRITE(5000));
	POSTF(s, SIGNALED | SOLICITED, .opcode = WR_SEND_WITH_INV, .len = 7, .imm = 0x1234);
	POST(s, READ(5000));
	POST(s, .opcode = WR_ATOMIC_CMP_AND_SWP, .len = 8);
	POSTF(s, 0, SEND(0));
	POSTF(s, SIGNALED, .opcode = WR_RDMA_WRITE_WITH_IMM, .len = 1025, .imm = 5);
	pump(s);
	n = s->n;
	memcpy(first, s->out, sizeof(first));
	ack(s, S, NSEQ);
	pump(s);
	assert_int_equal(s->n, n);
	for (uint32_t i = 0; i < n; i++) {
		struct requester_packet copy = s->out[i];

		assert_true(copy.resend);
		copy.resend = false;
		assert_int_equal(first[i].flags & ~copy.flags, 0);
		assert_int_equal(copy.flags & ~first[i].flags & ~ACKREQ, 0);
		copy.flags = first[i].flags;
		assert_memory_equal(&copy, &first[i], sizeof(copy));
	}
}

/* TMR-01: data.ack_timeout */
static void
TMR_01_values(void **state)
{
	uint64_t expected = 8192;

	(void)state;
	for (uint8_t n = 1; n < 32; n++, expected *= 2)
		assert_true(requester_timeout_ns(n) == expected);
	assert_true(requester_timeout_ns(8) == 1048576);
	assert_true(requester_timeout_ns(14) == TTR_14);
	assert_true(requester_timeout_ns(31) == UINT64_C(8796093022208));
}

/* TMR-02, TMR-07: not before Ttr, and from the oldest PSN. */
static void
TMR_02_bounds(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 3, 3);
	s->now = T0 + WAIT_14 - 1;
	fire(s);
	assert_int_equal(s->v.act, 0);
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 0);
	s->now = T0 + WAIT_14;
	fire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	assert_int_equal(s->r.retry_left, 2);
	pump(s);
	expect_psns(s, S, S + 1, S + 2);
	assert_true(s->r.timing && s->r.deadline == s->now + WAIT_14);
}

static void
TMR_03_zero_disables(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.timeout = 0;
	POST(s, SEND(64));
	POST(s, SEND(64));
	pump(s);
	assert_false(s->r.timing);
	s->now += 10000 * MS;
	fire(s);
	assert_int_equal(s->v.act, 0);
	ack(s, S, ACK);
	assert_false(s->r.timing);
	ack(s, S + 1, ACK);
	expect_done(s, 2);
}

static void
TMR_05_what_arms(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(64));
	pump(s);
	assert_true(s->r.timing && s->r.deadline == T0 + WAIT_14);
	bed_init(s);
	POST(s, READ(64));
	pump(s);
	assert_true(s->r.timing && s->r.deadline == T0 + WAIT_14);
	bed_init(s);
	POST(s, FADD);
	pump(s);
	assert_true(s->r.timing && s->r.deadline == T0 + WAIT_14);
	bed_init(s);
	POST(s, SEND(4096));
	assert_int_equal(requester_next(&s->r, s->now, &s->out[0]), REQ_SEND);
	assert_int_equal(s->out[0].flags & ACKREQ, 0);
	assert_false(s->r.timing);
}

/* TMR-05: sending on does not put the deadline off. */
static void
TMR_05_sending_does_not_restart(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 3, 1);
	for (uint32_t i = 0; i < 10; i++) {
		s->now += 5 * MS;
		post_sends(s, 1);
		pump(s);
	}
	assert_true(s->r.deadline == T0 + WAIT_14);
}

static void
TMR_06_restart_and_stop(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 3, 4);
	s->now = T0 + TTR_14 / 5 * 4;
	ack(s, S, ACK);
	assert_true(s->r.timing && s->r.deadline == s->now + WAIT_14);
	s->now = T0 + WAIT_14;
	fire(s); /* the node of the old deadline */
	assert_int_equal(s->v.act, 0);
	assert_true(s->r.timing);
	ack(s, S + 3, ACK);
	assert_int_equal(s->v.act & REQACT_TIMER, REQACT_TIMER);
	assert_false(s->r.timing);
}

/* TMR-06: a READ's responses restart it too, and it stops with the last. */
static void
TMR_06_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(2048));
	pump(s);
	s->now += 30 * MS;
	FIRST(s, S);
	assert_true(s->r.timing && s->r.deadline == s->now + WAIT_14);
	LAST(s, S + 1, 1024);
	assert_false(s->r.timing);
}

/* TMR-12: ghosts, discarded ACKs and old data do not feed it. */
static void
TMR_12_ghosts(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	for (uint32_t i = 0; i < 8; i++) {
		s->now += 8 * MS;
		ack(s, S - 1, ACK);
		ack(s, S, ACK);
		FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = S - 2, .syn = ACK);
	}
	assert_true(s->r.timing && s->r.deadline == T0 + WAIT_14);
}

/* REQ-RETRY-09: where there is another path, the whole count again, once; any cause. */
static void
REQ_RETRY_09_another_path(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (int cause = 0; cause < 3; cause++) {
		with_retries(s, 1, 2);
		if (cause == 2) {
			bed_init(s);
			s->r.retry_cnt = 1;
			requester_reset(&s->r, psn(S));
			POST(s, READ(64));
			POST(s, SEND(64));
			pump(s);
		}
		s->r.armed = true;
		for (int i = 0; i < 4; i++) {
			if (cause == 0)
				expire(s);
			else
				ack(s, cause == 1 ? S : S + 1, cause == 1 ? NSEQ : ACK);
			assert_int_equal((s->v.act & REQACT_MIGRATE) != 0, i == 1);
			assert_int_equal((s->v.act & REQACT_ERROR) != 0, i == 3);
			if (i == 3)
				break;
			assert_int_equal(s->v.act & REQACT_RESEND, REQACT_RESEND);
			assert_int_equal(s->r.retry_left, i == 0 || i == 2 ? 0 : 1);
			if (i == 1)
				expect_rule(s, "REQ-RETRY-09");
			pump(s);
			assert_int_equal(s->n, 2);
			assert_int_equal(s->out[0].psn.v, S);
		}
		assert_int_equal(s->v.wc_status, WC_RETRY_EXC);
	}
}

/*
 * REQ-RETRY-09, REQ-IMPL-05: what the peer had sent over the path before comes behind the change,
 * and is no reason to give the READ up that has just left: its answer has the round trip before. So
 * it is where the QP migrates with requests that have not left.
 */
static void
REQ_RETRY_09_older_answers(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (int stranded = 0; stranded < 2; stranded++) {
		bed_init(s);
		s->r.retry_cnt = 0;
		requester_reset(&s->r, psn(S));
		POST(s, SEND(64));
		pump(s);
		s->now += 20000;
		ack(s, S, ACK);
		s->r.armed = stranded == 0;
		POST(s, READ(4 * PMTU));
		POST(s, SEND(64));
		pump(s);
		s->now += 20000;
		if (stranded != 0) {
			s->r.rtt_min = 20000; /* as the MIDDLE shows where it comes first */
			requester_stranded(&s->r, &s->v);
		} else {
			MIDDLE(s, S + 2);
		}
		expect_rule(s, stranded != 0 ? "" : "REQ-RETRY-09");
		assert_int_equal(s->v.act & REQACT_RESEND, REQACT_RESEND);
		pump(s);
		s->now += 128;
		MIDDLE(s, S + 3);
		assert_int_equal(s->v.act & REQACT_ERROR, 0);
		assert_true(s->r.doubting);
		assert_true(s->r.deadline - s->now >= 2 * 20000);
	}
}

/* A spent RNR counter says nothing of the path. */
static void
REQ_RNR_05_no_other_path(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	with_retries(s, 1, 1);
	s->r.armed = true;
	s->r.rnr_left = 0;
	ack(s, S, RNR);
	assert_int_equal(s->v.act & (REQACT_MIGRATE | REQACT_ERROR), REQACT_ERROR);
	assert_int_equal(s->v.wc_status, WC_RNR_RETRY_EXC);
}

RUN(T(REQ_RETRY_01_causes), T(REQ_RETRY_02_number), T(REQ_RETRY_04_reload),
	T(REQ_RETRY_09_another_path), T(REQ_RETRY_09_older_answers), T(REQ_RNR_05_no_other_path),
	T(REQ_RETRY_05_ghosts_do_not_reload), T(REQ_RETRY_06_nak_that_makes_progress),
	T(REQ_RETRY_07_exhaustion), T(REQ_RETRY_08_recovered), T(REQ_RETRY_10_independent),
	T(REQ_14_identical), T(TMR_01_values), T(TMR_02_bounds), T(TMR_03_zero_disables),
	T(TMR_05_what_arms), T(TMR_05_sending_does_not_restart), T(TMR_06_restart_and_stop),
	T(TMR_06_read), T(TMR_12_ghosts))
