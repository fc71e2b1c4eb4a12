/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_fair_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "../clib/eal.h"
#include "../clib/qp_new.h"
#include "bench_mem.h"
#include "bench_net.h"
#include "crc_isal.h"
#include "net_pair.h"

enum {
	MBUFS = 32767,
	DATA_ROOM = 4096 + 256 + RTE_PKTMBUF_HEADROOM,
	WIRE_RING = 8192,
	PMTU = 4096,
	PEER_TURNS = 4, /* turns that peers have in one of the measured host, at most */
	OTHER_LINES = (1 << 20) / CACHE_LINE, /* a core's own cache */
};

#define LONG_TURN 20000 /* ns: whoever takes that long may have lost the CPU */

struct fair_world fair;
static struct rte_mempool *pool;
static int heap;

void
die(const char *what)
{
	fprintf(stderr, "bench_fair: %s\n", what);
	exit(1);
}

uint32_t
fair_random(void)
{
	fair.random = fair.random * 1664525u + 1013904223u;
	return fair.random >> 8;
}

uint32_t
fair_first_qp(uint32_t app, uint32_t *n)
{
	if (n != NULL)
		*n = app == VICTIM ? 1 : app == OTHER ? (uint32_t)OTHER_QPS : (uint32_t)CROWD_QPS;
	return app < CROWD ? app : CROWD_QP + (app - CROWD) * CROWD_QPS;
}

struct host *
fair_host_of(uint32_t app, uint32_t *port)
{
	if (fair.hosts_n == 1) {
		*port = 0;
		return &fair.host[MEASURED];
	}
	*port = app == VICTIM ? 0 : app - OTHER;
	return &fair.host[app == VICTIM ? 1 : 2];
}

/* ---- time ------------------------------------------------------------------------------------ */

static ns_t
clock_now(void)
{
	if (fair.turn_from == 0)
		return fair.now;
	return fair.now + (ns_t)((double)(rte_rdtsc() - fair.turn_from) * fair.ns_per_cycle);
}

bool
fair_lost_cpu(void)
{
	struct rusage u;
	long before = fair.switches;

	getrusage(RUSAGE_THREAD, &u);
	fair.switches = u.ru_nivcsw;
	return fair.switches != before;
}

/**
 * Peers do all that they can: what they are told in a turn, they have answered in the next. Only
 * then the link takes frames of all of them: it is as fast as the worker, so who always has more
 * does not fill it before those who wait for an answer have theirs.
 */
static void
peers_turn(void)
{
	fair_link_deliver();
	for (uint32_t i = 0, busy = 1; busy != 0 && i < PEER_TURNS; i++) {
		busy = 0;
		for (uint32_t k = 1; k < fair.hosts_n; k++)
			busy += worker_poll(fair.host[k].w, fair.now);
	}
	fair_link_collect();
}

/**
 * Peers that do much between two turns would leave less of the worker in this CPU's caches than
 * those that do little. Let it find the same in each turn: nothing.
 */
static void
other_work(void)
{
	static uint8_t other[OTHER_LINES][CACHE_LINE];

	for (uint32_t i = 0; i < OTHER_LINES; i++)
		other[i][0]++;
}

/** A turn in which this thread lost its CPU is no time of the worker. */
void
fair_turn(void)
{
	ns_t end;

	if (fair.hosts_n > 1) {
		peers_turn();
		other_work();
	}
	fair.turn_from = rte_rdtsc();
	worker_poll(fair.host[MEASURED].w, fair.now);
	end = clock_now();
	fair.turn_from = 0;
	if (end - fair.now >= LONG_TURN && fair_lost_cpu())
		fair.lost += end - fair.now;
	else if (end - fair.now > fair.longest)
		fair.longest = end - fair.now;
	fair.now = end;
}

static int
tell(struct host *h, struct mbox_msg msg)
{
	if (mbox_send_down(&h->mbox, &msg) != 0)
		die("the mailbox is full");
	while (mbox_recv_done(&h->mbox, &msg, 1) != 1) {
		if (fair.working)
			fair_victim_acts();
		fair_turn();
	}
	return msg.done.rc;
}

/* ---- QPs ------------------------------------------------------------------------------------- */

struct wire_path
fair_path(uint8_t from, uint8_t to)
{
	return bench_path(NET_IPV4, from, to);
}

