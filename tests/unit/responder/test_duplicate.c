/* SPDX-License-Identifier: BSD-3-Clause */
/* Duplicates: RESP-DUP-01..13, RX-PREC-04. */
#include "pkt.h"

/** Nothing but the acts given, marked as duplicate, with the 64 bytes of state as they were. */
static void
expect_dup(struct bed *s, uint32_t act)
{
	assert_int_equal(s->v.act, ACT_DUPLICATE | act);
	assert_int_equal(s->v.counter, RC_DUPLICATE);
	assert_memory_equal(&s->r, &s->before, sizeof(s->r));
	assert_true(s->v.rule != RULE_NONE);
}

static void
four_sends(struct bed *s)
{
	bed_init(s);
	for (uint32_t i = 0; i < 4; i++)
		FEED(s, SEND_ONLY(E + i, 8));
	s->wqes = 4;
}

static void
RESP_DUP_01_send_RESP_DUP_12_ghost_RESP_DUP_13_without_ackreq(void **state)
{
	struct bed s;

	(void)state;
	four_sends(&s);
	FEED(&s, SEND_ONLY(E + 1, 9));
	expect_dup(&s, ACT_ACK);
	expect_ack(&s, E + 3, 4);
	assert_int_equal(s.wqes, 4);
	expect_rule(&s, "RESP-DUP-01");
	FEED(&s, .op = OP_RC_SEND_ONLY, .psn = E, .len = 8);
	expect_dup(&s, ACT_ACK);
	for (int i = 0; i < 100; i++) {
		FEED(&s, .op = OP_RC_SEND_ONLY, .psn = E, .len = 8);
		expect_ack(&s, E + 3, 4);
	}
}

static void
RESP_DUP_02_write(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	for (uint32_t i = 0; i < 4; i++)
		FEED(&s, WRITE_ONLY(E + i, 8));
	FEED(&s, WRITE_ONLY(E, 8));
	expect_dup(&s, ACT_ACK);
	expect_ack(&s, E + 3, 4);
	expect_rule(&s, "RESP-DUP-02");
	/* Its key is not looked at any more. */
	s.mr_gone = true;
	FEED(&s, WRITE_ONLY(E, 8));
	expect_dup(&s, ACT_ACK);
}

static void
RESP_DUP_03_read(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E, 2048));
	responder_answered(&s.r);
	FEED(&s, SEND_ONLY(E + 2, 4));
	FEED(&s, READ(E, 2048));
	expect_dup(&s, ACT_READ);
	assert_true(s.q.key);
	assert_int_equal(s.q.access, REMOTE_READ);
	assert_int_equal(s.v.first.v, E);
	assert_int_equal(s.v.len, 2048);
	assert_true(s.v.va == MR_VA);
	assert_int_equal(s.v.rkey, MR_RKEY);
	assert_int_equal(s.v.reply_msn, 2);
	expect_rule(&s, "RESP-DUP-03");
	expect_state(&s, E + 3, 2);
	assert_int_equal(s.r.unfinished, 0);
	/* RESP-08: of one without data no key is checked, now or later. */
	for (uint32_t i = 0; i < 2; i++)
		FEED(&s, .op = OP_RC_READ_REQUEST, .psn = E + 3, .va = MR_VA, .rkey = BAD_KEY);
	expect_dup(&s, ACT_READ);
}

static void
RESP_DUP_04_part_of_a_read(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E, 3072));
	FEED(&s, .op = OP_RC_READ_REQUEST, .psn = E + 1, .va = MR_VA + 1024, .rkey = MR_RKEY,
		.dma_len = 2048);
	expect_dup(&s, ACT_READ);
	assert_int_equal(s.v.first.v, E + 1);
	assert_true(s.v.va == MR_VA + 1024);
	assert_int_equal(s.v.len, 2048);
	expect_rule(&s, "RESP-DUP-04");
	/* Only the last response, across the PSN wrap too. */
	responder_reset(&s.r, psn(0xffffff));
	FEED(&s, READ(0xffffff, 2500));
	FEED(&s, .op = OP_RC_READ_REQUEST, .psn = 1, .va = MR_VA + 2048, .rkey = MR_RKEY,
		.dma_len = 452);
	expect_dup(&s, ACT_READ);
	assert_int_equal(s.v.first.v, 1);
}

