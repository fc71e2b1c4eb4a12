/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROUTES_H
#define ROUTES_H
/**
 * @file routes.h  Routes of the ports, and the next hops of QPs' paths.
 *
 * Owner:   control lcore.
 * Memory:  one table for each port, given back by routes_fini().
 * Depends: route conf, neigh.h.
 * Spec:    RT-01..04, RT-08..10.
 */
#include <jansson.h>
#include <stdint.h>

#include "conf.h"
#include "conf_routes.h"
#include "neigh.h"
#include "refusal.h"
#include "route.h"

struct net;

/** How many paths of QPs a change of routes or neighbours has moved. */
struct routes_moved {
	uint32_t moved;       /* to another next hop */
	uint32_t unreachable; /* ... of which none is left */
};

/** The configured routes of every port. @return 0 or -ENOMEM. */
int routes_init(struct net *net);
/** Every port's table goes. */
void routes_fini(struct net *net);
/**
 * Whom to send to for an address: itself where it is on the port's link, or the gateway.
 * @return false: there is no route; *hop is the address itself then, for neigh_key.no_route.
 */
bool routes_hop(
	const struct net *net, uint16_t port, const struct conf_ip *dest, struct conf_ip *hop);
/** The address that a QP's path leads to. */
const struct conf_ip *routes_dest(const struct neigh_link *link);
/** Every path over the port that needs a neighbour goes to its next hop as it is now. */
struct routes_moved routes_changed(struct net *net, uint16_t port);
/** @param replaced as route_add(). @return 0 or a refusal. */
int routes_add(struct net *net, uint16_t port, const struct route *r, struct route *replaced,
	struct refusal *why);
/** @param via NULL: whatever it is. @return 0 or a refusal. */
int routes_del(struct net *net, uint16_t port, const struct route_prefix *to,
	const struct route_addr *via, struct refusal *why);
/** @param port -1: of every port. */
json_t *routes_json(const struct net *net, int port);

#endif
