/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../clib/qp_new.h"
#include "bench_copies.h"
#include "bench_drain.h"
#include "bench_mem.h"
#include "bench_rig.h"
#include "crc_isal.h"
#include "net_pair.h"

static struct {
	struct qp *qp[MAX_QPS];
	struct ring rq[RING_QPS];
	struct qp_srq srq;
	struct ring srq_producer;
	uint32_t psn[MAX_QPS];
	struct qp_cq cq;
	uint8_t payload[MAX_LEN];
} b;

/** What a thread makes packets of: threads with different QPs may do it at the same time. */
static _Thread_local struct {
	uint32_t order; /* state of the generator of random QPs and places */
	uint32_t place;
	uint32_t first; /* QP of a case */
	uint32_t half;  /* of the region: its number */
	uint32_t parts; /* of the region: 1 or 2; 0 is 1 */
} own;

void
die(const char *what)
{
	fprintf(stderr, "bench_pipeline: %s\n", what);
	exit(1);
}

static void
make_port(struct bench_rig *r, uint32_t qps)
{
	char *argv[] = { (char *)(uintptr_t) "bench", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--iova-mode=va",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "-m",
		(char *)(uintptr_t) "64", NULL };

	if (rte_eal_init((int)ARRAY_LEN(argv) - 1, argv) < 0)
		die("EAL does not start");
	r->conf.socket = bench_heap("bench", (128u << 20) + (size_t)qps * 4096);
	r->pool = rte_pktmbuf_pool_create(
		"bench", 4095, 256, 0, MAX_LEN + 256 + RTE_PKTMBUF_HEADROOM, r->conf.socket);
	if (r->pool == NULL ||
		net_pair_create_open("bench", 2048, 0, &r->port, &r->to, &r->from) != 0 ||
		net_pair_start(r->port, r->pool) != 0)
		die("no port");
}

static void
make_qp(struct bench_rig *r, uint32_t i)
{
	const struct qp_alloc_params params = { .max_recv_wr = i < RING_QPS ? MAX_PACKETS : 1,
		.max_recv_sge = 1,
		.max_dest_rd_atomic = i < RING_QPS ? 16 : 1,
		.socket = r->conf.socket };
	struct qp *qp = qp_new(&params);

	if (qp == NULL)
		die("no QP");
	qp->qpn = MAX_QPS + i;
	qp->pd = 1;
	qp->port = (uint8_t)r->port;
	qp->recv_cq = qp->send_cq = &b.cq;
	if (qp_table_insert(r->conf.qps, qp) != 0)
		die("no slot");
	if (i < RING_QPS)
		ring_attach(&b.rq[i], qp->rq.sh, qp->rq.mask + 1, qp->rq.stride, false);
	b.qp[i] = qp;
}

/** Costs what the dataplane's clock costs, and says that no time passes. */
static ns_t
still(void)
{
	const uint64_t cycles = rte_rdtsc();

	return cycles != 0;
}

static void
make_srq(void)
{
	const uint32_t stride = ring_recv_stride(1);

	if (mem_area_create(&b.srq.area, ring_size(MAX_PACKETS, stride), -1, 0) != 0)
		die("no memory");
	ring_srq_attach(&b.srq.ring, b.srq.area.base, MAX_PACKETS, stride);
	ring_srq_producer(&b.srq.ring, &b.srq_producer);
	b.srq.pd = 1;
	b.srq.max_sge = 1;
}

static void
make_region(struct bench_rig *r)
{
	struct mem_region *mr = mem_region_alloc();

	if (mr == NULL)
		die("no memory");
	mr->va = REGION_VA;
	mr->length = REGION_LEN;
	mr->host = bench_huge_pages(REGION_LEN);
	mr->key = REGION_KEY;
	mr->pd = 1;
	mr->access = 15;
	if (mem_table_add(r->conf.mem, mr) != 0)
		die("no region");
	r->bare.host = mr->host;
	r->bare.region_va = REGION_VA;
	r->bare.region_len = REGION_LEN;
}

void
rig_set_up(struct bench_rig *r, uint32_t qps)
{
	const struct wire_path to_peer = bench_path(NET_IPV4, 1, 2);

	make_port(r, qps);
	r->conf.ports_n = r->conf.workers_n = 1;
	r->conf.crc = crc_isal();
	r->conf.qps = qp_table_create(MAX_QPS, r->conf.socket);
	r->conf.mem = mem_table_create(16);
	r->conf.trace_entries = 4096;
	r->conf.clock = still;
	r->conf.ports[0] =
		(struct pipeline_port){ .id = r->port, .polls_rx = true, .pool = r->pool };
	bench_end(&r->conf.ports[0].addr, 1);
	r->bare.crc = r->conf.crc;
	r->bare.port = r->port;
	r->bare.qps_n = MAX_QPS;
	r->bare.qps = (struct bare_qp *)(void *)bench_huge_pages(MAX_QPS * sizeof(struct bare_qp));
	if (r->conf.qps == NULL || r->conf.mem == NULL ||
		mem_area_create(&b.cq.area, ring_size(1024, 64), -1, 0) != 0)
		die("no memory");
	make_region(r);
	make_srq();
	ring_cq_attach(&b.cq.ring, b.cq.area.base, 1024, 1024, true);
	atomic_store(&b.cq.producer, 1); /* both workers have index 0, and turn by turn */
	for (uint32_t i = 0; i < qps; i++) {
		make_qp(r, i);
		bare_qp_init(&r->bare, MAX_QPS + i, &to_peer);
	}
	r->timed = worker_create(&r->conf);
	r->lapped = worker_create(&r->conf);
	if (r->timed == NULL || r->lapped == NULL)
		die("no worker");
	worker_load(r->lapped)->measure = true;
}

