/* SPDX-License-Identifier: BSD-3-Clause */
/* ATOMIC WRITE and FLUSH: one packet each, answered by a READ response without data. */
#include "req.h"

#define WORD .opcode = WR_ATOMIC_WRITE, .len = 8

static void
REQ_02_one_packet(void **state UNUSED)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	POST(s, WORD);
	pump(s);
	assert_int_equal(s->n, 1);
	assert_int_equal(s->out[0].opcode, OP_RC_ATOMIC_WRITE);
	assert_int_equal(s->out[0].len, 8);
	assert_int_equal(s->out[0].dma_len, 8);
	assert_int_equal(s->out[0].pad, 0);
	assert_int_equal(s->out[0].psn.v, S);
	assert_int_equal(s->r.reads, 1);
	FEED(s, .op = OP_RC_READ_RESPONSE_ONLY, .psn = S, .syn = ACK);
	assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_TIMER);
	expect_rule(s, "REQ-05");
	assert_int_equal(s->r.reads, 0);
	assert_int_equal(s->done, 1);
}

/* REQ-10: as many at a time as READs and ATOMICs. */
static void
REQ_10_limit(void **state UNUSED)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	for (int i = 0; i < 6; i++)
		POST(s, WORD);
	assert_int_equal(pump(s), REQ_READ_LIMIT);
	assert_int_equal(s->n, 4);
}

/* REQ-17: an ACK beyond it does not answer it; it is sent again as it was. */
static void
REQ_17_ack_beyond(void **state UNUSED)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	POST(s, WORD);
	POST(s, SEND(8));
	pump(s);
	FEED(s, .op = OP_RC_ACKNOWLEDGE, .psn = S + 1, .syn = ACK, .msn = 2);
	assert_int_equal(s->done, 0);
	s->now += WAIT_14;
	if (s->r.timing)
		requester_timer(&s->r, s->now, &s->v);
	pump(s);
	assert_int_equal(s->out[0].opcode, OP_RC_ATOMIC_WRITE);
	assert_int_equal(s->out[0].len, 8);
	assert_true(s->out[0].resend);
}

/* REQ-CLS-B: what else answers it is wrong, and its answer is wrong for anything else. */
static void
REQ_CLS_B_wrong_answers(void **state UNUSED)
{
	static const struct {
		uint8_t wr, op, status;
		uint32_t len;
	} rows[] = {
		{ WR_ATOMIC_WRITE, OP_RC_READ_RESPONSE_ONLY, WC_LOC_LEN, 8 },
		{ WR_ATOMIC_WRITE, OP_RC_READ_RESPONSE_LAST, WC_BAD_RESP, 0 },
		{ WR_ATOMIC_WRITE, OP_RC_READ_RESPONSE_FIRST, WC_BAD_RESP, PMTU },
		{ WR_ATOMIC_WRITE, OP_RC_ATOMIC_ACKNOWLEDGE, WC_BAD_RESP, 0 },
		{ WR_ATOMIC_FETCH_AND_ADD, OP_RC_READ_RESPONSE_ONLY, WC_BAD_RESP, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		POST(s, .opcode = rows[i].wr, .len = 8);
		pump(s);
		FEED(s, .op = rows[i].op, .psn = S, .syn = ACK, .len = rows[i].len);
		assert_true((s->v.act & REQACT_ERROR) != 0);
		assert_int_equal(s->v.wc_status, rows[i].status);
		assert_int_equal(s->v.fault,
			rows[i].status == WC_LOC_LEN ? FAULT_PAYLOAD_LEN : FAULT_BAD_RESPONSE);
		assert_int_equal(s->v.act & (REQACT_PLACE | REQACT_ATOMIC), 0);
	}
}

/* REQ-02: one packet and one PSN, whatever it names; sent again as it was. */
static void
REQ_02_flush(void **state UNUSED)
{
	static const uint32_t lengths[] = { 0, 100, 5000, 0x80000000 };

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		POST(s, .opcode = WR_FLUSH, .len = lengths[i]);
		POST(s, SEND(8));
		for (int pass = 0; pass < 2; pass++) {
			pump(s);
			assert_int_equal(s->n, 2);
			assert_int_equal(s->out[0].opcode, OP_RC_FLUSH);
			assert_int_equal(s->out[0].len, 0);
			assert_int_equal(s->out[0].dma_len, lengths[i]);
			assert_true(s->out[0].va == VA && s->out[0].rkey == RKEY);
			assert_int_equal(s->out[0].psn.v, S);
			assert_int_equal(s->out[0].resend, pass);
			assert_int_equal(s->out[1].psn.v, S + 1);
			assert_int_equal(s->r.reads, 1);
			s->now += WAIT_14;
			if (pass == 0)
				requester_timer(&s->r, s->now, &s->v);
		}
		FEED(s, .op = OP_RC_READ_RESPONSE_ONLY, .psn = S, .syn = ACK);
		assert_int_equal(s->done, 1);
		assert_int_equal(s->r.reads, 0);
	}
}

/* REQ-11: what is behind a fence waits for it. REQ-18: its limit is that of a message. */
static void
REQ_11_flush_and_fence(void **state UNUSED)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	POST(s, .opcode = WR_FLUSH, .len = 8);
	POSTF(s, FENCE, SEND(8));
	assert_int_equal(pump(s), REQ_FENCED);
	assert_int_equal(s->n, 1);
	FEED(s, .op = OP_RC_READ_RESPONSE_ONLY, .psn = S, .syn = ACK);
	pump(s);
	assert_int_equal(s->n, 1);
	bed_init(s);
	POST(s, .opcode = WR_FLUSH, .len = 0x80000001);
	assert_int_equal(pump(s), REQ_FAULT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(REQ_02_one_packet),
		cmocka_unit_test(REQ_10_limit),
		cmocka_unit_test(REQ_17_ack_beyond),
		cmocka_unit_test(REQ_CLS_B_wrong_answers),
		cmocka_unit_test(REQ_02_flush),
		cmocka_unit_test(REQ_11_flush_and_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
