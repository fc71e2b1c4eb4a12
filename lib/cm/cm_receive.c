/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connection a message belongs to, and whether it may. */
#include <string.h>

#include "cm_priv.h"

/** enum cm_input of the messages that answer something; REQ and SIDR go other ways. */
static const uint8_t inputs[CM_MESSAGE_LAST + 1] = {
	[CM_MRA] = CM_IN_MRA,
	[CM_REJ] = CM_IN_REJ,
	[CM_REP] = CM_IN_REP,
	[CM_RTU] = CM_IN_RTU,
	[CM_DREQ] = CM_IN_DREQ,
	[CM_DREP] = CM_IN_DREP,
	[CM_LAP] = CM_IN_LAP,
	[CM_APR] = CM_IN_APR,
};

static enum cm_drop
drop_of(enum mad_fault f)
{
	switch (f) {
	case MAD_BAD_LENGTH:
		return CM_DROP_length;
	case MAD_BAD_BASE:
		return CM_DROP_base_version;
	case MAD_BAD_CLASS:
		return CM_DROP_class;
	case MAD_BAD_CLASS_VERSION:
		return CM_DROP_class_version;
	case MAD_BAD_METHOD:
		return CM_DROP_method;
	case MAD_BAD_ATTRIBUTE:
		return CM_DROP_attribute;
	case MAD_GOOD:
		break;
	}
	return CM_DROP_NONE;
}

static bool
is_from_peer(const struct cm_conn *c, const struct cm_packet *p)
{
	return c->path.port == p->path.port &&
	       memcmp(c->path.peer_gid, p->path.peer_gid, 16) == 0 &&
	       memcmp(c->path.own_gid, p->path.own_gid, 16) == 0;
}

/** The connection that a message names; all begin with both ids. */
static struct cm_conn *
named(struct cm *cm, const struct cm_packet *p)
{
	const uint32_t ours = (uint32_t)mad_get(p->mad, RTU_remote_comm_id);
	const uint32_t theirs = (uint32_t)mad_get(p->mad, RTU_local_comm_id);
	const enum cm_message message = mad_message(p->mad);
	struct cm_conn *c;

	/* Who gave up before it heard of our id. */
	if (message == CM_REJ && ours == 0)
		return cm_by_remote(cm, &p->path, theirs, mad_get(p->mad, MAD_tid));
	c = cm_find(cm, ours);
	if (c == NULL || !is_from_peer(c, p))
		return NULL;
	if (c->remote_id == theirs || (c->active && c->state <= CM_MRA_REQ_RCVD))
		return c;
	return message == CM_REJ && theirs == 0 ? c : NULL;
}

/** CM-03: answers carry the id of what they answer. */
static bool
tid_fits(const struct cm_conn *c, const uint8_t *m)
{
	switch (mad_message(m)) {
	case CM_DREQ:
	case CM_LAP:
	case CM_APR:
		return true;
	case CM_DREP:
		return c->state != CM_DREQ_SENT || mad_get(m, MAD_tid) == mad_get(c->sent, MAD_tid);
	default:
		return mad_get(m, MAD_tid) == c->tid;
	}
}

