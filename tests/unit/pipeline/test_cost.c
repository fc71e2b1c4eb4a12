/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CC-28, as far as no clock is needed: what cc.algo=dcqcn costs a QP that has had no CNP. All that
 * looks at a QP's rate is in pace.h and cc.h; the linker's --wrap counts who calls them. What is
 * left is one flag, which each request tests with either algorithm; scripts/bench/pipeline has the
 * rows that are measured (req_write_64_dcqcn, req_write_1024_dcqcn).
 */
#include "bed.h"
#include "pace.h"
#include "qp_cc.h"

enum { ROUNDS = 50, EACH = 8, RATED_QPN = 0x12 };

static uint32_t calls;

/* The linker makes these names. */
uint32_t __real_pipeline_pace_requests(struct worker *w, struct qp *qp);
uint32_t __wrap_pipeline_pace_requests(struct worker *w, struct qp *qp);
void __real_pipeline_pace_sent(struct worker *w, struct qp *qp, uint8_t port, uint32_t place);
void __wrap_pipeline_pace_sent(struct worker *w, struct qp *qp, uint8_t port, uint32_t place);
void __real_cc_advance(struct cc *c, ns_t now);
void __wrap_cc_advance(struct cc *c, ns_t now);
uint32_t __real_cc_packets(struct cc *c, uint32_t len, ns_t now);
uint32_t __wrap_cc_packets(struct cc *c, uint32_t len, ns_t now);

uint32_t
__wrap_pipeline_pace_requests(struct worker *w, struct qp *qp)
{
	calls++;
	return __real_pipeline_pace_requests(w, qp);
}

void
__wrap_pipeline_pace_sent(struct worker *w, struct qp *qp, uint8_t port, uint32_t place)
{
	calls++;
	__real_pipeline_pace_sent(w, qp, port, place);
}

void
__wrap_cc_advance(struct cc *c, ns_t now)
{
	calls++;
	__real_cc_advance(c, now);
}

uint32_t
__wrap_cc_packets(struct cc *c, uint32_t len, ns_t now)
{
	calls++;
	return __real_cc_packets(c, len, now);
}

/** EACH WRITEs of so many bytes leave and are acknowledged. @return how many left at once. */
static uint32_t
writes(struct bed *b, struct qp *qp, struct ring *producer, uint32_t psn_first, uint32_t len)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };
	struct wire_fields ack = { .opcode = OP_RC_ACKNOWLEDGE,
		.dest_qpn = qp->qpn,
		.psn = psn(psn_first + EACH - 1),
		.aeth = { .syndrome = AETH_CREDIT_NONE } };
	uint32_t left;

	for (uint32_t i = 0; i < EACH; i++) {
		struct ring_send_wqe *wqe = ring_produce_slot(producer, 16);

		assert_non_null(wqe);
		*wqe = (struct ring_send_wqe){ .wr_id = i,
			.opcode = WR_RDMA_WRITE,
			.flags = SEND_SIGNALED,
			.remote_addr = 0x700000,
			.rkey = 0x77,
			.num_sge = 1 };
		wqe->sge[0] = (struct ring_sge){ .addr = MR_VA, .length = len, .lkey = MR_KEY };
		ring_produce_commit(producer);
	}
	m.qp.qp = qp;
	assert_int_equal(bed_tell(b, &m), 0);
	bed_turns(b);
	left = b->out_n;
	bed_forget_output(b);
	bed_send(b, &ack);
	bed_turns(b);
	return left;
}

static void
CC_28_no_cnp(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp_with_rate(b, RATED_QPN, PEER_QPN + 1, 0);
	static const uint8_t zeros[16];
	const struct wire_fields cnp = { .opcode = OP_CNP,
		.flags = PKT_BECN,
		.dest_qpn = RATED_QPN,
		.payload = zeros,
		.payload_len = sizeof(zeros) };
	struct ring producer;

	ring_attach(&producer, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	calls = 0;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		assert_int_equal(
			writes(b, qp, &producer, S + i * EACH, i % 2 == 0 ? 64 : 1024), EACH);
		for (uint32_t k = 0; k < EACH; k++)
			assert_int_equal(bed_cqe(b).status, 0);
	}
	assert_int_equal(calls, 0);
	assert_int_equal(qp->flags & QPF_PACED, 0);
	/* With a CNP it is looked at: the test sees what it is there to see. */
	bed_send(b, &cnp);
	bed_turn(b);
	assert_int_equal(qp->flags & QPF_PACED, QPF_PACED);
	calls = 0;
	writes(b, qp, &producer, S + ROUNDS * EACH, 64);
	assert_true(calls >= 3);
	bed_qp_gone(b, qp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { TEST(CC_28_no_cnp) };

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
