/* SPDX-License-Identifier: BSD-3-Clause */
/* A REQ of no connection: may it become one (CM-20, CM-24, CM-30, CM-31, CM-40)? */
#include <string.h>

#include "cm_priv.h"

enum { MTU_MIN = 1, MTU_MAX = 5, QPN_FIRST = 2, PKEY_KEY = 0x7fff };
enum { PS_TCP = 0x0106, PS_UDP = 0x0111, PS_IB = 0x013f };

struct cm_terms
cm_req_terms(const uint8_t *m)
{
	return (struct cm_terms){
		.qpn = (uint32_t)mad_get(m, REQ_local_qpn),
		.psn = (uint32_t)mad_get(m, REQ_starting_psn),
		.qkey = (uint32_t)mad_get(m, REQ_local_qkey),
		.responder_resources = (uint8_t)mad_get(m, REQ_responder_resources),
		.initiator_depth = (uint8_t)mad_get(m, REQ_initiator_depth),
		.retry_count = (uint8_t)mad_get(m, REQ_retry_count),
		.rnr_retry_count = (uint8_t)mad_get(m, REQ_rnr_retry_count),
		.ack_timeout = (uint8_t)mad_get(m, REQ_primary_local_ack_timeout),
		.mtu = (uint8_t)mad_get(m, REQ_path_mtu),
		.service = (uint8_t)mad_get(m, REQ_transport_service_type),
		.srq = mad_get(m, REQ_srq) != 0,
		.no_credits = mad_get(m, REQ_end_to_end_flow_control) == 0,
	};
}

struct cm_terms
cm_rep_terms(const uint8_t *m, uint8_t service)
{
	return (struct cm_terms){
		.qpn = (uint32_t)mad_get(m, service == CM_XRC ? REP_local_eecn : REP_local_qpn),
		.psn = (uint32_t)mad_get(m, REP_starting_psn),
		.qkey = (uint32_t)mad_get(m, REP_local_qkey),
		.responder_resources = (uint8_t)mad_get(m, REP_responder_resources),
		.initiator_depth = (uint8_t)mad_get(m, REP_initiator_depth),
		.rnr_retry_count = (uint8_t)mad_get(m, REP_rnr_retry_count),
		.ack_timeout = (uint8_t)mad_get(m, REP_target_ack_delay),
		.srq = mad_get(m, REP_srq) != 0,
		.no_credits = mad_get(m, REP_end_to_end_flow_control) == 0,
	};
}

bool
cm_is_ip(uint64_t service_id)
{
	const uint64_t space = service_id >> 16;

	return space == PS_TCP || space == PS_UDP || space == PS_IB;
}

static bool
ip_is_good(const uint8_t *private)
{
	const uint64_t version = mad_get(private, IP_ip_version);

	return mad_get(private, IP_version) == 0 && (version == 4 || version == 6);
}

/** What makes a REQ impossible to serve: reason of the REJ. */
static uint16_t
fault_of(const struct cm_packet *p, const struct cm_listener *l)
{
	const uint8_t *m = p->mad;
	const struct cm_terms t = cm_req_terms(m);

	if (l == NULL || l->service == CM_UD)
		return CM_REJ_INVALID_SERVICE_ID;
	if (t.service != l->service)
		return CM_REJ_INVALID_TRANSPORT;
	if (t.qpn < QPN_FIRST || ((mad_get(m, REQ_pkey) ^ PKEY_KEY) & PKEY_KEY) != 0)
		return CM_REJ_UNSUPPORTED;
	if (memcmp(mad_peek(m, REQ_primary_remote_gid), p->path.own_gid, 16) != 0 ||
		memcmp(mad_peek(m, REQ_primary_local_gid), p->path.peer_gid, 16) != 0)
		return CM_REJ_INVALID_GID;
	if (t.mtu < MTU_MIN || t.mtu > MTU_MAX || t.mtu > l->mtu)
		return CM_REJ_INVALID_MTU;
	if (cm_is_ip(l->service_id) && !ip_is_good(mad_peek(m, REQ_private_data)))
		return CM_REJ_CONSUMER_DEFINED;
	return CM_REJ_NONE;
}

/** Half of the time after which the peer sends its REQ again: then it gets an MRA (CM-26). */
static ns_t
answer_time(const uint8_t *m)
{
	uint8_t n = (uint8_t)mad_get(m, REQ_remote_cm_response_timeout);

	n = n < CM_TIMEOUT_MIN ? CM_TIMEOUT_MIN : n > CM_TIMEOUT_MAX ? CM_TIMEOUT_MAX : n;
	return cm_time(n) / 2;
}

