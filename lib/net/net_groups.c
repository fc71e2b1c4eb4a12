/* SPDX-License-Identifier: BSD-3-Clause */
#include "net_groups.h"

#include "frames.h"
#include "wire_group.h"

uint32_t
net_groups(const struct wire_port *us, struct conf_ip out[NET_GROUPS])
{
	uint8_t link_local[16];
	uint32_t n = 0;

	if (us->has_ipv4)
		out[n++] = (struct conf_ip){ .family = 4, .addr = { 224, 0, 0, 1 } };
	if (!us->has_ipv6)
		return n;
	out[n++] = (struct conf_ip){ .family = 6, .addr = { 0xff, 0x02, [15] = 1 } };
	out[n] = (struct conf_ip){ .family = 6 };
	wire_group_solicited(us->ipv6, out[n++].addr);
	frames_link_local(us, link_local);
	out[n] = (struct conf_ip){ .family = 6 };
	wire_group_solicited(link_local, out[n++].addr);
	return n;
}
