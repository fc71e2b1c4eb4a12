/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_peek.h"

#include "be.h"
#include "wire.h"

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,
	PROTO_UDP = 17,
	IPV4_OFFSET = 0x1fff,
	UDP_AND_BTH = WIRE_UDP_LEN + WIRE_BTH_LEN,
};

_Static_assert(WIRE_ETH_LEN + WIRE_VLAN_LEN + 60 + UDP_AND_BTH == IMPAIR_PEEK_LEN,
	"the longest header that may be looked at");

/* From the UDP header, whose bytes and the BTH's are all there. */
static void
peek_udp(const uint8_t *udp, struct impair_pkt *p)
{
	const uint8_t *bth = udp + WIRE_UDP_LEN;
	opflags_t op;

	if (be16_load(udp + 2) != WIRE_UDP_PORT || be16_load(udp + 4) < UDP_AND_BTH)
		return;
	op = wire_opcodes[bth[0]].flags;
	p->opcode = bth[0];
	p->qpn = be24_load(bth + 5);
	p->psn = be24_load(bth + 9);
	p->kind |= IMPAIR_PKT_ROCE;
	if (op_has(op, OPF_REQUEST))
		p->kind |= IMPAIR_PKT_REQUEST;
	if (op_has(op, OPF_RESPONSE))
		p->kind |= IMPAIR_PKT_RESPONSE;
}

static void
peek_ipv4(const uint8_t *ip, uint32_t have, struct impair_pkt *p)
{
	uint32_t hdr_len;

	if (have < WIRE_IPV4_LEN || ip[0] >> 4 != 4)
		return;
	p->kind |= IMPAIR_PKT_IPV4;
	hdr_len = (ip[0] & 15u) * 4;
	if (hdr_len < WIRE_IPV4_LEN || have < hdr_len + UDP_AND_BTH)
		return;
	if (ip[9] == PROTO_UDP && (be16_load(ip + 6) & IPV4_OFFSET) == 0)
		peek_udp(ip + hdr_len, p);
}

static void
peek_ipv6(const uint8_t *ip, uint32_t have, struct impair_pkt *p)
{
	if (have < WIRE_IPV6_LEN || ip[0] >> 4 != 6)
		return;
	p->kind |= IMPAIR_PKT_IPV6;
	if (have >= WIRE_IPV6_LEN + UDP_AND_BTH && ip[6] == PROTO_UDP)
		peek_udp(ip + WIRE_IPV6_LEN, p);
}

struct impair_pkt
impair_peek(const uint8_t *frame, uint32_t have, uint32_t len)
{
	struct impair_pkt p = { .len = len };
	uint32_t l3_off = WIRE_ETH_LEN;
	uint16_t type;

	if (have < l3_off)
		return p;
	type = be16_load(frame + 12);
	if (type == ETHERTYPE_VLAN) {
		l3_off += WIRE_VLAN_LEN;
		if (have < l3_off)
			return p;
		type = be16_load(frame + 16);
	}
	p.l3_off = (uint16_t)l3_off;
	if (type == ETHERTYPE_IPV4)
		peek_ipv4(frame + l3_off, have - l3_off, &p);
	else if (type == ETHERTYPE_IPV6)
		peek_ipv6(frame + l3_off, have - l3_off, &p);
	return p;
}
