/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's "priorities" as workers and control lcore use them. */
#include <errno.h>
#include <string.h>

#include "dataplane.h"
#include "log.h"

/** @return how many of the ports before it have priorities. */
static uint32_t
before(const struct dataplane *dp, uint32_t port)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < port; i++)
		n += dp->ports[i].has_prio;
	return n;
}

int
priorities_open(struct dataplane *dp, uint32_t i)
{
	const struct conf_port *cp = &dp->conf->ports[i];
	const struct conf_prio *c = &cp->priorities;
	struct prio_port *p = &dp->ports[i].prio;
	const uint32_t nth = before(dp, i);

	if ((cp->given & CONF_PORT_PRIORITIES) == 0)
		return 0;
	if (nth == PRIO_PORTS_MAX) {
		log_error("port %s: at most %u ports can have \"priorities\"", cp->name,
			PRIO_PORTS_MAX);
		return -EINVAL;
	}
	dp->ports[i].has_prio = true;
	p->first = (uint8_t)(1 + nth * (PRIO_N - 1));
	memcpy(p->map.dscp, c->dscp_prio, sizeof(p->map.dscp));
	memcpy(p->weight, c->weights, sizeof(p->weight));
	p->map.other = c->default_prio;
	for (uint8_t k = 0; k < PRIO_N; k++)
		p->map.pcp[k] = c->pcp_prio[k] != CONF_PRIO_NONE ? c->pcp_prio[k] : k;
	for (uint32_t k = 0; k < c->n_prio_pfc; k++)
		p->pause.conf.obeyed |= (uint8_t)(1u << c->prio_pfc[k]);
	p->pause.conf.global = c->rx_pause;
	p->pause.conf.most = c->pause_max * TIME_NS_PER_MS;
	p->pause.conf.restore = c->pause_restore * TIME_NS_PER_MS;
	return 0;
}
