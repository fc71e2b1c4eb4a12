/* SPDX-License-Identifier: BSD-3-Clause */
/* What acknowledgements complete, and what stays without effect. */
#include "req.h"

static void
REQ_03_completion(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(3000));
	pump(s);
	ack(s, S + 1, ACK);
	assert_int_equal(s->v.act, REQACT_TIMER);
	expect_done(s, 0);
	ack(s, S + 2, ACK);
	assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_TIMER);
	assert_int_equal(s->v.fault, 0xff);
	assert_int_equal(s->v.cause, QC_NONE);
	expect_rule(s, "REQ-03");
	expect_done(s, 1);
	assert_false(requester_outstanding(&s->r));
	/* every ACK syndrome: credits do not matter here */
	for (uint32_t code = 0; code < 32; code++) {
		POST(s, SEND(1));
		pump(s);
		ack(s, S + 3 + code, (uint8_t)code);
		expect_done(s, 2 + code);
	}
}

static void
REQ_04_coalesced(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	post_sends(s, 3);
	pump(s);
	ack(s, S + 2, ACK);
	assert_int_equal(s->v.head_was, 0);
	assert_int_equal(s->v.completed, 3);
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 0);
}

/*
 * REQ-03, REQ-04: ACKs with rising PSNs come to the same at once as one after the other, be a round
 * trip over with one of them or not: that of the first packet that asks with four or more before it
 * in flight is timed. `all` are the PSNs in flight.
 */
static void
REQ_04_rising_at_once(void **state)
{
	static const struct {
		uint32_t messages, len, all;
		uint32_t n, acks[4]; /* PSNs beyond the first */
	} cases[] = {
		{ 1, 64, 1, 1, { 0 } },
		{ 4, 64, 4, 4, { 0, 1, 2, 3 } },
		{ 4, 64, 4, 2, { 1, 3 } },
		{ 4, 64, 4, 1, { 3 } },
		{ 8, 64, 8, 3, { 0, 2, 3 } },
		{ 8, 64, 8, 2, { 3, 4 } },
		{ 8, 64, 8, 2, { 4, 7 } },
		{ 8, 64, 8, 1, { 7 } },
		{ 2, 2048, 4, 2, { 0, 3 } },
		{ 2, 2048, 4, 3, { 0, 1, 2 } },
		{ 3, 2049, 9, 3, { 1, 2, 4 } }, /* the last packet of each asks */
		{ 3, 2049, 9, 3, { 2, 5, 8 } },
	};
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct requester at_once;
		uint32_t n, last = 0;

		bed_init(s);
		for (uint32_t k = 0; k < cases[i].messages; k++)
			POST(s, SEND(cases[i].len));
		pump(s);
		s->now += MS;
		at_once = s->r;
		assert_int_equal(requester_ack_limit(&at_once), cases[i].all);
		for (uint32_t k = 0; k < cases[i].n; k++) {
			last = cases[i].acks[k];
			ack(s, S + last, ACK);
			assert_int_equal(s->v.cause, QC_NONE);
		}
		n = requester_take_acks(&at_once, last, s->now);
		assert_int_equal(n, s->done);
		assert_memory_equal(&at_once, &s->r, sizeof(at_once));
	}
}

/* Where somebody has to be told of round trips, what ends one is not taken in silence. */
static void
REQ_04_told_of_rounds(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.rounds = true;
	post_sends(s, 3);
	pump(s);
	assert_int_equal(requester_ack_limit(&s->r), 0); /* the first packet's is timed */
	ack(s, S, ACK);
	assert_true((s->v.act & REQACT_ROUND) != 0);
	assert_int_equal(requester_ack_limit(&s->r), 2);
}

/* REQ-08: WRITE, READ, SEND: the READ holds back the SEND's completion. */
static void
REQ_08_in_order(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, WRITE(64));
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	ONLY(s, S + 1, 64);
	assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_PLACE | REQACT_TIMER);
	assert_int_equal(s->v.completed, 2); /* the response acknowledges the WRITE as well */
	assert_int_equal(s->v.position, 1);
	ack(s, S + 2, ACK);
	expect_done(s, 3);
}

static void
REQ_09_unsignalled(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	for (uint32_t i = 0; i < 3; i++)
		POSTF(s, 0, SEND(64));
	POST(s, SEND(64));
	pump(s);
	ack(s, S + 3, ACK);
	assert_int_equal(s->v.completed, 4);
	/* An error is reported on an unsignalled one too. */
	POSTF(s, 0, SEND(64));
	pump(s);
	ack(s, S + 4, NINV);
	expect_error(s, 4, WC_REM_INV_REQ, 10);
}

