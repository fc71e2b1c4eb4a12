/* SPDX-License-Identifier: BSD-3-Clause */
/* FATAL codes of the responder: RX-FATAL-01..04, -16..18, -21, -22, alone and combined. */
#include "pkt.h"

struct row {
	const char *what;
	uint8_t first; /* opcode accepted before, or NONE */
	struct spec p;
	uint8_t fatal; /* binary digits as in the table of codes */
	uint8_t syndrome;
};

enum { NONE = 0xff };

static const struct row rows[] = {
	{ "RX-FATAL-01 00001: SEND sequence", NONE,
		{ .op = OP_RC_SEND_MIDDLE, .psn = E, .len = 1024 }, 0x01, NAK_INV },
	{ "RX-FATAL-01 00001: SEND inside a WRITE", OP_RC_WRITE_FIRST,
		{ .op = OP_RC_SEND_ONLY, .psn = E + 1, .len = 4 }, 0x01, NAK_INV },
	{ "RX-FATAL-01 00001: READ inside a SEND", OP_RC_SEND_FIRST, { READ(E + 1, 4) }, 0x01,
		NAK_INV },
	{ "RX-FATAL-02 00010: SEND length", NONE, { .op = OP_RC_SEND_FIRST, .psn = E, .len = 1020 },
		0x02, NAK_INV },
	{ "RX-FATAL-02 00010: SEND pad", NONE,
		{ .op = OP_RC_SEND_FIRST, .psn = E, .len = 1024, .pad = 1 }, 0x02, NAK_INV },
	{ "RX-FATAL-03 00011: SEND sequence and length", NONE,
		{ .op = OP_RC_SEND_MIDDLE, .psn = E, .len = 1020 }, 0x03, NAK_INV },
	{ "RX-FATAL-03 00011: SEND sequence and pad", NONE,
		{ .op = OP_RC_SEND_MIDDLE, .psn = E, .len = 1023, .pad = 1 }, 0x03, NAK_INV },
	{ "RX-FATAL-04 00100: opcode", NONE, { .op = 0x1f, .psn = E }, 0x04, NAK_INV },
	{ "RX-FATAL-04 00100: opcode inside a SEND", OP_RC_SEND_FIRST, { .op = 0x1f, .psn = E + 1 },
		0x04, NAK_INV },
	{ "RX-FATAL-17 10001: WRITE sequence", NONE,
		{ .op = OP_RC_WRITE_MIDDLE, .psn = E, .len = 1024 }, 0x11, NAK_INV },
	{ "RX-FATAL-17 10011: WRITE sequence and length", NONE,
		{ .op = OP_RC_WRITE_MIDDLE, .psn = E, .len = 1020 }, 0x13, NAK_INV },
	{ "RX-FATAL-17 10011: WRITE inside a SEND, too long", OP_RC_SEND_FIRST,
		{ .op = OP_RC_WRITE_ONLY, .psn = E + 1, .len = 1028, .dma_len = 1028 }, 0x13,
		NAK_INV },
	{ "RX-FATAL-18 10010: WRITE length", NONE,
		{ .op = OP_RC_WRITE_FIRST,
			.psn = E,
			.len = 1020,
			.va = MR_VA,
			.rkey = MR_RKEY,
			.dma_len = 2048 },
		0x12, NAK_INV },
	{ "RX-FATAL-21 10101: R_Key", NONE,
		{ .op = OP_RC_WRITE_ONLY,
			.psn = E,
			.len = 4,
			.va = MR_VA,
			.rkey = BAD_KEY,
			.dma_len = 4 },
		0x15, NAK_RAE },
	{ "RX-FATAL-22 10110: DMA length of a READ", NONE, { READ(E, 0x80000001) }, 0x16, NAK_INV },
	{ "RX-FATAL-22 10111: and a bad R_Key", NONE,
		{ .op = OP_RC_READ_REQUEST,
			.psn = E,
			.va = MR_VA,
			.rkey = BAD_KEY,
			.dma_len = 0x80000001 },
		0x17, NAK_INV },
	{ "RX-FATAL-22 10110: DMA length of a WRITE", NONE, { WRITE_FIRST(E, 0x80000001) }, 0x16,
		NAK_INV },
	{ "RX-FATAL-22 10110: WRITE sum", NONE,
		{ .op = OP_RC_WRITE_ONLY,
			.psn = E,
			.len = 4,
			.va = MR_VA,
			.rkey = MR_RKEY,
			.dma_len = 8 },
		0x16, NAK_INV },
	{ "RX-FATAL-22 10111: WRITE sum and a bad R_Key", NONE,
		{ .op = OP_RC_WRITE_ONLY,
			.psn = E,
			.len = 4,
			.va = MR_VA,
			.rkey = BAD_KEY,
			.dma_len = 8 },
		0x17, NAK_INV },
};

static void
RX_FATAL_codes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		if (rows[i].first != NONE)
			FEED(&s, .op = rows[i].first, .psn = E, .len = PMTU, .va = MR_VA,
				.rkey = MR_RKEY, .dma_len = 2048);
		feed_spec(&s, rows[i].p);
		if (s.v.fatal != rows[i].fatal)
			fail_msg("%s: got %u", rows[i].what, s.v.fatal);
		assert_int_equal(s.v.syndrome, rows[i].syndrome);
		assert_int_equal(s.v.act & (ACT_NAK | ACT_ERR), ACT_NAK | ACT_ERR);
	}
}

static void
RX_FATAL_16_read_resources(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.r.max_dest_rd_atomic = 0;
	FEED(&s, READ(E, 4));
	assert_int_equal(s.v.fatal, 0x10);
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);
}

/** RX-FATAL-02, -18: unreachable where such packets are dropped. */
static void
RX_FATAL_02_RX_FATAL_18_unreachable_when_dropped(void **state)
{
	const uint8_t ops[] = { OP_RC_SEND_FIRST, OP_RC_WRITE_FIRST };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct bed s;

		bed_init(&s);
		s.r.knobs = RESP_KNOB_LEN_PAD_DROP | RESP_KNOB_RNR_FIRST;
		FEED(&s, .op = ops[i], .psn = E, .len = 1020, .va = MR_VA, .rkey = MR_RKEY,
			.dma_len = 2048);
		expect_silent(&s);
		assert_int_equal(s.v.fatal, 0);
		assert_int_equal(s.v.counter, RC_SILENT);
	}
}

/** RX-FATAL-13 is never produced, and no code but those of the responder is. */
static void
RX_FATAL_13_never(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_not_equal(rows[i].fatal, 13);
	for (uint32_t op = 0; op < 0x20; op++) {
		struct bed s;

		bed_init(&s);
		s.wqes = 0;
		FEED(&s, .op = (uint8_t)op, .psn = E, .len = 33, .va = 1, .rkey = BAD_KEY,
			.dma_len = 0xffffffff);
		assert_int_not_equal(s.v.fatal, 13);
		assert_int_not_equal(s.v.fatal, 9);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RX_FATAL_codes),
		cmocka_unit_test(RX_FATAL_16_read_resources),
		cmocka_unit_test(RX_FATAL_02_RX_FATAL_18_unreachable_when_dropped),
		cmocka_unit_test(RX_FATAL_13_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
