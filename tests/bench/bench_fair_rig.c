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
#include "crc_isal.h"
#include "net_pair.h"

enum {
	MBUFS = 16383,
	DATA_ROOM = 4096 + 256 + RTE_PKTMBUF_HEADROOM,
	WIRE_RING = 8192,
	PMTU = 4096,
};

#define LONG_TURN 20000 /* ns: whoever takes that long may have lost the CPU */

struct fair_world fair;

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

/** A turn in which this thread lost its CPU says nothing about the length of turns. */
void
fair_turn(void)
{
	ns_t end;

	fair.turn_from = rte_rdtsc();
	worker_poll(fair.w, fair.now);
	end = clock_now();
	fair.turn_from = 0;
	if (end - fair.now > fair.longest && (end - fair.now < LONG_TURN || !fair_lost_cpu()))
		fair.longest = end - fair.now;
	fair.now = end;
}

static int
tell(struct mbox_msg msg)
{
	if (mbox_send_down(&fair.mbox, &msg) != 0)
		die("the mailbox is full");
	while (mbox_recv_done(&fair.mbox, &msg, 1) != 1) {
		if (fair.working)
			fair_victim_acts();
		fair_turn();
	}
	return msg.done.rc;
}

/* ---- QPs ------------------------------------------------------------------------------------- */

/** From the left port (0) to the right one (1), or back. */
static struct wire_path
path_from(uint32_t side)
{
	const uint8_t from = (uint8_t)(1 + side), to = (uint8_t)(2 - side);

	return (struct wire_path){ .smac = { 2, 0, 0, 0, 0, from },
		.dmac = { 2, 0, 0, 0, 0, to },
		.src_ip = { 192, 0, 2, from },
		.dst_ip = { 192, 0, 2, to },
		.tos = 2,
		.ttl = 64,
		.sport = 0xc000 };
}

static struct qp *
make_qp(uint32_t client, uint32_t qpn, uint32_t side, uint32_t depth)
{
	const struct qp_alloc_params params = { .qpn = qpn,
		.pd = 1,
		.client = client + 1,
		.send_cq = &fair.app[client].cq,
		.recv_cq = &fair.app[client].cq,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = depth,
		.max_send_sge = SGES,
		.max_dest_rd_atomic = 16,
		.socket = fair.conf.socket };
	struct mbox_msg msg = { .type = MBOX_QP_ATTACH };
	struct qp *qp = qp_new(&params);

	if (qp == NULL)
		die("no QP");
	qp->port = (uint8_t)fair.port[side];
	msg.attach.qp = qp;
	if (tell(msg) != 0)
		die("no slot");
	return qp;
}

void
fair_modify(struct qp *qp, struct qp_attr *a, enum qp_state state, uint32_t mask)
{
	struct mbox_msg msg = { .type = MBOX_QP_MODIFY };
	int rc;

	a->qp_state = (uint8_t)state;
	msg.modify = (struct mbox_modify){ qp, a, QP_ATTR_STATE | mask };
	do
		rc = tell(msg);
	while (rc == -EINPROGRESS); /* it flushes the QP */
	if (rc != 0)
		die("a modify was refused");
}

