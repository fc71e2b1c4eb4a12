/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_ethdev.h>

/**
 * Drivers on top of a kernel interface (af_packet is one) say "up" whatever happens to it: cable
 * out, set down, deleted. And they hand over frames that it is too small for. The kernel is asked.
 * @return 0, or -errno: it cannot be asked, for want of a descriptor for example.
 */
static int
look_at_interface(unsigned int if_index, struct link_view *out)
{
	struct ifreq req = { .ifr_ifindex = (int)if_index };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	out->has_interface = true;
	out->gone = ioctl(fd, SIOCGIFNAME, &req) != 0;
	if (out->gone) {
		out->up = false;
		close(fd);
		return 0;
	}
	memcpy(out->interface, req.ifr_name, sizeof(out->interface));
	out->set_up = true;
	if (ioctl(fd, SIOCGIFFLAGS, &req) == 0) {
		out->set_up = (req.ifr_flags & IFF_UP) != 0;
		out->up &= out->set_up && (req.ifr_flags & IFF_RUNNING) != 0;
	} else {
		out->up = false;
	}
	if (ioctl(fd, SIOCGIFMTU, &req) == 0 && req.ifr_mtu > 0)
		out->interface_mtu = (uint32_t)req.ifr_mtu;
	close(fd);
	return 0;
}

int
link_look(uint16_t port, struct link_view *out)
{
	struct rte_eth_dev_info info;
	struct rte_eth_link link = { 0 };
	int rc;

	*out = (struct link_view){ 0 };
	if (!rte_eth_dev_is_valid_port(port))
		return -ENODEV;
	rc = rte_eth_link_get_nowait(port, &link);
	if (rc != 0)
		return rc;
	out->up = link.link_status == RTE_ETH_LINK_UP;
	out->speed_mbps = link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN ? link.link_speed : 0;
	if (rte_eth_dev_info_get(port, &info) == 0 && info.if_index != 0)
		rc = look_at_interface(info.if_index, out);
	return rc;
}
