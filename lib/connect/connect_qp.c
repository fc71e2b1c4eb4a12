/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair of a connection: made from a template, and walked by what was agreed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "connect_client.h"
#include "connect_priv.h"
#include "log.h"
#include "service.h"
#include "verbs.h"

enum { MTU_LEAST = 128 }; /* shifted by the code: 256 for 1 */

uint8_t
connect_mtu_code(uint32_t mtu)
{
	uint8_t code = 1;

	while (code < 5 && (uint32_t)MTU_LEAST << code < mtu)
		code++;
	return code;
}

static void
set_address(struct conf_qp *q, const struct cm_conn *c)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const bool ipv4 = memcmp(c->path.peer_gid, mapped, sizeof(mapped)) == 0;

	if ((q->given & QP_ATTR_AV) == 0)
		q->ah_attr.hop_limit = 64;
	q->ah_attr.dest_ip = (struct conf_ip){ .family = ipv4 ? 4 : 6 };
	memcpy(q->ah_attr.dest_ip.addr, c->path.peer_gid + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
	if (c->path.tci != 0) {
		q->ah_attr.given |= CONF_AH_VLAN;
		q->ah_attr.vlan = c->path.tci & 0xfff;
		q->ah_attr.vlan_priority = (uint8_t)(c->path.tci >> 13);
	}
	q->given |= QP_ATTR_AV;
}

/* Of these attributes, those that this type of queue pair has. */
static uint64_t
those_of(uint32_t qp_type, uint64_t wanted)
{
	uint64_t has = 0;

	for (uint64_t left = wanted; left != 0; left &= left - 1) {
		const uint64_t bit = left & -left;

		if (conf_has_key(qp_type, bit))
			has |= bit;
	}
	return has;
}

/* What both ends have agreed on, up to a state. */
static void
set_agreed(struct conf_qp *q, const struct cm_conn *c, const struct cm_taken *t, enum qp_state to)
{
	uint64_t agreed;

	q->qp_state = to;
	q->given |= QP_ATTR_STATE;
	if (to == QPS_RTR) {
		set_address(q, c);
		q->dest_qp_num = t->dest_qpn;
		q->rq_psn = t->rq_psn;
		q->path_mtu = (uint32_t)MTU_LEAST << t->mtu;
		q->max_dest_rd_atomic = t->max_dest_rd_atomic;
		agreed = QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN | QP_ATTR_PATH_MTU |
			 QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
	} else {
		q->sq_psn = t->sq_psn;
		q->timeout = t->timeout;
		q->retry_cnt = t->retry_cnt;
		q->rnr_retry = t->rnr_retry;
		q->max_rd_atomic = t->max_rd_atomic;
		agreed = QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			 QP_ATTR_MAX_QP_RD_ATOMIC;
	}
	q->given |= those_of(q->qp_type, agreed);
}

void
connect_qp_qkey(struct conf_qp *q)
{
	if ((q->given & QP_ATTR_QKEY) == 0)
		q->qkey = CM_UD_QKEY;
	q->given |= QP_ATTR_QKEY;
}

static int
create(struct connect *cx, struct connect_conn *cc, struct conf_qp *q, struct refusal *r)
{
	struct admin_qp *rec;
	int rc;

	snprintf(q->port, sizeof(q->port), "%s", cx->env->w.conf->ports[cc->port].name);
	q->given |= QP_ATTR_PORT | QP_ATTR_STATE;
	q->count = 1;
	rc = admin_create(cx->admin, q, &rec, r);
	if (rc == 0)
		cc->qpn = rec->qpn;
	return rc;
}

/* What a server takes from a REQ, before cm_accept(): `own` is bounded by it already. */
static struct cm_taken
taken_of(const struct cm_conn *c, const struct cm_terms *own)
{
	return (struct cm_taken){ .dest_qpn = c->peer.qpn,
		.rq_psn = own->psn,
		.sq_psn = c->peer.psn,
		.mtu = c->peer.mtu,
		.timeout = c->peer.ack_timeout,
		.retry_cnt = c->peer.retry_count,
		.rnr_retry = c->peer.rnr_retry_count,
		.max_rd_atomic = own->initiator_depth,
		.max_dest_rd_atomic = own->responder_resources };
}

