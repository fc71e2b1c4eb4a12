/* SPDX-License-Identifier: BSD-3-Clause */
/* Implied NAK, and READs that are asked for again part-way. */
#include "req.h"

#define ATOMIC_ACK(s, p, v) \
	FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = (p), .syn = ACK, .original = (v))

static void
REQ_IMPL_01_ack_beyond_a_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(64));
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	ack(s, S + 2, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	expect_done(s, 1);
	pump(s);
	expect_psns(s, S + 1, S + 2);
	assert_int_equal(s->r.retry_left, 2);
	ONLY(s, S + 1, 64);
	ack(s, S + 2, ACK);
	expect_done(s, 3);
}

/* REQ-IMPL-02, REQ-IMPL-04 */
static void
REQ_IMPL_02_response_lost(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(4096));
	POST(s, SEND(64));
	pump(s);
	FIRST(s, S);
	MIDDLE(s, S + 1);
	LAST(s, S + 3, 1024);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
	expect_done(s, 0);
	pump(s);
	expect_psns(s, S + 2, S + 4);
	assert_int_equal(s->out[0].opcode, 0x0c); /* REQ-IMPL-04 */
	assert_true(s->out[0].va == VA + 2048);
	assert_int_equal(s->out[0].dma_len, 2048);
	assert_int_equal(s->out[0].rkey, RKEY);
	assert_true(s->out[0].resend);
	FIRST(s, S + 2);
	assert_int_equal(s->v.offset, 2048);
	LAST(s, S + 3, 1024);
	expect_done(s, 1);
}

static void
REQ_IMPL_03_atomic_lost(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, FADD);
	POST(s, SEND(64));
	pump(s);
	ack(s, S + 1, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	pump(s);
	expect_psns(s, S, S + 1);
	ATOMIC_ACK(s, S, 7);
	expect_done(s, 1);
	ack(s, S + 1, ACK);
	expect_done(s, 2);
}

/* REQ-IMPL-05: eight ACKs beyond the READ cost one retry, before and after the resend is out. */
static void
REQ_IMPL_05_one_retry_per_burst(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.retry_cnt = 1;
	requester_reset(&s->r, psn(S));
	POST(s, READ(64));
	post_sends(s, 8);
	pump(s);
	ack(s, S + 1, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	for (uint32_t i = 2; i < 5; i++) {
		ack(s, S + i, ACK);
		assert_int_equal(s->v.act, REQACT_DROP);
		expect_rule(s, "REQ-IMPL-05");
	}
	assert_int_equal(s->r.retry_left, 0);
	pump(s);
	assert_int_equal(s->n, 9);
	for (uint32_t i = 5; i <= 8; i++) { /* the rest of the old pass */
		ack(s, S + i, ACK);
		assert_int_equal(s->v.act, REQACT_DROP);
		expect_rule(s, "REQ-IMPL-05");
	}
	ONLY(s, S, 64);
	ack(s, S + 8, ACK);
	expect_done(s, 9);
}

/* One response of a long READ is lost, the others come in behind it: one retry. */
static void
REQ_IMPL_05_rest_of_a_long_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64 * 1024));
	pump(s);
	FIRST(s, S);
	for (uint32_t i = 2; i < 63; i++) {
		MIDDLE(s, S + i);
		pump(s);
	}
	LAST(s, S + 63, 1024);
	assert_int_equal(s->r.retry_left, 2);
	for (uint32_t i = 1; i < 63; i++)
		MIDDLE(s, S + i);
	LAST(s, S + 63, 1024);
	expect_done(s, 1);
}

/* REQ-IMPL-05, REQ-17: the ACK of a second copy carries the newest PSN; it lies beyond the second
 * READ, whose answer comes right behind it. */
static void
REQ_IMPL_05_acks_of_second_copies(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	POST(s, SEND(64));
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s); /* all of it is carried out; the first answer is lost */
	ack(s, S + 1, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	pump(s);
	expect_psns(s, S, S + 1, S + 2, S + 3);
	ONLY(s, S + 2, 64); /* the rest of the first pass */
	assert_int_equal(s->v.act, REQACT_DROP);
	ack(s, S + 3, ACK);
	assert_int_equal(s->v.act, REQACT_DROP);
	ONLY(s, S, 64); /* the second */
	expect_done(s, 1);
	ack(s, S + 3, ACK);
	assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_TIMER);
	expect_rule(s, "REQ-IMPL-05");
	expect_done(s, 2);
	ONLY(s, S + 2, 64);
	expect_done(s, 3);
	ack(s, S + 3, ACK);
	expect_done(s, 4);
}

