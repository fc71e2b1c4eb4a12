/* SPDX-License-Identifier: BSD-3-Clause */
#include "neigh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "log.h"

enum { ON_NOTHING, ON_WAITING, ON_CHANGED };

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
	n->turn = 1;
	TAILQ_INIT(&n->links);
	n->chain = *head;
	*head = n;
	TAILQ_INSERT_TAIL(&t->all, n, all);
	t->n++;
	return n;
}

static struct neigh_list *
list_of(struct neigh_table *t, uint8_t on)
{
	return on == ON_WAITING ? &t->waiting : &t->changed;
}

static void
put_on(struct neigh_table *t, struct neigh *n, uint8_t on)
{
	if (n->on == on)
		return;
	if (n->on != ON_NOTHING)
		TAILQ_REMOVE(list_of(t, n->on), n, work);
	n->on = on;
	if (on != ON_NOTHING)
		TAILQ_INSERT_TAIL(list_of(t, on), n, work);
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
	t->n--;
	free(n);
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

int
neigh_configure(struct control *c)
{
	for (uint32_t p = 0; p < c->env.conf->n_ports; p++) {
		const struct conf_port *port = &c->env.conf->ports[p];

		for (uint32_t i = 0; i < port->n_neighbors; i++) {
			const struct neigh_key key = { .ip = port->neighbors[i].ip,
				.port = (uint16_t)p };
			struct neigh *n = find(&c->neighs, &key);

			if (n == NULL)
				n = make(&c->neighs, &key);
			if (n == NULL)
				return -ENOMEM;
			memcpy(n->mac, port->neighbors[i].mac, sizeof(n->mac));
			n->state = NEIGH_STATIC;
		}
	}
	return 0;
}

int
neigh_use(struct control *c, const struct neigh_key *key, struct neigh_link *link)
{
	struct neigh *n = find(&c->neighs, key);
	const struct neigh_key untagged = { .ip = key->ip, .port = key->port };

	/* A static entry says nothing of VLANs: it holds for all of them. */
	if ((n == NULL || n->state != NEIGH_STATIC) && key->vlan != 0) {
		struct neigh *fixed = find(&c->neighs, &untagged);

		if (fixed != NULL && fixed->state == NEIGH_STATIC)
			n = fixed;
	}
	if (n == NULL)
		n = make(&c->neighs, key);
	if (n == NULL)
		return c->neighs.n >= NEIGH_MAX ? -ENOSPC : -ENOMEM;
	if (link->neigh != n) {
		neigh_leave(c, link);
		link->neigh = n;
		TAILQ_INSERT_TAIL(&n->links, link, on);
	} else {
		/* Those that have the newest MAC stand at the end. */
		TAILQ_REMOVE(&n->links, link, on);
		TAILQ_INSERT_TAIL(&n->links, link, on);
	}
	link->turn = n->turn;
	if (n->state == NEIGH_INCOMPLETE && n->on == ON_NOTHING) {
		n->tries = 0;
		n->next = 0;
		put_on(&c->neighs, n, ON_WAITING);
	}
	return 0;
}

void
neigh_leave(struct control *c, struct neigh_link *link)
{
	struct neigh *n = link->neigh;

	if (n == NULL)
		return;
	TAILQ_REMOVE(&n->links, link, on);
	link->neigh = NULL;
	if (!TAILQ_EMPTY(&n->links))
		return;
	put_on(&c->neighs, n, ON_NOTHING);
	if (n->state == NEIGH_INCOMPLETE)
		forget(&c->neighs, n);
}

void
neigh_join(struct control *c, struct neigh_link *link, const struct neigh_link *other)
{
	struct neigh *n = other->neigh;

	if (link->neigh == n)
		return;
	neigh_leave(c, link);
	if (n == NULL)
		return;
	link->neigh = n;
	link->turn = other->turn;
	if (link->turn == n->turn)
		TAILQ_INSERT_TAIL(&n->links, link, on);
	else
		TAILQ_INSERT_HEAD(&n->links, link, on);
}

void
neigh_learn(struct control *c, const struct neigh_key *key, const uint8_t mac[6], bool for_us)
{
	struct neigh *n = find(&c->neighs, key);
	char text[INET6_ADDRSTRLEN];

	if ((mac[0] & 1) != 0)
		return;
	if (n == NULL) {
		if (!for_us || c->neighs.learned >= NEIGH_LEARNED)
			return;
		n = make(&c->neighs, key);
		if (n == NULL)
			return;
		c->neighs.learned++;
	}
	if (n->state == NEIGH_STATIC)
		return;
	if (n->state == NEIGH_REACHABLE && memcmp(n->mac, mac, sizeof(n->mac)) == 0)
		return;
	if (n->state == NEIGH_REACHABLE)
		log_warn("neighbour %s has another MAC now", ip_text(&n->ip, text));
	memcpy(n->mac, mac, sizeof(n->mac));
	n->state = NEIGH_REACHABLE;
	n->turn++;
	put_on(&c->neighs, n, TAILQ_EMPTY(&n->links) ? ON_NOTHING : ON_CHANGED);
}

static ns_t
request_gap(uint32_t tries)
{
	if (tries == 1)
		return 100 * TIME_NS_PER_MS;
	return tries == 2 ? 200 * TIME_NS_PER_MS : TIME_NS_PER_S;
}

static uint32_t
send_requests(struct control *c)
{
	uint32_t sent = 0;
	struct neigh *n, *next;
	char text[INET6_ADDRSTRLEN];

	for (n = TAILQ_FIRST(&c->neighs.waiting); n != NULL && sent < REQUESTS_PER_TURN; n = next) {
		next = TAILQ_NEXT(n, work);
		if (n->next > c->now)
			continue;
		if (n->ip.family == 4)
			arp_request(c, n);
		else
			icmp6_solicit(c, n);
		n->next = c->now + request_gap(++n->tries);
		if (n->tries == 5)
			log_warn("port %s: neighbour %s does not answer; still asking",
				c->env.conf->ports[n->port].name, ip_text(&n->ip, text));
		/* To the end, so that all of a long list have their turn. */
		TAILQ_REMOVE(&c->neighs.waiting, n, work);
		TAILQ_INSERT_TAIL(&c->neighs.waiting, n, work);
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
			put_on(&c->neighs, n, ON_NOTHING);
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
		if (n->on == ON_CHANGED)
			break;
	}
	return work;
}

const char *
neigh_state_name(enum neigh_state s)
{
	static const char *const states[] = { "INCOMPLETE", "REACHABLE", "PERMANENT" };

	return (size_t)s < ARRAY_LEN(states) ? states[s] : "?";
}

json_t *
neigh_list_json(struct control *c)
{
	json_t *list = json_array();
	char text[INET6_ADDRSTRLEN];
	struct neigh *n;

	TAILQ_FOREACH (n, &c->neighs.all, all) {
		const uint8_t *m = n->mac;
		json_t *o = json_pack("{s:s, s:s, s:s}", "port", c->env.conf->ports[n->port].name,
			n->ip.family == 4 ? "ipv4" : "ipv6", ip_text(&n->ip, text), "state",
			neigh_state_name((enum neigh_state)n->state));

		json_object_set_new(o, "vlan", n->vlan != 0 ? json_integer(n->vlan) : json_null());
		json_object_set_new(o, "mac",
			n->state == NEIGH_INCOMPLETE ? json_null()
						     : json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x",
							       m[0], m[1], m[2], m[3], m[4], m[5]));
		if (o == NULL || json_array_append_new(list, o) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
