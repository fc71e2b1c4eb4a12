/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that a worker posts itself. */
#include "bed.h"
#include "count.h"
#include "sending.h"

#undef fail /* cmocka's; the pipeline has a function of that name */

static const struct qp_feed five_writes = { .count = 5,
	.remote_addr = 0x700000,
	.sge = { .addr = MR_VA, .length = 8, .lkey = MR_KEY },
	.rkey = 0x77,
	.depth = 2,
	.opcode = WR_RDMA_WRITE };

/** The QP has this feed, and has sent what it may. */
static void
begin(struct bed *b, struct qp_feed *feed)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };

	b->qp->send_feed = feed;
	b->qp->flags |= QPF_SEND_FEED;
	m.qp.qp = b->qp;
	assert_int_equal(bed_tell(b, &m), 0);
	pipeline_send_wake(b->w, b->qp);
	bed_turns(b);
}

static void
end(struct bed *b)
{
	b->qp->flags &= ~(uint32_t)QPF_SEND_FEED;
	b->qp->send_feed = NULL;
}

/* REQ-03: a feed posts as many requests as it was told to, `depth` at a time, and tells no host. */
static void
REQ_03_send_feed(void **state)
{
	struct bed *b = *state;
	struct qp_feed feed = five_writes;
	struct wire_fields f = { .opcode = OP_RC_ACKNOWLEDGE, .aeth = { 0x1f, 1 } };

	begin(b, &feed);
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
	end(b);
}

/*
 * QP-09: in SQD the retries of a feed are used up whose peer was never there. It would begin again
 * after a rest, but not before RTS; until then the queue is drained, which is told once.
 */
static void
QP_09_a_feed_rests(void **state)
{
	const uint32_t notify = QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY;
	const struct qp_attr sqd = { .qp_state = QPS_SQD, .en_sqd_async_notify = true };
	struct bed *b = *state;
	struct qp_feed feed = five_writes;

	begin(b, &feed);
	bed_forget_output(b);
	assert_int_equal(bed_modify(b, b->qp, &sqd, notify), 0);
	while (!feed.resting) {
		assert_int_equal(feed.completed, 0);
		b->now += 10 * TIME_NS_PER_MS;
		bed_turn(b);
		bed_forget_output(b);
	}
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, 0); /* a note: is the peer there? */
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, 5); /* IBV_EVENT_SQ_DRAINED */
	for (uint32_t i = 0; i < 20; i++) {
		b->now += 10 * TIME_NS_PER_MS;
		bed_turns(b);
		expect_silence(b);
	}
	bed_no_up(b);
	assert_int_equal(bed_state(b, b->qp, QPS_RTS), 0);
	bed_turns(b);
	expect_packet(b, OP_RC_WRITE_ONLY, S, 8);
	expect_packet(b, OP_RC_WRITE_ONLY, S + 1, 8);
	expect_silence(b);
	end(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(REQ_03_send_feed),
		TEST(QP_09_a_feed_rests),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
