/* SPDX-License-Identifier: BSD-3-Clause */
/* PSNs that are not ePSN's: RESP-SEQ-01..13, RESP-NAK-04. */
#include "pkt.h"

static void
RESP_SEQ_01_gap(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E + 1, 100));
	expect_nak(&s, NAK_SEQ, E, 0);
	assert_int_equal(s.v.counter, RC_OUT_OF_SEQUENCE);
	assert_int_equal(s.v.fault, 21); /* RX-SYN-21 */
	assert_int_equal(s.v.fatal, 0);
	expect_rule(&s, "RESP-SEQ-01");
	assert_false(s.q.wqe || s.q.key || s.q.invalidate);
}

static void
RESP_SEQ_02_once_and_RESP_SEQ_06_queue_untouched(void **state)
{
	const uint32_t more[] = { E + 2, E + 3, E + 1 };
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_nak(&s, NAK_SEQ, E, 0);
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		FEED(&s, SEND_ONLY(more[i], 4));
		expect_silent(&s);
		assert_int_equal(s.v.counter, RC_OUT_OF_SEQUENCE);
		assert_int_equal(s.v.fault, 21);
		expect_rule(&s, "RESP-SEQ-02");
	}
	assert_int_equal(s.wqes, 4);
	expect_state(&s, E, 0);
}

static void
RESP_SEQ_03_recovery_RESP_SEQ_04_rearmed(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E + 1, 4));
	FEED(&s, SEND_ONLY(E, 4));
	expect_ack(&s, E, 1);
	assert_false(s.r.latched);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_ack(&s, E + 1, 2);
	FEED(&s, SEND_ONLY(E + 3, 4));
	expect_nak(&s, NAK_SEQ, E + 2, 2);
}

/** Each kind of request accepted at ePSN clears the latch. */
static void
RESP_SEQ_04_any_request_rearms(void **state)
{
	const struct spec rows[] = {
		{ SEND_ONLY(E, 4) },
		{ SEND_FIRST(E) },
		{ WRITE_ONLY(E, 4) },
		{ READ(E, 4) },
		{ FETCH_ADD(E) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, SEND_ONLY(E + 1, 4));
		feed_spec(&s, rows[i]);
		assert_int_equal(s.v.act & (ACT_NAK | ACT_DROP), 0);
		FEED(&s, SEND_ONLY(E + 4, 4));
		expect_nak(&s, NAK_SEQ, E + 1, s.r.msn);
	}
}

static void
RESP_SEQ_05_duplicates_answered_while_latched(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E, 4));
	FEED(&s, SEND_ONLY(E + 2, 4));
	expect_nak(&s, NAK_SEQ, E + 1, 1);
	FEED(&s, SEND_ONLY(E, 4));
	expect_ack(&s, E, 1);
	FEED(&s, SEND_ONLY(E + 2, 4));
	expect_silent(&s);
}

static void
RESP_SEQ_07_gap_behind_a_read(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E, 4096));
	assert_int_equal(s.v.act, ACT_READ);
	FEED(&s, SEND_ONLY(E + 5, 4));
	expect_nak(&s, NAK_SEQ, E + 4, 1);
}

static void
RESP_SEQ_08_read_out_of_sequence(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E + 1, 4096));
	expect_nak(&s, NAK_SEQ, E, 0);
	expect_rule(&s, "RESP-SEQ-01");
	assert_int_equal(s.r.unfinished, 0);
}

static void
RESP_SEQ_09_window(void **state)
{
	const uint32_t at[] = { 0x800000, 0x000005, 0xfffffe };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		const struct {
			uint32_t ahead;
			bool dup;
		} rows[] = { { 1, false }, { 0x7fffff, false }, { 0xffffff, true },
			{ 0x800001, true } };

		for (size_t j = 0; j < ARRAY_LEN(rows); j++) {
			struct bed s;

			bed_init(&s);
			responder_reset(&s.r, psn(at[i]));
			FEED(&s, SEND_ONLY((at[i] + rows[j].ahead) & 0xffffff, 4));
			if (rows[j].dup)
				expect_ack(&s, (at[i] - 1) & 0xffffff, 0);
			else
				expect_nak(&s, NAK_SEQ, at[i], 0);
			assert_int_equal((s.v.act & ACT_DUPLICATE) != 0, rows[j].dup);
		}
	}
}

