/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local destinations (LB): the queue of a QP whose path leads to an address of its own worker's
 * port. What a full port does, it does; nothing of it is seen on the wire.
 */
#include "bed.h"
#include "loan_bed.h"
#include "local.h"
#include "reply.h"
#include "worker.h"

static uint32_t
waiting(const struct bed *b)
{
	const struct tx_queue *q = &b->w->tx[b->w->ports_n];

	return q->tail - q->head;
}

/** One ACK of the bed's QP, of which nobody knows at the other end. */
static void
make_ack(struct bed *b, uint32_t p)
{
	struct qp *qp = b->qp;

	qp_path_changed(qp);
	pipeline_reply_ack(b->w, qp, 0x1f, psn(p), 1);
}

/* LB-01, LB-03: what is sent comes back as received by the port, and the wire sees nothing. */
static void
LB_03_frames_come_back(void **state)
{
	struct bed *b = *state;

	assert_int_equal(b->w->outs_n, b->w->ports_n);
	bed_make_local(b, b->qp, 0x77);
	assert_int_equal(b->w->outs_n, 2 * b->w->ports_n);
	make_ack(b, E);
	assert_int_equal(waiting(b), 1);
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(waiting(b), 0);
	assert_int_equal(bed_stat(b, STAT_local_packets), 1);
	assert_int_equal(bed_stat(b, STAT_tx_packets), 1);
	assert_int_equal(bed_stat(b, STAT_rx_packets), 1);
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_15), 1); /* QP 0x77 is nowhere */
	assert_int_equal(worker_port_stats(b->w, 0)->c[STAT_sent_pkts], 1);
	assert_int_equal(worker_port_stats(b->w, 0)->c[STAT_rx_packets], 1);
}

/* A turn takes a bounded part of what waits, and the rest stays in order. */
static void
a_turn_is_bounded(void **state)
{
	const uint32_t most = (1 + LOCAL_ROUNDS) * LOCAL_TURN;
	struct bed *b = *state;

	bed_make_local(b, b->qp, 0x77);
	for (uint32_t i = 0; i < most + 40; i++)
		make_ack(b, E + i);
	worker_poll(b->w, b->now);
	assert_int_equal(waiting(b), 40);
	assert_int_equal(worker_next(b->w), 0); /* not asleep with these */
	worker_poll(b->w, b->now);
	assert_int_equal(waiting(b), 0);
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_15), most + 40);
}

/*
 * What is counted at local queues is their ports' as soon as the worker comes to rest. While it
 * rests it looks for more now and then: that takes longer than an idle turn does.
 */
static void
counted_at_rest(void **state)
{
	struct bed *b = *state;

	bed_make_local(b, b->qp, 0x77);
	make_ack(b, E);
	worker_poll(b->w, b->now);
	worker_poll(b->w, b->now);
	assert_int_equal(worker_port_stats(b->w, 0)->c[STAT_local_packets], 1);
	assert_int_equal(b->w->unsettled, 0);
	stats_add(&b->w->port_stats[b->w->ports_n], STAT_local_packets, 1);
	for (uint32_t turn = 1; turn < SETTLE_TURNS; turn++) {
		worker_poll(b->w, b->now);
		assert_int_equal(b->w->unsettled, turn);
		assert_int_equal(worker_port_stats(b->w, 0)->c[STAT_local_packets], 1);
	}
	worker_poll(b->w, b->now);
	assert_int_equal(worker_port_stats(b->w, 0)->c[STAT_local_packets], 2);
}

/* LB-05: as with a full port, frames wait while another worker's ring is full; none is lost. */
static void
LB_05_owners_without_room(void **state)
{
	struct bed *b = *state;
	struct rte_ring *r = rte_ring_create("local_owner", 64, SOCKET_ID_ANY, 0);

	assert_non_null(r);
	bed_make_local(b, b->qp, 0x77);
	b->w->conf.workers_n = 2;
	b->w->conf.handoff[1] = r;
	while (rte_ring_free_count(r) >= PIPELINE_BURST)
		assert_int_equal(rte_ring_enqueue(r, b), 0);
	for (uint32_t i = 0; i < TX_HIGH + 1; i++)
		make_ack(b, E + i);
	for (uint32_t i = 0; i < 10; i++)
		worker_poll(b->w, b->now);
	assert_int_equal(waiting(b), TX_HIGH + 1);
	assert_true(tx_is_congested(b->w, b->w->port_of[b->qp->out])); /* requests pause */
	assert_int_equal(bed_stat(b, STAT_tx_packets), 0);
	rte_ring_reset(r);
	for (uint32_t i = 0; i < 10; i++)
		worker_poll(b->w, b->now);
	assert_int_equal(waiting(b), 0);
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_15), TX_HIGH + 1);
	assert_int_equal(bed_stat(b, STAT_tx_backlog_drop), 0);
	b->w->conf.workers_n = 1;
	b->w->conf.handoff[1] = NULL;
	rte_ring_free(r);
}

