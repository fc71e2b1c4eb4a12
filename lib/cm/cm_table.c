/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of connections, the chains by which they are found, listeners, and limits of sources. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "be.h"
#include "cm_priv.h"
#include "compiler.h"
#include "invariant.h"
#include "mix.h"

enum { ID_BITS = 16 };    /* of a local id: the place; the others say which connection on it */
enum { OTHERS_PART = 8 }; /* of all connections: what those of one MAC leave to others */

uint64_t
cm_random(struct cm *cm)
{
	cm->random += UINT64_C(0x9e3779b97f4a7c15);
	return mix(cm->random ^ cm->key);
}

static uint64_t
hash_gid(const struct cm *cm, const uint8_t gid[16])
{
	return mix(mix(be64_load(gid) ^ cm->key) ^ be64_load(gid + 8));
}

int
cm_init(struct cm *cm, const struct cm_limits *limits, uint64_t seed, uint64_t guid, ns_t now)
{
	const uint32_t n = limits->connections;
	bool all;

	ASSERT(n != 0 && (n & (n - 1)) == 0 && n <= BIT32(ID_BITS));
	memset(cm, 0, sizeof(*cm));
	cm->limits = *limits;
	cm->random = seed;
	cm->key = mix(seed + 1);
	cm->guid = guid;
	wheel_init(&cm->wheel, tick_of(now));
	/* Pages that are never used are never there. */
	cm->conns = calloc(n, sizeof(*cm->conns));
	cm->free = calloc(n, sizeof(*cm->free));
	cm->crowd.map = calloc(1, cm_crowd_bytes());
	cm->crowd.second = now / TIME_NS_PER_S;
	for (uint32_t i = 0; i < CM_NEIGHBOURS; i++)
		TAILQ_INIT(&cm->neighbours[i].half_open);
	all = cm->conns != NULL && cm->free != NULL && cm->crowd.map != NULL;
	for (uint32_t k = 0; k < CM_CHAINS; k++) {
		cm->heads[k] = calloc(n, sizeof(*cm->heads[k]));
		all = all && cm->heads[k] != NULL;
	}
	return all ? 0 : -ENOMEM;
}

void
cm_fini(struct cm *cm)
{
	free(cm->conns);
	free(cm->free);
	free(cm->crowd.map);
	for (uint32_t k = 0; k < CM_CHAINS; k++)
		free(cm->heads[k]);
	memset(cm, 0, sizeof(*cm));
}

struct cm_conn *
cm_new(struct cm *cm, bool active)
{
	uint32_t at;
	struct cm_conn *c;

	if (cm->n == cm->limits.connections)
		return NULL;
	at = cm->free_n != 0 ? cm->free[--cm->free_n] : cm->used_n++;
	c = &cm->conns[at];
	ASSERT(c->local_id == 0);
	memset(c, 0, sizeof(*c));
	do
		c->local_id = (uint32_t)cm_random(cm) << ID_BITS | at;
	while (c->local_id == 0);
	c->state = active ? CM_REQ_SENT : CM_REQ_RCVD;
	c->active = active;
	cm->n++;
	return c;
}

static uint32_t *
head(struct cm *cm, uint32_t chain, const struct cm_path *path, uint64_t number)
{
	uint64_t h = path != NULL ? hash_gid(cm, path->peer_gid) : cm->key;

	return &cm->heads[chain][mix(h ^ number) & (cm->limits.connections - 1)];
}

/* What a peer chooses is all in its key, so that it cannot make a chain long. */
static uint64_t
key_of(const struct cm *cm, uint32_t number, uint64_t more)
{
	return number ^ mix(cm->key ^ more);
}

static uint32_t *
head_of(struct cm *cm, uint32_t chain, const struct cm_conn *c)
{
	switch (chain) {
	case CM_BY_REMOTE:
		return head(cm, chain, &c->path, key_of(cm, c->remote_id, c->tid));
	case CM_BY_QPN:
		return head(cm, chain, &c->path, key_of(cm, c->peer.qpn, c->peer_guid));
	default:
		return head(cm, chain, NULL, c->own.qpn);
	}
}

void
cm_link(struct cm *cm, struct cm_conn *c, uint32_t chain)
{
	uint32_t *h = head_of(cm, chain, c);

	c->next[chain] = *h;
	*h = (uint32_t)(c - cm->conns) + 1;
}

static void
unlink_conn(struct cm *cm, struct cm_conn *c, uint32_t chain)
{
	const uint32_t self = (uint32_t)(c - cm->conns) + 1;

	for (uint32_t *at = head_of(cm, chain, c); *at != 0; at = &cm->conns[*at - 1].next[chain]) {
		if (*at != self)
			continue;
		*at = c->next[chain];
		return;
	}
}

