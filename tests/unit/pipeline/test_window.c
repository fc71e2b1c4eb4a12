/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a queue pair goes on with what was posted, in one visit and over several. */
#include <string.h>

#include "bed.h"

enum { QUEUE = 64, WINDOW = 5, FEW = 2, MORE = 6, MANY = 40 };

static void
post(struct bed *b, struct qp *qp, uint32_t n, uint32_t len, uint8_t flags)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED, .qp.qp = qp };
	struct ring producer;

	ring_attach(&producer, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	for (uint32_t i = 0; i < n; i++) {
		struct ring_send_wqe *wqe = ring_produce_slot(&producer, QUEUE);

		assert_non_null(wqe);
		memset(wqe, 0, producer.stride);
		wqe->opcode = WR_RDMA_WRITE;
		wqe->flags = flags;
		wqe->num_sge = 1;
		wqe->sge[0] = (struct ring_sge){ MR_VA, len, MR_KEY };
		ring_produce_commit(&producer);
	}
	assert_int_equal(bed_tell(b, &m), 0);
}

/** The peer has all up to this PSN. */
static void
acknowledge(struct bed *b, uint32_t p)
{
	const struct wire_fields f = {
		.opcode = OP_RC_ACKNOWLEDGE, .psn = psn(p), .aeth = { .syndrome = AETH_CREDIT_NONE }
	};

	bed_send(b, &f);
	bed_turns(b);
}

/** So many packets have left, from this PSN on. The last one asks for a response (REQ-07). */
static void
have_left(const struct bed *b, uint32_t p, uint32_t n)
{
	assert_int_equal(b->out_n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(b->pkt[i].psn.v, p + i);
	assert_true((b->pkt[n - 1].flags & PKT_ACKREQ) != 0);
}

/* REQ-13: the window counts in the loop, too: no more packets in flight than it allows. */
static void
window(struct bed *b, uint32_t requests, uint32_t len)
{
	b->qp->req.window = WINDOW;
	post(b, b->qp, FEW, 8, 0);
	bed_turns(b);
	have_left(b, S, FEW);
	bed_forget_output(b);
	post(b, b->qp, requests, len, 0);
	bed_turns(b);
	have_left(b, S + FEW, WINDOW - FEW);
	acknowledge(b, S + FEW);
	have_left(b, S + WINDOW, FEW + 1);
}

static void
REQ_13_short_requests(void **state)
{
	window(*state, MORE, 8);
}

static void
REQ_13_a_long_request(void **state)
{
	window(*state, 1, MORE * PMTU);
}

/*
 * RT-05: packets to a neighbour whose MAC is not known are as if lost. A peer that acknowledges
 * nothing is told of nothing either, so each request is done, however many there are.
 */
static void
RT_05_unacknowledged(void **state)
{
	const struct qp_alloc_params params = { .type = QPT_UC,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = QUEUE,
		.max_send_sge = 1 };
	struct bed *b = *state;
	struct qp *qp = bed_qp_with(b, QPN + 1, PEER_QPN + 1, &params);

	qp->flags &= ~(uint32_t)QPF_RESOLVED;
	post(b, qp, MANY, 8, SEND_SIGNALED);
	bed_turns(b);
	expect_silence(b);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(bed_cqe(b).status, WC_SUCCESS);
	bed_no_cqe(b);
	assert_int_equal(qp_stat(qp, STAT_tx_no_neighbor), MANY);
	bed_qp_gone(b, qp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(REQ_13_short_requests),
		TEST(REQ_13_a_long_request),
		TEST(RT_05_unacknowledged),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
