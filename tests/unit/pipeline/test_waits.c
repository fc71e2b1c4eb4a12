/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits in a worker that loses its CPU: time passes between any two of its steps. What the peer
 * sees counts: from the frame that starts a wait, when it arrives or leaves, to the frame that ends
 * it. A wait may be too long, never too short (REQ-RNR-01, TMR-02, CC-03, RESP-RNR-08).
 */
#include "bed.h"
#include "full_port.h"
#include "worker.h"

#include <string.h>

#include <rte_ethdev.h>

#undef fail /* cmocka's; the pipeline has a function of that name */

#define TTR     (UINT64_C(4096) << 14) /* timeout 14, ns */
#define RNR_20  (10240 * TIME_NS_PER_US)
#define CODE_20 (0x20 + 20)
#define AWAY    (7 * TIME_NS_PER_MS) /* how long the CPU is somebody else's */
#define STEP    (20 * TIME_NS_PER_US)
#define LATE    TIME_NS_PER_MS /* beyond what a clock may differ by, and what a test adds */

static struct ring producer; /* of the QP's send ring */

/** Where time passes, and when frames passed there last. */
static struct {
	struct bed *b;
	ns_t rx, tx; /* before the next frames: they arrived, they are about to leave */
	ns_t arrived, left;
	uint32_t left_n; /* frames, ever */
	const struct rte_eth_rxtx_callback *rx_cb, *tx_cb;
} line;

/** The frames are here; then the worker loses its CPU, before it can do anything about them. */
static uint16_t
received(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint16_t max, void *arg)
{
	(void)port, (void)queue, (void)m, (void)max, (void)arg;
	if (n != 0) {
		line.b->now += line.rx;
		line.rx = 0;
		line.arrived = line.b->now;
	}
	return n;
}

/** The worker loses its CPU before frames leave that are made. */
static uint16_t
sending(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, void *arg)
{
	(void)port, (void)queue, (void)m, (void)arg;
	line.b->now += line.tx;
	line.tx = 0;
	line.left = line.b->now;
	line.left_n += n;
	return n;
}

static int
setup(void **state)
{
	struct bed *b;

	assert_int_equal(bed_setup(state), 0);
	b = *state;
	ring_attach(&producer, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride,
		false);
	memset(&line, 0, sizeof(line));
	line.b = b;
	line.rx_cb = rte_eth_add_rx_callback(bed_port(), 0, received, NULL);
	line.tx_cb = rte_eth_add_tx_callback(bed_port(), 0, sending, NULL);
	return line.rx_cb != NULL && line.tx_cb != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	rte_eth_remove_rx_callback(bed_port(), 0, line.rx_cb);
	rte_eth_remove_tx_callback(bed_port(), 0, line.tx_cb);
	return bed_teardown(state);
}

/** One SEND, posted; the worker hears of it, and time passes as the caller has said. */
static void
post_send(struct bed *b)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };
	struct ring_send_wqe *wqe = ring_produce_slot(&producer, 16);

	assert_non_null(wqe);
	memset(wqe, 0, producer.stride);
	wqe->opcode = WR_SEND;
	wqe->flags = SEND_SIGNALED;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct ring_sge){ .addr = MR_VA, .length = 16, .lkey = MR_KEY };
	ring_produce_commit(&producer);
	m.qp.qp = b->qp;
	assert_int_equal(bed_tell(b, &m), 0);
}

static void
answer(struct bed *b, uint32_t p, uint8_t syndrome)
{
	bed_send(b, &(struct wire_fields){ .opcode = OP_RC_ACKNOWLEDGE,
			    .psn = psn(p),
			    .aeth = { .syndrome = syndrome } });
}

/** Turn until a frame leaves, at most so long. @return when. */
static ns_t
until_left(struct bed *b, ns_t most)
{
	const uint32_t before = line.left_n;
	const ns_t end = b->now + most;

	while (line.left_n == before) {
		assert_true(b->now < end);
		b->now += STEP;
		bed_turn(b);
	}
	return line.left;
}

/** The next frame that leaves ends a wait that began at `from`. */
static void
expect_waited(struct bed *b, ns_t from, ns_t wait)
{
	const ns_t to = until_left(b, 2 * wait);

	assert_true(to >= from + wait + wait / 1200); /* by the slower of two clocks, too */
	assert_true(to <= from + wait + wait / 1000 + LATE);
}

