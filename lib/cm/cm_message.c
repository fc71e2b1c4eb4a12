/* SPDX-License-Identifier: BSD-3-Clause */
/* What the connection manager says (CM-02..CM-10). */
#include <string.h>

#include "be.h"
#include "cm_priv.h"
#include "compiler.h"
#include "invariant.h"

enum { REJECTED_REQ = 0, REJECTED_REP = 1, REJECTED_OTHER = 2 };
enum { NO_LID = 0xffff, PKEY = 0xffff, GUID_LEN = 8 };
enum { AR_UNSUPPORTED = 2 }; /* status of an APR: no alternate paths */

uint8_t *
cm_out(struct cm_verdict *v, const struct cm_path *path)
{
	struct cm_out *o = &v->out[v->outs];

	ASSERT(v->outs < ARRAY_LEN(v->out));
	v->outs++;
	o->path = *path;
	return o->mad;
}

static void
put_private(uint8_t *mad, const uint8_t *private, uint32_t len)
{
	const enum mad_field f = mad_private(mad_message(mad));

	ASSERT(len <= mad_bytes(f));
	if (len != 0)
		memcpy(mad_at(mad, f), private, len);
}

/* The header of the IP port spaces (CM-08). */
static void
put_ip(uint8_t *private, const struct cm_conn *c, uint16_t source_port)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const bool ipv4 = memcmp(c->path.own_gid, mapped, sizeof(mapped)) == 0;
	const uint32_t from = ipv4 ? sizeof(mapped) : 0;

	mad_set(private, IP_ip_version, ipv4 ? 4 : 6);
	mad_set(private, IP_source_port, source_port);
	memcpy(mad_at(private, IP_source_ip) + from, c->path.own_gid + from, 16 - from);
	memcpy(mad_at(private, IP_destination_ip) + from, c->path.peer_gid + from, 16 - from);
}

/* The user's part, behind the IP port spaces' header. */
static void
put_ask(uint8_t *private, const struct cm_conn *c, const struct cm_ask *ask)
{
	if (ask->ip) {
		put_ip(private, c, ask->source_port);
		private += MAD_IP_LEN;
	}
	if (ask->private_len != 0)
		memcpy(private, ask->private, ask->private_len);
}

void
cm_make_req(struct cm *cm, struct cm_conn *c, const struct cm_ask *ask)
{
	const struct cm_terms *t = &c->own;
	const uint8_t response = cm_response_timeout(ask->time, c->retries_max);
	uint8_t *m = c->sent;

	mad_init(m, CM_REQ, c->tid);
	mad_set(m, REQ_local_comm_id, c->local_id);
	mad_set(m, REQ_service_id, c->service_id);
	mad_set(m, REQ_local_ca_guid, cm->guid);
	mad_set(m, REQ_local_qpn, t->qpn);
	mad_set(m, REQ_responder_resources, t->responder_resources);
	mad_set(m, REQ_initiator_depth, t->initiator_depth);
	mad_set(m, REQ_remote_cm_response_timeout, response);
	mad_set(m, REQ_transport_service_type, t->service);
	mad_set(m, REQ_extended_transport, t->service == CM_XRC);
	mad_set(m, REQ_end_to_end_flow_control, !t->no_credits);
	mad_set(m, REQ_starting_psn, t->psn);
	mad_set(m, REQ_local_cm_response_timeout, response);
	mad_set(m, REQ_retry_count, t->retry_count);
	mad_set(m, REQ_pkey, PKEY);
	mad_set(m, REQ_path_mtu, t->mtu);
	mad_set(m, REQ_rnr_retry_count, t->rnr_retry_count);
	mad_set(m, REQ_max_cm_retries, c->retries_max);
	mad_set(m, REQ_srq, t->srq);
	mad_set(m, REQ_primary_local_lid, NO_LID);
	mad_set(m, REQ_primary_remote_lid, NO_LID);
	memcpy(mad_at(m, REQ_primary_local_gid), c->path.own_gid, 16);
	memcpy(mad_at(m, REQ_primary_remote_gid), c->path.peer_gid, 16);
	mad_set(m, REQ_primary_traffic_class, ask->traffic_class);
	mad_set(m, REQ_primary_hop_limit, ask->hop_limit);
	mad_set(m, REQ_primary_local_ack_timeout, t->ack_timeout);
	put_ask(mad_at(m, REQ_private_data), c, ask);
}

