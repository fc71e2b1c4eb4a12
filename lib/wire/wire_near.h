/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_NEAR_H
#define WIRE_NEAR_H
/**
 * @file wire_near.h  IPv4 packets that are all but plain, as wire_wide.h reads the plain ones.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's frame.
 * Depends: wire_wide.h.
 * Spec:    RX-SYN-00, -03, -05, -06, -08, -09, -13, -14; WIRE-01.
 *
 * Packets with a VLAN tag, and packets with faults that leave the BTH and the end of the packet
 * where they are. A flood consists of such packets: they should cost less than good ones.
 */
#include "wire_wide.h"

#if WIRE_WIDE

enum {
	/* Places of the flags, the offset and the protocol in an untagged frame. */
	WIRE_NEAR_FLAGS = WIRE_PLAIN_IP + 6,
	WIRE_NEAR_PROTO = WIRE_PLAIN_IP + 9,
};

/** Words of four bytes in which a header is not what the port wants. */
enum {
	WIRE_NEAR_MAC = BIT32(0) | BIT32(1),
	WIRE_NEAR_VERSION = BIT32(3), /* or the EtherType; or the port has no IPv4 */
	WIRE_NEAR_FRAG = BIT32(5),    /* or the protocol */
	WIRE_NEAR_DST_IP = BIT32(7) | BIT32(8),
	WIRE_NEAR_DPORT = BIT32(9),
	WIRE_NEAR_TVER = BIT32(10), /* or the UDP checksum is not 0 */
	WIRE_NEAR_ECN = BIT32(11),
};

/** Faults of flags and fragment offset that differ from what RoCE senders send. */
static inline fault_mask_t
wire_near_frag(const struct wire_port *us, uint32_t frag)
{
	fault_mask_t f = 0;

	if ((frag & WIRE_IPV4_MF) != 0 ||
		(us->require_df && (frag & WIRE_IPV4_FLAGS) != WIRE_IPV4_DF))
		f |= FAULT_BIT(FAULT_IP_FLAGS);
	if ((frag & WIRE_IPV4_OFFSET) != 0)
		f |= FAULT_BIT(FAULT_IP_FRAGMENT);
	return f;
}

/** The frame that is read, and where its headers begin. */
struct wire_near {
	const uint8_t *frame;
	const uint8_t *l2; /* as far before the IP header as the frame would be without a tag */
	uint32_t len;
	uint32_t tag; /* bytes */
};

/** The fault of a QP number that no QP can have: 0, 1, 0xffffff. */
static ALWAYS_INLINE fault_mask_t
wire_near_qpn(const uint8_t *at)
{
	uint32_t qpn = be32_load(at + WIRE_PLAIN_BTH + 4) & PSN_MASK;

	return UNLIKELY(qpn - 2 > PSN_MASK - 3) ? FAULT_BIT(FAULT_DST_QP) : 0;
}

/** Set the flags for FECN and BECN. */
static ALWAYS_INLINE void
wire_near_ecn(uint8_t ecn, struct wire_pkt *out)
{
	out->flags |= (ecn >> 4 & PKT_FECN) | (ecn >> 2 & PKT_BECN);
}

/** The words that are wrong, once the MAC is looked at: a tag has moved it in front of `l2`. */
static ALWAYS_INLINE uint32_t
wire_near_mac(const struct wire_port *us, const struct wire_near *n, uint32_t wrong)
{
	if (n->tag == 0)
		return wrong;
	if (((wire_load64(n->frame) ^ wire_load64(us->mac)) << 16) == 0)
		return wrong & ~(uint32_t)WIRE_NEAR_MAC;
	return wrong | WIRE_NEAR_MAC;
}

/** Store the words of a wire_pkt: offsets are larger by the tag, those after IP by `more` too. */
TARGET_WIRE_WIDE static ALWAYS_INLINE void
wire_near_store(const struct wire_near *n, __m256i words, uint32_t more, uint32_t flags,
	struct wire_pkt *out)
{
	const short l3 = (short)n->tag, l4 = (short)(n->tag + more);
	const short bits = (short)((flags | (n->tag != 0 ? PKT_VLAN : 0)) << 8);

