/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "be.h"
#include "env.h"
#include "net.h"

/* ICMP echo over IPv4: RFC 792. Fragments and options are not answered. */

enum { ICMP_LEN = 8, ICMP_ECHO_REPLY = 0, ICMP_ECHO = 8, TYPE_IPV4 = 0x0800 };
#define FRAGMENT_BITS 0x3fff /* MF and offset */
#define REPLY_TTL     64

static bool
echo_is_for_us(const struct net *net, const struct frame_in *f, uint32_t *total)
{
	const uint8_t *ip = f->l3;
	const struct wire_port *us = net->env->w.ports[f->port].addr;
	const uint8_t *icmp = ip + WIRE_IPV4_LEN;

	*total = be16_load(ip + 2);
	if (ip[0] != 0x45 || *total < WIRE_IPV4_LEN + ICMP_LEN || *total > f->l3_len)
		return false;
	if (frames_checksum(0, ip, WIRE_IPV4_LEN) != 0 || (be16_load(ip + 6) & FRAGMENT_BITS) != 0)
		return false;
	if (!us->has_ipv4 || memcmp(ip + 16, us->ipv4, 4) != 0)
		return false;
	/* Never answer to a broadcast or multicast source. */
	if (ip[12] == 0 || ip[12] >= 224 || (f->l2[6] & 1) != 0)
		return false;
	return icmp[0] == ICMP_ECHO && icmp[1] == 0 &&
	       frames_checksum(0, icmp, *total - WIRE_IPV4_LEN) == 0;
}

void
icmp_receive(struct net *net, const struct frame_in *f)
{
	const struct wire_port *us = net->env->w.ports[f->port].addr;
	uint8_t *out = net->frame_tx;
	uint32_t total, at;
	uint8_t *ip, *icmp;

	if (!echo_is_for_us(net, f, &total) ||
		total + WIRE_ETH_LEN + WIRE_VLAN_LEN > sizeof(net->frame_tx)) {
		net->frames.rx_ignored++;
		return;
	}
	at = frames_header(out, f->l2 + 6, us->mac, f->tci, TYPE_IPV4);
	ip = out + at;
	icmp = ip + WIRE_IPV4_LEN;
	memcpy(ip, f->l3, total);
	memcpy(ip + 12, us->ipv4, 4);
	memcpy(ip + 16, f->l3 + 12, 4);
	ip[8] = REPLY_TTL;
	be16_store(ip + 10, 0);
	be16_store(ip + 10, frames_checksum(0, ip, WIRE_IPV4_LEN));
	icmp[0] = ICMP_ECHO_REPLY;
	be16_store(icmp + 2, 0);
	be16_store(icmp + 2, frames_checksum(0, icmp, total - WIRE_IPV4_LEN));
	frames_send(net, f->port, out, at + total);
}