void
cm_forget(struct cm *cm, struct cm_conn *c)
{
	ASSERT(c->local_id != 0 && cm->n != 0);
	wheel_cancel(&cm->wheel, &c->timer);
	cm_half_open_end(cm, c);
	if (!c->active)
		cm->neighbours[c->neighbour].all--;
	for (uint32_t k = 0; k < CM_CHAINS; k++)
		unlink_conn(cm, c, k);
	c->local_id = 0;
	c->state = CM_IDLE;
	cm->free[cm->free_n++] = (uint32_t)(c - cm->conns);
	cm->n--;
}

struct cm_conn *
cm_find(struct cm *cm, uint32_t local_id)
{
	const uint32_t at = local_id & (BIT32(ID_BITS) - 1);

	if (local_id == 0 || at >= cm->used_n || cm->conns[at].local_id != local_id)
		return NULL;
	return &cm->conns[at];
}

struct cm_conn *
cm_each(struct cm *cm, uint32_t *at)
{
	while (*at < cm->used_n) {
		struct cm_conn *c = &cm->conns[(*at)++];

		if (c->local_id != 0)
			return c;
	}
	return NULL;
}

static bool
is_peer(const struct cm_conn *c, const struct cm_path *path)
{
	return c->path.port == path->port && memcmp(c->path.peer_gid, path->peer_gid, 16) == 0;
}

struct cm_conn *
cm_by_remote(struct cm *cm, const struct cm_path *path, uint32_t id, uint64_t tid)
{
	uint32_t at = *head(cm, CM_BY_REMOTE, path, key_of(cm, id, tid));

	for (; at != 0; at = cm->conns[at - 1].next[CM_BY_REMOTE]) {
		struct cm_conn *c = &cm->conns[at - 1];

		if (!c->active && c->remote_id == id && c->tid == tid && is_peer(c, path))
			return c;
	}
	return NULL;
}

struct cm_conn *
cm_by_qpn(struct cm *cm, const struct cm_path *path, uint64_t guid, uint32_t qpn)
{
	uint32_t at = *head(cm, CM_BY_QPN, path, key_of(cm, qpn, guid));

	for (; at != 0; at = cm->conns[at - 1].next[CM_BY_QPN]) {
		struct cm_conn *c = &cm->conns[at - 1];

		/* Who gave up may ask again by the same one. */
		if (c->peer.qpn == qpn && c->peer_guid == guid && c->state != CM_REJ_RCVD &&
			is_peer(c, path))
			return c;
	}
	return NULL;
}

struct cm_conn *
cm_by_own_qpn(struct cm *cm, uint32_t qpn)
{
	uint32_t at = *head(cm, CM_BY_OWN_QPN, NULL, qpn);

	for (; at != 0; at = cm->conns[at - 1].next[CM_BY_OWN_QPN])
		if (cm->conns[at - 1].own.qpn == qpn)
			return &cm->conns[at - 1];
	return NULL;
}

bool
cm_reach_meets(const struct cm_reach *a, const struct cm_reach *b)
{
	if (a->ip != 0 && b->ip != 0 && a->ip != b->ip)
		return false;
	return !a->is_one || !b->is_one || memcmp(a->gid, b->gid, sizeof(a->gid)) == 0;
}

static struct cm_listener *
listener_at(struct cm *cm, uint16_t port, uint64_t service_id, const struct cm_reach *reach)
{
	for (uint32_t i = 0; i < CM_LISTENERS; i++) {
		struct cm_listener *l = &cm->listeners[i];

		if (l->used && l->service_id == service_id && l->port == port &&
			cm_reach_meets(&l->reach, reach))
			return l;
	}
	return NULL;
}

const struct cm_listener *
cm_listener_beside(struct cm *cm, uint16_t port, uint64_t service_id, const struct cm_reach *reach)
{
	return listener_at(cm, port, service_id, reach);
}

struct cm_listener *
cm_listener_of(struct cm *cm, const struct cm_path *path, uint64_t service_id)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	struct cm_reach at = { .is_one = true };

	memcpy(at.gid, path->own_gid, sizeof(at.gid));
	at.ip = memcmp(at.gid, mapped, sizeof(mapped)) == 0 ? 4 : 6;
	return listener_at(cm, path->port, service_id, &at);
}

