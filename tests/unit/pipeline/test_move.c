/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP goes from one worker to another while packets for it are everywhere. */
#include <errno.h>
#include <string.h>

#include "bed.h"
#include "qp_mcast.h"
#include "worker.h"

/** Two workers that share the bed's port; the first one polls it. */
struct two {
	struct bed *b;
	struct worker *w[2];
	struct mbox mbox; /* of the second */
	struct rte_ring *ring[2];
	uint32_t next; /* PSN */
};

static void
two_open(struct two *t, struct bed *b)
{
	struct worker_conf conf;

	t->b = b;
	t->next = E;
	for (uint32_t i = 0; i < 2; i++) {
		t->ring[i] = rte_ring_create(i == 0 ? "move0" : "move1", 4096, 0, RING_F_SC_DEQ);
		assert_non_null(t->ring[i]);
		b->conf.handoff[i] = t->ring[i];
	}
	b->conf.workers_n = 2;
	b->conf.handoff_in = t->ring[0];
	bed_worker_again(b);
	assert_int_equal(mbox_create(&t->mbox, 78, 64, 0), 0);
	conf = b->conf;
	conf.index = 1;
	conf.mbox = &t->mbox;
	conf.handoff_in = t->ring[1];
	conf.ports[0].polls_rx = false;
	t->w[0] = b->w;
	t->w[1] = worker_create(&conf);
	assert_non_null(t->w[1]);
}

static void
two_close(struct two *t)
{
	qp_table_give(t->b->conf.qps, t->b->qp, 0);
	worker_destroy(t->w[1]);
	mbox_destroy(&t->mbox);
	for (uint32_t i = 0; i < 2; i++)
		rte_ring_free(t->ring[i]);
	t->b->conf.workers_n = 1;
	t->b->conf.handoff_in = NULL;
	bed_worker_again(t->b);
}

/** n WRITEs, one PSN after the other, into the port. */
static void
arrive(struct two *t, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct wire_fields f = write_only(t->next++, MR_VA, 4);

		bed_send(t->b, &f);
	}
}

static void
poll(struct two *t, uint32_t worker)
{
	for (int i = 0; i < 10; i++)
		worker_poll(t->w[worker], t->b->now);
}

/** A message to one of them; it polls until it has answered. @return its rc. */
static int
tell(struct two *t, uint32_t worker, enum mbox_type type, uint16_t to)
{
	struct mbox *mbox = worker == 0 ? &t->b->mbox : &t->mbox;
	struct mbox_msg m = { .type = type, .cookie = 99 }, done = { .cookie = 0 };

	if (type == MBOX_QP_PARK || type == MBOX_QP_RELEASE)
		m.move = (struct mbox_move){ t->b->qp, to };
	else
		m.qp.qp = t->b->qp;
	assert_int_equal(mbox_send_down(mbox, &m), 0);
	for (int i = 0; i < 100 && mbox_recv_done(mbox, &done, 1) == 0; i++)
		worker_poll(t->w[worker], t->b->now);
	assert_int_equal(done.cookie, 99);
	return done.done.rc;
}

/** Everything that arrived was served in order, `first` of it by the first worker. */
static void
served(struct two *t, uint64_t first)
{
	const struct stats_block *a = worker_stats(t->w[0]), *b = worker_stats(t->w[1]);

	assert_int_equal(t->b->qp->resp.epsn.v, t->next);
	assert_int_equal(a->c[STAT_out_of_sequence] + b->c[STAT_out_of_sequence], 0);
	assert_int_equal(a->c[STAT_duplicate_request] + b->c[STAT_duplicate_request], 0);
	assert_int_equal(a->c[STAT_rx_handoff_lost] + b->c[STAT_rx_handoff_lost], 0);
	assert_int_equal(a->c[STAT_rcvd_pkts], first);
	assert_int_equal(a->c[STAT_rcvd_pkts] + b->c[STAT_rcvd_pkts], t->next - E);
}

