/* SPDX-License-Identifier: BSD-3-Clause */
/* NAK-INV: RESP-NAK-INV-01..16. */
#include "pkt.h"
#include "responder_fast.h"

static void
RESP_NAK_INV_01_reserved_opcodes(void **state)
{
	const uint8_t ops[] = { 0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, .op = ops[i], .psn = E, .len = 8);
		expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
		assert_int_equal(s.v.fault, 17); /* RX-SYN-17 */
		assert_int_equal(s.v.fatal, 4);
		assert_int_equal(s.v.counter, RC_NAK_INVALID);
		expect_rule(&s, "RESP-NAK-INV-01");
	}
}

static void
RESP_NAK_INV_02_not_enabled(void **state)
{
	const struct {
		struct spec p;
		uint8_t access; /* everything else */
	} rows[] = {
		{ { READ(E, 8) }, ALL_ACCESS & ~REMOTE_READ },
		{ { READ(E, 0) }, ALL_ACCESS & ~REMOTE_READ },
		{ { WRITE_ONLY(E, 8) }, ALL_ACCESS & ~REMOTE_WRITE },
		{ { WRITE_FIRST(E, 2048) }, ALL_ACCESS & ~REMOTE_WRITE },
		{ { FETCH_ADD(E) }, ALL_ACCESS & ~REMOTE_ATOMIC },
		{ { .op = OP_RC_COMPARE_SWAP, .psn = E, .va = MR_VA, .rkey = MR_RKEY },
			ALL_ACCESS & ~REMOTE_ATOMIC },
		{ { .op = OP_RC_WRITE_ONLY_IMM, .psn = E, .va = MR_VA, .rkey = MR_RKEY },
			ALL_ACCESS & ~REMOTE_WRITE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		s.r.access = rows[i].access;
		feed_spec(&s, rows[i].p);
		expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
		expect_rule(&s, "RESP-NAK-INV-02");
	}
}

static void
RESP_NAK_INV_03_stray(void **state)
{
	const uint8_t ops[] = { OP_RC_SEND_MIDDLE, OP_RC_SEND_LAST, OP_RC_SEND_LAST_IMM,
		OP_RC_SEND_LAST_INV, OP_RC_WRITE_MIDDLE, OP_RC_WRITE_LAST, OP_RC_WRITE_LAST_IMM };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, .op = ops[i], .psn = E, .len = PMTU, .imm = INV_KEY);
		expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
		assert_int_equal(s.wqes, 4);     /* AMB-20: none is taken for a stray packet */
		assert_int_equal(s.v.fault, 16); /* RX-SYN-16 */
		expect_rule(&s, "RESP-NAK-INV-03");
	}
}

static void
RESP_NAK_INV_04_new_message_inside(void **state)
{
	const struct spec rows[] = {
		{ SEND_FIRST(E + 1) },
		{ SEND_ONLY(E + 1, 4) },
		{ .op = OP_RC_SEND_ONLY_INV, .psn = E + 1, .imm = INV_KEY },
		{ WRITE_ONLY(E + 1, 4) },
		{ WRITE_FIRST(E + 1, 2048) },
		{ .op = OP_RC_WRITE_ONLY_IMM, .psn = E + 1, .va = MR_VA, .rkey = MR_RKEY },
		{ READ(E + 1, 4) },
		{ FETCH_ADD(E + 1) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, SEND_FIRST(E));
		feed_spec(&s, rows[i]);
		expect_fatal_cqe(&s, NAK_INV, WC_REM_INV_REQ, 0);
		assert_int_equal(s.v.wc_opcode, 128);
		assert_int_equal(s.wqes, 3);
		assert_false(s.r.wqe_active);
		expect_rule(&s, "RESP-NAK-INV-04");

		bed_init(&s);
		FEED(&s, WRITE_FIRST(E, 2048));
		feed_spec(&s, rows[i]);
		expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
		assert_int_equal(s.wqes, 4);
		expect_rule(&s, "RESP-NAK-INV-04");
	}
}

