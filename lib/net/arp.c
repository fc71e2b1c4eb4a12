/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "be.h"
#include "env.h"
#include "net.h"

/* ARP over Ethernet and IPv4: RFC 826. */

enum { ARP_LEN = 28, ARP_REQUEST = 1, ARP_REPLY = 2, TYPE_ARP = 0x0806 };
enum {
	AT_HTYPE = 0,
	AT_PTYPE = 2,
	AT_HLEN = 4,
	AT_PLEN = 5,
	AT_OP = 6,
	AT_SHA = 8,
	AT_SPA = 14,
	AT_THA = 18,
	AT_TPA = 24
};

static void
arp_send(struct net *net, uint16_t port, uint16_t tci, uint16_t op, const uint8_t *tha,
	const uint8_t *tpa)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const struct wire_port *us = net->env->w.ports[port].addr;
	uint8_t frame[WIRE_ETH_LEN + WIRE_VLAN_LEN + ARP_LEN];
	uint32_t at = frames_header(frame, tha != NULL ? tha : broadcast, us->mac, tci, TYPE_ARP);
	uint8_t *arp = frame + at;

	memset(arp, 0, ARP_LEN);
	be16_store(arp + AT_HTYPE, 1);
	be16_store(arp + AT_PTYPE, 0x0800);
	arp[AT_HLEN] = 6;
	arp[AT_PLEN] = 4;
	be16_store(arp + AT_OP, op);
	memcpy(arp + AT_SHA, us->mac, 6);
	memcpy(arp + AT_SPA, us->ipv4, 4);
	if (tha != NULL)
		memcpy(arp + AT_THA, tha, 6);
	memcpy(arp + AT_TPA, tpa, 4);
	frames_send(net, port, frame, at + ARP_LEN);
}

void
arp_request(struct net *net, const struct neigh *n)
{
	if (net->env->w.ports[n->port].addr->has_ipv4)
		arp_send(net, n->port, n->vlan, ARP_REQUEST, NULL, n->ip.addr);
}

void
arp_receive(struct net *net, const struct frame_in *f)
{
	const struct wire_port *us = net->env->w.ports[f->port].addr;
	const uint8_t *arp = f->l3;
	struct neigh_key key = { .ip.family = 4, .port = f->port, .vlan = f->tci & 0xfff };
	bool for_us, somebody;
	uint16_t op;

	if (f->l3_len < ARP_LEN || be16_load(arp + AT_HTYPE) != 1 ||
		be16_load(arp + AT_PTYPE) != 0x0800 || arp[AT_HLEN] != 6 || arp[AT_PLEN] != 4 ||
		!us->has_ipv4) {
		net->frames.rx_ignored++;
		return;
	}
	op = be16_load(arp + AT_OP);
	for_us = memcmp(arp + AT_TPA, us->ipv4, 4) == 0;
	somebody = frames_is_other(us, arp + AT_SHA);
	/* A probe (sender 0.0.0.0) tells nothing; our own address is not a neighbour's. */
	memcpy(key.ip.addr, arp + AT_SPA, 4);
	if (somebody && memcmp(arp + AT_SPA, us->ipv4, 4) == 0)
		neigh_claimed(net, &key, arp + AT_SHA);
	else if (somebody && be32_load(arp + AT_SPA) != 0 && arp[AT_SPA] < 224)
		neigh_learn(net, &key, arp + AT_SHA, for_us);
	if (op == ARP_REQUEST && for_us && somebody)
		arp_send(net, f->port, f->tci, ARP_REPLY, arp + AT_SHA, arp + AT_SPA);
}
