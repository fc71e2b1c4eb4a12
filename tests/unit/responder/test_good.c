/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are accepted: RESP-01..08, -11, -12, -15, and credits FLOW-01..03. */
#include "pkt.h"

enum { RECV = 128, RECV_RDMA_WITH_IMM = 129, WITH_IMM = 2, WITH_INV = 8 };

static void
RESP_01_send_only(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E, 100));
	expect_ack(&s, E, 1);
	assert_int_equal(s.v.act, ACT_TAKE_WQE | ACT_PLACE_SEND | ACT_COMPLETE | ACT_ACK);
	assert_int_equal(s.v.offset, 0);
	assert_int_equal(s.v.byte_len, 100);
	assert_int_equal(s.v.wc_status, WC_SUCCESS);
	assert_int_equal(s.v.wc_opcode, RECV);
	assert_int_equal(s.v.wc_flags, 0);
	assert_int_equal(s.v.solicited, 0);
	assert_int_equal(s.v.fault, VERDICT_NO_FAULT);
	assert_int_equal(s.v.fatal, 0);
	assert_int_equal(s.v.counter, RC_SEND);
	assert_int_equal(s.v.event, 0);
	expect_rule(&s, "RESP-01");
	expect_state(&s, E + 1, 1);

	/* The payload fills the WQE exactly; the SE bit of the packet that completes counts. */
	s.wqe_bytes = 64;
	FEED(&s, .op = OP_RC_SEND_ONLY, .psn = E + 1, .len = 64, .flags = PKT_SE);
	assert_int_equal(s.v.act, ACT_TAKE_WQE | ACT_PLACE_SEND | ACT_COMPLETE);
	assert_int_equal(s.v.solicited, 1);
}

static void
RESP_02_send_of_three_packets(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.wqe_bytes = 3003;
	FEED(&s, SEND_FIRST(E));
	assert_int_equal(s.v.act, ACT_TAKE_WQE | ACT_PLACE_SEND);
	assert_int_equal(s.v.offset, 0);
	assert_int_equal(s.v.counter, RC_SEND);
	assert_true(s.r.wqe_active);
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E + 1, .len = PMTU, .flags = PKT_SE);
	assert_int_equal(s.v.act, ACT_PLACE_SEND);
	assert_int_equal(s.v.offset, 1024);
	assert_int_equal(s.v.counter, RC_NONE);
	assert_int_equal(s.v.solicited, 0);
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 2, .len = 10, .pad = 2, .flags = PKT_ACKREQ);
	assert_int_equal(s.v.act, ACT_PLACE_SEND | ACT_COMPLETE | ACT_ACK);
	assert_int_equal(s.v.offset, 2048);
	assert_int_equal(s.v.byte_len, 2058);
	expect_ack(&s, E + 2, 1);
	assert_false(s.r.wqe_active);
	assert_int_equal(s.wqes, 3);
	expect_state(&s, E + 3, 1);
}

static void
RESP_03_immediate(void **state)
{
	const struct {
		uint8_t first, op, opcode;
		uint32_t total;
		bool wqe_at_first;
	} rows[] = {
		{ 0xff, OP_RC_SEND_ONLY_IMM, RECV, 100, false },
		{ OP_RC_SEND_FIRST, OP_RC_SEND_LAST_IMM, RECV, 1124, true },
		{ 0xff, OP_RC_WRITE_ONLY_IMM, RECV_RDMA_WITH_IMM, 100, false },
		{ OP_RC_WRITE_FIRST, OP_RC_WRITE_LAST_IMM, RECV_RDMA_WITH_IMM, 1124, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;
		uint32_t p = E;

		bed_init(&s);
		if (rows[i].first != 0xff) {
			FEED(&s, .op = rows[i].first, .psn = p++, .len = PMTU, .va = MR_VA,
				.rkey = MR_RKEY, .dma_len = 1124);
			assert_int_equal(s.wqes, rows[i].wqe_at_first ? 3 : 4);
		}
		FEED(&s, .op = rows[i].op, .psn = p, .len = 100, .flags = PKT_ACKREQ | PKT_SE,
			.va = MR_VA, .rkey = MR_RKEY, .dma_len = 100, .imm = 0x11223344);
		expect_ack(&s, p, 1);
		assert_int_equal(s.wqes, 3);
		assert_true((s.v.act & ACT_COMPLETE) != 0);
		assert_int_equal(s.v.wc_flags, WITH_IMM);
		assert_int_equal(s.v.wc_opcode, rows[i].opcode);
		assert_int_equal(s.v.imm, 0x11223344);
		assert_int_equal(s.v.byte_len, rows[i].total);
		assert_int_equal(s.v.solicited, 1);
		assert_int_equal((s.v.act & ACT_PLACE_SEND) != 0, rows[i].opcode == RECV);
		expect_rule(&s, "RESP-03");
	}
}

static void
RESP_04_send_with_invalidate(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, .op = OP_RC_SEND_ONLY_INV, .psn = E, .len = 8, .flags = PKT_ACKREQ,
		.imm = INV_KEY);
	expect_ack(&s, E, 1);
	assert_true(s.q.invalidate);
	assert_int_equal(s.q.inv_key, INV_KEY);
	assert_int_equal(
		s.v.act, ACT_TAKE_WQE | ACT_PLACE_SEND | ACT_COMPLETE | ACT_ACK | ACT_INVALIDATE);
	assert_int_equal(s.v.rkey, INV_KEY);
	assert_int_equal(s.v.imm, INV_KEY);
	assert_int_equal(s.v.wc_flags, WITH_INV);

	FEED(&s, SEND_FIRST(E + 1));
	FEED(&s, .op = OP_RC_SEND_LAST_INV, .psn = E + 2, .len = 8, .imm = INV_KEY);
	assert_int_equal(s.v.act, ACT_PLACE_SEND | ACT_COMPLETE | ACT_INVALIDATE);
	assert_int_equal(s.v.byte_len, 1032);
	assert_int_equal(s.v.rkey, INV_KEY);
	expect_state(&s, E + 3, 2);
}