static void
RESP_NAK_INV_05_other_kind_inside(void **state)
{
	const uint8_t of_write[] = { OP_RC_WRITE_MIDDLE, OP_RC_WRITE_LAST, OP_RC_WRITE_LAST_IMM };
	const uint8_t of_send[] = { OP_RC_SEND_MIDDLE, OP_RC_SEND_LAST, OP_RC_SEND_LAST_IMM,
		OP_RC_SEND_LAST_INV };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(of_write); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, SEND_FIRST(E));
		FEED(&s, .op = of_write[i], .psn = E + 1, .len = PMTU);
		expect_fatal_cqe(&s, NAK_INV, WC_REM_INV_REQ, 0);
		expect_rule(&s, "RESP-NAK-INV-05");
	}
	for (size_t i = 0; i < ARRAY_LEN(of_send); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, WRITE_FIRST(E, 2048));
		FEED(&s, .op = of_send[i], .psn = E + 1, .len = PMTU, .imm = INV_KEY);
		expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
		expect_rule(&s, "RESP-NAK-INV-05");
	}
}

static void
RESP_NAK_INV_06_send_too_long(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.wqe_bytes = 1500;
	FEED(&s, SEND_FIRST(E));
	assert_int_equal(s.v.act, ACT_TAKE_WQE | ACT_PLACE_SEND);
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 1, .len = PMTU);
	expect_fatal_cqe(&s, NAK_INV, WC_LOC_LEN, 0);
	assert_int_equal(s.v.counter, RC_LOCAL_LENGTH);
	expect_rule(&s, "RESP-NAK-INV-06");

	bed_init(&s); /* FIRST and ONLY take their WQE to report on it */
	s.wqe_bytes = 99;
	FEED(&s, SEND_ONLY(E, 100));
	expect_fatal_cqe(&s, NAK_INV, WC_LOC_LEN, ACT_TAKE_WQE);
	bed_init(&s);
	s.wqe_bytes = 1023;
	FEED(&s, SEND_FIRST(E));
	expect_fatal_cqe(&s, NAK_INV, WC_LOC_LEN, ACT_TAKE_WQE);

	bed_init(&s); /* no message is longer than 2^31, whatever the WQE says */
	s.wqe_bytes = UINT64_MAX;
	FEED(&s, SEND_FIRST(E));
	s.r.received = 0x80000000u - 1024;
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E + 1, .len = PMTU);
	assert_int_equal(s.v.act, ACT_PLACE_SEND);
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 2, .len = 1);
	expect_fatal_cqe(&s, NAK_INV, WC_LOC_LEN, 0);
}

static void
RESP_NAK_INV_07_pad(void **state)
{
	const struct {
		struct spec p;
		uint8_t fatal;
	} rows[] = {
		{ { .op = OP_RC_SEND_FIRST, .psn = E, .len = 1023, .pad = 1 }, 2 },
		{ { .op = OP_RC_SEND_FIRST, .psn = E, .len = 1024, .pad = 1 }, 2 },
		{ { .op = OP_RC_WRITE_FIRST,
			  .psn = E,
			  .len = 1024,
			  .pad = 2,
			  .va = MR_VA,
			  .rkey = MR_RKEY,
			  .dma_len = 2048 },
			18 },
		{ { .op = OP_RC_READ_REQUEST,
			  .psn = E,
			  .pad = 1,
			  .va = MR_VA,
			  .rkey = MR_RKEY,
			  .dma_len = 8 },
			2 },
	};
	struct bed s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bed_init(&s);
		feed_spec(&s, rows[i].p);
		expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
		assert_int_equal(s.v.fault, 18); /* RX-SYN-18 */
		assert_int_equal(s.v.fatal, rows[i].fatal);
		assert_int_equal(s.wqes, 4);
		expect_rule(&s, "RESP-NAK-INV-07");

		s.r.knobs = RESP_KNOB_LEN_PAD_DROP;
		feed_spec(&s, rows[i].p);
		expect_silent(&s);
		assert_int_equal(s.v.fault, 18);
		expect_rule(&s, "RX-SYN-18");
	}
	bed_init(&s);
	FEED(&s, SEND_FIRST(E));
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E + 1, .len = 1022, .pad = 2);
	expect_fatal_cqe(&s, NAK_INV, WC_REM_INV_REQ, 0);
	expect_rule(&s, "RESP-NAK-INV-07");
}

