/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More doorbells than a turn takes: the worker looks ahead at numbers that nothing is known of yet,
 * and each is answered in its turn all the same.
 */
#include <string.h>

#include "bed.h"
#include "ring_bell.h"
#include "ring_send.h"

enum { BELLS = 64, QPS = 36, FIRST = 0x52, NOBODY = 0x3f0000 };

static struct qp_client client;
static struct ring_bells bells; /* the client's view */
static struct qp *qps[QPS];

static int
setup(void **state)
{
	static uint32_t memory[BELLS] __attribute__((aligned(64)));
	struct mbox_msg m = { .type = MBOX_CLIENT_ATTACH };
	struct bed *b;

	assert_int_equal(bed_setup(state), 0);
	b = *state;
	memset(memory, 0, sizeof(memory));
	client = (struct qp_client){ .id = 1 };
	ring_bells_attach(&client.bells, memory, BELLS);
	ring_bells_attach(&bells, memory, BELLS);
	m.client.client = &client;
	assert_int_equal(bed_tell(b, &m), 0);
	for (uint32_t i = 0; i < QPS; i++) {
		qps[i] = bed_qp(b, FIRST + i, 0x100 + i);
		qps[i]->sq.share = &client.share;
	}
	return 0;
}

static int
teardown(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m = { .type = MBOX_CLIENT_DETACH };

	for (uint32_t i = 0; i < QPS; i++)
		bed_qp_gone(b, qps[i]);
	m.client.client = &client;
	assert_int_equal(bed_tell(b, &m), 0);
	return bed_teardown(state);
}

#define BELLS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/** As lib/client/post.c does it: a request, and its doorbell. */
static void
post_long(uint32_t i, uint32_t len)
{
	struct ring *r = &qps[i]->sq.ring;
	struct ring_send_wqe *wqe;
	struct ring producer;

	ring_attach(&producer, r->sh, r->mask + 1, r->stride, false);
	wqe = ring_produce_slot(&producer, 16);
	assert_non_null(wqe);
	memset(wqe, 0, producer.stride);
	wqe->opcode = WR_RDMA_WRITE;
	wqe->num_sge = len != 0;
	wqe->sge[0] = (struct ring_sge){ .addr = MR_VA, .length = len, .lkey = MR_KEY };
	ring_produce_commit(&producer);
	assert_true(ring_bell_is_due(&producer));
	assert_int_equal(ring_bells_put(&bells, FIRST + i), 0);
}

static void
post(uint32_t i)
{
	post_long(i, 0);
}

/** Turns until no number waits; a doorbell that is answered sends one packet. */
static uint32_t
turns(struct bed *b)
{
	uint32_t sent = 0;

	for (uint32_t i = 0; i < 20; i++) {
		bed_turn(b);
		sent += b->out_n;
		bed_forget_output(b);
	}
	return sent;
}

static void
each_is_answered(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < QPS; i++)
		post(i);
	assert_int_equal(turns(b), QPS);
	assert_int_equal(bed_stat(b, STAT_doorbells), QPS);
	for (uint32_t i = 0; i < QPS; i++)
		assert_int_equal(qp_stat(qps[i], STAT_sent_pkts), 1);
}

/* Numbers of no QP, of another worker's, of one that goes before its turn. */
static void
those_of_nobody(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < 16; i++)
		post(i);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(ring_bells_put(&bells, NOBODY + i * 7), 0);
	for (uint32_t i = 16; i < 32; i++)
		post(i);
	qp_table_give(b->qps, qps[20], 1);
	qps[20]->worker = 1;
	bed_turn(b); /* the next numbers were looked at */
	assert_int_equal(b->out_n, 16);
	bed_forget_output(b);
	qp_table_remove(b->qps, qps[18]); /* it is one of them */
	assert_int_equal(turns(b), 14);
	assert_int_equal(bed_stat(b, STAT_doorbells), 30);
	assert_int_equal(bed_stat(b, STAT_doorbell_garbage), 10);
	qp_table_give(b->qps, qps[20], 0);
	qps[20]->worker = 0;
	assert_int_equal(qp_table_insert(b->qps, qps[18]), 0);
}

/* A QP that nobody is beside has all packets of a turn, while they are short: a turn is brief. */
static void
alone_has_the_turn(void **state)
{
	struct bed *b = *state;

	qps[0]->req.window = qps[1]->req.window = 1000;
	qps[0]->req.pmtu = 256;
	post_long(0, 60 * 256);
	bed_turn(b);
	assert_int_equal(b->out_n, 60);
	assert_int_equal(qps[1]->req.pmtu, 1024);
	post_long(1, 60 * 1024);
	bed_turn(b);
	assert_int_equal(b->out_n, 16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BELLS_TEST(each_is_answered),
		BELLS_TEST(those_of_nobody),
		BELLS_TEST(alone_has_the_turn),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