/* RESP-SEQ-01: to the worker that polls its port, with older packets in the owner's ring. */
static void
RESP_SEQ_01_towards_the_port(void **state)
{
	struct two t;

	two_open(&t, *state);
	qp_table_give(t.b->conf.qps, t.b->qp, 1);
	arrive(&t, 40);
	poll(&t, 0);
	assert_int_equal(rte_ring_count(t.ring[1]), 40);
	assert_int_equal(tell(&t, 0, MBOX_QP_PARK, 0), 0);
	arrive(&t, 50);
	poll(&t, 0); /* kept aside, since older ones wait elsewhere */
	assert_int_equal(rte_ring_count(t.ring[1]), 40);
	assert_int_equal(t.b->qp->resp.epsn.v, E);
	assert_int_equal(tell(&t, 1, MBOX_QP_RELEASE, 0), 0);
	assert_int_equal(t.b->qp->resp.epsn.v, E + 40);
	arrive(&t, 10);
	poll(&t, 0);
	assert_int_equal(t.b->qp->resp.epsn.v, E + 40);
	arrive(&t, 7); /* arrives with the message */
	assert_int_equal(tell(&t, 0, MBOX_QP_ADOPT, 0), 0);
	tell(&t, 1, MBOX_QP_UNPARK, 0);
	arrive(&t, 20);
	poll(&t, 0);
	assert_int_equal(t.b->qp->worker, 0);
	served(&t, 87);
	two_close(&t);
}

/* RESP-SEQ-01: away from the worker that polls its port. */
static void
RESP_SEQ_01_away_from_the_port(void **state)
{
	struct two t;

	two_open(&t, *state);
	arrive(&t, 20);
	poll(&t, 0);
	assert_int_equal(tell(&t, 1, MBOX_QP_PARK, 1), 0);
	arrive(&t, 30);
	assert_int_equal(tell(&t, 0, MBOX_QP_RELEASE, 1), 0);
	assert_int_equal(bed_up(t.b, MBOX_EVENT).ev.code, AEQ_SUSPEND_COMPLETE); /* AEQ-05 */
	poll(&t, 0);
	assert_int_equal(t.b->qp->resp.epsn.v, E + 50); /* came before the message was read */
	arrive(&t, 40);
	poll(&t, 0);
	poll(&t, 1);
	assert_int_equal(t.b->qp->resp.epsn.v, E + 50); /* nobody's: the new owner keeps them */
	arrive(&t, 5);
	poll(&t, 0); /* in its ring */
	assert_int_equal(tell(&t, 1, MBOX_QP_ADOPT, 1), 0);
	tell(&t, 0, MBOX_QP_UNPARK, 0);
	arrive(&t, 6);
	poll(&t, 0);
	poll(&t, 1);
	assert_int_equal(t.b->qp->worker, 1);
	served(&t, 50);
	two_close(&t);
}

/* A move that is given up: what was kept aside goes to the owner. */
static void
given_up(void **state)
{
	struct two t;

	two_open(&t, *state);
	qp_table_give(t.b->conf.qps, t.b->qp, 1);
	assert_int_equal(tell(&t, 0, MBOX_QP_PARK, 0), 0);
	arrive(&t, 40);
	poll(&t, 0);
	assert_int_equal(rte_ring_count(t.ring[1]), 0);
	tell(&t, 0, MBOX_QP_UNPARK, 0);
	assert_int_equal(rte_ring_count(t.ring[1]), 40);
	arrive(&t, 8);
	poll(&t, 0);
	poll(&t, 1);
	served(&t, 0);
	two_close(&t);
}

/* More than can be kept aside is lost, counted, and freed; what is kept goes with the worker. */
static void
kept_aside_is_bounded(void **state)
{
	struct two t;

	two_open(&t, *state);
	qp_table_give(t.b->conf.qps, t.b->qp, 1);
	assert_int_equal(tell(&t, 0, MBOX_QP_PARK, 0), 0);
	for (int i = 0; i < 40; i++) {
		arrive(&t, 32);
		poll(&t, 0);
	}
	assert_int_equal(worker_stats(t.w[0])->c[STAT_rx_handoff_lost], 40 * 32 - 1024);
	two_close(&t);
}

