/* SPDX-License-Identifier: BSD-3-Clause */
/* Service ports of applications: who is bound to one, and who listens there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect_client.h"
#include "connect_priv.h"

enum {
	EPHEMERAL = 0xc000, /* service ports that nobody asked for by number */
	EPHEMERAL_MASK = 0x3fff,
	TRIES = 64,
};

/* ---- ports ----------------------------------------------------------------------------------- */

static struct cm_reach
reach_of(const struct connect_listen_for *q)
{
	struct cm_reach reach = { .ip = q->ip_version };

	if (q->ip.family != 0) {
		reach.ip = q->ip.family;
		reach.is_one = true;
		connect_gid(&q->ip, reach.gid);
	}
	return reach;
}

/* The one port that it is for, or -1 for all. @return 0 or a refusal. */
static int
port_of(const struct connect *cx, const struct connect_listen_for *q, int *port, struct refusal *r)
{
	*port = -1;
	if (q->ip.family == 0)
		return 0;
	*port = env_port_with(cx->env, 0, q->ip.family == 6, q->ip.addr);
	return *port >= 0 ? 0 : refuse(r, EADDRNOTAVAIL, "ip: no port has this address");
}

/* As Linux says it: EADDRINUSE is for two that name the same address. */
static int
in_the_way(const struct cm_reach *a, const struct cm_reach *b, const struct connect_listen_for *q,
	struct refusal *r)
{
	return refuse(r, a->is_one && b->is_one ? EADDRINUSE : EADDRNOTAVAIL,
		"somebody is bound to service port %u, or listens there", q->service_port);
}

/* May this one be bound there, too? @param self whose own does not count, or NULL. */
static int
may_bind(const struct connect *cx, const struct connect_listen_for *q,
	const struct connect_id *self, struct refusal *r)
{
	const uint64_t service_id = connect_service_id(q->ps, q->service_port);
	const struct cm_reach reach = reach_of(q);
	const struct connect_id *id;

	TAILQ_FOREACH (id, &cx->bound, beside) {
		if (id != self && id->bound.service_id == service_id &&
			!(q->reuse && id->bound.reuse) && cm_reach_meets(&id->bound.reach, &reach))
			return in_the_way(&id->bound.reach, &reach, q, r);
	}
	return 0;
}

/* The same of those who listen, bound or not. @param port the one that it is for, or -1. */
static int
may_listen(struct connect *cx, const struct connect_listen_for *q, int port, struct refusal *r)
{
	const uint64_t service_id = connect_service_id(q->ps, q->service_port);
	const struct cm_reach reach = reach_of(q);
	const struct cm_listener *l = NULL;

	for (uint32_t i = 0; i < cx->env->w.ports_n && l == NULL; i++) {
		if (port < 0 || port == (int)i)
			l = cm_listener_beside(&cx->cm, (uint16_t)i, service_id, &reach);
	}
	return l == NULL ? 0 : in_the_way(&l->reach, &reach, q, r);
}

/* A bit for each port of EPHEMERAL on. */
struct taken {
	uint64_t bits[(EPHEMERAL_MASK + 1) / 64];
};

static void
take(struct taken *t, uint16_t port)
{
	if (port >= EPHEMERAL)
		t->bits[(port & EPHEMERAL_MASK) / 64] |= UINT64_C(1) << port % 64;
}

/* Once for all ports: applications may be bound to thousands. */
static void
taken_by_all(const struct connect *cx, struct taken *t)
{
	const struct connect_id *id;

	memset(t, 0, sizeof(*t));
	TAILQ_FOREACH (id, &cx->bound, beside)
		take(t, (uint16_t)id->bound.service_id);
	for (uint32_t i = 0; i < CM_LISTENERS; i++)
		if (cx->listeners[i].l != NULL)
			take(t, cx->listeners[i].conf.service_port);
}

/* One after the other: whose port is free again is not asked in another's place at once. */
static int
free_port(struct connect *cx, uint16_t *port, struct refusal *r)
{
	struct taken t;

	taken_by_all(cx, &t);
	if (cx->next_port == 0)
		cx->next_port = (uint16_t)(EPHEMERAL | (cm_random(&cx->cm) & EPHEMERAL_MASK));
	for (uint32_t i = 0; i <= EPHEMERAL_MASK; i++) {
		*port = cx->next_port;
		cx->next_port = EPHEMERAL | ((*port + 1) & EPHEMERAL_MASK);
		if ((t.bits[(*port & EPHEMERAL_MASK) / 64] >> *port % 64 & 1) == 0)
			return 0;
	}
	return refuse(r, EADDRNOTAVAIL, "no service port is free");
}

/* ---- bound ----------------------------------------------------------------------------------- */

