/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs ask for: listen, connect, accept, reject, disconnect. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "connect_client.h"
#include "connect_priv.h"

enum { PSN_BITS = 0xffffff, LIFE_MAX = 30 };

uint64_t
connect_service_id(uint32_t ps, uint16_t port)
{
	return (uint64_t)ps << 16 | port;
}

static uint8_t
service_of(uint32_t qp_type)
{
	switch (qp_type) {
	case QPT_UC:
		return CM_UC;
	case QPT_UD:
		return CM_UD;
	case QPT_XRC_SEND:
	case QPT_XRC_RECV:
		return CM_XRC;
	default:
		return CM_RC;
	}
}

struct connect_listener *
connect_listener_named(struct connect *cx, const char *name)
{
	for (uint32_t i = 0; i < CM_LISTENERS; i++)
		if (cx->listeners[i].l != NULL && strcmp(cx->listeners[i].conf.name, name) == 0)
			return &cx->listeners[i];
	return NULL;
}

/* UD: one QP for all, whose number and key peers ask for (CM-41). */
static int
make_ud(struct connect *cx, struct connect_listener *l, struct refusal *r)
{
	struct conf_qp q = l->conf.qp;
	struct admin_qp *rec;

	snprintf(q.port, sizeof(q.port), "%s", l->conf.port);
	q.qp_state = QPS_RTS;
	q.sq_psn = (uint32_t)cm_random(&cx->cm) & PSN_BITS;
	connect_qp_qkey(&q);
	q.given |= QP_ATTR_PORT | QP_ATTR_STATE | QP_ATTR_SQ_PSN;
	if (admin_create(cx->admin, &q, &rec, r) != 0)
		return -r->err;
	l->qpn = rec->qpn;
	l->l->ud = (struct cm_terms){ .qpn = rec->qpn, .qkey = q.qkey };
	return 0;
}

/* Nothing could come of a listener whose QPs cannot be made. */
static int
refer(struct connect *cx, const struct conf_cm_listen *conf, struct refusal *r)
{
	struct admin_qp nobody = { 0 };

	return admin_references(cx->admin, &conf->qp, &nobody, r);
}

int
connect_listen(struct connect *cx, const struct conf_cm_listen *conf, struct refusal *r)
{
	const int rc = refer(cx, conf, r);

	if (rc != 0)
		return rc;
	return connect_listen_for(cx, conf, NULL, NULL, r);
}

int
connect_listen_for(struct connect *cx, const struct conf_cm_listen *conf,
	const struct cm_reach *reach, struct connect_id *of, struct refusal *r)
{
	const int16_t port = env_port_named(cx->env, conf->port);
	struct connect_listener *l = NULL;
	int rc;

	if (port < 0)
		return refuse(r, ENOENT, "port \"%s\" does not exist", conf->port);
	if (connect_listener_named(cx, conf->name) != NULL)
		return refuse(r, EEXIST, "listener \"%s\" exists", conf->name);
	for (uint32_t i = 0; i < CM_LISTENERS && l == NULL; i++)
		if (cx->listeners[i].l == NULL)
			l = &cx->listeners[i];
	if (l == NULL)
		return refuse(r, ENOSPC, "there are %u listeners already", CM_LISTENERS);
	l->conf = *conf;
	l->qpn = 0;
	l->of = of;
	l->l = cm_listen(&cx->cm, (uint16_t)port, connect_service_id(conf->ps, conf->service_port),
		reach, &rc);
	if (l->l == NULL)
		return refuse(r, -rc, "service port %u of port \"%s\" has a listener",
			conf->service_port, conf->port);
	l->l->user = l;
	l->l->backlog = of != NULL ? connect_client_backlog(of->client->owner) : conf->backlog;
	l->l->unheard_max = of != NULL ? conf->backlog : 0;
	l->l->service = service_of(conf->qp.qp_type);
	l->l->asks = l->l->service == CM_UD && conf->accept == CONF_ACCEPT_ASK;
	l->l->mtu = connect_mtu_code(conf_path_mtu(cx->env->w.conf->ports[port].mtu));
	/* An application says with each answer which of its own it is. */
	rc = l->l->service == CM_UD && of == NULL ? make_ud(cx, l, r) : 0;
	if (rc != 0) {
		cm_unlisten(&cx->cm, l->l);
		l->l = NULL;
	}
	return rc;
}