void
rig_tear_down(struct bench_rig *r)
{
	worker_destroy(r->timed);
	worker_destroy(r->lapped);
}

/* ---- a case ---------------------------------------------------------------------------------- */

/** From RESET to RTS with this path MTU, at PSN 0. */
static void
bring_up(struct qp *qp, const struct bench_case *c)
{
	struct qp_attr a = { .qp_state = QPS_RESET,
		.pkey = 0xffff,
		.qp_access_flags = 15,
		.path_mtu = c->pmtu,
		.dest_qp_num = qp->qpn,
		.max_dest_rd_atomic = qp->max_dest_alloc,
		.min_rnr_timer = 12,
		.qkey = 0x11111111,
		.path = bench_path(c->net, 1, 2),
		.path_resolved = true };

	const uint8_t types[] = { [WIRE_RC] = QPT_RC, [WIRE_UC] = QPT_UC, [WIRE_UD] = QPT_UD };
	const uint8_t transport = wire_transport_of(c->opcode);

	qp->type = types[transport];
	qp->resp.head = transport == WIRE_UD ? WIRE_GRH_LEN : 0;
	qp->flags &= ~(uint32_t)QPF_RESOLVED;
	qp_service_set(qp, transport);
	qp_apply(qp, &a, QP_ATTR_STATE);
	a.qp_state = QPS_INIT;
	qp_apply(qp, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS);
	a.qp_state = QPS_RTR;
	qp_apply(qp, &a,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER |
			(transport == WIRE_UD ? QP_ATTR_QKEY : 0));
	a.qp_state = QPS_RTS;
	qp_apply(qp, &a, QP_ATTR_STATE);
	qp->flags = c->trace ? qp->flags | QPF_TRACE : qp->flags & ~(uint32_t)QPF_TRACE;
	qp->flags = c->shared ? qp->flags | QPF_SRQ : qp->flags & ~(uint32_t)QPF_SRQ;
	qp->srq = c->shared ? &b.srq : NULL;
}

static uint32_t
next_random(void)
{
	own.order = own.order * 1664525u + 1013904223u;
	return own.order >> 8;
}

/** Somewhere in the region, on a cache line of its own. */
static uint64_t
next_place(uint32_t len)
{
	uint32_t step = (len + 63) / 64 * 64;

	uint32_t len_of_part = own.parts == 2 ? REGION_LEN / 2 : REGION_LEN;

	own.place = step == 0 ? 0 : next_random() % (len_of_part / step) * step;
	return REGION_VA + own.half * len_of_part + own.place;
}

static void
post(struct ring *rq, uint32_t q, uint64_t va, uint32_t len)
{
	struct ring_recv_wqe *w = ring_produce_slot(rq, MAX_PACKETS);

	if (w == NULL)
		die("receive queue is full");
	w->wr_id = q;
	w->num_sge = len != 0;
	w->sge[0] = (struct ring_sge){ va, len, REGION_KEY };
	ring_produce_commit(rq);
}

/** Is each packet behind the one before it? */
static bool
moves_on(const struct bench_case *c)
{
	return c->kind == KIND_GOOD || c->kind == KIND_PARTS;
}

static uint32_t
psn_for(const struct bench_case *c, uint32_t q)
{
	uint32_t next = b.psn[q];

	if (moves_on(c))
		b.psn[q]++;
	return c->kind == KIND_DUPLICATE ? next - 1 : c->kind == KIND_AHEAD ? next + 5 : next;
}

/** The packet is a part of a longer message, which its PSN tells. */
static void
make_part(struct wire_fields *f, uint32_t len)
{
	const uint32_t at = f->psn.v % PARTS;
	const bool write = f->opcode == OP_RC_WRITE_ONLY;

	f->opcode = at == 0		? (write ? OP_RC_WRITE_FIRST : OP_RC_SEND_FIRST)
		    : at != PARTS - 1 ? (write ? OP_RC_WRITE_MIDDLE : OP_RC_SEND_MIDDLE)
				      : (write ? OP_RC_WRITE_LAST : OP_RC_SEND_LAST);
	f->flags = at == PARTS - 1 ? PKT_ACKREQ : 0;
	f->reth.va = next_place(PARTS * len);
	f->reth.dma_len = PARTS * len;
}

