/* SPDX-License-Identifier: BSD-3-Clause */
/* Between lcores: messages of the control lcore, and packets of another worker's QP. */
#include <errno.h>
#include <string.h>

#include "../../clib/qp_new.h"
#include "bed.h"
#include "qp_parts.h"

/* QP-18: detached in the middle of answers, a QP leaves nothing behind in the worker. */
static void
QP_18_detach(void **state)
{
	struct bed *b = *state;
	struct qp *a = bed_qp(b, 0x12, 0x23), *c = bed_qp(b, 0x13, 0x24);
	struct wire_fields f = write_only(E, MR_VA, 4);
	uint32_t got[3] = { 0, 0, 0 };
	void *m = NULL;

	/* With the wire full, answers pause and wait in their QPs. */
	while (rte_ring_free_count(bed_far_end()) != 0)
		assert_int_equal(rte_ring_enqueue(bed_far_end(), bed_frame(&f)), 0);
	for (uint32_t q = 0x11; q <= 0x13; q++)
		for (uint32_t i = 0; i < 4; i++) {
			f = read_request(E + 64 * i, MR_VA, 65536);
			f.dest_qpn = q;
			bed_send(b, &f);
		}
	for (int i = 0; i < 30; i++)
		worker_poll(b->w, b->now);
	assert_true(a->answers.count > 0);
	assert_true((a->flags & QPF_ANSWERING) != 0);
	bed_qp_gone(b, a);
	f.dest_qpn = 0x12;
	bed_send(b, &f); /* late packets are dropped */
	while (rte_ring_dequeue(bed_far_end(), &m) == 0)
		rte_pktmbuf_free(m);
	for (int i = 0; i < 100; i++) {
		bed_turn(b);
		while (rte_ring_count(bed_far_end()) != 0) {
			rte_ring_dequeue(bed_far_end(), &m);
			rte_pktmbuf_free(m);
		}
	}
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_15), 1);
	got[0] = (uint32_t)qp_stat(b->qp, STAT_read_responses_sent);
	got[2] = (uint32_t)qp_stat(c, STAT_read_responses_sent);
	got[1] = (uint32_t)bed_stat(b, STAT_read_responses_sent) - got[0] - got[2];
	assert_int_equal(got[0], 256); /* the others finish */
	assert_int_equal(got[2], 256);
	assert_in_range(got[1], 1, 200);
	bed_qp_gone(b, c);
}

/*
 * RESP-RNR-11: without memory for a READ a compact QP asks for patience, and what it cannot count
 * is counted by the worker; with more it goes on where it stood.
 */
static void
RESP_RNR_11_compact(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp_of(b, 0x12, 0x23, true);
	struct wire_fields f = read_request(E, MR_VA, 16), early = f;
	struct mbox_msg more = { .type = MBOX_SIDES };

	f.dest_qpn = early.dest_qpn = 0x12;
	early.psn = psn(E - 3);
	bed_send(b, &early); /* a duplicate of a READ that never was */
	bed_turn(b);
	expect_silence(b);
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, AETH_RNR | 12, E, 0);
	assert_null(qp->stats);
	assert_int_equal(bed_stat(b, STAT_send_rnr_err), 1);
	assert_int_equal(bed_stat(b, STAT_qp_counts_lost), 1);
	assert_int_equal(bed_stat(b, STAT_duplicate_request), 1);
	/* AEQ-09: told once, until there are more. */
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.code, AEQ_RESOURCE_EXHAUSTION);
	bed_no_up(b);

	more.sides.list = qp_new_sides(2);
	assert_non_null(more.sides.list);
	assert_int_equal(bed_tell(b, &more), 0);
	b->now += 655360000;
	bed_send(b, &f);
	bed_turn(b);
	expect_packet(b, OP_RC_READ_RESPONSE_ONLY, E, 16);
	assert_non_null(qp->stats);
	assert_int_equal(qp_stat(qp, STAT_rx_read_requests), 1);
	assert_int_equal(atomic_load(&b->mbox.sides_taken), 1);
	bed_qp_gone(b, qp);
}

