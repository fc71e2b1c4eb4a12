/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is to say of connections: lists, explanations, counters. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf_json_value.h"
#include "connect_priv.h"
#include "wall.h"

static const struct cm_conn *
conn_of(const struct connect_conn *cc)
{
	return cc->c != NULL ? cc->c : &cc->last;
}

static json_t *
terms_json(const struct cm_terms *t)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:I}", "qp_num",
		(int)t->qpn, "starting_psn", (int)t->psn, "responder_resources",
		t->responder_resources, "initiator_depth", t->initiator_depth, "retry_count",
		t->retry_count, "rnr_retry_count", t->rnr_retry_count, "ack_timeout",
		t->ack_timeout, "path_mtu", t->mtu == 0 ? 0 : 128 << t->mtu, "srq", t->srq, "qkey",
		(json_int_t)t->qkey);
}

static json_t *
taken_json(const struct cm_taken *t)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "dest_qp_num",
		(int)t->dest_qpn, "rq_psn", (int)t->rq_psn, "sq_psn", (int)t->sq_psn, "path_mtu",
		t->mtu == 0 ? 0 : 128 << t->mtu, "timeout", t->timeout, "retry_cnt", t->retry_cnt,
		"rnr_retry", t->rnr_retry, "max_rd_atomic", t->max_rd_atomic, "max_dest_rd_atomic",
		t->max_dest_rd_atomic);
}

json_t *
connect_json(struct connect *cx, const struct connect_conn *cc)
{
	const struct cm_conn *c = conn_of(cc);
	char ip[INET6_ADDRSTRLEN];
	json_t *o = json_object();

	connect_gid_text(c->path.peer_gid, ip, sizeof(ip));
	json_object_set_new(o, "id", json_integer(cc->id));
	json_object_set_new(o, "state", json_string(cm_state_name((enum cm_state)c->state)));
	json_object_set_new(
		o, "listener", cc->listener[0] != '\0' ? json_string(cc->listener) : json_null());
	json_object_set_new(o, "port", json_string(cx->env->w.conf->ports[cc->port].name));
	json_object_set_new(o, "peer_ip", json_string(ip));
	json_object_set_new(o, "service_id", conf_json_hex(c->service_id));
	json_object_set_new(o, "qp_num", json_integer(cc->qpn));
	json_object_set_new(o, "remote_qp_num", json_integer(c->peer.qpn));
	json_object_set_new(o, "local_comm_id", json_integer(c->local_id));
	json_object_set_new(o, "remote_comm_id", json_integer(c->remote_id));
	json_object_set_new(o, "proposed",
		json_pack("{s:o, s:o}", "local", terms_json(&c->own), "remote",
			terms_json(&c->peer)));
	json_object_set_new(o, "taken", taken_json(&c->taken));
	json_object_set_new(o, "req_time", wall_json(cx->env, c->time_req));
	json_object_set_new(o, "rep_time", wall_json(cx->env, c->time_rep));
	json_object_set_new(o, "rtu_time", wall_json(cx->env, c->time_rtu));
	json_object_set_new(o, "event",
		c->last != CM_EVENT_NONE ? json_string(cm_event_name((enum cm_event)c->last))
					 : json_null());
	json_object_set_new(o, "reason", json_integer(c->reason));
	return o;
}

json_t *
connect_list_json(struct connect *cx)
{
	json_t *list = json_array();
	struct connect_conn *cc;

	TAILQ_FOREACH (cc, &cx->conns, all)
		list = conf_json_append(list, connect_json(cx, cc));
	TAILQ_FOREACH (cc, &cx->ended, all)
		list = conf_json_append(list, connect_json(cx, cc));
	return list;
}

static void
say(json_t *list, json_t *sentence)
{
	json_array_append_new(list, sentence);
}

static const char *
sidr_text(uint16_t status)
{
	switch (status) {
	case CM_SIDR_NO_SERVICE:
		return "no listener";
	case CM_SIDR_REFUSED:
		return "refused by the program at the other end";
	case CM_SIDR_NO_QP:
		return "the peer has no queue pair for it";
	default:
		return "refused";
	}
}

/* Nobody has answered a REQ, or a SIDR_REQ has no good answer: which of the usual reasons is it? */
static void
say_unreachable(struct connect *cx, const struct connect_conn *cc, json_t *why)
{
	const struct cm_conn *c = conn_of(cc);
	uint64_t pkeys = 0;

	for (uint32_t w = 0; w < cx->env->w.workers_n; w++)
		if (cx->env->w.workers[w].port_stats[cc->port] != NULL)
			pkeys += cx->env->w.workers[w]
					 .port_stats[cc->port]
					 ->c[STAT_rx_pkey_violation];
	if (c->reason != 0)
		say(why, json_sprintf("%s: the SIDR_REP says status %u", sidr_text(c->reason),
				 c->reason));
	else if (cc->note[0] == '\0')
		say(why, json_sprintf("timeout: the REQ was sent %u times, and nothing came back. "
				      "Is the address a host that serves RDMA connections?",
				 c->sent_n));
	if (pkeys > cc->pkey_drops)
		say(why, json_sprintf("wrong P_Key: %llu packets of another partition than 0xffff "
				      "were dropped at the port since then",
				 (unsigned long long)(pkeys - cc->pkey_drops)));
}

