/* SPDX-License-Identifier: BSD-3-Clause */
/* The QP's memory, its table, and what a modify does to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../../clib/eal.h"
#include "../../clib/qp_new.h"
#include "qp.h"
#include "qp_control.h"
#include "qp_rule.h"
#include "qp_snapshot.h"

static const struct qp_alloc_params params = {
	.max_recv_wr = 8, .max_recv_sge = 2, .max_dest_rd_atomic = 4
};

static int
setup_eal(void **state)
{
	(void)state;
	return eal_start("32");
}

static void
bring_up(struct qp *qp, uint32_t rq_psn)
{
	struct qp_attr a = { .qp_state = QPS_INIT,
		.pkey = 0x8001,
		.qp_access_flags = 15,
		.path_mtu = 1024,
		.dest_qp_num = 0x22,
		.rq_psn = rq_psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.sq_psn = 0x200,
		.timeout = 14,
		.retry_cnt = 3,
		.path = { .src_ip = { 192, 0, 2, 1 },
			.dst_ip = { 192, 0, 2, 2 },
			.ttl = 64,
			.dmac = { 2, 0, 0, 0, 0, 2 },
			.sport = 0xc000 } };

	qp_apply(qp, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
	a.qp_state = QPS_RTR;
	qp_apply(qp, &a,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	a.qp_state = QPS_RTS;
	qp_apply(qp, &a, QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_SQ_PSN);
}

static void
post(struct qp *qp, uint64_t wr_id)
{
	struct ring producer;
	struct ring_recv_wqe *wqe;

	ring_attach(&producer, qp->rq.sh, qp->rq.mask + 1, qp->rq.stride, false);
	wqe = ring_produce_slot(&producer, qp->max_recv_wr);
	assert_non_null(wqe);
	wqe->wr_id = wr_id;
	ring_produce_commit(&producer);
}

/* AE-05: who is heard of is told in RTR alone; a datagram is nobody's peer. */
static void
AE_05_unheard_in_RTR(void **state)
{
	static const enum wire_transport transports[] = { WIRE_RC, WIRE_UC, WIRE_UD };
	static const enum qp_state way[] = { QPS_INIT, QPS_RTR, QPS_RTR, QPS_RTS, QPS_RESET };

	(void)state;
	for (uint32_t t = 0; t < ARRAY_LEN(transports); t++) {
		struct qp *qp = qp_new(&params);
		struct qp_attr a = { .path_mtu = 1024, .path_mig_state = MIG_MIGRATED };

		qp->resp.transport = (uint8_t)transports[t];
		for (uint32_t i = 0; i < ARRAY_LEN(way); i++) {
			const bool connected = transports[t] != WIRE_UD;

			a.qp_state = (uint8_t)way[i];
			qp_apply(qp, &a, QP_ATTR_STATE);
			assert_int_equal(
				(qp->flags & QPF_UNHEARD) != 0, connected && way[i] == QPS_RTR);
		}
		qp_free(qp);
	}
}

/* What control decides comes with the settings; what the worker keeps in the flags stays. */
static void
settings(void **state)
{
	const struct qp_settings s = { .flags = QPF_TRACE | QPF_CNP | QPF_RECV_FEED,
		.window = 77,
		.cnp_interval = 5000,
		.cnp = { .tos = 0xb8, .prio = 5 },
		.resp_knobs = RESP_KNOB_RESYNC,
		.req_knobs = REQ_KNOB_CREDITS,
		.min_timeout = 9,
		.ackreq_interval = 3,
		.port = 4,
		.worker = 2,
		.recv_feed = { .va = 0x1000, .buffers = 8, .size = 64, .lkey = 0x77 } };
	struct qp *qp = qp_new(&params);

	(void)state;
	qp->flags = QPF_IPV6 | QPF_RESOLVED | QPF_SIG_ALL;
	qp->feed_next = 3;
	qp_configure(qp, &s);
	assert_int_equal(qp->flags, QPF_IPV6 | QPF_RESOLVED | QPF_TRACE | QPF_CNP | QPF_RECV_FEED);
	assert_int_equal(qp->req.window, 77);
	assert_int_equal(qp->window, 77);
	assert_int_equal(qp->cnp_interval_ns, 5000);
	assert_int_equal(qp->cnp.tos, 0xb8);
	assert_int_equal(qp->cnp.prio, 5);
	assert_int_equal(qp->resp.knobs, RESP_KNOB_RESYNC);
	assert_int_equal(qp->req.knobs, REQ_KNOB_CREDITS);
	assert_int_equal(qp->min_timeout, 9);
	assert_int_equal(qp->req.ackreq_interval, 3);
	assert_int_equal(qp->port, 4);
	assert_int_equal(qp->worker, 2);
	assert_int_equal(qp_worker(qp), 2);
	assert_int_equal(qp->feed_next, 0);
	assert_int_equal(qp->feed_va, 0x1000);
	assert_int_equal(qp->feed_buffers, 8);
	assert_int_equal(qp->feed_size, 64);
	assert_int_equal(qp->feed_lkey, 0x77);
	qp_free(qp);
}