/* A request that was posted after the QP got its work is sent. */
static void
work_of_a_compact_qp(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp_of(b, 0x12, 0x23, true);
	struct mbox_msg m = { .type = MBOX_QP_WORK };
	struct ring_send_wqe *wqe;
	struct ring producer;

	m.work = (struct mbox_work){ qp, qp_new_work(qp) };
	assert_int_equal(bed_tell(b, &m), 0);
	ring_attach(&producer, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	wqe = ring_produce_slot(&producer, 16);
	assert_non_null(wqe);
	wqe->opcode = WR_RDMA_WRITE;
	wqe->flags = SEND_SIGNALED;
	ring_produce_commit(&producer);
	m = (struct mbox_msg){ .type = MBOX_QP_POSTED, .qp.qp = qp };
	assert_int_equal(bed_tell(b, &m), 0);
	bed_turn(b);
	expect_packet(b, OP_RC_WRITE_ONLY, S, 0);
	bed_qp_gone(b, qp);
}

/* QP-20: a second QP for a slot in use is refused; after detach the slot is free. */
static void
QP_20_attach_twice(void **state)
{
	struct bed *b = *state;
	const struct qp_alloc_params params = { .max_recv_wr = 1 };
	struct qp *qp = qp_new(&params);
	struct mbox_msg m = { .type = MBOX_QP_ATTACH };

	qp->qpn = QPN + 64; /* the table has 64 slots */
	m.attach.qp = qp;
	assert_int_equal(bed_tell(b, &m), -EEXIST);
	assert_ptr_equal(qp_lookup(b->qps, QPN), b->qp);
	assert_null(qp_lookup(b->qps, QPN + 64));
	qp_free(qp);
}

/* QP-19: live values by message. */
static void
QP_19_query(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct qp_snapshot s;
	struct mbox_msg m = { .type = MBOX_QP_QUERY };

	bed_send(b, &f);
	bed_turn(b);
	m.query = (struct mbox_query){ b->qp, &s };
	assert_int_equal(bed_tell(b, &m), 0);
	assert_int_equal(s.state, QPS_RTS);
	assert_int_equal(s.epsn, E + 1);
	assert_int_equal(s.attr.rq_psn, E + 1);
	assert_int_equal(s.msn, 1);
	assert_int_equal(s.rq_posted, 4);
	assert_int_equal(s.stats.c[STAT_rx_write_requests], 1);
	assert_true(s.resolved);
}

/*
 * TX: a frame of the control lcore leaves as it is; an unknown port is refused and the frame freed.
 */
static void
control_transmits(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct mbox_msg m = { .type = MBOX_TX, .tx.port = bed_port() }, done;
	void *out = NULL;

	m.tx.m = bed_frame(&f);
	assert_int_equal(mbox_send_down(&b->mbox, &m), 0); /* cookie 0: no answer wanted */
	worker_poll(b->w, b->now);
	worker_poll(b->w, b->now);
	assert_int_equal(mbox_recv_done(&b->mbox, &done, 1), 0);
	assert_int_equal(rte_ring_dequeue(bed_far_end(), &out), 0);
	assert_ptr_equal(out, m.tx.m);
	rte_pktmbuf_free(out);
	assert_int_equal(bed_stat(b, STAT_tx_packets), 1);
	m.tx.m = bed_frame(&f);
	m.tx.port = 77;
	assert_int_equal(bed_tell(b, &m), -ENODEV);
	m = (struct mbox_msg){ .type = MBOX_SYNC };
	assert_int_equal(bed_tell(b, &m), 0);
	m = (struct mbox_msg){ .type = MBOX_TYPE_MAX };
	assert_int_equal(bed_tell(b, &m), -EINVAL);
}

/* The mailbox is looked at within 64 busy turns. */
static void
mailbox_while_busy(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m = { .type = MBOX_SYNC, .cookie = 5 }, done;
	uint32_t i;

	assert_int_equal(mbox_send_down(&b->mbox, &m), 0);
	for (i = 0; i < 65; i++) {
		struct wire_fields f = write_only(E + i, MR_VA, 4);

		bed_send(b, &f);
		bed_turn(b);
		if (mbox_recv_done(&b->mbox, &done, 1) == 1)
			break;
	}
	assert_in_range(i, 0, 64);
	assert_int_equal(done.cookie, 5);
}

/* A full `done` ring holds messages back; none is lost. */
static void
answers_are_not_lost(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m = { .type = MBOX_SYNC }, done;
	uint32_t sent = 0, got = 0;

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 40; i++) {
			m.cookie = sent + 1;
			if (mbox_send_down(&b->mbox, &m) == 0)
				sent++;
		}
		for (int i = 0; i < 20; i++)
			worker_poll(b->w, b->now);
	}
	assert_true(sent > 64);
	for (int i = 0; i < 50; i++) {
		while (mbox_recv_done(&b->mbox, &done, 1) == 1)
			assert_int_equal(done.cookie, ++got);
		worker_poll(b->w, b->now);
	}
	assert_int_equal(got, sent);
}

