/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control lcore makes and takes away: regions, windows, handles, groups, queue pairs. */
#include <errno.h>

#include "../clib/qp_new.h"
#include "fuzz_worker.h"
#include "qp_cc.h"
#include "wire_group.h"

enum { MIGRATES_LIKE = 19 /* a QP at the other port */ };
enum { FLUSH_TRIES = 64, FEED_BUFFERS = 4, FEED_SIZE = 1100 };

/* clang-format off */
const struct plan fuzz_plans[QPS] = {
	{ QPT_RC, -1, 0, -1, false, 0, 0, LONG_MTU, PLAN_LIMIT },
	{ QPT_RC, 2, 0, -1, false, 0, 0, SHORT_MTU, 0 },
	{ QPT_RC, 1, 1, -1, false, 0, 0, SHORT_MTU, 0 }, /* its peer's go from worker to worker */
	{ QPT_UC, -1, 0, -1, true, 0, 0, SHORT_MTU, 0 },
	{ QPT_UC, 5, 0, 0, false, 0, 0, SHORT_MTU, 0 },
	{ QPT_UC, 4, 0, -1, false, 0, 0, SHORT_MTU, PLAN_LIMIT },
	{ QPT_UD, -1, 0, -1, false, 0, 0, LONG_MTU, PLAN_LIMIT },
	{ QPT_UD, -1, 1, 0, false, 0, 0, LONG_MTU, 0 },
	{ QPT_XRC_SEND, 9, 0, -1, false, 0, 0, SHORT_MTU, 0 },
	{ QPT_XRC_RECV, 8, 1, -1, false, 0, 0, SHORT_MTU, 0 },
	{ QPT_XRC_SEND, -1, 1, -1, false, 0, 0, LONG_MTU, 0 },
	{ QPT_XRC_RECV, -1, 0, -1, true, 0, 0, LONG_MTU, 0 },
	{ QPT_RC, 12, 0, 0, false, 0, 0, SHORT_MTU, 0 }, /* connected to itself */
	{ QPT_RC, -1, 1, -1, true, 0, 0, SHORT_MTU, PLAN_DROPS },
	{ QPT_RC, -1, 1, -1, false, 0, 3, LONG_MTU, PLAN_OWN | PLAN_CREDITS },
	{ QPT_RC, 16, 0, -1, false, 0, 0, LONG_MTU, PLAN_OWN | PLAN_RATE },
	{ QPT_RC, 15, 1, -1, false, 1, 3, LONG_MTU, PLAN_OWN }, /* from port to port */
	{ QPT_UD, -1, 0, -1, false, 1, 0, LONG_MTU, PLAN_OWN | PLAN_FEED },
	{ QPT_RC, -1, 1, -1, true, 1, 0, LONG_MTU, PLAN_FEED | PLAN_RATE },
	{ QPT_UC, -1, 0, 0, false, 1, 0, LONG_MTU, 0 },
	{ QPT_RC, -1, 0, -1, false, 0, 0, SHORT_MTU, PLAN_MIGRATES },
	{ QPT_RC, -1, 1, -1, false, 0, 0, SHORT_MTU, PLAN_OWN | PLAN_SEND_FEED },
	{ QPT_RC, -1, 0, -1, false, 0, 0, SHORT_MTU, PLAN_OWN | PLAN_COMPACT },
};

const struct region_plan fuzz_regions[REGIONS] = {
	{ 0x10000, 16384, 0x100001, 256, PD, 31 | ACCESS_FLUSH_GLOBAL, false },
	{ 0x20000, 4096, 0x200002, 17000, PD, ACCESS_REMOTE_READ | ACCESS_MW_BIND, false },
	{ 0x30000, 16384, 0x300003, 22000, PD, ACCESS_LOCAL_WRITE, true },
	{ 0x40000, 4096, 0x400004, 40000, OTHER_PD, 31, false },
	{ 0xfffffffffffff001, 4094, 0x500005, 45001, PD, 31 | ACCESS_FLUSH_GLOBAL, true },
};
/* clang-format on */

