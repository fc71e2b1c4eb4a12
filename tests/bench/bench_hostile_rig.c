/* SPDX-License-Identifier: BSD-3-Clause */
#include "../clib/qp_new.h"
#include "bench_hostile_rig.h"
#include "bench_drain.h"
#include "bench_mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_ring.h>

#include "crc_isal.h"
#include "net_pair.h"

enum {
	FIRST_QPN = 0x1000,
	NEIGHBOUR_QPN = 0x0800,
	GOOD_QPN = 0x0fff,
	PMTU = 1024,
	LEN = 64,
	READ_DEPTH = 4
};
enum { WIRE_RING = 2048, ERRBUF_ENTRIES = 1024, L3 = 14 };

#define REGION_VA  0x10000000u
#define REGION_KEY 0x1001u
#define REGION_LEN (64u * 1024)

static struct {
	struct worker_conf conf;
	struct qp *good;
	struct qp *bad[HOSTILE_QPS];
	struct qp *neighbour[HOSTILE_QPS];
	struct ring rq[HOSTILE_QPS];
	struct qp_cq cq;
	struct wire_path to_us;
	struct wire_path to_peer;
	uint64_t fcs_flag;
	uint8_t payload[LEN];
	uint32_t place;
} b;

void
die(const char *what)
{
	fprintf(stderr, "bench_hostile: %s\n", what);
	exit(1);
}

/* ---- set up ---------------------------------------------------------------------------------- */

static struct qp *
make_qp(struct hostile_rig *r, uint32_t qpn)
{
	const struct qp_alloc_params params = {
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_dest_rd_atomic = READ_DEPTH,
		.socket = b.conf.socket,
	};
	struct qp *qp = qp_new(&params);

	if (qp == NULL)
		die("no QP");
	qp->qpn = qpn;
	qp->pd = 1;
	qp->port = (uint8_t)r->port;
	qp->recv_cq = qp->send_cq = &b.cq;
	if (qp_table_insert(b.conf.qps, qp) != 0)
		die("no slot");
	return qp;
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
	mr->key = REGION_KEY;
	mr->pd = 1;
	mr->access = 15;
	if (mem_table_add(b.conf.mem, mr) != 0)
		die("no region");
}

static void
make_port(struct hostile_rig *r)
{
	static const struct rte_mbuf_dynflag fcs = { .name = PIPELINE_FCS_FLAG };
	char *argv[] = { (char *)(uintptr_t) "bench", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--iova-mode=va",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "-m",
		(char *)(uintptr_t) "64", NULL };
	int bit, socket;

	if (rte_eal_init((int)ARRAY_LEN(argv) - 1, argv) < 0)
		die("EAL does not start");
	socket = bench_heap("bench", 64u << 20);
	b.conf.socket = socket;
	r->pool =
		rte_pktmbuf_pool_create("bench", 4095, 256, 0, 512 + RTE_PKTMBUF_HEADROOM, socket);
	if (r->pool == NULL ||
		net_pair_create_open("bench", WIRE_RING, 0, &r->port, &r->to, &r->from) != 0 ||
		net_pair_start(r->port, r->pool) != 0 ||
		mbox_create(&r->mbox, 0, 2048, socket) != 0)
		die("no port");
	bit = rte_mbuf_dynflag_register(&fcs);
	b.fcs_flag = bit >= 0 ? UINT64_C(1) << bit : 0;
}

void
hostile_set_up(struct hostile_rig *r)
{
	make_port(r);
	b.to_us = bench_path(NET_IPV4, 2, 1);
	b.to_peer = bench_path(NET_IPV4, 1, 2);
	b.conf = (struct worker_conf){ .ports_n = 1,
		.workers_n = 1,
		.socket = b.conf.socket,
		.crc = crc_isal(),
		.qps = qp_table_create(8192, b.conf.socket),
		.mem = mem_table_create(16),
		.mbox = &r->mbox };
	b.conf.ports[0] = (struct pipeline_port){ .id = r->port,
		.polls_rx = true,
		.pool = r->pool,
		.addr = { .has_ipv4 = true, .has_ipv6 = true, .ipv6 = { 0xfd, [15] = 1 } } };
	bench_end(&b.conf.ports[0].addr, 1);
	if (b.conf.qps == NULL || b.conf.mem == NULL ||
		mem_area_create(&b.cq.area, ring_size(4096, 64), -1, 0) != 0)
		die("no memory");
	make_region();
	ring_cq_attach(&b.cq.ring, b.cq.area.base, 4096, 4096, true);
	b.good = make_qp(r, GOOD_QPN);
	for (uint32_t i = 0; i < HOSTILE_QPS; i++) {
		b.bad[i] = make_qp(r, FIRST_QPN + i);
		b.neighbour[i] = make_qp(r, NEIGHBOUR_QPN + i);
		ring_attach(&b.rq[i], b.bad[i]->rq.sh, b.bad[i]->rq.mask + 1, b.bad[i]->rq.stride,
			false);
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		b.conf.errbuf_entries = i == WITH_ERRBUF ? ERRBUF_ENTRIES : 0;
		r->worker[i] = worker_create(&b.conf);
		if (r->worker[i] == NULL)
			die("no worker");
	}
	worker_load(r->worker[WITH_LAPS])->measure = true;
}

