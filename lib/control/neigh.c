/* SPDX-License-Identifier: BSD-3-Clause */
#include "neigh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "log.h"
#include "neigh_table.h"

/* Work of one turn: the control lcore has other things to do too. */
#define REQUESTS_PER_TURN 32
#define UPDATES_PER_TURN  64

static const char *
ip_text(const struct conf_ip *ip, char *buf)
{
	const int family = ip->family == 4 ? AF_INET : AF_INET6;

	if (inet_ntop(family, ip->addr, buf, INET6_ADDRSTRLEN) == NULL)
		buf[0] = '\0';
	return buf;
}

static uint32_t
bucket_of(const struct neigh_key *key)
{
	uint32_t h = 0x811c9dc5 ^ key->port ^ (uint32_t)key->vlan << 8;

	for (unsigned int i = 0; i < sizeof(key->ip.addr); i++)
		h = (h ^ key->ip.addr[i]) * 0x01000193;
	return (h ^ h >> 16) % NEIGH_BUCKETS;
}

static struct neigh *
find(const struct neigh_table *t, const struct neigh_key *key)
{
	struct neigh *n = t->bucket[bucket_of(key)];

	while (n != NULL &&
		(n->port != key->port || n->vlan != key->vlan || n->ip.family != key->ip.family ||
			(n->state == NEIGH_NO_ROUTE) != key->no_route ||
			memcmp(n->ip.addr, key->ip.addr, sizeof(n->ip.addr)) != 0))
		n = n->chain;
	return n;
}

static struct neigh *
make(struct neigh_table *t, const struct neigh_key *key)
{
	struct neigh **head = &t->bucket[bucket_of(key)];
	struct neigh *n = t->n < NEIGH_MAX ? calloc(1, sizeof(*n)) : NULL;

	if (n == NULL)
		return NULL;
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
		TAILQ_INSERT_TAIL(&t->waiting, n, waits);
	else if (!on && n->is_waiting)
		TAILQ_REMOVE(&t->waiting, n, waits);
	n->is_waiting = on;
}

static void
set_changed(struct neigh_table *t, struct neigh *n, bool on)
{
	if (on && !n->is_changed)
		TAILQ_INSERT_TAIL(&t->changed, n, changes);
	else if (!on && n->is_changed)
		TAILQ_REMOVE(&t->changed, n, changes);
	n->is_changed = on;
}

/* Questions from now on, if there is anybody to ask and anybody who wants to know. */
static void
ask_for(struct neigh_table *t, struct neigh *n)
{
	if ((n->state != NEIGH_INCOMPLETE && n->state != NEIGH_STALE) || TAILQ_EMPTY(&n->links) ||
		n->is_waiting)
		return;
	n->tries = 0;
	n->next = 0;
	set_waiting(t, n, true);
}

/* Nobody wants to know it, and nothing is known. */
static void
forget(struct neigh_table *t, struct neigh *n)
{
	const struct neigh_key key = { .ip = n->ip, .port = n->port, .vlan = n->vlan };
	struct neigh **at = &t->bucket[bucket_of(&key)];

	while (*at != n)
		at = &(*at)->chain;
	*at = n->chain;
	TAILQ_REMOVE(&t->all, n, all);
	set_waiting(t, n, false);
	set_changed(t, n, false);
	t->n--;
	t->learned -= n->is_learned;
	free(n);
}

void
neigh_drop(struct control *c, struct neigh *n)
{
	struct neigh_table *t = &c->neighs;

	if (TAILQ_EMPTY(&n->links)) {
		forget(t, n);
		return;
	}
	if (neigh_has_mac(n))
		n->state = NEIGH_STALE;
	set_waiting(t, n, false);
	ask_for(t, n);
}

void
neigh_fix_mac(struct control *c, struct neigh *n, const uint8_t mac[6])
{
	set_waiting(&c->neighs, n, false);
	memcpy(n->mac, mac, sizeof(n->mac));
	n->state = NEIGH_STATIC;
	n->heard = c->env.now;
	n->turn++;
	set_changed(&c->neighs, n, !TAILQ_EMPTY(&n->links));
}

