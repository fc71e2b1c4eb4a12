/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <errno.h>

#include "net_groups.h"

/* Switches that snoop are told of them, or solicitations would not reach the port. */
static int
join_own(struct net *net)
{
	struct conf_ip group[NET_GROUPS];

	for (uint32_t p = 0; p < net->env->w.ports_n; p++) {
		const uint32_t n = net_groups(net->env->w.ports[p].addr, group);

		for (uint32_t i = 0; i < n; i++)
			if (members_join(net, (uint16_t)p, &group[i]) != 0)
				return -ENOMEM;
	}
	return 0;
}

int
net_init(struct net *net, struct env *env, const struct net_up *up)
{
	net->env = env;
	net->up = *up;
	neigh_init(&net->neighs);
	members_init(&net->members);
	if (join_own(net) != 0 || routes_init(net) != 0)
		return -ENOMEM;
	return neigh_configure(net);
}

void
net_fini(struct net *net)
{
	if (net->env == NULL)
		return;
	neigh_fini(&net->neighs);
	members_fini(&net->members);
	routes_fini(net);
}

uint32_t
net_poll(struct net *net)
{
	const uint32_t work = neigh_poll(net) + members_poll(net);

	link_poll(net);
	return work;
}
