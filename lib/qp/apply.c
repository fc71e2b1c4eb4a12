/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes become state: what a modify does to a QP's context. */
#include <string.h>

#include "invariant.h"
#include "qp.h"
#include "ring_bell.h"

static uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void
qp_few_carry(struct qp *qp)
{
	for (uint32_t s = 0; s < STATS_HOT; s++)
		qp->hot[s] += qp_few_of(qp, (enum stats_counter)s);
	qp->few = (struct qp_few){ 0 };
	qp->few_sends = 0;
}

static void
sendq_clear(struct qp_sendq *q)
{
	q->sent = q->responses = q->response_bytes = q->messages = q->message_bytes = 0;
}

void
qp_sendq_carry(struct qp *qp)
{
	for (uint32_t s = 0; s < STATS_HOT; s++)
		qp->hot[s] += qp_sendq_of(qp, (enum stats_counter)s);
	for (uint32_t s = STATS_HOT; s < STAT_MAX && qp->stats != NULL; s++)
		qp->stats->c[s] += qp_sendq_of(qp, (enum stats_counter)s);
	sendq_clear(&qp->sq);
}

/** Where packets go and come from: addresses, flags, template. */
static void
apply_path(struct qp *qp)
{
	const struct wire_path *path = &qp->attr.path;

	qp->out = qp_out_of(qp->port, path);
	if ((qp->flags & QPF_DATAGRAM) == 0)
		memcpy(qp->peer_ipv4, path->dst_ip, sizeof(qp->peer_ipv4));
	memcpy(qp->peer_mac, path->dmac, sizeof(qp->peer_mac));
	qp->flags &= ~(uint32_t)(QPF_IPV6 | QPF_RESOLVED | QPF_VLAN | QPF_LOCAL);
	if (path->local)
		qp->flags |= QPF_LOCAL;
	if (path->vlan)
		qp->flags |= QPF_VLAN;
	if (path->ipv6)
		qp->flags |= QPF_IPV6;
	if (qp->attr.path_resolved)
		qp->flags |= QPF_RESOLVED;
	ASSERT(!path->vlan || (qp->flags & QPF_VLAN) != 0);
}

static void
make_template(struct qp *qp)
{
	wire_template_init(&qp->tmpl, &qp->attr.path, qp->attr.pkey, qp->attr.dest_qp_num);
	qp->flags &= ~(uint32_t)QPF_ACK_CRC;
}

void
qp_path_changed(struct qp *qp)
{
	apply_path(qp);
	make_template(qp);
}

/** Same ends, same VLAN? Ports on separate networks may have the same address, so MACs count. */
static bool
is_same_way(const struct wire_path *a, const struct wire_path *b)
{
	const size_t n = a->ipv6 ? 16 : 4;

	return a->ipv6 == b->ipv6 && memcmp(a->dst_ip, b->dst_ip, n) == 0 &&
	       memcmp(a->smac, b->smac, sizeof(a->smac)) == 0 &&
	       memcmp(a->src_ip, b->src_ip, n) == 0 && a->vlan == b->vlan &&
	       (!a->vlan || ((a->vlan_tci ^ b->vlan_tci) & 0xfff) == 0);
}

/**
 * A neighbour has another MAC, or none any more. The QP may have migrated since the message was
 * sent, so this looks up which of its two paths goes to that neighbour.
 */
static void
apply_mac(struct qp *qp, const struct wire_path *to, bool known)
{
	struct qp_attr *a = &qp->attr;

	if (is_same_way(&a->alt_path, to)) {
		memcpy(a->alt_path.dmac, to->dmac, sizeof(to->dmac));
		a->alt_resolved = known;
		qp->req.armed = known && a->path_mig_state == MIG_ARMED;
	}
	if (is_same_way(&a->path, to)) {
		memcpy(a->path.dmac, to->dmac, sizeof(to->dmac));
		a->path_resolved = known;
		qp_path_changed(qp);
	}
}

static void
store_alternate(struct qp *qp, const struct qp_attr *from)
{
	struct qp_attr *to = &qp->attr;

	to->alt_path = from->alt_path;
	to->alt_resolved = from->alt_resolved;
	to->alt_port = from->alt_port;
	to->alt_timeout = from->alt_timeout;
	to->alt_pkey = from->alt_pkey;
	qp->req.armed = to->path_mig_state == MIG_ARMED && to->alt_resolved;
}