void
neigh_init(struct neigh_table *t)
{
	memset(t->bucket, 0, sizeof(t->bucket));
	TAILQ_INIT(&t->all);
	TAILQ_INIT(&t->waiting);
	TAILQ_INIT(&t->changed);
	t->n = 0;
	t->learned = 0;
}

void
neigh_fini(struct neigh_table *t)
{
	struct neigh *n;

	while ((n = TAILQ_FIRST(&t->all)) != NULL) {
		TAILQ_REMOVE(&t->all, n, all);
		free(n);
	}
	neigh_init(t);
}

struct neigh *
neigh_get(struct control *c, const struct neigh_key *key)
{
	struct neigh *n = find(&c->neighs, key);

	return n != NULL ? n : make(&c->neighs, key);
}

bool
neigh_is_static(const struct control *c, uint16_t port, const struct conf_ip *ip)
{
	const struct neigh_key key = { .ip = *ip, .port = port };
	const struct neigh *n = find(&c->neighs, &key);

	return n != NULL && n->state == NEIGH_STATIC;
}

/* The entry for a path: of its VLAN, or a fixed one, which says nothing of VLANs: for all. */
static struct neigh *
entry_for(struct control *c, const struct neigh_key *key)
{
	const struct neigh_key untagged = { .ip = key->ip, .port = key->port };

	if (!key->no_route && neigh_is_static(c, key->port, &key->ip))
		return find(&c->neighs, &untagged);
	return neigh_get(c, key);
}

static int
no_entry(const struct control *c)
{
	return c->neighs.n >= NEIGH_MAX ? -ENOSPC : -ENOMEM;
}

/* Links that have the newest MAC stand at the end, others at the beginning. */
static void
link_to(struct control *c, struct neigh_link *link, struct neigh *n, uint32_t turn)
{
	if (link->neigh == n) {
		TAILQ_REMOVE(&n->links, link, on);
	} else {
		neigh_leave(c, link);
		link->neigh = n;
		n->links_n++;
	}
	link->turn = turn;
	if (turn == n->turn)
		TAILQ_INSERT_TAIL(&n->links, link, on);
	else
		TAILQ_INSERT_HEAD(&n->links, link, on);
	ask_for(&c->neighs, n);
}

int
neigh_use(struct control *c, const struct neigh_key *key, struct neigh_link *link)
{
	struct neigh *n = entry_for(c, key);

	if (n == NULL)
		return no_entry(c);
	link_to(c, link, n, n->turn);
	return 0;
}

int
neigh_reroute(struct control *c, const struct neigh_key *key, struct neigh_link *link)
{
	struct neigh *n = entry_for(c, key);

	if (n == NULL)
		return no_entry(c);
	if (link->neigh == n)
		return 0;
	link_to(c, link, n, n->turn - 1);
	set_changed(&c->neighs, n, true);
	return 1;
}

void
neigh_leave(struct control *c, struct neigh_link *link)
{
	struct neigh *n = link->neigh;

	if (n == NULL)
		return;
	TAILQ_REMOVE(&n->links, link, on);
	n->links_n--;
	link->neigh = NULL;
	if (!TAILQ_EMPTY(&n->links))
		return;
	set_waiting(&c->neighs, n, false);
	set_changed(&c->neighs, n, false);
	if (n->state != NEIGH_REACHABLE && n->state != NEIGH_STATIC)
		forget(&c->neighs, n);
}

void
neigh_join(struct control *c, struct neigh_link *link, const struct neigh_link *other)
{
	struct neigh *n = other->neigh;

	if (link->neigh == n)
		return;
	if (n != NULL)
		link_to(c, link, n, other->turn);
	else
		neigh_leave(c, link);
}

