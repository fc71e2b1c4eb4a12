/* SPDX-License-Identifier: BSD-3-Clause */
/* READ and ATOMIC responses: data, order, opcodes, lengths, syndromes. */
#include "req.h"

#define expect_placed(s, pos_, off_)                                      \
	do {                                                              \
		assert_int_equal((s)->v.act &REQACT_PLACE, REQACT_PLACE); \
		assert_int_equal((s)->v.position, (pos_));                \
		assert_int_equal((s)->v.offset, (off_));                  \
	} while (0)

static void
started(struct bed *s, uint32_t len)
{
	bed_init(s);
	POST(s, READ(len));
	pump(s);
	assert_int_equal(s->n, 1);
}

static void
REQ_05_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 2048);
	FIRST(s, S);
	assert_int_equal(s->v.act, REQACT_PLACE | REQACT_TIMER);
	expect_placed(s, 0, 0);
	expect_rule(s, "REQ-05");
	expect_done(s, 0);
	LAST(s, S + 1, 1024);
	assert_int_equal(s->v.act, REQACT_PLACE | REQACT_COMPLETE | REQACT_TIMER);
	expect_placed(s, 0, 1024);
	expect_done(s, 1);
	assert_false(s->r.timing);
	assert_int_equal(s->r.reads, 0);

	started(s, 3000);
	FIRST(s, S);
	MIDDLE(s, S + 1);
	expect_placed(s, 0, 1024);
	LAST(s, S + 2, 952);
	expect_placed(s, 0, 2048);
	expect_done(s, 1);

	started(s, 0); /* nothing to place */
	ONLY(s, S, 0);
	assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_TIMER);
	expect_done(s, 1);
}

static void
REQ_06_atomic(void **state)
{
	static const uint8_t ops[] = { WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD };
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		bed_init(s);
		POST(s, SEND(1));
		POST(s, .opcode = ops[i], .len = 8);
		pump(s);
		FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = S + 1, .syn = ACK,
			.original = UINT64_C(0x0102030405060708));
		assert_int_equal(s->v.act, REQACT_ATOMIC | REQACT_COMPLETE | REQACT_TIMER);
		assert_int_equal(s->v.position, 1);
		assert_true(s->v.original == UINT64_C(0x0102030405060708));
		expect_rule(s, "REQ-06");
		expect_done(s, 2);
		assert_int_equal(s->r.reads, 0);
	}
}

static void
REQ_16_duplicate_responses(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	POST(s, FADD);
	POST(s, SEND(1));
	pump(s);
	ONLY(s, S, 64);
	FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = S + 1, .syn = ACK);
	expect_done(s, 2);
	ONLY(s, S, 64);
	expect_no_effect(s, "REQ-16");
	FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = S + 1, .syn = ACK, .original = 9);
	expect_no_effect(s, "REQ-16");
}

/* REQ-19: the buffer is gone; what is older keeps its success, the READ does not. */
static void
REQ_19_local_buffer_lost(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t kind = 0; kind < 3; kind++) { /* ONLY, FIRST, ATOMIC */
		bed_init(s);
		POST(s, SEND(1));
		POST(s, SEND(1));
		if (kind == 2)
			POST(s, FADD);
		else
			POST(s, READ(kind == 0 ? 64 : 2048));
		POST(s, SEND(1));
		pump(s);
		memset(&s->v, 0, sizeof(s->v));
		make_rsp(s, &(struct rsp){ .psn = S + 2,
				    .syn = ACK,
				    .op = kind == 2   ? OP_RC_ATOMIC_ACKNOWLEDGE
					  : kind == 0 ? OP_RC_READ_RESPONSE_ONLY
						      : OP_RC_READ_RESPONSE_FIRST,
				    .len = kind == 2   ? 0
					   : kind == 0 ? 64
						       : 1024 });
		requester_response(&s->r, &s->pkt, s->now, &s->v);
		assert_int_equal(s->v.completed, kind == 1 ? 2 : 3);
		requester_local_fault(&s->r, 2, WR_FAULT_PROT, &s->v);
		count_completions(s);
		expect_done(s, 2);
		expect_rule(s, "REQ-19");
		expect_error(s, 2, WC_LOC_PROT, 5);
		ack(s, S + 3, ACK);
		expect_no_effect(s, "REQ-CLS-B-08");
	}
}

