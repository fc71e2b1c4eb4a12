/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that another worker has received and handed over: a peer has the same share whichever
 * worker its frames come to. What counts is turns of the worker that serves them.
 */
#include <sys/mman.h>

#include "peers_rig.h"

#include "intake.h"
#include "worker.h"

enum {
	FEW = 4,       /* WRITEs of the small one in a turn */
	FLOOD = 400,   /* frames that wait, at the port or in the ring */
	NOTICED = 100, /* turns, after which the worker has seen who is there */
	TURNS = 300,
	THEIR_QPN = 0x12,          /* another worker's QP */
	ANOTHER_PORT = UINT16_MAX, /* their frames are no part of a burst of the first one's */
};

static struct rte_ring *handed, *others; /* this worker's, and another one's */

/** The bed's worker is one of two: frames of some peers come by its hand-off ring. */
static void
handed_begin(struct bed *b, uint32_t peers_n)
{
	handed = rte_ring_create("handed", 1024, 0, RING_F_SC_DEQ);
	assert_non_null(handed);
	bed_qp_gone(b, b->qp);
	b->conf.handoff_in = handed;
	bed_worker_again(b);
	b->qp = bed_qp(b, QPN, PEER_QPN);
	for (uint32_t i = 0; i < peers_n; i++)
		peer_begin(b, i);
}

static void
handed_end(struct bed *b, uint32_t peers_n)
{
	for (uint32_t i = 0; i < 1000; i++)
		peers_turn(b);
	assert_int_equal(rte_ring_count(handed) + rte_ring_count(bed_near_end()), 0);
	bed_turn(b); /* each frame is explained by a counter */
	for (uint32_t i = peers_n; i-- != 0;)
		peer_end(b, i);
	bed_qp_gone(b, b->qp);
	b->conf.handoff_in = NULL;
	bed_worker_again(b);
	b->qp = bed_qp(b, QPN, PEER_QPN);
	rte_ring_free(handed);
}

static void
repeat(struct peer *p)
{
	while (rte_ring_count(p->way) < FLOOD && peer_repeats(p))
		;
}

/** What comes to the port meanwhile. */
enum at_port {
	NOTHING,
	A_FEW,  /* for QPs of this worker: the ring's frames fill up their bursts */
	OTHERS, /* full bursts for another worker's QPs, in whose places the ring's frames are */
};

static void
come_to_port(struct bed *b, enum at_port what)
{
	struct wire_fields f = write_only(E, MR_VA, 64);
	void *m;

	if (what == A_FEW)
		assert_true(peer_repeats(&peers[2]));
	f.dest_qpn = THEIR_QPN;
	for (uint32_t i = 0; what == OTHERS && i < PIPELINE_BURST; i++)
		bed_send(b, &f);
	while (rte_ring_dequeue(others, &m) == 0)
		rte_pktmbuf_free(m);
}

/* Behind one that floods the ring, another one by the same ring waits a few turns, no more. */
static void
behind_one(struct bed *b, enum at_port what, uint16_t port)
{
	uint32_t most = 0;

	handed_begin(b, 3);
	others = rte_ring_create("others", 1024, 0, RING_F_SC_DEQ);
	assert_non_null(others);
	b->w->conf.handoff[1] = others;
	atomic_store(&b->qps->slot[THEIR_QPN & b->qps->mask], 0x10000 | 1);
	peers[0].way = peers[1].way = handed;
	peers[0].port = peers[1].port = port;
	for (uint32_t t = 0; t < TURNS; t++) {
		while (rte_ring_count(handed) < FLOOD)
			assert_true(peer_sends(&peers[1], 64, 1));
		for (uint32_t i = 0; i < FEW; i++)
			assert_true(peer_sends(&peers[0], 64, QPS));
		come_to_port(b, what);
		peers_turn(b);
		if (t >= NOTICED)
			most = RTE_MAX(most, peer_owed(&peers[0]));
	}
	/* 400 are before its own in the ring, which the worker takes 128 of in a turn. */
	assert_in_range(most, FEW, FEW * 6);
	assert_int_equal(peers[0].naks, 0);
	come_to_port(b, NOTHING);
	atomic_store(&b->qps->slot[THEIR_QPN & b->qps->mask], 0);
	b->w->conf.handoff[1] = NULL;
	handed_end(b, 3);
	rte_ring_free(others);
}