/** Of a receive, bytes. */
static uint32_t
room_of(const struct bench_case *c, uint32_t head)
{
	if (c->kind == KIND_PARTS)
		return PARTS * c->len;
	return c->opcode == OP_RC_WRITE_ONLY_IMM ? 0 : head + 64;
}

static struct rte_mbuf *
packet(struct bench_rig *r, const struct bench_case *c, uint32_t q)
{
	const uint32_t head = c->opcode == OP_UD_SEND_ONLY ? WIRE_GRH_LEN : 0;
	const struct wire_path to_us = bench_path(c->net, 2, 1);
	uint64_t va = next_place(head + c->len);
	struct wire_fields f = { .opcode = c->opcode,
		.flags = PKT_ACKREQ,
		.pkey = 0xffff,
		.dest_qpn = c->kind == KIND_NO_QP ? 0x800000 : MAX_QPS + q,
		.psn = psn(psn_for(c, q)),
		.deth = { 0x11111111, 0x22 },
		.reth = { va, REGION_KEY, c->len },
		.payload = b.payload,
		.payload_len = c->opcode == OP_RC_READ_REQUEST ? 0 : c->len };
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	uint8_t *frame;
	int len;

	if (m == NULL)
		die("pool is empty");
	if (c->kind == KIND_PARTS)
		make_part(&f, c->len);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	len = wire_build(&to_us, &f, 0, frame, rte_pktmbuf_tailroom(m));
	icrc_seal(r->conf.crc, frame, bench_ip(c->net), to_us.ipv6, (uint32_t)len);
	if (c->kind == KIND_BAD_ICRC)
		frame[len - 1] ^= 1;
	if (c->kind == KIND_NOT_ROCE)
		frame[37] ^= 1;
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	if (op_has(wire_opcodes[f.opcode].flags, OPF_TAKES_WQE))
		post(c->shared ? &b.srq_producer : &b.rq[q], q, f.reth.va, room_of(c, head));
	return m;
}

/** A QP's first packet makes its ACK template: no sample is about those of so many QPs. */
static void
first_packets(struct bench_rig *r, const struct bench_case *c)
{
	for (uint32_t i = 0; i < c->qps; i++) {
		if (rte_ring_enqueue(r->to, packet(r, c, i)) != 0)
			die("link is full");
		if (i % PIPELINE_BURST != PIPELINE_BURST - 1 && i != c->qps - 1)
			continue;
		worker_poll(r->timed, 1);
		rig_clear(r);
	}
}

void
rig_choose(uint32_t first, uint32_t half)
{
	own.first = first;
	own.half = half;
	own.parts = 2;
}

uint32_t
rig_begin(struct bench_rig *r, const struct bench_case *c)
{
	uint32_t n = 256u * 1024 / (c->len + 1u);

	for (uint32_t i = 0; i < c->qps; i++) {
		bring_up(b.qp[own.first + i], c);
		b.psn[own.first + i] = 0;
	}
	if (c->random)
		first_packets(r, c);
	return n > MAX_PACKETS ? MAX_PACKETS : n / 32 * 32;
}

void
rig_prepare(struct bench_rig *r, const struct bench_case *c, uint32_t n, bool advance)
{
	uint32_t used[MAX_PACKETS];

	for (uint32_t i = 0; i < n; i++) {
		used[i] = own.first + (c->random ? next_random() : i) % c->qps;
		if (rte_ring_enqueue(r->to, packet(r, c, used[i])) != 0)
			die("link is full");
	}
	for (uint32_t i = 0; !advance && moves_on(c) && i < n; i++)
		b.psn[used[i]]--;
}

double
rig_copied(struct bench_rig *r, const struct bench_case *c)
{
	size_t before, after;

	copies_begin();
	memset(r->bare.host, 0, REGION_LEN);
	if (c->opcode == OP_RC_READ_REQUEST)
		copies_fill(r->bare.host, REGION_LEN);
	else
		copies_fill(b.payload, c->len);
	rig_prepare(r, c, 1, true);
	before = copies_count();
	worker_poll(r->timed, 1);
	after = copies_count();
	rig_clear(r);
	return (double)(after - before) / c->len;
}

uint32_t
rig_clear(struct bench_rig *r)
{
	return bench_drain(r->from, &b.cq.ring);
}

void
rig_unpost(struct bench_rig *r, const struct bench_case *c)
{
	(void)r;
	const bool takes = op_has(wire_opcodes[c->opcode].flags, OPF_TAKES_WQE);

	for (struct ring_recv_copy wqe; c->shared && ring_srq_peek(&b.srq.ring, 1, &wqe) == 1;)
		ring_srq_take(&b.srq.ring, &wqe);
	for (uint32_t i = 0; takes && !c->shared && i < c->qps; i++)
		ring_consume_done(&b.qp[i]->rq, ring_consume_count(&b.qp[i]->rq));
}