static void
bring_up(struct qp *qp, uint32_t peer, uint32_t side)
{
	struct qp_attr a = { .pkey = 0xffff,
		.qp_access_flags = 15,
		.path_mtu = PMTU,
		.dest_qp_num = peer,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.path = path_from(side),
		.path_resolved = true };

	fair_modify(qp, &a, QPS_RESET, 0);
	fair_modify(qp, &a, QPS_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS);
	fair_modify(qp, &a, QPS_RTR,
		QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	fair_modify(qp, &a, QPS_RTS,
		QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			QP_ATTR_MAX_QP_RD_ATOMIC);
}

void
fair_begin_pair(uint32_t i)
{
	struct end *e = &fair.requester[i];

	bring_up(e->qp, RESPONDER_QPN + i, 0);
	bring_up(fair.responder[i], REQUESTER_QPN + i, 1);
	/* As an application that made the QP anew. */
	ring_attach(&e->sq, e->qp->sq.ring.sh, e->qp->sq.ring.mask + 1, e->qp->sq.ring.stride,
		false);
	e->sq.prod = e->sq.cons = atomic_load(&e->sq.sh->cons);
	atomic_store(&e->sq.sh->prod, e->sq.prod);
	atomic_store(&e->sq.sh->bell, 0);
	e->under_way = 0;
}

void
fair_end_pair(uint32_t i)
{
	struct qp_attr a = { 0 };

	fair_modify(fair.requester[i].qp, &a, QPS_RESET, 0);
	fair_modify(fair.responder[i], &a, QPS_RESET, 0);
}

/* ---- set up ---------------------------------------------------------------------------------- */

static void
make_ports(void)
{
	struct rte_mempool *pool;

	if (eal_start("64") != 0)
		die("EAL does not start");
	fair.conf.socket = bench_heap("bench", (192u << 20) + MBUFS * (DATA_ROOM + 512));
	pool = rte_pktmbuf_pool_create("bench", MBUFS, 256, 0, DATA_ROOM, fair.conf.socket);
	if (pool == NULL ||
		net_pair_create("fair", 1, WIRE_RING, &fair.port[0], &fair.port[1]) != 0 ||
		mbox_create(&fair.mbox, 0, 2048, fair.conf.socket) != 0)
		die("no ports");
	fair.conf.ports_n = 2;
	for (uint32_t i = 0; i < 2; i++) {
		const struct wire_path out = path_from(i);
		struct pipeline_port *p = &fair.conf.ports[i];

		if (net_pair_start(fair.port[i], pool) != 0)
			die("a port does not start");
		*p = (struct pipeline_port){ .id = fair.port[i],
			.polls_rx = true,
			.pool = pool,
			.addr = { .has_ipv4 = true } };
		memcpy(p->addr.mac, out.smac, sizeof(p->addr.mac));
		memcpy(p->addr.ipv4, out.src_ip, sizeof(p->addr.ipv4));
	}
}

static void
make_region(void)
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
	if (mem_table_add(fair.conf.mem, mr) != 0)
		die("no region");
}

static void
make_app(uint32_t i)
{
	struct app *app = &fair.app[i];
	uint8_t *bells = bench_huge_pages(ring_bells_size(BELLS));
	struct mbox_msg msg = { .type = MBOX_CLIENT_ATTACH, .client.client = &app->client };

	ring_bells_attach(&app->client.bells, bells, BELLS);
	ring_bells_attach(&app->bells, bells, BELLS);
	app->client.id = i + 1;
	app->cq.area.base = bench_huge_pages(ring_size(CQ_DEPTH, sizeof(struct ring_cqe)));
	memset(app->cq.area.base, 0, ring_size(CQ_DEPTH, sizeof(struct ring_cqe)));
	ring_cq_attach(&app->cq.ring, app->cq.area.base, CQ_DEPTH, CQ_DEPTH, true);
	atomic_store(&app->cq.producer, 1); /* worker 0 alone */
	if (tell(msg) != 0)
		die("no client");
}

void
fair_set_up(void)
{
	make_ports();
	fair.ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();
	fair.now = TIME_NS_PER_S;
	fair.conf.workers_n = 1;
	fair.conf.crc = crc_isal();
	fair.conf.qps = qp_table_create(4096, fair.conf.socket);
	fair.conf.mem = mem_table_create(16);
	fair.conf.mbox = &fair.mbox;
	fair.conf.clock = clock_now;
	if (fair.conf.qps == NULL || fair.conf.mem == NULL)
		die("no memory");
	make_region();
	fair.w = worker_create(&fair.conf);
	if (fair.w == NULL)
		die("no worker");
	make_app(VICTIM);
	make_app(OTHER);
	for (uint32_t i = 0; i < QPS; i++) {
		const uint32_t client = i < OTHER ? VICTIM : OTHER;
		const bool deep = client == OTHER && i < OTHER + DEEP_QPS;

		fair.requester[i].qp = make_qp(client, REQUESTER_QPN + i, 0, deep ? DEEP : SHALLOW);
		fair.responder[i] = make_qp(client, RESPONDER_QPN + i, 1, SHALLOW);
	}
}

void
fair_tear_down(void)
{
	worker_destroy(fair.w);
	mbox_destroy(&fair.mbox);
}