void
neigh_learn(struct control *c, const struct neigh_key *key, const uint8_t mac[6], bool for_us)
{
	struct neigh *n = find(&c->neighs, key);
	char text[INET6_ADDRSTRLEN];
	bool same;

	if ((mac[0] & 1) != 0)
		return;
	if (n == NULL) {
		if (!for_us || c->neighs.learned >= NEIGH_LEARNED)
			return;
		n = make(&c->neighs, key);
		if (n == NULL)
			return;
		n->is_learned = true;
		c->neighs.learned++;
	}
	if (n->state == NEIGH_STATIC)
		return;
	same = neigh_has_mac(n) && memcmp(n->mac, mac, sizeof(n->mac)) == 0;
	if (neigh_has_mac(n) && !same && (n->told == 0 || c->env.now >= n->told + TIME_NS_PER_S)) {
		n->told = c->env.now; /* whoever claims it again and again does not fill the log */
		log_warn("neighbour %s has another MAC now", ip_text(&n->ip, text));
	}
	n->state = NEIGH_REACHABLE;
	n->heard = c->env.now;
	n->tries = 0;
	set_waiting(&c->neighs, n, false);
	if (same)
		return;
	memcpy(n->mac, mac, sizeof(n->mac));
	n->turn++;
	set_changed(&c->neighs, n, !TAILQ_EMPTY(&n->links));
}

static ns_t
request_gap(uint32_t tries)
{
	if (tries == 1)
		return 100 * TIME_NS_PER_MS;
	return tries == 2 ? 200 * TIME_NS_PER_MS : TIME_NS_PER_S;
}

static void
send_request(struct control *c, struct neigh *n)
{
	char text[INET6_ADDRSTRLEN];

	if (n->ip.family == 4)
		arp_request(c, n);
	else
		icmp6_solicit(c, n);
	n->first_try = n->tries == 0 ? c->env.now : n->first_try;
	n->last_try = c->env.now;
	n->asked++;
	n->next = c->env.now + request_gap(++n->tries);
	if (n->tries == NEIGH_FAILED)
		log_warn("port %s: neighbour %s does not answer; still asking",
			c->env.w.conf->ports[n->port].name, ip_text(&n->ip, text));
}

static uint32_t
send_requests(struct control *c)
{
	uint32_t sent = 0;
	struct neigh *n, *next;

	for (n = TAILQ_FIRST(&c->neighs.waiting); n != NULL && sent < REQUESTS_PER_TURN; n = next) {
		next = TAILQ_NEXT(n, waits);
		if (n->next > c->env.now)
			continue;
		send_request(c, n);
		/* To the end, so that all of a long list have their turn. */
		TAILQ_REMOVE(&c->neighs.waiting, n, waits);
		TAILQ_INSERT_TAIL(&c->neighs.waiting, n, waits);
		sent++;
	}
	return sent;
}

/* Paths to a neighbour whose MAC is new; those done go to the list's end. */
static uint32_t
update_links(struct control *c, struct neigh *n, uint32_t room)
{
	uint32_t done = 0;
	struct neigh_link *link;

	while (done < room) {
		link = TAILQ_FIRST(&n->links);
		if (link == NULL || link->turn == n->turn) {
			set_changed(&c->neighs, n, false);
			break;
		}
		if (qp_admin_new_mac(c, link) != 0)
			break; /* no room for messages: next turn */
		link->turn = n->turn;
		TAILQ_REMOVE(&n->links, link, on);
		TAILQ_INSERT_TAIL(&n->links, link, on);
		done++;
	}
	return done;
}

uint32_t
neigh_poll(struct control *c)
{
	uint32_t work = send_requests(c);
	uint32_t room = UPDATES_PER_TURN;
	struct neigh *n;

	while (room > 0 && (n = TAILQ_FIRST(&c->neighs.changed)) != NULL) {
		const uint32_t done = update_links(c, n, room);

		work += done;
		room -= done;
		if (n->is_changed)
			break;
	}
	return work;
}
