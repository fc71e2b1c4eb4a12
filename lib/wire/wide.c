/* SPDX-License-Identifier: BSD-3-Clause */
/* What wire_read_wide(), wire_read_like() and wire_read_alike() compare a header with. */
#include "wire_alike.h"

enum {
	AT_ETHERTYPE = 12,
	AT_VERSION = 14,
	AT_TOS = 15,
	AT_FLAGS = 20,
	AT_FRAGMENT = 21,
	AT_PROTO = 23,
	AT_DST_IP = 30,
	AT_DPORT = 36,
	AT_UDP_SUM = 40, /* RoCE senders leave it out; others are looked at more closely */
	AT_BTH_TVER = 43,
	AT_BTH_ECN = 46, /* FECN, BECN, reserved bits */
};

const uint8_t wire_front_mask[64] CACHE_ALIGNED = {
	[0 ... 5] = 0xff,
	[AT_ETHERTYPE... AT_VERSION] = 0xff,
	[AT_FLAGS... AT_FRAGMENT] = 0xff,
	[AT_PROTO] = 0xff,
	[AT_DST_IP... AT_DST_IP + 3] = 0xff,
	[AT_DPORT... AT_DPORT + 1] = 0xff,
	[AT_UDP_SUM... AT_UDP_SUM + 1] = 0xff,
	[AT_BTH_TVER] = 0x0f,
	[AT_BTH_ECN] = 0xff,
};

/* All but addresses of the sender, its UDP port, the QP number and the PSN. */
const uint8_t wire_like_mask[64] CACHE_ALIGNED = {
	[0 ... 5] = 0xff,
	[AT_ETHERTYPE... AT_DST_IP + 3] = 0xff,
	[AT_DPORT... AT_BTH_ECN] = 0xff,
};

#if WIRE_WIDE
enum { L3 = WIRE_ETH_LEN, L3_TAGGED = WIRE_ETH_LEN + WIRE_VLAN_LEN };

/* Of the MAC, of what stands before the IP header and says what it is, and of its first bytes. */
#define BEGIN_MAC      [0 ... 5] = 0xff
#define BEGIN_IPV4(ip) [(ip)-2 ...(ip) + 3] = 0xff
#define BEGIN_IPV6(ip) [(ip)-2 ...(ip)] = 0xff, [(ip) + 1] = 0xf0, [(ip) + 4 ...(ip) + 6] = 0xff
#define BEGIN_TAG      [AT_ETHERTYPE... AT_ETHERTYPE + 1] = 0xff
/* Of the destination's address and what follows, up to the BTH's reserved bits; no source port. */
#define END_IP(n)   [32 + 16 - (n)... 32 + 15] = 0xff
#define END_UDP_BTH [32 + 18 ... 32 + 28] = 0xff
/* Of flags, fragment offset and protocol. */
#define END_IPV4 [32 + 2 ... 32 + 3] = 0xff, [32 + 5] = 0xff

const uint8_t wire_alike_masks[2][2][64] CACHE_ALIGNED = {
	{
		{ BEGIN_MAC, BEGIN_IPV4(L3), END_IPV4, END_IP(4), END_UDP_BTH },
		{ BEGIN_MAC, BEGIN_TAG, BEGIN_IPV4(L3_TAGGED), END_IPV4, END_IP(4), END_UDP_BTH },
	},
	{
		{ BEGIN_MAC, BEGIN_IPV6(L3), END_IP(16), END_UDP_BTH },
		{ BEGIN_MAC, BEGIN_TAG, BEGIN_IPV6(L3_TAGGED), END_IP(16), END_UDP_BTH },
	},
};
#endif

void
wire_front_init(struct wire_front *f, const struct wire_port *us)
{
	*f = (struct wire_front){ .want = {
					  [AT_ETHERTYPE] = 0x08,
					  [AT_VERSION] = 0x45,
					  [AT_FLAGS] = 0x40,
					  [AT_PROTO] = 17,
					  [AT_DPORT] = WIRE_UDP_PORT >> 8,
					  [AT_DPORT + 1] = WIRE_UDP_PORT & 0xff,
				  } };
	memcpy(f->want, us->mac, sizeof(us->mac));
	memcpy(f->want + AT_DST_IP, us->ipv4, sizeof(us->ipv4));
	if (!us->has_ipv4)
		f->want[AT_TOS] = 0xff; /* which is masked out of frames */
}
