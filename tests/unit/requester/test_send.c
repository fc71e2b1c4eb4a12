/* SPDX-License-Identifier: BSD-3-Clause */
/* Segmentation, opcodes, PSNs, flags: what each packet of each work request looks like. */
#include "req.h"

#define expect_packet(p, op_, psn_, len_, pad_)               \
	do {                                                  \
		assert_int_equal((p).opcode, (op_));          \
		assert_int_equal((p).psn.v, (psn_)&0xffffff); \
		assert_int_equal((p).len, (len_));            \
		assert_int_equal((p).pad, (pad_));            \
	} while (0)

/* REQ-01, WIRE-08 */
static void
REQ_01_segmentation(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(2500));
	POST(s, WRITE(2500));
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 6);
	expect_packet(s->out[0], 0x00, S, 1024, 0);
	expect_packet(s->out[1], 0x01, S + 1, 1024, 0);
	expect_packet(s->out[2], 0x02, S + 2, 452, 0);
	expect_packet(s->out[3], 0x06, S + 3, 1024, 0);
	expect_packet(s->out[4], 0x07, S + 4, 1024, 0);
	expect_packet(s->out[5], 0x08, S + 5, 452, 0);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(s->out[i].offset, i % 3 * 1024);
		assert_int_equal(s->out[i].position, i / 3);
		assert_false(s->out[i].resend);
	}
	assert_true(s->out[3].va == VA);
	assert_int_equal(s->out[3].rkey, RKEY);
	assert_int_equal(s->out[3].dma_len, 2500);
}

/* WIRE-09: what one packet carries, and the pad. */
static void
WIRE_09_last_and_only(void **state)
{
	static const struct {
		uint32_t len, n, first_op, last_op, last_len, pad;
	} rows[] = {
		{ 0, 1, 0x04, 0x04, 0, 0 },
		{ 1, 1, 0x04, 0x04, 1, 3 },
		{ 2, 1, 0x04, 0x04, 2, 2 },
		{ 1023, 1, 0x04, 0x04, 1023, 1 },
		{ 1024, 1, 0x04, 0x04, 1024, 0 },
		{ 1025, 2, 0x00, 0x02, 1, 3 },
		{ 2048, 2, 0x00, 0x02, 1024, 0 },
		{ 2049, 3, 0x00, 0x02, 1, 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		POST(s, SEND(rows[i].len));
		pump(s);
		assert_int_equal(s->n, rows[i].n);
		assert_int_equal(s->out[0].opcode, rows[i].first_op);
		assert_int_equal(s->out[s->n - 1].opcode, rows[i].last_op);
		assert_int_equal(s->out[s->n - 1].len, rows[i].last_len);
		assert_int_equal(s->out[s->n - 1].pad, rows[i].pad);
	}
}

/* REQ-02: opcodes of one-packet and three-packet messages; data.opcodes. */
static void
REQ_02_opcodes(void **state)
{
	static const struct {
		uint8_t wr, only, first, middle, last;
	} rows[] = {
		{ WR_SEND, 0x04, 0x00, 0x01, 0x02 },
		{ WR_SEND_WITH_IMM, 0x05, 0x00, 0x01, 0x03 },
		{ WR_SEND_WITH_INV, 0x17, 0x00, 0x01, 0x16 },
		{ WR_RDMA_WRITE, 0x0a, 0x06, 0x07, 0x08 },
		{ WR_RDMA_WRITE_WITH_IMM, 0x0b, 0x06, 0x07, 0x09 },
	};
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bed_init(s);
		POST(s, .opcode = rows[i].wr, .len = 100, .imm = 0x01020304);
		POST(s, .opcode = rows[i].wr, .len = 3000, .imm = 0x05060708);
		pump(s);
		assert_int_equal(s->n, 4);
		assert_int_equal(s->out[0].opcode, rows[i].only);
		assert_int_equal(s->out[1].opcode, rows[i].first);
		assert_int_equal(s->out[2].opcode, rows[i].middle);
		assert_int_equal(s->out[3].opcode, rows[i].last);
		assert_int_equal(s->out[0].imm, 0x01020304);
		assert_int_equal(s->out[3].imm, 0x05060708);
	}
	/* WIRE-10: no payload, no pad */
	bed_init(s);
	POST(s, READ(3001), .remote_addr = VA + 7);
	POST(s, .opcode = WR_ATOMIC_CMP_AND_SWP, .len = 8, .remote_addr = VA + 8);
	POST(s, FADD);
	pump(s);
	assert_int_equal(s->n, 3);
	expect_packet(s->out[0], 0x0c, S, 0, 0);
	expect_packet(s->out[1], 0x13, S + 3, 0, 0);
	expect_packet(s->out[2], 0x14, S + 4, 0, 0);
	assert_true(s->out[0].va == VA + 7);
	assert_int_equal(s->out[0].dma_len, 3001);
	assert_int_equal(s->out[0].rkey, RKEY);
	assert_true(s->out[1].va == VA + 8);
}