/* A packet for another worker's QP: handed over, served there once, counted on both sides. */
static void
handoff(void **state)
{
	struct bed *b = *state;
	struct rte_ring *ring = rte_ring_create("handoff", 64, 0, RING_F_SC_DEQ);
	struct worker_conf conf = b->conf;
	struct worker *owner;
	struct wire_fields f = write_only(E, MR_VA, 64);
	const struct stats_block *s, *o;

	assert_non_null(ring);
	conf.index = 1;
	conf.workers_n = 2;
	conf.mbox = NULL;
	conf.handoff_in = ring;
	conf.ports[0].polls_rx = false;
	owner = worker_create(&conf);
	assert_non_null(owner);
	b->conf.workers_n = 2;
	b->conf.handoff[1] = ring;
	bed_worker_again(b);
	qp_table_give(b->conf.qps, b->qp, 1);

	bed_send(b, &f);
	f.psn = psn(E + 1);
	bed_send(b, &f);
	f.psn = psn(E + 2);
	f.pkey = 0x1234; /* a fault that needs the QP: found by the owner */
	bed_send(b, &f);
	bed_turn(b);
	expect_silence(b);
	s = worker_stats(b->w);
	assert_int_equal(s->c[STAT_rx_packets], 3);
	assert_int_equal(s->c[STAT_rx_handoff], 3);
	assert_int_equal(s->c[STAT_rcvd_pkts], 0);
	assert_int_equal(worker_poll(owner, b->now), 4);
	bed_collect(b);
	expect_ack(b, 0x1f, E + 1, 2);
	expect_silence(b);
	o = worker_stats(owner);
	assert_int_equal(o->c[STAT_rx_packets], 0);
	assert_int_equal(o->c[STAT_rx_handoff_in], 3);
	assert_int_equal(o->c[STAT_rcvd_pkts], 2);
	assert_int_equal(o->c[STAT_rx_pkey_violation], 1);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), 2);

	/* A full ring: lost here, and counted. */
	f.pkey = 0xffff;
	for (uint32_t i = 0; i < 70; i++)
		bed_send(b, &f);
	for (int i = 0; i < 3; i++)
		bed_turn(b);
	assert_int_equal(s->c[STAT_rx_handoff], 3 + 63);
	assert_int_equal(s->c[STAT_rx_handoff_lost], 7);

	/* A bad ICRC is its owner's to find, too. */
	for (void *m = NULL; rte_ring_dequeue(ring, &m) == 0;)
		rte_pktmbuf_free(m);
	{
		struct rte_mbuf *m = bed_frame(&f);

		rte_pktmbuf_mtod(m, uint8_t *)[60] ^= 1;
		bed_put(b, m);
		bed_turn(b);
		assert_int_equal(s->c[STAT_rx_syndrome_30], 0);
		worker_poll(owner, b->now);
		assert_int_equal(o->c[STAT_rx_syndrome_30], 1);
	}
	qp_table_give(b->conf.qps, b->qp, 0);
	worker_destroy(owner);
	rte_ring_free(ring);
}

