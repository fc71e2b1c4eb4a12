/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_ALIKE_H
#define WIRE_ALIKE_H
/**
 * @file wire_alike.h  Packets like one that wire_parse_any() has read, with 32-byte registers.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's frame.
 * Depends: wire_half.h; x86 with AVX2, asked for with wire_has_half().
 * Spec:    RX-SYN-00, -05, -06, -08, -09, -13, -14; WIRE-01.
 *
 * With a VLAN tag, IPv6, or faults: all that is decided of such a packet is decided by its length,
 * by bytes that are compared, by the checksum of IPv4 and by the QP number. So nothing is decided
 * here but whether they are the same, or good.
 */
#include "wire_half.h"

#if WIRE_WIDE

/** Faults that the compared bytes decide, and that leave the BTH where it is. */
#define WIRE_ALIKE_FAULTS                                                                      \
	(FAULT_BIT(FAULT_DST_MAC) | FAULT_BIT(FAULT_IP_FLAGS) | FAULT_BIT(FAULT_IP_FRAGMENT) | \
		FAULT_BIT(FAULT_DST_IP) | FAULT_BIT(FAULT_TVER) | FAULT_BIT(FAULT_TRUNCATED))

/**
 * Bits that are compared: of the first 32 bytes of a frame, and of 32 bytes that end with the first
 * eight of the BTH; by IPv6 and by VLAN tag.
 */
extern const uint8_t wire_alike_masks[2][2][64];

/** A packet that others are compared with. After wire_alike_end() there is none. */
struct wire_alike {
	struct wire_half_like like;
	struct wire_half mask;
	uint32_t l3_off;
	uint32_t bth_off;
	bool ipv6;
};

enum { WIRE_ALIKE_END = 24 }; /* bytes from where the second piece begins to the BTH */

/** The pieces of a header that are compared. */
TARGET_WIRE_HALF static ALWAYS_INLINE struct wire_half
wire_alike_load(const uint8_t *frame, uint32_t bth_off)
{
	return (struct wire_half){
		.begin = wire_half_piece(frame),
		.end = wire_half_piece(frame + bth_off - WIRE_ALIKE_END),
	};
}

/** Compare no more. */
static ALWAYS_INLINE void
wire_alike_end(struct wire_alike *a)
{
	a->like.len = UINT32_MAX;
}

/**
 * Compare the next frames to the same port with this packet, if that can be done.
 * @param p what wire_parse_any() has made of it; it begins a cache line.
 */
TARGET_WIRE_HALF static inline void
wire_alike_begin(struct wire_alike *a, const struct wire_pkt *p)
{
	const bool ipv6 = (p->flags & PKT_IPV6) != 0, tagged = (p->flags & PKT_VLAN) != 0;
	const uint8_t *mask = wire_alike_masks[ipv6][tagged];

	wire_alike_end(a);
	/* WIRE-15: a UDP checksum is another one in each frame, and may have to be looked at. */
	if ((p->faults & ~WIRE_ALIKE_FAULTS) != 0 ||
		be16_load(p->frame + p->bth_off - WIRE_UDP_LEN + 6) != 0)
		return;
	a->like = wire_half_like_of(wire_alike_load(p->frame, p->bth_off), p, p->frame_len);
	a->mask = (struct wire_half){ wire_half_piece(mask), wire_half_piece(mask + 32) };
	a->l3_off = p->l3_off;
	a->bth_off = p->bth_off;
	a->ipv6 = ipv6;
}

/**
 * wire_parse_any() of a frame to the same port, of any length.
 * @return false: it is not so alike, or not as good; `out` says nothing then.
 */
TARGET_WIRE_HALF static ALWAYS_INLINE bool
wire_read_alike(
	const struct wire_alike *a, const uint8_t *frame, uint32_t len, struct wire_pkt *out)
{
	struct wire_half differ;

	if (UNLIKELY(len != a->like.len))
		return false;
	differ = wire_half_xor(wire_alike_load(frame, a->bth_off), a->like.head);
	if (UNLIKELY(!wire_half_is_zero(wire_half_and(differ, a->mask))) ||
		UNLIKELY(!wire_is_qpn(be32_load(frame + a->bth_off + 4) & PSN_MASK)) ||
		UNLIKELY(!a->ipv6 && !wire_ipv4_sum_is_good(frame + a->l3_off)))
		return false;
	wire_half_like_store(&a->like, frame, a->bth_off, out);
	return true;
}
#endif

#endif