static void
WIRE_11_psn_wraps(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	requester_reset(&s->r, psn(0xfffffe));
	post_sends(s, 4);
	pump(s);
	expect_psns(s, 0xfffffe, 0xffffff, 0x000000, 0x000001);
	ack(s, 0xffffff, ACK);
	expect_done(s, 2);
	ack(s, 0x000001, ACK);
	expect_done(s, 4);
}

static void
WIRE_12_psns_of_a_read(void **state)
{
	static const struct {
		uint32_t len, psns;
	} rows[] = { { 0, 1 }, { 1, 1 }, { 1024, 1 }, { 1025, 2 }, { 4096, 4 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		POST(s, READ(rows[i].len));
		POST(s, SEND(1));
		pump(s);
		expect_psns(s, S, S + rows[i].psns);
	}
}

/* WIRE-18: SE on the last packet of what may ask for it; MigReq in all requests. */
static void
WIRE_18_flags(void **state)
{
	static const struct {
		uint8_t wr;
		bool se;
	} rows[] = { { WR_SEND, true }, { WR_SEND_WITH_IMM, true }, { WR_SEND_WITH_INV, true },
		{ WR_RDMA_WRITE_WITH_IMM, true }, { WR_RDMA_WRITE, false }, { WR_RDMA_READ, false },
		{ WR_ATOMIC_FETCH_AND_ADD, false } };
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (uint32_t solicited = 0; solicited < 2; solicited++) {
			uint8_t migreq = i % 2 != 0 ? MIGREQ : 0;

			bed_init(s);
			s->r.unmigrated = migreq == 0;
			POSTF(s, SIGNALED | (solicited != 0 ? SOLICITED : 0), .opcode = rows[i].wr,
				.len = 3000);
			pump(s);
			for (uint32_t k = 0; k < s->n; k++) {
				bool se = rows[i].se && solicited != 0 && k + 1 == s->n;

				assert_int_equal((s->out[k].flags & SE) != 0, se);
				assert_int_equal(s->out[k].flags & MIGREQ, migreq);
			}
		}
	}
}

/* REQ-07: AckReq on the last packet of a message that must complete, and every 16 packets. */
static void
REQ_07_ackreq(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(2500));
	POST(s, SEND(40 * 1024));
	pump(s);
	for (uint32_t i = 0; i < s->n; i++)
		assert_int_equal(s->out[i].flags & ACKREQ,
			i == 2 || i == 18 || i == 34 || i == 42 ? ACKREQ : 0);
	/* Unsignalled: only the last one posted. */
	bed_init(s);
	for (uint32_t i = 0; i < 3; i++)
		POSTF(s, 0, SEND(64));
	pump(s);
	assert_int_equal(s->out[0].flags & ACKREQ, 0);
	assert_int_equal(s->out[1].flags & ACKREQ, 0);
	assert_int_equal(s->out[2].flags & ACKREQ, ACKREQ);
	/* The packet of a READ or ATOMIC is its message's last. */
	bed_init(s);
	POST(s, READ(64));
	POST(s, FADD);
	pump(s);
	assert_int_equal(s->out[0].flags & ACKREQ, ACKREQ);
	assert_int_equal(s->out[1].flags & ACKREQ, ACKREQ);
}

