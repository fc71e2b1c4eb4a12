/* SPDX-License-Identifier: BSD-3-Clause */
/* NAK-RAE, NAK-ROE and NAKs in general: RESP-NAK-02..06, RESP-NAK-RAE, RESP-NAK-ROE. */
#include "pkt.h"

static void
RESP_NAK_RAE_01_to_07_key_refused(void **state)
{
	const struct {
		struct spec p;
		uint8_t mr_access;
	} rows[] = {
		/* RESP-NAK-RAE-01: never issued */
		{ { .op = OP_RC_WRITE_ONLY, .len = 4, .va = MR_VA, .rkey = BAD_KEY, .dma_len = 4 },
			ALL_ACCESS },
		{ { .op = OP_RC_READ_REQUEST, .va = MR_VA, .rkey = BAD_KEY, .dma_len = 4 },
			ALL_ACCESS },
		{ { .op = OP_RC_FETCH_ADD, .va = MR_VA, .rkey = BAD_KEY }, ALL_ACCESS },
		{ { .op = OP_RC_COMPARE_SWAP, .va = MR_VA, .rkey = BAD_KEY }, ALL_ACCESS },
		/* RESP-NAK-RAE-02: below, one byte past, wrapping */
		{ { .op = OP_RC_WRITE_ONLY,
			  .len = 4,
			  .va = MR_VA - 1,
			  .rkey = MR_RKEY,
			  .dma_len = 4 },
			ALL_ACCESS },
		{ { .op = OP_RC_WRITE_ONLY,
			  .len = 4,
			  .va = MR_VA + MR_LEN - 3,
			  .rkey = MR_RKEY,
			  .dma_len = 4 },
			ALL_ACCESS },
		{ { .op = OP_RC_READ_REQUEST, .va = UINT64_MAX - 1, .rkey = MR_RKEY, .dma_len = 4 },
			ALL_ACCESS },
		{ { .op = OP_RC_FETCH_ADD, .va = MR_VA + MR_LEN, .rkey = MR_RKEY }, ALL_ACCESS },
		/* RESP-NAK-RAE-03: right not granted */
		{ { WRITE_ONLY(0, 4) }, ALL_ACCESS & ~REMOTE_WRITE },
		{ { READ(0, 4) }, ALL_ACCESS & ~REMOTE_READ },
		{ { FETCH_ADD(0) }, ALL_ACCESS & ~REMOTE_ATOMIC },
		/* RESP-NAK-RAE-05: the whole range of the RETH at FIRST */
		{ { WRITE_FIRST(0, MR_LEN + 1) }, ALL_ACCESS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct spec p = rows[i].p;
		struct bed s;

		bed_init(&s);
		s.mr_access = rows[i].mr_access;
		p.psn = E;
		feed_spec(&s, p);
		/* RESP-NAK-RAE-06: at its own PSN; RESP-NAK-RAE-07: one event, no completion */
		expect_fatal_event(&s, NAK_RAE, EV_QP_ACCESS_ERR);
		assert_int_equal(s.v.fatal, 21);
		assert_int_equal(s.v.counter, RC_NAK_ACCESS);
		assert_int_equal(s.v.fault, VERDICT_NO_FAULT);
		assert_int_equal(s.r.unfinished, 0);
		expect_rule(&s, "RESP-NAK-RAE-01");
	}
}

static void
RESP_NAK_RAE_03_granted_access_suffices(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.mr_access = REMOTE_WRITE;
	FEED(&s, WRITE_ONLY(E, 4));
	expect_ack(&s, E, 1);
	s.mr_access = REMOTE_READ;
	FEED(&s, READ(E + 1, 4));
	assert_int_equal(s.v.act, ACT_READ);
	s.mr_access = REMOTE_ATOMIC;
	FEED(&s, FETCH_ADD(E + 2));
	assert_int_equal(s.v.act, ACT_ATOMIC);
}

static void
RESP_NAK_RAE_08_write_with_immediate(void **state)
{
	const struct spec bad = { WRITE_ONLY_IMM(E, BAD_KEY) };
	struct bed s;

	(void)state;
	bed_init(&s);
	feed_spec(&s, bad);
	expect_fatal_cqe(&s, NAK_RAE, WC_REM_ACCESS, ACT_TAKE_WQE);
	assert_int_equal(s.v.wc_opcode, 129);
	assert_int_equal(s.v.fatal, 21);
	expect_rule(&s, "RESP-NAK-RAE-08");

	bed_init(&s);
	s.r.knobs = RESP_KNOB_IMM_LOC;
	feed_spec(&s, bad);
	expect_fatal_cqe(&s, NAK_RAE, WC_LOC_ACCESS, ACT_TAKE_WQE);
}

/** RESP-NAK-06: what FIRST placed stays; nothing more is placed. */
static void
RESP_NAK_RAE_09_revoked_in_mid_write(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, WRITE_FIRST(E, 2058));
	s.mr_gone = true;
	FEED(&s, .op = OP_RC_WRITE_MIDDLE, .psn = E + 1, .len = PMTU);
	expect_fatal_event(&s, NAK_RAE, EV_QP_ACCESS_ERR);
	expect_rule(&s, "RESP-NAK-RAE-09");

	bed_init(&s);
	FEED(&s, WRITE_FIRST(E, 1030));
	s.mr_gone = true;
	FEED(&s, .op = OP_RC_WRITE_LAST_IMM, .psn = E + 1, .len = 6);
	expect_fatal_cqe(&s, NAK_RAE, WC_REM_ACCESS, ACT_TAKE_WQE);
}

