/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that a worker posts itself. */
#include "bed.h"
#include "count.h"
#include "sending.h"

#undef fail /* cmocka's; the pipeline has a function of that name */

/* REQ-03: a feed posts as many requests as it was told to, `depth` at a time, and tells no host. */
static void
REQ_03_send_feed(void **state)
{
	struct bed *b = *state;
	struct qp_feed feed = { .count = 5,
		.remote_addr = 0x700000,
		.sge = { .addr = MR_VA, .length = 8, .lkey = MR_KEY },
		.rkey = 0x77,
		.depth = 2,
		.opcode = WR_RDMA_WRITE };
	struct mbox_msg m = { .type = MBOX_QP_POSTED };
	struct wire_fields f = { .opcode = OP_RC_ACKNOWLEDGE, .aeth = { 0x1f, 1 } };

	b->qp->send_feed = &feed;
	b->qp->flags |= QPF_SEND_FEED;
	m.qp.qp = b->qp;
	assert_int_equal(bed_tell(b, &m), 0);
	pipeline_send_wake(b->w, b->qp);
	bed_turns(b);
	for (uint32_t i = 0; i < 5; i += 2) {
		expect_packet(b, OP_RC_WRITE_ONLY, S + i, 8);
		if (i < 4)
			expect_packet(b, OP_RC_WRITE_ONLY, S + i + 1, 8);
		expect_silence(b);
		f.psn = psn(i < 4 ? S + i + 1 : S + i);
		bed_send(b, &f);
		bed_turns(b);
	}
	expect_silence(b);
	bed_no_cqe(b);
	assert_int_equal(feed.posted, 5);
	assert_int_equal(feed.completed, 5);
	b->qp->flags &= ~(uint32_t)QPF_SEND_FEED;
	b->qp->send_feed = NULL;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(REQ_03_send_feed),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