static void
RESP_NAK_INV_08_length(void **state)
{
	const struct {
		uint8_t first; /* 0xff: the packet comes alone */
		uint8_t op;
		uint32_t len;
	} rows[] = {
		{ 0xff, OP_RC_SEND_FIRST, 1020 },
		{ 0xff, OP_RC_SEND_FIRST, 1028 },
		{ 0xff, OP_RC_SEND_ONLY, 1028 },
		{ 0xff, OP_RC_WRITE_FIRST, 1020 },
		{ 0xff, OP_RC_WRITE_ONLY, 1028 },
		{ 0xff, OP_RC_WRITE_ONLY_IMM, 1028 },
		{ 0xff, OP_RC_READ_REQUEST, 4 },
		{ 0xff, OP_RC_FETCH_ADD, 4 },
		{ OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, 1028 },
		{ OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, 1020 },
		{ OP_RC_SEND_FIRST, OP_RC_SEND_LAST, 0 },
		{ OP_RC_SEND_FIRST, OP_RC_SEND_LAST, 1028 },
		{ OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, 1028 },
		{ OP_RC_WRITE_FIRST, OP_RC_WRITE_LAST, 0 },
		{ OP_RC_WRITE_FIRST, OP_RC_WRITE_LAST, 1028 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (int drop = 0; drop < 2; drop++) {
			struct spec p = { .op = rows[i].op,
				.psn = E,
				.len = rows[i].len,
				.va = MR_VA,
				.rkey = MR_RKEY,
				.dma_len = 2048 };
			struct bed s;

			bed_init(&s);
			s.r.knobs = drop != 0 ? RESP_KNOB_LEN_PAD_DROP : 0;
			if (rows[i].first != 0xff) {
				p.op = rows[i].first;
				p.len = PMTU;
				feed_spec(&s, p);
				p.op = rows[i].op;
				p.len = rows[i].len;
				p.psn = E + 1;
			}
			feed_spec(&s, p);
			assert_int_equal(s.v.fault, 19); /* RX-SYN-19 */
			if (drop != 0) {
				expect_silent(&s);
				expect_rule(&s, "RX-SYN-19");
				continue;
			}
			expect_rule(&s, "RESP-NAK-INV-08");
			if (rows[i].first == OP_RC_SEND_FIRST)
				expect_fatal_cqe(&s, NAK_INV, WC_REM_INV_REQ, 0);
			else
				expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
		}
	}
}

static void
RESP_NAK_INV_09_misaligned_atomic(void **state)
{
	(void)state;
	for (uint32_t off = 1; off < 8; off++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, .op = OP_RC_FETCH_ADD, .psn = E, .va = MR_VA + off, .rkey = BAD_KEY);
		expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
		expect_rule(&s, "RESP-NAK-INV-09"); /* and not the R_Key */
	}
}

static void
RESP_NAK_INV_10_too_many(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.r.max_dest_rd_atomic = 0;
	s.r.saved = NULL;
	FEED(&s, READ(E, 8));
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
	assert_int_equal(s.v.fatal, 16);
	FEED(&s, FETCH_ADD(E));
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);

	bed_init(&s);
	s.r.max_dest_rd_atomic = 2;
	FEED(&s, READ(E, 8));
	FEED(&s, FETCH_ADD(E + 1));
	FEED(&s, READ(E, 8)); /* a duplicate does not count */
	assert_int_equal(s.v.act, ACT_READ | ACT_DUPLICATE);
	FEED(&s, READ(E + 2, 8));
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
	assert_int_equal(s.v.fatal, 16);
	expect_rule(&s, "RESP-NAK-INV-10");

	bed_init(&s);
	s.r.max_dest_rd_atomic = 2;
	for (uint32_t i = 0; i < 20; i++) {
		FEED(&s, FETCH_ADD(E + i));
		assert_int_equal(s.v.act, ACT_ATOMIC);
		if (i > 0)
			responder_answered(&s.r);
	}
}

static void
RESP_NAK_INV_11_read_limit_RESP_NAK_INV_12_write_limit(void **state)
{
	struct responder before;
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E, 0x80000001));
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
	assert_int_equal(s.v.fatal, 22);
	expect_rule(&s, "RESP-NAK-INV-11");
	FEED(&s, READ(E, 0x80000000)); /* the limit itself: the range check decides */
	expect_fatal_event(&s, NAK_RAE, EV_QP_ACCESS_ERR);
	assert_int_equal(s.q.len, 0x80000000);

	bed_init(&s);
	before = s.r;
	FEED(&s, WRITE_FIRST(E, 0x80000001));
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
	expect_rule(&s, "RESP-NAK-INV-12");
	assert_false(responder_fits_fast_part(
		&before, &s.pkt, &(struct wire_reth){ MR_VA, MR_RKEY, 0x80000001 }, 2));
	assert_true(responder_fits_fast_part(
		&before, &s.pkt, &(struct wire_reth){ MR_VA, MR_RKEY, 0x7fffffff }, 2));
	FEED(&s, WRITE_FIRST(E, 0x80000000));
	expect_fatal_event(&s, NAK_RAE, EV_QP_ACCESS_ERR);
}