uint32_t
bed_qpn(uint32_t i)
{
	return 0x10u + i;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void
bed_region(uint32_t i, bool on)
{
	const struct region_plan *p = &fuzz_regions[i];
	struct mem_region *r = fw.mr[i];

	if (on == (r != NULL))
		return;
	if (on) {
		fw.mr[i] = r = mem_region_alloc();
		FUZZ_CHECK(r != NULL);
		r->va = p->va;
		r->length = p->len;
		r->host = fw.arena + p->at;
		r->key = p->key;
		r->pd = p->pd;
		r->access = p->access;
		r->remote_invalidate = p->inv;
		FUZZ_CHECK(mem_table_add(fw.mem, r) == 0);
		return;
	}
	if (mem_region_claim(r) != 0)
		return; /* windows are bound to it (MW-10) */
	FUZZ_CHECK(mem_table_remove(fw.mem, p->key) == 0);
	bed_round_trip();
	mem_region_free(r);
	fw.mr[i] = NULL;
}

void
bed_window(uint32_t i, bool on)
{
	struct mem_window *w = fw.mw[i];

	if (on == (w != NULL))
		return;
	if (on) {
		fw.mw[i] = w = mem_window_alloc();
		FUZZ_CHECK(w != NULL);
		w->r.kind = i == 0 ? MEM_WINDOW_1 : MEM_WINDOW_2;
		w->home_pd = PD;
		FUZZ_CHECK(mem_window_add(fw.mem, w, (0x6000u + i) << 8) == 0);
		return;
	}
	mem_window_remove(fw.mem, w);
	bed_round_trip();
	mem_window_free(w);
	fw.mw[i] = NULL;
}

/* ---- where packets go ------------------------------------------------------------------------ */

struct wire_path
bed_path(uint32_t i, bool of_peer)
{
	const struct plan *p = &fuzz_plans[i];
	const uint8_t own = bed_host(p->port, false);
	const uint8_t other =
		p->peer >= 0 ? bed_host(fuzz_plans[p->peer].port, false) : bed_host(p->port, true);
	const uint8_t from = of_peer ? other : own, to = of_peer ? own : other;
	const uint8_t v4[] = { 192, 0, 2, 0 };
	struct wire_path path = { .smac = { 2, 0, 0, 0, 0, from },
		.dmac = { 2, 0, 0, 0, 0, to },
		.ipv6 = p->ipv6,
		.local = p->peer >= 0 && !of_peer,
		.tos = 2,
		.ttl = 64,
		.sport = 0xc123 };
	const uint32_t last = p->ipv6 ? 15 : 3;

	if (p->ipv6)
		path.src_ip[0] = path.dst_ip[0] = 0xfd;
	else {
		memcpy(path.src_ip, v4, sizeof(v4));
		memcpy(path.dst_ip, v4, sizeof(v4));
	}
	if (!path.local && p->port == 1) /* the second port has priorities */
		path.queue = prio_queue(&fuzz_prio, i % PRIO_N);
	path.src_ip[last] = from;
	path.dst_ip[last] = to;
	return path;
}

struct wire_path
bed_alternate(bool of_peer)
{
	return bed_path(MIGRATES_LIKE, of_peer);
}

void
bed_group_path(uint32_t group, struct wire_path *path)
{
	path->ipv6 = (group & 1) != 0;
	memset(path->dst_ip, 0, sizeof(path->dst_ip));
	memset(path->src_ip, 0, sizeof(path->src_ip));
	if (path->ipv6) {
		path->src_ip[0] = 0xfd;
		path->src_ip[15] = path->smac[5];
		path->dst_ip[0] = 0xff;
		path->dst_ip[1] = 0x0e;
		path->dst_ip[15] = 9;
	} else {
		memcpy(path->src_ip, (const uint8_t[]){ 192, 0, 2, path->smac[5] }, 4);
		memcpy(path->dst_ip, (const uint8_t[]){ 239, 1, 2, 3 }, 4);
	}
	wire_group_mac(path->ipv6, path->dst_ip, path->dmac);
}

void
bed_group(uint32_t group, uint32_t i, bool on)
{
	struct wire_path path = { .smac = { 2, 0, 0, 0, 0, 1 } };
	struct qp_mcast_group g = { .port = fw.port[group >> 1] };

	bed_group_path(group, &path);
	wire_group_gid(path.ipv6, path.dst_ip, g.addr);
	if (on)
		qp_mcast_add(fw.mcasts, &g, bed_qpn(i));
	else
		qp_mcast_remove(fw.mcasts, &g, bed_qpn(i));
}

/**
 * The second half is of the second port. Kind: 0 to a peer, 1 to a group, 2 local, 3 of IPv6, 4
 * nobody knows where, 5 another PD.
 */
void
bed_handle(uint32_t i, uint8_t what)
{
	const uint32_t local = 2, group = 1, ipv6 = 3, unknown = 4, strange = 5;
	const uint32_t kind = i % 6, port = i / 6;
	const uint32_t at[PORTS][3] = { { 0, 1, 3 }, { 19, 15, 18 } };
	struct wire_path path = bed_path(at[port][kind == local ? 1 : kind == ipv6 ? 2 : 0], false);

	if (kind == group)
		bed_group_path(1 - port, &path);
	if (what == 0 && fw.ah[i] != 0) {
		qp_ah_remove(fw.ahs, fw.ah[i]);
		fw.ah[i] = 0;
	} else if (what == 1 && fw.ah[i] == 0) {
		fw.ah[i] = qp_ah_add(fw.ahs, kind == strange ? OTHER_PD : PD, fw.port[port], &path,
			0xff, kind != unknown);
		FUZZ_CHECK(fw.ah[i] != 0);
	} else if (fw.ah[i] != 0) {
		path.dmac[5] = what;
		qp_ah_change(fw.ahs, fw.ah[i], &path, what != 2);
	}
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

static void
client_queue(struct queue *q, uint32_t stride)
{
	ring_attach(&q->ring, q->mem, ENTRIES, stride, false);
}

/** req.read_gap and req.reorder. */
static const uint16_t read_gaps[] = { 0, REQ_KNOB_READ_FILL,
	REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP | 1 << REQ_KNOB_REORDER_SHIFT,
	REQ_KNOB_READ_FILL | 3 << REQ_KNOB_REORDER_SHIFT,
	REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP | 3 << REQ_KNOB_REORDER_SHIFT };

/** What the plan asks for, beside. */
static void
set_up(struct qp *qp, const struct plan *p, uint32_t i)
{
	struct cc_params cc;

	qp->flags |= p->srq >= 0 ? QPF_SRQ : 0;
	qp->flags |= i % 2 != 0 ? QPF_CNP | QPF_TRACE : 0;
	if ((p->how & PLAN_FEED) != 0) {
		qp->flags |= QPF_RECV_FEED;
		qp->feed_buffers = FEED_BUFFERS;
		qp->feed_size = FEED_SIZE;
		qp->feed_lkey = fuzz_regions[0].key;
		qp->feed_va = fuzz_regions[0].va;
	}
	if ((p->how & PLAN_SEND_FEED) != 0) {
		qp->flags |= QPF_SEND_FEED;
		qp->send_feed->opcode = WR_RDMA_WRITE;
		qp->send_feed->depth = FEED_BUFFERS;
		qp->send_feed->sge =
			(struct ring_sge){ fuzz_regions[0].va, FEED_SIZE, fuzz_regions[0].key };
	}
	if ((p->how & PLAN_RATE) != 0) {
		cc_preset(CC_MLX5, &cc);
		cc.line_rate = 10000;
		cc.rate_to_set_on_first_cnp = 100;
		qp->flags |= QPF_CC_RATE;
		qp_cc_start(qp, &cc);
	}
	if ((p->how & PLAN_CREDITS) != 0)
		qp->resp.knobs |= RESP_KNOB_CREDITS;
	if ((p->how & PLAN_DROPS) != 0)
		qp->resp.knobs |= RESP_KNOB_EARLY_DROP | RESP_KNOB_LEN_PAD_DROP |
				  RESP_KNOB_HALF_DUP | RESP_KNOB_J_ACK;
}

void
bed_attach(uint32_t i)
{
	struct qp_bed *q = &fw.q[i];
	const struct plan *p = q->plan;
	const bool xrc = p->type == QPT_XRC_SEND || p->type == QPT_XRC_RECV;
	const bool compact = (p->how & PLAN_COMPACT) != 0;
	struct mbox_msg m = { .type = MBOX_QP_ATTACH };
	const struct qp_alloc_params params = { .qpn = bed_qpn(i),
		.type = p->type,
		.pd = PD,
		.send_cq = &fw.cq[p->cq != 0 ? p->cq - 1 : 0].cq,
		.recv_cq = &fw.cq[p->cq != 0 ? p->cq - 1 : p->worker].cq,
		.srq = p->srq >= 0 ? &fw.srq[p->srq].q : NULL,
		.xrcd = p->type == QPT_XRC_RECV ? XRCD : 0,
		.client = (p->how & PLAN_OWN) != 0 ? 0 : CLIENT,
		.worker = p->worker,
		.max_recv_wr = xrc ? 0 : ENTRIES,
		.max_recv_sge = SGES,
		.max_send_wr = p->type == QPT_XRC_RECV ? 0 : ENTRIES,
		.max_send_sge = p->type == QPT_XRC_RECV ? 0 : SGES,
		.max_inline = INLINE,
		.max_dest_rd_atomic = p->type == QPT_RC || p->type == QPT_XRC_RECV ? 4 : 0,
		.has_rate = (p->how & PLAN_RATE) != 0,
		.send_feed = (p->how & PLAN_SEND_FEED) != 0,
		.compact = compact,
		.rq_mem = compact ? NULL : q->rq.mem,
		.sq_mem = compact || (p->how & PLAN_SEND_FEED) != 0 ? NULL : q->sq.mem };

	if (q->qp != NULL)
		return;
	memset(q->sq.mem, 0, q->sq.len);
	memset(q->rq.mem, 0, q->rq.len);
	q->qp = qp_new(&params);
	FUZZ_CHECK(q->qp != NULL);
	q->worker = p->worker;
	q->qp->port = (uint8_t)fw.port[p->port];
	set_up(q->qp, p, i);
	client_queue(&q->rq, q->qp->rq.stride);
	if (q->qp->sq.ring.sh != NULL)
		client_queue(&q->sq, q->qp->sq.ring.stride);
	m.attach.qp = q->qp;
	FUZZ_CHECK(bed_tell(p->worker, &m) == 0);
	q->qp->resp.knobs |= RESP_KNOB_PLACEMENT;
	q->qp->req.knobs |= REQ_KNOB_PLACEMENT | read_gaps[i % ARRAY_LEN(read_gaps)];
	if (i % 2 != 0) { /* frames behind a gap are held, and let go */
		q->qp->resp.knobs |= RESP_KNOB_KEEP;
		q->qp->req.knobs |= REQ_KNOB_PATCH;
	}
	if (q->knobs.on)
		bed_knobs_set(q->qp, i);
}

void
bed_detach(uint32_t i)
{
	struct qp_bed *q = &fw.q[i];
	struct mbox_msg m = { .type = MBOX_QP_DETACH };

	if (q->qp == NULL)
		return;
	if (fw.moving.q == q)
		bed_moved();
	m.qp.qp = q->qp;
	m.qp.drop = true;
	FUZZ_CHECK(bed_tell(q->worker, &m) == 0);
	for (uint32_t k = 0; k < WINDOWS; k++)
		if (fw.mw[k] != NULL)
			mem_window_leave(fw.mw[k], bed_qpn(i));
	bed_round_trip();
	qp_free(q->qp);
	q->qp = NULL;
}

struct qp_attr
bed_attributes(uint32_t i, uint8_t to)
{
	const struct qp_bed *q = &fw.q[i];
	const struct plan *p = q->plan;

	return (struct qp_attr){ .qp_state = to,
		.cur_qp_state = atomic_load(&q->qp->state),
		.pkey = 0xffff,
		.path_mtu = p->mtu,
		.qp_access_flags = 15 | ACCESS_FLUSH_GLOBAL,
		.dest_qp_num = p->peer >= 0 ? bed_qpn((uint32_t)p->peer) : 0x100u + i,
		.rq_psn = 0xfffffe,
		.sq_psn = 0xfffffe,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.timeout = q->knobs.on ? q->knobs.timeout : 8,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.qkey = QKEY,
		.path = bed_path(i, false),
		.path_resolved = true,
		.alt_path = bed_alternate(false),
		.alt_port = (uint8_t)fw.port[1],
		.alt_timeout = 8,
		.alt_resolved = true,
		.path_mig_state = MIG_REARM,
		.migrations = atomic_load(&q->qp->migrations) };
}

/** @return its rc. */
static int
modify(struct qp_bed *q, const struct qp_attr *a, uint32_t mask)
{
	struct mbox_msg m = { .type = MBOX_QP_MODIFY, .modify = { q->qp, a, mask } };
	int rc = -EINPROGRESS;

	/* What was posted before is flushed first; meanwhile a packet may have ended the QP. */
	for (int n = 0; rc == -EINPROGRESS && n < FLUSH_TRIES; n++)
		rc = bed_tell(q->worker, &m);
	FUZZ_CHECK(rc == 0 || atomic_load(&q->qp->state) != a->cur_qp_state || rc == -EAGAIN);
	return rc;
}

void
bed_state(uint32_t i, uint8_t to)
{
	struct qp_bed *q = &fw.q[i];
	const struct plan *p = q->plan;
	uint32_t required, optional;
	struct qp_attr a;

	if (q->qp == NULL)
		return;
	if (fw.moving.q == q)
		bed_moved();
	a = bed_attributes(i, to);
	if (!qp_transition_attrs(p->type, a.cur_qp_state, to, &required, &optional))
		return;
	if (p->type == QPT_UD && to == QPS_INIT)
		required |= QP_ATTR_PATH_MTU; /* as the control lcore does: the port's */
	if ((p->how & PLAN_MIGRATES) != 0 && a.cur_qp_state == QPS_RTR && to == QPS_RTS)
		required |= QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE;
	FUZZ_CHECK(modify(q, &a, required | QP_ATTR_STATE) != -EAGAIN);
}

/** A neighbour is somewhere else, or nobody knows where; the recorder is on or off. */
static void
note(struct qp_bed *q, struct qp_attr *a, const uint8_t *s)
{
	if ((s[5] & 4) != 0)
		a->path = a->alt_path;
	a->path.dmac[5] ^= s[5] & 2;
	a->path_resolved = (s[5] & 1) == 0;
	a->trace = (s[5] & 8) != 0;
	FUZZ_CHECK(modify(q, a, QP_ATTR_NEW_MAC | QP_ATTR_TRACE) == 0);
}

void
bed_modify(uint32_t i, const uint8_t *s)
{
	const uint32_t strange = QP_ATTR_PORT | QP_ATTR_CUR_STATE;
	struct qp_bed *q = &fw.q[i];
	uint32_t required, optional, mask = QP_ATTR_STATE;
	struct qp_attr a;

	if (q->qp == NULL || fw.moving.q == q)
		return;
	a = bed_attributes(i, atomic_load(&q->qp->state));
	if ((s[5] & 0x80) != 0) {
		note(q, &a, s);
		return;
	}
	if ((s[3] & 0x80) != 0)
		a.qp_state = s[3] % 7;
	if (!qp_transition_attrs(q->plan->type, a.cur_qp_state, a.qp_state, &required, &optional))
		return;
	mask |= required;
	optional &= ~strange;
	for (uint32_t k = 0; optional != 0; k++, optional &= optional - 1)
		mask |= (s[4] >> k % 8 & 1) != 0 ? optional & -optional : 0;
	if ((q->plan->how & PLAN_MIGRATES) == 0)
		mask &= ~(uint32_t)(QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE);
	if (q->plan->type == QPT_UD && a.qp_state == QPS_INIT)
		mask |= QP_ATTR_PATH_MTU;
	a.path.dmac[5] ^= s[5] & 2;
	a.path_resolved = (s[5] & 1) == 0;
	a.alt_resolved = (s[5] & 4) == 0;
	a.path_mig_state = (s[5] & 8) != 0 ? MIG_MIGRATED : MIG_REARM;
	a.pkey = (s[5] & 0x10) != 0 ? 0x8123 : 0xffff;
	a.en_sqd_async_notify = (s[5] & 0x20) != 0;
	a.qp_access_flags = s[6] & 31;
	a.max_rd_atomic = a.max_dest_rd_atomic = s[7] & 3;
	a.retry_cnt = a.rnr_retry = s[7] >> 2 & 7;
	a.min_rnr_timer = s[7] & 31;
	modify(q, &a, mask);
}

void
bed_srq(uint32_t i, bool on)
{
	struct qp_srq *q = &fw.srq[i].q;

	if (i == 0 || on == fw.srq[i].on)
		return;
	fw.srq[i].on = on;
	atomic_store(&fw.srqs.slot[q->num % QP_SRQ_TABLE], on ? q : NULL);
	bed_round_trip();
}
