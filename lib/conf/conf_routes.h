/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_ROUTES_H
#define CONF_ROUTES_H
/**
 * @file conf_routes.h  Between a port's configuration and its table of routes.
 *
 * Owner:   control lcore (or main before the lcores start).
 * Memory:  tables are the caller's.
 * Depends: route.
 * Spec:    RT-03, RT-04, RT-09.
 */
#include "conf.h"
#include "route.h"

/** An address as routes have it. */
struct route_addr conf_route_addr(const struct conf_ip *ip);
/**
 * The port's subnets, gateways and routes, in an empty table.
 * @param local the port's IPv6 link-local address, or NULL: not known.
 * @param err   what cannot be taken is told here and left out; NULL: it is left out.
 * @return 0 or -ENOMEM.
 */
int conf_routes_make(const struct conf_port *p, const uint8_t local[16], struct route_table *t,
	struct conf_errors *err);
/**
 * The other way: gateway, gateway6 and routes of a port from a table. `routes` is allocated.
 * @return 0 or -ENOMEM.
 */
int conf_routes_save(const struct route_table *t, struct conf_port *out);
/** Is it one of the port's fixed neighbours? It is on the link then, whatever the subnet. */
bool conf_is_neighbor(const struct conf_port *p, const struct conf_ip *ip);

#endif
