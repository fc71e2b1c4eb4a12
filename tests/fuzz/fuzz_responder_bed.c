/* SPDX-License-Identifier: BSD-3-Clause */
#include "../clib/eal.h"
#include "../clib/qp_new.h"
#include "fuzz_responder.h"

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "crc_isal.h"
#include "net_pair.h"

enum { IN_MBUFS = 255, OUT_MBUFS = 351, DATA_ROOM = FRAME_ROOM, WIRE_RING = 64, CQE_MANY = 64 };

struct fuzz_bed fb;

/* What regions hold when a program begins. */
static uint8_t arena_fill[ARENA];

#define RTR_ATTRS                                                                            \
	(QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN | \
		QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER)

#define RTS_ATTRS                                                                  \
	(QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | \
		QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC)

#define ODD (RESP_KNOB_EARLY_DROP | RESP_KNOB_HALF_DUP | RESP_KNOB_CREDITS | RESP_KNOB_IMM_LOC)

/* clang-format off */
const struct plan fuzz_plans[QPS] = {
	{ .qpn = 0x11, .peer_qpn = 0x100, .pd = 1, .psn = 0xfffffa, .pmtu = 1024, .pkey = 0xffff, .rd = 4, .good_mr = 0, .rq_mr = 4, .start = QPS_RTS },
	{ .qpn = 0x12, .peer_qpn = 0x101, .pd = 1, .psn = 0x7ffffe, .pmtu = 256, .pkey = 0xffff, .rd = 4, .good_mr = 0, .rq_mr = 4, .start = QPS_RTS, .ernic = true,
	  .knobs = RESP_KNOB_LEN_PAD_DROP | RESP_KNOB_RNR_FIRST },
	{ .qpn = 0x13, .peer_qpn = 0x102, .pd = 2, .psn = 0, .pmtu = 256, .pkey = 0x0123, .rd = 1, .good_mr = 3, .rq_mr = 5, .start = QPS_RTS, .ipv6 = true },
	{ .qpn = 0x14, .peer_qpn = 0x103, .pd = 1, .psn = 0x100, .pmtu = 1024, .pkey = 0xffff, .rd = 0, .good_mr = 0, .rq_mr = 4, .start = QPS_RTR },
	{ .qpn = 0x15, .peer_qpn = 0x104, .pd = 1, .psn = 1, .pmtu = 256, .pkey = 0xffff, .rd = 4, .good_mr = 0, .rq_mr = 4, .start = QPS_INIT, .cq = 1 },
	{ .qpn = 0x56, .peer_qpn = 0x105, .pd = 2, .psn = 5, .pmtu = 1024, .pkey = 0x7fff, .rd = 4, .good_mr = 3, .rq_mr = 5, .start = QPS_RESET, .cq = 1 },
	{ .qpn = 0x17, .peer_qpn = 0x106, .pd = 1, .psn = 0xffff, .pmtu = 256, .pkey = 0xffff, .rd = 1, .good_mr = 0, .rq_mr = 4, .start = QPS_ERR, .cq = 1 },
	{ .qpn = 0x18, .peer_qpn = 0x107, .pd = 1, .psn = 0xfffff0, .pmtu = 256, .pkey = 0xffff, .rd = 4, .good_mr = 0, .rq_mr = 4, .start = QPS_RTS, .cq = 1, .vlan = true,
	  .knobs = ODD },
};

/* What regions are while nobody has changed them; `at` is where they begin in the arena. */
static const struct region regions[MRS] = {
	{ .va = 0x10000, .len = 8192, .key = 0x1001, .pd = 1, .at = 256, .access = 15 },
	{ .va = 0x20000, .len = 2048, .key = 0x1102, .pd = 1, .at = 8704, .access = ACCESS_REMOTE_READ },
	{ .va = 0xfffffffffffff001, .len = 4094, .key = 0x1203, .pd = 1, .at = 11008, .access = ACCESS_REMOTE_WRITE, .invalidatable = true },
	{ .va = 0x40000, .len = 4096, .key = 0x1304, .pd = 2, .at = 15360, .access = 15, .invalidatable = true },
	{ .va = 0x50000, .len = 8192, .key = 0x1405, .pd = 1, .at = 19712, .access = ACCESS_LOCAL_WRITE },
	{ .va = 0x50000, .len = 4096, .key = 0x1506, .pd = 2, .at = 28160, .access = ACCESS_LOCAL_WRITE },
	{ .va = 0x60000, .len = 256, .key = 0x1607, .pd = 1, .at = 32513, .access = ACCESS_REMOTE_ATOMIC | ACCESS_REMOTE_WRITE | ACCESS_LOCAL_WRITE },
	{ .va = 0x70000, .len = 256, .key = 0x1708, .pd = 1, .at = 33024, .access = 0 },
};
/* clang-format on */

