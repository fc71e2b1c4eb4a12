/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses of several QPs in one burst, or to a pass before: each QP asks on for what waits. */
#include "bed.h"

#include <string.h>

enum {
	SECOND = 0x31,
	DEPTH = 4, /* max_rd_atomic of the bed's QPs */
	LOST = 40, /* requests whose ACKs are lost: more than a visit of the QP sends */
	LATER = 6, /* ... posted while they are sent again */
	TTR = 4096 << 14 /* ns */
};

static void
post_at(struct bed *b, struct qp *qp, uint8_t opcode, uint32_t n, uint64_t addr, uint32_t len)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };
	struct ring producer;

	ring_attach(&producer, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	while (n-- != 0) {
		struct ring_send_wqe *wqe = ring_produce_slot(&producer, producer.mask + 1);

		assert_non_null(wqe);
		memset(wqe, 0, producer.stride);
		wqe->opcode = opcode;
		wqe->num_sge = 1;
		wqe->sge[0] = (struct ring_sge){ .addr = addr, .length = len, .lkey = MR_KEY };
		wqe->remote_addr = MR_VA;
		wqe->rkey = MR_KEY;
		ring_produce_commit(&producer);
	}
	m.qp.qp = qp;
	assert_int_equal(bed_tell(b, &m), 0);
}

static void
post_some(struct bed *b, struct qp *qp, uint8_t opcode, uint32_t n, uint32_t len)
{
	post_at(b, qp, opcode, n, MR_VA, len);
}

static void
post_reads(struct bed *b, struct qp *qp, uint32_t n, uint32_t len)
{
	post_some(b, qp, WR_RDMA_READ, n, len);
}

static void
respond(struct bed *b, const struct qp *qp, uint8_t opcode, uint32_t p)
{
	struct wire_fields f = send_only(p, PMTU);

	f.opcode = opcode;
	f.flags = 0;
	f.dest_qpn = qp->qpn;
	f.aeth.syndrome = AETH_CREDIT_NONE;
	bed_send(b, &f);
}

/*
 * REQ-10: as many READs as the peer takes are on their way; the next one leaves when one is
 * answered, whatever comes behind that answer. The clock stands, so no timer sends it.
 */
static void
REQ_10_next_read_beside_another_QP(void **state)
{
	struct bed *b = *state;
	struct qp *second = bed_qp(b, SECOND, SECOND);

	post_reads(b, second, 1, 3 * PMTU);
	post_reads(b, b->qp, DEPTH + 2, PMTU);
	bed_turns(b);
	expect_packet(b, OP_RC_READ_REQUEST, S, 0);
	for (uint32_t i = 0; i < DEPTH; i++)
		expect_packet(b, OP_RC_READ_REQUEST, S + i, 0);
	expect_silence(b);

	respond(b, second, OP_RC_READ_RESPONSE_FIRST, S);
	respond(b, b->qp, OP_RC_READ_RESPONSE_ONLY, S);
	respond(b, second, OP_RC_READ_RESPONSE_MIDDLE, S + 1);
	bed_turns(b);
	expect_packet(b, OP_RC_READ_REQUEST, S + DEPTH, 0);
	expect_silence(b);

	respond(b, b->qp, OP_RC_READ_RESPONSE_ONLY, S + 1);
	respond(b, second, OP_RC_READ_RESPONSE_LAST, S + 2);
	bed_turns(b);
	expect_packet(b, OP_RC_READ_REQUEST, S + DEPTH + 1, 0);
	expect_silence(b);
	bed_qp_gone(b, second);
}

/*
 * REQ-17: a peer that has all of it answers the first packet that is sent again with an ACK of the
 * newest. Then nothing is left to be sent again, and what was posted meanwhile leaves at once,
 * though its doorbell was answered before: the clock stands, and there is no other.
 */
