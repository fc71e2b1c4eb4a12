/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_local.h"

#include <string.h>

#include <rte_mbuf.h>

#include "../clib/qp_new.h"
#include "bench_copies.h"
#include "bench_mem.h"
#include "net_pair.h"
#include "sending.h"

#define ENTRIES   64 /* of the QP table */
#define CQ_DEPTH  1024
#define RD_ATOMIC 16
#define FIRST     0x20u
#define IN_TURN   32 /* requests posted before the worker turns: what is under way fits caches */

enum { ASKER, ANSWERER, ENDS }; /* on ports 0 and 1 */
enum { INSIDE, WIRE, WAYS };

static struct local_rig {
	struct worker *worker;
	struct worker_conf conf;
	struct qp *qp[WAYS][ENDS];
	struct qp_cq cq;
	struct mbox mbox;
	uint16_t port[ENDS];
	uint32_t place;
	bool attached;
} local;

static struct wire_path
path(uint32_t end, uint32_t way)
{
	const struct wire_port *us = &local.conf.ports[end].addr;
	const struct wire_port *peer = &local.conf.ports[1 - end].addr;
	struct wire_path p = { .tos = 2, .ttl = 64, .sport = 0xc000, .local = way == INSIDE };

	memcpy(p.smac, us->mac, 6);
	memcpy(p.dmac, peer->mac, 6);
	memcpy(p.src_ip, us->ipv4, 4);
	memcpy(p.dst_ip, peer->ipv4, 4);
	return p;
}