/* The CPU is lost between the turn's beginning and the arrival of the RNR NAK. */
static void
REQ_RNR_01_counts_from_arrival(void **state)
{
	struct bed *b = *state;

	post_send(b);
	bed_turn(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
	answer(b, S, CODE_20);
	line.rx = AWAY;
	bed_turn(b);
	expect_waited(b, line.arrived, RNR_20);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
}

/* The same for a NAK that another worker received, and handed over. */
static void
REQ_RNR_01_counts_from_the_hand_off(void **state)
{
	struct bed *b = *state;
	struct rte_ring *ring = rte_ring_create("waits", 64, 0, RING_F_SC_DEQ);
	const struct wire_fields f = {
		.opcode = OP_RC_ACKNOWLEDGE, .psn = psn(S), .aeth = { .syndrome = CODE_20 }
	};
	const ns_t began = b->now;

	assert_non_null(ring);
	b->w->conf.handoff_in = ring;
	post_send(b);
	bed_turn(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
	b->now += AWAY; /* after the turn has read its clock */
	assert_int_equal(rte_ring_enqueue(ring, bed_frame(&f)), 0);
	line.arrived = b->now;
	worker_poll(b->w, began);
	expect_waited(b, line.arrived, RNR_20);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
	b->w->conf.handoff_in = NULL;
	rte_ring_free(ring);
}

/* TMR-06: the last valid response arrived so late. */
static void
TMR_06_counts_from_arrival(void **state)
{
	struct bed *b = *state;

	post_send(b);
	post_send(b);
	bed_turn(b);
	answer(b, S, 0x1f);
	line.rx = AWAY;
	bed_turn(b);
	expect_waited(b, line.arrived, TTR);
	bed_forget_output(b);
}

/* The CPU is lost between the making of a packet and its leaving. */
static void
TMR_02_counts_from_departure(void **state)
{
	struct bed *b = *state;

	line.tx = AWAY;
	post_send(b);
	bed_turn(b);
	expect_waited(b, line.left, TTR);
	line.tx = AWAY; /* a resend is no different */
	until_left(b, 2 * TTR);
	expect_waited(b, line.left, TTR);
	bed_forget_output(b);
}

/* ... and so between a NAK and the resend that it asks for, which does not wait for the turn. */
static void
TMR_02_counts_from_a_hurried_departure(void **state)
{
	struct bed *b = *state;

	post_send(b);
	bed_turn(b);
	answer(b, S, 0x60);
	line.tx = AWAY;
	bed_turn(b);
	assert_int_equal(line.left_n, 2);
	expect_waited(b, line.left, TTR);
	bed_forget_output(b);
}

/** Turns without looking at what comes out. */
static void
turns(struct bed *b, ns_t most)
{
	for (const ns_t end = b->now + most; b->now < end; b->now += STEP)
		worker_poll(b->w, b->now);
}

/* A packet that waits for its port is not lost: no second copy stands behind the first. */
static void
TMR_02_counts_from_the_end_of_a_backlog(void **state)
{
	struct bed *b = *state;
	ns_t left;

	fill_port(b);
	post_send(b);
	turns(b, 3 * TTR);
	empty_port();
	bed_turn(b);
	left = b->now;
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);
	expect_waited(b, left, TTR);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
}

/** In SQD. */
static void
set_timeout(struct bed *b, uint8_t timeout)
{
	const struct qp_attr attr = { .timeout = timeout };

	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_TIMEOUT), 0);
}

/* A timeout that is changed in SQD holds for what is under way: nobody else drains the QP. */
static void
TMR_03_changed_in_SQD(void **state)
{
	struct bed *b = *state;

	post_send(b);
	bed_turn(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
	assert_int_equal(bed_state(b, b->qp, QPS_SQD), 0);
	set_timeout(b, 0);
	turns(b, 3 * TTR);
	bed_turn(b);
	expect_silence(b);
	set_timeout(b, 14); /* over by now */
	until_left(b, LATE);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
	set_timeout(b, 15);
	expect_waited(b, line.left, 2 * TTR);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
	set_timeout(b, 13);
	expect_waited(b, line.left, TTR / 2);
	expect_packet(b, OP_RC_SEND_ONLY, S, 16);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 3);
}

/* A port that takes nothing for long loses what it is given: the QP ends as after other losses. */
static void
REQ_RETRY_01_port_that_is_stuck(void **state)
{
	struct bed *b = *state;

	fill_port(b);
	post_send(b);
	turns(b, 7 * TTR);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);
	turns(b, 4 * 10 * TTR);
	assert_int_equal(bed_cqe(b).status, 12); /* RETRY_EXC_ERR */
	empty_port();
	bed_turn(b);
	bed_forget_output(b);
	while (mbox_recv_up(&b->mbox, &(struct mbox_msg){ 0 }, 1) != 0)
		;
}

/* Nothing answers a UC QP: its sends are done when the port has them, and not while it is full. */
static void
UC_02_not_before_the_port_has_it(void **state)
{
	struct bed *b = *state;

	b->qp->type = b->qp->req.qp_type = QPT_UC;
	qp_service_set(b->qp, WIRE_UC);
	b->qp->req.timeout = 0;
	fill_port(b);
	post_send(b);
	post_send(b);
	turns(b, 3 * TTR);
	bed_no_cqe(b);
	empty_port();
	bed_turn(b);
	expect_packet(b, OP_UC_SEND_ONLY, S, 16);
	expect_packet(b, OP_UC_SEND_ONLY, S + 1, 16);
	assert_int_equal(bed_cqe(b).status, 0);
	assert_int_equal(bed_cqe(b).status, 0);
	bed_no_cqe(b);
	turns(b, 3 * TTR);
	expect_silence(b);
}