static void
behind_one_that_floods(void **state)
{
	behind_one(*state, NOTHING, bed_port());
}

static void
behind_one_that_floods_beside_a_few(void **state)
{
	behind_one(*state, A_FEW, bed_port());
	behind_one(*state, A_FEW, ANOTHER_PORT);
}

static void
behind_one_that_floods_beside_frames_for_others(void **state)
{
	behind_one(*state, OTHERS, bed_port());
	behind_one(*state, OTHERS, ANOTHER_PORT);
}

/*
 * One floods by the ring, two others flood the port: who comes by another worker has no more than
 * those at the port, and no less.
 */
static void
beside_those_at_the_port(void **state)
{
	uint64_t served[PEERS] = { 0 }, least;
	struct bed *b = *state;

	handed_begin(b, PEERS);
	peers[1].way = handed;
	for (uint32_t t = 0; t < TURNS; t++) {
		repeat(&peers[1]);
		while (rte_ring_count(bed_near_end()) < FLOOD)
			assert_true(peer_repeats(&peers[0]) && peer_repeats(&peers[2]));
		peers_turn(b);
		for (uint32_t i = 0; i < PEERS && t == NOTICED; i++)
			served[i] = peer_served(&peers[i]);
	}
	for (uint32_t i = 0; i < PEERS; i++)
		served[i] = peer_served(&peers[i]) - served[i];
	least = RTE_MIN(served[0], served[2]);
	assert_true(least >= 200);
	assert_in_range(served[1], least * 9 / 10, least * 11 / 10);
	handed_end(b, PEERS);
}

/* One at the port and one by the ring are two, and one by either or both is one. */
static void
who_comes(struct bed *b, uint16_t port)
{
	static const struct {
		uint32_t at_port, by_ring; /* peers */
		bool one, turns;           /* is there one frame a turn at the port, or a flood? */
	} rows[] = {
		{ 0, 0, false, false },
		{ 0, 1, false, true },
		{ 1, 1, false, false },
		{ 2, 1, false, true },
		{ 0, 1, true, true },
		{ 1, 1, true, false },
	};

	handed_begin(b, PEERS);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (uint32_t t = 0; t < NOTICED; t++) {
			peers[rows[i].at_port].way = bed_near_end();
			peers[rows[i].at_port].port = bed_port();
			if (rows[i].one)
				assert_true(peer_repeats(&peers[rows[i].at_port]));
			else
				repeat(&peers[rows[i].at_port]);
			peers[rows[i].by_ring].way = handed;
			peers[rows[i].by_ring].port = port;
			repeat(&peers[rows[i].by_ring]);
			peers_turn(b);
		}
		assert_int_equal(b->w->intake_on, rows[i].turns);
		for (uint32_t t = 0; t < TURNS; t++)
			peers_turn(b);
		assert_false(b->w->intake_on);
	}
	handed_end(b, PEERS);
}

static void
who_is_there(void **state)
{
	who_comes(*state, bed_port());
	who_comes(*state, ANOTHER_PORT);
}

/*
 * Packets of a peer that never waited here, as those of this process do not, cost it a few of its
 * turns at most, however many they were.
 */
static void
what_never_waited(void **state)
{
	const struct wire_fields f = write_only(E, MR_VA, 64);
	static struct burst one;
	struct bed *b = *state;
	uint64_t before = 0;

	handed_begin(b, 2);
	one.m[0] = bed_frame_on(&peers[0].path, &f);
	for (uint32_t t = 0; t < TURNS; t++) {
		while (rte_ring_count(bed_near_end()) < FLOOD)
			assert_true(peer_repeats(&peers[0]) && peer_repeats(&peers[1]));
		peers_turn(b);
		if (before != 0 || !b->w->intake_on)
			continue;
		before = peer_served(&peers[0]);
		for (uint32_t k = 0; k < 1000000; k++)
			pipeline_intake_charge(b->w, &one, 0);
	}
	assert_true(before != 0 && peer_served(&peers[0]) > before + NOTICED);
	rte_pktmbuf_free(one.m[0]);
	handed_end(b, 2);
}

