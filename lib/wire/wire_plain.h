/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_PLAIN_H
#define WIRE_PLAIN_H
/**
 * @file wire_plain.h  The common packet, untagged IPv4 without any fault, read without a call.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's frame.
 * Depends: wire.h.
 * Spec:    WIRE-01..18.
 *
 * Whole words are compared in the frame's byte order.
 */
#include <string.h>

#include "wire.h"

/** Four bytes in the order of memory, as a load gives them (the hosts are little-endian). */
#define WIRE_BYTES(a, b, c, d) \
	((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/** 2 bytes at `p` as they lie in memory: no byte is swapped. `p` may be unaligned. */
static ALWAYS_INLINE uint16_t
wire_load16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/** 4 bytes at `p` as they lie in memory: no byte is swapped. `p` may be unaligned. */
static ALWAYS_INLINE uint32_t
wire_load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/** 8 bytes at `p` as they lie in memory: no byte is swapped. `p` may be unaligned. */
static ALWAYS_INLINE uint64_t
wire_load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/**
 * Is the checksum of an IPv4 header without options right? The sum of its 16-bit words is then a
 * multiple of 65535, and so is the sum of its longer ones with the carry taken round; an exact
 * multiple times the inverse is the quotient, anything else is larger than any quotient.
 */
static ALWAYS_INLINE bool
wire_ipv4_sum_is_good(const uint8_t *h)
{
	const uint64_t inverse = UINT64_C(0xfffefffefffeffff), largest = UINT64_MAX / 0xffff;
	uint64_t sum = wire_load64(h), b = wire_load64(h + 8), c = wire_load32(h + 16);

	sum += b;
	sum += sum < b;
	sum += c;
	sum += sum < c;
	return sum * inverse <= largest;
}

/** Where the headers of an untagged IPv4 packet stand. */
enum {
	WIRE_PLAIN_IP = WIRE_ETH_LEN,
	WIRE_PLAIN_UDP = WIRE_PLAIN_IP + WIRE_IPV4_LEN,
	WIRE_PLAIN_BTH = WIRE_PLAIN_UDP + WIRE_UDP_LEN,
	WIRE_PLAIN_MIN = WIRE_PLAIN_BTH + WIRE_BTH_LEN + WIRE_ICRC_LEN,
};

/** Is it untagged IPv4 without options, and UDP to another port? wire_parse_any() says so, too. */
static ALWAYS_INLINE bool
wire_is_other_udp(const uint8_t *frame, uint32_t len)
{
	return len >= WIRE_PLAIN_MIN && be16_load(frame + 12) == 0x0800 &&
	       frame[WIRE_PLAIN_IP] == 0x45 && frame[WIRE_PLAIN_IP + 9] == 17 &&
	       be16_load(frame + WIRE_PLAIN_UDP + 2) != WIRE_UDP_PORT;
}

/** Can a frame of this length be one? */
static ALWAYS_INLINE bool
wire_is_plain_len(uint32_t len)
{
	return LIKELY(len - WIRE_PLAIN_MIN <= UINT16_MAX - WIRE_PLAIN_MIN);
}

/**
 * Is it untagged IPv4 without options or fragments, with DF as RoCE senders set it, and UDP to the
 * RoCE port? The QP number is then at its place. The frame has at least WIRE_PLAIN_MIN bytes.
 */
static ALWAYS_INLINE bool
wire_is_roce(const uint8_t *frame)
{
	return (wire_load32(frame + 12) & WIRE_BYTES(0xff, 0xff, 0xff, 0)) ==
		       WIRE_BYTES(0x08, 0, 0x45, 0) &&
	       (wire_load32(frame + WIRE_PLAIN_IP + 6) & WIRE_BYTES(0xff, 0xff, 0, 0xff)) ==
		       WIRE_BYTES(0x40, 0, 0, 17) &&
	       wire_load16(frame + WIRE_PLAIN_UDP + 2) == __builtin_bswap16(WIRE_UDP_PORT);
}

/**
 * The same, for this port, and without a UDP checksum, which RoCE senders leave out: other packets
 * go to wire_parse_any(), whatever the knobs say.
 */
static ALWAYS_INLINE bool
wire_match(const struct wire_port *us, const uint8_t *frame)
{
	const uint8_t *ip = frame + WIRE_PLAIN_IP;

	return ((wire_load64(frame) ^ wire_load64(us->mac)) << 16) == 0 && us->has_ipv4 &&
	       wire_is_roce(frame) && wire_load32(ip + 16) == wire_load32(us->ipv4) &&
	       wire_load16(frame + WIRE_PLAIN_UDP + 6) == 0;
}

/**
 * Read the rest of a packet that matched: checksum, lengths, BTH. Values are stored as soon as they
 * are known: few have to be kept in registers.
 * @return true: the packet has no fault. False: `out` is not valid; ask wire_parse_any().
 */
static ALWAYS_INLINE bool
wire_read_plain(const uint8_t *frame, uint32_t len, struct wire_pkt *out)
{
	const uint8_t *ip = frame + WIRE_PLAIN_IP;
	const struct wire_opcode *op = &wire_opcodes[frame[WIRE_PLAIN_BTH]];
	uint32_t end, psn_word;
	int32_t payload_len;
	uint64_t bth;

	if (UNLIKELY(!wire_ipv4_sum_is_good(ip)))
		return false;
	out->frame = frame;
	out->faults = 0;
	out->frame_len = (uint16_t)len;
	out->l3_off = WIRE_PLAIN_IP;
	out->bth_off = WIRE_PLAIN_BTH;
	out->tver = 0;
	end = be16_load(frame + WIRE_PLAIN_UDP + 4) + (uint32_t)WIRE_PLAIN_UDP; /* of the ICRC */
	if (UNLIKELY(be16_load(ip + 2) + (uint32_t)WIRE_PLAIN_IP != end) || UNLIKELY(end > len))
		return false;
	end -= WIRE_ICRC_LEN;
	out->icrc_off = (uint16_t)end;
	out->op = op->flags;
	out->payload_off = (uint16_t)(WIRE_PLAIN_BTH + op->hdr_len);

	bth = be64_load(frame + WIRE_PLAIN_BTH); /* opcode, bits, P_Key, FECN, BECN and QPN */
	psn_word = be32_load(frame + WIRE_PLAIN_BTH + 8);
	out->opcode = (uint8_t)(bth >> 56);
	out->flags = (uint8_t)(psn_word >> 31 | (bth >> 48 & (PKT_SE | PKT_MIGREQ)) |
			       (uint32_t)((ip[1] & 3) == 3) << 5);
	out->pad = bth >> 52 & 3;
	out->pkey = (uint16_t)(bth >> 32);
	out->dest_qpn = (uint32_t)bth;
	out->psn = psn(psn_word);
	payload_len = (int32_t)(end - WIRE_PLAIN_BTH - op->hdr_len - (bth >> 52 & 3));
	out->payload_len = (uint16_t)payload_len;
	/* No transport version, no FECN or BECN, and neither of the QPNs 0, 1 and 0xffffff. */
	return LIKELY(payload_len >= 0) && LIKELY((bth & UINT64_C(0x000f0000ff000000)) == 0) &&
	       LIKELY((uint32_t)bth - 2 <= PSN_MASK - 3);
}

_Static_assert(PKT_ACKREQ == 1 && PKT_CE == 32 && PKT_MIGREQ == 64 && PKT_SE == 128,
	"wire_read_plain() shifts the bits there");

#endif
