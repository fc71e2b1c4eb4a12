/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes: those of a port make sense together, and one of them leads to each QP's peer. */
#include "conf_mcast.h"
#include "cross.h"
#include "conf_routes.h"
#include "errors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct route_addr
conf_route_addr(const struct conf_ip *ip)
{
	struct route_addr a = { .family = ip->family };

	memcpy(a.addr, ip->addr, ip->family == 4 ? 4 : sizeof(a.addr));
	return a;
}

static struct route_addr
addr_of(uint8_t family, const uint8_t *bytes)
{
	struct route_addr a = { .family = family };

	memcpy(a.addr, bytes, family == 4 ? 4 : sizeof(a.addr));
	return a;
}

/* A value that had a fault is zero. */
static bool
is_blank(bool ipv6, const uint8_t v4[4], const uint8_t v6[16])
{
	static const uint8_t blank[16];

	return memcmp(ipv6 ? v6 : v4, blank, ipv6 ? 16 : 4) == 0;
}

/* Of IPv4 and IPv6. What follows from a value that had a fault is no fault of its own. */
struct known {
	bool subnet[2];
	bool routes[2];
};

static const struct known all_known = { { true, true }, { true, true } };

/* @param err is at the port. */
static struct known
known_of(const struct conf_errors *err)
{
	static const char *const keys[2][3] = { { "ipv4", "prefix", "gateway" },
		{ "ipv6", "prefix6", "gateway6" } };
	struct known k = all_known;

	for (int v = 0; v < 2 && err->n_errors != 0; v++) {
		k.subnet[v] = !conf_errors_within(err, keys[v][0]) &&
			      !conf_errors_within(err, keys[v][1]);
		k.routes[v] = k.subnet[v] && !conf_errors_within(err, keys[v][2]) &&
			      !conf_errors_within(err, "routes");
	}
	return k;
}

/* The subnets that the port is in. */
static enum route_fault
connect(const struct conf_port *p, const uint8_t local[16], struct route_table *t)
{
	static const uint8_t nobody[16] = { 0xfe, 0x80 };
	const struct route_addr v4 = addr_of(4, p->ipv4), v6 = addr_of(6, p->ipv6);
	const struct route_addr ll = addr_of(6, local != NULL ? local : nobody);
	enum route_fault f = ROUTE_OK;

	if ((p->given & CONF_PORT_IPV4) != 0)
		f = route_connect(t, &v4, p->prefix);
	if (f == ROUTE_OK && (p->given & CONF_PORT_IPV6) != 0)
		f = route_connect(t, &v6, p->prefix6);
	/* Whoever has IPv6 has a link-local address (RFC 4291). */
	if (f == ROUTE_OK && (p->given & CONF_PORT_IPV6) != 0)
		f = route_connect(t, &ll, 10);
	return f;
}

/* "gateway" and "gateway6" are routes to everywhere. */
static void
add_gateway(const struct conf_port *p, bool ipv6, const struct known *k, struct route_table *t,
	struct conf_errors *err)
{
	struct route r = { .source = ROUTE_CONFIGURED };
	enum route_fault f;

	if ((p->given & (ipv6 ? CONF_PORT_GATEWAY6 : CONF_PORT_GATEWAY)) == 0 ||
		is_blank(ipv6, p->gateway, p->gateway6) || !k->subnet[ipv6])
		return;
	r.via = ipv6 ? addr_of(6, p->gateway6) : addr_of(4, p->gateway);
	r.to.net.family = r.via.family;
	f = route_add(t, &r, NULL);
	if (f != ROUTE_OK && err != NULL)
		conf_fault(err, ipv6 ? "gateway6" : "gateway", "%s", route_fault_text(f));
}

static void
add_route(const struct conf_route *from, const struct known *k, struct route_table *t,
	struct conf_errors *err)
{
	const struct route r = {
		.to = from->to, .via = conf_route_addr(&from->via), .source = ROUTE_CONFIGURED
	};
	char text[ROUTE_TEXT];
	struct route same;
	enum route_fault f;