static void
allocation(void **state)
{
	struct qp_alloc_params p = params;
	struct qp *qp = qp_new(&p);
	size_t bytes;

	(void)state;
	assert_non_null(qp);
	assert_int_equal((uintptr_t)qp % CACHE_LINE, 0);
	assert_int_equal(atomic_load(&qp->state), QPS_RESET);
	assert_int_equal(qp->rq.mask, 7);
	assert_true(qp->answers.cap > 4);
	assert_non_null(qp->stats);
	assert_int_equal(qp_footprint(&p, &bytes), 0);
	assert_true(bytes > sizeof(struct qp));
	qp_free(qp);

	p.own_area = true;
	qp = qp_new(&p);
	assert_non_null(qp);
	assert_true(qp->areas->rq.fd >= 0);
	post(qp, 1);
	assert_int_equal(ring_consume_count(&qp->rq), 1);
	qp_free(qp);

	p.max_recv_sge = 17;
	assert_int_equal(qp_alloc(&p, &qp), -EINVAL);
	assert_int_equal(qp_footprint(&p, &bytes), -EINVAL);
	p.max_recv_sge = 1;
	p.max_recv_wr = 100000;
	assert_int_equal(qp_alloc(&p, &qp), -EINVAL);
	qp_free(NULL);
}

/* QP-08: the first PSN accepted is rq_psn; attributes arrive where they are used. */
static void
QP_08_bring_up(void **state)
{
	struct qp *qp = qp_new(&params);
	static const uint8_t peer[4] = { 192, 0, 2, 2 };

	(void)state;
	bring_up(qp, 0x100);
	assert_int_equal(qp->resp.epsn.v, 0x100);
	assert_int_equal(qp->resp.pmtu, 1024);
	assert_int_equal(qp->resp.access, 15);
	assert_int_equal(qp->resp.max_dest_rd_atomic, 4);
	assert_int_equal(qp->resp.min_rnr_timer, 12);
	assert_int_equal(qp->pkey, 0x8001);
	assert_memory_equal(qp->peer_ipv4, peer, 4);
	assert_int_equal(qp->flags & (QPF_IPV6 | QPF_RESOLVED), 0);
	assert_int_equal(qp->tmpl.len, 54);
	/* P_Key and destination QP stand in the template's BTH. */
	assert_int_equal(be16_load(qp->tmpl.bytes + 44), 0x8001);
	assert_int_equal(be24_load(qp->tmpl.bytes + 47), 0x22);
	qp_free(qp);
}

