/* SPDX-License-Identifier: BSD-3-Clause */
/* What an application has of connections: channels, ids, and the end of all of it. */
#include "connect_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "connect_priv.h"
#include "invariant.h"

enum {
	ORPHANS_PART = 8, /* of all connections: those whose applications are gone */
	BACKLOG_LEAST = 64,
	BACKLOG_MAX = 1024, /* as Linux's */
};

struct connect_client *
connect_client_of(struct connect *cx, struct owner *o)
{
	struct connect_client *cl;

	TAILQ_FOREACH (cl, &cx->clients, all)
		if (cl->owner == o)
			return cl;
	cl = calloc(1, sizeof(*cl));
	if (cl == NULL)
		return NULL;
	cl->owner = o;
	TAILQ_INIT(&cl->channels);
	TAILQ_INIT(&cl->ids);
	TAILQ_INSERT_TAIL(&cx->clients, cl, all);
	return cl;
}

/* ---- channels -------------------------------------------------------------------------------- */

int
connect_channel_create(struct connect_client *cl, struct connect_channel **out, struct refusal *r)
{
	struct connect_channel *ch;

	if (owner_charge(cl->owner, OWNER_CHANNELS, 1, r) != 0)
		return -r->err;
	ch = calloc(1, sizeof(*ch));
	if (ch != NULL)
		ch->signal = broker_signal_new(cl->owner->home, EFD_SEMAPHORE);
	if (ch == NULL || ch->signal == NULL) {
		free(ch);
		owner_uncharge(cl->owner, OWNER_CHANNELS, 1);
		return refuse(r, ENOMEM, "no memory, or no descriptor");
	}
	TAILQ_INIT(&ch->notices);
	ch->handle = ++cl->last;
	TAILQ_INSERT_TAIL(&cl->channels, ch, all);
	*out = ch;
	return 0;
}

static void
free_channel(struct connect_client *cl, struct connect_channel *ch)
{
	TAILQ_REMOVE(&cl->channels, ch, all);
	owner_uncharge(cl->owner, OWNER_CHANNELS, 1);
	broker_signal_free(ch->signal);
	free(ch);
}

struct connect_channel *
connect_channel_find(struct connect_client *cl, uint32_t handle, struct refusal *r)
{
	struct connect_channel *ch;

	TAILQ_FOREACH (ch, &cl->channels, all)
		if (ch->handle == handle)
			return ch;
	refuse(r, ENOENT, "channel %u does not exist", handle);
	return NULL;
}

int
connect_channel_destroy(struct connect_client *cl, uint32_t handle, struct refusal *r)
{
	struct connect_channel *ch = connect_channel_find(cl, handle, r);

	if (ch == NULL)
		return -ENOENT;
	if (ch->ids != 0)
		return refuse(r, EBUSY, "channel %u is in use by %u ids", handle, ch->ids);
	free_channel(cl, ch);
	return 0;
}

/* ---- ids ------------------------------------------------------------------------------------- */

int
connect_id_new(struct connect_client *cl, struct connect_channel *ch, struct connect_id **out,
	struct refusal *r)
{
	struct connect_id *id;

	if (owner_charge(cl->owner, OWNER_CM_IDS, 1, r) != 0)
		return -r->err;
	id = calloc(1, sizeof(*id));
	if (id == NULL) {
		owner_uncharge(cl->owner, OWNER_CM_IDS, 1);
		return refuse(r, ENOMEM, "out of memory");
	}
	id->client = cl;
	id->channel = ch;
	id->handle = ++cl->last;
	ch->ids++;
	TAILQ_INSERT_TAIL(&cl->ids, id, all);
	*out = id;
	return 0;
}

struct connect_id *
connect_id_find(struct connect_client *cl, uint32_t handle, struct refusal *r)
{
	struct connect_id *id;

	TAILQ_FOREACH (id, &cl->ids, all)
		if (id->handle == handle && id->channel != NULL)
			return id;
	refuse(r, ENOENT, "id %u does not exist", handle);
	return NULL;
}

uint32_t
connect_client_backlog(const struct owner *o)
{
	const uint64_t own = o->most[OWNER_CM_PENDING] > BACKLOG_LEAST ? o->most[OWNER_CM_PENDING]
								       : BACKLOG_LEAST;

	return own < BACKLOG_MAX ? (uint32_t)own : BACKLOG_MAX;
}

void
connect_id_answered(struct connect_id *id)
{
	if (id->pending)
		owner_uncharge(id->client->owner, OWNER_CM_PENDING, 1);
	id->pending = false;
}