static void
RESP_05_write(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.wqes = 0; /* a plain WRITE needs none */
	FEED(&s, WRITE_ONLY(E, 64));
	expect_ack(&s, E, 1);
	assert_int_equal(s.v.act, ACT_PLACE_WRITE | ACT_ACK);
	assert_true(s.v.va == MR_VA);
	assert_int_equal(s.v.rkey, MR_RKEY);
	assert_int_equal(s.v.counter, RC_WRITE);
	assert_false(s.q.wqe);
	assert_int_equal(s.q.access, REMOTE_WRITE);
	expect_rule(&s, "RESP-05");

	FEED(&s, WRITE_FIRST(E + 1, 2500));
	assert_int_equal(s.v.act, ACT_PLACE_WRITE);
	assert_int_equal(s.q.len, 2500); /* the whole range, RESP-NAK-RAE-05 */
	assert_true(s.v.va == MR_VA);
	FEED(&s, .op = OP_RC_WRITE_MIDDLE, .psn = E + 2, .len = PMTU);
	assert_int_equal(s.v.act, ACT_PLACE_WRITE);
	assert_true(s.v.va == MR_VA + 1024);
	assert_int_equal(s.v.rkey, MR_RKEY);
	assert_true(s.q.va == MR_VA + 1024);
	assert_int_equal(s.q.len, 1024);
	FEED(&s, .op = OP_RC_WRITE_LAST, .psn = E + 3, .len = 452, .flags = PKT_ACKREQ);
	expect_ack(&s, E + 3, 2);
	assert_true(s.v.va == MR_VA + 2048);
	assert_int_equal(s.v.act & ACT_COMPLETE, 0);
	expect_state(&s, E + 4, 2);
	assert_int_equal(s.r.received, 0);
	assert_int_equal(s.r.open, OPEN_NONE);
}

static void
RESP_06_read_consumes_its_responses_psns(void **state)
{
	/* WIRE-12: max(1, ceil(L / 1024)) */
	const struct {
		uint32_t len, psns;
	} rows[] = { { 0, 1 }, { 1, 1 }, { 1024, 1 }, { 1025, 2 }, { 2500, 3 }, { 4096, 4 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, READ(E, rows[i].len), .flags = PKT_ACKREQ);
		assert_int_equal(s.v.act, ACT_READ);
		assert_int_equal(s.v.first.v, E);
		assert_true(s.v.va == MR_VA);
		assert_int_equal(s.v.len, rows[i].len);
		assert_int_equal(s.v.rkey, MR_RKEY);
		assert_int_equal(s.v.reply_psn.v, E + rows[i].psns - 1);
		assert_int_equal(s.v.reply_msn, 1);
		assert_int_equal(s.v.syndrome, 0x1f);
		assert_int_equal(s.v.counter, RC_READ);
		assert_ptr_equal(s.v.saved, &s.saved[0]);
		assert_int_equal(s.saved[0].last.v, E + rows[i].psns - 1);
		assert_int_equal(s.r.unfinished, 1);
		expect_state(&s, E + rows[i].psns, 1);
		responder_answered(&s.r);
		assert_int_equal(s.r.unfinished, 0);
		responder_answered(&s.r);
		assert_int_equal(s.r.unfinished, 0);
	}
}