static void
REQ_17_ack_of_all_lets_out_what_was_posted(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp_with(b, SECOND, SECOND,
		&(const struct qp_alloc_params){ .max_send_wr = 64, .max_send_sge = 1 });
	struct wire_fields ack = { .opcode = OP_RC_ACKNOWLEDGE,
		.psn = psn(S + LOST - 1),
		.dest_qpn = SECOND,
		.aeth = { .syndrome = AETH_CREDIT_NONE, .msn = LOST } };

	post_some(b, qp, WR_RDMA_WRITE, LOST, 8);
	bed_turns(b);
	for (uint32_t i = 0; i < LOST; i++)
		expect_packet(b, OP_RC_WRITE_ONLY, S + i, 8);
	b->now += 2 * TTR;
	bed_turns(b); /* some are sent again */
	assert_in_range(b->out_n - b->out_at, 1, LOST - 17);
	bed_forget_output(b);
	post_some(b, qp, WR_RDMA_WRITE, LATER, 8);
	bed_turns(b);
	expect_silence(b);
	bed_send(b, &ack);
	bed_turns(b);
	for (uint32_t i = 0; i < LATER; i++)
		expect_packet(b, OP_RC_WRITE_ONLY, S + LOST + i, 8);
	expect_silence(b);
	bed_qp_gone(b, qp);
}

/** A response with bytes that tell its PSN. */
static void
answer(struct bed *b, uint8_t opcode, uint32_t p)
{
	static uint8_t bytes[PMTU];
	struct wire_fields f = send_only(p, PMTU);

	memset(bytes, (int)p, sizeof(bytes));
	f.opcode = opcode;
	f.flags = 0;
	f.payload = bytes;
	f.aeth.syndrome = AETH_CREDIT_NONE;
	bed_send(b, &f);
}

/*
 * REQ-05, REQ-08: answers to several long READs that come in one burst: each byte goes where its
 * own READ wants it, and nothing else is touched.
 */
static void
REQ_05_long_reads_in_one_burst(void **state)
{
	static const uint8_t opcodes[] = { OP_RC_READ_RESPONSE_FIRST, OP_RC_READ_RESPONSE_MIDDLE,
		OP_RC_READ_RESPONSE_LAST };
	enum { FAR = 20000, PARTS = ARRAY_LEN(opcodes) };
	struct bed *b = *state;

	post_reads(b, b->qp, 1, PMTU);
	bed_turns(b);
	expect_packet(b, OP_RC_READ_REQUEST, S, 0);
	b->now += 1000; /* a round trip is known from now on */
	answer(b, OP_RC_READ_RESPONSE_ONLY, S);
	bed_turns(b);
	memset(b->memory, 0, MR_LEN);
	for (uint32_t i = 0; i < 3; i++)
		post_at(b, b->qp, WR_RDMA_READ, 1, MR_VA + 7 + i * FAR, PARTS * PMTU);
	bed_turns(b);
	for (uint32_t i = 0; i < 3; i++)
		expect_packet(b, OP_RC_READ_REQUEST, S + 1 + i * PARTS, 0);
	for (uint32_t i = 0; i < 3 * PARTS; i++)
		answer(b, opcodes[i % PARTS], S + 1 + i);
	bed_turns(b);
	for (uint32_t at = 0; at < MR_LEN; at++) {
		const uint32_t read = at < 7 ? 3 : (at - 7) / FAR, in = (at - 7) % FAR;
		const bool wanted = read < 3 && in < PARTS * PMTU;

		assert_int_equal(b->memory[at],
			wanted ? (uint8_t)(S + 1 + read * PARTS + in / PMTU) : 0);
	}
	assert_int_equal(qp_stat(b->qp, STAT_rx_responses), 1 + 3 * PARTS);
	assert_int_equal(bed_stat(b, STAT_rx_responses), 1 + 3 * PARTS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(REQ_10_next_read_beside_another_QP),
		TEST(REQ_17_ack_of_all_lets_out_what_was_posted),
		TEST(REQ_05_long_reads_in_one_burst),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
