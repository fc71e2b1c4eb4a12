/* SPDX-License-Identifier: BSD-3-Clause */
/* ATOMIC WRITE and FLUSH (annex A19 of the base specification, release 1.5): knob ops.placement. */
#include "pkt.h"

#define WORD_AS(p, at, key, bytes, dma)                                                  \
	.op = OP_RC_ATOMIC_WRITE, .psn = (p), .len = (bytes), .va = (at), .rkey = (key), \
	.dma_len = (dma)
#define WORD(p) WORD_AS(p, MR_VA + 16, MR_RKEY, 8, 8)

static void
bed_on(struct bed *s)
{
	bed_init(s);
	s->r.knobs = RESP_KNOB_PLACEMENT;
}

/* RESP-07: one PSN, one message, a slot, and a READ response without data. */
static void
RESP_07_stored_and_answered(void **state UNUSED)
{
	struct bed bed, *s = &bed;

	bed_on(s);
	FEED(s, WORD(E));
	assert_int_equal(s->v.act, ACT_READ | ACT_STORE);
	assert_int_equal(s->v.first.v, E);
	assert_int_equal(s->v.len, 0);
	assert_true(s->v.va == MR_VA + 16);
	assert_int_equal(s->v.counter, RC_ATOMIC_WRITE);
	assert_int_equal(s->q.access, REMOTE_WRITE);
	expect_state(s, E + 1, 1);
	assert_int_equal(s->r.unfinished, 1);
	expect_rule(s, "RESP-07");
}

/* RESP-DUP-06, RESP-DUP-07: the same request is answered again, no other is. */
static void
RESP_DUP_06_answered_again(void **state UNUSED)
{
	struct bed bed, *s = &bed;

	bed_on(s);
	FEED(s, WORD(E));
	FEED(s, WORD(E));
	assert_int_equal(s->v.act, ACT_READ | ACT_DUPLICATE);
	assert_int_equal(s->v.first.v, E);
	assert_int_equal(s->v.len, 0);
	assert_memory_equal(&s->r, &s->before, sizeof(s->r));
	FEED(s, WORD_AS(E, MR_VA + 16, BAD_KEY, 8, 8));
	expect_silent(s);
	expect_rule(s, "RESP-DUP-07");
	FEED(s, WORD_AS(E, MR_VA, MR_RKEY, 8, 8));
	expect_silent(s);
	FEED(s, FETCH_ADD(E));
	expect_silent(s);
	FEED(s, READ(E, 8));
	expect_silent(s);
}

/* RESP-NAK-INV-01, RX-PREC-04: without the knob it is a reserved opcode, wherever it stands. */
static void
RESP_NAK_INV_01_off(void **state UNUSED)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	FEED(s, WORD(E));
	expect_fatal_event(s, NAK_INV, EV_QP_REQ_ERR);
	assert_int_equal(s->v.fault, 17); /* RX-SYN-17 */
	assert_int_equal(s->v.fatal, 4);
	bed_init(s);
	FEED(s, SEND_FIRST(E));
	FEED(s, WORD(E + 1));
	assert_int_equal(s->v.fatal, 4); /* not the sequence's code */
	bed_init(s);
	FEED(s, SEND_ONLY(E, 8));
	FEED(s, WORD(E));
	expect_silent(s);
	expect_rule(s, "RX-PREC-04");
}