static void
make_ports(struct bench_rig *r)
{
	if (net_pair_create("local", 1, 1024, &local.port[0], &local.port[1]) != 0)
		die("no pair of ports");
	for (uint32_t i = 0; i < ENDS; i++) {
		struct pipeline_port *p = &local.conf.ports[i];

		*p = r->conf.ports[0];
		p->id = local.port[i];
		p->pool = rte_pktmbuf_pool_create(i == 0 ? "local0" : "local1", 2048, 256, 0,
			MAX_LEN + 256 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
		p->addr.mac[5] = (uint8_t)(0x20 + i);
		p->addr.ipv4[3] = (uint8_t)(0x20 + i);
		if (p->pool == NULL || net_pair_start(p->id, p->pool) != 0)
			die("no port");
	}
}

static void
make_qp(uint32_t way, uint32_t end)
{
	const struct qp_alloc_params params = { .max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = MAX_PACKETS,
		.max_send_sge = 1,
		.max_dest_rd_atomic = RD_ATOMIC,
		.socket = SOCKET_ID_ANY };
	struct qp *qp = qp_new(&params);

	if (qp == NULL)
		die("no QP");
	qp->qpn = FIRST + way * ENDS + end;
	qp->pd = 1;
	qp->port = (uint8_t)local.port[end];
	qp->recv_cq = qp->send_cq = &local.cq;
	local.qp[way][end] = qp;
}

static void
bring_up(struct qp *qp, uint32_t way, uint32_t end, const struct request_case *c)
{
	struct qp_attr a = { .qp_state = QPS_RESET,
		.pkey = 0xffff,
		.path_mtu = c->pmtu,
		.dest_qp_num = FIRST + way * ENDS + 1 - end,
		.qp_access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
		.max_rd_atomic = RD_ATOMIC,
		.max_dest_rd_atomic = RD_ATOMIC,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.path = path(end, way),
		.path_resolved = true };

	for (uint32_t s = QPS_RESET; s <= QPS_RTS; s++) {
		a.qp_state = (uint8_t)s;
		qp_apply(qp, &a,
			QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS | QP_ATTR_AV |
				QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
				QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
				QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC |
				QP_ATTR_MAX_DEST_RD_ATOMIC);
	}
}

/** As the control lcore does: the worker learns of the QP's path when it gets it. */
static void
hand_over(struct qp *qp)
{
	struct mbox_msg msg = { .type = MBOX_QP_ATTACH, .attach = { .qp = qp } };

	if (mbox_send_down(&local.mbox, &msg) != 0)
		die("no QP");
	worker_poll(local.worker, 1);
	if (mbox_recv_done(&local.mbox, &msg, 1) != 1 || msg.done.rc != 0)
		die("no QP");
}

void
local_set_up(struct bench_rig *r)
{
	local.conf = r->conf;
	local.conf.ports_n = ENDS;
	local.conf.qps = qp_table_create(ENTRIES, SOCKET_ID_ANY);
	local.conf.mbox = &local.mbox;
	make_ports(r);
	if (local.conf.qps == NULL || mbox_create(&local.mbox, 110, 64, SOCKET_ID_ANY) != 0 ||
		mem_area_create(&local.cq.area, ring_size(CQ_DEPTH, 64), -1, 0) != 0)
		die("no memory");
	ring_cq_attach(&local.cq.ring, local.cq.area.base, CQ_DEPTH, CQ_DEPTH, true);
	atomic_store(&local.cq.producer, 1); /* worker 0 */
	local.worker = worker_create(&local.conf);
	if (local.worker == NULL)
		die("no worker");
	for (uint32_t way = 0; way < WAYS; way++)
		for (uint32_t end = 0; end < ENDS; end++)
			make_qp(way, end);
}

void
local_tear_down(void)
{
	worker_destroy(local.worker);
	mbox_destroy(&local.mbox);
}

uint32_t
local_begin(const struct request_case *c)
{
	for (uint32_t way = 0; way < WAYS; way++)
		for (uint32_t end = 0; end < ENDS; end++) {
			bring_up(local.qp[way][end], way, end, c);
			if (!local.attached)
				hand_over(local.qp[way][end]);
		}
	local.attached = true;
	return MAX_PACKETS;
}

static uint64_t
next_place(uint32_t len)
{
	const uint32_t step = (len + 63) / 64 * 64;

	return REGION_VA + local.place++ * 7 % (REGION_LEN / step) * step;
}

static uint32_t
completions(void)
{
	struct ring_cqe e[64];
	uint32_t n, all = 0;

	while ((n = ring_cq_poll(&local.cq.ring, e, ARRAY_LEN(e))) != 0)
		all += n;
	return all;
}

static void
post(struct ring *ring, const struct request_case *c, uint64_t remote, uint64_t mine)
{
	struct ring_send_wqe *w = ring_produce_slot(ring, ring->mask + 1);

	if (w == NULL)
		die("the send queue is full");
	*w = (struct ring_send_wqe){ .remote_addr = remote,
		.rkey = REGION_KEY,
		.num_sge = 1,
		.opcode = c->opcode,
		.flags = SEND_SIGNALED };
	w->sge[0] = (struct ring_sge){ mine, c->len, REGION_KEY };
	ring_produce_commit(ring);
}

/** Turns until n posted requests are done. */
static void
carry_out(struct qp *qp, uint32_t n)
{
	pipeline_send_wake(local.worker, qp);
	for (uint32_t turn = 0; n != 0; turn++) {
		worker_poll(local.worker, 1);
		n -= completions();
		if (turn == 10000)
			die("requests do not complete");
	}
}

/** n requests, some at a time. @return cycles of one; negative: it does not count. */
static double
sample(const struct request_case *c, uint32_t way, uint32_t n)
{
	struct qp *qp = local.qp[way][ASKER];
	struct ring ring;
	struct span s;
	bool good;

	ring_attach(&ring, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	s = span_begin();
	for (uint32_t sent = 0; sent < n; sent += IN_TURN) {
		for (uint32_t i = 0; i < IN_TURN; i++) {
			const uint64_t remote = next_place(c->len);

			post(&ring, c, remote, next_place(c->len));
		}
		carry_out(qp, IN_TURN);
	}
	good = span_end(&s);
	return good ? (double)s.cycles / n : -1;
}

bool
local_round(const struct request_case *c, uint32_t n, double v[COLUMNS])
{
	double wire;

	memset(v, 0, COLUMNS * sizeof(v[0]));
	v[TOTAL] = sample(c, INSIDE, n);
	wire = sample(c, WIRE, n);
	v[RATIO] = v[TOTAL] / wire;
	return v[TOTAL] >= 0 && wire >= 0;
}

double
local_copied(struct bench_rig *r, const struct request_case *c)
{
	struct qp *qp = local.qp[INSIDE][ASKER];
	const uint64_t from = REGION_VA, to = REGION_VA + REGION_LEN / 2;
	const bool read = c->opcode == WR_RDMA_READ;
	struct ring ring;
	size_t before;

	copies_begin();
	memset(r->bare.host, 0, REGION_LEN);
	copies_fill(r->bare.host, REGION_LEN / 2);
	ring_attach(&ring, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	post(&ring, c, read ? from : to, read ? to : from);
	before = copies_count();
	carry_out(qp, 1);
	return (double)(copies_count() - before) / c->len;
}
