/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <errno.h>

int
net_init(struct net *net, struct env *env, const struct net_up *up)
{
	net->env = env;
	net->up = *up;
	neigh_init(&net->neighs);
	members_init(&net->members);
	return routes_init(net) != 0 ? -ENOMEM : neigh_configure(net);
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