/* ---- a QP destroyed while packets for it stand in a hand-off ring --------------------------- */

#define HANDED_OVER 2200 /* more than a worker takes before it looks at its mailbox */
#define DOOMED      0x12u

/* Packets for the other worker's QP until so many stand in its ring. */
static void
fill_handoff(struct bed *b, struct rte_ring *ring)
{
	struct wire_fields f = write_only(E, MR_VA, 4);

	f.dest_qpn = DOOMED;
	while (rte_ring_count(ring) < HANDED_OVER) {
		for (uint32_t i = 0; i < 32; i++) {
			f.psn = psn(f.psn.v + 1);
			bed_send(b, &f);
		}
		bed_turn(b);
	}
}

/* The owner works off part of its ring, then the message. @return packets that it served. */
static uint64_t
detach_amid(struct worker *owner, struct mbox *mbox, struct qp *qp, struct rte_ring *ring)
{
	struct mbox_msg m = { .type = MBOX_QP_DETACH, .cookie = 9 }, done;

	m.qp.qp = qp;
	assert_int_equal(mbox_send_down(mbox, &m), 0);
	for (int i = 0; i < 100 && mbox_recv_done(mbox, &done, 1) == 0; i++)
		worker_poll(owner, 1);
	assert_int_equal(done.cookie, 9);
	assert_int_equal(done.done.rc, 0);
	assert_in_range(rte_ring_count(ring), 1, HANDED_OVER - 1);
	return worker_stats(owner)->c[STAT_rcvd_pkts];
}

/*
 * QP-18: what stands in the ring names the QP by number only, so whatever becomes of its memory is
 * neither read nor written, and the packets are drops for a QP that does not exist.
 */
static void
QP_18_destroy_with_packets_handed_over(void **state)
{
	struct bed *b = *state;
	struct rte_ring *ring = rte_ring_create("handoff_gone", 4096, 0, RING_F_SC_DEQ);
	struct qp *qp = bed_qp(b, DOOMED, 0x23), was, after;
	struct worker_conf conf = b->conf;
	const struct stats_block *o;
	struct worker *owner;
	struct mbox mbox;
	uint64_t served, left;

	assert_non_null(ring);
	assert_int_equal(mbox_create(&mbox, 77, 64, 0), 0);
	conf.index = 1;
	conf.workers_n = 2;
	conf.mbox = &mbox;
	conf.handoff_in = ring;
	conf.ports[0].polls_rx = false;
	owner = worker_create(&conf);
	assert_non_null(owner);
	o = worker_stats(owner);
	b->conf.workers_n = 2;
	b->conf.handoff[1] = ring;
	bed_worker_again(b);
	qp_table_give(b->conf.qps, qp, 1);

	fill_handoff(b, ring);
	served = detach_amid(owner, &mbox, qp, ring);
	left = rte_ring_count(ring);
	assert_true(served > 0);
	memcpy(&was, qp, sizeof(was));
	memset(qp, 0xa5, sizeof(*qp)); /* freed, and somebody else's by now */
	memcpy(&after, qp, sizeof(after));
	for (int i = 0; i < 200; i++)
		worker_poll(owner, 1);
	assert_int_equal(rte_ring_count(ring), 0);
	assert_memory_equal(qp, &after, sizeof(after));
	assert_int_equal(o->c[STAT_rcvd_pkts], served);
	assert_int_equal(o->c[STAT_rx_syndrome_15], left);

	memcpy(qp, &was, sizeof(was));
	qp_free(qp);
	worker_destroy(owner);
	mbox_destroy(&mbox);
	rte_ring_free(ring);
}