bool
connect_has_qp(struct connect *cx, uint32_t qpn)
{
	for (uint32_t i = 0; i < CM_LISTENERS; i++)
		if (cx->listeners[i].l != NULL && cx->listeners[i].qpn == qpn)
			return true;
	return cm_by_own_qpn(&cx->cm, qpn) != NULL;
}

uint32_t
connect_save(struct connect *cx, struct conf_cm_listen *out)
{
	struct refusal gone;
	uint32_t n = 0;

	for (uint32_t i = 0; i < CM_LISTENERS; i++)
		if (cx->listeners[i].l != NULL && cx->listeners[i].of == NULL &&
			refer(cx, &cx->listeners[i].conf, &gone) == 0)
			out[n++] = cx->listeners[i].conf;
	return n;
}

uint32_t
connect_listener_qpn(struct connect *cx, const char *name)
{
	const struct connect_listener *l = connect_listener_named(cx, name);

	return l != NULL ? l->qpn : 0;
}

int
connect_unlisten(struct connect *cx, const char *name, struct refusal *r)
{
	struct connect_listener *l = connect_listener_named(cx, name);
	struct admin_qp *rec;

	if (l == NULL)
		return refuse(r, ENOENT, "listener \"%s\" does not exist", name);
	rec = l->qpn != 0 ? admin_find(cx->admin, l->qpn) : NULL;
	if (rec != NULL && admin_destroy(cx->admin, rec, r) != 0)
		return -r->err;
	cm_unlisten(&cx->cm, l->l);
	l->l = NULL;
	if (l->of != NULL) { /* an application's */
		owner_uncharge(l->of->client->owner, OWNER_CM_LISTENERS, 1);
		l->of->listeners--;
	}
	l->of = NULL;
	return 0;
}

/* Our end's address, of the peer's family. */
static int
own_gid(const struct connect *cx, const struct connect_request *q, uint8_t gid[16],
	struct refusal *r)
{
	const struct wire_port *us = cx->env->w.ports[q->port].addr;
	struct conf_ip ip = { .family = q->ah.dest_ip.family };

	if (ip.family == 4 ? !us->has_ipv4 : !us->has_ipv6)
		return refuse(r, EINVAL, "port \"%s\" has no IPv%u address",
			cx->env->w.conf->ports[q->port].name, ip.family);
	memcpy(ip.addr, ip.family == 4 ? us->ipv4 : us->ipv6, ip.family == 4 ? 4 : 16);
	connect_gid(&ip, gid);
	return 0;
}

static uint64_t
pkey_drops(const struct connect *cx, uint16_t port)
{
	uint64_t n = 0;

	for (uint32_t w = 0; w < cx->env->w.workers_n; w++)
		if (cx->env->w.workers[w].port_stats[port] != NULL)
			n += cx->env->w.workers[w].port_stats[port]->c[STAT_rx_pkey_violation];
	return n;
}

static int
begin(struct connect *cx, const struct connect_request *q, struct connect_conn *cc,
	struct refusal *r)
{
	const struct admin_ah_for who = { .port = q->port, .key = "dest_ip" };
	const uint8_t life = q->qp.timeout > 1 ? (uint8_t)(q->qp.timeout - 1) : 0;
	struct cm_ask ask = { .service_id = connect_service_id(q->ps, q->service_port),
		.source_port = q->source_port != 0
				       ? q->source_port
				       : (uint16_t)(0x8000 | (cm_random(&cx->cm) & 0x7fff)),
		.packet_life = life < LIFE_MAX ? life : LIFE_MAX,
		.ip = true,
		.traffic_class = q->ah.traffic_class,
		.hop_limit = q->ah.hop_limit,
		.private = q->private,
		.private_len = q->private_len,
		.time = q->time,
		.patient = q->of != NULL,
		.user = cc };
	struct cm_verdict v;
	int rc = own_gid(cx, q, ask.path.own_gid, r);