	words = _mm256_add_epi16(
		words, _mm256_set_epi16(0, 0, bits, 0, 0, 0, 0, 0, l4, l3, l4, 0, l4, 0, 0, 0));
	_mm256_storeu_si256((__m256i *)(void *)&out->op, words);
	out->frame = n->frame;
	out->frame_len = (uint16_t)n->len;
}

/** Faults of an IPv4 packet, from the words that are not as the port wants them. */
static ALWAYS_INLINE fault_mask_t
wire_near_wrong(
	const struct wire_port *us, const struct wire_near *n, uint32_t wrong, struct wire_pkt *out)
{
	const uint8_t *at = n->l2;
	fault_mask_t f = 0;

	if ((wrong & WIRE_NEAR_MAC) != 0)
		f |= FAULT_BIT(FAULT_DST_MAC);
	if ((wrong & WIRE_NEAR_DST_IP) != 0)
		f |= FAULT_BIT(FAULT_DST_IP);
	if ((wrong & WIRE_NEAR_FRAG) != 0)
		f |= wire_near_frag(us, be16_load(at + WIRE_NEAR_FLAGS));
	if ((wrong & WIRE_NEAR_VERSION) != 0) { /* a length below the smallest: not believed */
		f |= FAULT_BIT(FAULT_IP_HDR_LEN);
		out->icrc_off = 0;
	}
	if ((wrong & WIRE_NEAR_TVER) != 0 && (at[WIRE_PLAIN_BTH + 1] & 0xf) != 0) {
		f |= FAULT_BIT(FAULT_TVER);
		out->tver = at[WIRE_PLAIN_BTH + 1] & 0xf;
	}
	if ((wrong & WIRE_NEAR_ECN) != 0)
		wire_near_ecn(at[WIRE_PLAIN_BTH + 4], out);
	return f;
}

/** Are the words as the port wants them that say where everything else is? */
static ALWAYS_INLINE bool
wire_near_is_ipv4(const struct wire_port *us, const uint8_t *at, uint32_t wrong)
{
	if ((wrong & WIRE_NEAR_DPORT) != 0)
		return false;
	if ((wrong & WIRE_NEAR_FRAG) != 0 && at[WIRE_NEAR_PROTO] != 17)
		return false;
	if ((wrong & WIRE_NEAR_VERSION) == 0)
		return true;
	return us->has_ipv4 && (at[WIRE_PLAIN_IP] & 0xf0) == 0x40 && at[WIRE_PLAIN_IP] < 0x45;
}

/** An IPv4 header of 20 bytes, or one that says less. */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
wire_read_near4(const struct wire_front *front, const struct wire_port *us,
	const struct wire_near *n, struct wire_pkt *out)
{
	const uint8_t *at = n->l2;
	fault_mask_t f = 0;
	uint32_t wrong;
	__m256i words;
	__m512i head;

	if (UNLIKELY(n->len < n->tag + WIRE_PLAIN_MIN))
		return false;
	head = _mm512_maskz_loadu_epi8(~UINT64_C(0) >> (64 - WIRE_PLAIN_MIN), at);
	words = wire_words(head, at[WIRE_PLAIN_BTH]);
	wrong = _mm512_cmpneq_epi32_mask(_mm512_and_si512(head, _mm512_load_si512(wire_front_mask)),
		_mm512_load_si512(front->want));
	wrong = wire_near_mac(us, n, wrong);
	if (wire_words_are_wrong(words) ||
		be16_load(at + WIRE_PLAIN_UDP + 4) + n->tag + WIRE_PLAIN_UDP > n->len ||
		!wire_near_is_ipv4(us, at, wrong))
		return false;
	wire_near_store(n, words, 0, 0, out);
	if (UNLIKELY((at[WIRE_PLAIN_IP + 1] & 3) == 3))
		out->flags |= PKT_CE;
	if (wrong != 0)
		f = wire_near_wrong(us, n, wrong, out);
	if (!wire_ipv4_sum_is_good(at + WIRE_PLAIN_IP))
		f |= FAULT_BIT(FAULT_IP_CHECKSUM);
	out->faults = f | wire_near_qpn(at);
	return true;
}

