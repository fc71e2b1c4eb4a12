/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiver not ready: RESP-RNR-01..11, RX-SYN-20. */
#include "pkt.h"

/* Microseconds of the 32 timer codes, typed from the table of the specification. */
static const uint32_t rnr_us[32] = { 655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640,
	960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920,
	122880, 163840, 245760, 327680, 491520 };

static void
empty(struct bed *s)
{
	bed_init(s);
	s->wqes = 0;
}

static void
RESP_RNR_01_send_RESP_RNR_04_no_queue_impact(void **state)
{
	struct bed s;

	(void)state;
	empty(&s);
	FEED(&s, SEND_ONLY(E, 4));
	expect_nak(&s, RNR_12, E, 0);
	assert_int_equal(s.v.fault, 20); /* RX-SYN-20 */
	assert_int_equal(s.v.counter, RC_OUT_OF_BUFFER);
	assert_int_equal(s.v.fatal, 0);
	expect_rule(&s, "RESP-RNR-01");
	assert_true(s.r.latched);
}

static void
RESP_RNR_02_which_packets(void **state)
{
	const struct {
		struct spec p;
		bool rnr;
	} rows[] = {
		{ { SEND_FIRST(E) }, true },
		{ { SEND_ONLY(E, 4) }, true },
		{ { .op = OP_RC_SEND_ONLY_IMM, .psn = E }, true },
		{ { .op = OP_RC_SEND_ONLY_INV, .psn = E, .imm = INV_KEY }, true },
		{ { WRITE_ONLY_IMM(E, MR_RKEY) }, true },
		{ { WRITE_ONLY(E, 4) }, false },
		{ { WRITE_FIRST(E, 1030) }, false },
		{ { READ(E, 4) }, false },
		{ { FETCH_ADD(E) }, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		empty(&s);
		feed_spec(&s, rows[i].p);
		if (rows[i].rnr) {
			expect_nak(&s, RNR_12, E, 0);
		} else {
			assert_int_equal(s.v.act & (ACT_NAK | ACT_DROP | ACT_ERR), 0);
			assert_int_equal(s.r.epsn.v, E + 1);
		}
	}
}

/** The multi-packet WRITE gets its RNR at LAST; the retry of LAST alone completes it. */
static void
RESP_RNR_02_write_last_with_immediate(void **state)
{
	struct bed s;

	(void)state;
	empty(&s);
	FEED(&s, WRITE_FIRST(E, 2058));
	FEED(&s, .op = OP_RC_WRITE_MIDDLE, .psn = E + 1, .len = PMTU);
	assert_int_equal(s.v.act, ACT_PLACE_WRITE);
	FEED(&s, .op = OP_RC_WRITE_LAST_IMM, .psn = E + 2, .len = 10, .imm = 7);
	expect_nak(&s, RNR_12, E + 2, 0);
	expect_rule(&s, "RESP-RNR-02");
	s.wqes = 1;
	FEED(&s, .op = OP_RC_WRITE_LAST_IMM, .psn = E + 2, .len = 10, .imm = 7);
	assert_int_equal(s.v.act, ACT_TAKE_WQE | ACT_PLACE_WRITE | ACT_COMPLETE);
	assert_int_equal(s.v.byte_len, 2058);
	assert_true(s.v.va == MR_VA + 2048);
	expect_state(&s, E + 3, 1);
}

static void
RESP_RNR_03_all_timer_codes(void **state)
{
	(void)state;
	for (uint8_t t = 0; t < 32; t++) {
		struct bed s;

		empty(&s);
		s.r.min_rnr_timer = t;
		FEED(&s, SEND_ONLY(E, 4));
		expect_nak(&s, 0x20 + t, E, 0);
		assert_true(s.r.rnr_until == T0 + rnr_us[t] * UINT64_C(1000));
	}
}

static void
RESP_RNR_05_out_of_order_is_silent(void **state)
{
	struct bed s;

	(void)state;
	empty(&s);
	FEED(&s, SEND_ONLY(E, 4));
	s.wqes = 1;
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_silent(&s);
	expect_rule(&s, "RESP-RNR-05");
	FEED(&s, SEND_ONLY(E + 2, 4));
	expect_silent(&s);
}

static void
RESP_RNR_06_retry_accepted(void **state)
{
	struct bed s;

	(void)state;
	empty(&s);
	FEED(&s, SEND_ONLY(E, 4));
	s.wqes = 4;
	s.now += 640 * TIME_NS_PER_US;
	FEED(&s, SEND_ONLY(E, 4));
	expect_ack(&s, E, 1);
	assert_false(s.r.latched);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_ack(&s, E + 1, 2);
	FEED(&s, SEND_ONLY(E + 3, 4));
	expect_nak(&s, NAK_SEQ, E + 2, 2);
}

static void
RESP_RNR_07_still_not_ready(void **state)
{
	struct bed s;

	(void)state;
	empty(&s);
	for (int i = 0; i < 5; i++) {
		FEED(&s, SEND_ONLY(E, 4));
		expect_nak(&s, RNR_12, E, 0);
		s.now += TIME_NS_PER_MS;
	}
}

/** Also after a sequence NAK: the latch silences what is ahead, not the request at ePSN. */
static void
RESP_RNR_07_after_a_sequence_nak(void **state)
{
	struct bed s;

	(void)state;
	empty(&s);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_nak(&s, NAK_SEQ, E, 0);
	FEED(&s, SEND_ONLY(E, 4));
	expect_nak(&s, RNR_12, E, 0);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_silent(&s);
}

static void
RESP_RNR_08_early_retry(void **state)
{
	struct bed s;

	(void)state;
	empty(&s); /* default: processed */
	s.r.min_rnr_timer = 31;
	FEED(&s, SEND_ONLY(E, 4));
	s.wqes = 1;
	s.now += TIME_NS_PER_MS;
	FEED(&s, SEND_ONLY(E, 4));
	expect_ack(&s, E, 1);

	empty(&s);
	s.r.min_rnr_timer = 31;
	s.r.knobs = RESP_KNOB_EARLY_DROP;
	FEED(&s, SEND_ONLY(E, 4));
	expect_nak(&s, 0x3f, E, 0);
	s.wqes = 1;
	s.now = T0 + 491520 * TIME_NS_PER_US - 1;
	FEED(&s, SEND_ONLY(E, 4));
	expect_silent(&s);
	expect_rule(&s, "RESP-RNR-08");
	s.now++;
	FEED(&s, SEND_ONLY(E, 4));
	expect_ack(&s, E, 1);

	/* A sequence NAK asks for no delay, and what follows it is no matter of RNR. */
	FEED(&s, SEND_ONLY(E + 2, 4));
	expect_nak(&s, NAK_SEQ, E + 1, 1);
	FEED(&s, SEND_ONLY(E + 2, 4));
	expect_silent(&s);
	expect_rule(&s, "RESP-SEQ-02");
	FEED(&s, WRITE_ONLY(E + 1, 4));
	expect_ack(&s, E + 1, 2);
}

/** Copies that came at the same time were sent before the peer can have heard the first NAK. */
static void
RESP_RNR_08_copies_of_one_moment(void **state)
{
	const struct spec rows[] = {
		{ SEND_FIRST(E) },
		{ SEND_ONLY(E, 4) },
		{ .op = OP_RC_SEND_ONLY_IMM, .psn = E },
		{ WRITE_ONLY_IMM(E, MR_RKEY) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		empty(&s);
		feed_spec(&s, rows[i]);
		expect_nak(&s, RNR_12, E, 0);
		feed_spec(&s, rows[i]);
		expect_silent(&s);
		expect_rule(&s, "RESP-RNR-08");
		assert_int_equal(s.v.counter, RC_OUT_OF_BUFFER);
		assert_int_equal(s.v.fault, 20);
		s.now++;
		feed_spec(&s, rows[i]);
		expect_nak(&s, RNR_12, E, 0);
		s.wqes = 1; /* of the same moment, but there is a WQE now */
		feed_spec(&s, rows[i]);
		assert_int_equal(s.v.act & (ACT_NAK | ACT_DROP | ACT_ERR), 0);
		assert_int_equal(s.r.epsn.v, E + 1);
	}
}

/** RESP-RNR-11: the same of another shortage, which has no counter of its own. */
static void
RESP_RNR_11_copies_of_one_moment(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.f.short_of_resources = true;
	FEED(&s, READ(E, 4));
	expect_nak(&s, RNR_12, E, 0);
	FEED(&s, READ(E, 4));
	expect_silent(&s);
	expect_rule(&s, "RESP-RNR-08");
	assert_int_equal(s.v.counter, RC_SILENT);
	s.now++;
	FEED(&s, READ(E, 4));
	expect_nak(&s, RNR_12, E, 0);
}

static void
RESP_RNR_09_duplicates_answered(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.wqes = 1;
	FEED(&s, SEND_ONLY(E, 4));
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_nak(&s, RNR_12, E + 1, 1); /* RESP-RNR-10: MSN 1, the first was done */
	FEED(&s, SEND_ONLY(E, 4));
	expect_ack(&s, E, 1);
}

static void
RESP_RNR_10_earlier_request_done(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.wqes = 1;
	FEED(&s, SEND_ONLY(E, 4));
	assert_true((s.v.act & ACT_COMPLETE) != 0);
	expect_ack(&s, E, 1);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_nak(&s, RNR_12, E + 1, 1);
}

static void
RESP_RNR_11_other_shortages(void **state)
{
	const struct spec rows[] = {
		{ SEND_ONLY(E, 4) },
		{ WRITE_ONLY(E, 4) },
		{ READ(E, 4) },
		{ FETCH_ADD(E) },
		{ WRITE_ONLY_IMM(E, BAD_KEY) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		s.f.short_of_resources = true;
		feed_spec(&s, rows[i]);
		expect_nak(&s, RNR_12, E, 0);
		assert_int_equal(s.v.counter, RC_RNR_OTHER);
		assert_int_equal(s.v.fault, VERDICT_NO_FAULT);
		expect_rule(&s, "RESP-RNR-11");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_RNR_01_send_RESP_RNR_04_no_queue_impact),
		cmocka_unit_test(RESP_RNR_02_which_packets),
		cmocka_unit_test(RESP_RNR_02_write_last_with_immediate),
		cmocka_unit_test(RESP_RNR_03_all_timer_codes),
		cmocka_unit_test(RESP_RNR_05_out_of_order_is_silent),
		cmocka_unit_test(RESP_RNR_06_retry_accepted),
		cmocka_unit_test(RESP_RNR_07_still_not_ready),
		cmocka_unit_test(RESP_RNR_07_after_a_sequence_nak),
		cmocka_unit_test(RESP_RNR_08_early_retry),
		cmocka_unit_test(RESP_RNR_08_copies_of_one_moment),
		cmocka_unit_test(RESP_RNR_09_duplicates_answered),
		cmocka_unit_test(RESP_RNR_10_earlier_request_done),
		cmocka_unit_test(RESP_RNR_11_other_shortages),
		cmocka_unit_test(RESP_RNR_11_copies_of_one_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