/** How long its RTU may take, after which the REP goes out again (CM-28). */
static ns_t
repeat_time(const uint8_t *m)
{
	uint8_t n = (uint8_t)mad_get(m, REQ_local_cm_response_timeout);

	n = n < CM_TIMEOUT_MIN ? CM_TIMEOUT_MIN : n > CM_TIMEOUT_MAX ? CM_TIMEOUT_MAX : n;
	return cm_time(n);
}

static void
begin(struct cm *cm, const struct cm_packet *p, struct cm_listener *l, ns_t now,
	struct cm_verdict *v)
{
	const uint8_t *m = p->mad;
	struct cm_conn *c = cm_new(cm, false);

	c->path = p->path;
	c->listener = l;
	c->user = NULL;
	c->service_id = l->service_id;
	c->ip = cm_is_ip(l->service_id);
	if (c->ip)
		c->source_port = (uint16_t)mad_get(mad_peek(m, REQ_private_data), IP_source_port);
	c->tid = mad_get(m, MAD_tid);
	c->remote_id = (uint32_t)mad_get(m, REQ_local_comm_id);
	c->peer_guid = mad_get(m, REQ_local_ca_guid);
	c->peer = cm_req_terms(m);
	c->retries_max = (uint8_t)mad_get(m, REQ_max_cm_retries);
	c->interval = repeat_time(m);
	if (cm_is_crowded(cm, l) && c->interval > cm_time(CM_CROWDED_TIMEOUT))
		c->interval = cm_time(CM_CROWDED_TIMEOUT);
	c->time_req = now;
	cm_keep_private(c, m);
	cm_link(cm, c, CM_BY_REMOTE);
	cm_link(cm, c, CM_BY_QPN);
	cm_half_open_begin(cm, c);
	cm_arm(cm, c, answer_time(m), now);
	v->conn = c;
	v->todo = CM_DO_ASK;
	v->event = CM_EVENT_CONNECT_REQUEST;
}

/** Its queue pair has a connection already: the peer, or this side, has missed its end. */
static void
stale(struct cm *cm, struct cm_conn *old, const struct cm_packet *p, ns_t now, struct cm_verdict *v)
{
	static const struct cm_said nothing;

	v->drop = CM_DROP_refused;
	v->status = CM_REJ_STALE_CONN;
	cm_send_stray_rej(v, p, CM_REJ_STALE_CONN);
	if (old->state != CM_ESTABLISHED)
		return;
	/* The other end says with its DREP that it knows of nothing, or is told. */
	cm_step(cm, old, CM_IN_DISCONNECT, &nothing, now, v);
}

bool
cm_may_begin(struct cm *cm, struct cm_listener *l, const struct cm_packet *p, uint32_t id, ns_t now,
	struct cm_verdict *v)
{
	const uint64_t hash = cm_hash_req(cm, &p->path, id, mad_get(p->mad, MAD_tid));

	const bool known = !cm_is_scarce(cm, l) || cm_is_repeated(cm, hash, now);

	v->drop = cm_half_open(cm, l, &p->path);
	if (v->drop == CM_DROP_NONE && !known)
		v->drop = CM_DROP_crowded;
	if ((v->drop == CM_DROP_half_open || v->drop == CM_DROP_backlog) && known) {
		v->displaced = cm_make_room(cm, l, &p->path, now);
		if (v->displaced != NULL)
			v->drop = cm_half_open(cm, l, &p->path);
	}
	return v->drop == CM_DROP_NONE;
}

void
cm_request(struct cm *cm, const struct cm_packet *p, ns_t now, struct cm_verdict *v)
{
	const uint8_t *m = p->mad;
	struct cm_listener *l = cm_listener_of(cm, &p->path, mad_get(m, REQ_service_id));
	struct cm_conn *old;
	uint16_t reason;

	if (!cm_source_may(cm, &p->path, now)) {
		v->drop = CM_DROP_rate;
		return;
	}
	reason = fault_of(p, l);
	if (reason != CM_REJ_NONE) {
		v->drop = CM_DROP_refused;
		v->status = reason;
		cm_send_stray_rej(v, p, reason);
		return;
	}
	old = cm_by_qpn(
		cm, &p->path, mad_get(m, REQ_local_ca_guid), (uint32_t)mad_get(m, REQ_local_qpn));
	if (old != NULL) {
		stale(cm, old, p, now, v);
		return;
	}
	if (cm_may_begin(cm, l, p, (uint32_t)mad_get(m, REQ_local_comm_id), now, v))
		begin(cm, p, l, now, v);
}