#define READERS 24 /* so many that a worker is not done before it looks at its mailbox */

/** What left for the bed's peer is the answer, one PSN after the other. */
static void
answered(uint32_t *seen)
{
	void *m;

	while (rte_ring_dequeue(bed_far_end(), &m) == 0) {
		const uint8_t *p = rte_pktmbuf_mtod((struct rte_mbuf *)m, const uint8_t *);

		if (p[49] == PEER_QPN) {
			assert_int_equal(p[53], (uint8_t)(E + *seen));
			(*seen)++;
		}
		rte_pktmbuf_free(m);
	}
}

/** tell() for a worker that is busy with answers. */
static void
tell_busy(struct two *t, struct mbox *mbox, uint32_t worker, enum mbox_type type, uint32_t *seen)
{
	struct mbox_msg m = { .type = type, .cookie = 98 }, done = { .cookie = 0 };

	if (type == MBOX_QP_RELEASE)
		m.move = (struct mbox_move){ t->b->qp, 1 };
	else
		m.qp.qp = t->b->qp;
	assert_int_equal(mbox_send_down(mbox, &m), 0);
	for (int i = 0; i < 100 && mbox_recv_done(mbox, &done, 1) == 0; i++) {
		worker_poll(t->w[worker], t->b->now);
		answered(seen);
	}
	assert_int_equal(done.cookie, 98);
	assert_int_equal(done.done.rc, 0);
}

/* RESP-13: READs that are being answered go on where they were. */
static void
RESP_13_answers_move_along(void **state)
{
	struct bed *b = *state;
	struct qp *others[READERS];
	uint32_t seen = 0, before;
	struct two t;

	two_open(&t, b);
	for (uint32_t q = 0; q < READERS; q++)
		others[q] = bed_qp(b, QPN + 1 + q, 0x80 + q);
	assert_int_equal(tell(&t, 1, MBOX_QP_PARK, 1), 0);
	for (uint32_t q = 0; q <= READERS; q++)
		for (uint32_t i = 0; i < 4; i++) {
			struct wire_fields f = read_request(E + 64 * i, MR_VA, 64 * PMTU);

			f.dest_qpn = QPN + q;
			bed_send(b, &f);
		}
	tell_busy(&t, &b->mbox, 0, MBOX_QP_RELEASE, &seen);
	before = seen;
	assert_in_range(before, 8, 255);
	assert_int_equal(b->qp->flags & QPF_ANSWERING, 0);
	for (int i = 0; i < 200; i++) {
		worker_poll(t.w[0], b->now);
		answered(&seen);
	}
	assert_int_equal(seen, before); /* the old owner says no more */
	tell_busy(&t, &t.mbox, 1, MBOX_QP_ADOPT, &seen);
	tell(&t, 0, MBOX_QP_UNPARK, 0);
	for (int i = 0; i < 100; i++) {
		worker_poll(t.w[1], b->now);
		answered(&seen);
	}
	assert_int_equal(seen, 256);
	for (uint32_t q = 0; q < READERS; q++)
		bed_qp_gone(b, others[q]);
	two_close(&t);
}