void
cm_make_sidr_req(struct cm_conn *c, const struct cm_ask *ask)
{
	uint8_t *m = c->sent;

	mad_init(m, CM_SIDR_REQ, c->tid);
	mad_set(m, SIDR_REQ_request_id, c->local_id);
	mad_set(m, SIDR_REQ_pkey, PKEY);
	mad_set(m, SIDR_REQ_service_id, c->service_id);
	put_ask(mad_at(m, SIDR_REQ_private_data), c, ask);
}

void
cm_make_rep(struct cm *cm, struct cm_conn *c, const uint8_t *private, uint32_t private_len)
{
	const struct cm_terms *t = &c->own;
	uint8_t *m = c->sent;

	mad_init(m, CM_REP, c->tid);
	mad_set(m, REP_local_comm_id, c->local_id);
	mad_set(m, REP_remote_comm_id, c->remote_id);
	/* An XRC target is named in the place of an EE context, and all it has is SRQs. */
	mad_set(m, c->peer.service == CM_XRC ? REP_local_eecn : REP_local_qpn, t->qpn);
	mad_set(m, REP_starting_psn, t->psn);
	mad_set(m, REP_responder_resources, t->responder_resources);
	mad_set(m, REP_initiator_depth, t->initiator_depth);
	mad_set(m, REP_target_ack_delay, t->ack_timeout);
	mad_set(m, REP_failover_accepted, 1); /* not supported */
	mad_set(m, REP_end_to_end_flow_control, !t->no_credits);
	mad_set(m, REP_rnr_retry_count, t->rnr_retry_count);
	mad_set(m, REP_srq, t->srq || c->peer.service == CM_XRC);
	mad_set(m, REP_local_ca_guid, cm->guid);
	put_private(m, private, private_len);
}

void
cm_make_dreq(struct cm *cm, struct cm_conn *c)
{
	mad_init(c->sent, CM_DREQ, cm_random(cm) >> 32);
	mad_set(c->sent, DREQ_local_comm_id, c->local_id);
	mad_set(c->sent, DREQ_remote_comm_id, c->remote_id);
	mad_set(c->sent, DREQ_remote_qpn, c->peer.qpn);
}

void
cm_send_rej(const struct cm *cm, struct cm_verdict *v, const struct cm_conn *c, uint16_t reason,
	const uint8_t *private, uint32_t private_len)
{
	uint8_t *m = cm_out(v, &c->path);
	uint8_t of = REJECTED_OTHER;

	mad_init(m, CM_REJ, c->tid);
	/* A REQ that nothing has answered yet knows no id of ours. */
	if (c->active || c->state != CM_REQ_RCVD)
		mad_set(m, REJ_local_comm_id, c->local_id);
	mad_set(m, REJ_remote_comm_id, c->remote_id);
	if (!c->active && (c->state == CM_REQ_RCVD || c->state == CM_MRA_REQ_SENT))
		of = REJECTED_REQ;
	else if (c->active && (c->state == CM_ESTABLISHED || c->state == CM_TIMEWAIT))
		of = REJECTED_REP;
	mad_set(m, REJ_message_rejected, of);
	mad_set(m, REJ_reason, reason);
	if (reason == CM_REJ_TIMEOUT) {
		/* The peer finds what is meant by our GUID and id. */
		mad_set(m, REJ_rejected_info_length, GUID_LEN);
		be64_store(mad_at(m, REJ_ari), cm->guid);
	}
	put_private(m, private, private_len);
}