/** @param port  index of the host's ports. @param address  of that port. */
static void
make_end(
	struct end *e, struct host *h, uint32_t client, uint32_t qpn, uint32_t port, uint32_t depth)
{
	const struct qp_alloc_params params = { .qpn = qpn,
		.pd = 1,
		.client = h == &fair.host[MEASURED] && fair.hosts_n > 1 ? 0 : client + 1,
		.send_cq = &fair.app[client].cq,
		.recv_cq = &fair.app[client].cq,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = depth,
		.max_send_sge = SGES,
		.max_dest_rd_atomic = 16,
		.socket = heap };
	struct mbox_msg msg = { .type = MBOX_QP_ATTACH };

	*e = (struct end){ .host = h, .qp = qp_new(&params) };
	if (e->qp == NULL)
		die("no QP");
	e->address = h->conf.ports[port].addr.ipv4[3];
	e->qp->port = (uint8_t)h->conf.ports[port].id;
	msg.attach.qp = e->qp;
	if (tell(h, msg) != 0)
		die("no slot");
}

void
fair_modify(struct end *e, struct qp_attr *a, enum qp_state state, uint32_t mask)
{
	struct mbox_msg msg = { .type = MBOX_QP_MODIFY };
	int rc;

	a->qp_state = (uint8_t)state;
	msg.modify = (struct mbox_modify){ e->qp, a, QP_ATTR_STATE | mask };
	do
		rc = tell(e->host, msg);
	while (rc == -EINPROGRESS); /* it flushes the QP */
	if (rc != 0)
		die("a modify was refused");
}

