/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_worker.h"

#include <errno.h>

#include <rte_eal.h>
#include <rte_mempool.h>

#include "../clib/ah_table.h"
#include "../clib/eal.h"
#include "../clib/qp_new.h"
#include "crc_isal.h"

enum { HANDOFF = 256, WAITS = 400, TURNS_END = 64, RELEASES = 8 };

struct bed fw;

static uint8_t arena_fill[ARENA];

static ns_t
bed_clock(void)
{
	return fw.now;
}

static uint8_t *
lines(size_t bytes)
{
	uint8_t *at = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	FUZZ_CHECK(at != NULL);
	return at;
}

/* ---- once ------------------------------------------------------------------------------------ */

static void
worker_once(uint32_t i)
{
	struct worker_bed *b = &fw.w[i];
	char name[16];

	snprintf(name, sizeof(name), "handoff%u", i);
	b->handoff = rte_ring_create(name, HANDOFF, SOCKET_ID_ANY, 0);
	FUZZ_CHECK(b->handoff != NULL && mbox_create(&b->mbox, i, 64, 0) == 0);
	b->bells_mem = lines(ring_bells_size(BELLS));
	b->conf = (struct worker_conf){ .index = (uint16_t)i,
		.ports_n = PORTS,
		.workers_n = WORKERS,
		.crc = crc_isal(),
		.mbox = &b->mbox,
		.srqs = &fw.srqs,
		.handoff_in = b->handoff,
		.errbuf_entries = 8,
		.trace_entries = 64,
		.clock = bed_clock };
	ports_conf(&b->conf, i);
}

void
bed_start(void)
{
	static bool started;
	const size_t sq = ring_size(ENTRIES, ring_send_stride(SGES, INLINE));
	const size_t rq = ring_size(ENTRIES, ring_recv_stride(SGES));

	if (started)
		return;
	started = true;
	FUZZ_CHECK(eal_start("64") == 0);
	ports_start();
	for (uint32_t i = 0; i < WORKERS; i++)
		worker_once(i);
	for (uint32_t i = 0; i < WORKERS; i++)
		for (uint32_t k = 0; k < WORKERS; k++)
			fw.w[i].conf.handoff[k] = fw.w[k].handoff;
	for (uint32_t i = 0; i < QPS; i++) {
		fw.q[i].plan = &fuzz_plans[i];
		fw.q[i].sq.mem = lines(fw.q[i].sq.len = sq);
		fw.q[i].rq.mem = lines(fw.q[i].rq.len = rq);
	}
	for (uint32_t i = 0; i < SRQS; i++)
		fw.srq[i].post.mem = lines(fw.srq[i].post.len = rq);
	for (uint32_t i = 0; i < CQS; i++) {
		const size_t room = ring_size(bed_cqes(i), 64), more = ring_size(CQES, 64);

		FUZZ_CHECK(mem_area_create(&fw.cq[i].cq.area, room, -1, 0) == 0);
		FUZZ_CHECK(mem_area_create(&fw.cq[i].area, more, -1, 0) == 0);
	}
	for (uint32_t i = 0; i < ARENA; i++)
		arena_fill[i] = (uint8_t)(i * 37 + (i >> 8));
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void
look_completions(uint32_t i)
{
	struct ring_cqe c;

	while (ring_cq_poll(&fw.cq[i].polled, &c, 1) == 1) {
		if (fw.scribbled)
			continue;
		FUZZ_CHECK(c.wr_id < fw.serial && fw.fate[c.wr_id] == FATE_POSTED);
		fw.fate[c.wr_id] = FATE_DONE;
	}
}

static void
look_up(struct mbox *b)
{
	struct ring_aeq_event e;
	struct mbox_msg m;

	while (mbox_recv_up(b, &m, 1) == 1)
		if (m.type == MBOX_PACKET)
			rte_pktmbuf_free(m.pkt.m);
	while (mbox_next_event(b, &e))
		;
	mbox_events_done(b);
}

/** What no key of the client allows to change has not been changed. */
static void
look_memory(void)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i <= REGIONS; i++) {
		const struct region_plan *r = i < REGIONS ? &fuzz_regions[i] : NULL;
		const uint32_t end = r != NULL ? r->at : ARENA;

		if (r != NULL && (r->pd != PD || (r->access & ACCESS_LOCAL_WRITE) == 0))
			continue; /* the same as what is between regions */
		FUZZ_CHECK(memcmp(fw.arena + at, arena_fill + at, end - at) == 0);
		at = r != NULL ? r->at + r->len : ARENA;
	}
}