static void
RESP_SEQ_10_half_window(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E + 0x800000, 4));
	expect_nak(&s, NAK_SEQ, E, 0);
	expect_rule(&s, "RESP-SEQ-10");

	bed_init(&s);
	s.r.knobs = RESP_KNOB_HALF_DUP;
	FEED(&s, SEND_ONLY(E + 0x800000, 4));
	expect_ack(&s, E - 1, 0);
	assert_true((s.v.act & ACT_DUPLICATE) != 0);
}

static void
RESP_SEQ_11_loss_in_mid_message(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_FIRST(E));
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 2, .len = 10);
	expect_nak(&s, NAK_SEQ, E + 1, 0);
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E + 1, .len = PMTU);
	assert_int_equal(s.v.act, ACT_PLACE_SEND);
	assert_int_equal(s.v.offset, 1024);
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 2, .len = 10, .flags = PKT_ACKREQ);
	expect_ack(&s, E + 2, 1);
	assert_int_equal(s.v.byte_len, 2058);
	assert_int_equal(s.wqes, 3);
}

/** RESP-SEQ-12: a lost tail is silence, and silence changes nothing: the next packet still fits. */
static void
RESP_SEQ_12_tail_loss(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_FIRST(E));
	s.now += 60 * TIME_NS_PER_S;
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 1, .len = 1, .flags = PKT_ACKREQ);
	expect_ack(&s, E + 1, 1);
}

/** A packet at ePSN that is dropped (here by rx.len_pad_impact=drop) leaves the latch set. */
static void
RESP_SEQ_13_dropped_packet_keeps_latch(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.r.knobs = RESP_KNOB_LEN_PAD_DROP;
	FEED(&s, SEND_ONLY(E + 1, 4));
	FEED(&s, .op = OP_RC_SEND_FIRST, .psn = E, .len = 1020);
	expect_silent(&s);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_silent(&s);
}

/** RESP-NAK-04, RX-PREC-07: whatever else is wrong, off ePSN it is a sequence error, once. */
static void
RESP_NAK_04_RX_PREC_07_psn_before_everything(void **state)
{
	const struct spec rows[] = {
		{ .op = OP_RC_WRITE_ONLY, .len = 4, .va = MR_VA, .rkey = BAD_KEY, .dma_len = 4 },
		{ .op = OP_RC_SEND_ONLY, .len = 1020 },   /* over-long: the WQE has 64 bytes */
		{ .op = OP_RC_SEND_MIDDLE, .len = PMTU }, /* out of sequence */
		{ .op = OP_RC_SEND_FIRST, .len = 1023, .pad = 1 },
		{ .op = OP_RC_READ_REQUEST, .va = MR_VA, .rkey = MR_RKEY, .dma_len = 0x80000001 },
		{ .op = OP_RC_FETCH_ADD, .va = MR_VA + 1, .rkey = MR_RKEY },
		{ .op = 0x1f },
		{ .op = 0x15 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct spec p = rows[i];
		struct bed s;

		bed_init(&s);
		s.wqe_bytes = 64;
		s.wqes = i & 1;
		p.psn = E + 1;
		feed_spec(&s, p);
		expect_nak(&s, NAK_SEQ, E, 0);
		feed_spec(&s, p);
		expect_silent(&s);
		p.psn = E - 1;
		feed_spec(&s, p);
		assert_int_equal(s.v.act & (ACT_NAK | ACT_ERR | ACT_EVENT | ACT_COMPLETE), 0);
		assert_memory_equal(&s.r, &s.before, sizeof(s.r));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_SEQ_01_gap),
		cmocka_unit_test(RESP_SEQ_02_once_and_RESP_SEQ_06_queue_untouched),
		cmocka_unit_test(RESP_SEQ_03_recovery_RESP_SEQ_04_rearmed),
		cmocka_unit_test(RESP_SEQ_04_any_request_rearms),
		cmocka_unit_test(RESP_SEQ_05_duplicates_answered_while_latched),
		cmocka_unit_test(RESP_SEQ_07_gap_behind_a_read),
		cmocka_unit_test(RESP_SEQ_08_read_out_of_sequence),
		cmocka_unit_test(RESP_SEQ_09_window),
		cmocka_unit_test(RESP_SEQ_10_half_window),
		cmocka_unit_test(RESP_SEQ_11_loss_in_mid_message),
		cmocka_unit_test(RESP_SEQ_12_tail_loss),
		cmocka_unit_test(RESP_SEQ_13_dropped_packet_keeps_latch),
		cmocka_unit_test(RESP_NAK_04_RX_PREC_07_psn_before_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