/* REQ-15, REQ-CLS-E-01, REQ-NAK-03, REQ-RNR-10: outside the range nothing has any effect. */
static void
REQ_15_ghosts(void **state)
{
	static const uint32_t psns[] = { S - 5, S - 1, S + 4, S + 9, S + 0x800000, S + 0x7fffff,
		S - 0x7fffff };
	static const struct {
		uint8_t syn;
		const char *rule;
	} kinds[] = { { ACK, "REQ-CLS-E-01" }, { 0x00, "REQ-CLS-E-01" }, { NSEQ, "REQ-NAK-03" },
		{ NINV, "REQ-CLS-E-01" }, { NRAE, "REQ-CLS-E-01" }, { NROE, "REQ-CLS-E-01" },
		{ RNR + 12, "REQ-RNR-10" }, { 0x45, "REQ-CLS-E-01" }, { 0x70, "REQ-CLS-E-01" },
		{ 0xff, "REQ-CLS-E-01" } };
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	post_sends(s, 4);
	pump(s);
	expire(s);
	pump(s);
	for (size_t i = 0; i < ARRAY_LEN(psns); i++) {
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
			ack(s, psns[i], kinds[k].syn);
			expect_no_effect(s, kinds[k].rule);
			assert_int_equal(s->v.cause, QC_UNMATCHED);
			assert_int_equal(s->v.fault, 0xff);
		}
	}
	FIRST(s, S - 3);
	expect_no_effect(s, "REQ-16");
	/* Nothing outstanding: everything is a ghost. */
	ack(s, S + 3, ACK);
	for (size_t i = 0; i < ARRAY_LEN(psns); i++) {
		ack(s, psns[i], ACK);
		expect_no_effect(s, "REQ-CLS-E-01");
	}
}

static void
REQ_15_other_packets(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	post_sends(s, 4);
	pump(s);
	for (uint32_t op = 0; op < 256; op++) {
		if (op >= 0x0d && op <= 0x12)
			continue;
		FEED(s, .op = (uint8_t)op, .psn = S, .syn = ACK, .len = 64);
		expect_no_effect(s, "REQ-15");
	}
}

/* REQ-17: all ACKs lost, S resent by timeout; the ACK of S+2 completes three. */
static void
REQ_17_ack_above_the_resend(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	post_sends(s, 4);
	pump(s);
	expire(s);
	assert_int_equal(requester_next(&s->r, s->now, &s->out[0]), REQ_SEND);
	assert_int_equal(s->out[0].psn.v, S);
	ack(s, S + 2, ACK);
	expect_done(s, 3);
	pump(s);
	expect_psns(s, S + 3);
	assert_true(s->out[0].resend);
	ack(s, S + 3, ACK);
	expect_done(s, 4);
	assert_int_equal(pump(s), REQ_IDLE);
}

/* The same in the middle of messages: the resend goes on where the ACK points. */
static void
REQ_17_inside_a_message(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(64));
	POST(s, WRITE(4000));
	POST(s, SEND(64));
	pump(s);
	expire(s);
	ack(s, S + 2, ACK);
	expect_done(s, 1);
	pump(s);
	expect_psns(s, S + 3, S + 4, S + 5);
	assert_int_equal(s->out[0].opcode, 0x07);
	assert_int_equal(s->out[0].offset, 2048);
	assert_int_equal(s->out[1].opcode, 0x08);
	assert_int_equal(s->out[1].len, 928);
	assert_int_equal(s->out[2].opcode, 0x04);
}

static void
CLS_B_08_after_an_error(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(64));
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	ack(s, S, NRAE);
	expect_error(s, 0, WC_REM_ACCESS, 10);
	/* REQ-CLS-B-08 */
	ack(s, S, ACK);
	expect_no_effect(s, "REQ-CLS-B-08");
	ack(s, S, NINV);
	expect_no_effect(s, "REQ-CLS-B-08");
	ONLY(s, S + 1, 64);
	expect_no_effect(s, "REQ-CLS-B-08");
	/* TMR-10: no timer fires any more */
	s->now += 10 * TTR_14;
	fire(s);
	assert_int_equal(s->v.act, 0);
	/* TMR-10: nor after a reset */
	requester_reset(&s->r, psn(S));
	fire(s);
	assert_int_equal(s->v.act, 0);
	assert_int_equal(pump(s), REQ_IDLE);
}