static void
RESP_NAK_INV_13_write_sum(void **state)
{
	const struct {
		uint8_t op;
		uint32_t len, dma_len;
		bool inv;
	} rows[] = {
		{ OP_RC_WRITE_LAST, 476, 2048, true }, /* ends at 1500 */
		{ OP_RC_WRITE_LAST, 1024, 2048, false },
		{ OP_RC_WRITE_LAST, 1024, 2047, true },
		{ OP_RC_WRITE_MIDDLE, 1024, 2048, false },
		{ OP_RC_WRITE_MIDDLE, 1024, 2047, true },
		{ OP_RC_WRITE_LAST, 1, 1024, true },
	};
	struct bed s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bed_init(&s);
		FEED(&s, WRITE_FIRST(E, rows[i].dma_len));
		assert_int_equal(s.v.act, ACT_PLACE_WRITE);
		FEED(&s, .op = rows[i].op, .psn = E + 1, .len = rows[i].len);
		if (rows[i].inv) {
			expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
			expect_rule(&s, "RESP-NAK-INV-13");
		} else {
			assert_int_equal(s.v.act, ACT_PLACE_WRITE);
		}
	}
	bed_init(&s); /* (b) a further MIDDLE exceeds 2048 */
	FEED(&s, WRITE_FIRST(E, 2048));
	FEED(&s, .op = OP_RC_WRITE_MIDDLE, .psn = E + 1, .len = PMTU);
	FEED(&s, .op = OP_RC_WRITE_MIDDLE, .psn = E + 2, .len = PMTU);
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
	bed_init(&s);
	FEED(&s, WRITE_FIRST(E, 1000)); /* already longer than announced */
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
	bed_init(&s); /* (c) */
	FEED(&s, .op = OP_RC_WRITE_ONLY, .psn = E, .len = 64, .va = MR_VA, .rkey = MR_RKEY,
		.dma_len = 100);
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
	expect_rule(&s, "RESP-NAK-INV-13");
}

/** RESP-NAK-INV-15: a WRITE with immediate reports on the WQE that its immediate takes. */
static void
RESP_NAK_INV_15_short_write_with_immediate(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, .op = OP_RC_WRITE_ONLY_IMM, .psn = E, .len = 64, .va = MR_VA, .rkey = MR_RKEY,
		.dma_len = 100);
	expect_fatal_cqe(&s, NAK_INV, WC_REM_INV_REQ, ACT_TAKE_WQE);
	assert_int_equal(s.v.wc_opcode, 129);
	bed_init(&s);
	FEED(&s, WRITE_FIRST(E, 2048));
	FEED(&s, .op = OP_RC_WRITE_LAST_IMM, .psn = E + 1, .len = 4);
	expect_fatal_cqe(&s, NAK_INV, WC_REM_INV_REQ, ACT_TAKE_WQE);
	bed_init(&s); /* without a WQE there is only the event */
	s.wqes = 0;
	FEED(&s, .op = OP_RC_WRITE_ONLY_IMM, .psn = E, .len = 64, .va = MR_VA, .rkey = MR_RKEY,
		.dma_len = 100);
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_NAK_INV_01_reserved_opcodes),
		cmocka_unit_test(RESP_NAK_INV_02_not_enabled),
		cmocka_unit_test(RESP_NAK_INV_03_stray),
		cmocka_unit_test(RESP_NAK_INV_04_new_message_inside),
		cmocka_unit_test(RESP_NAK_INV_05_other_kind_inside),
		cmocka_unit_test(RESP_NAK_INV_06_send_too_long),
		cmocka_unit_test(RESP_NAK_INV_07_pad),
		cmocka_unit_test(RESP_NAK_INV_08_length),
		cmocka_unit_test(RESP_NAK_INV_09_misaligned_atomic),
		cmocka_unit_test(RESP_NAK_INV_10_too_many),
		cmocka_unit_test(RESP_NAK_INV_11_read_limit_RESP_NAK_INV_12_write_limit),
		cmocka_unit_test(RESP_NAK_INV_13_write_sum),
		cmocka_unit_test(RESP_NAK_INV_15_short_write_with_immediate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