/** IPv6, whose UDP header stands as much further behind as its header is longer. */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
wire_read_near6(const struct wire_port *us, const struct wire_near *n, struct wire_pkt *out)
{
	const uint32_t more = WIRE_IPV6_LEN - WIRE_IPV4_LEN;
	const uint8_t *ip = n->l2 + WIRE_PLAIN_IP, *at = n->l2 + more;
	uint32_t udp_len, tver, ecn;
	fault_mask_t f = 0;
	__m256i words;

	if (UNLIKELY(n->len < n->tag + more + WIRE_PLAIN_MIN))
		return false;
	udp_len = be16_load(at + WIRE_PLAIN_UDP + 4);
	if (ip[0] >> 4 != 6 || ip[6] != 17 || be16_load(at + WIRE_PLAIN_UDP + 2) != WIRE_UDP_PORT ||
		be16_load(ip + 4) != udp_len || udp_len + more + n->tag + WIRE_PLAIN_UDP > n->len)
		return false;
	words = wire_words(_mm512_maskz_loadu_epi8(~UINT64_C(0) >> (64 - WIRE_PLAIN_MIN), at),
		at[WIRE_PLAIN_BTH]);
	/* IPv6 has no length that the last word could compare with UDP's. */
	words = _mm256_maskz_mov_epi16(0x7fff, words);
	if (wire_words_are_wrong(words))
		return false;
	wire_near_store(n, words, more, PKT_IPV6, out);
	if (UNLIKELY((ip[1] >> 4 & 3) == 3))
		out->flags |= PKT_CE;
	tver = at[WIRE_PLAIN_BTH + 1] & 0xf;
	ecn = at[WIRE_PLAIN_BTH + 4];
	if (UNLIKELY(tver != 0)) {
		f |= FAULT_BIT(FAULT_TVER);
		out->tver = (uint8_t)tver;
	}
	if (UNLIKELY(ecn != 0))
		wire_near_ecn((uint8_t)ecn, out);
	if (((wire_load64(n->frame) ^ wire_load64(us->mac)) << 16) != 0)
		f |= FAULT_BIT(FAULT_DST_MAC);
	if (!us->has_ipv6 || (wire_load64(ip + 24) ^ wire_load64(us->ipv6)) != 0 ||
		(wire_load64(ip + 32) ^ wire_load64(us->ipv6 + 8)) != 0)
		f |= FAULT_BIT(FAULT_DST_IP);
	out->faults = f | wire_near_qpn(at);
	return true;
}

/** Inlined once for each length of a tag. */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
wire_read_nearer(const struct wire_front *front, const struct wire_port *us,
	const struct wire_near *n, struct wire_pkt *out)
{
	uint32_t type = wire_load16(n->l2 + 12);

	if (type == __builtin_bswap16(0x0800))
		return wire_read_near4(front, us, n, out);
	if (type == __builtin_bswap16(0x86dd))
		return wire_read_near6(us, n, out);
	return false;
}

/**
 * wire_parse_any() of an IPv4 or IPv6 packet. @return false: it is another one; `out` says nothing
 * then.
 */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
wire_read_near(const struct wire_front *front, const struct wire_port *us, const uint8_t *frame,
	uint32_t len, struct wire_pkt *out)
{
	uint32_t type;

	if (UNLIKELY(len < WIRE_PLAIN_MIN))
		return false;
	type = wire_load16(frame + 12);
	if (type == __builtin_bswap16(0x0800) || type == __builtin_bswap16(0x86dd))
		return wire_read_nearer(front, us,
			&(const struct wire_near){ .frame = frame, .l2 = frame, .len = len }, out);
	if (type != __builtin_bswap16(0x8100))
		return false;
	return wire_read_nearer(front, us,
		&(const struct wire_near){ .frame = frame,
			.l2 = frame + WIRE_VLAN_LEN,
			.len = len,
			.tag = WIRE_VLAN_LEN },
		out);
}
#endif

#endif
