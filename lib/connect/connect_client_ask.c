/* SPDX-License-Identifier: BSD-3-Clause */
/* What applications ask for: a way to a peer, connections, answers to REQs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connect_client.h"
#include "connect_priv.h"

enum {
	NOTICES_MAX = 8, /* of an id: an application that does not fetch them asks no more */
};

/* ---- the way to a peer ----------------------------------------------------------------------- */

/* Our own address first, then the first port with a route. @return -1: none. */
static int
port_to(const struct connect *cx, const struct connect_resolve *q, struct refusal *r)
{
	const struct conf_ip *d = &q->dest;
	struct conf_ip hop;
	int port, own;

	if (q->source.family != 0) {
		port = env_port_with(cx->env, 0, q->source.family == 6, q->source.addr);
		if (port < 0)
			refuse(r, EADDRNOTAVAIL, "source: no port has this address");
		return port;
	}
	own = env_port_with(cx->env, 0, d->family == 6, d->addr);
	port = cx->env->w.conf->knobs.path_local == KNOB_path_local_wire ? -1 : own;
	for (uint32_t i = 0; port < 0 && i < cx->env->w.ports_n; i++) {
		const struct wire_port *us = cx->env->w.ports[i].addr;

		if ((int)i != own && (d->family == 6 ? us->has_ipv6 : us->has_ipv4) &&
			routes_hop(cx->net, (uint16_t)i, d, &hop))
			port = (int)i;
	}
	if (port < 0)
		refuse(r, ENETUNREACH, "dest_ip: no port has a route to it");
	return port;
}

static void
tell(struct connect_id *id, enum connect_told event, int status)
{
	struct connect_notice *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return; /* as if there was no answer */
	n->event = (uint8_t)event;
	n->status = status;
	connect_tell_id(id, n);
}

int
connect_client_resolve(struct connect *cx, struct connect_channel *ch, struct connect_client *cl,
	const struct connect_resolve *q, struct connect_id **out, struct refusal *r)
{
	struct admin_ah_for who = { .owner = cl->owner, .key = "to" };
	const int port = port_to(cx, q, r);
	struct connect_id *id;
	int rc;

	if (port < 0)
		return -r->err;
	rc = connect_id_new(cl, ch, &id, r);
	if (rc != 0)
		return rc;
	id->port = (int16_t)port;
	id->way = (struct conf_ah){
		.dest_ip = q->dest, .traffic_class = q->traffic_class, .hop_limit = 64
	};
	who.port = id->port;
	rc = admin_ah_create(cx->admin, &who, &id->way, &id->ah, r);
	if (rc != 0) {
		connect_id_destroy(cx, id);
		return rc;
	}
	*out = id;
	if (id->ah->known)
		return 0;
	id->resolve_by = cx->env->now + q->time;
	id->is_resolving = true;
	TAILQ_INSERT_TAIL(&cx->resolving, id, resolving);
	return 0;
}

/* Nobody asks by it any more: then the way is with the connection, or there was none. */
int
connect_client_class(
	struct connect *cx, struct connect_id *id, uint8_t traffic_class, struct refusal *r)
{
	const struct admin_ah_for who = {
		.owner = id->client->owner, .port = id->port, .key = "to"
	};
	struct conf_ah way = id->way;
	struct admin_ah *ah;
	int rc;

	if (id->ah == NULL)
		return 0;
	way.traffic_class = traffic_class;
	/* The neighbour is known for as long as one of them is there. */
	rc = admin_ah_create(cx->admin, &who, &way, &ah, r);
	if (rc != 0)
		return rc;
	admin_ah_destroy(cx->admin, id->ah);
	id->ah = ah;
	id->way = way;
	return 0;
}

uint32_t
connect_client_poll(struct connect *cx)
{
	struct connect_id *id, *first = NULL;
	uint32_t n = 0;

	for (uint32_t looks = 0; looks < CONNECT_TURN; looks++) {
		id = TAILQ_FIRST(&cx->resolving);
		if (id == NULL || id == first)
			break;
		if (id->ah->known || cx->env->now >= id->resolve_by) {
			connect_id_resolved(cx, id);
			if (id->ah->known)
				tell(id, CONNECT_ADDR_RESOLVED, 0);
			else
				tell(id, CONNECT_ADDR_ERROR, -EHOSTUNREACH);
			n++;
			continue;
		}
		if (first == NULL)
			first = id;
		TAILQ_REMOVE(&cx->resolving, id, resolving);
		TAILQ_INSERT_TAIL(&cx->resolving, id, resolving);
	}
	return n;
}

/* ---- connections ----------------------------------------------------------------------------- */

bool
connect_owns(const struct connect_client *cl, const struct admin_qp *rec)
{
	return rec->shared->owner == cl->owner;
}

