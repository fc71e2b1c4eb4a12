/* SPDX-License-Identifier: BSD-3-Clause */
/* A SIDR_REQ: where may datagrams go (CM-41)? */
#include "cm_priv.h"

/** The program is asked: what it says is repeated for a while, as the SIDR_REQ is. */
static void
begin(struct cm *cm, const struct cm_packet *p, struct cm_listener *l, ns_t now,
	struct cm_verdict *v)
{
	const uint8_t *m = p->mad;
	struct cm_conn *c = cm_new(cm, false);

	c->state = CM_SIDR_REQ_RCVD;
	c->path = p->path;
	c->listener = l;
	c->service_id = l->service_id;
	c->ip = cm_is_ip(l->service_id);
	if (c->ip)
		c->source_port =
			(uint16_t)mad_get(mad_peek(m, SIDR_REQ_private_data), IP_source_port);
	c->tid = mad_get(m, MAD_tid);
	c->remote_id = (uint32_t)mad_get(m, SIDR_REQ_request_id);
	c->peer.service = CM_UD;
	c->time_req = now;
	cm_keep_private(c, m);
	cm_link(cm, c, CM_BY_REMOTE);
	cm_half_open_begin(cm, c);
	cm_arm(cm, c, cm_time(CM_MRA_TIMEOUT), now);
	v->conn = c;
	v->todo = CM_DO_ASK;
	v->event = CM_EVENT_CONNECT_REQUEST;
}

void
cm_sidr_request(struct cm *cm, const struct cm_packet *p, ns_t now, struct cm_verdict *v)
{
	static const struct cm_said nothing;
	const uint8_t *m = p->mad;
	const uint32_t id = (uint32_t)mad_get(m, SIDR_REQ_request_id);
	struct cm_conn *c = cm_by_remote(cm, &p->path, id, mad_get(m, MAD_tid));
	struct cm_listener *l = cm_listener_of(cm, &p->path, mad_get(m, SIDR_REQ_service_id));

	if (c != NULL && c->peer.service == CM_UD) {
		cm_step(cm, c, CM_IN_REQ, &nothing, now, v);
		return;
	}
	if (!cm_source_may(cm, &p->path, now)) {
		v->drop = CM_DROP_rate;
		return;
	}
	if (l != NULL && l->service != CM_UD)
		l = NULL;
	if (l != NULL && l->asks) {
		if (cm_may_begin(cm, l, p, id, now, v))
			begin(cm, p, l, now, v);
		return;
	}
	if (l == NULL) {
		v->drop = CM_DROP_refused;
		v->status = CM_REJ_INVALID_SERVICE_ID;
	}
	cm_send_sidr_rep(v, p, l);
}
