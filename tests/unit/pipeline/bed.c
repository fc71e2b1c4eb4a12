/* SPDX-License-Identifier: BSD-3-Clause */
/* The port, the frames of the tester, and the worker with its QPs; bed_expect.c looks at both. */
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "../../clib/ah_table.h"
#include "../../clib/eal.h"
#include "../../clib/qp_new.h"
#include "cpu.h"
#include "qp_ah.h"
#include "qp_cc.h"
#include "crc_isal.h"
#include "net_pair.h"

#define POOL_MBUFS 4095
#define DATA_ROOM  4352

static const uint8_t dut_mac[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t tester_mac[6] = { 2, 0, 0, 0, 0, 2 };
static const uint8_t dut_ip[4] = { 192, 0, 2, 1 };
static const uint8_t tester_ip[4] = { 192, 0, 2, 2 };

static struct {
	uint16_t port;
	struct rte_ring *to;
	struct rte_ring *from;
	struct rte_mempool *pool;
	const struct bed *bed;
} net;

static ns_t
bed_clock(void)
{
	return net.bed->now;
}

uint16_t
bed_port(void)
{
	return net.port;
}

struct rte_ring *
bed_far_end(void)
{
	return net.from;
}

struct rte_ring *
bed_near_end(void)
{
	return net.to;
}

int
bed_group_setup(void **state)
{
	const char *bits = getenv("UNIT_SIMD_BITS");

	(void)state;
	if (eal_start("64") != 0)
		return -1;
	if (bits != NULL)
		cpu_limit((uint32_t)strtoul(bits, NULL, 10));
	if (net_pair_create_open("bed", 1024, 0, &net.port, &net.to, &net.from) != 0)
		return -1;
	net.pool = rte_pktmbuf_pool_create(
		"bed", POOL_MBUFS, 0, 0, DATA_ROOM + RTE_PKTMBUF_HEADROOM, 0);
	return net.pool == NULL ? -1 : net_pair_start(net.port, net.pool);
}

/* ---- frames of the tester -------------------------------------------------------------------- */

struct wire_path
bed_path(void)
{
	struct wire_path p = { .tos = 2, .ttl = 64, .sport = 0xc123 };

	memcpy(p.smac, tester_mac, 6);
	memcpy(p.dmac, dut_mac, 6);
	memcpy(p.src_ip, tester_ip, 4);
	memcpy(p.dst_ip, dut_ip, 4);
	return p;
}

static struct wire_path
dut_path(void)
{
	struct wire_path p = { .tos = 2, .ttl = 64, .sport = 0xc321 };

	memcpy(p.smac, dut_mac, 6);
	memcpy(p.dmac, tester_mac, 6);
	memcpy(p.src_ip, dut_ip, 4);
	memcpy(p.dst_ip, tester_ip, 4);
	return p;
}

struct rte_mbuf *
bed_frame_on(const struct wire_path *path, const struct wire_fields *f)
{
	struct wire_fields g = *f;
	struct rte_mbuf *m = rte_pktmbuf_alloc(net.pool);
	uint8_t *frame;
	int len;

	assert_non_null(m);
	if (g.pkey == 0)
		g.pkey = 0xffff;
	if (g.dest_qpn == 0)
		g.dest_qpn = QPN;
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	len = wire_build(path, &g, 1, frame, rte_pktmbuf_tailroom(m));
	assert_true(len > 0);
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	m->port = net.port;
	icrc_seal(crc_isal(), frame, path->vlan ? 18 : 14, path->ipv6, (uint32_t)len);
	return m;
}

struct rte_mbuf *
bed_frame(const struct wire_fields *f)
{
	struct wire_path path = bed_path();

	return bed_frame_on(&path, f);
}

void
bed_reseal(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	icrc_seal(crc_isal(), frame, 14, be16_load(frame + 12) == 0x86dd, m->pkt_len);
}

void
bed_put(struct bed *b, struct rte_mbuf *m)
{
	(void)b;
	assert_int_equal(rte_ring_enqueue(net.to, m), 0);
}

void
bed_send(struct bed *b, const struct wire_fields *f)
{
	bed_put(b, bed_frame(f));
}

/* ---- QPs ------------------------------------------------------------------------------------- */

int
bed_tell(struct bed *b, struct mbox_msg *msg)
{
	struct mbox_msg done;

	msg->cookie = ++b->cookie;
	assert_int_equal(mbox_send_down(&b->mbox, msg), 0);
	for (int i = 0; i < 100; i++) {
		worker_poll(b->w, b->now);
		if (mbox_recv_done(&b->mbox, &done, 1) == 1) {
			assert_int_equal(done.type, MBOX_DONE);
			assert_int_equal(done.cookie, msg->cookie);
			b->done = done.done;
			return done.done.rc;
		}
	}
	fail_msg("no answer");
	return -1;
}

int
bed_modify(struct bed *b, struct qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	struct mbox_msg m = { .type = MBOX_QP_MODIFY };

	m.modify = (struct mbox_modify){ qp, attr, mask };
	return bed_tell(b, &m);
}

int
bed_state(struct bed *b, struct qp *qp, enum qp_state s)
{
	struct qp_attr attr = { .qp_state = (uint8_t)s };

	return bed_modify(b, qp, &attr, QP_ATTR_STATE);
}

struct qp *
bed_qp(struct bed *b, uint32_t qpn, uint32_t peer_qpn)
{
	return bed_qp_of(b, qpn, peer_qpn, false);
}

struct qp *
bed_qp_with(struct bed *b, uint32_t qpn, uint32_t peer_qpn, const struct qp_alloc_params *params)
{
	struct qp_attr attr = { .qp_state = QPS_INIT,
		.pkey = 0xffff,
		.path_mtu = PMTU,
		.qp_access_flags = 15,
		.dest_qp_num = peer_qpn,
		.rq_psn = E,
		.min_rnr_timer = 12,
		.max_dest_rd_atomic = 4,
		.sq_psn = S,
		.timeout = 14,
		.retry_cnt = 3,
		.rnr_retry = 3,
		.max_rd_atomic = 4,
		.path = dut_path(),
		.path_resolved = true };
	struct mbox_msg attach = { .type = MBOX_QP_ATTACH };
	struct qp *qp = qp_new(params);

	assert_non_null(qp);
	qp->qpn = qpn;
	qp->pd = PD;
	qp->port = (uint8_t)net.port;
	qp->recv_cq = &b->cq;
	qp->send_cq = &b->cq;
	attach.attach.qp = qp;
	assert_int_equal(bed_tell(b, &attach), 0);
	assert_int_equal(
		bed_modify(b, qp, &attr,
			QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS),
		0);
	attr.qp_state = QPS_RTR;
	assert_int_equal(bed_modify(b, qp, &attr,
				 QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
					 QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
					 QP_ATTR_MIN_RNR_TIMER),
		0);
	attr.qp_state = QPS_RTS;
	assert_int_equal(
		bed_modify(b, qp, &attr,
			QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
				QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC),
		0);
	return qp;
}

struct qp *
bed_qp_of(struct bed *b, uint32_t qpn, uint32_t peer_qpn, bool compact)
{
	return bed_qp_with(b, qpn, peer_qpn,
		&(const struct qp_alloc_params){ .max_recv_wr = 16,
			.max_recv_sge = 4,
			.max_send_wr = 16,
			.max_send_sge = 4,
			.max_inline = 64,
			.max_dest_rd_atomic = 4,
			.compact = compact });
}

struct qp *
bed_qp_with_rate(struct bed *b, uint32_t qpn, uint32_t peer_qpn, uint32_t first)
{
	const struct qp_alloc_params params = { .max_recv_wr = 16,
		.max_recv_sge = 4,
		.max_send_wr = 16,
		.max_send_sge = 4,
		.max_dest_rd_atomic = 4,
		.has_rate = true };
	struct qp *qp = bed_qp_with(b, qpn, peer_qpn, &params);
	struct cc_params p;

	cc_preset(CC_MLX5, &p);
	p.line_rate = 10000;
	p.rate_to_set_on_first_cnp = first;
	qp->flags |= QPF_CC_RATE;
	qp_cc_start(qp, &p);
	return qp;
}

void
bed_qp_gone(struct bed *b, struct qp *qp)
{
	struct mbox_msg detach = { .type = MBOX_QP_DETACH };

	detach.qp.qp = qp;
	assert_int_equal(bed_tell(b, &detach), 0);
	qp_free(qp);
}

void
bed_make_local(struct bed *b, struct qp *qp, uint32_t to)
{
	struct qp_attr a = qp->attr;

	a.path = dut_path();
	memcpy(a.path.dmac, dut_mac, 6);
	memcpy(a.path.dst_ip, dut_ip, 4);
	a.path.local = true;
	a.path_resolved = true;
	a.dest_qp_num = to;
	assert_int_equal(bed_modify(b, qp, &a, QP_ATTR_AV | QP_ATTR_DEST_QPN), 0);
}

void
bed_in_rtr(struct bed *b)
{
	atomic_store(&b->qp->state, QPS_RTR);
	b->qp->flags |= QPF_UNHEARD;
}

void
bed_post(struct bed *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct ring_recv_wqe *wqe = ring_produce_slot(&b->rq_producer, 16);

		assert_non_null(wqe);
		wqe->wr_id = ++b->wr_id;
		wqe->num_sge = 1;
		wqe->sge[0] = (struct ring_sge){
			.addr = RQ_VA + (b->wr_id % 16) * 4096, .length = 4096, .lkey = RQ_KEY
		};
		ring_produce_commit(&b->rq_producer);
	}
}