/* A new path re-makes the template and forgets what was computed from the old one. */
static void
path_change(void **state)
{
	struct qp *qp = qp_new(&params);
	struct qp_attr a = { .path = { .ipv6 = true,
				     .dst_ip = { 0xfd, [15] = 2 },
				     .dmac = { 2, 9, 9, 9, 9, 9 } },
		.path_resolved = true };

	(void)state;
	bring_up(qp, 5);
	qp->flags |= QPF_ACK_CRC | QPF_CNP;
	qp_apply(qp, &a, QP_ATTR_AV);
	assert_int_equal(qp->flags, QPF_CNP | QPF_IPV6 | QPF_RESOLVED);
	assert_int_equal(qp->tmpl.len, 74);
	assert_memory_equal(qp->tmpl.bytes, a.path.dmac, 6);
	assert_memory_equal(qp->peer_mac, a.path.dmac, 6);
	assert_int_equal(atomic_load(&qp->state), QPS_RTS);
	assert_int_equal(qp->resp.epsn.v, 5);
	qp_free(qp);
}

/* Only what the mask names is taken; max_dest_rd_atomic never exceeds the slots. */
static void
masked_attributes(void **state)
{
	struct qp *qp = qp_new(&params);
	struct qp_attr a = { .min_rnr_timer = 31,
		.qp_access_flags = 2,
		.max_dest_rd_atomic = 200,
		.pkey = 1,
		.rq_psn = 9,
		.path_mtu = 256 };

	(void)state;
	bring_up(qp, 5);
	qp_apply(qp, &a, QP_ATTR_MIN_RNR_TIMER);
	assert_int_equal(qp->resp.min_rnr_timer, 31);
	assert_int_equal(qp->resp.access, 15);
	assert_int_equal(qp->resp.pmtu, 1024);
	assert_int_equal(qp->pkey, 0x8001);
	qp_apply(qp, &a, QP_ATTR_MAX_DEST_RD_ATOMIC);
	assert_int_equal(qp->resp.max_dest_rd_atomic, 4);
	a.max_dest_rd_atomic = 0;
	qp_apply(qp, &a, QP_ATTR_MAX_DEST_RD_ATOMIC);
	assert_int_equal(qp->resp.max_dest_rd_atomic, 0);
	qp_free(qp);
}

/* RESP-DUP-03, RESP-DUP-06: what was saved outlives max_dest_rd_atomic; RESET forgets it. */
static void
RESP_DUP_06_saved_ones_stay(void **state)
{
	static const uint8_t most[] = { 2, 4, 0, 1, 3, 4 };
	struct qp *qp = qp_new(&params);
	struct qp_attr a = { .qp_state = QPS_RESET };

	(void)state;
	bring_up(qp, 5);
	for (uint32_t i = 0; i < 4; i++)
		qp->saved[i] = (struct responder_saved){ .kind = OP_RC_FETCH_ADD, .first = psn(i) };
	qp->resp.saved_next = 3;
	for (uint32_t i = 0; i < ARRAY_LEN(most); i++) {
		a.max_dest_rd_atomic = most[i];
		qp_apply(qp, &a, QP_ATTR_MAX_DEST_RD_ATOMIC);
		assert_int_equal(qp->resp.max_dest_rd_atomic, most[i]);
		assert_ptr_equal(qp->resp.saved, qp->saved);
		assert_int_equal(qp->resp.saved_next, 3);
		for (uint32_t s = 0; s < 4; s++) {
			assert_int_equal(qp->saved[s].kind, OP_RC_FETCH_ADD);
			assert_int_equal(qp->saved[s].first.v, s);
		}
	}
	qp_apply(qp, &a, QP_ATTR_STATE);
	for (uint32_t s = 0; s < 4; s++)
		assert_int_equal(qp->saved[s].kind, 0);
	qp_free(qp);
}