/* 8 bytes at a multiple of 8, with the rights of a WRITE and the room of a READ. */
static void
RESP_NAK_INV_what_is_refused(void **state UNUSED)
{
	static const struct {
		struct spec p;
		uint8_t access, mr_access, unfinished, nak;
		const char *rule;
	} rows[] = {
		{ { WORD(E) }, ALL_ACCESS & ~REMOTE_WRITE, ALL_ACCESS, 0, NAK_INV,
			"RESP-NAK-INV-02" },
		{ { WORD(E) }, ALL_ACCESS, ALL_ACCESS, 4, NAK_INV, "RESP-NAK-INV-10" },
		{ { WORD(E) }, REMOTE_WRITE, REMOTE_WRITE, 3, 0, "RESP-07" },
		{ { WORD_AS(E, MR_VA + 4, MR_RKEY, 8, 8) }, ALL_ACCESS, ALL_ACCESS, 0, NAK_INV,
			"RESP-NAK-INV-09" },
		{ { WORD_AS(E, MR_VA + 16, MR_RKEY, 4, 8) }, ALL_ACCESS, ALL_ACCESS, 0, NAK_INV,
			"RESP-NAK-INV-08" },
		{ { WORD_AS(E, MR_VA + 16, MR_RKEY, 16, 8) }, ALL_ACCESS, ALL_ACCESS, 0, NAK_INV,
			"RESP-NAK-INV-08" },
		{ { WORD_AS(E, MR_VA + 16, MR_RKEY, 8, 16) }, ALL_ACCESS, ALL_ACCESS, 0, NAK_INV,
			"RESP-NAK-INV-13" },
		{ { WORD_AS(E, MR_VA + 16, MR_RKEY, 8, 0) }, ALL_ACCESS, ALL_ACCESS, 0, NAK_INV,
			"RESP-NAK-INV-13" },
		{ { WORD_AS(E, MR_VA + 16, BAD_KEY, 8, 8) }, ALL_ACCESS, ALL_ACCESS, 0, NAK_RAE,
			"RESP-NAK-RAE-01" },
		{ { WORD(E) }, ALL_ACCESS, REMOTE_READ, 0, NAK_RAE, "RESP-NAK-RAE-01" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_on(s);
		s->r.access = rows[i].access;
		s->mr_access = rows[i].mr_access;
		s->r.unfinished = rows[i].unfinished;
		feed_spec(s, rows[i].p);
		expect_rule(s, rows[i].rule);
		assert_int_equal((s->v.act & ACT_NAK) != 0, rows[i].nak != 0);
		if (rows[i].nak != 0)
			assert_int_equal(s->v.syndrome, rows[i].nak);
	}
}

#define FLUSH_AS(p, kind, at, key, dma) \
	.op = OP_RC_FLUSH, .psn = (p), .feth = (kind), .va = (at), .rkey = (key), .dma_len = (dma)
#define FLUSH(p, kind) FLUSH_AS(p, kind, MR_VA + 16, MR_RKEY, 100)

static void
bed_flush(struct bed *s)
{
	bed_on(s);
	s->r.access = s->mr_access = FLUSH_ALL;
}

/* RESP-07: as an ATOMIC WRITE, with the rights of its types; a whole region has no range. */
static void
RESP_07_flushed_and_answered(void **state UNUSED)
{
	static const struct {
		uint32_t feth;
		uint16_t access;
		uint64_t va;
		uint32_t dma_len, len;
		bool whole;
	} rows[] = {
		{ 0x01, 0x100, MR_VA, 100, 100, false },
		{ 0x02, 0x200, MR_VA, MR_LEN, MR_LEN, false },
		{ 0x03, 0x300, MR_VA + MR_LEN, 0, 0, false },
		{ 0x11, 0x100, 1, 0xffffffff, 0, true }, { 0x13, 0x300, MR_VA, 0, 0, true },
		{ 0xffffffc1, 0x100, MR_VA, 8, 8, false }, /* reserved bits mean nothing */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_flush(s);
		make_pkt(s, &(struct spec){ FLUSH_AS(
				    E, rows[i].feth, rows[i].va, MR_RKEY, rows[i].dma_len) });
		responder_query(&s->r, &s->pkt, &s->q);
		assert_true(s->q.key);
		assert_int_equal(s->q.whole, rows[i].whole);
		assert_int_equal(s->q.access, rows[i].access);
		assert_int_equal(s->q.len, rows[i].len);
		assert_int_equal(s->q.rkey, MR_RKEY);
		s->f.key_ok = true;
		responder_receive(&s->r, &s->pkt, &s->f, s->now, &s->v);
		assert_int_equal(s->v.act, ACT_READ | ACT_FENCE);
		assert_int_equal(s->v.first.v, E);
		assert_int_equal(s->v.len, 0);
		assert_int_equal(s->v.counter, RC_FLUSH);
		expect_state(s, E + 1, 1);
		assert_int_equal(s->r.unfinished, 1);
		expect_rule(s, "RESP-07");
	}
}

static void
RESP_DUP_06_flush_answered_again(void **state UNUSED)
{
	struct bed bed, *s = &bed;

	bed_flush(s);
	FEED(s, FLUSH(E, 1));
	FEED(s, FLUSH(E, 1));
	assert_int_equal(s->v.act, ACT_READ | ACT_DUPLICATE);
	assert_int_equal(s->v.first.v, E);
	assert_int_equal(s->v.len, 0);
	FEED(s, FLUSH(E, 2));
	expect_silent(s);
	expect_rule(s, "RESP-DUP-07");
	FEED(s, FLUSH_AS(E, 1, MR_VA + 16, MR_RKEY, 99));
	expect_silent(s);
	FEED(s, WORD_AS(E, MR_VA + 16, MR_RKEY, 8, 100));
	expect_silent(s);
	s->r.knobs = 0;
	FEED(s, FLUSH(E, 1));
	expect_silent(s);
	expect_rule(s, "RX-PREC-04");
}

static void
RESP_NAK_INV_what_is_refused_of_a_flush(void **state UNUSED)
{
	static const struct {
		struct spec p;
		uint16_t access, mr_access;
		uint8_t unfinished, knobs_off, nak;
		const char *rule;
	} rows[] = {
		{ { FLUSH(E, 1) }, FLUSH_ALL, FLUSH_ALL, 0, 1, NAK_INV, "RESP-NAK-INV-01" },
		{ { FLUSH(E, 0) }, FLUSH_ALL, FLUSH_ALL, 0, 0, NAK_INV, "RESP-NAK-INV-01" },
		{ { FLUSH(E, 4) }, FLUSH_ALL, FLUSH_ALL, 0, 0, NAK_INV, "RESP-NAK-INV-01" },
		{ { FLUSH(E, 9) }, FLUSH_ALL, FLUSH_ALL, 0, 0, NAK_INV, "RESP-NAK-INV-01" },
		{ { FLUSH(E, 0x21) }, FLUSH_ALL, FLUSH_ALL, 0, 0, NAK_INV, "RESP-NAK-INV-01" },
		{ { FLUSH(E, 1) }, ALL_ACCESS, FLUSH_ALL, 0, 0, NAK_INV, "RESP-NAK-INV-02" },
		{ { FLUSH(E, 3) }, 0x100, FLUSH_ALL, 0, 0, NAK_INV, "RESP-NAK-INV-02" },
		{ { FLUSH(E, 2) }, 0x200, FLUSH_ALL, 0, 0, 0, "RESP-07" },
		{ { .op = OP_RC_FLUSH,
			  .psn = E,
			  .feth = 1,
			  .va = MR_VA,
			  .rkey = MR_RKEY,
			  .dma_len = 4,
			  .len = 4 },
			FLUSH_ALL, FLUSH_ALL, 0, 0, NAK_INV, "RESP-NAK-INV-08" },
		{ { FLUSH(E, 1) }, FLUSH_ALL, FLUSH_ALL, 4, 0, NAK_INV, "RESP-NAK-INV-10" },
		{ { FLUSH(E, 1) }, FLUSH_ALL, FLUSH_ALL, 3, 0, 0, "RESP-07" },
		{ { FLUSH_AS(E, 1, MR_VA, MR_RKEY, 0x80000001) }, FLUSH_ALL, FLUSH_ALL, 0, 0,
			NAK_INV, "RESP-NAK-INV-11" },
		{ { FLUSH(E, 1) }, FLUSH_ALL, ALL_ACCESS, 0, 0, NAK_RAE, "RESP-NAK-RAE-01" },
		{ { FLUSH(E, 3) }, FLUSH_ALL, 0x100, 0, 0, NAK_RAE, "RESP-NAK-RAE-01" },
		{ { FLUSH_AS(E, 1, MR_VA, BAD_KEY, 0) }, FLUSH_ALL, FLUSH_ALL, 0, 0, NAK_RAE,
			"RESP-NAK-RAE-01" },
		{ { FLUSH_AS(E, 1, MR_VA + 1, MR_RKEY, MR_LEN) }, FLUSH_ALL, FLUSH_ALL, 0, 0,
			NAK_RAE, "RESP-NAK-RAE-01" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_flush(s);
		s->r.knobs = rows[i].knobs_off != 0 ? 0 : RESP_KNOB_PLACEMENT;
		s->r.access = rows[i].access;
		s->mr_access = rows[i].mr_access;
		s->r.unfinished = rows[i].unfinished;
		feed_spec(s, rows[i].p);
		expect_rule(s, rows[i].rule);
		assert_int_equal((s->v.act & ACT_NAK) != 0, rows[i].nak != 0);
		if (rows[i].nak != 0)
			assert_int_equal(s->v.syndrome, rows[i].nak);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_07_stored_and_answered),
		cmocka_unit_test(RESP_DUP_06_answered_again),
		cmocka_unit_test(RESP_NAK_INV_01_off),
		cmocka_unit_test(RESP_NAK_INV_what_is_refused),
		cmocka_unit_test(RESP_07_flushed_and_answered),
		cmocka_unit_test(RESP_DUP_06_flush_answered_again),
		cmocka_unit_test(RESP_NAK_INV_what_is_refused_of_a_flush),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