	if (r.to.net.family == 0 || r.via.family == 0 || !k->subnet[r.via.family == 6])
		return; /* it had a fault */
	f = route_add(t, &r, &same);
	if (f != ROUTE_OK && err != NULL)
		conf_fault(err, route_fault_is_via(f) ? "via" : "to", "%s", route_fault_text(f));
	else if (same.to.net.family != 0 && err != NULL)
		conf_fault(err, "to", "has a route by %s already%s: keep one of them",
			route_addr_text(&same.via, text),
			route_is_default(&r) ? ", perhaps the gateway" : "");
}

static int
make(const struct conf_port *p, const uint8_t local[16], const struct known *k,
	struct route_table *t, struct conf_errors *err)
{
	uint32_t mark;

	if (connect(p, local, t) != ROUTE_OK)
		return -ENOMEM;
	add_gateway(p, false, k, t, err);
	add_gateway(p, true, k, t, err);
	mark = err != NULL ? conf_enter(err, "routes") : 0;
	for (uint32_t i = 0; i < p->n_routes; i++) {
		const uint32_t inner = err != NULL ? conf_enter_index(err, i) : 0;

		add_route(&p->routes[i], k, t, err);
		if (err != NULL)
			conf_leave(err, inner);
	}
	if (err != NULL)
		conf_leave(err, mark);
	return 0;
}

int
conf_routes_make(const struct conf_port *p, const uint8_t local[16], struct route_table *t,
	struct conf_errors *err)
{
	return make(p, local, &all_known, t, err);
}

int
conf_routes_save(const struct route_table *t, struct conf_port *out)
{
	out->given &= ~(uint64_t)(CONF_PORT_GATEWAY | CONF_PORT_GATEWAY6);
	out->n_routes = 0;
	out->routes = calloc((size_t)t->n + 1, sizeof(*out->routes));
	if (out->routes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct route *r = &t->v[i];

		if (r->source == ROUTE_CONNECTED)
			continue;
		if (!route_is_default(r)) {
			struct conf_route *to = &out->routes[out->n_routes++];

			to->to = r->to;
			to->via.family = r->via.family;
			memcpy(to->via.addr, r->via.addr, sizeof(to->via.addr));
		} else if (r->via.family == 4) {
			out->given |= CONF_PORT_GATEWAY;
			memcpy(out->gateway, r->via.addr, sizeof(out->gateway));
		} else {
			out->given |= CONF_PORT_GATEWAY6;
			memcpy(out->gateway6, r->via.addr, sizeof(out->gateway6));
		}
	}
	return 0;
}

