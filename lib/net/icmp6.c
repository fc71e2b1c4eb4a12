/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "be.h"
#include "env.h"
#include "net.h"
#include "wire_group.h"

/*
 * Neighbour discovery (RFC 4861) and echo (RFC 4443) over IPv6, without extension headers. A port
 * answers for the address of its configuration and for the link-local one that its MAC makes
 * (RFC 4291): hosts on the link ask from theirs, and may look for ours.
 */

enum { ICMP6_ECHO = 128, ICMP6_ECHO_REPLY = 129, ICMP6_NS = 135, ICMP6_NA = 136 };
enum { OPT_SOURCE_LL = 1, OPT_TARGET_LL = 2 };
enum { ND_LEN = 24, ND_OPT_LEN = 8, ECHO_LEN = 8, TYPE_IPV6 = 0x86dd, PROTO_ICMPV6 = 58 };

#define NA_SOLICITED UINT32_C(0x40000000)
#define NA_OVERRIDE  UINT32_C(0x20000000)

static const uint8_t unspecified[16];

static bool
is_ours(const struct wire_port *us, const uint8_t *addr)
{
	uint8_t own[16];

	frames_link_local(us, own);
	return memcmp(addr, us->ipv6, 16) == 0 || memcmp(addr, own, 16) == 0;
}

uint16_t
frames_checksum6(const uint8_t *ip, const uint8_t *icmp, uint32_t len)
{
	uint64_t sum = PROTO_ICMPV6 + len;

	for (unsigned int i = 8; i < WIRE_IPV6_LEN; i += 2)
		sum += be16_load(ip + i);
	return frames_checksum(sum, icmp, len);
}

/* IPv6 header in front of `len` bytes of ICMPv6. */
static uint8_t *
start_packet(uint8_t *ip, const uint8_t src[16], const uint8_t dst[16], uint32_t len)
{
	memset(ip, 0, WIRE_IPV6_LEN);
	ip[0] = 0x60;
	be16_store(ip + 4, (uint16_t)len);
	ip[6] = PROTO_ICMPV6;
	ip[7] = 255;
	memcpy(ip + 8, src, 16);
	memcpy(ip + 24, dst, 16);
	return ip + WIRE_IPV6_LEN;
}

static void
seal(uint8_t *ip, uint32_t len)
{
	uint8_t *icmp = ip + WIRE_IPV6_LEN;

	be16_store(icmp + 2, 0);
	be16_store(icmp + 2, frames_checksum6(ip, icmp, len));
}

/* A solicitation or an advertisement with one link-layer option. */
static void
nd_body(uint8_t *icmp, uint8_t type, uint32_t flags, const uint8_t target[16], const uint8_t mac[6])
{
	icmp[0] = type;
	icmp[1] = 0;
	be32_store(icmp + 4, flags);
	memcpy(icmp + 8, target, 16);
	icmp[ND_LEN] = type == ICMP6_NS ? OPT_SOURCE_LL : OPT_TARGET_LL;
	icmp[ND_LEN + 1] = 1;
	memcpy(icmp + ND_LEN + 2, mac, 6);
}

void
icmp6_solicit(struct net *net, const struct neigh *n)
{
	const struct wire_port *us = net->env->w.ports[n->port].addr;
	uint8_t group[16], dst[6];
	uint8_t frame[WIRE_ETH_LEN + WIRE_VLAN_LEN + WIRE_IPV6_LEN + ND_LEN + ND_OPT_LEN];
	uint8_t src[16];
	uint32_t at;

	if (!us->has_ipv6)
		return;
	if (n->ip.addr[0] == 0xfe && (n->ip.addr[1] & 0xc0) == 0x80)
		frames_link_local(us, src);
	else
		memcpy(src, us->ipv6, sizeof(src));
	wire_group_solicited(n->ip.addr, group);
	wire_group_mac(true, group, dst);
	at = frames_header(frame, dst, us->mac, n->vlan, TYPE_IPV6);
	nd_body(start_packet(frame + at, src, group, ND_LEN + ND_OPT_LEN), ICMP6_NS, 0, n->ip.addr,
		us->mac);
	seal(frame + at, ND_LEN + ND_OPT_LEN);
	frames_send(net, n->port, frame, at + WIRE_IPV6_LEN + ND_LEN + ND_OPT_LEN);
}

/**
 * Options come in units of 8 bytes, up to the message's end.
 * @param mac in the first of this type, or NULL. @return false: they do not (RFC 4861, 4.6, 7.1).
 */
static bool
nd_option(const uint8_t *icmp, uint32_t len, uint8_t type, const uint8_t **mac)
{
	*mac = NULL;
	for (uint32_t at = ND_LEN, opt_len; at < len; at += opt_len) {
		if (at + ND_OPT_LEN > len)
			return false;
		opt_len = icmp[at + 1] * 8u;
		if (opt_len == 0 || at + opt_len > len)
			return false;
		if (icmp[at] == type && *mac == NULL)
			*mac = icmp + at + 2;
	}
	return true;
}