	if (rc == 0 && q->of != NULL) {
		cc->ah = q->of->ah;
		q->of->ah = NULL;
		cc->qp.ah_attr.traffic_class = q->ah.traffic_class;
		cc->qpn = q->qpn;
		cc->foreign = true;
		cc->walks = q->walks;
		cc->of = q->of;
		q->of->cc = cc;
	} else if (rc == 0) {
		rc = admin_ah_create(cx->admin, &who, &q->ah, &cc->ah, r);
		if (rc == 0)
			rc = connect_qp_active(cx, cc, r);
	}
	if (rc != 0)
		return rc;
	ask.path.port = cc->port;
	if ((q->ah.given & CONF_AH_VLAN) != 0)
		ask.path.tci = (uint16_t)(q->ah.vlan_priority << 13 | q->ah.vlan);
	connect_gid(&q->ah.dest_ip, ask.path.peer_gid);
	ask.terms = (struct cm_terms){ .qpn = cc->qpn,
		.psn = (uint32_t)cm_random(&cx->cm) & PSN_BITS,
		.responder_resources = q->responder_resources,
		.initiator_depth = q->initiator_depth,
		.retry_count = q->retry_count,
		.rnr_retry_count = q->rnr_retry_count,
		.mtu = connect_mtu_code(q->qp.path_mtu),
		.service = service_of(q->qp.qp_type),
		.srq = q->srq || (q->qp.given & CONF_QP_SRQ) != 0,
		.no_credits = q->no_credits };
	rc = cm_connect(&cx->cm, &ask, cx->env->now, &v);
	if (rc == -EINVAL)
		return refuse(r, EINVAL, "private_data: %u bytes, but a REQ has room for %u",
			q->private_len, cm_ask_room(&ask));
	if (rc != 0)
		return refuse(
			r, ENOSPC, "there are %u connections already", cx->cm.limits.connections);
	cc->c = v.conn;
	connect_carry_out(cx, &v);
	return 0;
}

int
connect_ask(struct connect *cx, const struct connect_request *q, struct connect_conn **out,
	struct refusal *r)
{
	struct connect_conn *cc;
	int rc;

	if (q->qp.qp_type == QPT_XRC_RECV)
		return refuse(r, EINVAL, "qp: an XRC_RECV QP does not ask, it is asked");
	cc = connect_new(cx);
	if (cc == NULL)
		return refuse(r, ENOMEM, "out of memory");
	cc->qp = q->qp;
	cc->port = (uint16_t)q->port;
	cc->pkey_drops = pkey_drops(cx, cc->port);
	rc = begin(cx, q, cc, r);
	if (rc != 0) {
		connect_drop(cx, cc);
		return rc;
	}
	*out = cc;
	return 0;
}

