/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program says: connect, accept, reject, disconnect. */
#include "cm.h"

#include <errno.h>
#include <string.h>

#include "cm_priv.h"
#include "compiler.h"

static const char *const states[CM_STATES] = { "IDLE", "SIDR_REQ_SENT", "REQ_SENT", "MRA_REQ_RCVD",
	"REQ_RCVD", "MRA_REQ_SENT", "REP_SENT", "MRA_REP_RCVD", "ESTABLISHED", "DREQ_SENT",
	"TIMEWAIT", "SIDR_REP_RCVD", "SIDR_REQ_RCVD", "SIDR_REP_SENT", "REJ_RCVD" };

static const char *const events[CM_EVENTS] = { NULL, "CONNECT_REQUEST", "ESTABLISHED", "REJECTED",
	"UNREACHABLE", "CONNECT_ERROR", "DISCONNECTED", "TIMEWAIT_EXIT" };

static const char *const drops[CM_DROPS] = {
	"",
#define DROP(name, text, rule) text,
#include "tables/cm_drops.def"
#undef DROP
};

const char *
cm_state_name(enum cm_state s)
{
	return states[s];
}

const char *
cm_event_name(enum cm_event e)
{
	return events[e];
}

const char *
cm_drop_text(enum cm_drop d)
{
	return drops[d];
}

uint8_t
cm_ack_timeout(uint8_t delay, uint8_t life)
{
	uint32_t d = delay & 31, t = life + 1u;

	if (t >= d)
		t += d >= t - 1;
	else
		t = d + (t >= d - 1);
	return (uint8_t)(t < 31 ? t : 31);
}

uint8_t
cm_response_timeout(ns_t time, uint32_t retries)
{
	uint8_t n = CM_TIMEOUT_MIN;

	while (n < CM_TIMEOUT_MAX && cm_time(n + 1) * (retries + 1) <= time)
		n++;
	return n;
}

void
cm_verdict_init(struct cm_verdict *v)
{
	/* Messages are written whole where there are any. */
	memset(v, 0, offsetof(struct cm_verdict, out));
}

uint32_t
cm_ask_room(const struct cm_ask *ask)
{
	const enum mad_field f =
		ask->terms.service == CM_UD ? SIDR_REQ_private_data : REQ_private_data;

	return (uint32_t)mad_bytes(f) - (ask->ip ? MAD_IP_LEN : 0);
}