/* That there are two is seen soon, whichever turn of a busy worker the flood begins in. */
static void
how_soon(void **state)
{
	struct bed *b = *state;

	handed_begin(b, PEERS);
	for (uint32_t busy = 0; busy < INTAKE_LOOKS; busy++) {
		uint32_t turns = 0;

		for (uint32_t t = 0; t < busy; t++) {
			assert_true(peer_repeats(&peers[0]));
			peers_turn(b);
		}
		for (; !b->w->intake_on && turns < NOTICED; turns++) {
			while (rte_ring_count(bed_near_end()) < FLOOD)
				assert_true(peer_repeats(&peers[0]) && peer_repeats(&peers[1]));
			peers_turn(b);
		}
		assert_in_range(turns, INTAKE_FULL, INTAKE_FULL + INTAKE_LOOKS);
		for (uint32_t t = 0; t < TURNS; t++)
			peers_turn(b);
		assert_false(b->w->intake_on);
	}
	handed_end(b, PEERS);
}

/*
 * RESP-SEQ-01: a QP leaves this worker while frames for it wait for their peer's turn. They came
 * before all that goes to its new owner's ring from now on, so they are served first.
 */
static void
RESP_SEQ_01_leaves_in_order(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m = { .type = MBOX_QP_RELEASE, .move = { b->qp, 1 } };

	handed_begin(b, 0);
	m.move.qp = b->qp;
	b->w->intake_on = true;
	for (uint32_t i = 0; i < FLOOD; i++) {
		struct wire_fields f = write_only(E + i, MR_VA, 4);

		assert_int_equal(rte_ring_enqueue(handed, bed_frame(&f)), 0);
	}
	worker_poll(b->w, b->now);
	assert_true(b->qp->resp.epsn.v < E + FLOOD && rte_ring_count(handed) < FLOOD - 32);
	assert_int_equal(bed_tell(b, &m), 0);
	assert_int_equal(b->qp->resp.epsn.v, E + FLOOD);
	assert_int_equal(bed_stat(b, STAT_out_of_sequence), 0);
	m = (struct mbox_msg){ .type = MBOX_QP_ADOPT, .qp.qp = b->qp };
	assert_int_equal(bed_tell(b, &m), 0);
	handed_end(b, 0);
}

/*
 * Whose a packet is stands in the table: the first line of a QP is written for each of its packets,
 * so another CPU that read it would take it away each time. Here that line cannot be read at all.
 */
static void
the_qp_is_not_read(void **state)
{
	struct bed *b = *state;
	void *qp = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wire_fields f = write_only(E, MR_VA, 64);
	void *m;

	assert_ptr_not_equal(qp, MAP_FAILED);
	handed_begin(b, 0);
	b->w->conf.handoff[1] = handed; /* the other worker's, for once */
	b->w->conf.handoff_in = NULL;
	f.dest_qpn = FIRST_QPN;
	atomic_store(&b->qps->slot[FIRST_QPN & b->qps->mask], (uintptr_t)qp | 1);
	for (uint32_t i = 0; i < 2; i++)
		bed_send(b, &f);
	f.opcode = OP_RC_ACKNOWLEDGE;
	bed_send(b, &f);
	bed_turn(b);
	atomic_store(&b->qps->slot[FIRST_QPN & b->qps->mask], 0);
	b->w->conf.handoff[1] = NULL;
	b->w->conf.handoff_in = handed;
	assert_int_equal(bed_stat(b, STAT_rx_handoff), 3);
	assert_int_equal(rte_ring_count(handed), 3);
	while (rte_ring_dequeue(handed, &m) == 0)
		rte_pktmbuf_free(m);
	handed_end(b, 0);
	munmap(qp, 4096);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(behind_one_that_floods),
		TEST(behind_one_that_floods_beside_a_few),
		TEST(behind_one_that_floods_beside_frames_for_others),
		TEST(beside_those_at_the_port),
		TEST(who_is_there),
		TEST(what_never_waited),
		TEST(how_soon),
		TEST(RESP_SEQ_01_leaves_in_order),
		TEST(the_qp_is_not_read),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