void
bed_turn(void)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		worker_poll(fw.w[i].w, fw.now);
		look_up(&fw.w[i].mbox);
	}
	ports_drain();
	for (uint32_t i = 0; i < CQS && !fw.away; i++)
		look_completions(i);
	look_memory();
}

int
bed_tell(uint32_t worker, struct mbox_msg *m)
{
	struct mbox_msg done;

	m->cookie = ++fw.cookie;
	FUZZ_CHECK(mbox_send_down(&fw.w[worker].mbox, m) == 0);
	for (int i = 0; i < WAITS; i++) {
		bed_turn();
		if (mbox_recv_done(&fw.w[worker].mbox, &done, 1) == 1) {
			FUZZ_CHECK(done.type == MBOX_DONE && done.cookie == m->cookie);
			return done.done.rc;
		}
	}
	FUZZ_CHECK(!"the worker answers");
	return -1;
}

void
bed_round_trip(void)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct mbox_msg m = { .type = MBOX_SYNC };

		FUZZ_CHECK(bed_tell(i, &m) == 0);
	}
}

/** To another ring, as object_cq_resize() does. */
void
bed_resize(uint32_t i)
{
	struct qp_cq *cq = &fw.cq[i].cq;
	struct ring_cq *now = &fw.cq[i].now;

	if (atomic_load(&cq->moved) != NULL || atomic_load(&cq->error))
		return;
	bed_round_trip();
	memset(now, 0, sizeof(*now));
	ring_cq_attach(now, fw.cq[i].area.base, CQES, CQES, true);
	ring_cq_follow(now, &cq->ring);
	atomic_store(&cq->moved, now);
	atomic_store((_Atomic uint32_t *)&cq->ring.limit, 0);
	bed_round_trip();
	look_completions(i);
	fw.cq[i].polled = *now;
}

uint32_t
bed_cqes(uint32_t i)
{
	return i == CQS - 1 ? CQES_FEW : CQES;
}

/* ---- from worker to worker ------------------------------------------------------------------- */

static int
tell_of_move(uint32_t worker, enum mbox_type type)
{
	struct qp *qp = fw.moving.q->qp;
	struct mbox_msg m = { .type = type };

	if (type == MBOX_QP_PARK || type == MBOX_QP_RELEASE)
		m.move = (struct mbox_move){ qp, fw.moving.to };
	else
		m.qp.qp = qp;
	return bed_tell(worker, &m);
}

static void
unpark(void)
{
	for (uint32_t w = 0; w < WORKERS; w++)
		FUZZ_CHECK(tell_of_move(w, MBOX_QP_UNPARK) == 0);
	fw.moving.q = NULL;
}

/** @return false: its old owner cannot let it go yet. */
static bool
go_on(void)
{
	struct qp_bed *q = fw.moving.q;
	int rc;

	if (!fw.moving.released) {
		rc = tell_of_move(q->worker, MBOX_QP_RELEASE);
		FUZZ_CHECK(rc == 0 || rc == -EAGAIN);
		return fw.moving.released = rc == 0;
	}
	FUZZ_CHECK(tell_of_move(fw.moving.to, MBOX_QP_ADOPT) == 0);
	q->worker = fw.moving.to;
	unpark();
	return true;
}

void
bed_move(uint32_t i)
{
	struct qp_bed *q = &fw.q[i];

	if (fw.moving.q != NULL) {
		go_on();
		return;
	}
	if (q->qp == NULL || (q->plan->how & PLAN_OWN) == 0)
		return;
	fw.moving.q = q;
	fw.moving.to = (uint8_t)(1 - q->worker);
	fw.moving.released = false;
	FUZZ_CHECK(tell_of_move(fw.moving.to, MBOX_QP_PARK) == 0);
}

