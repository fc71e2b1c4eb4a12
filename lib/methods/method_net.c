/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of neighbours and routes. */
#include <errno.h>
#include <string.h>

#include "log.h"
#include "methods.h"

enum { GIVEN_PORT = 1, GIVEN_IPV4 = 2, GIVEN_IPV6 = 4, GIVEN_VIA = 8 };

struct p_route {
	struct route_prefix to; /* first: conf_custom_prefix */
	uint64_t given;
	struct conf_ip via;
	char port[CONF_NAME_MAX];
};

struct p_neighbor {
	uint64_t given;
	struct conf_ip ip;
	uint8_t mac[6];
	char port[CONF_NAME_MAX];
};

struct p_port {
	uint64_t given;
	char port[CONF_NAME_MAX];
};

#define P_TO                                                                                   \
	{                                                                                      \
		.name = "to", .type = CONF_T_CUSTOM, .custom = &conf_custom_prefix, P_REQUIRED \
	}
/* clang-format off */
#define P_IP(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_IP, .offset = offsetof(struct S, m), .min = lo, .max = hi, \
		__VA_ARGS__ }
#define P_MAC(S, m, ...) \
	{ .name = #m, .type = CONF_T_MAC, .offset = offsetof(struct S, m), __VA_ARGS__ }

static const struct conf_field route_add_rows[] = {
	P_NAME(p_route, port, P_REQUIRED),
	P_TO,
	P_IP(p_route, via, "via", 4, 6, P_REQUIRED),
};
static const struct conf_field route_del_rows[] = {
	P_NAME(p_route, port, P_REQUIRED),
	P_TO,
	P_IP(p_route, via, "via", 4, 6, P_OPTIONAL, .given = GIVEN_VIA),
};
static const struct conf_field neighbor_add_rows[] = {
	P_NAME(p_neighbor, port, P_REQUIRED),
	P_IP(p_neighbor, ip, "ipv4", 4, 4, P_OPTIONAL, .given = GIVEN_IPV4),
	P_IP(p_neighbor, ip, "ipv6", 6, 6, P_OPTIONAL, .given = GIVEN_IPV6),
	P_MAC(p_neighbor, mac, P_REQUIRED),
};
static const struct conf_field neighbor_del_rows[] = {
	P_NAME(p_neighbor, port, P_REQUIRED),
	P_IP(p_neighbor, ip, "ipv4", 4, 4, P_OPTIONAL, .given = GIVEN_IPV4),
	P_IP(p_neighbor, ip, "ipv6", 6, 6, P_OPTIONAL, .given = GIVEN_IPV6),
};
static const struct conf_field port_rows[] = {
	P_NAME(p_port, port, P_OPTIONAL, .given = GIVEN_PORT),
};
static const struct conf_table route_add_table = P_TABLE_GIVEN(p_route, route_add_rows, "params");
static const struct conf_table route_del_table = P_TABLE_GIVEN(p_route, route_del_rows, "params");
static const struct conf_table neighbor_add_table =
	P_TABLE_GIVEN(p_neighbor, neighbor_add_rows, "params");
static const struct conf_table neighbor_del_table =
	P_TABLE_GIVEN(p_neighbor, neighbor_del_rows, "params");
static const struct conf_table port_table = P_TABLE_GIVEN(p_port, port_rows, "params");
/* clang-format on */

/* @return 0 with the port's index, or a refusal. */
static int
port_of(struct rpc_call *call, const char *name, int *port)
{
	struct refusal r;

	*port = env_port_named(call->m->env, name);
	if (*port >= 0)
		return 0;
	refuse(&r, ENOENT, "port: \"%s\" does not exist; port_list shows those that do", name);
	return rpc_refused(call, &r);
}

/* The port that was given, or -1: all. */
static int
port_or_all(struct rpc_call *call, int *port)
{
	const struct p_port *p = call->params;

	*port = -1;
	return (p->given & GIVEN_PORT) != 0 ? port_of(call, p->port, port) : 0;
}

/* Paths go where they go now; workers know of it before the answer, but for a great many QPs. */
static json_t *
move_paths(struct methods *ctx, uint16_t port, struct routes_moved *m)
{
	*m = routes_changed(ctx->net, port);
	neigh_poll(ctx->net);
	return json_pack("{s:I, s:I}", "paths_moved", (json_int_t)m->moved, "paths_unreachable",
		(json_int_t)m->unreachable);
}

/* ---- routes --------------------------------------------------------------------------------- */

static int
add_route(struct rpc_call *call)
{
	const struct p_route *p = call->params;
	const struct route r = {
		.to = p->to, .via = conf_route_addr(&p->via), .source = ROUTE_ADDED
	};
	struct routes_moved m;
	struct route replaced;
	char text[ROUTE_TEXT];
	struct refusal why;
	json_t *o;
	int port;

	if (port_of(call, p->port, &port) != 0)
		return -1;
	if (routes_add(call->m->net, (uint16_t)port, &r, &replaced, &why) != 0)
		return rpc_refused(call, &why);
	o = move_paths(call->m, (uint16_t)port, &m);
	json_object_set_new(o, "replaced",
		replaced.via.family != 0 ? json_string(route_addr_text(&replaced.via, text))
					 : json_null());
	return rpc_result(call, o);
}

static int
del_route(struct rpc_call *call)
{
	const struct p_route *p = call->params;
	const struct route_addr via = conf_route_addr(&p->via);
	struct routes_moved m;
	struct refusal why;
	json_t *o;
	int port;

	if (port_of(call, p->port, &port) != 0)
		return -1;
	if (routes_del(call->m->net, (uint16_t)port, &p->to,
		    (p->given & GIVEN_VIA) != 0 ? &via : NULL, &why) != 0)
		return rpc_refused(call, &why);
	o = move_paths(call->m, (uint16_t)port, &m);
	if (m.unreachable != 0)
		log_warn("port %s: no route is left for %u paths of queue pairs", p->port,
			m.unreachable);
	return rpc_result(call, o);
}

static int
list_routes(struct rpc_call *call)
{
	int port;

	if (port_or_all(call, &port) != 0)
		return -1;
	return rpc_result(call, routes_json(call->m->net, port));
}

/* ---- neighbours ----------------------------------------------------------------------------- */

/* Exactly one address, of a family that the port has. */
static int
neighbor_of(struct rpc_call *call, int *port)
{
	const struct p_neighbor *p = call->params;
	const uint64_t which = p->given & (GIVEN_IPV4 | GIVEN_IPV6);
	const struct wire_port *us;

	if (port_of(call, p->port, port) != 0)
		return -1;
	us = call->m->env->w.ports[*port].addr;
	if (which != GIVEN_IPV4 && which != GIVEN_IPV6)
		return rpc_invalid(call, "params: must have exactly one of ipv4 and ipv6, not %s",
			which == 0 ? "none" : "both");
	if (which == GIVEN_IPV4 ? !us->has_ipv4 : !us->has_ipv6)
		return rpc_invalid(call, "%s: port \"%s\" has no %s address",
			which == GIVEN_IPV4 ? "ipv4" : "ipv6", p->port,
			which == GIVEN_IPV4 ? "IPv4" : "IPv6");
	if (memcmp(p->ip.addr, which == GIVEN_IPV4 ? us->ipv4 : us->ipv6,
		    which == GIVEN_IPV4 ? 4 : 16) == 0)
		return rpc_invalid(call, "%s: is the port's own address",
			which == GIVEN_IPV4 ? "ipv4" : "ipv6");
	return 0;
}

static int
neighbor_add(struct rpc_call *call)
{
	const struct p_neighbor *p = call->params;
	struct routes_moved m;
	struct refusal r;
	int port, rc;

	if (neighbor_of(call, &port) != 0)
		return -1;
	rc = neigh_fix(call->m->net, (uint16_t)port, &p->ip, p->mac);
	if (rc != 0) {
		refuse(&r, -rc, "no room for another neighbour");
		return rpc_refused(call, &r);
	}
	/* It may be the way to an address that no route reaches. */
	return rpc_result(call, move_paths(call->m, (uint16_t)port, &m));
}

static int
neighbor_del(struct rpc_call *call)
{
	const struct p_neighbor *p = call->params;
	struct routes_moved m;
	struct refusal r;
	int port;

	if (neighbor_of(call, &port) != 0)
		return -1;
	if (neigh_forget(call->m->net, (uint16_t)port, &p->ip) == 0) {
		refuse(&r, ENOENT, "%s: is no neighbour of port \"%s\"; neighbor_list shows them",
			(p->given & GIVEN_IPV4) != 0 ? "ipv4" : "ipv6", p->port);
		return rpc_refused(call, &r);
	}
	return rpc_result(call, move_paths(call->m, (uint16_t)port, &m));
}

static int
neighbor_flush(struct rpc_call *call)
{
	int port;

	if (port_or_all(call, &port) != 0)
		return -1;
	return rpc_result(
		call, json_pack("{s:I}", "flushed", (json_int_t)neigh_flush(call->m->net, port)));
}

static int
neighbor_list(struct rpc_call *call)
{
	return rpc_result(call, neigh_list_json(call->m->net));
}

const struct rpc_method methods_net[] = {
	{ "route_add", add_route, &route_add_table },
	{ "route_del", del_route, &route_del_table },
	{ "route_list", list_routes, &port_table },
	{ "neighbor_add", neighbor_add, &neighbor_add_table },
	{ "neighbor_del", neighbor_del, &neighbor_del_table },
	{ "neighbor_flush", neighbor_flush, &port_table },
	{ "neighbor_list", neighbor_list, &method_no_params },
	{ NULL, NULL, NULL },
};