/* FLOW-01: data.credit_encoding */
static void
FLOW_01_credit_codes(void **state)
{
	static const uint32_t expected[32] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, UINT32_MAX };

	(void)state;
	for (uint32_t code = 0; code < 32; code++)
		assert_int_equal(requester_credits((uint8_t)code), expected[code]);
	assert_int_equal(requester_credits(255), UINT32_MAX);
}

static void
credit_ack(struct bed *s, uint32_t p, uint32_t msn, uint8_t code)
{
	FEED(s, .op = OP_RC_ACKNOWLEDGE, .psn = p, .syn = code, .msn = msn);
}

static void
FLOW_04_limit(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_CREDITS;
	POST(s, SEND(64));
	pump(s);
	credit_ack(s, S, 1, 0);
	expect_done(s, 1);
	POST(s, WRITE(64)); /* not limited */
	POST(s, READ(64));
	POST(s, SEND(64));
	POST(s, SEND(64));
	POST(s, WRITE(64));
	assert_int_equal(pump(s), REQ_NO_CREDIT);
	expect_psns(s, S + 1, S + 2);
	ONLY(s, S + 2, 64); /* its syndrome says: no information */
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 3);
	credit_ack(s, S + 5, 6, 0);
	expect_done(s, 6);
	/* nothing outstanding: one goes out as a probe, and asks for its ACK */
	for (uint32_t i = 0; i < 3; i++)
		POSTF(s, 0, SEND(64));
	POST(s, WRITE(64));
	assert_int_equal(pump(s), REQ_NO_CREDIT);
	assert_int_equal(s->out[0].psn.v, S + 6);
	assert_int_equal(s->out[s->n - 1].psn.v, S + 6);
	assert_int_equal(s->out[s->n - 1].flags & ACKREQ, ACKREQ);
	credit_ack(s, S + 6, 7, 2); /* MSN 7 and 2 more: 8 and 9 may go, and the WRITE */
	assert_int_equal(pump(s), REQ_IDLE);
	expect_psns(s, S + 7, S + 8, S + 9);
}

static void
FLOW_04_off(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(64));
	pump(s);
	credit_ack(s, S, 1, 0);
	post_sends(s, 3);
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 3);
}

/* FLOW-05, FLOW-06: the ACK just below the oldest one gives its credits and nothing else. */
static void
FLOW_05_unsolicited(void **state)
{
	struct bed bed, *s = &bed;
	ns_t deadline;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_CREDITS;
	post_sends(s, 2);
	pump(s);
	credit_ack(s, S + 1, 2, 0);
	post_sends(s, 4);
	assert_int_equal(pump(s), REQ_NO_CREDIT);
	expect_psns(s, S + 2); /* a probe, unanswered so far */
	expire(s);
	pump(s);
	deadline = s->r.deadline;
	s->now += 10 * MS;
	credit_ack(s, S + 1, 2, 5); /* 6 credits */
	assert_int_equal(s->v.act, REQACT_DROP);
	expect_rule(s, "FLOW-05");
	assert_int_equal(s->r.retry_left, 2);
	assert_true(s->r.timing && s->r.deadline == deadline);
	assert_int_equal(pump(s), REQ_IDLE);
	expect_psns(s, S + 3, S + 4, S + 5);
	/* nothing else gives credits there */
	FEED(s, .op = OP_RC_READ_RESPONSE_ONLY, .psn = S + 1, .syn = 0, .msn = 2);
	expect_no_effect(s, "REQ-16");
	/* FLOW-06: an older ghost gives nothing; a wrong credit is corrected by the next ACK */
	credit_ack(s, S, 1, 0);
	expect_no_effect(s, "REQ-CLS-E-01");
	credit_ack(s, S + 1, 2, 0);
	expect_rule(s, "FLOW-05");
	credit_ack(s, S + 5, 6, 31);
	post_sends(s, 4);
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 4);
}

RUN(T(REQ_03_completion), T(REQ_04_coalesced), T(REQ_04_rising_at_once), T(REQ_04_told_of_rounds),
	T(REQ_08_in_order), T(REQ_09_unsignalled), T(REQ_15_ghosts), T(REQ_15_other_packets),
	T(REQ_17_ack_above_the_resend), T(REQ_17_inside_a_message), T(CLS_B_08_after_an_error),
	T(FLOW_01_credit_codes), T(FLOW_04_limit), T(FLOW_04_off), T(FLOW_05_unsolicited))