void
bed_moved(void)
{
	for (int n = 0; fw.moving.q != NULL && n < RELEASES; n++)
		if (go_on())
			n = 0;
	if (fw.moving.q != NULL)
		unpark();
}

void
bed_posted(uint32_t i, bool receives)
{
	struct mbox_msg m = { .type = receives ? MBOX_QP_RECEIVES : MBOX_QP_POSTED };

	if (fw.moving.q == &fw.q[i])
		bed_moved();
	m.qp.qp = fw.q[i].qp;
	FUZZ_CHECK(bed_tell(fw.q[i].worker, &m) == 0);
}

/* ---- one input ------------------------------------------------------------------------------- */

static void
open_queues(void)
{
	for (uint32_t i = 0; i < CQS; i++) {
		struct qp_cq *cq = &fw.cq[i].cq;

		ring_cq_attach(&cq->ring, cq->area.base, bed_cqes(i), bed_cqes(i), true);
		ring_cq_attach(&fw.cq[i].polled, cq->area.base, bed_cqes(i), bed_cqes(i), false);
		cq->id = 90 + i;
		atomic_store(&cq->error, false);
		atomic_store(&cq->moved, NULL);
		atomic_store(&cq->producer, CQ_PRODUCER_ANY);
	}
	memset(&fw.srqs, 0, sizeof(fw.srqs));
	bed_srqs();
}

void
bed_srqs(void)
{
	for (uint32_t i = 0; i < SRQS; i++) {
		struct queue *post = &fw.srq[i].post;
		struct qp_srq *q = &fw.srq[i].q;

		memset(q, 0, sizeof(*q));
		memset(post->mem, 0, post->len);
		ring_srq_attach(&q->ring, post->mem, ENTRIES, ring_recv_stride(SGES));
		ring_srq_producer(&q->ring, &post->ring);
		q->id = 70 + ++fw.srq_ids;
		q->pd = PD;
		q->max_sge = SGES;
		q->num = i;
		q->xrcd = i != 0 ? XRCD : 0;
		q->cq = i != 0 ? &fw.cq[1].cq : NULL;
		fw.srq[i].on = false;
		if (i != 0)
			bed_srq(i, true);
	}
}

void
bed_bells(uint32_t worker)
{
	struct worker_bed *b = &fw.w[worker];

	memset(&b->client, 0, sizeof(b->client));
	memset(b->bells_mem, 0, ring_bells_size(BELLS));
	b->client.id = CLIENT;
	ring_bells_attach(&b->client.bells, b->bells_mem, BELLS);
	ring_bells_attach(&b->bells, b->bells_mem, BELLS);
}

static void
open_worker(uint32_t i)
{
	struct worker_bed *b = &fw.w[i];
	struct mbox_msg m = { .type = MBOX_CLIENT_ATTACH };

	b->conf.qps = fw.qps;
	b->conf.mem = fw.mem;
	b->conf.ahs = fw.ahs;
	b->conf.mcasts = fw.mcasts;
	b->w = worker_create(&b->conf);
	FUZZ_CHECK(b->w != NULL);
	bed_bells(i);
	m.client.client = &b->client;
	m.cookie = ++fw.cookie;
	FUZZ_CHECK(mbox_send_down(&b->mbox, &m) == 0);
}

/** One of them: a compact QP that comes again may find none. */
static void
open_sides(uint32_t i)
{
	struct mbox_msg m = { .type = MBOX_SIDES, .sides.list = qp_new_sides(1) };

	FUZZ_CHECK(m.sides.list != NULL && bed_tell(i, &m) == 0);
}