int
cm_connect(struct cm *cm, const struct cm_ask *ask, ns_t now, struct cm_verdict *v)
{
	struct cm_conn *c;

	cm_verdict_init(v);
	if (ask->private_len > cm_ask_room(ask))
		return -EINVAL;
	c = cm_new(cm, true);
	if (c == NULL)
		return -ENOSPC;
	c->path = ask->path;
	c->service_id = ask->service_id;
	c->ip = ask->ip;
	c->source_port = ask->source_port;
	c->packet_life = ask->packet_life;
	c->own = ask->terms;
	c->own.ack_timeout = cm_ack_timeout(CM_ACK_DELAY, ask->packet_life);
	c->retries_max = CM_RETRIES;
	c->retries = CM_RETRIES;
	c->tid = cm_random(cm) >> 32;
	c->user = ask->user;
	c->give_up = now + ask->time;
	c->patient = ask->patient;
	c->interval =
		cm_time(cm_response_timeout(ask->time, CM_RETRIES)) + 2 * cm_time(ask->packet_life);
	c->time_req = now;
	c->sent_n = 1;
	if (ask->terms.service == CM_UD) {
		c->state = CM_SIDR_REQ_SENT;
		cm_make_sidr_req(c, ask);
	} else {
		cm_make_req(cm, c, ask);
	}
	cm_link(cm, c, CM_BY_OWN_QPN);
	cm_arm(cm, c, c->interval, now);
	memcpy(cm_out(v, &c->path), c->sent, MAD_LEN);
	v->conn = c;
	return 0;
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* Datagrams may go to this queue pair. */
static int
accept_sidr(struct cm *cm, struct cm_conn *c, const struct cm_terms *own, const uint8_t *private,
	uint32_t private_len, ns_t now, struct cm_verdict *v)
{
	static const struct cm_said nothing;

	if (private_len > mad_bytes(SIDR_REP_private_data))
		return -EINVAL;
	c->own = *own;
	c->time_rep = now;
	cm_make_sidr_rep(c, CM_SIDR_GOOD, private, private_len);
	cm_link(cm, c, CM_BY_OWN_QPN);
	cm_step(cm, c, CM_IN_ACCEPT, &nothing, now, v);
	return 0;
}

int
cm_accept(struct cm *cm, struct cm_conn *c, const struct cm_terms *own, const uint8_t *private,
	uint32_t private_len, ns_t now, struct cm_verdict *v)
{
	const struct cm_said said = { 0 };
	const struct cm_terms *peer = &c->peer;

	cm_verdict_init(v);
	if (cm_steps[c->state][CM_IN_ACCEPT].rule == NULL)
		return -EINVAL;
	if (c->state == CM_SIDR_REQ_RCVD)
		return accept_sidr(cm, c, own, private, private_len, now, v);
	if (private_len > mad_bytes(REP_private_data))
		return -EINVAL;
	c->own = *own;
	c->own.ack_timeout = CM_ACK_DELAY;
	c->own.responder_resources = least(own->responder_resources, peer->initiator_depth);
	c->own.initiator_depth = least(own->initiator_depth, peer->responder_resources);
	c->taken = (struct cm_taken){
		.dest_qpn = peer->qpn,
		.rq_psn = c->own.psn,
		.sq_psn = peer->psn,
		.mtu = peer->mtu,
		.timeout = peer->ack_timeout,
		.retry_cnt = peer->retry_count,
		.rnr_retry = peer->rnr_retry_count,
		.max_rd_atomic = c->own.initiator_depth,
		.max_dest_rd_atomic = c->own.responder_resources,
	};
	c->time_rep = now;
	cm_make_rep(cm, c, private, private_len);
	cm_link(cm, c, CM_BY_OWN_QPN);
	cm_step(cm, c, CM_IN_ACCEPT, &said, now, v);
	return 0;
}

int
cm_reject(struct cm *cm, struct cm_conn *c, uint16_t reason, const uint8_t *private,
	uint32_t private_len, ns_t now, struct cm_verdict *v)
{
	const struct cm_said said = {
		.reason = reason, .private = private, .private_len = private_len
	};

	cm_verdict_init(v);
	if (c->state == CM_SIDR_REQ_RCVD) {
		if (private_len > mad_bytes(SIDR_REP_private_data))
			return -EINVAL;
		cm_make_sidr_rep(c, reason == CM_REJ_NO_RESOURCES ? CM_SIDR_NO_QP : CM_SIDR_REFUSED,
			private, private_len);
	}
	if (private_len > mad_bytes(REJ_private_data))
		return -EINVAL;
	return cm_step(cm, c, CM_IN_REJECT, &said, now, v) ? 0 : -EINVAL;
}

int
cm_disconnect(struct cm *cm, struct cm_conn *c, ns_t now, struct cm_verdict *v)
{
	const bool unanswered = c->state == CM_REQ_RCVD || c->state == CM_MRA_REQ_SENT;
	const struct cm_said said = { 0 };

	if (c->state == CM_SIDR_REQ_RCVD)
		return cm_reject(cm, c, CM_REJ_CONSUMER_DEFINED, NULL, 0, now, v);
	cm_verdict_init(v);
	return cm_step(cm, c, unanswered ? CM_IN_REJECT : CM_IN_DISCONNECT, &said, now, v)
		       ? 0
		       : -EINVAL;
}

bool
cm_data(struct cm *cm, uint32_t qpn, ns_t now, struct cm_verdict *v)
{
	static const struct cm_said nothing;
	struct cm_conn *c = cm_by_own_qpn(cm, qpn);

	cm_verdict_init(v);
	if (c == NULL || cm_steps[c->state][CM_IN_DATA].rule == NULL)
		return false;
	return cm_step(cm, c, CM_IN_DATA, &nothing, now, v);
}