struct cm_listener *
cm_listen(struct cm *cm, uint16_t port, uint64_t service_id, const struct cm_reach *reach, int *rc)
{
	static const struct cm_reach all;

	reach = reach != NULL ? reach : &all;
	*rc = listener_at(cm, port, service_id, reach) != NULL ? -EADDRINUSE : -ENOSPC;
	if (*rc == -EADDRINUSE)
		return NULL;
	for (uint32_t i = 0; i < CM_LISTENERS; i++) {
		struct cm_listener *l = &cm->listeners[i];

		if (l->used)
			continue;
		*l = (struct cm_listener){ .service_id = service_id,
			.reach = *reach,
			.port = port,
			.backlog = CM_BACKLOG,
			.mtu = 5,
			.used = true };
		*rc = 0;
		return l;
	}
	return NULL;
}

uint32_t
cm_listeners(const struct cm *cm)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < CM_LISTENERS; i++)
		n += cm->listeners[i].used;
	return n;
}

void
cm_unlisten(struct cm *cm, struct cm_listener *l)
{
	struct cm_conn *c;

	for (uint32_t i = 0; i < CM_NEIGHBOURS; i++)
		TAILQ_FOREACH (c, &cm->neighbours[i].half_open, beside)
			if (c->listener == l)
				c->listener = NULL;
	*l = (struct cm_listener){ .used = false };
}

static uint64_t
mac_key(const struct cm *cm, const struct cm_path *path)
{
	const uint8_t *m = path->peer_mac;
	const uint64_t key =
		(uint64_t)be32_load(m) << 32 | (uint64_t)be16_load(m + 4) << 16 | path->port;

	return mix(key ^ cm->key);
}

static uint32_t
source_of(const struct cm *cm, const uint8_t gid[16])
{
	return hash_gid(cm, gid) & (CM_SOURCES - 1);
}

/* By address and MAC: who forges the address of another host must not use up what is its. */
bool
cm_source_may(struct cm *cm, const struct cm_path *path, ns_t now)
{
	struct cm_rate *s = &cm->rates[mix(hash_gid(cm, path->peer_gid) ^ mac_key(cm, path)) &
				       (CM_SOURCES - 1)];

	if (s->second != now / TIME_NS_PER_S) {
		s->second = now / TIME_NS_PER_S;
		s->reqs = 0;
	}
	return s->reqs++ < cm->limits.reqs;
}

uint64_t
cm_hash_req(const struct cm *cm, const struct cm_path *path, uint32_t id, uint64_t tid)
{
	return mix(mix(hash_gid(cm, path->peer_gid) ^ id) ^ tid);
}

uint16_t
cm_neighbour_of(const struct cm *cm, const struct cm_path *path)
{
	return mac_key(cm, path) & (CM_NEIGHBOURS - 1);
}

enum cm_drop
cm_half_open(struct cm *cm, struct cm_listener *l, const struct cm_path *path)
{
	const struct cm_neighbour *from = &cm->neighbours[cm_neighbour_of(cm, path)];
	const uint32_t others = cm->limits.connections / OTHERS_PART;

	if (cm->n == cm->limits.connections || from->all >= cm->limits.connections - others)
		return CM_DROP_connections;
	/* One source leaves half of the places to others. */
	if (cm->half_open >= cm->limits.half_open ||
		cm->sources[source_of(cm, path->peer_gid)].half_open >=
			(cm->limits.half_open + 1) / 2)
		return CM_DROP_half_open;
	return l->pending >= l->backlog || cm_is_unheard(l) ? CM_DROP_backlog : CM_DROP_NONE;
}

bool
cm_is_unheard(const struct cm_listener *l)
{
	return l->unheard_max != 0 && l->unheard >= l->unheard_max;
}

void
cm_heard(struct cm_conn *c)
{
	if (c->unheard && c->listener != NULL)
		c->listener->unheard--;
	c->unheard = false;
}

void
cm_half_open_begin(struct cm *cm, struct cm_conn *c)
{
	c->half_open = true;
	c->source = (uint16_t)source_of(cm, c->path.peer_gid);
	cm->sources[c->source].half_open++;
	c->neighbour = cm_neighbour_of(cm, &c->path);
	TAILQ_INSERT_TAIL(&cm->neighbours[c->neighbour].half_open, c, beside);
	cm->neighbours[c->neighbour].n++;
	cm->neighbours[c->neighbour].all++;
	cm->half_open++;
	c->listener->pending++;
	c->listener->unheard++;
	c->unheard = true;
}

void
cm_half_open_end(struct cm *cm, struct cm_conn *c)
{
	if (!c->half_open)
		return;
	ASSERT(cm->half_open != 0 && cm->sources[c->source].half_open != 0);
	cm_heard(c);
	c->half_open = false;
	cm->sources[c->source].half_open--;
	TAILQ_REMOVE(&cm->neighbours[c->neighbour].half_open, c, beside);
	cm->neighbours[c->neighbour].n--;
	cm->half_open--;
	if (c->listener != NULL)
		c->listener->pending--;
	c->listener = NULL;
}