void
bed_open(void)
{
	struct mbox_msg done;

	fw.now = TIME_NS_PER_S;
	fw.serial = 0;
	fw.scribbled = fw.stuck = fw.away = fw.impaired = false;
	fw.floods = 0;
	fw.srq_ids = 0;
	for (uint32_t i = 0; i < QPS; i++)
		fw.q[i].knobs = (struct knobs){ .on = false };
	memcpy(fw.arena, arena_fill, ARENA);
	fw.qps = qp_table_create(64, 0);
	fw.mem = mem_table_create(64);
	fw.ahs = ah_table_empty();
	FUZZ_CHECK(fw.ahs != NULL);
	fw.mcasts = qp_mcast_table_create();
	FUZZ_CHECK(fw.qps != NULL && fw.mem != NULL && fw.mcasts != NULL);
	FUZZ_CHECK(mem_table_readers(fw.mem, WORKERS) == 0);
	for (uint32_t i = 0; i < WORKERS; i++)
		open_worker(i);
	for (uint32_t i = 0; i < CQS; i++)
		ring_cq_attach(
			&fw.cq[i].polled, fw.cq[i].cq.area.base, bed_cqes(i), bed_cqes(i), true);
	for (int t = 0; t < 2; t++)
		bed_turn();
	for (uint32_t i = 0; i < WORKERS; i++)
		FUZZ_CHECK(mbox_recv_done(&fw.w[i].mbox, &done, 1) == 1 && done.done.rc == 0);
	open_queues();
	for (uint32_t i = 0; i < WORKERS; i++)
		open_sides(i);
	for (uint32_t i = 0; i < REGIONS; i++)
		bed_region(i, true);
	for (uint32_t i = 0; i < WINDOWS; i++)
		bed_window(i, true);
	for (uint32_t i = 0; i < HANDLES; i++)
		bed_handle(i, 1);
	for (uint32_t i = 0; i < QPS; i++) {
		bed_attach(i);
		for (uint8_t s = QPS_INIT; s <= QPS_RTS; s++)
			bed_state(i, s);
	}
	for (uint32_t g = 0; g < GROUPS; g++)
		for (uint32_t i = 0; i < QPS; i++)
			if (fuzz_plans[i].type == QPT_UD && fuzz_plans[i].port == g >> 1)
				bed_group(g, i, true);
}

/**
 * Each packet that a worker has received, or has copied for another member, has one reason. What is
 * counted at ports is the worker's.
 */
static void
look_accounts(uint32_t i)
{
	const uint64_t *c = worker_stats(fw.w[i].w)->c;
	const uint64_t in = c[STAT_rx_packets] + c[STAT_rx_handoff_in] + c[STAT_rx_mcast_copies];
	uint64_t out = c[STAT_rcvd_pkts] + c[STAT_rx_control] + c[STAT_rx_handoff];

	for (uint32_t s = 0; s < STAT_MAX; s++) {
		uint64_t ports = 0;

		out += stats_info[s].drop != 0 ? c[s] : 0;
		for (uint16_t k = 0; k < PORTS; k++)
			ports += worker_port_stats(fw.w[i].w, k)->c[s];
		FUZZ_CHECK(ports == 0 || ports == c[s]);
	}
	FUZZ_CHECK(in == out);
}

void
bed_close(void)
{
	fw.stuck = fw.away = false;
	ports_hoard(0);
	for (int i = 0; i < TURNS_END; i++)
		bed_turn();
	bed_moved();
	for (uint32_t i = 0; i < QPS; i++) {
		bed_state(i, QPS_ERR);
		bed_detach(i);
	}
	for (uint32_t i = 0; i < WINDOWS; i++)
		bed_window(i, false);
	for (uint32_t i = 0; i < REGIONS; i++) {
		bed_region(i, false);
		FUZZ_CHECK(fw.mr[i] == NULL); /* no window is left */
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct mbox_msg m = { .type = MBOX_CLIENT_DETACH };

		m.client.client = &fw.w[i].client;
		FUZZ_CHECK(bed_tell(i, &m) == 0);
	}
	for (int i = 0; i < TURNS_END; i++)
		bed_turn();
	for (uint32_t i = 0; i < WORKERS; i++) {
		look_accounts(i);
		worker_destroy(fw.w[i].w);
	}
	ports_drain();
	ports_forget();
	for (uint32_t i = 0; i < HANDLES; i++)
		bed_handle(i, 0);
	FUZZ_CHECK(fw.ahs->used == 0);
	qp_mcast_table_destroy(fw.mcasts);
	mem_table_destroy(fw.mem);
	qp_table_destroy(fw.qps);
	FUZZ_CHECK(rte_mempool_avail_count(fw.pool) == MBUFS);
}
