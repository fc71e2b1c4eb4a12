/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for the control lcore: which protocol gets one. */
#include <string.h>

#include <rte_mbuf.h>

#include "be.h"
#include "env.h"
#include "net.h"

enum { TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806, TYPE_VLAN = 0x8100, TYPE_IPV6 = 0x86dd };
enum {
	PROTO_HOP_BY_HOP = 0,
	PROTO_ICMP = 1,
	PROTO_IGMP = 2,
	PROTO_UDP = 17,
	PROTO_ICMPV6 = 58,
	PROTO_NONE = 255
};

/* Ethernet and at most one tag. @return false: too short. */
static bool
open_frame(struct frame_in *f, uint32_t len)
{
	uint32_t at = WIRE_ETH_LEN;

	if (len < WIRE_ETH_LEN)
		return false;
	f->ethertype = be16_load(f->l2 + 12);
	if (f->ethertype == TYPE_VLAN) {
		at += WIRE_VLAN_LEN;
		if (len < at)
			return false;
		f->tagged = true;
		f->tci = be16_load(f->l2 + 14);
		f->ethertype = be16_load(f->l2 + 16);
	}
	f->l3 = f->l2 + at;
	f->l3_len = len - at;
	return true;
}

static bool
is_ip(const struct frame_in *f, uint16_t type, uint32_t header)
{
	return f->ethertype == type && f->l3_len >= header;
}

/* Of UDP the workers send what is for QP 1 alone. */
static void
dispatch(struct net *net, const struct frame_in *f, uint32_t len)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const uint8_t *mac = net->env->w.ports[f->port].addr->mac;
	const uint8_t ip4 = is_ip(f, TYPE_IPV4, WIRE_IPV4_LEN) ? f->l3[9] : PROTO_NONE;
	const uint8_t ip6 = is_ip(f, TYPE_IPV6, WIRE_IPV6_LEN) ? f->l3[6] : PROTO_NONE;

	if (memcmp(f->l2, mac, 6) != 0 && memcmp(f->l2, broadcast, 6) != 0 &&
		!(f->ethertype == TYPE_IPV6 && f->l2[0] == 0x33 && f->l2[1] == 0x33) &&
		!(ip4 == PROTO_IGMP && (f->l2[0] & 1) != 0)) {
		net->frames.rx_ignored++;
		return;
	}
	if (f->ethertype == TYPE_ARP)
		arp_receive(net, f);
	else if (ip4 == PROTO_ICMP)
		icmp_receive(net, f);
	else if (ip4 == PROTO_IGMP)
		igmp_receive(net, f);
	else if (ip6 == PROTO_ICMPV6)
		icmp6_receive(net, f);
	else if (ip6 == PROTO_HOP_BY_HOP)
		mld_receive(net, f);
	else if ((ip4 == PROTO_UDP || ip6 == PROTO_UDP) && net->up.datagram != NULL)
		net->up.datagram(net->up.ctx, f->port, f->l2, len);
	else
		net->frames.rx_ignored++;
}

void
frames_receive(struct net *net, struct rte_mbuf *m, uint16_t dpdk_port)
{
	const int port = env_port_index(net->env, dpdk_port);
	const uint32_t len = rte_pktmbuf_pkt_len(m);
	struct frame_in f = { .port = (uint16_t)port };

	net->frames.rx++;
	if (port >= 0 && len <= sizeof(net->frame_rx))
		f.l2 = rte_pktmbuf_read(m, 0, len, net->frame_rx);
	if (f.l2 != NULL && open_frame(&f, len))
		dispatch(net, &f, len);
	else
		net->frames.rx_ignored++;
	rte_pktmbuf_free(m);
}
