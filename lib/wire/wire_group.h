/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_GROUP_H
#define WIRE_GROUP_H
/**
 * @file wire_group.h  Multicast groups: their addresses, and the MACs that Ethernet has for them.
 *
 * Owner:   any thread.
 * Memory:  the caller's.
 * Depends: base.
 * Spec:    UD-31.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/** Is it an address of 224.0.0.0/4, or of ff00::/8? */
static inline bool
wire_is_group(bool ipv6, const uint8_t *addr)
{
	return ipv6 ? addr[0] == 0xff : addr[0] >> 4 == 0xe;
}

/** Is it the IP header of a datagram to a group? */
static inline bool
wire_ip_is_group(const uint8_t *l3)
{
	return l3[0] >> 4 == 6 ? wire_is_group(true, l3 + 24) : wire_is_group(false, l3 + 16);
}

/** 01:00:5e and 23 bits of the IPv4 address; 33:33 and 32 bits of the IPv6 address. */
static inline void
wire_group_mac(bool ipv6, const uint8_t *addr, uint8_t mac[6])
{
	if (ipv6) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, addr + 12, 4);
		return;
	}
	mac[0] = 0x01;
	mac[1] = 0x00;
	mac[2] = 0x5e;
	mac[3] = addr[1] & 0x7f;
	mac[4] = addr[2];
	mac[5] = addr[3];
}

/** RFC 4291, 2.7.1: the group at which neighbours ask for this IPv6 address. */
static inline void
wire_group_solicited(const uint8_t addr[16], uint8_t group[16])
{
	static const uint8_t prefix[13] = { 0xff, 0x02, [11] = 1, [12] = 0xff };

	memcpy(group, prefix, sizeof(prefix));
	memcpy(group + sizeof(prefix), addr + sizeof(prefix), 3);
}

/** The address as a GID: an IPv4 one is ::ffff:a.b.c.d. */
static inline void
wire_group_gid(bool ipv6, const uint8_t *addr, uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (ipv6) {
		memcpy(gid, addr, 16);
		return;
	}
	memcpy(gid, mapped, sizeof(mapped));
	memcpy(gid + sizeof(mapped), addr, 4);
}

#endif
