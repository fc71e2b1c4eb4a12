/* SPDX-License-Identifier: BSD-3-Clause */
/* FLOW-07: a peer without credit hears of receives that a client posts, by its doorbells alone. */
#include <string.h>

#include "bed.h"
#include "ring_bell.h"

enum { BELLS = 64 };

static struct qp_client client;
static struct ring_bells bells; /* the client's view */

/** The bed's QP is a client's that announces credits, with so many receives posted. */
static void
client_of(struct bed *b, uint32_t posted)
{
	static uint32_t memory[BELLS] __attribute__((aligned(64)));
	struct mbox_msg m = { .type = MBOX_CLIENT_ATTACH };

	memset(memory, 0, sizeof(memory));
	client = (struct qp_client){ .id = 1 };
	ring_bells_attach(&client.bells, memory, BELLS);
	ring_bells_attach(&bells, memory, BELLS);
	m.client.client = &client;
	assert_int_equal(bed_tell(b, &m), 0);
	b->qp->sq.share = &client.share;
	b->qp->resp.knobs |= RESP_KNOB_CREDITS;
	ring_consume_done(&b->qp->rq, ring_consume_count(&b->qp->rq));
	bed_post(b, posted);
	bed_turn(b);
	bed_forget_output(b);
}

/** As lib/client/post.c does it. @return was the doorbell rung? */
static bool
post(struct bed *b, uint32_t n)
{
	bed_post(b, n);
	if (atomic_load(&b->rq_producer.sh->alert) == 0 || !ring_bell_is_due(&b->rq_producer))
		return false;
	assert_int_equal(ring_bells_put(&bells, QPN | RING_BELL_RECV), 0);
	return true;
}

static void
send(struct bed *b, uint32_t p)
{
	const struct wire_fields f = send_only(p, 8);

	bed_send(b, &f);
	bed_turns(b);
	bed_cqe(b);
}

static void
FLOW_07_posted_after_credit_0(void **state)
{
	struct bed *b = *state;

	client_of(b, 1);
	send(b, E);
	expect_ack(b, 0, E, 1);
	bed_turns(b);
	expect_silence(b);
	assert_true(post(b, 3));
	bed_turns(b);
	expect_ack(b, 3, E, 1); /* code 3: three receives */
	expect_silence(b);
	/* The peer knows that there are some: nothing more by itself, and no more doorbells. */
	assert_false(post(b, 1));
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_doorbells), 1);
}

/* Who announced more than 0 owes nothing, though it was told. */
static void
FLOW_07_not_after_other_credits(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 8);

	client_of(b, 1);
	bed_send(b, &f);
	bed_turns(b);
	expect_ack(b, 1, E, 1);
	assert_true(post(b, 1));
	bed_turns(b);
	expect_silence(b);
}

/* Behind the responses that are owed: an ACK of a READ would say that they are lost. */
static void
FLOW_07_behind_responses(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E + 1, MR_VA, 65536);
	uint32_t i = 0, before;

	client_of(b, 1);
	send(b, E);
	expect_ack(b, 0, E, 1);
	bed_send(b, &f);
	bed_turn(b);
	before = b->out_n;
	assert_in_range(before, 1, 63); /* some wait for the next turn */
	for (; i < 64; i++) {
		if (i == before) {
			assert_true(post(b, 2));
			bed_turns(b);
		}
		expect_packet(b,
			i == 0    ? OP_RC_READ_RESPONSE_FIRST
			: i == 63 ? OP_RC_READ_RESPONSE_LAST
				  : OP_RC_READ_RESPONSE_MIDDLE,
			E + 1 + i, PMTU);
	}
	expect_ack(b, 2, E + 64, 2);
	expect_silence(b);
}

/* A doorbell for nothing, again and again, costs the client its turns; the peer hears nothing. */
static void
FLOW_07_no_receive_no_ack(void **state)
{
	struct bed *b = *state;

	client_of(b, 1);
	send(b, E);
	expect_ack(b, 0, E, 1);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(ring_bells_put(&bells, QPN | RING_BELL_RECV), 0);
		bed_turns(b);
	}
	expect_silence(b);
	assert_true(post(b, 1));
	bed_turns(b);
	expect_ack(b, 1, E, 1);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(ring_bells_put(&bells, QPN | RING_BELL_RECV), 0);
		bed_turns(b);
	}
	expect_silence(b);
}

/* Without the knob no credit was announced (FLOW-02), and nobody has to be told. */
static void
FLOW_02_nothing_is_owed(void **state)
{
	struct bed *b = *state;

	client_of(b, 1);
	b->qp->resp.knobs = 0;
	send(b, E);
	expect_ack(b, AETH_CREDIT_NONE, E, 1);
	assert_false(post(b, 1));
	bed_turns(b);
	expect_silence(b);
}

/* QP-13: in ERR the same word and doorbell have the receives flushed, and nothing is sent. */
static void
QP_13_flushed_not_announced(void **state)
{
	struct bed *b = *state;

	client_of(b, 1);
	send(b, E);
	expect_ack(b, 0, E, 1);
	assert_int_equal(bed_state(b, b->qp, QPS_ERR), 0);
	assert_true(post(b, 1));
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(bed_cqe(b).status, WC_WR_FLUSH_ERR);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(FLOW_07_posted_after_credit_0),
		TEST(FLOW_07_not_after_other_credits),
		TEST(FLOW_07_behind_responses),
		TEST(FLOW_07_no_receive_no_ack),
		TEST(FLOW_02_nothing_is_owed),
		TEST(QP_13_flushed_not_announced),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