static void
RESP_06_psns_wrap_and_longest_read(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	responder_reset(&s.r, psn(0xfffffe));
	FEED(&s, READ(0xfffffe, 4096));
	assert_int_equal(s.v.act, ACT_READ);
	assert_int_equal(s.v.reply_psn.v, 1);
	expect_state(&s, 2, 1);

	/* WIRE-11: single packets across the wrap */
	responder_reset(&s.r, psn(0xffffff));
	FEED(&s, WRITE_ONLY(0xffffff, 4));
	expect_ack(&s, 0xffffff, 1);
	FEED(&s, WRITE_ONLY(0, 4));
	expect_ack(&s, 0, 2);
	expect_state(&s, 1, 2);
}

static void
RESP_07_atomics(void **state)
{
	const uint8_t ops[] = { OP_RC_FETCH_ADD, OP_RC_COMPARE_SWAP };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, .op = ops[i], .psn = E, .va = MR_VA + 8, .rkey = MR_RKEY);
		assert_true(s.q.key);
		assert_int_equal(s.q.access, REMOTE_ATOMIC);
		assert_int_equal(s.q.len, 8);
		assert_true(s.q.va == MR_VA + 8);
		assert_int_equal(s.v.act, ACT_ATOMIC);
		assert_int_equal(s.v.first.v, E);
		assert_true(s.v.va == MR_VA + 8);
		assert_int_equal(s.v.rkey, MR_RKEY);
		assert_int_equal(s.v.reply_psn.v, E);
		assert_int_equal(s.v.reply_msn, 1);
		assert_ptr_equal(s.v.saved, &s.saved[0]);
		assert_int_equal(s.v.counter, RC_ATOMIC);
		assert_int_equal(s.r.unfinished, 1);
		expect_state(&s, E + 1, 1);
	}
}

static void
RESP_08_zero_length(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E, 0));
	expect_ack(&s, E, 1);
	assert_int_equal(s.v.act, ACT_TAKE_WQE | ACT_COMPLETE | ACT_ACK);
	assert_int_equal(s.v.byte_len, 0);
	FEED(&s, .op = OP_RC_WRITE_ONLY, .psn = E + 1, .flags = PKT_ACKREQ, .va = 3,
		.rkey = BAD_KEY);
	expect_ack(&s, E + 1, 2);
	assert_int_equal(s.v.act, ACT_ACK);
	assert_false(s.q.key);
	FEED(&s, .op = OP_RC_READ_REQUEST, .psn = E + 2, .va = 3, .rkey = BAD_KEY);
	assert_int_equal(s.v.act, ACT_READ);
	assert_int_equal(s.v.len, 0);
	assert_false(s.q.key);
	expect_state(&s, E + 3, 3);
}

static void
RESP_09_RESP_11_ack_only_when_asked(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, .op = OP_RC_SEND_ONLY, .psn = E, .len = 4);
	assert_int_equal(s.v.act & ACT_ACK, 0);
	assert_true((s.v.act & ACT_COMPLETE) != 0);
	assert_int_equal(s.v.reply_psn.v, E); /* carried all the same, for a coalesced ACK */
	assert_int_equal(s.v.reply_msn, 1);
	FEED(&s, WRITE_FIRST(E + 1, 1030), .flags = PKT_ACKREQ);
	expect_ack(&s, E + 1, 1); /* a part of a message does not count */
}

static void
RESP_12_msn(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E, 4));
	assert_int_equal(s.v.reply_msn, 1);
	FEED(&s, WRITE_ONLY(E + 1, 4));
	assert_int_equal(s.v.reply_msn, 2);
	FEED(&s, READ(E + 2, 2048));
	assert_int_equal(s.v.reply_msn, 3);
	FEED(&s, FETCH_ADD(E + 4));
	assert_int_equal(s.v.reply_msn, 4);
	FEED(&s, SEND_FIRST(E + 5));
	assert_int_equal(s.v.reply_msn, 4);
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E + 6, .len = PMTU);
	assert_int_equal(s.v.reply_msn, 4);
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 7, .len = 1);
	assert_int_equal(s.v.reply_msn, 5);

	s.r.msn = 0xffffff;
	FEED(&s, SEND_ONLY(E + 8, 4));
	expect_ack(&s, E + 8, 0);
	s.r.msn = 0xffffff;
	FEED(&s, READ(E + 9, 4));
	assert_int_equal(s.v.reply_msn, 0);
}

