/* SPDX-License-Identifier: BSD-3-Clause */
/* What wire_read_wide() and wire_read_like() compare a header with. */
#include "wire_wide.h"

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