static void
bind_to(struct connect *cx, struct connect_id *id, const struct connect_listen_for *q)
{
	if (!id->bound.is)
		TAILQ_INSERT_TAIL(&cx->bound, id, beside);
	id->bound = (struct connect_bound){ .is = true,
		.reuse = q->reuse,
		.service_id = connect_service_id(q->ps, q->service_port),
		.reach = reach_of(q) };
}

void
connect_id_unbound(struct connect *cx, struct connect_id *id)
{
	if (id->bound.is)
		TAILQ_REMOVE(&cx->bound, id, beside);
	id->bound.is = false;
}

int
connect_client_bind(struct connect *cx, struct connect_channel *ch, struct connect_client *cl,
	struct connect_listen_for *q, struct connect_id **out, struct refusal *r)
{
	int port, rc = port_of(cx, q, &port, r);

	if (rc == 0 && q->service_port == 0)
		rc = free_port(cx, &q->service_port, r);
	if (rc == 0)
		rc = may_bind(cx, q, NULL, r);
	if (rc == 0)
		rc = may_listen(cx, q, port, r);
	if (rc == 0)
		rc = connect_id_new(cl, ch, out, r);
	if (rc == 0)
		bind_to(cx, *out, q);
	return rc;
}

int
connect_client_reuse(struct connect *cx UNUSED, struct connect_id *id, struct refusal *r)
{
	if (!id->bound.is || id->listeners != 0)
		return refuse(r, EINVAL, "id %u is not bound, or listens", id->handle);
	id->bound.reuse = true;
	return 0;
}

/* ---- listeners ------------------------------------------------------------------------------- */

static int
listen_on(struct connect *cx, struct connect_id *id, const struct connect_listen_for *q,
	uint16_t port, struct refusal *r)
{
	struct conf_cm_listen *conf = calloc(1, sizeof(*conf));
	const struct cm_reach reach = reach_of(q);
	int rc;

	if (conf == NULL)
		return refuse(r, ENOMEM, "out of memory");
	owner_name(id->client->owner, "listener", conf->name);
	snprintf(conf->port, sizeof(conf->port), "%s", cx->env->w.conf->ports[port].name);
	conf->ps = q->ps;
	conf->service_port = q->service_port;
	conf->accept = CONF_ACCEPT_ASK;
	conf->backlog = q->backlog;
	conf->qp.qp_type = q->qp_type;
	rc = owner_charge(id->client->owner, OWNER_CM_LISTENERS, 1, r);
	if (rc == 0) {
		rc = connect_listen_for(cx, conf, &reach, id, r);
		if (rc != 0)
			owner_uncharge(id->client->owner, OWNER_CM_LISTENERS, 1);
	}
	if (rc == 0)
		id->listeners++;
	free(conf);
	return rc;
}

static int
listen_all(struct connect *cx, struct connect_id *id, const struct connect_listen_for *q,
	struct refusal *r)
{
	int port, rc = port_of(cx, q, &port, r);

	for (uint32_t i = 0; i < cx->env->w.ports_n && rc == 0; i++)
		if (port < 0 || port == (int)i)
			rc = listen_on(cx, id, q, (uint16_t)i, r);
	return rc;
}

/* It is alone at its port from now on. */
static int
listen_bound(
	struct connect *cx, struct connect_id *id, struct connect_listen_for *q, struct refusal *r)
{
	int rc;

	q->reuse = false;
	if (id->listeners != 0 || !id->bound.is)
		return refuse(r, EINVAL, "id %u is not bound, or listens", id->handle);
	rc = may_bind(cx, q, id, r);
	if (rc == 0)
		rc = listen_all(cx, id, q, r);
	if (rc != 0)
		connect_id_deaf(cx, id);
	else
		bind_to(cx, id, q);
	return rc;
}

/* One that was not bound. @return as connect_client_listen(). */
static int
listen_new(
	struct connect *cx, struct connect_id *id, struct connect_listen_for *q, struct refusal *r)
{
	const bool any = q->service_port == 0;

	for (uint32_t i = 0;; i++) {
		int rc = any ? free_port(cx, &q->service_port, r) : 0;

		if (rc == 0)
			rc = may_bind(cx, q, NULL, r);
		if (rc == 0)
			rc = listen_all(cx, id, q, r);
		if (rc == 0)
			break;
		connect_id_deaf(cx, id);
		if (rc != -EADDRINUSE || !any || i == TRIES)
			return rc;
	}
	bind_to(cx, id, q);
	return 0;
}

int
connect_client_listen(struct connect *cx, struct connect_channel *ch, struct connect_client *cl,
	struct connect_listen_for *q, struct connect_id **out, struct refusal *r)
{
	struct connect_id *id;
	int rc;

	if (*out != NULL)
		return listen_bound(cx, *out, q, r);
	rc = connect_id_new(cl, ch, &id, r);
	if (rc != 0)
		return rc;
	rc = listen_new(cx, id, q, r);
	if (rc != 0)
		connect_id_destroy(cx, id);
	else
		*out = id;
	return rc;
}