static void
RESP_DUP_05_outside_the_original(void **state)
{
	const struct spec rows[] = {
		{ .psn = E, .va = MR_VA, .rkey = MR_RKEY, .dma_len = 4096 },
		{ .psn = E, .va = MR_VA, .rkey = MR_RKEY, .dma_len = 3073 },
		{ .psn = E, .va = MR_VA, .rkey = MR_RKEY + 1, .dma_len = 3072 },
		{ .psn = E, .va = MR_VA - 1024, .rkey = MR_RKEY, .dma_len = 3072 },
		{ .psn = E, .va = MR_VA + 1024, .rkey = MR_RKEY, .dma_len = 2048 },
		{ .psn = E + 1, .va = MR_VA, .rkey = MR_RKEY, .dma_len = 2048 },
		{ .psn = E + 1, .va = MR_VA + 1024, .rkey = MR_RKEY, .dma_len = 2049 },
		{ .psn = E + 1, .va = MR_VA + 1024, .rkey = MR_RKEY, .dma_len = 0 },
		{ .psn = E + 2, .va = MR_VA + 2048, .rkey = MR_RKEY, .dma_len = 0xffffffff },
		{ .psn = E - 1, .va = MR_VA, .rkey = MR_RKEY, .dma_len = 1024 },
		{ .psn = E + 3, .va = MR_VA, .rkey = MR_RKEY, .dma_len = 1024 }, /* a SEND's */
		{ .psn = E, .va = MR_VA, .rkey = MR_RKEY, .dma_len = 3072, .len = 4 },
		{ .psn = E, .va = MR_VA, .rkey = MR_RKEY, .dma_len = 3072, .pad = 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct spec p = rows[i];
		struct bed s;

		bed_init(&s);
		s.r.msn = 0;
		FEED(&s, READ(E, 3072));
		FEED(&s, SEND_ONLY(E + 3, 4));
		p.op = OP_RC_READ_REQUEST;
		feed_spec(&s, p);
		expect_dup(&s, ACT_DROP);
		expect_rule(&s, "RESP-DUP-05");
	}
}

static void
RESP_DUP_06_atomic_replayed(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, FETCH_ADD(E));
	s.v.saved->original = 5; /* the caller stores what the memory held */
	FEED(&s, FETCH_ADD(E + 1));
	s.v.saved->original = 8;
	FEED(&s, FETCH_ADD(E));
	expect_dup(&s, ACT_REPLAY);
	assert_int_equal(s.v.first.v, E);
	assert_ptr_equal(s.v.saved, &s.saved[0]);
	assert_true(s.v.saved->original == 5);
	assert_int_equal(s.v.reply_msn, 2);
	expect_rule(&s, "RESP-DUP-06");
	expect_state(&s, E + 2, 2);
	/* The key is not asked for again: memory is not touched. */
	s.mr_gone = true;
	FEED(&s, FETCH_ADD(E));
	expect_dup(&s, ACT_REPLAY);
}

static void
RESP_DUP_07_unknown_atomic(void **state)
{
	const struct spec rows[] = {
		{ FETCH_ADD(E + 2) }, /* a SEND's PSN */
		{ .op = OP_RC_COMPARE_SWAP, .psn = E, .va = MR_VA, .rkey = MR_RKEY },
		{ .op = OP_RC_FETCH_ADD, .psn = E, .va = MR_VA + 8, .rkey = MR_RKEY },
		{ .op = OP_RC_FETCH_ADD, .psn = E, .va = MR_VA, .rkey = BAD_KEY },
		{ FETCH_ADD(E + 1) }, /* a READ's PSN */
		{ FETCH_ADD(E - 1) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		FEED(&s, FETCH_ADD(E));
		FEED(&s, READ(E + 1, 8));
		FEED(&s, SEND_ONLY(E + 2, 4));
		feed_spec(&s, rows[i]);
		expect_dup(&s, ACT_DROP);
		expect_rule(&s, "RESP-DUP-07");
	}
}

/* FLOW-07: what is posted is told unless an answer that leaves for certain has told it. */
static void
FLOW_07_credit_after_a_duplicate(void **state)
{
	const struct {
		struct spec p;
		bool tells;
	} rows[] = {
		{ { SEND_ONLY(E + 2, 4) }, true },
		{ { FETCH_ADD(E) }, false }, /* the answer may be on its way, as it was */
		{ { READ(E + 1, 8) }, false },
		{ { FETCH_ADD(E - 1) }, false }, /* dropped */
		{ { READ(E - 1, 8) }, false },
		{ { .op = 0x1f, .psn = E + 2 }, false },
	};
	struct responder_verdict v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		s.r.knobs = RESP_KNOB_CREDITS;
		s.wqes = 1;
		FEED(&s, FETCH_ADD(E));
		FEED(&s, READ(E + 1, 8));
		FEED(&s, SEND_ONLY(E + 2, 4));
		assert_int_equal(s.v.syndrome, 0);
		s.wqes = 3;
		feed_spec(&s, rows[i].p);
		assert_int_equal(responder_posted(&s.r, 3, &v), !rows[i].tells);
		assert_true(rows[i].tells || v.syndrome == 3);
		assert_false(responder_posted(&s.r, 4, &v));
	}
}

