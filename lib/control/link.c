/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_ethdev.h>

/**
 * Drivers on top of a kernel interface (af_packet is one) say "up" whatever happens to it: cable
 * out, set down, deleted. The kernel is asked instead.
 */
static bool
is_running(unsigned int if_index)
{
	struct ifreq req = { 0 };
	bool running = false;
	int fd;

	if (if_indextoname(if_index, req.ifr_name) == NULL)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true; /* nobody to ask: as the driver says */
	if (ioctl(fd, SIOCGIFFLAGS, &req) == 0)
		running = (req.ifr_flags & IFF_UP) != 0 && (req.ifr_flags & IFF_RUNNING) != 0;
	close(fd);
	return running;
}

int
link_look(uint16_t port, struct link_view *out)
{
	struct rte_eth_dev_info info;
	struct rte_eth_link link = { 0 };
	int rc;

	if (!rte_eth_dev_is_valid_port(port))
		return -ENODEV;
	rc = rte_eth_link_get_nowait(port, &link);
	if (rc != 0)
		return rc;
	out->up = link.link_status == RTE_ETH_LINK_UP;
	out->speed_mbps = link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN ? link.link_speed : 0;
	if (out->up && rte_eth_dev_info_get(port, &info) == 0 && info.if_index != 0)
		out->up = is_running(info.if_index);
	return 0;
}