static void
stop_after(void *ctx, uint32_t turns)
{
	if (turns == 10)
		atomic_store((_Atomic bool *)ctx, true);
}

/* worker_run() tells how long it has been idle, and ends when told to. */
static void
run_until_stopped(void **state)
{
	struct bed *b = *state;
	_Atomic bool stop = false;

	worker_run(b->w, &stop, stop_after, &stop);
	assert_true(atomic_load(&stop));
}

/* Who does something in one of so many idle turns does it for as long as the worker is idle. */
static void
idle_for_minutes(void **state)
{
	uint32_t turns = UINT32_MAX - 1000;

	(void)state;
	for (uint32_t i = 0; i < 3000; i++) {
		const uint32_t before = turns;

		turns = worker_idle_more(turns);
		assert_int_equal(turns % 32, (before + 1) % 32);
		assert_in_range(turns, IDLE_MANY, UINT32_MAX);
	}
}

/*
 * AE-12: the worker migrates by itself, so an order about paths that was given for the one before
 * is not carried out; it changes nothing.
 */
static void
AE_12_orders_for_another_path(void **state)
{
	static const uint32_t masks[] = { QP_ATTR_AV, QP_ATTR_ALT_PATH, QP_ATTR_PATH_MIG_STATE,
		QP_ATTR_TIMEOUT, QP_ATTR_PKEY_INDEX };
	struct bed *b = *state;
	struct qp_attr attr = b->qp->attr;
	struct mbox_msg up;

	attr.alt_path = attr.path;
	attr.alt_path.dst_ip[3] = 77;
	attr.alt_path.dmac[5] = 77;
	attr.alt_resolved = true;
	attr.alt_port = b->qp->port;
	attr.alt_timeout = QP_ALT_TIMEOUT_SAME;
	attr.path_mig_state = MIG_REARM;
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE), 0);
	attr.path_mig_state = MIG_MIGRATED; /* only ARMED leads there: the state is another one */
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_PATH_MIG_STATE), -EAGAIN);
	assert_int_equal(b->qp->attr.path_mig_state, MIG_REARM);

	qp_migration_set(b->qp, MIG_ARMED);
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_PATH_MIG_STATE), 0);
	up = bed_up(b, MBOX_EVENT);
	assert_int_equal(up.ev.event, 6); /* IBV_EVENT_PATH_MIG */
	assert_int_equal(b->qp->peer_ipv4[3], 77);
	attr.alt_path.dst_ip[3] = 78;
	attr.timeout = 31;
	attr.pkey = 0x8055;
	for (size_t i = 0; i < ARRAY_LEN(masks); i++)
		assert_int_equal(bed_modify(b, b->qp, &attr, masks[i]), -EAGAIN);
	assert_int_equal(b->qp->peer_ipv4[3], 77);
	assert_int_equal(b->qp->attr.alt_path.dst_ip[3], 77);
	assert_int_not_equal(b->qp->attr.timeout, 31);
	assert_int_not_equal(b->qp->pkey, 0x8055);
	attr.migrations = 1;
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_ALT_PATH), 0);
	assert_int_equal(b->qp->attr.alt_path.dst_ip[3], 78);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(QP_18_detach),
		TEST(RESP_RNR_11_compact),
		TEST(work_of_a_compact_qp),
		TEST(QP_20_attach_twice),
		TEST(AE_12_orders_for_another_path),
		TEST(QP_19_query),
		TEST(control_transmits),
		TEST(mailbox_while_busy),
		TEST(answers_are_not_lost),
		TEST(handoff),
		TEST(QP_18_destroy_with_packets_handed_over),
		TEST(run_until_stopped),
		cmocka_unit_test(idle_for_minutes),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