/* A UC QP is destroyed while its packet waits for the port. */
static void
UC_02_gone_from_a_backlog(void **state)
{
	struct bed *b = *state;

	b->qp->type = b->qp->req.qp_type = QPT_UC;
	qp_service_set(b->qp, WIRE_UC);
	fill_port(b);
	post_send(b);
	bed_qp_gone(b, b->qp);
	empty_port();
	bed_turn(b);
	bed_forget_output(b);
	bed_no_cqe(b);
	b->qp = bed_qp(b, QPN, PEER_QPN);
}

/* A QP is destroyed while its packet waits for the port. */
static void
TMR_10_gone_from_a_backlog(void **state)
{
	struct bed *b = *state;

	fill_port(b);
	post_send(b);
	bed_qp_gone(b, b->qp);
	empty_port();
	bed_turn(b);
	bed_forget_output(b);
	b->qp = bed_qp(b, QPN, PEER_QPN);
	turns(b, 2 * TTR);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);
}

/* Sending goes on for long while the oldest packet waits for its answer: the timer is its own. */
static void
TMR_05_departures_do_not_restart(void **state)
{
	struct bed *b = *state;
	ns_t first;

	post_send(b);
	bed_turn(b);
	first = line.left;
	for (int i = 0; i < 6; i++) {
		b->now += TTR / 8;
		line.tx = TIME_NS_PER_MS;
		post_send(b);
		bed_turn(b);
	}
	assert_int_equal(line.left_n, 7);
	expect_waited(b, first, TTR);
	bed_forget_output(b);
}

/* The responder's own wait: a retry that came in time by the peer's clock is not too early here. */
static void
RESP_RNR_08_counts_from_arrival(void **state)
{
	struct bed *b = *state;
	const struct wire_fields f = send_only(E, 16);
	ns_t nak;

	while (ring_consume_count(&b->qp->rq) != 0)
		ring_consume_done(&b->qp->rq, 1);
	b->qp->resp.knobs |= RESP_KNOB_EARLY_DROP;
	b->qp->resp.min_rnr_timer = 20;
	bed_send(b, &f);
	bed_turn(b);
	nak = line.left;
	expect_ack(b, CODE_20, E, 0);
	bed_post(b, 1);
	b->now = nak + RNR_20 - AWAY; /* the turn begins, and the retry arrives in time */
	line.rx = AWAY;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	bed_cqe(b);
}

static void
marked(struct bed *b, uint32_t p)
{
	const struct wire_fields f = write_only(p, MR_VA, 16);
	struct wire_path path = bed_path();

	path.tos = 3; /* CE */
	bed_put(b, bed_frame_on(&path, &f));
	bed_turn(b);
	bed_forget_output(b);
}

/* CC-03: at most one CNP in an interval, as the peer receives them. */
static void
CC_03_counts_from_departure(void **state)
{
	struct bed *b = *state;
	ns_t left;

	b->qp->flags |= QPF_CNP;
	b->qp->cnp_interval_ns = 50 * TIME_NS_PER_US;
	line.tx = 40 * TIME_NS_PER_US;
	marked(b, E);
	left = line.left;
	assert_int_equal(bed_stat(b, STAT_np_cnp_sent), 1);
	b->now = left + 49 * TIME_NS_PER_US;
	marked(b, E + 1);
	assert_int_equal(bed_stat(b, STAT_np_cnp_sent), 1);
	b->now = left + 50 * TIME_NS_PER_US;
	marked(b, E + 2);
	assert_int_equal(bed_stat(b, STAT_np_cnp_sent), 2);
	assert_int_equal(bed_stat(b, STAT_np_ecn_marked_roce_packets), 3);
}

#define WAIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT(REQ_RNR_01_counts_from_arrival),
		WAIT(REQ_RNR_01_counts_from_the_hand_off),
		WAIT(TMR_06_counts_from_arrival),
		WAIT(TMR_02_counts_from_departure),
		WAIT(TMR_02_counts_from_a_hurried_departure),
		WAIT(TMR_02_counts_from_the_end_of_a_backlog),
		WAIT(TMR_03_changed_in_SQD),
		WAIT(REQ_RETRY_01_port_that_is_stuck),
		WAIT(UC_02_not_before_the_port_has_it),
		WAIT(UC_02_gone_from_a_backlog),
		WAIT(TMR_10_gone_from_a_backlog),
		WAIT(TMR_05_departures_do_not_restart),
		WAIT(RESP_RNR_08_counts_from_arrival),
		WAIT(CC_03_counts_from_departure),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