/** Of both ends, only one sends this. */
static bool
role_fits(const struct cm_conn *c, const uint8_t *m)
{
	switch (mad_message(m)) {
	case CM_REP:
		return c->active;
	case CM_RTU:
		return !c->active;
	case CM_MRA:
		return mad_get(m, MRA_message_mraed) == (c->active ? 0 : 1);
	default:
		return true;
	}
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/** CM-16..CM-20: what the client takes from a REP. */
static void
take(struct cm *cm, struct cm_conn *c, const uint8_t *m, ns_t now)
{
	const struct cm_terms t = cm_rep_terms(m, c->own.service);

	c->remote_id = (uint32_t)mad_get(m, REP_local_comm_id);
	c->peer_guid = mad_get(m, REP_local_ca_guid);
	c->peer = t;
	cm_link(cm, c, CM_BY_QPN);
	c->time_rep = now;
	c->time_rtu = now;
	c->taken = (struct cm_taken){
		.dest_qpn = t.qpn,
		.rq_psn = c->own.psn,
		.sq_psn = t.psn,
		.mtu = c->own.mtu,
		.timeout = cm_ack_timeout(t.ack_timeout, c->packet_life),
		.retry_cnt = c->own.retry_count,
		.rnr_retry = t.rnr_retry_count,
		.max_rd_atomic = least(t.responder_resources, c->own.initiator_depth),
		.max_dest_rd_atomic = least(t.initiator_depth, c->own.responder_resources),
	};
}

/** A message of a connection. */
static void
receive_for(
	struct cm *cm, struct cm_conn *c, const struct cm_packet *p, ns_t now, struct cm_verdict *v)
{
	const uint8_t *m = p->mad;
	const enum cm_message message = mad_message(m);
	const enum cm_input in = message == CM_REQ ? CM_IN_REQ : (enum cm_input)inputs[message];
	const bool first = c->state < CM_ESTABLISHED;
	struct cm_said said = { 0 };

	v->conn = c;
	if (message == CM_DREQ && mad_get(m, DREQ_remote_qpn) != c->own.qpn) {
		v->drop = CM_DROP_qpn;
		return;
	}
	if (!tid_fits(c, m)) {
		v->drop = CM_DROP_transaction;
		return;
	}
	if (!role_fits(c, m) || cm_steps[c->state][in].rule == NULL || c->peer.service == CM_UD) {
		v->drop = CM_DROP_state;
		return;
	}
	c->path.tci = p->path.tci;
	memcpy(c->path.peer_mac, p->path.peer_mac, sizeof(c->path.peer_mac));
	c->path.has_mac = p->path.has_mac;
	switch (message) {
	case CM_REP:
		if (first)
			take(cm, c, m, now);
		break;
	case CM_RTU:
		if (first)
			c->time_rtu = now;
		break;
	case CM_MRA:
		said.timeout = (uint8_t)mad_get(m, MRA_service_timeout);
		break;
	case CM_REJ:
		said.status = (uint16_t)mad_get(m, REJ_reason);
		break;
	case CM_DREQ:
	case CM_LAP:
		c->their_tid = mad_get(m, MAD_tid);
		break;
	default:
		break;
	}
	if (first || message == CM_DREQ || message == CM_REJ)
		cm_keep_private(c, m);
	if (message == CM_REP && c->state == CM_TIMEWAIT)
		said.reason = CM_REJ_STALE_CONN;
	cm_step(cm, c, in, &said, now, v);
}

/** A message of no connection: its sender is told where it would wait otherwise. */
static void
stray(const struct cm_packet *p, struct cm_verdict *v)
{
	v->drop = CM_DROP_unknown;
	if (mad_message(p->mad) == CM_DREQ)
		cm_send_stray_drep(v, p);
	else if (mad_message(p->mad) == CM_REP)
		cm_send_stray_rej(v, p, CM_REJ_INVALID_COMM_ID);
}

/** The answer to a SIDR_REQ (CM-41). */
static void
sidr_answer(struct cm *cm, const struct cm_packet *p, ns_t now, struct cm_verdict *v)
{
	const uint8_t *m = p->mad;
	struct cm_conn *c = cm_find(cm, (uint32_t)mad_get(m, SIDR_REP_request_id));
	struct cm_said said = { .status = (uint16_t)mad_get(m, SIDR_REP_status) };
	const enum cm_input in = said.status == 0 ? CM_IN_SIDR_REP : CM_IN_SIDR_NO;

	if (c == NULL || !is_from_peer(c, p)) {
		v->drop = CM_DROP_unknown;
		return;
	}
	v->conn = c;
	if (!tid_fits(c, m)) {
		v->drop = CM_DROP_transaction;
		return;
	}
	if (c->state == CM_SIDR_REQ_SENT) {
		c->peer.qpn = (uint32_t)mad_get(m, SIDR_REP_qpn);
		c->peer.qkey = (uint32_t)mad_get(m, SIDR_REP_qkey);
		c->time_rep = now;
		cm_keep_private(c, m);
	}
	cm_step(cm, c, in, &said, now, v);
}

void
cm_receive(struct cm *cm, const struct cm_packet *p, ns_t now, struct cm_verdict *v)
{
	struct cm_conn *c;

	cm_verdict_init(v);
	v->drop = drop_of(mad_check(p->mad, p->len));
	if (v->drop != CM_DROP_NONE)
		return;
	switch (mad_message(p->mad)) {
	case CM_REQ:
		c = cm_by_remote(cm, &p->path, (uint32_t)mad_get(p->mad, REQ_local_comm_id),
			mad_get(p->mad, MAD_tid));
		if (c != NULL)
			receive_for(cm, c, p, now, v);
		else
			cm_request(cm, p, now, v);
		break;
	case CM_SIDR_REQ:
		cm_sidr_request(cm, p, now, v);
		break;
	case CM_SIDR_REP:
		sidr_answer(cm, p, now, v);
		break;
	default:
		c = named(cm, p);
		if (c != NULL)
			receive_for(cm, c, p, now, v);
		else
			stray(p, v);
		break;
	}
}