static void
bring_up(struct end *e, const struct end *peer)
{
	struct qp_attr a = { .pkey = 0xffff,
		.qp_access_flags = 15,
		.path_mtu = PMTU,
		.dest_qp_num = peer->qp->qpn,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.path = fair_path(e->address, peer->address),
		.path_resolved = true };

	fair_modify(e, &a, QPS_RESET, 0);
	fair_modify(e, &a, QPS_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS);
	fair_modify(e, &a, QPS_RTR,
		QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	fair_modify(e, &a, QPS_RTS,
		QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			QP_ATTR_MAX_QP_RD_ATOMIC);
}

void
fair_begin_pair(uint32_t i)
{
	struct end *e = &fair.requester[i];

	bring_up(e, &fair.responder[i]);
	bring_up(&fair.responder[i], e);
	/* As an application that made the QP anew. */
	ring_attach(
		&e->sq, e->qp->sq.ring.sh, e->qp->sq.ring.mask + 1, e->qp->sq.ring.stride, false);
	e->sq.prod = e->sq.cons = atomic_load(&e->sq.sh->cons);
	atomic_store(&e->sq.sh->prod, e->sq.prod);
	atomic_store(&e->sq.sh->bell, 0);
	e->under_way = 0;
}

void
fair_end_pair(uint32_t i)
{
	struct qp_attr a = { 0 };

	fair_modify(&fair.requester[i], &a, QPS_RESET, 0);
	fair_modify(&fair.responder[i], &a, QPS_RESET, 0);
}

/* ---- set up ---------------------------------------------------------------------------------- */

void
fair_start(void)
{
	if (eal_start("64") != 0)
		die("EAL does not start");
	heap = bench_heap("bench", (256u << 20) + MBUFS * (DATA_ROOM + 512));
	pool = rte_pktmbuf_pool_create("bench", MBUFS, 256, 0, DATA_ROOM, heap);
	if (pool == NULL)
		die("no pool");
}

/** Two ports of one worker that face each other: requests leave at the left one. */
static void
make_ports(struct host *h)
{
	static bool made; /* ports outlive a world; nothing is left on their wires */
	static uint16_t id[2];

	if (!made && net_pair_create("fair", 1, WIRE_RING, &id[0], &id[1]) != 0)
		die("no ports");
	h->conf.ports_n = 2;
	for (uint32_t i = 0; i < 2; i++) {
		const struct wire_path out = fair_path((uint8_t)(1 + i), 0);
		struct pipeline_port *p = &h->conf.ports[i];

		if (!made && net_pair_start(id[i], pool) != 0)
			die("a port does not start");
		*p = (struct pipeline_port){
			.id = id[i], .polls_rx = true, .pool = pool, .addr = { .has_ipv4 = true }
		};
		memcpy(p->addr.mac, out.smac, sizeof(p->addr.mac));
		memcpy(p->addr.ipv4, out.src_ip, sizeof(p->addr.ipv4));
	}
	made = true;
}

static void
make_region(struct host *h)
{
	struct mem_region *mr = mem_region_alloc();

	if (mr == NULL)
		die("no memory");
	mr->va = REGION_VA;
	mr->length = REGION_LEN;
	mr->host = bench_huge_pages(REGION_LEN);
	memset(mr->host, 1, REGION_LEN); /* its pages are there before time counts */
	mr->key = REGION_KEY;
	mr->pd = 1;
	mr->access = 15;
	if (mem_table_add(h->conf.mem, mr) != 0)
		die("no region");
}

static void
make_host(struct host *h)
{
	h->conf.socket = heap;
	h->conf.workers_n = 1;
	h->conf.crc = crc_isal();
	h->conf.qps = qp_table_create(4096, heap);
	h->conf.mem = mem_table_create(16);
	h->conf.mbox = &h->mbox;
	h->conf.clock = clock_now;
	if (h->conf.qps == NULL || h->conf.mem == NULL ||
		mbox_create(&h->mbox, (unsigned int)(h - fair.host), 2048, heap) != 0)
		die("no memory");
	make_region(h);
	h->w = worker_create(&h->conf);
	if (h->w == NULL)
		die("no worker");
}

static void
make_app(uint32_t i)
{
	struct app *app = &fair.app[i];
	uint8_t *bells = bench_huge_pages(ring_bells_size(BELLS));
	struct mbox_msg msg = { .type = MBOX_CLIENT_ATTACH, .client.client = &app->client };
	uint32_t port;

	ring_bells_attach(&app->client.bells, bells, BELLS);
	ring_bells_attach(&app->bells, bells, BELLS);
	app->client.id = i + 1;
	app->client.user = fair.one_user && i >= CROWD ? CROWD + 1 : i + 1;
	app->cq.area.base = bench_huge_pages(ring_size(CQ_DEPTH, sizeof(struct ring_cqe)));
	memset(app->cq.area.base, 0, ring_size(CQ_DEPTH, sizeof(struct ring_cqe)));
	ring_cq_attach(&app->cq.ring, app->cq.area.base, CQ_DEPTH, CQ_DEPTH, true);
	atomic_store(&app->cq.producer, 1); /* worker 0 alone */
	if (tell(fair_host_of(i, &port), msg) != 0)
		die("no client");
}

/** Its QPs, with their other ends: at the other port of the worker, or on the measured host. */
static void
make_app_qps(uint32_t app)
{
	uint32_t port, n, first = fair_first_qp(app, &n);
	struct host *h = fair_host_of(app, &port);

	for (uint32_t k = 0; k < n; k++) {
		const uint32_t i = first + k;
		const bool deep = app == OTHER && k < DEEP_QPS;

		make_end(
			&fair.requester[i], h, app, REQUESTER_QPN + i, port, deep ? DEEP : SHALLOW);
		make_end(&fair.responder[i], &fair.host[MEASURED], app, RESPONDER_QPN + i,
			fair.hosts_n > 1 ? 0 : 1, SHALLOW);
	}
}

void
fair_set_up(enum fair_world_kind world)
{
	memset(&fair, 0, sizeof(fair));
	fair.hosts_n = world == WORLD_PEERS ? HOSTS : 1;
	fair.one_user = world == WORLD_USERS;
	fair.ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();
	fair.now = TIME_NS_PER_S;
	if (world == WORLD_PEERS)
		fair_link_make(pool);
	else
		make_ports(&fair.host[MEASURED]);
	for (uint32_t i = 0; i < fair.hosts_n; i++)
		make_host(&fair.host[i]);
	for (uint32_t i = 0; i < APPS; i++)
		make_app(i);
	for (uint32_t i = 0; i < APPS; i++)
		make_app_qps(i);
}

static void
unmake_end(struct end *e)
{
	struct mbox_msg msg = { .type = MBOX_QP_DETACH };

	msg.qp.qp = e->qp;
	if (tell(e->host, msg) != 0)
		die("a QP stays");
	qp_free(e->qp);
}

void
fair_tear_down(void)
{
	for (uint32_t i = 0; i < APPS; i++) {
		uint32_t n, first = fair_first_qp(i, &n);

		for (uint32_t k = first; k < first + n; k++) {
			unmake_end(&fair.requester[k]);
			unmake_end(&fair.responder[k]);
		}
	}
	for (uint32_t i = 0; i < fair.hosts_n; i++) {
		worker_destroy(fair.host[i].w);
		mbox_destroy(&fair.host[i].mbox);
	}
}
