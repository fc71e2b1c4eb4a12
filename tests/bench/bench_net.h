/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_NET_H
#define BENCH_NET_H
/**
 * @file bench_net.h  Paths between the two ends of a benchmark, by kind of network.
 *
 * Owner:   any lcore (pure functions).
 * Memory:  none.
 * Depends: wire.
 */
#include <stdint.h>
#include <string.h>

#include "wire_build.h"

/** What stands in front of the UDP header. */
enum bench_net {
	NET_IPV4,
	NET_VLAN, /* IPv4 behind a tag */
	NET_IPV6,
};

/** @param from @param to numbers of the ends: in the last byte of their addresses. */
static inline struct wire_path
bench_path(enum bench_net net, uint8_t from, uint8_t to)
{
	struct wire_path p = { .smac = { 2, 0, 0, 0, 0, from },
		.dmac = { 2, 0, 0, 0, 0, to },
		.src_ip = { 192, 0, 2, from },
		.dst_ip = { 192, 0, 2, to },
		.tos = 2,
		.ttl = 64,
		.sport = 0xc000 };

	if (net == NET_VLAN) {
		p.vlan = true;
		p.vlan_tci = 3 << 13 | 7;
	}
	if (net == NET_IPV6) {
		p.ipv6 = true;
		p.src_ip[15] = from;
		p.dst_ip[15] = to;
	}
	return p;
}

/** Where the IP header of a frame begins. */
static inline uint16_t
bench_ip(enum bench_net net)
{
	return WIRE_ETH_LEN + (net == NET_VLAN ? WIRE_VLAN_LEN : 0);
}

/** Where its BTH begins. */
static inline uint32_t
bench_bth(enum bench_net net)
{
	return bench_ip(net) + (net == NET_IPV6 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN) + WIRE_UDP_LEN;
}

/** The end that the frames of bench_path(net, from, to) come to, by both versions of IP. */
static inline void
bench_end(struct wire_port *end, uint8_t to)
{
	const struct wire_path four = bench_path(NET_IPV4, 0, to);
	const struct wire_path six = bench_path(NET_IPV6, 0, to);

	end->has_ipv4 = end->has_ipv6 = true;
	memcpy(end->mac, four.dmac, sizeof(end->mac));
	memcpy(end->ipv4, four.dst_ip, sizeof(end->ipv4));
	memcpy(end->ipv6, six.dst_ip, sizeof(end->ipv6));
}

#endif
