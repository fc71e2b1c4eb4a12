/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is to say of neighbours: for lists, for QPs, and in sentences. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "conf_json_value.h"
#include "env.h"
#include "log.h"
#include "net.h"
#include "routes.h"

const char *
neigh_state_name(enum neigh_state state, uint32_t tries)
{
	static const char *const names[] = { [NEIGH_INCOMPLETE] = "INCOMPLETE",
		[NEIGH_REACHABLE] = "REACHABLE",
		[NEIGH_STALE] = "STALE",
		[NEIGH_STATIC] = "PERMANENT",
		[NEIGH_NO_ROUTE] = "NO_ROUTE" };

	if (state == NEIGH_INCOMPLETE && tries >= NEIGH_FAILED)
		return "FAILED";
	return (size_t)state < ARRAY_LEN(names) ? names[state] : "?";
}

static const char *
state_of(const struct neigh *n)
{
	return neigh_state_name((enum neigh_state)n->state, n->tries);
}

static const char *
ip_text(const struct conf_ip *ip, char *buf)
{
	const struct route_addr a = conf_route_addr(ip);

	return route_addr_text(&a, buf);
}

static json_t *
mac_json(const struct neigh *n)
{
	const uint8_t *m = n->mac;

	if (!neigh_has_mac(n))
		return json_null();
	return conf_json_mac(m);
}

/* Milliseconds since then, or null: it never was. */
static json_t *
ms_since(const struct net *net, bool was, ns_t then)
{
	if (!was)
		return json_null();
	return json_integer((json_int_t)((net->env->now - then) / TIME_NS_PER_MS));
}

/* What all views have in common. */
static void
set_state(const struct net *net, const struct neigh *n, json_t *o)
{
	json_object_set_new(o, "port", json_string(net->env->w.conf->ports[n->port].name));
	json_object_set_new(o, "vlan", n->vlan != 0 ? json_integer(n->vlan) : json_null());
	json_object_set_new(o, "state", json_string(state_of(n)));
	json_object_set_new(o, "mac", mac_json(n));
	json_object_set_new(
		o, "age_ms", ms_since(net, n->heard != 0 && n->state != NEIGH_STATIC, n->heard));
	json_object_set_new(o, "asked", json_integer((json_int_t)n->asked));
	json_object_set_new(o, "unanswered", json_integer(n->tries));
	json_object_set_new(o, "last_asked_ms", ms_since(net, n->asked != 0, n->last_try));
}

json_t *
neigh_list_json(struct net *net)
{
	json_t *list = json_array();
	char text[ROUTE_TEXT];
	struct neigh *n;

	TAILQ_FOREACH (n, &net->neighs.all, all) {
		json_t *o = json_object();

		json_object_set_new(
			o, n->ip.family == 4 ? "ipv4" : "ipv6", json_string(ip_text(&n->ip, text)));
		set_state(net, n, o);
		json_object_set_new(o, "paths", json_integer(n->links_n));
		json_object_set_new(
			o, "user", n->maker != NULL ? json_integer(n->maker->uid) : json_null());
		if (o == NULL || json_array_append_new(list, o) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

void
neigh_claimed(struct net *net, const struct neigh_key *key, const uint8_t mac[6])
{
	char text[ROUTE_TEXT];

	log_rated(&net->told.twice, net->env->now, LOG_WARN,
		"port %s: %02x:%02x:%02x:%02x:%02x:%02x says that it has %s, which is the port's: "
		"frames for the port may go there",
		net->env->w.conf->ports[key->port].name, mac[0], mac[1], mac[2], mac[3], mac[4],
		mac[5], ip_text(&key->ip, text));
}

/* ---- of one path ---------------------------------------------------------------------------- */

json_t *
neigh_json(const struct net *net, const struct neigh_link *link)
{
	const struct neigh *n = link->neigh;
	const struct conf_ip *dest;
	char text[ROUTE_TEXT];
	json_t *o;

	if (n == NULL)
		return json_null();
	dest = routes_dest(link);
	o = json_object();
	json_object_set_new(o, "ip", json_string(ip_text(&n->ip, text)));
	json_object_set_new(o, "dest_ip", json_string(ip_text(dest, text)));
	json_object_set_new(o, "is_gateway",
		json_boolean(memcmp(dest->addr, n->ip.addr, sizeof(dest->addr)) != 0));
	set_state(net, n, o);
	return o;
}

static double
seconds_since(const struct net *net, ns_t then)
{
	return (double)(net->env->now - then) / TIME_NS_PER_S;
}

/* "asked 3 times in 0.3 s, the last time 0.1 s ago, without an answer" */
static int
asked_text(const struct net *net, const struct neigh *n, char *buf, size_t room)
{
	const char *how = n->ip.family == 4 ? "ARP" : "neighbour discovery";
	const char *port = net->env->w.conf->ports[n->port].name;

	if (n->tries == 0)
		return snprintf(buf, room, "not asked yet on port %s", port);
	return snprintf(buf, room,
		"asked %u time%s by %s on port %s in %.3f s, last %.3f s ago, without an answer",
		n->tries, n->tries == 1 ? "" : "s", how, port, seconds_since(net, n->first_try),
		seconds_since(net, n->last_try));
}

bool
neigh_text(const struct net *net, const struct neigh_link *link, char *buf, size_t room)
{
	const struct neigh *n = link->neigh;
	char ip[ROUTE_TEXT], to[ROUTE_TEXT], asked[200];
	const struct conf_ip *dest;
	const char *state;
	int len;

	if (n == NULL)
		return false;
	dest = routes_dest(link);
	state = state_of(n);
	ip_text(&n->ip, ip);
	if (n->state == NEIGH_NO_ROUTE) {
		snprintf(buf, room, "no route of port %s reaches %s",
			net->env->w.conf->ports[n->port].name, ip);
		return true;
	}
	len = memcmp(dest->addr, n->ip.addr, sizeof(dest->addr)) == 0
		      ? snprintf(buf, room, "neighbour %s", ip)
		      : snprintf(buf, room, "gateway %s to %s", ip, ip_text(dest, to));
	if (len < 0 || (size_t)len >= room)
		return true;
	buf += len;
	room -= (size_t)len;
	asked_text(net, n, asked, sizeof(asked));
	if (n->state == NEIGH_INCOMPLETE)
		snprintf(buf, room, " is %s: %s", state, asked);
	else if (n->state == NEIGH_STALE)
		snprintf(buf, room, " is %s: heard %.3f s ago; since then %s", state,
			seconds_since(net, n->heard), asked);
	else if (n->state == NEIGH_STATIC)
		snprintf(buf, room, " is %s: its MAC was given", state);
	else
		snprintf(
			buf, room, " is %s: heard %.3f s ago", state, seconds_since(net, n->heard));
	return true;
}