static void
RESP_NAK_ROE_01_receive_wqe(void **state)
{
	const struct {
		uint8_t fault, status;
	} rows[] = { { WQE_FAULT_MALFORMED, WC_LOC_QP_OP }, { WQE_FAULT_PROT, WC_LOC_PROT } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		s.f.wqe_fault = rows[i].fault;
		FEED(&s, SEND_ONLY(E, 4));
		expect_fatal_cqe(&s, NAK_ROE, rows[i].status, ACT_TAKE_WQE);
		assert_int_equal(s.v.counter, RC_NAK_OPERATION);
		expect_rule(&s, "RESP-NAK-ROE-01");

		bed_init(&s);
		FEED(&s, SEND_FIRST(E));
		s.f.wqe_fault = rows[i].fault;
		FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 1, .len = 4);
		expect_fatal_cqe(&s, NAK_ROE, rows[i].status, 0);
	}
}

/** A malformed WQE has no size to compare with; an immediate does not touch the WQE's memory. */
static void
RESP_NAK_ROE_01_size_and_immediate(void **state)
{
	const struct spec imm = { WRITE_ONLY_IMM(E, MR_RKEY) };
	struct bed s;

	(void)state;
	bed_init(&s);
	s.f.wqe_fault = WQE_FAULT_MALFORMED;
	s.wqe_bytes = 0;
	FEED(&s, SEND_ONLY(E, 4));
	expect_fatal_cqe(&s, NAK_ROE, WC_LOC_QP_OP, ACT_TAKE_WQE);
	bed_init(&s);
	s.f.wqe_fault = WQE_FAULT_MALFORMED;
	feed_spec(&s, imm);
	expect_fatal_cqe(&s, NAK_ROE, WC_LOC_QP_OP, ACT_TAKE_WQE);
	bed_init(&s);
	s.f.wqe_fault = WQE_FAULT_PROT;
	feed_spec(&s, imm);
	assert_int_equal(s.v.act, ACT_TAKE_WQE | ACT_PLACE_WRITE | ACT_COMPLETE);
	/* The WQE's state is nothing to a plain WRITE. */
	s.f.wqe_fault = WQE_FAULT_MALFORMED;
	FEED(&s, WRITE_ONLY(E + 1, 4));
	expect_ack(&s, E + 1, 2);
}

static void
RESP_NAK_ROE_02_execution(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.f.exec_fault = true;
	FEED(&s, READ(E, 8));
	expect_fatal_event(&s, NAK_ROE, EV_QP_FATAL);
	expect_rule(&s, "RESP-NAK-ROE-02");
	FEED(&s, FETCH_ADD(E));
	expect_fatal_event(&s, NAK_ROE, EV_QP_FATAL);
	FEED(&s, SEND_ONLY(E, 8));
	expect_fatal_cqe(&s, NAK_ROE, WC_LOC_QP_OP, ACT_TAKE_WQE);
}

static void
RESP_NAK_03_read_fails_part_way(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E, 4096));
	FEED(&s, SEND_FIRST(E + 4)); /* its WQE has nothing to do with the READ */
	s.before = s.r;
	memset(&s.v, 0xa5, sizeof(s.v));
	responder_read_failed(&s.r, psn(E + 2), true, &s.v);
	assert_int_equal(s.v.act, ACT_NAK | ACT_EVENT | ACT_ERR);
	assert_int_equal(s.v.syndrome, NAK_RAE);
	assert_int_equal(s.v.event, EV_QP_ACCESS_ERR);
	assert_int_equal(s.v.reply_psn.v, E + 2);
	assert_int_equal(s.v.reply_msn, 1);
	assert_int_equal(s.v.fatal, 21);
	assert_int_equal(s.v.counter, RC_NAK_ACCESS);
	assert_int_equal(s.v.fault, VERDICT_NO_FAULT);
	expect_rule(&s, "RESP-NAK-03");
	expect_state(&s, E + 5, 1);

	responder_read_failed(&s.r, psn(E + 2), false, &s.v); /* RESP-NAK-ROE-02 */
	assert_int_equal(s.v.act, ACT_NAK | ACT_EVENT | ACT_ERR);
	assert_int_equal(s.v.syndrome, NAK_ROE);
	assert_int_equal(s.v.event, EV_QP_FATAL);
	assert_int_equal(s.v.reply_psn.v, E + 2);
	assert_int_equal(s.v.counter, RC_NAK_OPERATION);
	expect_rule(&s, "RESP-NAK-ROE-02");
}

/** RESP-NAK-02: what was accepted before stays accepted and in order; the NAK is at its own PSN. */
static void
RESP_NAK_02_earlier_requests_first(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E, 4));
	assert_true((s.v.act & ACT_COMPLETE) != 0);
	FEED(&s, READ(E + 1, 4096));
	assert_int_equal(s.v.act, ACT_READ);
	FEED(&s, .op = OP_RC_WRITE_ONLY, .psn = E + 5, .len = 4, .va = MR_VA, .rkey = BAD_KEY,
		.dma_len = 4);
	expect_fatal_event(&s, NAK_RAE, EV_QP_ACCESS_ERR);
	assert_int_equal(s.v.reply_psn.v, E + 5);
	assert_int_equal(s.v.reply_msn, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_NAK_RAE_01_to_07_key_refused),
		cmocka_unit_test(RESP_NAK_RAE_03_granted_access_suffices),
		cmocka_unit_test(RESP_NAK_RAE_08_write_with_immediate),
		cmocka_unit_test(RESP_NAK_RAE_09_revoked_in_mid_write),
		cmocka_unit_test(RESP_NAK_ROE_01_receive_wqe),
		cmocka_unit_test(RESP_NAK_ROE_01_size_and_immediate),
		cmocka_unit_test(RESP_NAK_ROE_02_execution),
		cmocka_unit_test(RESP_NAK_03_read_fails_part_way),
		cmocka_unit_test(RESP_NAK_02_earlier_requests_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
