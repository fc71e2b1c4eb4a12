/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from fields: the general builder, and the template a QP sends from. */
#include <errno.h>

#include "wire_build.h"
#include "wire_ext.h"
#include "invariant.h"

enum {
	PROTO_UDP = 17,
	BTH_SE = 0x80,
	BTH_MIGREQ = 0x40,
	BTH_FECN = 0x80,
	BTH_BECN = 0x40,
	BTH_ACKREQ = 0x80,
};

/** Ethernet and IP headers with zero lengths and checksum. @return offset of the UDP header. */
static uint32_t
put_lower(const struct wire_path *path, uint8_t *b, uint32_t *l3_off)
{
	uint32_t at = 12;

	memcpy(b, path->dmac, 6);
	memcpy(b + 6, path->smac, 6);
	if (path->vlan) {
		be16_store(b + at, 0x8100);
		be16_store(b + at + 2, path->vlan_tci);
		at += WIRE_VLAN_LEN;
	}
	be16_store(b + at, path->ipv6 ? 0x86dd : 0x0800);
	at += 2;
	*l3_off = at;

	if (path->ipv6) {
		be32_store(b + at, UINT32_C(6) << 28 | (uint32_t)path->tos << 20 |
					   (path->flow_label & 0xfffff));
		be16_store(b + at + 4, 0);
		b[at + 6] = PROTO_UDP;
		b[at + 7] = path->ttl;
		memcpy(b + at + 8, path->src_ip, 16);
		memcpy(b + at + 24, path->dst_ip, 16);
		return at + WIRE_IPV6_LEN;
	}
	b[at] = 0x45;
	b[at + 1] = path->tos;
	be32_store(b + at + 2, 0);
	be16_store(b + at + 6, WIRE_IPV4_DF);
	b[at + 8] = path->ttl;
	b[at + 9] = PROTO_UDP;
	be16_store(b + at + 10, 0);
	memcpy(b + at + 12, path->src_ip, 4);
	memcpy(b + at + 16, path->dst_ip, 4);
	return at + WIRE_IPV4_LEN;
}

/** UDP header with zero length; the checksum is left out, as RoCEv2 senders may (WIRE-15). */
static void
put_udp(const struct wire_path *path, uint8_t *udp)
{
	be16_store(udp, path->sport);
	be16_store(udp + 2, WIRE_UDP_PORT);
	be32_store(udp + 4, 0);
}

static uint32_t
ipv4_words(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < WIRE_IPV4_LEN; i += 2)
		sum += be16_load(ip + i);
	return sum;
}

static void
put_bth(uint8_t *b, const struct wire_fields *f, uint32_t pad)
{
	b[0] = f->opcode;
	b[1] = (uint8_t)(((f->flags & PKT_SE) != 0 ? BTH_SE : 0) |
			 ((f->flags & PKT_MIGREQ) != 0 ? BTH_MIGREQ : 0) | pad << 4 |
			 (f->tver & 0xf));
	be16_store(b + 2, f->pkey);
	be32_store(b + 4, f->dest_qpn & PSN_MASK);
	b[4] = (uint8_t)(((f->flags & PKT_FECN) != 0 ? BTH_FECN : 0) |
			 ((f->flags & PKT_BECN) != 0 ? BTH_BECN : 0));
	be32_store(b + 8, f->psn.v & PSN_MASK);
	b[8] = (f->flags & PKT_ACKREQ) != 0 ? BTH_ACKREQ : 0;
}

int
wire_build(const struct wire_path *path, const struct wire_fields *f, uint16_t ip_id, uint8_t *buf,
	size_t room)
{
	const struct wire_opcode *op = &wire_opcodes[f->opcode];
	uint32_t pad = (4u - f->payload_len % 4) % 4;
	uint32_t udp_len = WIRE_UDP_LEN + op->hdr_len + f->payload_len + pad + WIRE_ICRC_LEN;
	uint32_t l2_len = WIRE_ETH_LEN + (path->vlan ? WIRE_VLAN_LEN : 0);
	uint32_t l3_len = path->ipv6 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN;
	uint32_t udp_off, l3_off;
	uint8_t *ip, *p;

	if ((path->ipv6 ? udp_len : l3_len + udp_len) > UINT16_MAX ||
		l2_len + l3_len + udp_len > room)
		return -EMSGSIZE;

	udp_off = put_lower(path, buf, &l3_off);
	put_udp(path, buf + udp_off);
	be16_store(buf + udp_off + 4, (uint16_t)udp_len);
	ip = buf + l3_off;
	if (path->ipv6) {
		be16_store(ip + 4, (uint16_t)udp_len);
	} else {
		be16_store(ip + 2, (uint16_t)(l3_len + udp_len));
		be16_store(ip + 4, ip_id);
		be16_store(ip + 10, (uint16_t)~wire_sum_fold(ipv4_words(ip)));
	}

	put_bth(buf + udp_off + WIRE_UDP_LEN, f, pad);
	p = wire_ext_write(buf + udp_off + WIRE_UDP_LEN + WIRE_BTH_LEN, op->flags, f);
	ASSERT(op->name == NULL || p == buf + udp_off + WIRE_UDP_LEN + op->hdr_len);
	ASSERT(l3_off + l3_len == udp_off);
	if (f->payload_len != 0)
		memcpy(p, f->payload, f->payload_len);
	memset(p + f->payload_len, 0, pad + WIRE_ICRC_LEN);
	return (int)(udp_off + udp_len);
}