static struct mem_region *
region(struct bed *b, uint64_t va, uint64_t len, uint32_t key, uint8_t access)
{
	struct mem_region *r = mem_region_alloc();

	assert_non_null(r);
	assert_int_equal(mem_area_create(&r->area, len, -1, 0), 0);
	r->va = va;
	r->length = len;
	r->host = r->area.base;
	r->key = key;
	r->pd = PD;
	r->access = access;
	assert_int_equal(mem_table_add(b->mem, r), 0);
	return r;
}

void
bed_worker_again(struct bed *b)
{
	worker_destroy(b->w);
	b->w = worker_create(&b->conf);
	assert_non_null(b->w);
}

int
bed_setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	*state = b;
	net.bed = b;
	b->now = TIME_NS_PER_S;
	b->qps = qp_table_create(64, 0);
	b->mem = mem_table_create(64);
	b->ahs = ah_table_empty();
	assert_non_null(b->ahs);
	assert_int_equal(mbox_create(&b->mbox, 0, 64, 0), 0);
	assert_int_equal(mem_area_create(&b->cq.area, ring_size(64, 64), -1, 0), 0);
	ring_cq_attach(&b->cq.ring, b->cq.area.base, 64, 64, true);
	b->cq.id = 99;
	b->mr = region(b, MR_VA, MR_LEN, MR_KEY, 15);
	b->rq_mr = region(b, RQ_VA, MR_LEN, RQ_KEY, ACCESS_LOCAL_WRITE);
	b->memory = b->mr->host;
	b->rq_memory = b->rq_mr->host;

	b->conf = (struct worker_conf){ .ports_n = 1,
		.workers_n = 1,
		.crc = crc_isal(),
		.qps = b->qps,
		.mem = b->mem,
		.ahs = b->ahs,
		.mbox = &b->mbox,
		.errbuf_entries = 64,
		.trace_entries = 64,
		.clock = bed_clock };
	b->conf.ports[0] = (struct pipeline_port){ .id = net.port,
		.polls_rx = true,
		.pool = net.pool,
		.addr = { .has_ipv4 = true, .has_ipv6 = true } };
	memcpy(b->conf.ports[0].addr.mac, dut_mac, 6);
	memcpy(b->conf.ports[0].addr.ipv4, dut_ip, 4);
	b->conf.ports[0].addr.ipv6[0] = 0xfd;
	b->conf.ports[0].addr.ipv6[15] = 1;
	b->w = worker_create(&b->conf);
	assert_non_null(b->w);

	b->qp = bed_qp(b, QPN, PEER_QPN);
	ring_attach(&b->rq_producer, b->qp->rq.sh, b->qp->rq.mask + 1, b->qp->rq.stride, false);
	bed_post(b, 4);
	return 0;
}

int
bed_teardown(void **state)
{
	struct bed *b = *state;
	void *m;

	bed_qp_gone(b, b->qp);
	bed_forget_output(b);
	worker_destroy(b->w);
	while (rte_ring_dequeue(net.from, &m) == 0)
		rte_pktmbuf_free(m);
	while (rte_ring_dequeue(net.to, &m) == 0)
		rte_pktmbuf_free(m);
	/* No buffer is lost, whatever the test did. */
	assert_int_equal(rte_mempool_avail_count(net.pool), POOL_MBUFS);
	mem_table_remove(b->mem, MR_KEY);
	mem_table_remove(b->mem, RQ_KEY);
	mem_region_free(b->mr);
	mem_region_free(b->rq_mr);
	mem_table_destroy(b->mem);
	mem_area_destroy(&b->cq.area);
	mbox_destroy(&b->mbox);
	qp_table_destroy(b->qps);
	free(b);
	return 0;
}