/* ... and none of a duplicate that is dropped is told. */
static void
FLOW_07_no_credit_in_a_dropped_one(void **state)
{
	struct responder_verdict v;
	struct bed s;

	(void)state;
	bed_init(&s);
	s.r.knobs = RESP_KNOB_CREDITS;
	FEED(&s, FETCH_ADD(E));
	s.wqes = 0;
	FEED(&s, READ(E, 8));
	expect_dup(&s, ACT_DROP);
	assert_false(responder_posted(&s.r, 1, &v));
	FEED(&s, FETCH_ADD(E));
	assert_int_equal(s.v.syndrome, 0);
	assert_true(responder_posted(&s.r, 1, &v));
}

static void
RESP_DUP_08_faults_in_duplicates(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E, 1024));
	FEED(&s, SEND_ONLY(E + 1, 4));
	s.mr_gone = true;
	FEED(&s, READ(E, 1024));
	expect_dup(&s, ACT_DROP);
	expect_rule(&s, "RESP-DUP-08");
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E + 1, .len = 77, .pad = 3);
	expect_dup(&s, ACT_ACK);
	s.wqe_bytes = 1;
	FEED(&s, SEND_ONLY(E + 1, 1028));
	expect_dup(&s, ACT_ACK);
	FEED(&s, .op = OP_RC_FETCH_ADD, .psn = E + 1, .va = MR_VA + 3, .rkey = BAD_KEY);
	expect_dup(&s, ACT_DROP);
}

static void
RESP_DUP_09_state_untouched(void **state)
{
	const struct spec rows[] = {
		{ SEND_ONLY(E + 1, 4) },
		{ WRITE_ONLY_IMM(E + 1, BAD_KEY) },
		{ READ(E + 2, 8) },
		{ FETCH_ADD(E + 3) },
		{ .op = OP_RC_SEND_FIRST, .psn = E + 4, .len = PMTU },
	};
	const uint32_t acts[] = { ACT_ACK, ACT_ACK, ACT_READ, ACT_REPLAY, ACT_ACK };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed s;

		bed_init(&s);
		s.wqes = 3;
		FEED(&s, SEND_ONLY(E, 4));
		FEED(&s, SEND_ONLY(E + 1, 4));
		FEED(&s, READ(E + 2, 8));
		FEED(&s, FETCH_ADD(E + 3));
		FEED(&s, SEND_FIRST(E + 4));
		assert_int_equal(s.wqes, 0);
		FEED(&s, SEND_ONLY(E + 9, 4)); /* latch it */
		expect_nak(&s, NAK_SEQ, E + 5, 4);
		feed_spec(&s, rows[i]);
		expect_dup(&s, acts[i]);
		assert_true(s.r.latched && s.r.wqe_active);
		FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 5, .len = 4);
		assert_int_equal(s.v.byte_len, 1028);
	}
}

/** The ACK names ePSN - 1; the pipeline sends it behind the READ's responses. */
static void
RESP_DUP_10_ack_names_the_newest_request(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E, 4));
	FEED(&s, READ(E + 1, 2048));
	assert_int_equal(s.r.unfinished, 1);
	FEED(&s, SEND_ONLY(E, 4));
	expect_ack(&s, E + 2, 2);
}

static void
RESP_DUP_11_depth(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	for (uint32_t i = 0; i < 6; i++) {
		FEED(&s, FETCH_ADD(E + i));
		assert_int_equal(s.v.act, ACT_ATOMIC);
		s.v.saved->original = 100 + i;
		responder_answered(&s.r);
	}
	for (uint32_t i = 0; i < 5; i++)
		FEED(&s, WRITE_ONLY(E + 6 + i, 4));
	for (uint32_t i = 2; i < 6; i++) {
		FEED(&s, FETCH_ADD(E + i));
		expect_dup(&s, ACT_REPLAY);
		assert_true(s.v.saved->original == 100 + i);
	}
	FEED(&s, FETCH_ADD(E + 1)); /* older than all slots */
	expect_dup(&s, ACT_DROP);
}

/** RESP-DUP-03, RESP-DUP-06: with fewer at a time, or none, what was done is not forgotten. */
static void
RESP_DUP_06_fewer_at_a_time(void **state)
{
	struct bed s;

	(void)state;
	for (uint8_t now = 0; now < 4; now++) {
		bed_init(&s);
		for (uint32_t i = 0; i < 4; i++) {
			if (i % 2 == 0)
				FEED(&s, FETCH_ADD(E + i));
			else
				FEED(&s, READ(E + i, 8));
			s.v.saved->original = 100 + i;
			responder_answered(&s.r);
		}
		s.r.max_dest_rd_atomic = now;
		for (uint32_t i = 0; i < 4; i++) {
			if (i % 2 == 0)
				FEED(&s, FETCH_ADD(E + i));
			else
				FEED(&s, READ(E + i, 8));
			expect_dup(&s, i % 2 == 0 ? ACT_REPLAY : ACT_READ);
			assert_true(s.v.saved->original == 100 + i);
		}
		FEED(&s, FETCH_ADD(E + 4)); /* RESP-NAK-INV-10 */
		assert_int_equal((s.v.act & ACT_ATOMIC) != 0, now != 0);
	}
}

