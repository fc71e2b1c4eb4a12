/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways that a QP and its peer have to each other, and path migration as the specification has
 * it: which of them a packet must come on, and what it makes of the QP (AE-12, WIRE-18).
 *
 *   way 0  the QP's own, of fuzz_plans
 *   way 1  other addresses, of the other IP version for QP 0, with a tag for QP 1, with another
 *          P_Key for QP 2
 *   way 2  other addresses only
 *   way 3  ours is an address that the port does not have: nothing arrives
 */
#include "fuzz_responder.h"

enum { MIGREQ = 0x40, EV_PATH_MIG = 6, EV_PATH_MIG_ERR = 7, OTHER_PKEY = 0x8456 };

struct wire_path
bed_way(const struct plan *plan, uint8_t way, bool of_peer)
{
	struct plan p = *plan;
	struct wire_path path;
	uint8_t dut = way == 3 ? 9 : 1, peer = (uint8_t)(2 + way), at;

	if (way == 1 && p.qpn == fuzz_plans[0].qpn)
		p.ipv6 = !p.ipv6;
	if (way == 1 && p.qpn == fuzz_plans[1].qpn)
		p.vlan = !p.vlan;
	path = bed_path(&p, of_peer);
	at = path.ipv6 ? 15 : 3;
	path.src_ip[at] = of_peer ? peer : dut;
	path.dst_ip[at] = of_peer ? dut : peer;
	if (of_peer)
		path.smac[5] = peer;
	else
		path.dmac[5] = peer;
	return path;
}

/** 0: that of the path before. */
static uint16_t
way_pkey(const struct plan *plan, uint8_t way)
{
	return way == 1 && plan->qpn == fuzz_plans[2].qpn ? OTHER_PKEY : 0;
}

/** Which way a path of ours is. */
static uint8_t
way_of(const struct wire_path *path)
{
	return (uint8_t)(path->dst_ip[path->ipv6 ? 15 : 3] - 2);
}

uint8_t
paths_way(uint32_t i)
{
	return way_of(&fb.q[i].qp->attr.path);
}

uint8_t
paths_alternate(uint32_t i)
{
	static const struct wire_path none;
	const struct wire_path *alt = &fb.q[i].qp->attr.alt_path;

	return memcmp(alt, &none, sizeof(none)) != 0 ? way_of(alt) : WAY_NONE;
}

/** The key that a packet of this way must have. */
uint16_t
paths_pkey(uint32_t i, uint8_t way)
{
	const struct qp_bed *q = &fb.q[i];
	uint16_t key = way == paths_way(i) ? 0 : way_pkey(q->plan, way);

	return key != 0 ? key : q->qp->pkey;
}

/* ---- orders of software ---------------------------------------------------------------------- */

void
paths_load(uint32_t i, uint8_t way, bool resolved, struct qp_attr *a)
{
	const struct plan *plan = fb.q[i].plan;

	a->alt_path = bed_way(plan, way, false);
	a->alt_resolved = resolved;
	a->alt_port = (uint8_t)fb.port;
	a->alt_timeout = way == 2 ? 3 : QP_ALT_TIMEOUT_SAME;
	a->alt_pkey = way_pkey(plan, way);
}

void
paths_step(uint32_t i, uint8_t what, uint8_t way)
{
	struct mbox_msg m = { .type = MBOX_QP_MODIFY };
	uint8_t to = what >> 1 & 3, state = state_of(i);
	struct qp_attr a = { .qp_state = state, .cur_qp_state = state };
	const char *why;

	a.migrations = fb.q[i].qp->migrations;
	if (!fb.apm || (state != QPS_RTS && state != QPS_SQD))
		return;
	m.modify.mask = QP_ATTR_STATE;
	if ((what & 1) != 0) {
		paths_load(i, way & 3, (way & 0xfc) != 0xfc, &a);
		m.modify.mask |= QP_ATTR_ALT_PATH;
		fb.q[i].learns |= !a.alt_resolved;
	}
	/* As the control lcore does: nothing illegal reaches the worker. */
	if (to < MIG_MAX && qp_migration_check((enum mig_state)fb.q[i].qp->attr.path_mig_state,
				    (enum mig_state)to,
				    (what & 1) != 0 || paths_alternate(i) != WAY_NONE, &why) == 0) {
		a.path_mig_state = to;
		fb.q[i].moved_due +=
			to == MIG_MIGRATED && fb.q[i].qp->attr.path_mig_state == MIG_ARMED;
		m.modify.mask |= QP_ATTR_PATH_MIG_STATE;
	}
	m.modify.qp = fb.q[i].qp;
	m.modify.attr = &a;
	fb.modifying = (int)i;
	FUZZ_CHECK(bed_tell(&m) == 0);
	fb.modifying = -1;
}

/* ---- the model ------------------------------------------------------------------------------- */

void
paths_begin(uint32_t i, struct model *m)
{
	struct qp_bed *q = &fb.q[i];

	m->mig = m->mig_before = q->qp->attr.path_mig_state;
	m->way = m->way_before = paths_way(i);
	m->alt = paths_alternate(i);
	m->alt_pkey = q->qp->attr.alt_pkey;
	m->pkey = q->qp->pkey;
	m->moves = q->qp->migrations;
	m->refusals = qp_stat(q->qp, STAT_path_migration_errors);
	m->refused = (q->qp->flags & QPF_MIG_REFUSED) != 0;
	if (!q->qp->attr.path_resolved)
		q->vague = true; /* answers cannot be sent */
}

static bool
asks(const struct wire_pkt *p)
{
	return p->opcode != OP_CNP && (p->frame[p->bth_off + 1] & MIGREQ) != 0;
}