/* QP-05: RESET forgets posted work, PSNs, MSN, latches and counts. */
static void
QP_05_reset(void **state)
{
	struct qp *qp = qp_new(&params);
	struct qp_attr a = { .qp_state = QPS_RESET };

	(void)state;
	bring_up(qp, 0x100);
	post(qp, 1);
	post(qp, 2);
	qp->resp.epsn = psn(0x123);
	qp->resp.msn = 77;
	qp->resp.latched = true;
	qp->resp.open = OPEN_SEND;
	qp->resp.unfinished = 2;
	qp->saved[1].kind = OP_RC_READ_REQUEST;
	qp->active = qp->copy;
	qp->feed_next = 3; /* recv_feed begins at its first buffer again */
	qp->answers.count = 3;
	qp->flags |= QPF_DIRTY;
	qp->cnp_next = 5000; /* CC-03: the next life's first mark is answered at once */
	qp->ce_seen = 2;
	qp->flags |= QPF_LAST_WQE | QPF_UNHEARD;
	qp->fatal = 21;
	qp->last_error.fatal = 21;
	qp->hot[STAT_rcvd_pkts] = 9;
	qp->few.writes = 3;
	qp->sq.responses = 4;
	qp_apply(qp, &a, QP_ATTR_STATE);
	assert_int_equal(atomic_load(&qp->state), QPS_RESET);
	assert_int_equal(ring_consume_count(&qp->rq), 0);
	assert_int_equal(atomic_load(&qp->rq.sh->cons), 2); /* the host sees the room again */
	assert_int_equal(qp->resp.msn, 0);
	assert_false(qp->resp.latched);
	assert_int_equal(qp->resp.open, OPEN_NONE);
	assert_int_equal(qp->resp.unfinished, 0);
	assert_int_equal(qp->saved[1].kind, 0);
	assert_null(qp->active);
	assert_int_equal(qp->feed_next, 0);
	assert_int_equal(qp->answers.count, 0);
	assert_int_equal(qp->flags & QPF_DIRTY, 0);
	assert_int_equal(qp->cnp_next, 0);
	assert_int_equal(qp->ce_seen, 0);
	assert_int_equal(qp->flags & (QPF_LAST_WQE | QPF_UNHEARD), 0);
	assert_int_equal(qp->fatal, 0);
	assert_int_equal(qp->last_error.fatal, 0);
	assert_int_equal(qp_stat(qp, STAT_rcvd_pkts), 0);

	bring_up(qp, 0x777); /* QP-15: all the way up again with fresh PSNs */
	assert_int_equal(qp->resp.epsn.v, 0x777);
	qp_free(qp);
}

/* Counters of plain packets are 32 bits wide, and lose nothing where one is about to be full. */
static void
counters_are_carried(void **state UNUSED)
{
	struct qp *qp = qp_new(&params);
	struct qp_snapshot s;

	bring_up(qp, 0x100);
	for (uint32_t i = 0; i < 40000; i++) { /* 2.6 GB */
		qp_few_write(qp, 65000);
		assert_int_equal(qp->few.bytes >> 31, 0);
	}
	assert_true(qp->few.bytes != 0);
	qp->few.acks = 0x7fffffff;
	qp_few_ack(qp);
	assert_int_equal(qp->few.acks, 0);
	qp_few_ack(qp);
	assert_int_equal(qp_stat(qp, STAT_rx_bytes), UINT64_C(40000) * 65000);
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.stats.c[STAT_rx_bytes], UINT64_C(40000) * 65000);
	assert_int_equal(s.stats.c[STAT_rx_packets], 40000);
	assert_int_equal(s.stats.c[STAT_rcvd_pkts], 40000);
	assert_int_equal(s.stats.c[STAT_rx_write_requests], 40000);
	assert_int_equal(s.stats.c[STAT_rx_send_requests], 0);
	assert_int_equal(s.stats.c[STAT_sent_pkts], UINT64_C(0x80000001));
	assert_int_equal(s.stats.c[STAT_acks_sent], UINT64_C(0x80000001));
	assert_int_equal(qp_stat(qp, STAT_acks_sent), UINT64_C(0x80000001));
	qp->sq.messages = 7; /* of what it sends, too */
	qp->sq.sent = 8;
	qp->sq.response_bytes = 62;
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.stats.c[STAT_req_messages], 7);
	assert_int_equal(s.stats.c[STAT_sent_pkts], UINT64_C(0x80000009));
	assert_int_equal(s.stats.c[STAT_rx_bytes], UINT64_C(40000) * 65000 + 62);
	qp_sendq_carry(qp);
	assert_int_equal(qp->sq.messages, 0);
	assert_int_equal(qp_counter(qp, STAT_req_messages), 7);
	assert_int_equal(qp_stat(qp, STAT_sent_pkts), UINT64_C(0x80000009));
	qp_free(qp);
}