int
connect_qp_passive(
	struct connect *cx, struct connect_conn *cc, const struct cm_terms *own, struct refusal *r)
{
	const struct cm_taken t = taken_of(cc->c, own);
	struct conf_qp q = cc->qp;

	set_agreed(&q, cc->c, &t, QPS_RTR);
	return create(cx, cc, &q, r);
}

int
connect_qp_active(struct connect *cx, struct connect_conn *cc, struct refusal *r)
{
	struct conf_qp q = cc->qp;

	q.qp_state = QPS_INIT;
	if (q.qp_type == QPT_UD) { /* it needs no peer */
		q.qp_state = QPS_RTS;
		q.sq_psn = (uint32_t)cm_random(&cx->cm) & PSN_MASK;
		q.given = (q.given | QP_ATTR_SQ_PSN) & ~(uint64_t)QP_ATTR_AV;
		connect_qp_qkey(&q);
	}
	return create(cx, cc, &q, r);
}

/* An application may have destroyed its own meanwhile, and the number may be another's. */
static bool
is_its_own(const struct connect_conn *cc, const struct admin_qp *rec)
{
	return !cc->foreign || (cc->of != NULL && connect_owns(cc->of->client, rec));
}

static int
modify(struct connect *cx, struct connect_conn *cc, struct conf_qp *m, struct refusal *r)
{
	struct admin_qp *rec = admin_get(cx->admin, cc->qpn, r);

	if (rec == NULL)
		return -ENOENT;
	if (!is_its_own(cc, rec))
		return refuse(r, ENOENT, "QP %u does not exist", cc->qpn);
	m->qp_num = cc->qpn;
	m->given |= CONF_QP_QP_NUM;
	return admin_modify(cx->admin, rec, m, r);
}

static int
walk(struct connect *cx, struct connect_conn *cc, const struct cm_taken *t, enum qp_state to,
	struct refusal *r)
{
	struct conf_qp m = { .given = 0 };

	if (cc->qp.qp_type == QPT_UD)
		return 0;
	m.qp_type = cc->qp.qp_type;
	m.ah_attr = cc->qp.ah_attr;
	m.given = cc->qp.given & QP_ATTR_AV;
	m.min_rnr_timer = cc->qp.min_rnr_timer;
	if (to == QPS_RTS)
		m.given = 0;
	set_agreed(&m, cc->c, t, to);
	return modify(cx, cc, &m, r);
}

int
connect_qp_rtr(struct connect *cx, struct connect_conn *cc, struct refusal *r)
{
	return walk(cx, cc, &cc->c->taken, QPS_RTR, r);
}

int
connect_qp_rts(struct connect *cx, struct connect_conn *cc, struct refusal *r)
{
	return walk(cx, cc, &cc->c->taken, QPS_RTS, r);
}

int
connect_qp_ready(
	struct connect *cx, struct connect_conn *cc, const struct cm_terms *own, struct refusal *r)
{
	const struct cm_taken t = taken_of(cc->c, own);
	const int rc = walk(cx, cc, &t, QPS_RTR, r);

	return rc == 0 ? walk(cx, cc, &t, QPS_RTS, r) : rc;
}

int
connect_qp_error(struct connect *cx, struct admin_qp *rec, struct refusal *r)
{
	return admin_fail(cx->admin, rec, r);
}

void
connect_qp_down(struct connect *cx, struct connect_conn *cc)
{
	struct admin_qp *rec = cc->qpn != 0 ? admin_find(cx->admin, cc->qpn) : NULL;
	struct refusal r;

	if (rec != NULL && connect_qp_error(cx, rec, &r) != 0)
		log_warn("connection %u: QP %u does not go to ERR: %s", cc->id, cc->qpn, r.text);
}

void
connect_qp_end(struct connect *cx, struct connect_conn *cc)
{
	const bool ours = cc->qpn != 0 && !cc->foreign && !cc->shared;
	struct admin_qp *rec = ours ? admin_find(cx->admin, cc->qpn) : NULL;
	const bool put_off = cx->env->may_put_off;
	struct refusal r;

	/* The request under way, if any, has an answer already: nobody comes back to this. */
	cx->env->may_put_off = false;
	if (rec != NULL && admin_destroy(cx->admin, rec, &r) != 0) {
		log_warn("connection %u: QP %u goes later: %s", cc->id, cc->qpn, r.text);
		admin_end_later(cx->admin, rec);
	}
	cx->env->may_put_off = put_off;
}