static void
RESP_15_no_timer_between_packets(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_FIRST(E));
	s.now += 5 * TIME_NS_PER_S;
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E + 1, .len = PMTU);
	s.now += 5 * TIME_NS_PER_S;
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 2, .len = 1, .flags = PKT_ACKREQ);
	expect_ack(&s, E + 2, 1);
	assert_int_equal(s.v.byte_len, 2049);
}

static void
FLOW_01_credit_codes(void **state)
{
	static const uint32_t credits[31] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768 };

	(void)state;
	for (uint32_t c = 0; c < 31; c++) {
		assert_int_equal(responder_credit_code(credits[c]), c);
		if (c > 0) /* one less is the code below */
			assert_int_equal(responder_credit_code(credits[c] - 1), c - 1);
	}
	assert_int_equal(responder_credit_code(32769), 30);
	assert_int_equal(responder_credit_code(UINT32_MAX - 1), 30);
}

/* FLOW-02: without the knob 31, no information; FLOW-03: with it, what is left. */
static void
FLOW_03_credits_in_acks(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.r.knobs = RESP_KNOB_CREDITS;
	FEED(&s, SEND_ONLY(E, 4));
	assert_int_equal(s.v.syndrome, 3); /* 3 of 4 are left */
	FEED(&s, WRITE_ONLY(E + 1, 4));
	assert_int_equal(s.v.syndrome, 3);
	FEED(&s, READ(E + 2, 4));
	assert_int_equal(s.v.syndrome, 3);
	FEED(&s, SEND_ONLY(E, 4)); /* duplicate */
	assert_int_equal(s.v.syndrome, 3);
	FEED(&s, .op = OP_RC_SEND_FIRST, .psn = E + 3, .len = PMTU, .flags = PKT_ACKREQ);
	assert_int_equal(s.v.syndrome, 2);
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 4, .len = 4, .flags = PKT_ACKREQ);
	assert_int_equal(s.v.syndrome, 2);
	s.wqes = UINT32_MAX; /* shared receive queue */
	FEED(&s, SEND_ONLY(E + 5, 4));
	assert_int_equal(s.v.syndrome, 0x1f);
	s.r.knobs = 0;
	s.wqes = 4;
	FEED(&s, SEND_ONLY(E + 6, 4));
	assert_int_equal(s.v.syndrome, 0x1f);
}

static void
reset_clears_everything(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E, 4));
	FEED(&s, SEND_FIRST(E + 1));
	FEED(&s, SEND_ONLY(E + 9, 1));
	assert_true(s.r.latched && s.r.wqe_active);
	responder_reset(&s.r, psn(7));
	expect_state(&s, 7, 0);
	assert_false(s.r.latched || s.r.wqe_active);
	assert_int_equal(s.r.open, OPEN_NONE);
	assert_int_equal(s.r.unfinished, 0);
	assert_int_equal(s.saved[0].kind, 0);
	assert_int_equal(s.r.pmtu, PMTU);
	assert_int_equal(s.r.access, ALL_ACCESS);
	FEED(&s, SEND_ONLY(7, 1));
	expect_ack(&s, 7, 1);
}

static void
knob_resync_takes_any_psn(void **state)
{
	const uint32_t psns[] = { E + 5, E + 5, E - 3, 0xffffff, 0 };
	struct bed s;

	(void)state;
	bed_init(&s);
	s.r.knobs = RESP_KNOB_RESYNC;
	for (uint32_t i = 0; i < ARRAY_LEN(psns); i++) {
		FEED(&s, WRITE_ONLY(psns[i], 64));
		expect_ack(&s, psns[i], i + 1);
	}
	expect_state(&s, 1, 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_01_send_only),
		cmocka_unit_test(RESP_02_send_of_three_packets),
		cmocka_unit_test(RESP_03_immediate),
		cmocka_unit_test(RESP_04_send_with_invalidate),
		cmocka_unit_test(RESP_05_write),
		cmocka_unit_test(RESP_06_read_consumes_its_responses_psns),
		cmocka_unit_test(RESP_06_psns_wrap_and_longest_read),
		cmocka_unit_test(RESP_07_atomics),
		cmocka_unit_test(RESP_08_zero_length),
		cmocka_unit_test(RESP_09_RESP_11_ack_only_when_asked),
		cmocka_unit_test(RESP_12_msn),
		cmocka_unit_test(RESP_15_no_timer_between_packets),
		cmocka_unit_test(FLOW_01_credit_codes),
		cmocka_unit_test(FLOW_03_credits_in_acks),
		cmocka_unit_test(reset_clears_everything),
		cmocka_unit_test(knob_resync_takes_any_psn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
