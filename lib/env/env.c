/* SPDX-License-Identifier: BSD-3-Clause */
#include "env.h"

#include <string.h>

int
env_port_index(const struct env *env, uint16_t dpdk_port)
{
	for (uint32_t p = 0; p < env->w.ports_n; p++) {
		if (env->w.ports[p].id == dpdk_port)
			return (int)p;
	}
	return -1;
}

int16_t
env_port_named(const struct env *env, const char *name)
{
	for (uint32_t p = 0; p < env->w.ports_n; p++) {
		if (strcmp(env->w.conf->ports[p].name, name) == 0)
			return (int16_t)p;
	}
	return -1;
}

int
env_port_with(const struct env *env, uint32_t first, bool ipv6, const uint8_t *ip)
{
	if (wire_port_has(env->w.ports[first].addr, ipv6, ip))
		return (int)first;
	for (uint32_t i = 0; i < env->w.ports_n; i++)
		if (wire_port_has(env->w.ports[i].addr, ipv6, ip))
			return (int)i;
	return -1;
}

int
env_port_inside(const struct env *env, uint32_t port, bool wire, bool ipv6, const uint8_t *ip)
{
	const int to = env_port_with(env, port, ipv6, ip);

	return wire && to != (int)port ? -1 : to;
}

bool
env_worker_polls(const struct env *env, uint16_t port, uint32_t worker)
{
	const uint32_t n = env->w.workers_n;

	return (worker + n - env->w.ports[port].worker) % n < env->w.conf->ports[port].rx_queues;
}

bool
env_worker_sends(const struct env *env, int port, uint32_t worker)
{
	const struct env_port *p = port >= 0 ? &env->w.ports[port] : NULL;

	return p == NULL || env_can_send(p->worker, p->tx_queues, worker);
}