/* REQ-CLS-B-02, RX-FATAL-12, RX-FATAL-28, RX-SYN-23: responses of the wrong opcode. */
static void
REQ_CLS_B_02_bad_opcode(void **state)
{
	enum { O_FIRST = 0x0d, O_MIDDLE = 0x0e, O_LAST = 0x0f, O_ONLY = 0x10, O_ATOMIC = 0x12 };
	static const struct {
		const char *name;
		uint8_t wr;
		uint32_t len, taken; /* responses received before */
		uint8_t op;
		uint8_t fatal;
	} rows[] = {
		{ "ONLY for a SEND", WR_SEND, 64, 0, O_ONLY, 12 },
		{ "FIRST for a SEND", WR_SEND, 64, 0, O_FIRST, 12 },
		{ "ATOMIC ACK for a SEND", WR_SEND, 64, 0, O_ATOMIC, 12 },
		{ "ATOMIC ACK for a WRITE", WR_RDMA_WRITE, 64, 0, O_ATOMIC, 12 },
		{ "ATOMIC ACK for a READ", WR_RDMA_READ, 64, 0, O_ATOMIC, 12 },
		{ "ONLY for an ATOMIC", WR_ATOMIC_FETCH_AND_ADD, 8, 0, O_ONLY, 12 },
		{ "MIDDLE, FIRST due", WR_RDMA_READ, 3000, 0, O_MIDDLE, 27 },
		{ "LAST, FIRST due", WR_RDMA_READ, 3000, 0, O_LAST, 27 },
		{ "ONLY, FIRST due", WR_RDMA_READ, 3000, 0, O_ONLY, 27 },
		{ "MIDDLE, ONLY due", WR_RDMA_READ, 64, 0, O_MIDDLE, 27 },
		{ "FIRST, ONLY due", WR_RDMA_READ, 64, 0, O_FIRST, 27 },
		{ "LAST, ONLY due", WR_RDMA_READ, 64, 0, O_LAST, 28 },
		{ "LAST, MIDDLE due", WR_RDMA_READ, 3000, 1, O_LAST, 27 },
		{ "FIRST, MIDDLE due", WR_RDMA_READ, 3000, 1, O_FIRST, 27 },
		{ "ONLY, MIDDLE due", WR_RDMA_READ, 3000, 1, O_ONLY, 27 },
		{ "MIDDLE, LAST due", WR_RDMA_READ, 3000, 2, O_MIDDLE, 27 },
		{ "FIRST, LAST due", WR_RDMA_READ, 3000, 2, O_FIRST, 27 },
		{ "ONLY, LAST due", WR_RDMA_READ, 3000, 2, O_ONLY, 27 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;
		uint32_t len = rows[i].op == O_FIRST || rows[i].op == O_MIDDLE ? 1024
			       : rows[i].op == O_ATOMIC                        ? 0
									       : 64;

		bed_init(s);
		POST(s, SEND(1));
		POST(s, .opcode = rows[i].wr, .len = rows[i].len);
		POST(s, SEND(1));
		pump(s);
		ack(s, S, ACK);
		if (rows[i].taken > 0)
			FIRST(s, S + 1);
		if (rows[i].taken > 1)
			MIDDLE(s, S + 2);
		read_rsp(s, rows[i].op, S + 1 + rows[i].taken, len);
		if (s->v.fatal != rows[i].fatal)
			fail_msg("%s: FATAL %u", rows[i].name, s->v.fatal);
		assert_int_equal(s->v.fault, 23);
		expect_error(s, 1, WC_BAD_RESP, rows[i].fatal);
	}
}

/* REQ-CLS-B-02: NAK and RNR syndromes in data. REQ-CLS-B-04: reserved ones. */
static void
REQ_CLS_B_02_syndromes(void **state)
{
	static const struct {
		uint8_t syn;
		bool reserved;
	} rows[] = { { 0x60, false }, { 0x61, false }, { 0x62, false }, { 0x63, false },
		{ 0x20, false }, { 0x2c, false }, { 0x45, true }, { 0x64, true }, { 0x65, true },
		{ 0x7f, true }, { 0x80, true }, { 0xff, true } };
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (uint32_t kind = 0; kind < 4; kind++) {
			static const uint8_t ops[] = { OP_RC_READ_RESPONSE_ONLY,
				OP_RC_READ_RESPONSE_FIRST, OP_RC_READ_RESPONSE_LAST,
				OP_RC_ATOMIC_ACKNOWLEDGE };
			uint32_t at = S, len = kind == 1 || kind == 2 ? 1024 : kind == 3 ? 0 : 64;

			bed_init(s);
			if (kind == 3)
				POST(s, FADD);
			else
				POST(s, READ(kind == 0 ? 64 : 2048));
			pump(s);
			if (kind == 2) {
				FIRST(s, S);
				at++;
			}
			FEED(s, .op = ops[kind], .psn = at, .syn = rows[i].syn, .len = len);
			assert_int_equal(s->v.fault, rows[i].reserved ? 22 : 23);
			expect_error(s, 0, WC_BAD_RESP, rows[i].reserved ? 25 : 27);
		}
	}
}