/* QP-19: live PSN from RTR on, the configured one before and after RESET. */
static void
QP_19_snapshot(void **state)
{
	struct qp *qp = qp_new(&params);
	struct qp_attr a = { .qp_state = QPS_RESET };
	struct qp_snapshot s;

	(void)state;
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.state, QPS_RESET);
	bring_up(qp, 0x100);
	post(qp, 1);
	qp->resp.epsn = psn(0x150);
	qp->resp.msn = 5;
	qp->hot[STAT_acks_sent] = 4;
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.state, QPS_RTS);
	assert_int_equal(s.attr.qp_state, QPS_RTS);
	assert_int_equal(s.attr.cur_qp_state, QPS_RTS);
	assert_int_equal(s.attr.rq_psn, 0x150);
	assert_int_equal(s.attr.sq_psn, 0x200);
	assert_int_equal(s.attr.timeout, 14);
	assert_int_equal(s.epsn, 0x150);
	assert_int_equal(s.msn, 5);
	assert_int_equal(s.rq_posted, 1);
	assert_int_equal(s.stats.c[STAT_acks_sent], 4);
	assert_false(s.resolved);
	qp_apply(qp, &a, QP_ATTR_STATE);
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.state, QPS_RESET);
	assert_int_equal(s.attr.rq_psn, 0x100);
	qp_free(qp);
}

/* QP-20: the slot is used again under another number; the old number finds nothing. */
static void
QP_20_generation(void **state)
{
	struct qp_table *t = qp_table_create(100, 0); /* 128 slots */
	struct qp *a = qp_new(&params), *b = qp_new(&params);

	(void)state;
	assert_int_equal(t->entries, 128);
	a->qpn = 0x000111;
	b->qpn = 0x000111 + 128;
	assert_int_equal(qp_table_insert(t, a), 0);
	assert_ptr_equal(qp_lookup(t, 0x111), a);
	assert_null(qp_lookup(t, 0x111 + 128));
	assert_int_equal(qp_table_insert(t, b), -EEXIST);
	qp_table_remove(t, b); /* not the one that is there */
	assert_ptr_equal(qp_lookup(t, 0x111), a);
	qp_table_remove(t, a);
	assert_null(qp_lookup(t, 0x111));
	assert_int_equal(qp_table_insert(t, b), 0);
	assert_null(qp_lookup(t, 0x111));
	assert_ptr_equal(qp_lookup(t, 0x111 + 128), b);
	assert_null(qp_lookup(t, 0xffffff));
	/* Its slot says whose it is; another QP's does not change. */
	assert_int_equal(qp_table_at(t, 0x111) & QP_SLOT_WORKER, 0);
	qp_table_give(t, a, 5);
	assert_int_equal(qp_table_at(t, 0x111) & QP_SLOT_WORKER, 0);
	qp_table_give(t, b, QP_SLOT_WORKER);
	assert_int_equal(b->worker, QP_SLOT_WORKER);
	assert_int_equal(qp_table_at(t, 0x111) & QP_SLOT_WORKER, QP_SLOT_WORKER);
	assert_ptr_equal(qp_lookup(t, 0x111 + 128), b);
	qp_table_remove(t, b);
	assert_int_equal(qp_table_at(t, 0x111), 0);
	qp_table_destroy(t);
	qp_free(a);
	qp_free(b);
	assert_null(qp_table_create(0, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocation),
		cmocka_unit_test(AE_05_unheard_in_RTR),
		cmocka_unit_test(settings),
		cmocka_unit_test(QP_08_bring_up),
		cmocka_unit_test(path_change),
		cmocka_unit_test(masked_attributes),
		cmocka_unit_test(RESP_DUP_06_saved_ones_stay),
		cmocka_unit_test(QP_05_reset),
		cmocka_unit_test(counters_are_carried),
		cmocka_unit_test(QP_19_snapshot),
		cmocka_unit_test(QP_20_generation),
	};

	return cmocka_run_group_tests(tests, setup_eal, NULL);
}