static bool
same_ip(const struct conf_ip *a, const struct conf_ip *b)
{
	return a->family == b->family && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

bool
conf_is_neighbor(const struct conf_port *p, const struct conf_ip *ip)
{
	for (uint32_t i = 0; i < p->n_neighbors; i++) {
		if (same_ip(&p->neighbors[i].ip, ip))
			return true;
	}
	return false;
}

/* Nobody else answers for what is the port's. */
static void
neighbors_are_others(const struct conf_port *p, struct conf_errors *err)
{
	for (uint32_t i = 0; i < p->n_neighbors; i++) {
		const struct conf_ip *ip = &p->neighbors[i].ip;
		const bool ipv4 = ip->family == 4;
		const uint32_t mark = err->at_len;

		if (ip->family == 0 || (p->given & (ipv4 ? CONF_PORT_IPV4 : CONF_PORT_IPV6)) == 0 ||
			memcmp(ip->addr, ipv4 ? p->ipv4 : p->ipv6, ipv4 ? 4 : 16) != 0)
			continue;
		conf_enter(err, "neighbors");
		conf_enter_index(err, i);
		conf_fault(err, ipv4 ? "ipv4" : "ipv6", "is the port's own address");
		conf_leave(err, mark);
	}
}

/* What a port reaches. */
struct subnets {
	struct route_table t;
	struct known known;
};

/* Each address has one MAC. */
static void
neighbors_unique(const struct conf_port *p, uint32_t port, struct conf_errors *err)
{
	for (uint32_t i = 1; i < p->n_neighbors; i++) {
		const struct conf_ip *ip = &p->neighbors[i].ip;
		const uint32_t mark = err->at_len;
		uint32_t k = 0;

		while (k < i && !same_ip(&p->neighbors[k].ip, ip))
			k++;
		if (k == i || ip->family == 0)
			continue; /* the first, or one that had a fault */
		conf_enter(err, "neighbors");
		conf_enter_index(err, i);
		conf_fault(err, ip->family == 4 ? "ipv4" : "ipv6",
			"has a MAC by /ports/%u/neighbors/%u already: keep one of them", port, k);
		conf_leave(err, mark);
	}
}

static void
path_reached(const struct conf_qp *qp, bool alternate, const struct conf_port *p,
	const struct subnets *s, struct conf_errors *err)
{
	const struct conf_ah *ah = alternate ? &qp->alt_ah_attr : &qp->ah_attr;
	const struct route_addr dest = conf_route_addr(&ah->dest_ip);
	const bool ipv6 = dest.family == 6;
	char text[ROUTE_TEXT];
	uint32_t mark;

	if ((p->given & (ipv6 ? CONF_PORT_IPV6 : CONF_PORT_IPV4)) == 0 || !s->known.routes[ipv6])
		return; /* conf_cross_frames() says so, or the decoder did */
	if ((ah->given & CONF_AH_DEST_MAC) != 0 || conf_ip_is_group(&ah->dest_ip) ||
		route_find(&s->t, &dest) != NULL || conf_is_neighbor(p, &ah->dest_ip))
		return;
	mark = conf_enter(err, alternate ? "alt_ah_attr" : "ah_attr");
	conf_fault(err, "dest_ip",
		"no route of port \"%s\" reaches %s: give the port a %s, or routes, or another "
		"%s, or give dest_mac",
		p->name, route_addr_text(&dest, text), ipv6 ? "gateway6" : "gateway",
		ipv6 ? "prefix6" : "prefix");
	conf_leave(err, mark);
}

static void
qp_reached(const struct conf *c, uint32_t i, const struct subnets *ports, struct conf_errors *err)
{
	const struct conf_qp *qp = &c->qps[i];
	const uint32_t mark = conf_enter(err, "qps");

	conf_enter_index(err, i);
	for (int alternate = 0; alternate < 2; alternate++) {
		const bool other = alternate && (qp->given & CONF_QP_ALT_PORT) != 0;
		const struct conf_port *p = conf_port_find(c, other ? qp->alt_port : qp->port);
		const struct conf_ah *ah = alternate ? &qp->alt_ah_attr : &qp->ah_attr;

		if (p != NULL && ah->dest_ip.family != 0)
			path_reached(qp, alternate, p, &ports[p - c->ports], err);
	}
	conf_leave(err, mark);
}

int
conf_cross_routes(const struct conf *c, struct conf_errors *err)
{
	struct subnets ports[CONF_MAX_PORTS] = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < c->n_ports && i < CONF_MAX_PORTS && rc == 0; i++) {
		const uint32_t mark = conf_enter(err, "ports");

		conf_enter_index(err, i);
		neighbors_unique(&c->ports[i], i, err);
		neighbors_are_others(&c->ports[i], err);
		ports[i].known = known_of(err);
		rc = make(&c->ports[i], NULL, &ports[i].known, &ports[i].t, err);
		conf_leave(err, mark);
	}
	for (uint32_t i = 0; i < c->n_qps && rc == 0; i++)
		qp_reached(c, i, ports, err);
	for (uint32_t i = 0; i < CONF_MAX_PORTS; i++)
		route_fini(&ports[i].t);
	return rc;
}