static void
nd_learn(struct net *net, const struct frame_in *f, const uint8_t addr[16], const uint8_t *mac,
	bool for_us, bool overrides)
{
	struct neigh_key key = { .ip.family = 6, .port = f->port, .vlan = f->tci & 0xfff };
	const struct wire_port *us = net->env->w.ports[f->port].addr;

	if (mac == NULL || addr[0] == 0xff || memcmp(addr, unspecified, 16) == 0 ||
		!frames_is_other(us, mac))
		return;
	memcpy(key.ip.addr, addr, 16);
	if (is_ours(us, addr))
		neigh_claimed(net, &key, mac);
	else if (overrides || !neigh_doubted(net, &key, mac))
		neigh_learn(net, &key, mac, for_us);
}

/* RFC 4861, 7.1.1: who has no address yet asks the group of the address, and has no MAC to tell. */
static bool
may_be_anonymous(const struct frame_in *f, const uint8_t *target, const uint8_t *mac)
{
	uint8_t group[16];

	wire_group_solicited(target, group);
	return mac == NULL && memcmp(f->l3 + 24, group, sizeof(group)) == 0;
}

static void
solicitation(struct net *net, const struct frame_in *f, const uint8_t *icmp, uint32_t len)
{
	/* To all nodes when the asker has no address yet (duplicate detection). */
	static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };
	static const uint8_t all_nodes_mac[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	const struct wire_port *us = net->env->w.ports[f->port].addr;
	const uint8_t *src = f->l3 + 8, *target = icmp + 8;
	const bool anonymous = memcmp(src, unspecified, 16) == 0;
	uint8_t *out = net->frame_tx;
	const uint8_t *mac;
	uint32_t at;

	if (!nd_option(icmp, len, OPT_SOURCE_LL, &mac) || !is_ours(us, target) || src[0] == 0xff ||
		(anonymous && !may_be_anonymous(f, target, mac)))
		return;
	nd_learn(net, f, src, mac, true, true);
	at = frames_header(out, anonymous ? all_nodes_mac : f->l2 + 6, us->mac, f->tci, TYPE_IPV6);
	nd_body(start_packet(out + at, target, anonymous ? all_nodes : src, ND_LEN + ND_OPT_LEN),
		ICMP6_NA, (anonymous ? 0 : NA_SOLICITED) | NA_OVERRIDE, target, us->mac);
	seal(out + at, ND_LEN + ND_OPT_LEN);
	frames_send(net, f->port, out, at + WIRE_IPV6_LEN + ND_LEN + ND_OPT_LEN);
}

static void
advertisement(struct net *net, const struct frame_in *f, const uint8_t *icmp, uint32_t len)
{
	const struct wire_port *us = net->env->w.ports[f->port].addr;
	const uint32_t flags = be32_load(icmp + 4);
	const uint8_t *dst = f->l3 + 24, *mac;

	/* What goes to a group answers nobody (RFC 4861, 7.1.2). */
	if (!nd_option(icmp, len, OPT_TARGET_LL, &mac) ||
		(dst[0] == 0xff && (flags & NA_SOLICITED) != 0))
		return;
	nd_learn(net, f, icmp + 8, mac, is_ours(us, dst), (flags & NA_OVERRIDE) != 0);
}

static void
echo(struct net *net, const struct frame_in *f, const uint8_t *icmp, uint32_t len)
{
	const struct wire_port *us = net->env->w.ports[f->port].addr;
	uint8_t *out = net->frame_tx;
	uint32_t at;
	uint8_t *reply;

	if (!is_ours(us, f->l3 + 24) || f->l3[8] == 0xff ||
		memcmp(f->l3 + 8, unspecified, 16) == 0 ||
		len + WIRE_ETH_LEN + WIRE_VLAN_LEN + WIRE_IPV6_LEN > sizeof(net->frame_tx))
		return;
	at = frames_header(out, f->l2 + 6, us->mac, f->tci, TYPE_IPV6);
	reply = start_packet(out + at, f->l3 + 24, f->l3 + 8, len);
	memcpy(reply, icmp, len);
	reply[0] = ICMP6_ECHO_REPLY;
	seal(out + at, len);
	frames_send(net, f->port, out, at + WIRE_IPV6_LEN + len);
}

void
icmp6_receive(struct net *net, const struct frame_in *f)
{
	const uint8_t *icmp = f->l3 + WIRE_IPV6_LEN;
	const uint32_t len = be16_load(f->l3 + 4);
	const bool nd = len >= ND_LEN && f->l3[7] == 255;

	if (f->l3[0] >> 4 != 6 || len < ECHO_LEN || len > f->l3_len - WIRE_IPV6_LEN ||
		!net->env->w.ports[f->port].addr->has_ipv6 || icmp[1] != 0 ||
		frames_checksum6(f->l3, icmp, len) != 0 || (f->l2[6] & 1) != 0) {
		net->frames.rx_ignored++;
		return;
	}
	if (icmp[0] == ICMP6_ECHO)
		echo(net, f, icmp, len);
	else if (icmp[0] == ICMP6_NS && nd)
		solicitation(net, f, icmp, len);
	else if (icmp[0] == ICMP6_NA && nd)
		advertisement(net, f, icmp, len);
	else
		net->frames.rx_ignored++;
}