/* What is left in the queue when a worker ends is given back: the bed counts the buffers. */
static void
the_end(void **state)
{
	struct bed *b = *state;

	bed_make_local(b, b->qp, 0x77);
	for (uint32_t i = 0; i < 100; i++)
		make_ack(b, E + i);
	bed_worker_again(b);
}

/*
 * Answers that wait are fewer with each turn, though each one brings the next READ. What made them
 * wait was one READ; with as many READs a turn as answers each READ would wait for ever, and cost
 * twice as much (RESP-13).
 */
static void
RESP_13_answers_do_not_wait_for_ever(void **state)
{
	enum { PAIRS = 40, TURNS = 200 }; /* more at once than a turn sends */
	struct bed *b = *state;
	struct ring producer[PAIRS];
	struct qp *qp[PAIRS];

	for (uint32_t i = 0; i < PAIRS; i++) { /* each is its own peer */
		qp[i] = bed_qp(b, SENDER + i, SENDER + i);
		bed_make_local(b, qp[i], SENDER + i);
		qp[i]->resp.epsn = psn(S);
		ring_attach(&producer[i], qp[i]->sq.ring.sh, qp[i]->sq.ring.mask + 1,
			qp[i]->sq.ring.stride, false);
		loan_post_to(b, qp[i], &producer[i], WR_RDMA_READ, FROM, TO, PMTU + 1)->flags = 0;
	}
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		for (uint32_t i = 0; i < PAIRS; i++)
			while (ring_produce_slot(&producer[i], 16) != NULL)
				loan_post_to(b, qp[i], &producer[i], WR_RDMA_READ, FROM, TO, 8)
					->flags = 0;
		worker_poll(b->w, b->now);
	}
	assert_int_equal(b->w->answering, 0);
	assert_true(bed_stat(b, STAT_rx_read_requests) > TURNS * REQUEST_TURN / 2);
	for (uint32_t i = 0; i < PAIRS; i++)
		bed_qp_gone(b, qp[i]);
}

static bool
is_on(void *ctx)
{
	(void)ctx;
	return true;
}

static uint16_t
lose_all(void *ctx, struct rte_mbuf **m, uint16_t n, uint16_t max)
{
	(void)ctx;
	(void)max;
	rte_pktmbuf_free_bulk(m, n);
	return 0;
}

static int
tell_of_move(struct bed *b, enum mbox_type type)
{
	struct mbox_msg m = { .type = type };

	if (type == MBOX_QP_RELEASE)
		m.move = (struct mbox_move){ b->qp, b->conf.index };
	else
		m.qp.qp = b->qp;
	return bed_tell(b, &m);
}

/*
 * RESP-SEQ-01: before a QP goes to another worker, what others have handed over for it is served,
 * behind bursts for an impaired port that loses all of them, too.
 */
static void
RESP_SEQ_01_behind_frames_that_get_lost(void **state)
{
	const struct pipeline_impair bad = { .is_on = is_on, .receive = lose_all };
	const struct wire_fields f = write_only(E, MR_VA, 8);
	struct rte_ring *r = rte_ring_create("behind", 256, 0, RING_F_SC_DEQ);
	struct bed *b = *state;
	struct rte_mbuf *m;

	assert_non_null(r);
	b->conf.handoff_in = r;
	b->conf.ports[0].impair = &bad;
	bed_worker_again(b);
	for (uint32_t i = 0; i < 3 * PIPELINE_BURST; i++) {
		m = bed_frame(&f);
		m->port = bed_port() | QP_OUT_LOCAL;
		assert_int_equal(rte_ring_enqueue(r, m), 0);
	}
	m = bed_frame(&f);
	m->port = bed_port();
	assert_int_equal(rte_ring_enqueue(r, m), 0);
	assert_int_equal(tell_of_move(b, MBOX_QP_RELEASE), 0);
	assert_int_equal(b->qp->resp.epsn.v, E + 1);
	assert_int_equal(tell_of_move(b, MBOX_QP_ADOPT), 0);
	worker_poll(b->w, b->now); /* it has nothing to send */
	b->conf.handoff_in = NULL;
	b->conf.ports[0].impair = NULL;
	bed_worker_again(b);
	rte_ring_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(LB_03_frames_come_back),
		TEST(a_turn_is_bounded),
		TEST(counted_at_rest),
		TEST(LB_05_owners_without_room),
		TEST(RESP_13_answers_do_not_wait_for_ever),
		TEST(RESP_SEQ_01_behind_frames_that_get_lost),
		TEST(the_end),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