void
hostile_tear_down(struct hostile_rig *r)
{
	for (uint32_t i = 0; i < WORKERS; i++)
		worker_destroy(r->worker[i]);
}

/* ---- QPs ------------------------------------------------------------------------------------- */

static void
bring_up(struct qp *qp, uint8_t to)
{
	struct qp_attr a = { .qp_state = QPS_RESET,
		.pkey = 0xffff,
		.qp_access_flags = 15,
		.path_mtu = PMTU,
		.dest_qp_num = qp->qpn,
		.max_dest_rd_atomic = READ_DEPTH,
		.min_rnr_timer = 12,
		.path = b.to_peer,
		.path_resolved = true };

	qp_apply(qp, &a, QP_ATTR_STATE);
	a.qp_state = QPS_INIT;
	qp_apply(qp, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS);
	a.qp_state = QPS_RTR;
	qp_apply(qp, &a,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	if (to == QPS_RTR)
		return;
	a.qp_state = to;
	qp_apply(qp, &a, QP_ATTR_STATE);
}

static void
post_malformed(uint32_t i)
{
	struct ring_recv_wqe *w = ring_produce_slot(&b.rq[i], 1);

	if (w == NULL)
		die("receive queue is full");
	w->wr_id = i;
	w->num_sge = UINT32_MAX;
	ring_produce_commit(&b.rq[i]);
}

static void
revive(const struct hostile_case *c, uint32_t i)
{
	uint8_t to = c->spoil == SPOIL_STATE ? QPS_ERR : c->spoil == SPOIL_RTR ? QPS_RTR : QPS_RTS;
	struct qp *qp = b.bad[i];

	bring_up(qp, to);
	qp->flags &= ~(uint32_t)QPF_CHECK_SRC_MAC;
	if (c->spoil == SPOIL_MAC)
		qp->flags |= QPF_CHECK_SRC_MAC;
	if (c->spoil == SPOIL_WQE)
		post_malformed(i);
}

void
hostile_begin(const struct hostile_case *c)
{
	bring_up(b.good, QPS_RTS);
	for (uint32_t i = 0; i < HOSTILE_QPS; i++) {
		bring_up(b.neighbour[i], QPS_RTS);
		revive(c, i);
	}
}

void
hostile_revive(const struct hostile_case *c)
{
	for (uint32_t i = 0; c->each && c->spoil != SPOIL_NOTHING && i < HOSTILE_QPS; i++) {
		b.bad[i]->resp.latched = false; /* as a good packet would leave it */
		if (atomic_load(&b.bad[i]->state) == QPS_ERR)
			revive(c, i);
	}
}

uint32_t
hostile_good_psn(void)
{
	return b.good->resp.epsn.v;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static uint64_t
next_place(void)
{
	b.place = (b.place + 5 * LEN) % REGION_LEN;
	return REGION_VA + b.place;
}

static struct wire_fields
write_to(const struct qp *qp, psn_t p)
{
	return (struct wire_fields){ .opcode = OP_RC_WRITE_ONLY,
		.flags = PKT_ACKREQ,
		.pkey = 0xffff,
		.dest_qpn = qp->qpn,
		.psn = p,
		.reth = { next_place(), REGION_KEY, LEN },
		.payload = b.payload,
		.payload_len = LEN };
}

static void
ip_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	be16_store(ip + 10, 0);
	for (int i = 0; i < WIRE_IPV4_LEN; i += 2)
		sum += be16_load(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	be16_store(ip + 10, (uint16_t)~sum);
}

static struct rte_mbuf *
frame_of(struct hostile_rig *r, const struct wire_path *p, const struct wire_fields *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	uint8_t *frame;
	int len;

	if (m == NULL)
		die("pool is empty");
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	len = wire_build(p, f, 0, frame, rte_pktmbuf_tailroom(m));
	if (len < 0)
		die("frame is too long");
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	icrc_seal(b.conf.crc, frame, p->vlan ? 18 : 14, p->ipv6, (uint32_t)len);
	return m;
}

/** A READ of as many bytes, all of the same. */
static void
to_read(struct wire_fields *f)
{
	f->opcode = OP_RC_READ_REQUEST;
	f->payload_len = 0;
	f->reth.va = REGION_VA;
}

/** Where the fields differ from a good WRITE's. */
static void
spoil_fields(const struct hostile_case *c, struct wire_path *p, struct wire_fields *f)
{
	switch (c->spoil) {
	case SPOIL_IPV6:
		p->ipv6 = true;
		memset(p->src_ip, 0, 16);
		memcpy(p->dst_ip, b.conf.ports[0].addr.ipv6, 16);
		break;
	case SPOIL_VLAN:
		p->vlan = true;
		p->vlan_tci = 7;
		break;
	case SPOIL_MAC:
		p->smac[5] ^= 1;
		break;
	case SPOIL_NO_QP:
		f->dest_qpn = 0x800000;
		break;
	case SPOIL_OPCODE:
	case SPOIL_RTR:
		f->opcode = c->at;
		break;
	case SPOIL_RNR:
	case SPOIL_WQE:
		f->opcode = OP_RC_SEND_ONLY;
		break;
	case SPOIL_READ_AGAIN:
		to_read(f);
		break;
	case SPOIL_RKEY:
		f->reth.rkey ^= 1;
		break;
	default:
		break;
	}
	if (f->opcode == OP_RC_ACKNOWLEDGE || f->opcode == OP_RC_FETCH_ADD)
		f->payload_len = 0;
	f->aeth.syndrome = AETH_CREDIT_NONE;
	f->psn = psn_add(f->psn, (uint32_t)(int32_t)c->psn);
}

static void
spoil_frame(const struct hostile_case *c, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	switch (c->spoil) {
	case SPOIL_BYTE:
	case SPOIL_NOT_ROCE:
		frame[c->at] ^= c->value;
		break;
	case SPOIL_BYTE_SUM:
		frame[c->at] ^= c->value;
		ip_checksum(frame + L3);
		break;
	case SPOIL_BYTE_SEAL:
		frame[c->at] ^= c->value;
		ip_checksum(frame + L3);
		icrc_seal(b.conf.crc, frame, L3, false, m->pkt_len);
		break;
	case SPOIL_CUT:
		m->data_len = (uint16_t)(m->data_len - c->value);
		m->pkt_len -= c->value;
		break;
	case SPOIL_FCS:
		m->ol_flags |= b.fcs_flag;
		break;
	default:
		break;
	}
}

static struct rte_mbuf *
bad_frame(struct hostile_rig *r, const struct hostile_case *c, uint32_t i)
{
	bool neighbour = c->spoil == SPOIL_NOTHING;
	const struct qp *qp = (neighbour ? b.neighbour : b.bad)[c->each ? i : 0];
	struct wire_path p = b.to_us;
	struct wire_fields f = write_to(qp, psn_add(qp->resp.epsn, neighbour && !c->each ? i : 0));
	struct rte_mbuf *m;

	if (neighbour && c->at == OP_RC_READ_REQUEST)
		to_read(&f);
	spoil_fields(c, &p, &f);
	m = frame_of(r, &p, &f);
	spoil_frame(c, m);
	return m;
}

/** A READ that was answered, for the ones that repeat it. */
static void
first_read(struct hostile_rig *r)
{
	struct wire_fields f = write_to(b.bad[0], b.bad[0]->resp.epsn);

	to_read(&f);
	rte_ring_enqueue(r->to, frame_of(r, &b.to_us, &f));
	for (int i = 0; i < 4; i++)
		worker_poll(r->worker[0], 1);
	hostile_clear(r);
}

void
hostile_prepare(struct hostile_rig *r, const struct hostile_case *c, uint32_t good, uint32_t bad)
{
	uint32_t good_psn = b.good->resp.epsn.v, done_good = 0, done_bad = 0;

	if (c->spoil == SPOIL_READ_AGAIN && b.bad[0]->resp.epsn.v == 0)
		first_read(r);
	for (uint32_t i = 0; i < good + bad; i++) {
		bool is_good = (uint64_t)done_good * (good + bad) < (uint64_t)good * (i + 1) &&
			       done_good < good;
		struct wire_fields f;
		struct rte_mbuf *m;

		if (is_good || done_bad == bad) {
			f = write_to(b.good, psn(good_psn++));
			m = frame_of(r, &b.to_us, &f);
			done_good++;
		} else {
			m = bad_frame(r, c, done_bad++);
		}
		if (rte_ring_enqueue(r->to, m) != 0)
			die("link is full");
	}
}

uint32_t
hostile_clear(struct hostile_rig *r)
{
	struct errbuf_record rec[32];
	struct ring_aeq_event e;
	struct mbox_msg msg[32];
	uint32_t sum = bench_drain(r->from, &b.cq.ring);

	while (mbox_recv_up(&r->mbox, msg, 32) != 0)
		;
	while (mbox_next_event(&r->mbox, &e))
		;
	mbox_events_done(&r->mbox);
	while (trace_errbuf_take(worker_errbuf(r->worker[WITH_ERRBUF]), rec, 32) != 0)
		;
	return sum;
}