/* ---- once ------------------------------------------------------------------------------------ */

void
bed_start(void)
{
	static const struct rte_mbuf_dynflag fcs = { .name = PIPELINE_FCS_FLAG };
	char *argv[] = { (char *)(uintptr_t) "fuzz", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--log-level=critical",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "64", NULL };
	static bool started;
	int bit;

	if (started)
		return;
	started = true;
	FUZZ_CHECK(eal_init_anywhere(8, argv) >= 0);
	FUZZ_CHECK(net_pair_create_open("fuzz", WIRE_RING, 0, &fb.port, &fb.to, &fb.from) == 0);
	fb.in = rte_pktmbuf_pool_create(
		"fuzz_in", IN_MBUFS, 0, 0, DATA_ROOM + RTE_PKTMBUF_HEADROOM, 0);
	fb.out = rte_pktmbuf_pool_create(
		"fuzz_out", OUT_MBUFS, 0, 0, DATA_ROOM + RTE_PKTMBUF_HEADROOM, 0);
	FUZZ_CHECK(fb.in != NULL && fb.out != NULL);
	FUZZ_CHECK(net_pair_start(fb.port, fb.out) == 0);
	FUZZ_CHECK(mbox_create(&fb.mbox, 0, 64, 0) == 0);
	for (int i = 0; i < CQS; i++)
		FUZZ_CHECK(mem_area_create(&fb.cq[i].area, ring_size(CQE_MANY, 64), -1, 0) == 0);
	fb.conf = (struct worker_conf){
		.ports_n = 1, .workers_n = 1, .crc = crc_isal(), .mbox = &fb.mbox
	};
	fb.conf.ports[0] = (struct pipeline_port){ .id = fb.port,
		.polls_rx = true,
		.pool = fb.out,
		.addr = { .mac = { 2, 0, 0, 0, 0, 1 },
			.has_ipv4 = true,
			.has_ipv6 = true,
			.ipv4 = { 192, 0, 2, 1 },
			.ipv6 = { 0xfd, [15] = 1 } } };
	bit = rte_mbuf_dynflag_register(&fcs);
	FUZZ_CHECK(bit >= 0);
	fb.fcs_flag = UINT64_C(1) << bit;
	for (uint32_t i = 0; i < ARENA; i++)
		arena_fill[i] = (uint8_t)(i * 37 + (i >> 8));
}

/* ---- regions --------------------------------------------------------------------------------- */

void
bed_mr_add(uint32_t i, uint8_t access, uint64_t va)
{
	struct region *m = &fb.mr[i];
	struct mem_region *r = mem_region_alloc();

	FUZZ_CHECK(r != NULL && !m->present);
	m->access = access;
	m->va = va;
	m->present = m->valid = true;
	m->r = r;
	r->va = m->va;
	r->length = m->len;
	r->host = fb.arena + m->at;
	r->key = m->key;
	r->pd = m->pd;
	r->access = m->access;
	r->remote_invalidate = m->invalidatable;
	FUZZ_CHECK(mem_table_add(fb.conf.mem, r) == 0);
}

void
bed_mr_remove(uint32_t i)
{
	struct region *m = &fb.mr[i];

	if (!m->present)
		return;
	FUZZ_CHECK(mem_table_remove(fb.conf.mem, m->key) == 0);
	mem_region_free(m->r);
	m->present = false;
}

/* ---- QPs ------------------------------------------------------------------------------------- */

struct wire_path
bed_path(const struct plan *p, bool of_peer)
{
	const uint8_t dut = of_peer ? 2 : 1, peer = of_peer ? 1 : 2;
	struct wire_path path = { .smac = { 2, 0, 0, 0, 0, dut },
		.dmac = { 2, 0, 0, 0, 0, peer },
		.ipv6 = p->ipv6,
		.vlan = p->vlan,
		.vlan_tci = p->vlan ? 0x6007 : 0,
		.src_ip = { 192, 0, 2, dut },
		.dst_ip = { 192, 0, 2, peer },
		.tos = 2,
		.ttl = 64,
		.sport = 0xc123 };

	if (p->ipv6) {
		memset(path.src_ip, 0, 16);
		memset(path.dst_ip, 0, 16);
		path.src_ip[0] = path.dst_ip[0] = 0xfd;
		path.src_ip[15] = dut;
		path.dst_ip[15] = peer;
	}
	return path;
}

bool
bed_attached(uint32_t i)
{
	return fb.q[i].qp != NULL;
}

int
bed_tell(struct mbox_msg *m)
{
	struct mbox_msg done;

	FUZZ_CHECK(fb.sent_n == 0);
	m->cookie = ++fb.cookie;
	FUZZ_CHECK(mbox_send_down(&fb.mbox, m) == 0);
	for (int i = 0; i < 200; i++) {
		turn();
		if (mbox_recv_done(&fb.mbox, &done, 1) == 1) {
			FUZZ_CHECK(done.type == MBOX_DONE && done.cookie == m->cookie);
			return done.done.rc;
		}
	}
	FUZZ_CHECK(!"the worker answers");
	return -1;
}

static void
modify(uint32_t i, struct qp_attr *a, uint32_t mask)
{
	struct mbox_msg m = { .type = MBOX_QP_MODIFY };
	const char *why;

	/* As the control lcore does: nothing illegal reaches the worker. */
	a->cur_qp_state = state_of(i);
	a->migrations = fb.q[i].qp->migrations;
	FUZZ_CHECK(qp_transition_check(QPT_RC, a->cur_qp_state, a->qp_state, mask, &why) == 0);
	m.modify = (struct mbox_modify){ fb.q[i].qp, a, mask };
	fb.modifying = (int)i;
	FUZZ_CHECK(bed_tell(&m) == 0);
	fb.modifying = -1;
}

static struct qp_attr
attr_of(const struct plan *p, uint8_t state, uint32_t psn)
{
	return (struct qp_attr){ .qp_state = state,
		.pkey = p->pkey,
		.path_mtu = p->pmtu,
		.qp_access_flags = 15,
		.dest_qp_num = p->peer_qpn,
		.rq_psn = psn,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = p->rd,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = 0x300,
		.path = bed_path(p, false),
		.path_resolved = true };
}

static void
up(uint32_t i, uint8_t to, uint32_t psn)
{
	struct qp_bed *q = &fb.q[i];
	struct qp_attr a = attr_of(q->plan, to, psn);

	if (to == QPS_INIT) {
		modify(i, &a,
			QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
		q->access = 15;
	} else if (to == QPS_RTR) {
		paths_load(i, 1, true, &a);
		modify(i, &a, RTR_ATTRS | (fb.apm ? QP_ATTR_ALT_PATH : 0));
	} else if (to == QPS_RTS && state_of(i) == QPS_RTR) {
		a.path_mig_state = MIG_REARM;
		modify(i, &a, RTS_ATTRS | (fb.apm ? QP_ATTR_PATH_MIG_STATE : 0));
	} else {
		modify(i, &a, QP_ATTR_STATE);
	}
}

void
bed_qp_state(uint32_t i, enum qp_state to, uint32_t psn)
{
	struct qp_bed *q = &fb.q[i];
	uint8_t at = state_of(i);

	if (to == QPS_ERR) {
		if (at != QPS_RESET)
			up(i, QPS_ERR, psn);
		return;
	}
	if ((to == QPS_SQD && at == QPS_RTS) || (to == QPS_RTS && at == QPS_SQD)) {
		up(i, (uint8_t)to, psn);
		return;
	}
	if (at != QPS_RESET) {
		up(i, QPS_RESET, psn);
		queue_forget(q); /* QP-05: posted work vanishes */
		look_new_life(i);
	}
	for (uint8_t s = QPS_INIT; s <= to && s <= QPS_RTS; s++)
		up(i, s, psn);
}

void
bed_qp_make(uint32_t i)
{
	const struct qp_alloc_params params = { .max_recv_wr = RQ_WRS,
		.max_recv_sge = MAX_SGE,
		.max_dest_rd_atomic = fuzz_plans[i].rd,
		.own_area = false };
	struct qp_bed *q = &fb.q[i];
	struct mbox_msg attach = { .type = MBOX_QP_ATTACH };
	struct qp *qp = qp_new(&params);

	FUZZ_CHECK(qp != NULL);
	qp->qpn = q->plan->qpn;
	qp->pd = q->plan->pd;
	qp->port = (uint8_t)fb.port;
	qp->recv_cq = qp->send_cq = &fb.cq[q->plan->cq];
	qp->resp.knobs = q->plan->knobs;
	qp->cnp_interval_ns = 1000;
	if (q->plan->ernic)
		qp->flags |= QPF_CHECK_SRC_MAC | QPF_REQUIRE_DF;
	if (i % 2 == 1)
		qp->flags |= QPF_CNP | QPF_TRACE;
	ring_attach(&q->rq, qp->rq.sh, qp->rq.mask + 1, qp->rq.stride, false);
	queue_attach(i, qp);
	look_new_life(i);
	attach.attach.qp = qp;
	FUZZ_CHECK(bed_tell(&attach) == 0);
	q->qp = qp;
	q->head = q->tail = 0;
	q->moved_due = q->moved_seen = q->refused_due = q->refused_seen = 0;
}

void
bed_qp_gone(uint32_t i)
{
	struct mbox_msg detach = { .type = MBOX_QP_DETACH };
	struct qp *qp = fb.q[i].qp;

	if (qp == NULL)
		return;
	detach.qp.qp = qp;
	fb.q[i].qp = NULL;
	FUZZ_CHECK(bed_tell(&detach) == 0);
	queue_forget(&fb.q[i]);
	look_new_life(i);
	qp_free(qp);
}

/* ---- one input ------------------------------------------------------------------------------- */

static void
make_cq(int i, uint32_t cqe)
{
	struct qp_cq *cq = &fb.cq[i];

	ring_cq_attach(&cq->ring, cq->area.base, CQE_MANY, cqe, true);
	cq->id = 90 + (uint32_t)i;
	atomic_store(&cq->error, false);
	fb.cq_seen[i] = 0;
}

void
bed_open(uint8_t knobs, uint8_t options)
{
	static struct plan plans[QPS];

	memcpy(plans, fuzz_plans, sizeof(plans));
	plans[7].knobs ^= knobs;
	if ((options & 24) != 0)
		plans[6].start = plans[5].start = plans[4].start = QPS_RTS;
	fb.now = TIME_NS_PER_S;
	fb.drain = DRAIN_CQ | DRAIN_TX | DRAIN_UP | DRAIN_ERRBUF;
	fb.collected = fb.made = 0;
	fb.sent_n = 0;
	fb.modifying = -1;
	memcpy(fb.arena, arena_fill, ARENA);
	memcpy(fb.shadow, arena_fill, ARENA);

	fb.conf.qps = qp_table_create(QPN_SLOTS, 0);
	fb.conf.mem = mem_table_create(64);
	fb.conf.errbuf_entries = (options & 1) != 0 ? 0 : 8;
	fb.conf.trace_entries = (options & 2) != 0 ? 0 : 64;
	fb.w = worker_create(&fb.conf);
	FUZZ_CHECK(fb.conf.qps != NULL && fb.conf.mem != NULL && fb.w != NULL);
	fb.opening = true;
	fb.apm = (options & 32) != 0;
	fb.feeds = (options & 64) != 0;
	queue_open((options & 16) != 0);
	make_cq(0, CQE_MANY);
	make_cq(1, (options & 4) != 0 ? 4 : CQE_MANY);
	for (uint32_t i = 0; i < MRS; i++) {
		fb.mr[i] = regions[i];
		bed_mr_add(i, regions[i].access, regions[i].va);
	}
	for (uint32_t i = 0; i < QPS; i++) {
		memset(&fb.q[i], 0, sizeof(fb.q[i]));
		fb.q[i].plan = &plans[i];
	}
	for (uint32_t i = 0; i < QPS; i++) {
		bed_qp_make(i);
		if (plans[i].start == QPS_ERR) {
			bed_qp_state(i, QPS_INIT, plans[i].psn);
			bed_qp_state(i, QPS_ERR, plans[i].psn);
		} else if (plans[i].start != QPS_RESET) {
			bed_qp_state(i, plans[i].start, plans[i].psn);
		}
	}
	fb.opening = false;
}

void
bed_close(void)
{
	fb.drain = DRAIN_CQ | DRAIN_TX | DRAIN_UP | DRAIN_ERRBUF;
	for (int i = 0; i < 4; i++)
		turn();
	for (uint32_t i = 0; i < QPS; i++) {
		if (bed_attached(i) && state_of(i) != QPS_RESET) {
			/* CQ-02: all that was posted is completed, each WQE once. */
			bed_qp_state(i, QPS_ERR, 0);
			FUZZ_CHECK(queue_is_done(&fb.q[i]));
			FUZZ_CHECK(!fb.q[i].shared || fb.q[i].lasts == 1 ||
				   mbox_events_lost(&fb.mbox) != fb.srq.lost);
		}
	}
	for (int i = 0; i < 64; i++) {
		uint64_t before = fb.collected;

		turn();
		if (fb.collected == before)
			break;
	}
	for (uint32_t i = 0; i < QPS; i++)
		bed_qp_gone(i);
	turn();
	queue_close();
	FUZZ_CHECK(rte_ring_empty(fb.to) && rte_ring_empty(fb.from));
	worker_destroy(fb.w);
	for (uint32_t i = 0; i < MRS; i++)
		bed_mr_remove(i);
	mem_table_destroy(fb.conf.mem);
	qp_table_destroy(fb.conf.qps);
	FUZZ_CHECK(rte_mempool_avail_count(fb.in) == IN_MBUFS);
	FUZZ_CHECK(rte_mempool_avail_count(fb.out) == OUT_MBUFS);
	FUZZ_CHECK(fb.ext_live == 0);
}