/* REQ-07: the last packet before the window closes asks, in the middle of a message too. */
static void
REQ_07_ackreq_before_window_closes(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.window = 4;
	POST(s, SEND(10 * 1024));
	assert_int_equal(pump(s), REQ_WINDOW);
	expect_psns(s, S, S + 1, S + 2, S + 3);
	assert_int_equal(s->out[2].flags & ACKREQ, 0);
	assert_int_equal(s->out[3].flags & ACKREQ, ACKREQ);
	assert_true(s->r.timing);
	ack(s, S + 1, ACK);
	assert_int_equal(pump(s), REQ_WINDOW);
	expect_psns(s, S + 4, S + 5);
	assert_int_equal(s->out[1].flags & ACKREQ, ACKREQ);
}

static void
REQ_10_read_limit(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.max_rd_atomic = 2;
	POST(s, READ(64));
	POST(s, FADD);
	POST(s, READ(64));
	POST(s, READ(64));
	assert_int_equal(pump(s), REQ_READ_LIMIT);
	expect_psns(s, S, S + 1);
	assert_int_equal(pump(s), REQ_READ_LIMIT);
	assert_int_equal(s->n, 0);
	ONLY(s, S, 64);
	assert_int_equal(pump(s), REQ_READ_LIMIT);
	expect_psns(s, S + 2);
	FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = S + 1, .syn = ACK);
	pump(s);
	expect_psns(s, S + 3);
}

static void
REQ_10_no_reads_at_all(void **state)
{
	static const uint8_t ops[] = { WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP,
		WR_ATOMIC_FETCH_AND_ADD };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		s->r.max_rd_atomic = 0;
		POST(s, .opcode = ops[i], .len = 8);
		assert_int_equal(pump(s), REQ_FAULT);
		assert_int_equal(s->n, 0);
		requester_check_fault(&s->r, &s->v);
		expect_error(s, 0, WC_LOC_QP_OP, 5);
	}
}

static void
REQ_11_fence(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	POSTF(s, SIGNALED | FENCE, SEND(64));
	assert_int_equal(pump(s), REQ_FENCED);
	expect_psns(s, S);
	ONLY(s, S, 64);
	assert_int_equal(pump(s), REQ_IDLE);
	expect_psns(s, S + 1);
	/* A fence waits for READs and ATOMICs only. */
	POSTF(s, SIGNALED | FENCE, SEND(64));
	pump(s);
	expect_psns(s, S + 2);
}

static void
REQ_12_order(void **state)
{
	struct bed bed, *s = &bed;
	uint32_t expected = S;

	(void)state;
	bed_init(s);
	POST(s, SEND(2500));
	POST(s, READ(5000));
	POST(s, WRITE(0));
	POST(s, FADD);
	POST(s, WRITE(4096));
	pump(s);
	for (uint32_t i = 0; i < s->n; i++) {
		assert_int_equal(s->out[i].psn.v, expected);
		expected += s->out[i].opcode == OP_RC_READ_REQUEST ? 5 : 1;
	}
	assert_int_equal(s->n, 3 + 1 + 1 + 1 + 4);
	assert_int_equal(s->r.next.v, expected);
}

/* REQ-13, AMB-05: never more than 2^23-1 PSNs, READ responses included. */
static void
REQ_13_psn_limit(void **state)
{
	struct bed bed, *s = &bed;
	uint64_t n = 0;

	(void)state;
	bed_init(s);
	s->r.window = UINT32_MAX;
	POST(s, SEND(0x80000000u));
	s->r.pmtu = 256;
	while (requester_next(&s->r, T0, &s->out[0]) == REQ_SEND)
		n++;
	assert_int_equal(n, 0x7fffff);
	assert_int_equal(s->out[0].flags & ACKREQ, ACKREQ);
	assert_int_equal(requester_next(&s->r, T0, &s->out[0]), REQ_WINDOW);
	ack(s, S + 0x7ffffe, ACK);
	assert_int_equal(s->v.act, REQACT_TIMER);
	pump(s);
	expect_psns(s, S + 0x7fffff);
	assert_int_equal(s->out[0].opcode, 0x02);
	assert_int_equal(s->out[0].len, 256);
	assert_int_equal(s->out[0].offset, 0x7fffff00u);
	ack(s, S + 0x7fffff, ACK);
	expect_done(s, 1);

	bed_init(s);
	s->r.pmtu = 256;
	POST(s, READ(0x7ffffe00u)); /* 2^23-2 PSNs */
	POST(s, SEND(1));
	POST(s, SEND(1));
	assert_int_equal(pump(s), REQ_WINDOW);
	expect_psns(s, S, S + 0x7ffffe);

	bed_init(s);
	s->r.pmtu = 256;
	POST(s, READ(0x7fffff01u)); /* 2^23 PSNs can never be outstanding */
	assert_int_equal(pump(s), REQ_FAULT);
	requester_check_fault(&s->r, &s->v);
	expect_error(s, 0, WC_LOC_LEN, 5);
}

