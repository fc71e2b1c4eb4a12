/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_fair_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "../clib/qp_new.h"
#include "bench_mem.h"
#include "bench_stat.h"
#include "crc_isal.h"
#include "net_pair.h"

enum {
	MBUFS = 16383,
	DATA_ROOM = 4096 + 256 + RTE_PKTMBUF_HEADROOM,
	WIRE_RING = 8192,
	PMTU = 4096,
	CQ_DEPTH = 65536,
	BELLS = 1024,
	MAX_LATENCIES = 1 << 20,
	VICTIM = 0, /* clients, and the first QP of each */
	OTHER = 1,
	QPS = OTHER + OTHER_QPS,
	REQUESTER_QPN = 0x400,
	RESPONDER_QPN = 0x800,
};

#define REGION_VA  0x10000000u
#define REGION_KEY 0x1001u
#define REGION_LEN (64u << 20)
#define LONG_TURN  20000 /* ns: whoever takes that long may have lost the CPU */

struct end {
	struct qp *qp;
	struct ring sq; /* the client's view */
	uint32_t under_way;
};

struct app {
	struct qp_client client;
	struct ring_bells bells; /* the client's view */
	struct qp_cq cq;
};

static struct {
	struct worker_conf conf;
	struct worker *w;
	struct mbox mbox;
	uint16_t port[2];
	struct app app[2];
	struct end requester[QPS];
	struct qp *responder[QPS];
	uint32_t random;
	ns_t now;           /* the worker's time: it goes on in turns alone */
	uint64_t turn_from; /* cycles; 0: between two turns */
	double ns_per_cycle;
	ns_t longest;
	bool working;  /* a sample is under way */
	long switches; /* of this thread, against its will */
	ns_t posted[VICTIM_DEPTH];
	uint32_t latencies_n;
	double latencies[MAX_LATENCIES];
} b;

void
die(const char *what)
{
	fprintf(stderr, "bench_fair: %s\n", what);
	exit(1);
}

static uint32_t
next_random(void)
{
	b.random = b.random * 1664525u + 1013904223u;
	return b.random >> 8;
}

/* ---- time ------------------------------------------------------------------------------------ */

static ns_t
clock_now(void)
{
	if (b.turn_from == 0)
		return b.now;
	return b.now + (ns_t)((double)(rte_rdtsc() - b.turn_from) * b.ns_per_cycle);
}

static bool
lost_cpu(void)
{
	struct rusage u;
	long before = b.switches;

	getrusage(RUSAGE_THREAD, &u);
	b.switches = u.ru_nivcsw;
	return b.switches != before;
}

/** A turn in which this thread lost its CPU says nothing about the length of turns. */
static void
turn(void)
{
	ns_t end;

	b.turn_from = rte_rdtsc();
	worker_poll(b.w, b.now);
	end = clock_now();
	b.turn_from = 0;
	if (end - b.now > b.longest && (end - b.now < LONG_TURN || !lost_cpu()))
		b.longest = end - b.now;
	b.now = end;
}

static void victim_acts(void);

static int
tell(struct mbox_msg msg)
{
	if (mbox_send_down(&b.mbox, &msg) != 0)
		die("the mailbox is full");
	while (mbox_recv_done(&b.mbox, &msg, 1) != 1) {
		if (b.working)
			victim_acts();
		turn();
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
		.send_cq = &b.app[client].cq,
		.recv_cq = &b.app[client].cq,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = depth,
		.max_send_sge = SGES,
		.max_dest_rd_atomic = 16,
		.socket = b.conf.socket };
	struct mbox_msg msg = { .type = MBOX_QP_ATTACH };
	struct qp *qp = qp_new(&params);

	if (qp == NULL)
		die("no QP");
	qp->port = (uint8_t)b.port[side];
	msg.attach.qp = qp;
	if (tell(msg) != 0)
		die("no slot");
	return qp;
}