void
connect_id_resolved(struct connect *cx, struct connect_id *id)
{
	if (id->is_resolving)
		TAILQ_REMOVE(&cx->resolving, id, resolving);
	id->is_resolving = false;
}

static void
free_notice(struct connect_notice *n)
{
	n->id->notices--;
	if (n->id->request == n)
		n->id->request = NULL;
	json_decref(n->more);
	free(n);
}

/* The notices of ids that have left this channel go to the one where the id is, if any. */
static void
sort_notices(struct connect_channel *ch)
{
	struct connect_notice *n, *next;
	uint32_t gone = 0;

	for (n = TAILQ_FIRST(&ch->notices); n != NULL; n = next) {
		struct connect_channel *to = n->id->channel;

		next = TAILQ_NEXT(n, next);
		if (to == ch)
			continue;
		TAILQ_REMOVE(&ch->notices, n, next);
		gone++;
		if (to == NULL) {
			free_notice(n);
			continue;
		}
		TAILQ_INSERT_TAIL(&to->notices, n, next);
		broker_signal_add(to->signal);
	}
	broker_signal_drop(ch->signal, gone);
}

STAILQ_HEAD(ending, connect_id);

/* Nothing comes on its channel any more; what waits there is sorted out by the caller. */
static void
leave_channel(struct connect_id *id, struct ending *ending)
{
	id->channel->ids--;
	id->channel = NULL;
	STAILQ_INSERT_TAIL(ending, id, ending);
}

static void
free_id(struct connect_id *id)
{
	ASSERT(id->notices == 0);
	TAILQ_REMOVE(&id->client->ids, id, all);
	owner_uncharge(id->client->owner, OWNER_CM_IDS, 1);
	free(id);
}

void
connect_id_deaf(struct connect *cx, struct connect_id *id)
{
	struct refusal r;

	for (uint32_t i = 0; i < CM_LISTENERS && id->listeners != 0; i++) {
		struct connect_listener *l = &cx->listeners[i];

		if (l->l == NULL || l->of != id)
			continue;
		connect_unlisten(cx, l->conf.name, &r);
	}
}

/* Of what an id was, all that others know of. */
static void
undo(struct connect *cx, struct connect_id *id)
{
	struct refusal r;

	connect_id_deaf(cx, id);
	connect_id_unbound(cx, id);
	connect_id_resolved(cx, id);
	if (id->ah != NULL)
		admin_ah_destroy(cx->admin, id->ah);
	id->ah = NULL;
	/* That may be its end: connect_client_over() frees what no channel has. */
	if (id->cc != NULL && id->cc->c != NULL) {
		connect_disconnect(cx, id->cc, &r);
		return;
	}
	if (id->cc != NULL)
		id->cc->of = NULL;
	free_id(id);
}

/*
 * Who asked a listener, and of whom the application has not heard, ends with it: all of them at
 * once, for their notices stand among those of all ids of the channel.
 */
void
connect_id_destroy(struct connect *cx, struct connect_id *id)
{
	struct ending ending = STAILQ_HEAD_INITIALIZER(ending);
	struct connect_channel *ch = id->channel;
	const struct connect_notice *n;
	bool waits = id->notices != 0;

	if (id->listeners != 0) {
		TAILQ_FOREACH (n, &ch->notices, next) {
			if (n->listener != id->handle || n->id->channel == NULL)
				continue;
			leave_channel(n->id, &ending);
			waits = true;
		}
	}
	leave_channel(id, &ending);
	if (waits)
		sort_notices(ch);
	while ((id = STAILQ_FIRST(&ending)) != NULL) {
		STAILQ_REMOVE_HEAD(&ending, ending);
		undo(cx, id);
	}
}

static void
move_id(struct connect_id *id, struct connect_channel *to)
{
	id->channel->ids--;
	to->ids++;
	id->channel = to;
}

/* Who has asked a listener goes with it, as long as the application has not heard of it. */
void
connect_id_migrate(struct connect_id *id, struct connect_channel *to)
{
	struct connect_channel *from = id->channel;
	struct connect_notice *n;

	if (from == to)
		return;
	move_id(id, to);
	TAILQ_FOREACH (n, &from->notices, next)
		if (n->listener == id->handle)
			move_id(n->id, to);
	sort_notices(from);
}

