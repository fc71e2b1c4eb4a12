/* SPDX-License-Identifier: BSD-3-Clause */
#include "routes.h"

#include <errno.h>
#include <string.h>

#include "env.h"
#include "log.h"
#include "net.h"

int
routes_init(struct net *net)
{
	int rc = 0;

	for (uint32_t p = 0; p < net->env->w.ports_n && rc == 0; p++) {
		uint8_t local[16];

		frames_link_local(net->env->w.ports[p].addr, local);
		rc = conf_routes_make(&net->env->w.conf->ports[p], local, &net->routes[p], NULL);
	}
	return rc;
}

void
routes_fini(struct net *net)
{
	for (uint32_t p = 0; p < net->env->w.ports_n; p++)
		route_fini(&net->routes[p]);
}

bool
routes_hop(const struct net *net, uint16_t port, const struct conf_ip *dest, struct conf_ip *hop)
{
	const struct route_addr to = conf_route_addr(dest);
	const struct route *r = route_find(&net->routes[port], &to);

	*hop = *dest;
	if (r == NULL)
		return neigh_is_static(net, port, dest);
	if (r->source != ROUTE_CONNECTED)
		memcpy(hop->addr, r->via.addr, sizeof(hop->addr));
	return true;
}

const struct conf_ip *
routes_dest(const struct neigh_link *link)
{
	return &link->ah->dest_ip;
}

static void
reroute(struct net *net, struct neigh_link *link, struct routes_moved *m)
{
	const struct conf_ah *ah = link->ah;
	/* The path's tag, not the entry's: a fixed neighbour stands for all tags. */
	struct neigh_key key = { .port = link->neigh->port,
		.vlan = (ah->given & CONF_AH_VLAN) != 0 ? ah->vlan : 0 };
	int rc;

	key.no_route = !routes_hop(net, key.port, routes_dest(link), &key.ip);
	rc = neigh_reroute(net, &key, link);
	if (rc < 0)
		log_rated(&net->told.full, net->env->now, LOG_ERROR,
			"%s %u keeps its next hop: no room for another neighbour",
			link->of_handle ? "address handle of QPs" : "QP", link->qpn);
	m->moved += rc == 1;
	m->unreachable += rc == 1 && key.no_route;
}

struct routes_moved
routes_changed(struct net *net, uint16_t port)
{
	struct routes_moved m = { 0 };
	struct neigh *n = TAILQ_FIRST(&net->neighs.all), *next;

	/*
	 * An entry goes with its last link; those that are made meanwhile stand at the end. Nothing
	 * but this link may move here, or `after` and `next` were not what comes next.
	 */
	for (; n != NULL; n = next) {
		struct neigh_link *link = TAILQ_FIRST(&n->links), *after;

		next = TAILQ_NEXT(n, all);
		for (; n->port == port && link != NULL; link = after) {
			after = TAILQ_NEXT(link, on);
			reroute(net, link, &m);
			if (after == NULL)
				break; /* n may be gone */
		}
	}
	return m;
}

/* ---- what operators do ---------------------------------------------------------------------- */

static int
refuse_route(enum route_fault f, const struct route_prefix *to, const struct route_addr *via,
	struct refusal *why)
{
	const bool of_via = route_fault_is_via(f) && via != NULL;
	char text[ROUTE_TEXT];
	int err = EINVAL;

	if (f == ROUTE_TWICE)
		err = EEXIST;
	else if (f == ROUTE_NONE || f == ROUTE_OTHER_VIA)
		err = ENOENT;
	else if (f == ROUTE_FULL || f == ROUTE_NO_MEMORY)
		err = f == ROUTE_FULL ? ENOSPC : ENOMEM;
	return refuse(why, err, "%s: %s %s", of_via ? "via" : "to",
		of_via ? route_addr_text(via, text) : route_prefix_text(to, text),
		route_fault_text(f));
}

int
routes_add(struct net *net, uint16_t port, const struct route *r, struct route *replaced,
	struct refusal *why)
{
	const enum route_fault f = route_add(&net->routes[port], r, replaced);

	return f == ROUTE_OK ? 0 : refuse_route(f, &r->to, &r->via, why);
}

int
routes_del(struct net *net, uint16_t port, const struct route_prefix *to,
	const struct route_addr *via, struct refusal *why)
{
	const enum route_fault f = route_del(&net->routes[port], to, via);

	return f == ROUTE_OK ? 0 : refuse_route(f, to, via, why);
}

json_t *
routes_json(const struct net *net, int port)
{
	static const char *const sources[] = { [ROUTE_CONNECTED] = "connected",
		[ROUTE_CONFIGURED] = "configured",
		[ROUTE_ADDED] = "added" };
	char to[ROUTE_TEXT], via[ROUTE_TEXT];
	json_t *list = json_array();

	for (uint32_t p = 0; p < net->env->w.ports_n; p++) {
		const struct route_table *t = &net->routes[p];

		for (uint32_t i = 0; i < t->n && (port < 0 || (uint32_t)port == p); i++) {
			const struct route *r = &t->v[i];
			const bool own = r->source == ROUTE_CONNECTED;

			json_array_append_new(
				list, json_pack("{s:s, s:s, s:o, s:o, s:s}", "port",
					      net->env->w.conf->ports[p].name, "to",
					      route_prefix_text(&r->to, to), "via",
					      own ? json_null()
						  : json_string(route_addr_text(&r->via, via)),
					      "src",
					      own ? json_string(route_addr_text(&r->via, via))
						  : json_null(),
					      "source", sources[r->source]));
		}
	}
	return list;
}
