/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ACKs of several QPs in one burst: their completions go into the queues one behind the other, and
 * come to the same as if each ACK had been alone.
 */
#include <string.h>

#include "bed.h"
#include "count.h"
#include "sending.h"

#undef fail /* cmocka's; the pipeline has a function of that name */

enum { QPS = 4, FIRST = 0x30, PEER = 0x40 };

static struct qp *qps[QPS];
static struct qp_cq other; /* of the odd ones, where a test wants that */

static int
setup(void **state)
{
	struct bed *b;

	assert_int_equal(bed_setup(state), 0);
	b = *state;
	atomic_store(&b->cq.producer, 1); /* this worker alone */
	for (uint32_t i = 0; i < QPS; i++)
		qps[i] = bed_qp(b, FIRST + i, PEER + i);
	memset(&other, 0, sizeof(other));
	assert_int_equal(mem_area_create(&other.area, ring_size(64, 64), -1, 0), 0);
	ring_cq_attach(&other.ring, other.area.base, 64, 64, true);
	return 0;
}

static int
teardown(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < QPS; i++)
		bed_qp_gone(b, qps[i]);
	mem_area_destroy(&other.area);
	return bed_teardown(state);
}

#define ACKS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/** Each QP sends n requests; nobody has answered yet. */
static void
send_all(struct bed *b, uint32_t n)
{
	for (uint32_t i = 0; i < QPS; i++) {
		struct ring *r = &qps[i]->sq.ring;
		struct ring producer;

		ring_attach(&producer, r->sh, r->mask + 1, r->stride, false);
		for (uint32_t k = 0; k < n; k++) {
			struct ring_send_wqe *wqe = ring_produce_slot(&producer, 16);

			assert_non_null(wqe);
			memset(wqe, 0, producer.stride);
			*wqe = (struct ring_send_wqe){ .wr_id = 100 * i + k,
				.opcode = WR_RDMA_WRITE,
				.flags = SEND_SIGNALED,
				.remote_addr = 0x700000,
				.rkey = 0x77,
				.num_sge = 1 };
			wqe->sge[0] = (struct ring_sge){ MR_VA, 64, MR_KEY };
			ring_produce_commit(&producer);
		}
		pipeline_send_wake(b->w, qps[i]);
	}
	bed_turns(b);
	bed_forget_output(b);
}

static void
put_ack(struct bed *b, uint32_t i, uint32_t p)
{
	const struct wire_fields f = { .opcode = OP_RC_ACKNOWLEDGE,
		.dest_qpn = FIRST + i,
		.psn = psn(p),
		.aeth = { .syndrome = AETH_CREDIT_NONE } };

	bed_send(b, &f);
}

static void
expect_next(struct qp_cq *cq, uint64_t wr_id)
{
	struct ring_cqe c;

	assert_int_equal(ring_cq_poll(&cq->ring, &c, 1), 1);
	assert_int_equal(c.wr_id, wr_id);
	assert_int_equal(c.status, WC_SUCCESS);
	assert_int_equal(c.opcode, WC_RDMA_WRITE);
	assert_int_equal(c.qp_num, FIRST + wr_id / 100);
}

static void
expect_no_more(struct qp_cq *cq)
{
	struct ring_cqe c;

	assert_int_equal(ring_cq_poll(&cq->ring, &c, 1), 0);
}

/* REQ-03, REQ-08: every request of each QP, in order; the last two were not acknowledged yet. */
static void
REQ_03_several_qps(void **state)
{
	struct bed *b = *state;

	send_all(b, 4);
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < QPS; i++)
			put_ack(b, i, S + k);
	bed_turn(b);
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < QPS; i++)
			expect_next(&b->cq, 100 * i + k);
	expect_no_more(&b->cq);
	for (uint32_t i = 0; i < QPS; i++) {
		assert_int_equal(qp_stat(qps[i], STAT_req_messages), 2);
		assert_int_equal(qp_stat(qps[i], STAT_req_message_bytes), 128);
		assert_int_equal(qp_stat(qps[i], STAT_rx_responses), 2);
	}
	assert_int_equal(bed_stat(b, STAT_req_messages), 2 * QPS);
	assert_int_equal(bed_stat(b, STAT_req_message_bytes), 2 * QPS * 64);
	assert_int_equal(bed_stat(b, STAT_rx_responses), 2 * QPS);
}

/* CQ-02: queues in turn, one of them nobody's, one shared with other workers. */
static void
CQ_02_several_queues(void **state)
{
	struct bed *b = *state;

	qps[1]->send_cq = &other;
	qps[2]->send_cq = NULL;
	atomic_store(&other.producer, CQ_PRODUCER_ANY);
	send_all(b, 3);
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t i = 0; i < QPS; i++)
			put_ack(b, i, S + k);
	bed_turn(b);
	for (uint32_t k = 0; k < 3; k++) {
		expect_next(&b->cq, k);
		expect_next(&b->cq, 300 + k);
		expect_next(&other, 100 + k);
	}
	expect_no_more(&b->cq);
	expect_no_more(&other);
	assert_int_equal(qp_stat(qps[2], STAT_req_messages), 3);
	qps[1]->send_cq = qps[2]->send_cq = &b->cq;
}