/* The answer is lost in the second pass too: data shows it, and NAKs, not before the pass does. */
static void
REQ_IMPL_05_second_pass_in_vain(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, FADD);
	POST(s, READ(2048));
	POST(s, SEND(64));
	pump(s);
	FIRST(s, S + 1);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
	pump(s);
	LAST(s, S + 2, 1024);
	assert_int_equal(s->v.act, REQACT_DROP);
	ack(s, S + 3, NSEQ); /* the SEND was lost as well */
	assert_int_equal(s->v.act, REQACT_DROP);
	assert_int_equal(s->r.retry_left, 2);
	FIRST(s, S + 1); /* the second pass, again without the ATOMIC */
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
	assert_int_equal(s->r.retry_left, 1);
	LAST(s, S + 2, 1024);
	assert_int_equal(s->v.act, REQACT_DROP);
	pump(s);
	ATOMIC_ACK(s, S, 1);
	expect_done(s, 1);
}

/* After a timeout nothing of the old pass is on its way: the next ACK beyond the READ counts. */
static void
REQ_IMPL_05_after_a_timeout(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	expire(s);
	ack(s, S + 1, ACK); /* but not before the resend is out */
	expect_no_effect(s, "REQ-IMPL-05");
	pump(s);
	ack(s, S + 1, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	assert_int_equal(s->r.retry_left, 1);
}

/* After a NAK the peer is silent: what comes then belongs to the newest pass. */
static void
REQ_IMPL_05_after_a_nak(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	post_sends(s, 2);
	pump(s);
	ack(s, S, NSEQ);
	pump(s);
	ack(s, S + 1, ACK); /* so the READ before it was carried out in this pass */
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");

	bed_init(s);
	POST(s, FADD);
	POST(s, READ(2048));
	pump(s);
	FIRST(s, S + 1);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
	pump(s);
	ack(s, S, NSEQ);
	pump(s);
	LAST(s, S + 2, 1024);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
}

/* Data of the old pass before and after the resend of a timeout goes out. */
static void
REQ_IMPL_05_late_data(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, FADD);
	POST(s, READ(3072));
	pump(s);
	expire(s);
	FIRST(s, S + 1);
	assert_int_equal(s->v.act, REQACT_DROP);
	pump(s);
	MIDDLE(s, S + 2);
	assert_int_equal(s->v.act, REQACT_DROP);
	assert_int_equal(s->r.retry_left, 2);
	FIRST(s, S + 1); /* the new pass */
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
}

static void
REQ_IMPL_06_exhaustion(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.retry_cnt = 1;
	requester_reset(&s->r, psn(S));
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	ack(s, S + 1, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	pump(s);
	expect_psns(s, S, S + 1);
	ack(s, S + 1, ACK);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	assert_int_equal(s->v.outcome, QC_RETRY_EXCEEDED);
	expect_rule(s, "REQ-RETRY-07");
	expect_error(s, 0, WC_RETRY_EXC, 6);
}

/* REQ-IMPL-07, AMB-19: any NAK beyond the READ is an implied one first. */
static void
REQ_IMPL_07_nak_beyond_a_read(void **state)
{
	static const uint8_t syndromes[] = { NINV, NRAE, NROE, NSEQ, RNR + 1, 0x45, 0x70 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(syndromes); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		s->r.retry_cnt = 1;
		requester_reset(&s->r, psn(S));
		POST(s, READ(64));
		POST(s, SEND(64));
		pump(s);
		ack(s, S + 1, syndromes[i]);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-07");
		assert_false(s->r.waiting_rnr);
		assert_int_equal(s->r.rnr_left, 3);
		pump(s);
		expect_psns(s, S, S + 1);
		if (syndromes[i] == RNR + 1) { /* acted upon when it comes again */
			ONLY(s, S, 64);
			ack(s, S + 1, RNR + 1);
			expect_resend(s, QC_RNR_NAK, "REQ-RNR-03");
			assert_true(s->r.waiting_rnr);
		} else { /* the peer is silent from now on */
			expire(s);
			expect_error(s, 0, WC_RETRY_EXC, 6);
		}
	}
}

static void
REQ_IMPL_08_ack_inside_a_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(4096));
	pump(s);
	ack(s, S, ACK);
	expect_no_effect(s, "REQ-CLS-B-06");
	ack(s, S + 2, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-08");
	assert_int_equal(s->r.retry_left, 2);
	pump(s);
	expect_psns(s, S);
	assert_int_equal(s->out[0].dma_len, 4096);
}

