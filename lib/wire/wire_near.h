/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_NEAR_H
#define WIRE_NEAR_H
/**
 * @file wire_near.h  IPv4 packets that are all but plain, as wire_wide.h reads the plain ones.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's frame.
 * Depends: wire_wide.h.
 * Spec:    RX-SYN-00, -05, -06, -08, -09, -13, -14; WIRE-01.
 *
 * A tag, and faults that leave the BTH and the end of the packet where they are. Whoever floods a
 * port sends such packets, and they are to cost less than good ones.
 */
#include "wire_wide.h"

#if WIRE_WIDE

enum {
	/* Places of the flags, the offset and the protocol in an untagged frame. */
	WIRE_NEAR_FLAGS = WIRE_PLAIN_IP + 6,
	WIRE_NEAR_PROTO = WIRE_PLAIN_IP + 9,
	/* A register of bytes behind what an IPv6 header is longer by. */
	WIRE_NEAR_MIN = WIRE_IPV6_LEN - WIRE_IPV4_LEN + 64,
};

/** Words of four bytes in which a header is not what the port wants. */
enum {
	WIRE_NEAR_MAC = BIT32(0) | BIT32(1),
	WIRE_NEAR_VERSION = BIT32(3), /* or the EtherType; or the port has no IPv4 */
	WIRE_NEAR_FRAG = BIT32(5),    /* or the protocol */
	WIRE_NEAR_DST_IP = BIT32(7) | BIT32(8),
};

/** Flags and fragment offset, which are not what RoCE senders send. */
static inline fault_mask_t
wire_near_frag(const struct wire_port *us, uint32_t frag)
{
	fault_mask_t f = 0;

	if ((frag & 0x2000) != 0 || (us->require_df && (frag & 0xe000) != 0x4000))
		f |= FAULT_BIT(FAULT_IP_FLAGS);
	if ((frag & 0x1fff) != 0)
		f |= FAULT_BIT(FAULT_IP_FRAGMENT);
	return f;
}

/** What the BTH says that it should not. `at` has it where an untagged IPv4 frame has it. */
static ALWAYS_INLINE fault_mask_t
wire_near_bth(const uint8_t *at)
{
	uint32_t qpn = be32_load(at + WIRE_PLAIN_BTH + 4) & PSN_MASK;
	fault_mask_t f = 0;

	if ((at[WIRE_PLAIN_BTH + 1] & 0xf) != 0)
		f |= FAULT_BIT(FAULT_TVER);
	if (qpn - 2 > PSN_MASK - 3)
		f |= FAULT_BIT(FAULT_DST_QP);
	return f;
}

/** The same of IPv4 and Ethernet, by the words that are wrong, and by what else is. */
static ALWAYS_INLINE fault_mask_t
wire_near_ipv4(const struct wire_port *us, const uint8_t *at, uint32_t wrong)
{
	fault_mask_t f = 0;

	if ((wrong & WIRE_NEAR_MAC) != 0)
		f |= FAULT_BIT(FAULT_DST_MAC);
	if ((wrong & WIRE_NEAR_DST_IP) != 0)
		f |= FAULT_BIT(FAULT_DST_IP);
	if ((wrong & WIRE_NEAR_FRAG) != 0)
		f |= wire_near_frag(us, be16_load(at + WIRE_NEAR_FLAGS));
	if (!wire_ipv4_sum_is_good(at + WIRE_PLAIN_IP))
		f |= FAULT_BIT(FAULT_IP_CHECKSUM);
	return f;
}

/** Everything but the faults of headers below the BTH. */
TARGET_WIRE_WIDE static ALWAYS_INLINE void
wire_near_store(
	const uint8_t *frame, const uint8_t *at, uint32_t len, __m256i words, struct wire_pkt *out)
{
	_mm256_storeu_si256((__m256i *)(void *)&out->op, words);
	out->frame = frame;
	out->frame_len = (uint16_t)len;
	out->tver = at[WIRE_PLAIN_BTH + 1] & 0xf;
	if (at[WIRE_PLAIN_BTH + 4] != 0)
		out->flags |= (at[WIRE_PLAIN_BTH + 4] >> 4 & PKT_FECN) |
			      (at[WIRE_PLAIN_BTH + 4] >> 2 & PKT_BECN);
}

