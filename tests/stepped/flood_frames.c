/* SPDX-License-Identifier: BSD-3-Clause */
#include "flood_frames.h"

#include <string.h>

#include <zlib.h>

enum {
	ETH_LEN = 14,
	IPV4_LEN = 20,
	IPV6_LEN = 40,
	UDP_LEN = 8,
	BTH_LEN = 12,
	ICRC_LEN = 4,
	ROCE_PORT = 4791,
};

uint32_t
flood_random(struct flood_rng *r, uint32_t below)
{
	r->s ^= r->s << 13;
	r->s ^= r->s >> 7;
	r->s ^= r->s << 17;
	return (uint32_t)(((r->s >> 32) * below) >> 32);
}

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

static uint32_t
get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t
ip_len_of(const uint8_t *frame)
{
	return get16(frame + 12) == 0x86dd ? IPV6_LEN : IPV4_LEN;
}

/** ICRC over an untagged frame whose packet ends at `end` (before the ICRC). */
static uint32_t
icrc(const uint8_t *frame, uint32_t end)
{
	static const uint8_t lrh[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint8_t head[IPV6_LEN + UDP_LEN + BTH_LEN];
	uint32_t ip = ip_len_of(frame), n = ip + UDP_LEN + BTH_LEN;
	uLong crc = crc32(0, lrh, sizeof(lrh));

	memcpy(head, frame + ETH_LEN, n);
	if (ip == IPV4_LEN) {
		head[1] = head[8] = head[10] = head[11] = 0xff;
	} else {
		head[0] |= 0x0f;
		head[1] = head[2] = head[3] = head[7] = 0xff;
	}
	head[ip + 6] = head[ip + 7] = 0xff;
	head[ip + UDP_LEN + 4] = 0xff;
	crc = crc32(crc, head, n);
	return (uint32_t)crc32(crc, frame + ETH_LEN + n, end - ETH_LEN - n);
}

/** Where the packet ends by its UDP length, if that is plausible; else 0. */
static uint32_t
packet_end(const uint8_t *frame, uint32_t len)
{
	uint32_t udp, end;

	if (len < ETH_LEN + IPV4_LEN + UDP_LEN ||
		(get16(frame + 12) != 0x0800 && get16(frame + 12) != 0x86dd))
		return 0;
	udp = ETH_LEN + ip_len_of(frame);
	if (len < udp + UDP_LEN)
		return 0;
	end = udp + get16(frame + udp + 4);
	if (end > len || end < udp + UDP_LEN + BTH_LEN + ICRC_LEN)
		return 0;
	return end - ICRC_LEN;
}

static void
store_icrc(struct flood_frame *f)
{
	uint32_t end = packet_end(f->b, f->len);

	if (end != 0) {
		uint32_t crc = icrc(f->b, end);

		for (int i = 0; i < ICRC_LEN; i++)
			f->b[end + i] = (uint8_t)(crc >> 8 * i);
	}
}

bool
flood_icrc_ok(const uint8_t *frame, uint32_t len)
{
	uint32_t end = packet_end(frame, len), crc;

	if (end == 0 || get16(frame + ETH_LEN + ip_len_of(frame) + 2) != ROCE_PORT)
		return true;
	crc = icrc(frame, end);
	for (int i = 0; i < ICRC_LEN; i++) {
		if (frame[end + i] != (uint8_t)(crc >> 8 * i))
			return false;
	}
	return true;
}

static void
store_ip_checksum(struct flood_frame *f)
{
	uint8_t *ip = f->b + ETH_LEN;
	uint32_t sum = 0;

	if (f->len < ETH_LEN + IPV4_LEN || get16(f->b + 12) != 0x0800)
		return;
	put16(ip + 10, 0);
	for (uint32_t i = 0; i < IPV4_LEN; i += 2)
		sum += get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~sum & 0xffff);
}

static const uint8_t dut_mac[6] = { 0x02, 0, 0, 0, 0, 0x11 };
static const uint8_t net6[15] = { 0x20, 0x01, 0x0d, 0xb8 };

