/* SPDX-License-Identifier: BSD-3-Clause */
/* What configuration and operators do to the neighbour table. */
#include <errno.h>
#include <string.h>

#include "env.h"
#include "neigh_table.h"
#include "net.h"

static bool
is_of(const struct neigh *n, uint16_t port, const struct conf_ip *ip)
{
	return n->port == port && n->state != NEIGH_NO_ROUTE && n->ip.family == ip->family &&
	       memcmp(n->ip.addr, ip->addr, sizeof(n->ip.addr)) == 0;
}

int
neigh_fix(struct net *net, uint16_t port, const struct conf_ip *ip, const uint8_t mac[6])
{
	const struct neigh_key key = { .ip = *ip, .port = port };
	struct neigh *n = neigh_get(net, &key);

	if (n == NULL)
		return net->neighs.n >= NEIGH_MAX ? -ENOSPC : -ENOMEM;
	/* A fixed one holds for all VLANs. */
	TAILQ_FOREACH (n, &net->neighs.all, all) {
		if (is_of(n, port, ip))
			neigh_fix_mac(net, n, mac);
	}
	return 0;
}

int
neigh_configure(struct net *net)
{
	int rc = 0;

	for (uint32_t p = 0; p < net->env->w.conf->n_ports; p++) {
		const struct conf_port *port = &net->env->w.conf->ports[p];

		for (uint32_t i = 0; i < port->n_neighbors && rc == 0; i++)
			rc = neigh_fix(
				net, (uint16_t)p, &port->neighbors[i].ip, port->neighbors[i].mac);
	}
	return rc;
}

uint32_t
neigh_forget(struct net *net, uint16_t port, const struct conf_ip *ip)
{
	struct neigh *n = TAILQ_FIRST(&net->neighs.all), *next;
	uint32_t found = 0;

	for (; n != NULL; n = next) {
		next = TAILQ_NEXT(n, all);
		if (!is_of(n, port, ip))
			continue;
		neigh_drop(net, n);
		found++;
	}
	return found;
}

uint32_t
neigh_flush(struct net *net, int port)
{
	struct neigh *n = TAILQ_FIRST(&net->neighs.all), *next;
	uint32_t found = 0;

	for (; n != NULL; n = next) {
		next = TAILQ_NEXT(n, all);
		if (n->state == NEIGH_STATIC || n->state == NEIGH_NO_ROUTE ||
			(port >= 0 && n->port != port))
			continue;
		neigh_drop(net, n);
		found++;
	}
	return found;
}