static void
modify(struct qp *qp, struct qp_attr *a, enum qp_state state, uint32_t mask)
{
	struct mbox_msg msg = { .type = MBOX_QP_MODIFY };

	a->qp_state = (uint8_t)state;
	msg.modify = (struct mbox_modify){ qp, a, QP_ATTR_STATE | mask };
	if (tell(msg) != 0)
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

	modify(qp, &a, QPS_RESET, 0);
	modify(qp, &a, QPS_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS);
	modify(qp, &a, QPS_RTR,
		QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	modify(qp, &a, QPS_RTS,
		QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			QP_ATTR_MAX_QP_RD_ATOMIC);
}

static void
begin_pair(uint32_t i)
{
	struct end *e = &b.requester[i];

	bring_up(e->qp, RESPONDER_QPN + i, 0);
	bring_up(b.responder[i], REQUESTER_QPN + i, 1);
	/* As an application that made the QP anew. */
	ring_attach(&e->sq, e->qp->sq.ring.sh, e->qp->sq.ring.mask + 1, e->qp->sq.ring.stride,
		false);
	e->sq.prod = e->sq.cons = atomic_load(&e->sq.sh->cons);
	atomic_store(&e->sq.sh->prod, e->sq.prod);
	atomic_store(&e->sq.sh->bell, 0);
	e->under_way = 0;
}

static void
end_pair(uint32_t i)
{
	struct qp_attr a = { 0 };

	modify(b.requester[i].qp, &a, QPS_RESET, 0);
	modify(b.responder[i], &a, QPS_RESET, 0);
}

/* ---- set up ---------------------------------------------------------------------------------- */

static void
make_ports(void)
{
	char *argv[] = { (char *)(uintptr_t) "bench", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--iova-mode=va",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "-m",
		(char *)(uintptr_t) "64", NULL };
	struct rte_mempool *pool;

	if (rte_eal_init((int)ARRAY_LEN(argv) - 1, argv) < 0)
		die("EAL does not start");
	b.conf.socket = bench_heap("bench", (192u << 20) + MBUFS * (DATA_ROOM + 512));
	pool = rte_pktmbuf_pool_create("bench", MBUFS, 256, 0, DATA_ROOM, b.conf.socket);
	if (pool == NULL || net_pair_create("fair", 1, WIRE_RING, &b.port[0], &b.port[1]) != 0 ||
		mbox_create(&b.mbox, 0, 2048, b.conf.socket) != 0)
		die("no ports");
	b.conf.ports_n = 2;
	for (uint32_t i = 0; i < 2; i++) {
		const struct wire_path out = path_from(i);
		struct pipeline_port *p = &b.conf.ports[i];

		if (net_pair_start(b.port[i], pool) != 0)
			die("a port does not start");
		*p = (struct pipeline_port){ .id = b.port[i],
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
	if (mem_table_add(b.conf.mem, mr) != 0)
		die("no region");
}

static void
make_app(uint32_t i)
{
	struct app *app = &b.app[i];
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
	b.ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();
	b.now = TIME_NS_PER_S;
	b.conf.workers_n = 1;
	b.conf.crc = crc_isal();
	b.conf.qps = qp_table_create(4096, b.conf.socket);
	b.conf.mem = mem_table_create(16);
	b.conf.mbox = &b.mbox;
	b.conf.clock = clock_now;
	if (b.conf.qps == NULL || b.conf.mem == NULL)
		die("no memory");
	make_region();
	b.w = worker_create(&b.conf);
	if (b.w == NULL)
		die("no worker");
	make_app(VICTIM);
	make_app(OTHER);
	for (uint32_t i = 0; i < QPS; i++) {
		const uint32_t client = i < OTHER ? VICTIM : OTHER;
		const bool deep = client == OTHER && i < OTHER + DEEP_QPS;

		b.requester[i].qp = make_qp(client, REQUESTER_QPN + i, 0, deep ? DEEP : SHALLOW);
		b.responder[i] = make_qp(client, RESPONDER_QPN + i, 1, SHALLOW);
	}
}

void
fair_tear_down(void)
{
	worker_destroy(b.w);
	mbox_destroy(&b.mbox);
}

/* ---- clients --------------------------------------------------------------------------------- */

/** @return false: the send queue is full. */
static bool
put(const struct fair_case *c, uint32_t i, uint64_t wr_id)
{
	const uint32_t pieces = c->sges > 1 ? c->sges : 1, step = (c->len + 63) / 64 * 64;
	struct end *e = &b.requester[i];
	struct ring_send_wqe *w = ring_produce_slot(&e->sq, e->sq.mask + 1);

	if (w == NULL)
		return false;
	*w = (struct ring_send_wqe){ .wr_id = wr_id,
		.remote_addr = REGION_VA + next_random() % (REGION_LEN / step) * step,
		.rkey = REGION_KEY,
		.num_sge = pieces,
		.opcode = c->act == ACT_MALFORMED ? 99 : c->opcode,
		.flags = SEND_SIGNALED };
	for (uint32_t k = 0; k < pieces; k++)
		w->sge[k] = (struct ring_sge){ REGION_VA +
						       next_random() % (REGION_LEN / step) * step,
			c->len / pieces, REGION_KEY };
	ring_produce_commit(&e->sq);
	return true;
}

static void
ring_bell(uint32_t client, uint32_t i)
{
	if (ring_bell_is_due(&b.requester[i].sq) &&
		ring_bells_put(&b.app[client].bells, REQUESTER_QPN + i) != 0)
		die("the doorbells are full");
}

/** Each keeps as much under way as it may. */
static void
victim_acts(void)
{
	static const struct fair_case small = { .opcode = WR_RDMA_WRITE, .len = VICTIM_LEN };
	struct ring_cqe cqe[32];
	struct end *e = &b.requester[VICTIM];
	uint32_t n;

	while ((n = ring_cq_poll(&b.app[VICTIM].cq.ring, cqe, 32)) != 0)
		for (uint32_t i = 0; i < n; i++) {
			if (cqe[i].status != WC_SUCCESS)
				die("a WRITE of the victim failed");
			if (b.latencies_n < MAX_LATENCIES)
				b.latencies[b.latencies_n++] =
					(double)(b.now - b.posted[cqe[i].wr_id]);
			e->under_way--;
		}
	for (; e->under_way < VICTIM_DEPTH; e->under_way++) {
		const uint32_t slot = e->sq.prod % VICTIM_DEPTH;

		b.posted[slot] = b.now;
		if (!put(&small, VICTIM, slot))
			die("the victim's send queue is full");
	}
	ring_bell(VICTIM, VICTIM);
}

static void
fill(const struct fair_case *c, uint32_t i)
{
	struct end *e = &b.requester[i];
	uint32_t before = e->under_way;

	if (c->act == ACT_MALFORMED && qp_state_now(e->qp) == QPS_ERR && e->under_way == 0)
		begin_pair(i);
	while (e->under_way < c->depth && put(c, i, i))
		e->under_way++;
	if (e->under_way != before)
		ring_bell(OTHER, i);
}

/** Many, but never so many that the ring is full: then the client would wait. */
static void
ring_bells(const struct fair_case *c)
{
	struct app *app = &b.app[OTHER];

	while (atomic_load(&app->bells.next) - atomic_load(&app->client.bells.next) < BELLS / 2) {
		const uint32_t number = REQUESTER_QPN + OTHER + next_random() % OTHER_QPS;

		ring_bells_put(&app->bells, c->act == ACT_BELLS ? number : next_random() | BIT32(30));
	}
}

static void
other_acts(const struct fair_case *c)
{
	struct ring_cqe cqe[32];
	uint32_t n;

	while ((n = ring_cq_poll(&b.app[OTHER].cq.ring, cqe, 32)) != 0)
		for (uint32_t i = 0; i < n; i++)
			b.requester[cqe[i].wr_id].under_way--;
	switch (c->act) {
	case ACT_NOTHING:
		break;
	case ACT_BELLS:
	case ACT_GARBAGE:
		ring_bells(c);
		break;
	default:
		for (uint32_t i = OTHER; i < OTHER + (uint32_t)c->qps; i++)
			fill(c, i);
		break;
	}
}

/* ---- a sample -------------------------------------------------------------------------------- */

static void
begin(const struct fair_case *c)
{
	struct qp_attr a = { 0 };

	begin_pair(VICTIM);
	for (uint32_t i = OTHER; i < OTHER + (uint32_t)c->qps; i++) {
		begin_pair(i);
		if (c->act == ACT_FLUSH)
			modify(b.requester[i].qp, &a, QPS_ERR, 0);
	}
}

static void
end(const struct fair_case *c)
{
	struct ring_cqe cqe[32];

	for (uint32_t i = 0; i < OTHER + (uint32_t)c->qps; i++)
		end_pair(i);
	for (uint32_t i = 0; i < 10000; i++) /* what is on the wires, and in doorbells */
		turn();
	for (uint32_t i = 0; i < 2; i++)
		while (ring_cq_poll(&b.app[i].cq.ring, cqe, 32) != 0)
			;
}

static void
work(const struct fair_case *c, ns_t ns)
{
	const ns_t until = b.now + ns;

	b.working = true;
	while (b.now < until) {
		victim_acts();
		other_acts(c);
		turn();
	}
	b.working = false;
}

struct fair_sample
fair_run(const struct fair_case *c, ns_t ns)
{
	struct fair_sample s = { 0 };
	ns_t from;

	begin(c);
	work(c, ns / 4);
	b.latencies_n = 0;
	b.longest = 0;
	lost_cpu();
	from = b.now;
	work(c, ns);
	s.rate = (double)b.latencies_n * 1e9 / (double)(b.now - from);
	s.turn = (double)b.longest;
	if (b.latencies_n != 0) {
		qsort(b.latencies, b.latencies_n, sizeof(double), stat_compare);
		s.p99 = b.latencies[b.latencies_n - 1 - b.latencies_n / 100];
	}
	end(c);
	return s;
}