/* REQ-IMPL-09: how the answer to a resumed READ may begin. */
static void
REQ_IMPL_09_resumed(void **state)
{
	enum { F = 0x0d, M = 0x0e, L = 0x0f, O = 0x10 };
	static const struct {
		uint32_t lost; /* first response that is missing */
		uint8_t ops[3];
		bool good;
	} rows[] = {
		{ 1, { F, M, L }, true },
		{ 1, { M, M, L }, true },
		{ 3, { O }, true },
		{ 3, { L }, true },
		{ 1, { O }, false },
		{ 1, { L }, false },
		{ 3, { F }, false },
		{ 3, { M }, false },
		{ 1, { F, F }, false },
		{ 1, { M, F }, false },
		{ 1, { F, M, O }, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;
		uint32_t at = rows[i].lost;

		bed_init(s);
		POST(s, READ(4000));
		pump(s);
		for (uint32_t k = 0; k < at; k++)
			read_rsp(s, k == 0 ? F : M, S + k, 1024);
		expire(s);
		pump(s);
		expect_psns(s, S + at);
		for (uint32_t k = 0; k < 3 && rows[i].ops[k] != 0; k++, at++) {
			assert_int_equal(s->v.act & REQACT_ERROR, 0);
			read_rsp(s, rows[i].ops[k], S + at,
				at == 3 && rows[i].ops[k] >= L ? 4000 - 3072 : 1024);
			if ((s->v.act & REQACT_PLACE) != 0)
				assert_int_equal(s->v.offset, at * 1024);
		}
		if (rows[i].good) {
			expect_done(s, 1);
			continue;
		}
		expect_error(s, 0, WC_BAD_RESP, 27);
	}
}

/* A whole READ asked for again starts with FIRST, as ever. */
static void
REQ_IMPL_09_full_restart(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(4096));
	pump(s);
	expire(s);
	pump(s);
	expect_psns(s, S);
	MIDDLE(s, S);
	expect_error(s, 0, WC_BAD_RESP, 27);
}

/* REQ-CLS-B-07: what an older copy brings late is dropped by PSN, or is good data. */
static void
REQ_CLS_B_07_interleaved(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(6 * 1024));
	pump(s);
	FIRST(s, S);
	MIDDLE(s, S + 1);
	expire(s);
	pump(s);
	expect_psns(s, S + 2);
	MIDDLE(s, S + 2); /* the first copy was only slow */
	FIRST(s, S + 2);  /* second copy */
	expect_no_effect(s, "REQ-16");
	MIDDLE(s, S + 3); /* first */
	MIDDLE(s, S + 3); /* second */
	expect_no_effect(s, "REQ-16");
	MIDDLE(s, S + 4); /* second */
	MIDDLE(s, S + 4); /* first */
	expect_no_effect(s, "REQ-16");
	LAST(s, S + 5, 1024);
	expect_done(s, 1);
	LAST(s, S + 5, 1024);
	expect_no_effect(s, "REQ-16");
}

/* Responses of the old copy arrive while the resend waits to go out: it starts where they end. */
static void
REQ_IMPL_04_overtaken(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.window = 2;
	POST(s, READ(3072));
	POST(s, SEND(64));
	pump(s);
	expire(s);
	FIRST(s, S);
	MIDDLE(s, S + 1);
	pump(s);
	expect_psns(s, S + 2, S + 3);
	assert_true(s->out[0].va == VA + 2048);
	assert_int_equal(s->out[0].dma_len, 1024);
	ONLY(s, S + 2, 1024);
	expect_done(s, 1);
	ack(s, S + 3, ACK);
	expect_done(s, 2);

	POST(s, READ(2048)); /* all of it arrives */
	POST(s, SEND(64));
	pump(s);
	expire(s);
	FIRST(s, S + 4);
	LAST(s, S + 5, 1024);
	expect_done(s, 3);
	pump(s);
	expect_psns(s, S + 6);
	assert_int_equal(s->r.reply_psns, 0);
}

RUN(T(REQ_IMPL_01_ack_beyond_a_read), T(REQ_IMPL_02_response_lost), T(REQ_IMPL_03_atomic_lost),
	T(REQ_IMPL_05_one_retry_per_burst), T(REQ_IMPL_05_rest_of_a_long_read),
	T(REQ_IMPL_05_acks_of_second_copies), T(REQ_IMPL_05_second_pass_in_vain),
	T(REQ_IMPL_05_after_a_timeout), T(REQ_IMPL_05_after_a_nak), T(REQ_IMPL_05_late_data),

	T(REQ_IMPL_06_exhaustion), T(REQ_IMPL_07_nak_beyond_a_read),
	T(REQ_IMPL_08_ack_inside_a_read), T(REQ_IMPL_09_resumed), T(REQ_IMPL_09_full_restart),
	T(REQ_CLS_B_07_interleaved), T(REQ_IMPL_04_overtaken))