/* TMR-01: what was sent and not acknowledged is sent again by whom the QP belongs to now. */
static void
TMR_01_timers_move_along(void **state)
{
	const ns_t longest = (UINT64_C(4096) << 14) * 4;
	struct bed *b = *state;
	struct ring_send_wqe *wqe;
	struct ring producer;
	struct two t;
	void *m;

	two_open(&t, b);
	ring_attach(&producer, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride,
		false);
	wqe = ring_produce_slot(&producer, 16);
	assert_non_null(wqe);
	memset(wqe, 0, producer.stride);
	wqe->opcode = WR_SEND;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct ring_sge){ .addr = MR_VA, .length = 4, .lkey = MR_KEY };
	ring_produce_commit(&producer);
	assert_int_equal(tell(&t, 0, MBOX_QP_POSTED, 0), 0);
	poll(&t, 0);
	assert_int_equal(rte_ring_count(bed_far_end()), 1);
	assert_int_equal(tell(&t, 1, MBOX_QP_PARK, 1), 0);
	assert_int_equal(tell(&t, 0, MBOX_QP_RELEASE, 1), 0);
	assert_int_equal(tell(&t, 1, MBOX_QP_ADOPT, 1), 0);
	tell(&t, 0, MBOX_QP_UNPARK, 0);
	b->now += longest;
	poll(&t, 0);
	assert_int_equal(rte_ring_count(bed_far_end()), 1);
	poll(&t, 1);
	assert_int_equal(rte_ring_count(bed_far_end()), 2);
	while (rte_ring_dequeue(bed_far_end(), &m) == 0) {
		const uint8_t *p = rte_pktmbuf_mtod((struct rte_mbuf *)m, const uint8_t *);

		assert_int_equal(p[42], OP_RC_SEND_ONLY);
		assert_int_equal(p[52] << 8 | p[53], S);
		rte_pktmbuf_free(m);
	}
	/* Released and not adopted: no timer may be in a wheel when its worker goes. */
	assert_int_equal(tell(&t, 0, MBOX_QP_PARK, 0), 0);
	assert_int_equal(tell(&t, 1, MBOX_QP_RELEASE, 0), 0);
	two_close(&t);
}

/** A group with a QP that moves, and one more member on each worker. None has receives. */
struct group {
	struct two t;
	struct qp_mcast_table *table;
	struct qp_mcast_group g;
	struct qp *own; /* the bed's */
	struct qp *qp[3];
	uint64_t sent;
};

static void
group_open(struct group *g, struct bed *b, uint32_t from)
{
	const struct qp_alloc_params params = { .type = QPT_UD,
		.max_recv_wr = 16,
		.max_recv_sge = 4,
		.max_send_wr = 16,
		.max_send_sge = 4 };

	*g = (struct group){ .table = qp_mcast_table_create(),
		.g = { .addr = { [10] = 0xff, 0xff, 239, 1, 2, 3 }, .port = bed_port() } };
	assert_non_null(g->table);
	b->conf.mcasts = g->table;
	two_open(&g->t, b);
	g->own = b->qp;
	for (uint32_t i = 0; i < 3; i++) {
		g->qp[i] = bed_qp_with(b, 0x40 + i, PEER_QPN, &params);
		assert_int_equal(qp_mcast_add(g->table, &g->g, 0x40 + i), 0);
	}
	qp_table_give(b->conf.qps, g->qp[0], (uint8_t)from);
	qp_table_give(b->conf.qps, g->qp[2], 1);
	b->qp = g->qp[0];
}

/** n more datagrams; the worker that polls the port takes them. */
static void
group_arrive(struct group *g, uint32_t n)
{
	static const uint8_t mac[6] = { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 };
	const struct wire_fields f = {
		.opcode = OP_UD_SEND_ONLY, .dest_qpn = QP_MCAST_QPN, .deth = { .src_qpn = PEER_QPN }
	};
	struct wire_path path = bed_path();

	memcpy(path.dmac, mac, sizeof(mac));
	memcpy(path.dst_ip, g->g.addr + 12, 4);
	for (uint32_t i = 0; i < n; i++)
		bed_put(g->t.b, bed_frame_on(&path, &f));
	g->sent += n;
	poll(&g->t, 0);
}

