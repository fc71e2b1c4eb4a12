/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP that sends alone and goes back for what it loses (REQ-NAK-01): what it makes before it hears
 * of a loss is in vain, and it hears of none within a turn. So a turn has as many packets as make
 * no long one, 4 at least and 16 at most. Time passes as frames leave, so much for each.
 */
#include "apps_rig.h"
#include "worker.h"

#include <rte_ethdev.h>

#undef fail /* cmocka's; the pipeline has a function of that name */

enum { ALL = 16, LEAST = 4, LONG = 8000, SHORT = 6000, TURNS = 100 };

static struct {
	struct bed *b;
	ns_t cost; /* of a frame */
	ns_t once; /* ... and of the turn, once */
	const struct rte_eth_rxtx_callback *cb;
} line;

static uint16_t
sending(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, void *arg)
{
	(void)port, (void)queue, (void)m, (void)arg;
	line.b->now += n * line.cost + line.once;
	line.once = 0;
	return n;
}

static int
setup(void **state)
{
	assert_int_equal(bed_setup(state), 0);
	memset(&line, 0, sizeof(line));
	line.b = *state;
	line.cb = rte_eth_add_tx_callback(bed_port(), 0, sending, NULL);
	attach(line.b, VICTIM, 1, WR_RDMA_WRITE, PMTU);
	return line.cb != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	detach(*state, VICTIM);
	rte_eth_remove_tx_callback(bed_port(), 0, line.cb);
	return bed_teardown(state);
}

/** One turn, all of the one before acknowledged. @return packets. */
static uint32_t
turn(struct bed *b, bool lossy)
{
	struct app *a = &apps[VICTIM];
	struct requester *r = &a->qp[0].qp->req;

	r->open = lossy ? r->window : REQ_OPEN_ALL;
	post(a);
	acknowledge(b, a);
	bed_forget_output(b);
	bed_turn(b);
	count_output(b);
	return b->out_n;
}

/** @return packets of the last of many turns in which a frame costs so much. */
static uint32_t
settles(struct bed *b, ns_t cost, bool lossy)
{
	uint32_t n = 0;

	line.cost = cost;
	for (uint32_t t = 0; t < TURNS; t++) {
		n = turn(b, lossy);
		assert_in_range(n, LEAST, ALL);
	}
	assert_int_equal(requester_is_free(&apps[VICTIM].qp[0].qp->req), !lossy);
	return n;
}

static void
REQ_NAK_01_a_turn_is_short(void **state)
{
	static const ns_t costs[] = { 510, 700, 1000, 1400, 1900 };

	for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
		const uint32_t n = settles(*state, costs[i], true);

		assert_in_range(n * costs[i], SHORT, LONG);
	}
}

static void
REQ_NAK_01_no_fewer_than_four(void **state)
{
	assert_int_equal(settles(*state, 5000, true), LEAST);
}

/* Where a packet is cheap, and where time stands, a turn is as long as ever. */
static void
REQ_NAK_01_cheap_packets(void **state)
{
	assert_int_equal(settles(*state, 380, true), ALL);
	assert_int_equal(settles(*state, 0, true), ALL);
}

/* It had few, and now packets are cheap. */
static void
REQ_NAK_01_more_again(void **state)
{
	assert_int_equal(settles(*state, 5000, true), LEAST);
	assert_int_equal(settles(*state, 300, true), ALL);
}

/* A worker that loses its CPU once has one packet fewer, and soon has it again. */
static void
REQ_NAK_01_one_long_turn(void **state)
{
	assert_int_equal(settles(*state, 300, true), ALL);
	line.once = 10 * TIME_NS_PER_MS;
	assert_int_equal(turn(*state, true), ALL);
	assert_int_equal(turn(*state, true), ALL - 1);
	assert_int_equal(settles(*state, 300, true), ALL);
}

/* Who loses nothing has all. So has, with req.gap=patch, who goes back for nothing. */
static void
who_does_not_go_back(void **state)
{
	struct requester *r = &apps[VICTIM].qp[0].qp->req;

	assert_int_equal(settles(*state, 1400, false), ALL);
	r->knobs |= REQ_KNOB_PATCH;
	assert_int_equal(settles(*state, 1400, true), ALL);
	r->unpatched = 1; /* the peer keeps nothing */
	assert_true(settles(*state, 1400, true) < ALL);
}

int
main(void)
{
#define LOSSY_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		LOSSY_TEST(REQ_NAK_01_a_turn_is_short),
		LOSSY_TEST(REQ_NAK_01_no_fewer_than_four),
		LOSSY_TEST(REQ_NAK_01_cheap_packets),
		LOSSY_TEST(REQ_NAK_01_more_again),
		LOSSY_TEST(REQ_NAK_01_one_long_turn),
		LOSSY_TEST(who_does_not_go_back),
	};

	return cmocka_run_group_tests_name("pipeline_lossy", tests, bed_group_setup, NULL);
}