void
cm_send_stray_rej(struct cm_verdict *v, const struct cm_packet *p, uint16_t reason)
{
	const bool rep = mad_message(p->mad) == CM_REP;
	uint8_t *m = cm_out(v, &p->path);

	mad_init(m, CM_REJ, mad_get(p->mad, MAD_tid));
	if (rep)
		mad_set(m, REJ_local_comm_id, mad_get(p->mad, REP_remote_comm_id));
	mad_set(m, REJ_remote_comm_id, mad_get(p->mad, REP_local_comm_id));
	mad_set(m, REJ_message_rejected, rep ? REJECTED_REP : REJECTED_REQ);
	mad_set(m, REJ_reason, reason);
}

void
cm_send_short(struct cm_verdict *v, const struct cm_conn *c, enum cm_message message, uint64_t tid)
{
	uint8_t *m = cm_out(v, &c->path);

	mad_init(m, message, tid);
	/* All messages but SIDR's begin with both ids. */
	mad_set(m, RTU_local_comm_id, c->local_id);
	mad_set(m, RTU_remote_comm_id, c->remote_id);
	if (message == CM_MRA)
		mad_set(m, MRA_service_timeout, CM_MRA_TIMEOUT);
	if (message == CM_APR)
		mad_set(m, APR_status, AR_UNSUPPORTED);
}

void
cm_send_stray_drep(struct cm_verdict *v, const struct cm_packet *p)
{
	uint8_t *m = cm_out(v, &p->path);

	mad_init(m, CM_DREP, mad_get(p->mad, MAD_tid));
	mad_set(m, DREP_local_comm_id, mad_get(p->mad, DREQ_remote_comm_id));
	mad_set(m, DREP_remote_comm_id, mad_get(p->mad, DREQ_local_comm_id));
}

void
cm_send_sidr_rep(struct cm_verdict *v, const struct cm_packet *p, const struct cm_listener *l)
{
	uint8_t *m = cm_out(v, &p->path);

	mad_init(m, CM_SIDR_REP, mad_get(p->mad, MAD_tid));
	mad_set(m, SIDR_REP_request_id, mad_get(p->mad, SIDR_REQ_request_id));
	mad_set(m, SIDR_REP_service_id, mad_get(p->mad, SIDR_REQ_service_id));
	mad_set(m, SIDR_REP_status, l != NULL ? CM_SIDR_GOOD : CM_SIDR_NO_SERVICE);
	if (l == NULL)
		return;
	mad_set(m, SIDR_REP_qpn, l->ud.qpn);
	mad_set(m, SIDR_REP_qkey, l->ud.qkey);
}

void
cm_make_sidr_rep(struct cm_conn *c, uint8_t status, const uint8_t *private, uint32_t private_len)
{
	uint8_t *m = c->sent;

	mad_init(m, CM_SIDR_REP, c->tid);
	mad_set(m, SIDR_REP_request_id, c->remote_id);
	mad_set(m, SIDR_REP_service_id, c->service_id);
	mad_set(m, SIDR_REP_status, status);
	if (status == CM_SIDR_GOOD) {
		mad_set(m, SIDR_REP_qpn, c->own.qpn);
		mad_set(m, SIDR_REP_qkey, c->own.qkey);
	}
	put_private(m, private, private_len);
}

void
cm_keep_private(struct cm_conn *c, const uint8_t *mad)
{
	const enum cm_message message = mad_message(mad);
	const enum mad_field f = mad_private(message);
	const bool asks = message == CM_REQ || message == CM_SIDR_REQ;
	const uint32_t skip = asks && c->ip ? MAD_IP_LEN : 0;

	c->private_len = (uint8_t)(mad_bytes(f) - skip);
	memcpy(c->private, mad_peek(mad, f) + skip, c->private_len);
}