/* A MIDDLE has no AETH: its first payload byte is not a syndrome. */
static void
REQ_CLS_B_02_middle_has_no_syndrome(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 3000);
	FIRST(s, S);
	FEED(s, .op = OP_RC_READ_RESPONSE_MIDDLE, .psn = S + 1, .syn = 0x61, .len = 1024);
	expect_placed(s, 0, 1024);
}

/* REQ-CLS-B-03, RX-FATAL-26 */
static void
REQ_CLS_B_03_length(void **state)
{
	static const struct {
		uint32_t len, taken;
		uint8_t op;
		uint32_t got;
		uint8_t fatal;
	} rows[] = {
		{ 500, 0, OP_RC_READ_RESPONSE_ONLY, 400, 26 },
		{ 500, 0, OP_RC_READ_RESPONSE_ONLY, 501, 26 },
		{ 500, 0, OP_RC_READ_RESPONSE_ONLY, 0, 26 },
		{ 0, 0, OP_RC_READ_RESPONSE_ONLY, 4, 26 },
		{ 3000, 0, OP_RC_READ_RESPONSE_FIRST, 1020, 30 },
		{ 3000, 0, OP_RC_READ_RESPONSE_FIRST, 1028, 30 },
		{ 3000, 1, OP_RC_READ_RESPONSE_MIDDLE, 1000, 30 },
		{ 3000, 1, OP_RC_READ_RESPONSE_MIDDLE, 4096, 30 },
		{ 3000, 2, OP_RC_READ_RESPONSE_LAST, 951, 31 },
		{ 3000, 2, OP_RC_READ_RESPONSE_LAST, 1024, 31 },
		{ 3000, 2, OP_RC_READ_RESPONSE_LAST, 0, 31 },
		{ 1500, 1, OP_RC_READ_RESPONSE_LAST, 475, 31 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		started(s, rows[i].len);
		if (rows[i].taken > 0)
			FIRST(s, S);
		if (rows[i].taken > 1)
			MIDDLE(s, S + 1);
		read_rsp(s, rows[i].op, S + rows[i].taken, rows[i].got);
		assert_int_equal(s->v.act & REQACT_PLACE, 0);
		expect_rule(s, "REQ-CLS-B-03");
		expect_error(s, 0, WC_LOC_LEN, rows[i].fatal);
	}
}

/* RX-SYN-18 for responses: fatal by default, dropped with rx.len_pad_impact=drop. */
static void
RX_SYN_18_pad(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 3000);
	FEED(s, .op = OP_RC_READ_RESPONSE_FIRST, .psn = S, .syn = ACK, .len = 1024, .pad = 1);
	expect_error(s, 0, WC_LOC_LEN, 30);

	started(s, 3000);
	s->r.knobs = REQ_KNOB_LEN_PAD_DROP;
	FEED(s, .op = OP_RC_READ_RESPONSE_FIRST, .psn = S, .syn = ACK, .len = 1024, .pad = 1);
	expect_no_effect(s, "RX-SYN-18");
	assert_int_equal(s->v.fault, 18);
	FIRST(s, S);
	FEED(s, .op = OP_RC_READ_RESPONSE_MIDDLE, .psn = S + 1, .len = 1024, .pad = 3);
	expect_no_effect(s, "RX-SYN-18");
	MIDDLE(s, S + 1);
	FEED(s, .op = OP_RC_READ_RESPONSE_LAST, .psn = S + 2, .syn = ACK, .len = 952, .pad = 0);
	expect_done(s, 1);
}