/** Everything below the BTH for `body` bytes of BTH, headers, payload, pad and ICRC. */
static uint32_t
put_lower(struct flood_frame *f, const struct flood_target *t, uint32_t body)
{
	uint32_t udp = ETH_LEN + (t->ipv6 ? IPV6_LEN : IPV4_LEN);
	uint8_t *ip = f->b + ETH_LEN;

	f->len = udp + UDP_LEN + body;
	memset(f->b, 0, udp + UDP_LEN);
	memcpy(f->b, dut_mac, 6);
	memcpy(f->b + 6, dut_mac, 5);
	f->b[11] = 0x22;
	put16(f->b + 12, t->ipv6 ? 0x86dd : 0x0800);
	if (t->ipv6) {
		ip[0] = 0x60;
		put16(ip + 4, UDP_LEN + body);
		ip[6] = 17;
		ip[7] = 64;
		memcpy(ip + 8, net6, 15);
		ip[23] = t->last_ip;
		memcpy(ip + 24, net6, 15);
		ip[39] = 1;
	} else {
		ip[0] = 0x45;
		put16(ip + 2, IPV4_LEN + UDP_LEN + body);
		put16(ip + 6, 0x4000);
		ip[8] = 64;
		ip[9] = 17;
		put32(ip + 12, 0xc0000200u | t->last_ip);
		put32(ip + 16, 0xc0000201u);
	}
	put16(f->b + udp, 0xc001);
	put16(f->b + udp + 2, ROCE_PORT);
	put16(f->b + udp + 4, UDP_LEN + body);
	return udp + UDP_LEN;
}

struct parts {
	uint8_t opcode;
	uint8_t ackreq;
	uint32_t psn;
	uint8_t ext[32];
	uint32_t ext_len;
	uint32_t payload;
};

static void
put_packet(struct flood_frame *f, const struct flood_target *t, const struct parts *p)
{
	uint32_t pad = -p->payload & 3;
	uint32_t at = put_lower(f, t, BTH_LEN + p->ext_len + p->payload + pad + ICRC_LEN);
	uint8_t *b = f->b + at;

	memset(b, 0, BTH_LEN);
	b[0] = p->opcode;
	b[1] = (uint8_t)(0x40 | pad << 4);
	put16(b + 2, 0xffff);
	put32(b + 4, t->qpn);
	put32(b + 8, (uint32_t)p->ackreq << 31 | (p->psn & 0xffffff));
	memcpy(b + BTH_LEN, p->ext, p->ext_len);
	for (uint32_t i = 0; i < p->payload; i++)
		b[BTH_LEN + p->ext_len + i] = (uint8_t)(p->psn + i);
	memset(b + BTH_LEN + p->ext_len + p->payload, 0, pad + ICRC_LEN);
	store_ip_checksum(f);
	store_icrc(f);
}

static void
put_reth(struct parts *p, uint64_t va, uint32_t rkey, uint32_t len)
{
	put32(p->ext, (uint32_t)(va >> 32));
	put32(p->ext + 4, (uint32_t)va);
	put32(p->ext + 8, rkey);
	put32(p->ext + 12, len);
	p->ext_len = 16;
}

static void
put_atomic(struct parts *p, uint64_t va, struct flood_rng *r)
{
	put_reth(p, va, FLOOD_RKEY, flood_random(r, UINT32_MAX));
	for (uint32_t i = 16; i < 28; i += 4)
		put32(p->ext + i, flood_random(r, UINT32_MAX));
	p->ext_len = 28;
}

void
flood_send_only(const struct flood_target *t, struct flood_frame *f)
{
	const struct parts p = { .opcode = 0x04, .ackreq = 1, .psn = t->psn, .payload = 33 };

	put_packet(f, t, &p);
}

/* Lengths that are likely to matter: around nothing, around the path MTU (1024). */
static uint32_t
some_length(struct flood_rng *r)
{
	static const uint16_t edges[] = { 0, 1, 2, 3, 4, 5, 1019, 1020, 1023, 1024, 1025, 1028,
		1500 };

	return flood_random(r, 3) == 0 ? edges[flood_random(r, sizeof(edges) / sizeof(edges[0]))]
				       : flood_random(r, 256);
}

static uint64_t
some_va(struct flood_rng *r)
{
	switch (flood_random(r, 16)) {
	case 0:
		return FLOOD_VA + FLOOD_MR_LEN - flood_random(r, 64);
	case 1:
		return UINT64_MAX - flood_random(r, 64);
	case 2:
		return FLOOD_VA - flood_random(r, 64);
	default:
		return FLOOD_VA + flood_random(r, FLOOD_MR_LEN / 2);
	}
}

static uint32_t
some_psn(struct flood_rng *r, uint32_t psn)
{
	switch (flood_random(r, 16)) {
	case 0:
		return psn + flood_random(r, 8);
	case 1:
		return psn - flood_random(r, 64);
	case 2:
		return psn + 0x7ffffe + flood_random(r, 4);
	default:
		return psn;
	}
}

