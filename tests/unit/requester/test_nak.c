/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequence NAKs, fatal NAKs, reserved syndromes. */
#include "req.h"

static void
sent(struct bed *s, uint32_t sends)
{
	bed_init(s);
	post_sends(s, sends);
	pump(s);
}

/* REQ-NAK-01, REQ-NAK-02 */
static void
REQ_NAK_01_rewind(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 5);
	ack(s, S + 2, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	expect_done(s, 2);
	assert_int_equal(s->v.fault, 0xff);
	pump(s);
	expect_psns(s, S + 2, S + 3, S + 4);
	ack(s, S + 4, ACK);
	expect_done(s, 5);
}

/* REQ-NAK-01 in the middle of messages: only what is missing is sent again. */
static void
REQ_NAK_01_inside_a_message(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.window = 5;
	POST(s, SEND(64));
	POST(s, WRITE(8 * 1024));
	assert_int_equal(pump(s), REQ_WINDOW);
	ack(s, S + 2, NSEQ);
	expect_done(s, 1);
	pump(s);
	expect_psns(s, S + 2, S + 3, S + 4, S + 5, S + 6);
	assert_int_equal(s->out[0].opcode, 0x07);
	assert_int_equal(s->out[0].offset, 1024);
	assert_true(s->out[2].resend);
	assert_false(s->out[3].resend); /* the message goes on where it was */
	ack(s, S + 6, ACK);
	pump(s);
	expect_psns(s, S + 7, S + 8);
	assert_int_equal(s->out[1].opcode, 0x08);
	ack(s, S + 8, ACK);
	expect_done(s, 2);
}

/* REQ-07 in a resend: AckReq is counted from its start; four times in a window below 64. */
static void
REQ_NAK_01_ackreq(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.window = 26;
	POST(s, SEND(40 * 1024));
	for (uint32_t i = 0; i < 25; i++)
		assert_int_equal(requester_next(&s->r, s->now, &s->out[i]), REQ_SEND);
	ack(s, S, NSEQ);
	pump(s);
	assert_int_equal(s->n, 26);
	for (uint32_t i = 0; i < 26; i++)
		assert_int_equal(s->out[i].flags & ACKREQ, i % 6 == 5 || i == 25 ? ACKREQ : 0);
}

static void
REQ_NAK_03_stray(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 5);
	ack(s, S + 1, ACK);
	ack(s, S + 1, NSEQ);
	expect_no_effect(s, "REQ-NAK-03");
	ack(s, S + 9, NSEQ);
	expect_no_effect(s, "REQ-NAK-03");
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 0);
}

static void
REQ_NAK_04_repeated(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 4);
	ack(s, S, NSEQ);
	assert_int_equal(requester_next(&s->r, s->now, &s->out[0]), REQ_SEND);
	assert_int_equal(requester_next(&s->r, s->now, &s->out[1]), REQ_SEND);
	ack(s, S, NSEQ);
	assert_int_equal(s->r.retry_left, 1);
	pump(s); /* one pass, from the start */
	expect_psns(s, S, S + 1, S + 2, S + 3);
	ack(s, S, NSEQ);
	ack(s, S, NSEQ);
	expect_error(s, 0, WC_RETRY_EXC, 6);
}

/* REQ-NAK-05..07, REQ-NAK-09, REQ-NAK-10, RX-FATAL-10, RX-SYN-23 */
static void
REQ_NAK_05_fatal(void **state)
{
	static const struct {
		uint8_t syn, status, cause;
		const char *rule;
	} rows[] = { { NINV, WC_REM_INV_REQ, QC_REMOTE_INVALID, "REQ-NAK-05" },
		{ NRAE, WC_REM_ACCESS, QC_REMOTE_ACCESS, "REQ-NAK-06" },
		{ NROE, WC_REM_OP, QC_REMOTE_OPERATION, "REQ-NAK-07" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		sent(s, 4);
		ack(s, S + 1, rows[i].syn);
		expect_done(s, 1);
		assert_int_equal(s->v.cause, rows[i].cause);
		assert_int_equal(s->v.outcome, QC_NONE);
		assert_int_equal(s->v.fault, 23);
		expect_rule(s, rows[i].rule);
		expect_error(s, 1, rows[i].status, 10);
		assert_int_equal(s->r.retry_left, 3);
	}
}

/* REQ-NAK-08: the work request that contains the PSN fails. */
static void
REQ_NAK_08_inside_a_message(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(1));
	POST(s, SEND(3000));
	POST(s, SEND(1));
	pump(s);
	ack(s, S + 2, NINV);
	expect_done(s, 1);
	expect_error(s, 1, WC_REM_INV_REQ, 10);

	bed_init(s);
	POST(s, READ(4096));
	POST(s, SEND(1));
	pump(s);
	FIRST(s, S);
	MIDDLE(s, S + 1);
	ack(s, S + 2, NRAE);
	expect_error(s, 0, WC_REM_ACCESS, 10);
}

/* REQ-NAK-08: what the peer refuses has its status, though the rest of it could not be sent. */
static void
REQ_NAK_08_refused_and_at_fault(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(1));
	POST(s, WRITE(3000));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(requester_next(&s->r, s->now, &s->out[0]), REQ_SEND);
	memset(&s->v, 0, sizeof(s->v));
	requester_local_fault(&s->r, 1, WR_FAULT_PROT, &s->v);
	ack(s, S + 1, NRAE);
	expect_done(s, 1);
	expect_error(s, 1, WC_REM_ACCESS, 10);
}

/* REQ-CLS-B-04, RX-FATAL-25, AMB-11, AMB-13; dropped with req.bad_aeth=drop: RX-SYN-22 */
static void
REQ_CLS_B_04_reserved_syndromes(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t syn = 0x40; syn < 0x100; syn++) {
		if (syn >= 0x60 && syn <= 0x63)
			continue;
		sent(s, 2);
		ack(s, S + 1, (uint8_t)syn);
		assert_int_equal(s->v.fault, 22);
		expect_done(s, 1);
		expect_rule(s, "REQ-CLS-B-04");
		expect_error(s, 1, WC_BAD_RESP, 25);

		sent(s, 2);
		s->r.knobs = REQ_KNOB_BAD_AETH_DROP;
		ack(s, S + 1, (uint8_t)syn);
		expect_no_effect(s, "RX-SYN-22");
		assert_int_equal(s->v.fault, 22);
		expire(s);
		pump(s);
		expect_psns(s, S, S + 1);
	}
}

/* The response that was waited for has come: silence after it is a timeout like any other. */
static void
REQ_IMPL_05_doubt_is_over(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	post_sends(s, 2);
	pump(s);
	expire(s);
	pump(s);
	expect_psns(s, S, S + 1, S + 2);
	s->now += MS;
	ack(s, S + 1, ACK); /* of either pass */
	expect_rule(s, "REQ-IMPL-05");
	assert_int_equal(s->v.act, REQACT_TIMER);
	ONLY(s, S, 64);
	expect_done(s, 1);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	pump(s);
	expect_psns(s, S + 1, S + 2);
}

RUN(T(REQ_NAK_01_rewind), T(REQ_NAK_01_inside_a_message), T(REQ_NAK_01_ackreq), T(REQ_NAK_03_stray),
	T(REQ_NAK_04_repeated), T(REQ_NAK_05_fatal), T(REQ_NAK_08_inside_a_message),
	T(REQ_NAK_08_refused_and_at_fault), T(REQ_CLS_B_04_reserved_syndromes),
	T(REQ_IMPL_05_doubt_is_over))