/* RX-SYN-22 in data: dropped under req.bad_aeth=drop, even beyond a gap. */
static void
RX_SYN_22_reserved_dropped(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 3000);
	s->r.knobs = REQ_KNOB_BAD_AETH_DROP;
	FEED(s, .op = OP_RC_READ_RESPONSE_FIRST, .psn = S, .syn = 0x45, .len = 1024);
	expect_no_effect(s, "RX-SYN-22");
	FEED(s, .op = OP_RC_READ_RESPONSE_LAST, .psn = S + 2, .syn = 0x70, .len = 952);
	expect_no_effect(s, "RX-SYN-22");
	assert_int_equal(s->v.fault, 22);
	FEED(s, .op = OP_RC_READ_RESPONSE_FIRST, .psn = S, .syn = 0x61, .len = 1024);
	expect_error(s, 0, WC_BAD_RESP, 27);
}

/* REQ-CLS-B-06, AMB-17 */
static void
REQ_CLS_B_06_ack_for_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 64);
	ack(s, S, ACK);
	expect_no_effect(s, "REQ-CLS-B-06");
	expire(s);
	pump(s);
	ONLY(s, S, 64);
	expect_done(s, 1);

	bed_init(s); /* it acknowledges what precedes the READ */
	POST(s, SEND(1));
	POST(s, FADD);
	pump(s);
	ack(s, S + 1, ACK);
	assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_TIMER);
	expect_done(s, 1);
	ack(s, S + 1, ACK);
	expect_no_effect(s, "REQ-CLS-B-06");

	started(s, 64);
	s->r.knobs = REQ_KNOB_ACK_FOR_READ_FATAL;
	ack(s, S, ACK);
	expect_error(s, 0, WC_BAD_RESP, 12);
}

/* REQ-16: a ghost behind the last READ, where the next request will stand an older READ stands. */
static void
REQ_16_nothing_is_due(void **state)
{
	struct bed bed, *s = &bed;
	uint32_t p = S;

	(void)state;
	bed_init(s);
	for (uint32_t i = 0; i < SLOTS; i++, p += 3) {
		POST(s, READ(3 * PMTU));
		pump(s);
		FIRST(s, p);
		MIDDLE(s, p + 1);
		LAST(s, p + 2, PMTU);
	}
	expect_done(s, SLOTS);
	MIDDLE(s, p);
	expect_no_effect(s, "REQ-16");
	ONLY(s, p, PMTU);
	expect_no_effect(s, "REQ-16");
}

/* TMR-02: what leaves later does not put a timer off that runs for what left before. */
static void
TMR_02_departed(void **state)
{
	struct bed bed, *s = &bed;
	ns_t first;

	(void)state;
	bed_init(s);
	post_sends(s, 1);
	pump(s);
	first = s->r.deadline;
	requester_departed(&s->r, s->now, s->now + 5000);
	assert_in_range(s->r.deadline, first + 4999, first + 5000);
	first = s->r.deadline;
	requester_departed(&s->r, s->now + 6000, s->now + 9000);
	assert_int_equal(s->r.deadline, first);
}

/* TMR-05, TMR-06: of what is left in flight nothing has asked for a response. */
static void
TMR_06_nothing_asks(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(64));
	POSTF(s, 0, SEND(64));
	POSTF(s, 0, SEND(64));
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(requester_next(&s->r, s->now, &s->out[i]), REQ_SEND);
	assert_int_equal(s->out[1].flags & ACKREQ, 0);
	assert_true(s->r.timing);
	ack(s, S, ACK);
	assert_false(s->r.timing);
}

RUN(T(REQ_05_read), T(REQ_06_atomic), T(REQ_16_duplicate_responses), T(REQ_19_local_buffer_lost),
	T(REQ_CLS_B_02_bad_opcode), T(REQ_CLS_B_02_syndromes),
	T(REQ_CLS_B_02_middle_has_no_syndrome), T(REQ_CLS_B_03_length), T(RX_SYN_18_pad),
	T(RX_SYN_22_reserved_dropped), T(REQ_CLS_B_06_ack_for_read), T(REQ_16_nothing_is_due),
	T(TMR_02_departed), T(TMR_06_nothing_asks))
