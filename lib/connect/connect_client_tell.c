/* SPDX-License-Identifier: BSD-3-Clause */
/* What applications hear of their connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connect_client.h"
#include "connect_priv.h"

static void
set_number(json_t *o, const char *key, uint32_t value)
{
	json_object_set_new(o, key, json_integer(value));
}

static json_t *
gid_json(const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN];

	connect_gid_text(gid, text, sizeof(text));
	return json_string(text);
}

static bool
is_datagrams(const struct cm_conn *c)
{
	return c->own.service == CM_UD || c->peer.service == CM_UD;
}

/* By which its queue pair goes to RTR and RTS: as qp_query has them. */
static json_t *
attributes(struct connect *cx, const struct connect_conn *cc)
{
	const struct cm_conn *c = cc->c;
	const struct cm_terms *p = &c->peer;
	/* A server's are the peer's, until it has said less. */
	const struct cm_taken asked = { .dest_qpn = p->qpn,
		.rq_psn = cc->psn,
		.sq_psn = p->psn,
		.mtu = p->mtu,
		.timeout = p->ack_timeout,
		.retry_cnt = p->retry_count,
		.rnr_retry = p->rnr_retry_count,
		.max_rd_atomic = p->responder_resources,
		.max_dest_rd_atomic = p->initiator_depth };
	const struct cm_taken *t = c->active ? &c->taken : &asked;
	json_t *ah = json_pack("{s:o, s:i, s:i}", "dest_ip", gid_json(c->path.peer_gid),
		"hop_limit", 64, "traffic_class", cc->qp.ah_attr.traffic_class);
	json_t *o = json_object();

	if (c->path.tci != 0) {
		set_number(ah, "vlan", c->path.tci & 0xfff);
		set_number(ah, "vlan_priority", c->path.tci >> 13);
	}
	json_object_set_new(o, "port", json_string(cx->env->w.conf->ports[cc->port].name));
	json_object_set_new(o, "ah_attr", ah);
	if (is_datagrams(c)) {
		set_number(o, "qkey", p->qkey);
		return o;
	}
	set_number(o, "dest_qp_num", t->dest_qpn);
	set_number(o, "rq_psn", t->rq_psn);
	set_number(o, "sq_psn", t->sq_psn);
	set_number(o, "path_mtu", 128u << t->mtu);
	set_number(o, "timeout", t->timeout);
	set_number(o, "retry_cnt", t->retry_cnt);
	set_number(o, "rnr_retry", t->rnr_retry);
	set_number(o, "max_rd_atomic",
		t->max_rd_atomic < CM_DEPTH_MAX ? t->max_rd_atomic : CM_DEPTH_MAX);
	set_number(o, "max_dest_rd_atomic",
		t->max_dest_rd_atomic < CM_DEPTH_MAX ? t->max_dest_rd_atomic : CM_DEPTH_MAX);
	return o;
}

/* The peer, what it said; both sides' depths as the application is to give them back. */
static json_t *
story(struct connect *cx, const struct connect_conn *cc, bool with_qp)
{
	const struct cm_conn *c = cc->c;
	json_t *o = json_object();

	json_object_set_new(o, "peer_ip", gid_json(c->path.peer_gid));
	json_object_set_new(o, "own_ip", gid_json(c->path.own_gid));
	set_number(o, "peer_port", c->active ? (uint16_t)c->service_id : c->source_port);
	set_number(o, "own_port", c->active ? c->source_port : (uint16_t)c->service_id);
	set_number(o, "port_num", cc->port + 1u);
	json_object_set_new(o, "private_data", connect_hex(c->private, c->private_len));
	set_number(o, "qp_num", c->peer.qpn);
	set_number(o, "responder_resources", c->peer.initiator_depth);
	set_number(o, "initiator_depth", c->peer.responder_resources);
	set_number(o, "retry_count", c->peer.retry_count);
	set_number(o, "rnr_retry_count", c->peer.rnr_retry_count);
	set_number(o, "srq", c->peer.srq);
	set_number(o, "flow_control", !c->peer.no_credits);
	set_number(o, "service", is_datagrams(c) ? CM_UD : c->peer.service);
	set_number(o, "qkey", c->peer.qkey);
	if (with_qp)
		json_object_set_new(o, "qp", attributes(cx, cc));
	return o;
}

bool
connect_client_asked(struct connect *cx, struct connect_id *listener, struct connect_conn *cc)
{
	struct connect_client *cl = listener->client;
	struct connect_notice *n = calloc(1, sizeof(*n));
	struct connect_id *id;
	struct refusal r;

	if (n == NULL || connect_id_new(cl, listener->channel, &id, &r) != 0) {
		free(n);
		return false;
	}
	if (owner_charge(cl->owner, OWNER_CM_PENDING, 1, &r) != 0) {
		free(n);
		connect_id_destroy(cx, id);
		return false;
	}
	id->pending = true;
	id->asks = true;
	id->port = (int16_t)cc->port;
	id->cc = cc;
	cc->of = id;
	cc->foreign = true;
	cc->psn = (uint32_t)cm_random(&cx->cm) & PSN_MASK;
	n->event = CONNECT_CONNECT_REQUEST;
	n->listener = listener->handle;
	n->more = story(cx, cc, true);
	connect_tell_id(id, n);
	return true;
}

void
connect_client_event(struct connect *cx, struct connect_conn *cc, const struct cm_verdict *v)
{
	static const uint8_t told[CM_EVENTS] = {
		[CM_EVENT_ESTABLISHED] = CONNECT_ESTABLISHED,
		[CM_EVENT_REJECTED] = CONNECT_REJECTED,
		[CM_EVENT_UNREACHABLE] = CONNECT_UNREACHABLE,
		[CM_EVENT_CONNECT_ERROR] = CONNECT_CONNECT_ERROR,
		[CM_EVENT_DISCONNECTED] = CONNECT_DISCONNECTED,
		[CM_EVENT_TIMEWAIT_EXIT] = CONNECT_TIMEWAIT_EXIT,
	};
	const bool yes = v->event == CM_EVENT_ESTABLISHED && cc->c->active;
	const bool answer = yes && !is_datagrams(cc->c) && !cc->walks;
	bool said; /* by the peer; else it is an errno */
	struct connect_notice *n;

	if (cc->of == NULL || cc->of->channel == NULL)
		return;
	/* Whose request is over unheard must not fill what the application may have. */
	if (cc->of->request != NULL && (v->over || v->event == CM_EVENT_REJECTED)) {
		connect_id_withdraw(cc->of);
		return;
	}
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return;
	n->event = answer ? CONNECT_CONNECT_RESPONSE : told[v->event];
	said = v->event == CM_EVENT_REJECTED ||
	       ((v->event == CM_EVENT_UNREACHABLE || v->event == CM_EVENT_DISCONNECTED) &&
		       cc->c->reason != 0);
	n->status = said ? v->status : -v->status;
	n->more = story(cx, cc, yes);
	connect_tell_id(cc->of, n);
}