/** IPv4, tagged or not. */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
wire_read_near4(const struct wire_front *front, const struct wire_port *us, const uint8_t *frame,
	uint32_t len, struct wire_pkt *out)
{
	const uint32_t tag =
		wire_load16(frame + 12) == __builtin_bswap16(0x8100) ? WIRE_VLAN_LEN : 0;
	const uint8_t *at = frame + tag;
	__m256i words;
	__m512i head;
	uint32_t wrong;

	if ((wire_load32(at + 12) & WIRE_BYTES(0xff, 0xff, 0xff, 0)) !=
			WIRE_BYTES(0x08, 0, 0x45, 0) ||
		at[WIRE_NEAR_PROTO] != 17 || be16_load(at + WIRE_PLAIN_UDP + 2) != WIRE_UDP_PORT)
		return false;
	head = _mm512_loadu_si512(at);
	words = wire_words(head, at[WIRE_PLAIN_BTH]);
	wrong = _mm512_cmpneq_epi32_mask(_mm512_and_si512(head, _mm512_load_si512(wire_front_mask)),
		_mm512_load_si512(front->want));
	if ((wrong & WIRE_NEAR_VERSION) != 0 || wire_words_are_wrong(words) ||
		be16_load(at + WIRE_PLAIN_UDP + 4) + tag + WIRE_PLAIN_UDP > len)
		return false;
	if (tag != 0) {
		const short t = WIRE_VLAN_LEN;

		words = _mm256_add_epi16(words, _mm256_set_epi16(0, 0, PKT_VLAN << 8, 0, 0, 0, 0, 0,
							t, t, t, 0, t, 0, 0, 0));
		if (((wire_load64(frame) ^ wire_load64(us->mac)) << 16) == 0)
			wrong &= ~(uint32_t)WIRE_NEAR_MAC;
	}
	wire_near_store(frame, at, len, words, out);
	out->faults = wire_near_ipv4(us, at, wrong) | wire_near_bth(at);
	if ((at[WIRE_PLAIN_IP + 1] & 3) == 3)
		out->flags |= PKT_CE;
	return true;
}

/** IPv6 without a tag, whose UDP header stands as much further behind as its header is longer. */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
wire_read_near6(
	const struct wire_port *us, const uint8_t *frame, uint32_t len, struct wire_pkt *out)
{
	const short more = WIRE_IPV6_LEN - WIRE_IPV4_LEN;
	const uint8_t *ip = frame + WIRE_PLAIN_IP, *at = frame + more;
	uint32_t udp_len = be16_load(at + WIRE_PLAIN_UDP + 4);
	fault_mask_t f = 0;
	__m256i words;

	if (ip[0] >> 4 != 6 || ip[6] != 17 || be16_load(at + WIRE_PLAIN_UDP + 2) != WIRE_UDP_PORT)
		return false;
	words = wire_words(_mm512_loadu_si512(at), at[WIRE_PLAIN_BTH]);
	words = _mm256_mask_mov_epi16(words, 0x8000, _mm256_setzero_si256());
	if (wire_words_are_wrong(words) || be16_load(ip + 4) != udp_len ||
		udp_len + more + WIRE_PLAIN_UDP > len)
		return false;
	words = _mm256_add_epi16(words, _mm256_set_epi16(0, 0, PKT_IPV6 << 8, 0, 0, 0, 0, 0, more,
						0, more, 0, more, 0, 0, 0));
	wire_near_store(frame, at, len, words, out);
	if (((wire_load64(frame) ^ wire_load64(us->mac)) << 16) != 0)
		f |= FAULT_BIT(FAULT_DST_MAC);
	if (!us->has_ipv6 || (wire_load64(ip + 24) ^ wire_load64(us->ipv6)) != 0 ||
		(wire_load64(ip + 32) ^ wire_load64(us->ipv6 + 8)) != 0)
		f |= FAULT_BIT(FAULT_DST_IP);
	out->faults = f | wire_near_bth(at);
	if ((ip[1] >> 4 & 3) == 3)
		out->flags |= PKT_CE;
	return true;
}

/** Is it worth wire_read_near()? */
static ALWAYS_INLINE bool
wire_is_near(const uint8_t *frame, uint32_t len)
{
	uint32_t type;

	if (len < WIRE_NEAR_MIN)
		return false;
	type = wire_load32(frame + 12);
	if ((type & WIRE_BYTES(0xff, 0xff, 0xff, 0)) == WIRE_BYTES(0x08, 0, 0x45, 0))
		return be16_load(frame + WIRE_PLAIN_UDP + 2) == WIRE_UDP_PORT;
	type &= 0xffff;
	return type == WIRE_BYTES(0x86, 0xdd, 0, 0) || type == WIRE_BYTES(0x81, 0, 0, 0);
}

/**
 * wire_parse_any() of a packet of which wire_is_near() says so. @return false: it is another one;
 * `out` says nothing then.
 */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
wire_read_near(const struct wire_front *front, const struct wire_port *us, const uint8_t *frame,
	uint32_t len, struct wire_pkt *out)
{
	if (wire_load16(frame + 12) == __builtin_bswap16(0x86dd))
		return wire_read_near6(us, frame, len, out);
	return wire_read_near4(front, us, frame, len, out);
}
#endif

#endif