static int
over(const struct connect_conn *cc, struct refusal *r)
{
	return refuse(r, EINVAL, "connection %u is %s", cc->id,
		cc->c == NULL ? "over" : cm_state_name((enum cm_state)cc->c->state));
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static bool
waits_for_us(const struct connect_conn *cc)
{
	return cc->c != NULL && (cc->c->state == CM_REQ_RCVD || cc->c->state == CM_MRA_REQ_SENT ||
					cc->c->state == CM_SIDR_REQ_RCVD);
}

/* Private data has room in the answer? @param f of that message. */
static int
fits(enum mad_field f, const char *message, uint32_t len, struct refusal *r)
{
	if (len <= mad_bytes(f))
		return 0;
	return refuse(r, EINVAL, "private_data: %u bytes, but a %s has room for %zu", len, message,
		mad_bytes(f));
}

static bool
is_sidr(const struct connect_conn *cc)
{
	return cc->c != NULL && cc->c->state == CM_SIDR_REQ_RCVD;
}

int
connect_may_say_yes(
	const struct connect_conn *cc, uint32_t qp_type, uint32_t private_len, struct refusal *r)
{
	if (!waits_for_us(cc))
		return over(cc, r);
	if (service_of(qp_type) != cc->c->peer.service)
		return refuse(r, EINVAL, "qp: the peer's is of another type");
	return is_sidr(cc) ? fits(SIDR_REP_private_data, "SIDR_REP", private_len, r)
			   : fits(REP_private_data, "REP", private_len, r);
}

int
connect_say_yes(struct connect *cx, struct connect_conn *cc, struct cm_terms *own,
	const uint8_t *private, uint32_t private_len, struct refusal *r)
{
	struct cm_verdict v;

	if (connect_may_say_yes(cc, cc->qp.qp_type, private_len, r) != 0)
		return -r->err;
	if (!cc->foreign && !cc->shared && connect_qp_passive(cx, cc, own, r) != 0)
		return -r->err;
	own->qpn = cc->qpn;
	if (cm_accept(&cx->cm, cc->c, own, private, private_len, cx->env->now, &v) != 0)
		return over(cc, r);
	connect_carry_out(cx, &v);
	return 0;
}

int
connect_accept(struct connect *cx, struct connect_conn *cc, const struct conf_qp *qp,
	const uint8_t *private, uint32_t private_len, struct refusal *r)
{
	struct cm_terms own = { .psn = (uint32_t)cm_random(&cx->cm) & PSN_BITS };

	if (!waits_for_us(cc))
		return over(cc, r);
	if (cc->foreign)
		return refuse(r, EPERM, "an application is asked, and answers with its own QP");
	if (is_sidr(cc)) {
		if (qp != NULL || cc->c->listener == NULL)
			return refuse(r, EINVAL, "%s",
				qp != NULL ? "qp: datagrams go to the listener's: leave it out"
					   : "the listener is gone, and its QP");
		own.qkey = cc->c->listener->ud.qkey;
		return connect_say_yes(cx, cc, &own, private, private_len, r);
	}
	if (qp != NULL)
		cc->qp = *qp;
	own.responder_resources = least(cc->qp.max_dest_rd_atomic, cc->c->peer.initiator_depth);
	own.initiator_depth = least(cc->qp.max_rd_atomic, cc->c->peer.responder_resources);
	own.rnr_retry_count = cc->qp.rnr_retry;
	own.srq = (cc->qp.given & CONF_QP_SRQ) != 0;
	return connect_say_yes(cx, cc, &own, private, private_len, r);
}

int
connect_reject(struct connect *cx, struct connect_conn *cc, uint16_t reason, const uint8_t *private,
	uint32_t private_len, struct refusal *r)
{
	struct cm_verdict v;

	if (is_sidr(cc) ? fits(SIDR_REP_private_data, "SIDR_REP", private_len, r)
			: fits(REJ_private_data, "REJ", private_len, r))
		return -r->err;
	/* To the client a connection stands with the REP; until its RTU goes it can be refused. */
	if (cc->c == NULL || (cc->c->state == CM_ESTABLISHED && !cc->held) ||
		cm_reject(&cx->cm, cc->c, reason, private, private_len, cx->env->now, &v) != 0)
		return over(cc, r);
	cc->c->reason = reason;
	connect_carry_out(cx, &v);
	return 0;
}

int
connect_disconnect(struct connect *cx, struct connect_conn *cc, struct refusal *r)
{
	struct cm_verdict v;

	if (cc->c == NULL || cm_disconnect(&cx->cm, cc->c, cx->env->now, &v) != 0)
		return over(cc, r);
	connect_carry_out(cx, &v);
	return 0;
}