/** Software asks for this state. The alternate path is loaded, and the state was checked. */
static void
apply_migration(struct qp *qp, enum mig_state to)
{
	if (to != MIG_MIGRATED)
		qp_migration_set(qp, to);
	else if (qp->attr.path_mig_state == MIG_ARMED)
		qp_migrate(qp);
}

/** Copy the attributes that the mask names. The state and the alternate path follow later. */
static void
store(struct qp_attr *to, const struct qp_attr *from, uint32_t mask)
{
	if ((mask & QP_ATTR_EN_SQD_ASYNC_NOTIFY) != 0)
		to->en_sqd_async_notify = from->en_sqd_async_notify;
	if ((mask & QP_ATTR_ACCESS_FLAGS) != 0)
		to->qp_access_flags = from->qp_access_flags;
	if ((mask & QP_ATTR_PKEY_INDEX) != 0)
		to->pkey = from->pkey;
	if ((mask & QP_ATTR_AV) != 0) {
		to->path = from->path;
		to->path_resolved = from->path_resolved;
	}
	if ((mask & QP_ATTR_PATH_MTU) != 0)
		to->path_mtu = from->path_mtu;
	if ((mask & QP_ATTR_TIMEOUT) != 0)
		to->timeout = from->timeout;
	if ((mask & QP_ATTR_RETRY_CNT) != 0)
		to->retry_cnt = from->retry_cnt;
	if ((mask & QP_ATTR_RNR_RETRY) != 0)
		to->rnr_retry = from->rnr_retry;
	if ((mask & QP_ATTR_RQ_PSN) != 0)
		to->rq_psn = from->rq_psn & PSN_MASK;
	if ((mask & QP_ATTR_MAX_QP_RD_ATOMIC) != 0)
		to->max_rd_atomic = from->max_rd_atomic;
	if ((mask & QP_ATTR_MIN_RNR_TIMER) != 0)
		to->min_rnr_timer = from->min_rnr_timer;
	if ((mask & QP_ATTR_SQ_PSN) != 0)
		to->sq_psn = from->sq_psn & PSN_MASK;
	if ((mask & QP_ATTR_MAX_DEST_RD_ATOMIC) != 0)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if ((mask & QP_ATTR_QKEY) != 0)
		to->qkey = from->qkey;
	if ((mask & QP_ATTR_DEST_QPN) != 0)
		to->dest_qp_num = from->dest_qp_num & PSN_MASK;
}

/** Clear saved READs and ATOMICs. A compact QP without its side has saved none. */
static void
forget_saved(struct qp *qp)
{
	if (qp->saved != NULL && qp->stats != NULL)
		memset(qp->saved, 0, qp->max_dest_alloc * sizeof(*qp->saved));
}

/** What the responder needs to know of the attributes. */
static void
apply_responder(struct qp *qp, uint32_t mask)
{
	struct responder *r = &qp->resp;

	if ((mask & QP_ATTR_ACCESS_FLAGS) != 0)
		r->access = qp->attr.qp_access_flags;
	if ((mask & QP_ATTR_PATH_MTU) != 0)
		r->pmtu = qp->attr.path_mtu;
	if ((mask & QP_ATTR_MIN_RNR_TIMER) != 0)
		r->min_rnr_timer = qp->attr.min_rnr_timer & 31;
	/* RESP-DUP-06: what was saved stays; in SQD the peer may still ask for it again. */
	if ((mask & QP_ATTR_MAX_DEST_RD_ATOMIC) != 0)
		r->max_dest_rd_atomic =
			(uint8_t)min_u32(qp->attr.max_dest_rd_atomic, qp->max_dest_alloc);
	ASSERT(r->max_dest_rd_atomic <= r->saved_n);
}