/* CQ-05, AE-03: a queue that is full after the first: that one stays, the others' QPs fail. */
static void
CQ_05_full(void **state)
{
	struct bed *b = *state;

	send_all(b, 1);
	b->cq.ring.limit = 1;
	for (uint32_t i = 0; i < QPS; i++)
		put_ack(b, i, S);
	bed_turn(b);
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, EVENT_CQ_ERR);
	for (uint32_t i = 1; i < QPS; i++) {
		struct mbox_msg m = bed_up(b, MBOX_EVENT);

		assert_int_equal(m.ev.event, EVENT_QP_FATAL);
		assert_int_equal(m.ev.qpn, FIRST + i);
		assert_int_equal(atomic_load(&qps[i]->state), QPS_ERR);
		bed_up(b, MBOX_FATAL);
	}
	bed_no_up(b);
	assert_int_equal(atomic_load(&qps[0]->state), QPS_RTS);
	expect_next(&b->cq, 0);
	expect_no_more(&b->cq);
}

/* REQ-CLS-E-01: one of nothing, and a NAK, between the others: each for its own QP. */
static void
REQ_CLS_E_01_between_others(void **state)
{
	struct bed *b = *state;
	struct wire_fields nak = { .opcode = OP_RC_ACKNOWLEDGE,
		.dest_qpn = FIRST + 2,
		.psn = psn(S),
		.aeth = { .syndrome = AETH_NAK | NAK_PSN_SEQ_ERR } };

	send_all(b, 2);
	put_ack(b, 0, S);
	put_ack(b, 1, S - 1);
	bed_send(b, &nak);
	put_ack(b, 3, S + 1);
	bed_turn(b);
	expect_next(&b->cq, 0);
	expect_next(&b->cq, 300);
	expect_next(&b->cq, 301);
	expect_no_more(&b->cq);
	assert_int_equal(bed_stat(b, STAT_rx_responses_unmatched), 1);
	assert_int_equal(qp_stat(qps[1], STAT_rx_responses_unmatched), 1);
	assert_int_equal(qp_stat(qps[2], STAT_packet_seq_err), 1);
	bed_turns(b);
	bed_forget_output(b);
}

/* The counts of a send queue are 32 bits wide, and lose nothing where one is about to be full. */
static void
counts_are_carried(void **state)
{
	struct bed *b = *state;
	struct qp_sendq *q = &qps[0]->sq;

	send_all(b, 1);
	assert_int_equal(qp_stat(qps[0], STAT_sent_pkts), 1);
	q->sent = q->responses = q->messages = q->message_bytes = q->response_bytes = 0x7fffffff;
	put_ack(b, 0, S);
	bed_turn(b);
	assert_int_equal(q->messages, 0); /* it took the others along */
	assert_int_equal(q->sent, 0);
	assert_int_equal(qp_stat(qps[0], STAT_sent_pkts), 0x7fffffff);
	assert_int_equal(qp_stat(qps[0], STAT_rx_responses), 0x80000000);
	assert_int_equal(qp_stat(qps[0], STAT_rx_packets), 0x80000000);
	assert_int_equal(qp_stat(qps[0], STAT_rcvd_pkts), 0x80000000);
	assert_int_equal(qp_stat(qps[0], STAT_rx_bytes), UINT64_C(0x7fffffff) + 62);
	assert_int_equal(qp_stat(qps[0], STAT_req_messages), 0x80000000);
	assert_int_equal(qp_stat(qps[0], STAT_req_message_bytes), UINT64_C(0x7fffffff) + 64);
	q->sent = 0x7fffffff;
	send_all(b, 1);
	assert_int_equal(q->sent, 0);
	assert_int_equal(qp_stat(qps[0], STAT_sent_pkts), 0xffffffff);
	/* Bytes fill up long before messages do: the next ones count where the first ones did. */
	q->message_bytes = 0x7fffffff - 63;
	put_ack(b, 0, S + 1);
	bed_turn(b);
	assert_int_equal(q->message_bytes, 64);
	assert_int_equal(qp_stat(qps[0], STAT_req_messages), 0x80000001);
	assert_int_equal(qp_stat(qps[0], STAT_req_message_bytes), UINT64_C(0xffffffff) + 64);
	assert_int_equal(bed_stat(b, STAT_qp_counts_lost), 0);
}

/* A compact QP sends and is answered without a side; one that fills its counts there loses some. */
static void
counts_without_a_side(void **state)
{
	struct bed *b = *state;
	struct stats_block *stats = qps[0]->stats;

	qps[0]->stats = NULL;
	send_all(b, 2);
	put_ack(b, 0, S);
	bed_turn(b);
	assert_int_equal(qp_stat(qps[0], STAT_rx_responses), 1);
	assert_int_equal(qp_stat(qps[0], STAT_req_messages), 1);
	assert_int_equal(bed_stat(b, STAT_qp_counts_lost), 0);
	qps[0]->sq.messages = 0x7fffffff;
	put_ack(b, 0, S + 1);
	bed_turn(b);
	assert_int_equal(qp_stat(qps[0], STAT_req_messages), 0);
	assert_int_equal(qp_stat(qps[0], STAT_rx_packets), 2);
	/* As many as they were: messages, the ACK of the first one, and its bytes. */
	assert_int_equal(bed_stat(b, STAT_qp_counts_lost), UINT64_C(0x80000000) + 1 + 64);
	assert_int_equal(qp_stat(qps[0], STAT_rx_responses), 1);
	qps[0]->stats = stats;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ACKS_TEST(REQ_03_several_qps),
		ACKS_TEST(CQ_02_several_queues),
		ACKS_TEST(CQ_05_full),
		ACKS_TEST(REQ_CLS_E_01_between_others),
		ACKS_TEST(counts_are_carried),
		ACKS_TEST(counts_without_a_side),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