void
connect_client_over(struct connect *cx, struct connect_conn *cc)
{
	struct connect_id *id = cc->of;

	cc->held = false;
	if (cc->orphan)
		cx->orphans--;
	cc->orphan = false;
	if (id == NULL)
		return;
	connect_id_answered(id);
	if (id->channel != NULL)
		return;
	cc->of = NULL;
	free_id(id);
}

void
connect_client_forget(struct connect_conn *cc)
{
	if (cc->of != NULL)
		cc->of->cc = NULL;
	cc->of = NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Peers are told, and answers may come back for a while; but only so many are kept for that. */
static void
orphan(struct connect *cx, struct connect_conn *cc)
{
	connect_client_forget(cc);
	cc->orphan = true;
	if (++cx->orphans > cx->cm.limits.connections / ORPHANS_PART)
		connect_end(cx, cc);
}

static void
free_client(struct connect *cx, struct connect_client *cl)
{
	struct connect_channel *ch;
	struct connect_id *id, *before;
	struct connect_notice *n;

	/* Nobody hears of anything: nothing is sorted out for each id. */
	TAILQ_FOREACH (ch, &cl->channels, all) {
		while ((n = TAILQ_FIRST(&ch->notices)) != NULL) {
			TAILQ_REMOVE(&ch->notices, n, next);
			free_notice(n);
		}
	}
	/* Youngest first: a listener takes along who has asked it since. */
	for (id = TAILQ_LAST(&cl->ids, connect_ids); id != NULL; id = before) {
		before = TAILQ_PREV(id, connect_ids, all);
		if (id->channel != NULL)
			connect_id_destroy(cx, id);
	}
	while ((id = TAILQ_FIRST(&cl->ids)) != NULL) {
		connect_id_answered(id);
		orphan(cx, id->cc);
		free_id(id);
	}
	while ((ch = TAILQ_FIRST(&cl->channels)) != NULL)
		free_channel(cl, ch);
	TAILQ_REMOVE(&cx->clients, cl, all);
	free(cl);
}

void
connect_client_gone(struct connect *cx, const struct owner *o)
{
	struct connect_client *cl;

	TAILQ_FOREACH (cl, &cx->clients, all) {
		if (cl->owner == o) {
			free_client(cx, cl);
			return;
		}
	}
}

void
connect_client_all_gone(struct connect *cx)
{
	struct connect_client *cl;

	while ((cl = TAILQ_FIRST(&cx->clients)) != NULL)
		free_client(cx, cl);
}

/* ---- events ---------------------------------------------------------------------------------- */

int
connect_tell_id(struct connect_id *id, struct connect_notice *n)
{
	const struct connect_channel *ch = id->channel;

	if (ch == NULL || (ch->accepted_only && id->asks && n->event != CONNECT_CONNECT_REQUEST)) {
		json_decref(n->more);
		free(n);
		return ch == NULL ? -ENOENT : 0;
	}
	n->id = id;
	id->notices++;
	if (n->event == CONNECT_CONNECT_REQUEST)
		id->request = n;
	TAILQ_INSERT_TAIL(&id->channel->notices, n, next);
	broker_signal_add(id->channel->signal);
	return 0;
}

void
connect_id_withdraw(struct connect_id *id)
{
	struct connect_channel *ch = id->channel;

	TAILQ_REMOVE(&ch->notices, id->request, next);
	free_notice(id->request);
	broker_signal_drop(ch->signal, 1);
	ch->ids--;
	id->channel = NULL; /* connect_client_over() frees it */
	/* Who answers what it has not read may have heard of more. */
	if (id->notices != 0)
		sort_notices(ch);
}

/* It may be over by now: a program can answer what it has not read. */
static void
heard(const struct connect_conn *cc)
{
	if (cc != NULL && cc->c != NULL)
		cm_heard(cc->c);
}

json_t *
connect_notice_take(struct connect_channel *ch)
{
	struct connect_notice *n = TAILQ_FIRST(&ch->notices);
	json_t *o;

	if (n == NULL)
		return NULL;
	o = n->more != NULL ? json_incref(n->more) : json_object();
	json_object_set_new(o, "event", json_integer(n->event));
	json_object_set_new(o, "handle", json_integer(n->id->handle));
	json_object_set_new(o, "listener", json_integer(n->listener));
	json_object_set_new(o, "status", json_integer(n->status));
	TAILQ_REMOVE(&ch->notices, n, next);
	if (n->event == CONNECT_CONNECT_REQUEST)
		heard(n->id->cc);
	free_notice(n);
	return o;
}