static void
say_rejected(const struct connect_conn *cc, json_t *why)
{
	const struct cm_conn *c = conn_of(cc);
	const uint16_t port = (uint16_t)c->service_id;

	switch (c->reason) {
	case CM_REJ_INVALID_SERVICE_ID:
		say(why, json_sprintf("no listener: nobody at the peer listens on service port %u",
				 port));
		break;
	case CM_REJ_CONSUMER_DEFINED:
		say(why, json_string("refused by the program at the other end"));
		break;
	case CM_REJ_STALE_CONN:
		say(why, json_string("stale: the peer still has a connection of this queue pair's "
				     "number; it ends in a moment"));
		break;
	case CM_REJ_TIMEOUT:
		say(why, json_string("timeout: the peer waited in vain for an answer of ours"));
		break;
	default:
		break;
	}
	say(why, json_sprintf("the REJ has reason %u: %s", c->reason, mad_reason_text(c->reason)));
}

/* A connection that is not over: what does it wait for? */
static void
say_state(struct connect *cx, const struct connect_conn *cc, json_t *why)
{
	const struct cm_conn *c = conn_of(cc);

	switch ((enum cm_state)c->state) {
	case CM_SIDR_REQ_SENT:
		say(why, json_sprintf("the SIDR_REQ was sent %u times and is not answered yet",
				 c->sent_n));
		break;
	case CM_SIDR_REP_RCVD:
		say(why, json_sprintf("datagrams go to QP %u with Q_Key 0x%x", c->peer.qpn,
				 c->peer.qkey));
		break;
	case CM_REQ_SENT:
		say(why, json_sprintf(
				 "the REQ was sent %u times and is not answered yet", c->sent_n));
		break;
	case CM_MRA_REQ_RCVD:
		say(why, json_string("the peer has the REQ and asked for time (MRA)"));
		break;
	case CM_SIDR_REP_SENT:
		say(why, json_sprintf("the peer was told where datagrams go: QP %u", c->own.qpn));
		break;
	case CM_SIDR_REQ_RCVD:
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
		say(why, json_string("the peer asks; cm_accept or cm_reject answers it"));
		break;
	case CM_REJ_RCVD:
		say(why, json_sprintf("the peer gave up: REJ, reason %u", c->reason));
		break;
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		say(why,
			json_sprintf("the REP was sent %u times; the RTU, or data, is not here yet",
				c->sent_n));
		break;
	case CM_ESTABLISHED:
		say(why, json_string("the connection is established"));
		break;
	case CM_DREQ_SENT:
		say(why, json_string("this side ends it; the peer's DREP is not here yet"));
		break;
	case CM_TIMEWAIT:
		say(why, json_string("it is over; its queue pair's number waits for late packets"));
		break;
	case CM_IDLE:
	case CM_STATES:
		break;
	}
	if (cc->ah != NULL && !cc->ah->known) {
		char text[256];

		if (neigh_text(cx->net, &cc->ah->link, text, sizeof(text)))
			say(why, json_sprintf("unreachable: %s", text));
	}
}

json_t *
connect_explain(struct connect *cx, const struct connect_conn *cc)
{
	const struct cm_conn *c = conn_of(cc);
	json_t *o = connect_json(cx, cc), *why = json_array();

	if (cc->c != NULL)
		say_state(cx, cc, why);
	switch ((enum cm_event)c->last) {
	case CM_EVENT_REJECTED:
		say_rejected(cc, why);
		break;
	case CM_EVENT_UNREACHABLE:
		say_unreachable(cx, cc, why);
		break;
	case CM_EVENT_CONNECT_ERROR:
		say(why, c->time_rep == 0
				 ? json_string("timeout: the program here did not answer the REQ")
				 : json_sprintf("timeout: the REP was sent %u times, and neither "
						"an RTU nor data came",
					   c->sent_n));
		break;
	case CM_EVENT_DISCONNECTED:
		if (c->reason != 0)
			say_rejected(cc, why);
		else
			say(why, json_string("disconnected"));
		break;
	default:
		if (cc->c == NULL)
			say(why, json_string(c->reason != 0 ? "rejected by this side"
							    : "ended by this side"));
		break;
	}
	if (cc->note[0] != '\0')
		say(why, json_sprintf(c->last == CM_EVENT_UNREACHABLE ? "unreachable: %s" : "%s",
				 cc->note));
	json_object_set_new(o, "why", why);
	return o;
}

static void
count(json_t *to, const char *prefix, const char *name, uint64_t n)
{
	char key[64];
	size_t at;

	at = (size_t)snprintf(key, sizeof(key), "cm_%s_%s", prefix, name);
	for (size_t i = 0; i < at && i < sizeof(key); i++)
		key[i] = (char)tolower((unsigned char)key[i]);
	json_object_set_new(to, key, conf_json_u64(n));
}

void
connect_counters(const struct connect *cx, json_t *to)
{
	static const char *const drops[CM_DROPS] = {
		NULL,
#define DROP(name, text, rule) #name,
#include "tables/cm_drops.def"
#undef DROP
	};

	for (uint32_t m = CM_MESSAGE_FIRST; m <= CM_MESSAGE_LAST; m++)
		count(to, "rx", mad_message_name(m), cx->rx[m]);
	for (uint32_t m = CM_MESSAGE_FIRST; m <= CM_MESSAGE_LAST; m++)
		count(to, "tx", mad_message_name(m), cx->tx[m]);
	count(to, "rx", "duplicates", cx->duplicates);
	count(to, "rx", "lost", cx->inbox.lost);
	count(to, "tx", "lost", cx->tx_lost);
	for (uint32_t d = 1; d < CM_DROPS; d++)
		count(to, "drops", drops[d], cx->drops[d]);
	json_object_set_new(to, "cm_listeners", json_integer(cm_listeners(&cx->cm)));
	json_object_set_new(to, "cm_connections", json_integer(cx->cm.n));
	json_object_set_new(to, "cm_half_open", json_integer(cx->cm.half_open));
	json_object_set_new(to, "cm_events_lost", conf_json_u64(cx->events.lost));
}