void
wire_template_init(
	struct wire_template *t, const struct wire_path *path, uint16_t pkey, uint32_t dest_qpn)
{
	const struct wire_fields f = { .pkey = pkey, .dest_qpn = dest_qpn };
	uint32_t udp_off, l3_off;

	memset(t, 0, sizeof(*t));
	udp_off = put_lower(path, t->bytes, &l3_off);
	put_udp(path, t->bytes + udp_off);
	put_bth(t->bytes + udp_off + WIRE_UDP_LEN, &f, 0);
	t->l3_off = (uint8_t)l3_off;
	t->bth_off = (uint8_t)(udp_off + WIRE_UDP_LEN);
	t->len = (uint8_t)(t->bth_off + WIRE_BTH_LEN);
	ASSERT(t->len <= WIRE_TEMPLATE_MAX);
	t->ipv6 = path->ipv6;
	t->ipv4_sum = path->ipv6 ? 0 : ipv4_words(t->bytes + l3_off);
}

void
wire_template_write(const struct wire_template *t, uint8_t *frame, uint8_t opcode,
	uint8_t bth_flags, uint8_t pad, psn_t p, uint16_t after_bth)
{
	uint32_t udp_len = WIRE_UDP_LEN + WIRE_BTH_LEN + (uint32_t)after_bth + WIRE_ICRC_LEN;
	uint8_t *ip = frame + t->l3_off;
	uint8_t *bth = frame + t->bth_off;

	ASSERT(t->len == t->bth_off + WIRE_BTH_LEN && t->len <= WIRE_TEMPLATE_MAX);
	ASSERT(after_bth % 4 == 0 && pad < 4 && p.v <= PSN_MASK);
	ASSERT((bth_flags & ~(PKT_ACKREQ | PKT_SE | PKT_MIGREQ)) == 0);
	/* A constant size: the compiler makes it a handful of vector stores. */
	memcpy(frame, t->bytes, sizeof(t->bytes));
	if (t->ipv6 != 0) {
		be16_store(ip + 4, (uint16_t)udp_len);
	} else {
		uint32_t total_len = WIRE_IPV4_LEN + udp_len;

		be16_store(ip + 2, (uint16_t)total_len);
		be16_store(ip + 10, (uint16_t)~wire_sum_fold(t->ipv4_sum + total_len));
	}
	be16_store(bth - 4, (uint16_t)udp_len);
	bth[0] = opcode;
	/* SE and MigReq stand where the flags have them. */
	bth[1] = (uint8_t)((bth_flags & (PKT_SE | PKT_MIGREQ)) | (pad & 3) << 4);
	be32_store(bth + 8, (uint32_t)(bth_flags & PKT_ACKREQ) << 31 | p.v);
}

/** Another traffic class than the template's, and another priority in its tag. */
static void
put_class(const struct wire_template *t, uint8_t *frame, const struct wire_cnp *c)
{
	uint8_t *ip = frame + t->l3_off;

	ASSERT(c->prio < 8);
	if (t->l3_off != WIRE_ETH_LEN)
		frame[WIRE_ETH_LEN] = (uint8_t)((frame[WIRE_ETH_LEN] & 0x1f) | c->prio << 5);
	if (t->ipv6 != 0) {
		ip[0] = (uint8_t)(0x60 | c->tos >> 4);
		ip[1] = (uint8_t)((ip[1] & 0xf) | c->tos << 4);
		return;
	}
	ip[1] = c->tos;
	be16_store(ip + 10, 0);
	be16_store(ip + 10, (uint16_t)~wire_sum_fold(ipv4_words(ip)));
}

uint32_t
wire_cnp_write(const struct wire_template *t, uint8_t *frame, const struct wire_cnp *c)
{
	wire_template_write(t, frame, OP_CNP, 0, 0, psn(0), WIRE_CNP_PAYLOAD_LEN);
	put_class(t, frame, c);
	frame[t->bth_off + 4] = BTH_BECN;
	memset(frame + t->len, 0, WIRE_CNP_PAYLOAD_LEN + WIRE_ICRC_LEN);
	return (uint32_t)t->len + WIRE_CNP_PAYLOAD_LEN + WIRE_ICRC_LEN;
}