/* A READ is one packet of the window, however long its answer. */
static void
REQ_13_window_counts_requests(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.window = 2;
	POST(s, READ(8 * 1024));
	POST(s, READ(8 * 1024));
	POST(s, SEND(1));
	assert_int_equal(pump(s), REQ_WINDOW);
	expect_psns(s, S, S + 8);
	for (uint32_t i = 0; i < 7; i++) {
		read_rsp(s, i == 0 ? OP_RC_READ_RESPONSE_FIRST : OP_RC_READ_RESPONSE_MIDDLE, S + i,
			1024);
		assert_int_equal(pump(s), REQ_WINDOW);
		assert_int_equal(s->n, 0);
	}
	LAST(s, S + 7, 1024);
	assert_int_equal(pump(s), REQ_IDLE);
	expect_psns(s, S + 16);
}

static void
CC_06_window_halves(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.window = 16;
	post_sends(s, 100);
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_int_equal(s->n, 16);
	s->r.window = 8;
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_int_equal(s->n, 0);
	ack(s, S + 7, ACK); /* 8 are still in flight */
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_int_equal(s->n, 0);
	ack(s, S + 9, ACK);
	assert_int_equal(pump(s), REQ_WINDOW);
	expect_psns(s, S + 16, S + 17);
	/* A resend keeps to the window too. */
	expire(s);
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_int_equal(s->n, 8);
	assert_int_equal(s->out[0].psn.v, S + 10);
}

/* CC-06 with nothing signalled: the window closes behind a packet that did not ask; it is sent
 * once more with AckReq, or sending would never start again. */
static void
CC_06_window_shrinks_under_silent_packets(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	for (uint32_t i = 0; i < 40; i++)
		POSTF(s, 0, SEND(64));
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(requester_next(&s->r, s->now, &s->out[i]), REQ_SEND);
	assert_false(s->r.timing);
	s->r.window = 8;
	assert_int_equal(pump(s), REQ_WINDOW);
	expect_psns(s, S + 9);
	assert_true(s->out[0].resend);
	assert_int_equal(s->out[0].flags & ACKREQ, ACKREQ);
	assert_true(s->r.timing);
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_int_equal(s->n, 0);
	ack(s, S + 9, ACK);
	expect_done(s, 10);
	pump(s);
	assert_int_equal(s->out[0].psn.v, S + 10);
}

static void
REQ_18_length_limit(void **state)
{
	static const uint8_t ops[] = { WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ };
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		bed_init(s);
		POST(s, .opcode = ops[i], .len = 0x80000001u);
		assert_int_equal(pump(s), REQ_FAULT);
		assert_int_equal(s->n, 0);
		requester_check_fault(&s->r, &s->v);
		expect_rule(s, "REQ-18");
		expect_error(s, 0, WC_LOC_LEN, 5);
	}
	bed_init(s);
	POST(s, WRITE(0x80000000u));
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_int_equal(s->out[0].dma_len, 0x80000000u);
}

RUN(T(REQ_01_segmentation), T(WIRE_09_last_and_only), T(REQ_02_opcodes), T(WIRE_11_psn_wraps),
	T(WIRE_12_psns_of_a_read), T(WIRE_18_flags), T(REQ_07_ackreq),
	T(REQ_07_ackreq_before_window_closes), T(REQ_10_read_limit), T(REQ_10_no_reads_at_all),
	T(REQ_11_fence), T(REQ_12_order), T(REQ_13_psn_limit), T(REQ_13_window_counts_requests),
	T(CC_06_window_halves), T(CC_06_window_shrinks_under_silent_packets),
	T(REQ_18_length_limit))