/** Each member had each datagram once. */
static void
group_close(struct group *g)
{
	struct bed *b = g->t.b;

	poll(&g->t, 0);
	poll(&g->t, 1);
	poll(&g->t, 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(qp_counter(g->qp[i], STAT_out_of_buffer), g->sent);
		qp_table_give(b->conf.qps, g->qp[i], 0);
		assert_int_equal(qp_mcast_remove(g->table, &g->g, 0x40 + i), 0);
		bed_qp_gone(b, g->qp[i]);
	}
	b->qp = g->own;
	b->conf.mcasts = NULL;
	two_close(&g->t);
	qp_mcast_table_destroy(g->table);
}

/* UD-31: to the worker that polls the port; 33 wait at the old owner, more than a burst. */
static void
UD_31_towards_the_port(void **state)
{
	struct group g;

	group_open(&g, *state, 1);
	group_arrive(&g, 33);
	assert_int_equal(tell(&g.t, 0, MBOX_QP_PARK, 0), 0);
	group_arrive(&g, 7);
	assert_int_equal(tell(&g.t, 1, MBOX_QP_RELEASE, 0), 0);
	group_arrive(&g, 6);
	poll(&g.t, 1);
	group_arrive(&g, 3);
	assert_int_equal(tell(&g.t, 0, MBOX_QP_ADOPT, 0), 0);
	group_arrive(&g, 4);
	poll(&g.t, 1);
	tell(&g.t, 1, MBOX_QP_UNPARK, 0);
	group_arrive(&g, 2);
	group_close(&g);
}

/* UD-31: away from it; the new owner has datagrams in its ring that are the old one's. */
static void
UD_31_away_from_the_port(void **state)
{
	struct group g;

	group_open(&g, *state, 0);
	group_arrive(&g, 5);
	assert_int_equal(tell(&g.t, 1, MBOX_QP_PARK, 1), 0);
	for (uint32_t i = 0; i < 10; i++)
		group_arrive(&g, 32);
	assert_int_equal(tell(&g.t, 0, MBOX_QP_RELEASE, 1), 0);
	group_arrive(&g, 6);
	assert_int_equal(tell(&g.t, 1, MBOX_QP_ADOPT, 1), 0);
	group_arrive(&g, 3);
	poll(&g.t, 1);
	group_arrive(&g, 3);
	tell(&g.t, 0, MBOX_QP_UNPARK, 0);
	group_arrive(&g, 2);
	group_close(&g);
}

/* UD-31: so many are in its ring that it adopts the QP before it has served them. */
static void
UD_31_many_in_the_new_owners_ring(void **state)
{
	struct group g;

	group_open(&g, *state, 0);
	assert_int_equal(tell(&g.t, 1, MBOX_QP_PARK, 1), 0);
	while (g.sent < (MAILBOX_TURNS + 16) * PIPELINE_BURST)
		group_arrive(&g, 32);
	assert_int_equal(tell(&g.t, 0, MBOX_QP_RELEASE, 1), 0);
	assert_int_equal(tell(&g.t, 1, MBOX_QP_ADOPT, 1), 0);
	tell(&g.t, 0, MBOX_QP_UNPARK, 0);
	group_arrive(&g, 2);
	group_close(&g);
}

/* UD-31: a move that is given up. */
static void
UD_31_given_up(void **state)
{
	struct group g;

	group_open(&g, *state, 1);
	assert_int_equal(tell(&g.t, 0, MBOX_QP_PARK, 0), 0);
	group_arrive(&g, 40);
	tell(&g.t, 0, MBOX_QP_UNPARK, 0);
	group_arrive(&g, 3);
	group_close(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_SEQ_01_towards_the_port),
		TEST(RESP_SEQ_01_away_from_the_port),
		TEST(given_up),
		TEST(kept_aside_is_bounded),
		TEST(RESP_13_answers_move_along),
		TEST(TMR_01_timers_move_along),
		TEST(UD_31_towards_the_port),
		TEST(UD_31_away_from_the_port),
		TEST(UD_31_many_in_the_new_owners_ring),
		TEST(UD_31_given_up),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