/** RESET drops posted work without completions, and clears latches and counters (QP-05). */
static void
reset(struct qp *qp)
{
	ring_consume_done(&qp->rq, ring_consume_count(&qp->rq));
	atomic_store_explicit(&qp->rq.sh->alert, 0, memory_order_relaxed);
	ring_bell_heard(&qp->rq); /* a bell that is still in the ring finds nothing to do */
	if (qp->sq.ring.sh != NULL)
		ring_bell_heard(&qp->sq.ring);
	responder_reset(&qp->resp, psn(qp->attr.rq_psn));
	forget_saved(qp);
	qp->active = NULL;
	qp->feed_next = 0;
	qp->flags &= ~(uint32_t)QPF_DIRTY;
	resp_answers_clear(&qp->answers);
	qp->cnp_next = 0;
	qp->ce_seen = 0;
	qp->nowhere = 0;
	qp->fatal = 0;
	qp->flags &= ~(uint32_t)(QPF_CNP_SCHEDULED | QPF_LAST_WQE);
	memset(&qp->attr.alt_path, 0, sizeof(qp->attr.alt_path));
	qp->attr.alt_resolved = false;
	qp_migration_set(qp, MIG_MIGRATED);
	memset(&qp->last_error, 0, sizeof(qp->last_error));
	qp->last_error.fault = VERDICT_NO_FAULT;
	qp->few = (struct qp_few){ 0 };
	qp->few_sends = 0;
	sendq_clear(&qp->sq);
	memset(qp->hot, 0, sizeof(qp->hot));
	if (qp->stats != NULL)
		memset(qp->stats, 0, sizeof(*qp->stats));
	if (qp->failure != NULL)
		memset(qp->failure, 0, sizeof(*qp->failure));
}

/** AE-05: in RTR, a connected QP tells of the first request of its peer. */
static void
apply_unheard(struct qp *qp, uint8_t from, uint8_t to)
{
	if (to != QPS_RTR)
		qp->flags &= ~(uint32_t)QPF_UNHEARD;
	else if (from == QPS_INIT && wire_is_connected(qp->resp.transport))
		qp->flags |= QPF_UNHEARD;
}

void
qp_apply(struct qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	const uint32_t in_template = QP_ATTR_AV | QP_ATTR_DEST_QPN | QP_ATTR_PKEY_INDEX;
	uint8_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);
	uint8_t next = (mask & QP_ATTR_STATE) != 0 ? attr->qp_state : state;

	ASSERT(next < QPS_MAX);
	store(&qp->attr, attr, mask);
	apply_responder(qp, mask);
	if ((mask & QP_ATTR_PKEY_INDEX) != 0)
		qp->pkey = qp->attr.pkey;
	if ((mask & QP_ATTR_QKEY) != 0)
		qp->qkey = qp->attr.qkey;
	if ((mask & QP_ATTR_AV) != 0)
		apply_path(qp);
	/* A datagram's is its address handle's. */
	if ((mask & in_template) != 0 && (qp->flags & QPF_DATAGRAM) == 0)
		make_template(qp);
	if ((mask & QP_ATTR_NEW_MAC) != 0)
		apply_mac(qp, &attr->path, attr->path_resolved);
	if ((mask & QP_ATTR_ALT_PATH) != 0)
		store_alternate(qp, attr);
	if ((mask & QP_ATTR_TRACE) != 0)
		qp->flags = attr->trace ? qp->flags | QPF_TRACE : qp->flags & ~(uint32_t)QPF_TRACE;

	qp_send_apply(qp, mask, state, next);
	if ((mask & QP_ATTR_PATH_MIG_STATE) != 0)
		apply_migration(qp, (enum mig_state)attr->path_mig_state);
	if (next == QPS_RESET)
		reset(qp);
	else if (next == QPS_RTR && state == QPS_INIT)
		responder_reset(&qp->resp, psn(qp->attr.rq_psn));
	apply_unheard(qp, state, next);
	ASSERT(((qp->flags & QPF_MIGRATION) != 0) == (qp->attr.path_mig_state != MIG_MIGRATED));
	ASSERT(!qp->req.armed || qp->attr.path_mig_state == MIG_ARMED);
	ASSERT(next != QPS_RESET || qp->answers.count == 0);
	ASSERT(next == QPS_RTR || (qp->flags & QPF_UNHEARD) == 0);
	ASSERT(next != QPS_RESET || (qp->flags & QPF_DIRTY) == 0);
	qp->attr.qp_state = next;
	qp->attr.cur_qp_state = next;
	atomic_store_explicit(&qp->state, next, memory_order_release);
}
