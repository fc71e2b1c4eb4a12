/* SPDX-License-Identifier: BSD-3-Clause */
#include "neigh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "be.h"
#include "env.h"
#include "log.h"
#include "mix.h"
#include "neigh_table.h"
#include "net.h"

const char *
neigh_ip_text(const struct conf_ip *ip, char *buf)
{
	const int family = ip->family == 4 ? AF_INET : AF_INET6;

	if (inet_ntop(family, ip->addr, buf, INET6_ADDRSTRLEN) == NULL)
		buf[0] = '\0';
	return buf;
}

static uint32_t
bucket_of(const struct neigh_table *t, const struct neigh_key *key)
{
	uint64_t h = mix(t->secret ^ ((uint64_t)key->port << 16 | key->vlan));

	h = mix(h ^ be64_load(key->ip.addr));
	return mix(h ^ be64_load(key->ip.addr + 8)) % NEIGH_BUCKETS;
}

static struct neigh *
find(const struct neigh_table *t, const struct neigh_key *key)
{
	struct neigh *n = t->bucket[bucket_of(t, key)];

	while (n != NULL &&
		(n->port != key->port || n->vlan != key->vlan || n->ip.family != key->ip.family ||
			(n->state == NEIGH_NO_ROUTE) != key->no_route ||
			memcmp(n->ip.addr, key->ip.addr, sizeof(n->ip.addr)) != 0))
		n = n->chain;
	return n;
}

/* ---- whose an entry is ----------------------------------------------------------------------- */

/* The user of this path; NULL: the operator, or no memory. */
static struct neigh_maker *
maker_of(struct neigh_table *t, const struct neigh_link *link)
{
	struct neigh_maker *m;

	if (link == NULL || !link->of_user)
		return NULL;
	TAILQ_FOREACH (m, &t->makers, all)
		if (m->uid == link->uid)
			return m;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return NULL;
	m->uid = link->uid;
	TAILQ_INSERT_TAIL(&t->makers, m, all);
	return m;
}

static enum quota_answer
maker_ask(const struct neigh_table *t, const struct neigh_maker *m)
{
	return quota_ask(&t->quota, m != NULL ? m->has : 0, 1, m == NULL);
}

static void
maker_set(struct neigh_table *t, struct neigh *n, struct neigh_maker *m)
{
	n->maker = m;
	quota_take(&t->quota, m != NULL ? m->has : 0, 1, m == NULL);
	if (m != NULL)
		m->has++;
}

static void
maker_clear(struct neigh_table *t, struct neigh *n)
{
	struct neigh_maker *m = n->maker;

	quota_give(&t->quota, m != NULL ? m->has : 1, 1, m == NULL);
	n->maker = NULL;
	if (m != NULL)
		m->has--;
}

static void
maker_put(struct neigh_table *t, struct neigh_maker *m)
{
	if (m == NULL || m->has != 0)
		return;
	TAILQ_REMOVE(&t->makers, m, all);
	free(m);
}