void
flood_valid(struct flood_rng *r, const struct flood_target *t, struct flood_frame *f)
{
	struct parts p = { .ackreq = (uint8_t)flood_random(r, 2), .psn = some_psn(r, t->psn) };
	uint32_t kind = flood_random(r, 32);

	/* all RC opcodes, then those that are accepted more often, then CNP */
	p.opcode = kind < 25   ? (uint8_t)kind
		   : kind < 28 ? 0x04
		   : kind < 30 ? 0x0a
		   : kind < 31 ? 0x0c
			       : 0x81;
	p.payload = p.opcode == 0x0c || p.opcode == 0x11 || p.opcode == 0x13 || p.opcode == 0x14
			    ? 0
			    : some_length(r);
	if ((p.opcode <= 0x01 || p.opcode == 0x06 || p.opcode == 0x07) && flood_random(r, 8) != 0)
		p.payload = 1024;
	if (p.opcode == 0x81)
		p.payload = 16;
	if (p.opcode == 0x06)
		put_reth(&p, some_va(r), FLOOD_RKEY, 1024 + flood_random(r, 4096));
	else if (p.opcode == 0x0a || p.opcode == 0x0b)
		put_reth(&p, some_va(r), FLOOD_RKEY, p.payload);
	else if (p.opcode == 0x0c)
		put_reth(&p, some_va(r), FLOOD_RKEY, flood_random(r, 8192));
	else if (p.opcode == 0x13 || p.opcode == 0x14)
		put_atomic(&p, some_va(r) & ~7ull, r);
	if (p.opcode == 0x03 || p.opcode == 0x05 || p.opcode == 0x09 || p.opcode == 0x0b ||
		p.opcode == 0x0d || (p.opcode >= 0x0f && p.opcode <= 0x12) || p.opcode == 0x16 ||
		p.opcode == 0x17) {
		put32(p.ext + p.ext_len, flood_random(r, UINT32_MAX));
		p.ext_len += 4;
	}
	put_packet(f, t, &p);
}

static void
spoil_length(struct flood_rng *r, struct flood_frame *f)
{
	uint32_t ip = ip_len_of(f->b),
		 v = flood_random(r, 2) == 0
			     ? flood_random(r, 65536)
			     : f->len - 14 - flood_random(r, 40) + flood_random(r, 40);

	if (flood_random(r, 2) == 0)
		put16(f->b + ETH_LEN + (ip == IPV4_LEN ? 2 : 4), v & 0xffff);
	if (flood_random(r, 2) == 0)
		put16(f->b + ETH_LEN + ip + 4, (v - IPV4_LEN) & 0xffff);
}

static void
noise(struct flood_rng *r, struct flood_frame *f)
{
	static const uint16_t types[] = { 0x0800, 0x0806, 0x86dd, 0x8100, 0x8915, 0x88a8 };

	f->len = flood_random(r, 8) == 0 ? flood_random(r, 20) : flood_random(r, 1600);
	for (uint32_t i = 0; i < f->len; i++)
		f->b[i] = (uint8_t)flood_random(r, 256);
	if (f->len >= ETH_LEN && flood_random(r, 4) != 0) {
		memcpy(f->b, dut_mac, 6);
		put16(f->b + 12, types[flood_random(r, sizeof(types) / sizeof(types[0]))]);
		if (f->len > 24 && flood_random(r, 2) == 0) {
			f->b[14] = flood_random(r, 2) == 0 ? 0x45 : 0x60;
			f->b[23] = (uint8_t)(flood_random(r, 2) == 0 ? 1 : 17);
			f->b[20] = 58;
		}
	}
}

void
flood_mutate(struct flood_rng *r, struct flood_frame *f)
{
	uint32_t lower = ETH_LEN + ip_len_of(f->b) + UDP_LEN;

	switch (flood_random(r, 6)) {
	case 0: /* bits of anything, ICRC left alone */
		for (uint32_t i = flood_random(r, 4); i < 4; i++)
			f->b[flood_random(r, f->len)] ^= (uint8_t)(1u << flood_random(r, 8));
		return;
	case 1: /* cut short */
		f->len = flood_random(r, f->len);
		return;
	case 2:
		noise(r, f);
		return;
	case 3: /* lengths, made to look right as far as possible */
		spoil_length(r, f);
		store_ip_checksum(f);
		store_icrc(f);
		return;
	case 4: /* headers of the transport, with a right ICRC: the forger's way */
		for (uint32_t i = flood_random(r, 3); i < 3; i++)
			f->b[lower + flood_random(r, 28) % (f->len - lower)] =
				(uint8_t)flood_random(r, 256);
		store_icrc(f);
		return;
	default: /* anything, and then a right checksum and ICRC */
		f->b[flood_random(r, f->len)] = (uint8_t)flood_random(r, 256);
		store_ip_checksum(f);
		store_icrc(f);
		return;
	}
}