/** A PSN used again after 2^24 packets finds its own slot, not the old one. */
static void
RESP_DUP_11_newest_slot_first(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, FETCH_ADD(E));
	s.v.saved->original = 1;
	responder_answered(&s.r);
	s.r.epsn = psn(E); /* all the way round */
	FEED(&s, FETCH_ADD(E));
	s.v.saved->original = 2;
	FEED(&s, FETCH_ADD(E));
	expect_dup(&s, ACT_REPLAY);
	assert_true(s.v.saved->original == 2);
}

static void
RX_PREC_04_reserved_opcode(void **state)
{
	(void)state;
	for (uint32_t op = 0; op < 0x20; op++) {
		struct bed s;

		if (wire_opcodes[op].name != NULL)
			continue;
		four_sends(&s);
		FEED(&s, .op = (uint8_t)op, .psn = E + 3);
		expect_dup(&s, ACT_DROP);
		expect_rule(&s, "RX-PREC-04");
		FEED(&s, .op = (uint8_t)op, .psn = E + 5);
		expect_nak(&s, NAK_SEQ, E + 4, 4);
	}
}

static void
RESP_RNR_11_duplicates_dropped_when_short(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, READ(E, 8));
	FEED(&s, FETCH_ADD(E + 1));
	s.f.short_of_resources = true;
	FEED(&s, READ(E, 8));
	expect_dup(&s, ACT_DROP);
	FEED(&s, FETCH_ADD(E + 1));
	expect_dup(&s, ACT_DROP);
	s.f.short_of_resources = false;
	s.f.exec_fault = true; /* RESP-DUP-08: nor a NAK when the unit fails */
	FEED(&s, FETCH_ADD(E + 1));
	expect_dup(&s, ACT_DROP);
	s.f.exec_fault = false;
	s.r.max_dest_rd_atomic = 0; /* and none can be saved */
	s.r.saved = NULL;
	FEED(&s, READ(E, 8));
	expect_dup(&s, ACT_DROP);
}

/* QP-05: the connection before is forgotten, and what this one repeats is found. */
static void
QP_05_forgets_what_was_saved(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	for (uint32_t i = 0; i < 3; i++)
		FEED(&s, READ(E + i, 4));
	responder_reset(&s.r, psn(E));
	for (uint32_t i = 0; i < 3; i++)
		FEED(&s, SEND_ONLY(E + i, 4));
	for (uint32_t i = 0; i < 3; i++) {
		FEED(&s, READ(E + i, 4));
		expect_silent(&s);
	}

	for (uint32_t i = 3; i < 6; i++)
		FEED(&s, READ(E + i, 4));
	s.r.saved_n = 2; /* fewer than there were */
	responder_reset(&s.r, psn(E));
	for (uint32_t i = 0; i < 2; i++) {
		FEED(&s, READ(E + i, 4));
		assert_int_equal(s.v.act, ACT_READ);
		FEED(&s, READ(E + i, 4));
		expect_dup(&s, ACT_READ);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_DUP_01_send_RESP_DUP_12_ghost_RESP_DUP_13_without_ackreq),
		cmocka_unit_test(RESP_DUP_02_write),
		cmocka_unit_test(RESP_DUP_03_read),
		cmocka_unit_test(RESP_DUP_04_part_of_a_read),
		cmocka_unit_test(RESP_DUP_05_outside_the_original),
		cmocka_unit_test(RESP_DUP_06_atomic_replayed),
		cmocka_unit_test(RESP_DUP_07_unknown_atomic),
		cmocka_unit_test(FLOW_07_credit_after_a_duplicate),
		cmocka_unit_test(FLOW_07_no_credit_in_a_dropped_one),
		cmocka_unit_test(RESP_DUP_08_faults_in_duplicates),
		cmocka_unit_test(RESP_DUP_09_state_untouched),
		cmocka_unit_test(RESP_DUP_10_ack_names_the_newest_request),
		cmocka_unit_test(RESP_DUP_11_depth),
		cmocka_unit_test(RESP_DUP_06_fewer_at_a_time),
		cmocka_unit_test(RESP_DUP_11_newest_slot_first),
		cmocka_unit_test(QP_05_forgets_what_was_saved),
		cmocka_unit_test(RX_PREC_04_reserved_opcode),
		cmocka_unit_test(RESP_RNR_11_duplicates_dropped_when_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