/** Number of the VLAN; a tag of priority alone is none. */
static uint32_t
vlan_of(const struct wire_pkt *p)
{
	bool tagged = p->frame[12] == 0x81 && p->frame[13] == 0;

	return tagged ? (p->frame[14] & 0xfu) << 8 | p->frame[15] : 0;
}

bool
paths_allow(const struct qp_bed *q, const struct model *m, const struct wire_pkt *p)
{
	bool alternate = m->mig == MIG_ARMED && asks(p);
	const struct wire_path way = bed_way(q->plan, alternate ? m->alt : m->way, true);
	uint16_t pkey = alternate && m->alt_pkey != 0 ? m->alt_pkey : m->pkey;
	const uint8_t *ip = p->frame + p->l3_off;
	bool ipv6 = ip[0] >> 4 == 6;
	size_t n = ipv6 ? 16 : 4;

	if (ipv6 != way.ipv6 || memcmp(ip + (ipv6 ? 8 : 12), way.src_ip, n) != 0)
		return false;
	if (alternate && memcmp(ip + (ipv6 ? 24 : 16), way.dst_ip, n) != 0)
		return false;
	if (q->plan->ernic &&
		(memcmp(p->frame + 6, way.smac, 6) != 0 || (!ipv6 && (ip[6] & 0xe0) != 0x40)))
		return false;
	if (vlan_of(p) != (way.vlan ? way.vlan_tci & 0xfffu : 0))
		return false;
	return (p->pkey & 0x7fff) == (pkey & 0x7fff) && ((p->pkey | pkey) & 0x8000) != 0;
}

void
paths_refuse(struct qp_bed *q, struct model *m, const struct wire_pkt *p)
{
	if (m->mig != MIG_ARMED || !asks(p))
		return;
	m->refusals++;
	q->refused_due += !m->refused; /* PATH_MIG_ERR: once until the state changes */
	m->refused = true;
}

void
paths_accept(struct qp_bed *q, struct model *m, const struct wire_pkt *p)
{
	if (p->opcode == OP_CNP)
		return;
	if (m->mig == MIG_REARM && !asks(p)) {
		m->mig = MIG_ARMED;
		m->refused = false;
	} else if (m->mig == MIG_ARMED && asks(p)) {
		m->mig = MIG_MIGRATED;
		m->refused = false;
		m->way = m->alt;
		m->pkey = m->alt_pkey != 0 ? m->alt_pkey : m->pkey;
		m->moves++;
		q->moved_due++;
	}
}

void
paths_compare(uint32_t i)
{
	const struct model *m = &fb.model[i];
	const struct qp *qp = fb.q[i].qp;

	/* How many of the packets behind the last one were looked at before it is not modelled. */
	if (state_of(i) == QPS_ERR)
		return;
	FUZZ_CHECK(qp->attr.path_mig_state == m->mig && qp->migrations == m->moves);
	FUZZ_CHECK(paths_way(i) == m->way && qp->pkey == m->pkey);
	FUZZ_CHECK(qp_stat(qp, STAT_path_migration_errors) == m->refusals);
	FUZZ_CHECK(((qp->flags & QPF_MIG_REFUSED) != 0) == m->refused);
	FUZZ_CHECK(qp->port == fb.port);
}

/* ---- what is seen of it ---------------------------------------------------------------------- */

void
paths_event(struct qp_bed *q, const struct ring_aeq_event *e)
{
	if (e->event == EV_PATH_MIG)
		FUZZ_CHECK(++q->moved_seen <= q->moved_due);
	else if (e->event == EV_PATH_MIG_ERR)
		FUZZ_CHECK(++q->refused_seen <= q->refused_due);
}

uint8_t
paths_peer(const uint8_t *frame)
{
	const uint8_t *ip = frame + (frame[12] == 0x81 ? 18 : 14);

	return ip[0] >> 4 == 6 ? ip[39] : ip[19];
}

/** @param now the frame was made in this turn. */
void
paths_frame(const struct qp_bed *q, const struct wire_pkt *p, bool now)
{
	const uint32_t i = (uint32_t)(q - fb.q);
	const uint8_t way = (uint8_t)(paths_peer(p->frame) - 2);
	const struct wire_path path = bed_way(q->plan, way, false);
	const struct model *m = &fb.model[i];
	const uint32_t tag = way == 0 || way_pkey(q->plan, way) == 0 ? 0 : OTHER_PKEY;

	FUZZ_CHECK(memcmp(p->frame + 6, path.smac, 6) == 0);
	FUZZ_CHECK(q->learns || memcmp(p->frame, path.dmac, 6) == 0);
	FUZZ_CHECK(((p->flags & PKT_IPV6) != 0) == path.ipv6);
	FUZZ_CHECK(memcmp(wire_src_ip(p), path.src_ip, path.ipv6 ? 16 : 4) == 0);
	FUZZ_CHECK(((p->flags & PKT_VLAN) != 0) == path.vlan &&
		   vlan_of(p) == (path.vlan ? path.vlan_tci & 0xfffu : 0));
	FUZZ_CHECK(p->pkey == q->plan->pkey || p->pkey == OTHER_PKEY);
	FUZZ_CHECK(tag == 0 || p->pkey == tag);
	if (!now || q->qp == NULL || fb.modifying == (int)i || state_of(i) == QPS_ERR)
		return;
	/* A NAK leaves before the next part of a burst of large packets is looked at. */
	if (m->mig != m->mig_before && way == m->way_before)
		return;
	FUZZ_CHECK(way == paths_way(i) && p->pkey == q->qp->pkey);
	FUZZ_CHECK(p->opcode == OP_CNP || asks(p) == (q->qp->attr.path_mig_state == MIG_MIGRATED));
}