/* Somebody else uses what he made: it is theirs from now on, also beyond what they may have. */
static void
pass(struct neigh_table *t, struct neigh *n, const struct neigh_link *to)
{
	struct neigh_maker *before = n->maker, *m = maker_of(t, to);

	if (before == NULL || m == before || (m == NULL && to != NULL && to->of_user))
		return;
	maker_clear(t, n);
	maker_set(t, n, m);
	maker_put(t, before);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Of the user whose path it is for. */
static struct neigh *
make(struct neigh_table *t, const struct neigh_key *key, const struct neigh_link *link)
{
	struct neigh **head = &t->bucket[bucket_of(t, key)];
	struct neigh_maker *m = maker_of(t, link);
	struct neigh *n = NULL;

	if ((m != NULL || link == NULL || !link->of_user) && maker_ask(t, m) == QUOTA_OK)
		n = calloc(1, sizeof(*n));
	if (n == NULL) {
		maker_put(t, m);
		return NULL;
	}
	maker_set(t, n, m);
	n->ip = key->ip;
	n->port = key->port;
	n->vlan = key->vlan;
	n->state = key->no_route ? NEIGH_NO_ROUTE : NEIGH_INCOMPLETE;
	n->turn = 1;
	TAILQ_INIT(&n->links);
	n->chain = *head;
	*head = n;
	TAILQ_INSERT_TAIL(&t->all, n, all);
	t->n++;
	return n;
}

static void
set_waiting(struct neigh_table *t, struct neigh *n, bool on)
{
	if (on && !n->is_waiting)
		TAILQ_INSERT_HEAD(&t->waiting, n, waits); /* before those asked for in vain */
	else if (!on && n->is_waiting)
		TAILQ_REMOVE(&t->waiting, n, waits);
	n->is_waiting = on;
}

void
neigh_set_changed(struct neigh_table *t, struct neigh *n, bool on)
{
	if (on && !n->is_changed)
		TAILQ_INSERT_TAIL(&t->changed, n, changes);
	else if (!on && n->is_changed)
		TAILQ_REMOVE(&t->changed, n, changes);
	n->is_changed = on;
}

static void
set_young(struct neigh_table *t, struct neigh *n, bool on)
{
	if (n->is_young)
		TAILQ_REMOVE(&t->young, n, ages);
	if (on)
		TAILQ_INSERT_TAIL(&t->young, n, ages);
	n->is_young = on;
}

/* Questions from now on, if there is anybody to ask and anybody who wants to know. */
static void
ask_for(struct neigh_table *t, struct neigh *n)
{
	if ((n->state != NEIGH_INCOMPLETE && n->state != NEIGH_STALE) || TAILQ_EMPTY(&n->links))
		return;
	if (n->is_waiting) { /* one more who wants to know: soon */
		if (n->next > n->last_try + TIME_NS_PER_S)
			n->next = n->last_try + TIME_NS_PER_S;
		return;
	}
	n->tries = 0;
	n->next = 0;
	set_waiting(t, n, true);
}

/* Nobody wants to know it, and nothing is known. */
static void
forget(struct neigh_table *t, struct neigh *n)
{
	const struct neigh_key key = { .ip = n->ip, .port = n->port, .vlan = n->vlan };
	struct neigh **at = &t->bucket[bucket_of(t, &key)];
	struct neigh_maker *m = n->maker;

	while (*at != n)
		at = &(*at)->chain;
	*at = n->chain;
	TAILQ_REMOVE(&t->all, n, all);
	set_waiting(t, n, false);
	set_young(t, n, false);
	neigh_set_changed(t, n, false);
	t->n--;
	t->learned -= n->is_learned;
	maker_clear(t, n);
	maker_put(t, m);
	free(n);
}

void
neigh_drop(struct net *net, struct neigh *n)
{
	struct neigh_table *t = &net->neighs;

	if (TAILQ_EMPTY(&n->links)) {
		forget(t, n);
		return;
	}
	if (neigh_has_mac(n))
		n->state = NEIGH_STALE;
	set_young(t, n, false);
	set_waiting(t, n, false);
	ask_for(t, n);
}

/* Without a path it keeps its MAC, until somebody wants to use it. */
void
neigh_doubt(struct net *net, struct neigh *n)
{
	set_young(&net->neighs, n, false);
	if (n->state != NEIGH_REACHABLE || TAILQ_EMPTY(&n->links))
		return;
	n->state = NEIGH_STALE;
	ask_for(&net->neighs, n);
}

void
neigh_fix_mac(struct net *net, struct neigh *n, const uint8_t mac[6])
{
	set_waiting(&net->neighs, n, false);
	set_young(&net->neighs, n, false);
	pass(&net->neighs, n, NULL);
	memcpy(n->mac, mac, sizeof(n->mac));
	n->state = NEIGH_STATIC;
	n->heard = net->env->now;
	n->turn++;
	neigh_set_changed(&net->neighs, n, !TAILQ_EMPTY(&n->links));
}

void
neigh_init(struct neigh_table *t)
{
	memset(t->bucket, 0, sizeof(t->bucket));
	TAILQ_INIT(&t->all);
	TAILQ_INIT(&t->waiting);
	TAILQ_INIT(&t->changed);
	TAILQ_INIT(&t->young);
	TAILQ_INIT(&t->makers);
	quota_init(&t->quota, NEIGH_MAX, NEIGH_MAX / 8, NEIGH_USER);
	t->n = 0;
	t->learned = 0;
	/* Without random bytes, as early at boot, a table is as good, if not against everybody. */
	if (getrandom(&t->secret, sizeof(t->secret), GRND_NONBLOCK) != sizeof(t->secret))
		t->secret = (uint64_t)(uintptr_t)t;
}

void
neigh_fini(struct neigh_table *t)
{
	struct neigh_maker *m;
	struct neigh *n;

	while ((n = TAILQ_FIRST(&t->all)) != NULL) {
		TAILQ_REMOVE(&t->all, n, all);
		free(n);
	}
	while ((m = TAILQ_FIRST(&t->makers)) != NULL) {
		TAILQ_REMOVE(&t->makers, m, all);
		free(m);
	}
	neigh_init(t);
}

struct neigh *
neigh_get(struct net *net, const struct neigh_key *key)
{
	struct neigh *n = find(&net->neighs, key);

	return n != NULL ? n : make(&net->neighs, key, NULL);
}

bool
neigh_is_static(const struct net *net, uint16_t port, const struct conf_ip *ip)
{
	const struct neigh_key key = { .ip = *ip, .port = port };
	const struct neigh *n = find(&net->neighs, &key);

	return n != NULL && n->state == NEIGH_STATIC;
}

/* The entry for a path: of its VLAN, or a fixed one, which says nothing of VLANs: for all. */
static struct neigh *
entry_for(struct net *net, const struct neigh_key *key, const struct neigh_link *link)
{
	const struct neigh_key untagged = { .ip = key->ip, .port = key->port };
	struct neigh *n;

	if (!key->no_route && neigh_is_static(net, key->port, &key->ip))
		return find(&net->neighs, &untagged);
	n = find(&net->neighs, key);
	return n != NULL ? n : make(&net->neighs, key, link);
}

/* Why there was none. */
static int
no_entry(const struct net *net, const struct neigh_link *link)
{
	const struct neigh_table *t = &net->neighs;
	const struct neigh_maker *m;
	uint32_t has = 0;

	TAILQ_FOREACH (m, &t->makers, all)
		has += link->of_user && m->uid == link->uid ? m->has : 0;
	switch (quota_ask(&t->quota, has, 1, !link->of_user)) {
	case QUOTA_USER:
		return -EDQUOT;
	case QUOTA_ALL:
		return -ENOSPC;
	default:
		return -ENOMEM;
	}
}

/* Links that have the newest MAC stand at the end, others at the beginning. */
static void
link_to(struct net *net, struct neigh_link *link, struct neigh *n, uint32_t turn)
{
	if (link->neigh == n) {
		TAILQ_REMOVE(&n->links, link, on);
	} else {
		neigh_leave(net, link);
		link->neigh = n;
		n->links_n++;
	}
	link->turn = turn;
	if (turn == n->turn)
		TAILQ_INSERT_TAIL(&n->links, link, on);
	else
		TAILQ_INSERT_HEAD(&n->links, link, on);
	if (n->state == NEIGH_REACHABLE && !n->is_young)
		n->state = NEIGH_STALE;
	ask_for(&net->neighs, n);
}

int
neigh_use(struct net *net, const struct neigh_key *key, struct neigh_link *link)
{
	struct neigh *n = entry_for(net, key, link);

	if (n == NULL)
		return no_entry(net, link);
	link_to(net, link, n, n->turn);
	return 0;
}

int
neigh_reroute(struct net *net, const struct neigh_key *key, struct neigh_link *link)
{
	struct neigh *n = entry_for(net, key, link);

	if (n == NULL)
		return no_entry(net, link);
	if (link->neigh == n)
		return 0;
	link_to(net, link, n, n->turn - 1);
	neigh_set_changed(&net->neighs, n, true);
	return 1;
}

void
neigh_leave(struct net *net, struct neigh_link *link)
{
	struct neigh_table *t = &net->neighs;
	struct neigh *n = link->neigh;

	if (n == NULL)
		return;
	TAILQ_REMOVE(&n->links, link, on);
	n->links_n--;
	link->neigh = NULL;
	if (!TAILQ_EMPTY(&n->links)) {
		if (n->maker != NULL && link->of_user && link->uid == n->maker->uid)
			pass(t, n, TAILQ_FIRST(&n->links));
		return;
	}
	set_waiting(t, n, false);
	neigh_set_changed(t, n, false);
	if (n->state == NEIGH_REACHABLE && (n->is_learned || t->learned < NEIGH_LEARNED)) {
		t->learned += !n->is_learned;
		n->is_learned = true;
		pass(t, n, NULL);
	} else if (n->state != NEIGH_STATIC) {
		forget(t, n);
	}
}

void
neigh_tell(struct net *net, struct neigh_link *link)
{
	struct neigh *n = link->neigh;

	if (n == NULL)
		return;
	link->turn = n->turn - 1;
	TAILQ_REMOVE(&n->links, link, on);
	TAILQ_INSERT_HEAD(&n->links, link, on); /* before those that know */
	neigh_set_changed(&net->neighs, n, true);
}

void
neigh_join(struct net *net, struct neigh_link *link, const struct neigh_link *other)
{
	struct neigh *n = other->neigh;

	if (link->neigh == n)
		return;
	if (n != NULL)
		link_to(net, link, n, other->turn);
	else
		neigh_leave(net, link);
}

bool
neigh_doubted(struct net *net, const struct neigh_key *key, const uint8_t mac[6])
{
	struct neigh *n = find(&net->neighs, key);

	if (n == NULL || !neigh_has_mac(n) || memcmp(n->mac, mac, sizeof(n->mac)) == 0 ||
		(n->state == NEIGH_STALE && n->tries > NEIGH_SILENT))
		return false;
	neigh_doubt(net, n);
	return true;
}

void
neigh_learn(struct net *net, const struct neigh_key *key, const uint8_t mac[6], bool for_us)
{
	struct neigh *n = find(&net->neighs, key);
	char text[INET6_ADDRSTRLEN];
	bool same;

	if ((mac[0] & 1) != 0)
		return;
	if (n == NULL) {
		if (!for_us || net->neighs.learned >= NEIGH_LEARNED)
			return;
		n = make(&net->neighs, key, NULL);
		if (n == NULL)
			return;
		n->is_learned = true;
		net->neighs.learned++;
	}
	if (n->state == NEIGH_STATIC)
		return;
	same = neigh_has_mac(n) && memcmp(n->mac, mac, sizeof(n->mac)) == 0;
	if (neigh_has_mac(n) && !same)
		log_rated(&net->told.mac, net->env->now, LOG_WARN,
			"neighbour %s has another MAC now", neigh_ip_text(&n->ip, text));
	n->state = NEIGH_REACHABLE;
	n->heard = net->env->now;
	n->tries = 0;
	set_waiting(&net->neighs, n, false);
	set_young(&net->neighs, n, true);
	if (same)
		return;
	memcpy(n->mac, mac, sizeof(n->mac));
	n->turn++;
	neigh_set_changed(&net->neighs, n, !TAILQ_EMPTY(&n->links));
}