int
connect_client_qp(const struct connect *cx, const struct connect_client *cl, uint32_t qpn,
	bool walk, struct refusal *r)
{
	const struct admin_qp *rec = admin_find(cx->admin, qpn);
	const struct owner *o = rec != NULL ? rec->shared->owner : NULL;

	/* A program may have several connections to the dataplane: libibverbs' devices are some. */
	if (o == NULL || o->gone || o->process.uid != cl->owner->process.uid ||
		(walk && !connect_owns(cl, rec)))
		return refuse(r, ENOENT, "QP %u does not exist", qpn);
	return 0;
}

/*
 * The type that a connection takes a queue pair for. If its application moves the queue pair
 * itself, only the number counts, as with the kernel: UCX names one of UD for a connection over
 * which it does nothing but exchange private data.
 */
static uint32_t
type_named(const struct admin_qp *rec, bool walks, bool connects)
{
	const uint32_t type = rec->shared->conf.qp_type;

	return type == QPT_UD && connects && !walks ? QPT_RC : type;
}

int
connect_client_ask(
	struct connect *cx, struct connect_id *id, struct connect_request *q, struct refusal *r)
{
	const struct admin_qp *rec = admin_find(cx->admin, q->qpn);
	struct connect_conn *cc;

	if (id->ah == NULL || id->is_resolving || id->cc != NULL || id->notices >= NOTICES_MAX)
		return refuse(r, EINVAL, "id %u: %s", id->handle,
			id->cc != NULL ? "it has, or had, a connection"
				       : "its peer's address is not resolved");
	q->port = id->port;
	q->ah = id->way;
	q->of = id;
	q->qp.qp_type = type_named(rec, q->walks, q->ps == CONF_PS_TCP);
	q->qp.path_mtu = conf_path_mtu(cx->env->w.conf->ports[id->port].mtu);
	return connect_ask(cx, q, &cc, r);
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int
connect_client_accept(struct connect *cx, struct connect_id *id, const struct connect_answer *a,
	struct refusal *r)
{
	const struct admin_qp *rec = admin_find(cx->admin, a->own.qpn);
	struct connect_conn *cc = id->cc;
	struct cm_terms own = a->own;
	uint32_t type;

	if (cc == NULL || cc->c == NULL || cc->c->active)
		return refuse(r, EINVAL, "id %u: nobody waits for an answer", id->handle);
	type = type_named(rec, a->walk, cc->c->peer.service == CM_RC);
	/* Nothing is done to a queue pair for an answer that is refused. */
	if (connect_may_say_yes(cc, type, a->private_len, r) != 0)
		return -r->err;
	own.psn = cc->psn;
	own.responder_resources = least(own.responder_resources, cc->c->peer.initiator_depth);
	own.initiator_depth = least(own.initiator_depth, cc->c->peer.responder_resources);
	cc->qp.qp_type = type;
	cc->qp.min_rnr_timer = a->min_rnr_timer;
	cc->qpn = own.qpn;
	if (a->walk && connect_qp_ready(cx, cc, &own, r) != 0)
		return -r->err;
	if (connect_say_yes(cx, cc, &own, a->private, a->private_len, r) != 0)
		return -r->err;
	id->asks = false;
	if (cc->c->state == CM_SIDR_REP_SENT) /* nothing more comes */
		connect_id_answered(id);
	return 0;
}

int
connect_client_establish(struct connect *cx, struct connect_id *id, struct refusal *r)
{
	struct connect_conn *cc = id->cc;

	if (cc == NULL || cc->c == NULL || !cc->held || cc->c->state != CM_ESTABLISHED)
		return refuse(r, EINVAL, "id %u: no answer of the peer is waiting", id->handle);
	cc->held = false;
	connect_send(cx, cc, &cc->rtu);
	return 0;
}

int
connect_client_reject(struct connect *cx, struct connect_id *id, uint16_t reason,
	const uint8_t *private, uint32_t private_len, struct refusal *r)
{
	if (id->cc == NULL || id->cc->c == NULL)
		return refuse(r, EINVAL, "id %u: nobody waits for an answer", id->handle);
	return connect_reject(cx, id->cc, reason, private, private_len, r);
}

int
connect_client_disconnect(
	struct connect *cx, struct connect_id *id, uint32_t qpn, struct refusal *r)
{
	struct admin_qp *rec = qpn != 0 ? admin_find(cx->admin, qpn) : NULL;

	if (rec != NULL && connect_owns(id->client, rec))
		connect_qp_error(cx, rec, r);
	if (id->cc == NULL && id->listeners + (id->ah != NULL) != 0)
		return refuse(r, EINVAL, "id %u has no connection", id->handle);
	if (id->cc != NULL && id->cc->c != NULL) {
		const uint8_t was = id->cc->c->state;

		connect_disconnect(cx, id->cc, r);
		/* What was under way ends here, and the application waits for its last event. */
		if (was == CM_REQ_SENT || was == CM_MRA_REQ_RCVD || was == CM_REP_SENT ||
			was == CM_MRA_REP_RCVD)
			tell(id, CONNECT_DISCONNECTED, 0);
	}
	return 0;
}
