/* SPDX-License-Identifier: BSD-3-Clause */
/* A burst's ICRCs verified, on CPUs that multiply four pairs at once. */
#include "icrc_wide.h"

#if ICRC_CLMUL
/** parts() of an IPv6 packet of three blocks, as short ones are. @return false: it is another. */
TARGET_WIDE static ALWAYS_INLINE bool
parts_short_ipv6(const uint8_t *l3, uint32_t len, __m512i *out)
{
	const uint32_t first = len + DUMMY - 2 * BLOCK; /* bytes of the first block */
	const uint8_t *end = l3 + len;
	__m512i a, b;

	if (UNLIKELY(first - DUMMY > BLOCK - DUMMY))
		return false;
	a = _mm512_or_si512(load(icrc_masks[1] + first),
		_mm512_maskz_loadu_epi8(icrc_in_packet[first], end - 3 * BLOCK));
	/* The header ends in the second block. */
	b = _mm512_or_si512(load(end - 2 * BLOCK), load(icrc_masks[1] + BLOCK + first));
	*out = parts_of_two(b, fold_wide(a, AHEAD_1024, load(end - BLOCK)));
	return true;
}

/**
 * Parts of a packet, and what its ICRC is to be, before the last complement: x86 is little-endian,
 * too. A packet without one is right.
 */
TARGET_WIDE static ALWAYS_INLINE __m512i
parts_of_any(const struct wire_pkt *p, uint32_t *want)
{
	if (UNLIKELY(p->icrc_off == 0)) {
		*want = UINT32_MAX;
		return _mm512_setzero_si512();
	}
	ASSERT(p->icrc_off + WIRE_ICRC_LEN <= p->frame_len);
	memcpy(want, p->frame + p->icrc_off, sizeof(*want));
	return parts(p->frame + p->l3_off, (p->flags & PKT_IPV6) != 0,
		(uint32_t)p->icrc_off - p->l3_off);
}

/** What is not inlined into the loop over short packets: it would make the loop too large. */
TARGET_WIDE static __attribute__((noinline)) __m512i
parts_of_other(const struct wire_pkt *p, uint32_t *want)
{
	__m512i a;

	if ((p->flags & PKT_IPV6) == 0 ||
		!parts_short_ipv6(p->frame + p->l3_off, (uint32_t)p->icrc_off - p->l3_off, &a))
		return parts_of_any(p, want);
	memcpy(want, p->frame + p->icrc_off, sizeof(*want));
	return a;
}

/** The most blocks that a short packet can have. */
static ALWAYS_INLINE uint32_t
short_blocks(const struct wire_pkt *p)
{
	return (p->flags & PKT_IPV6) != 0 ? 3 : 2;
}

/** @param is_short the packet probably has no more blocks than a short one. */
TARGET_WIDE static ALWAYS_INLINE __m512i
parts_of(const struct wire_pkt *p, uint32_t *want, bool is_short)
{
	__m512i a;

	if (!is_short)
		return parts_of_any(p, want);
	if (UNLIKELY((p->flags & PKT_IPV6) != 0) ||
		UNLIKELY(!parts_short(p->frame + p->l3_off, (uint32_t)p->icrc_off - p->l3_off, &a)))
		return parts_of_other(p, want);
	memcpy(want, p->frame + p->icrc_off, sizeof(*want));
	return a;
}

/** Four packets a turn. */
TARGET_WIDE static ALWAYS_INLINE uint32_t
verify(const struct wire_pkt *p, uint32_t n, bool is_short)
{
	uint32_t bad = 0, i;

	for (i = 0; i + 4 <= n; i += 4) {
		uint32_t w[4];
		__m512i a = parts_of(&p[i], &w[0], is_short);
		__m512i b = parts_of(&p[i + 1], &w[1], is_short);
		__m512i c = parts_of(&p[i + 2], &w[2], is_short);
		__m512i d = parts_of(&p[i + 3], &w[3], is_short);
		__m128i got = remainders(a, b, c, d);
		__m128i want = _mm_set_epi32((int)w[3], (int)w[2], (int)w[1], (int)w[0]);

		/* Right where the one is the other's complement. */
		bad |= (uint32_t)_mm_cmpneq_epi32_mask(_mm_xor_si128(got, want), _mm_set1_epi32(-1))
		       << i;
	}
	for (; i < n; i++) {
		uint32_t icrc;

		if (UNLIKELY(p[i].icrc_off == 0))
			continue;
		memcpy(&icrc, p[i].frame + p[i].icrc_off, sizeof(icrc));
		icrc ^= ~whole(p[i].frame + p[i].l3_off, (p[i].flags & PKT_IPV6) != 0,
			(uint32_t)p[i].icrc_off - p[i].l3_off);
		bad |= (uint32_t)(icrc != 0) << i;
	}
	return bad;
}

/** What a remainder is that was taken over the right ICRC, too. */
#define RESIDUE 0xdebb20e3u

/** Of a packet. */
enum blocks_n { ONE, TWO, MORE };

/** How packets of one shape are cut into blocks. */
struct cut {
	__m512i first; /* masks */
	__m512i second;
	__mmask64 in;    /* bytes of the first block that are in the packet */
	uint32_t behind; /* bytes behind the first block */
};

/** Parts of a packet that ends there, its ICRC included. */
TARGET_WIDE static ALWAYS_INLINE __m512i
parts_cut(const uint8_t *end, const struct cut *c, const enum blocks_n n)
{
	const uint8_t *p = end - c->behind;
	const __m512i first = _mm512_or_si512(c->first, _mm512_maskz_loadu_epi8(c->in, p - BLOCK));
	__m512i second;

	if (n == ONE)
		return parts_of_one(first);
	second = _mm512_or_si512(c->second, load(p));
	return n == TWO ? parts_of_two(first, second) : parts_behind(first, second, p + BLOCK, end);
}

/**
 * IPv4 packets of the first one's shape, four a turn. The ICRC is a part of the last block, so it
 * is not looked at apart.
 * @param all bytes, dummy and ICRC included. @param bad out: a bit for each wrong one.
 * @return how many were looked at: up to one of another shape, or those of whole fours.
 */
TARGET_WIDE static ALWAYS_INLINE uint32_t
verify_alike(const struct wire_pkt *p, uint32_t n, uint32_t all, const enum blocks_n blocks,
	uint32_t *bad)
{
	const uint64_t shape = icrc_shape_of(p);
	const uint32_t off = p->icrc_off + (uint32_t)WIRE_ICRC_LEN, first = (all - 1) % BLOCK + 1;
	const struct cut c = { load(icrc_masks[0] + first), load(icrc_masks[0] + BLOCK + first),
		icrc_in_packet[first], all - first };
	const __m512i residue = _mm512_set1_epi32((int)RESIDUE);
	uint32_t i;

	for (i = 0; i + 4 <= n; i += 4) {
		__mmask16 wrong;

		if (UNLIKELY(((icrc_shape_of(&p[i]) ^ shape) | (icrc_shape_of(&p[i + 1]) ^ shape) |
				     (icrc_shape_of(&p[i + 2]) ^ shape) |
				     (icrc_shape_of(&p[i + 3]) ^ shape)) != 0))
			break;
		/* A remainder is the second of its packet's four words. */
		wrong = _mm512_mask_cmpneq_epi32_mask(0x2222,
			reduce_four(sums(parts_cut(p[i].frame + off, &c, blocks),
				parts_cut(p[i + 1].frame + off, &c, blocks),
				parts_cut(p[i + 2].frame + off, &c, blocks),
				parts_cut(p[i + 3].frame + off, &c, blocks))),
			residue);
		for (uint32_t k = 0; UNLIKELY(wrong != 0) && k < 4; k++)
			*bad |= (uint32_t)(wrong >> (4 * k + 1) & 1) << (i + k);
	}
	return i;
}

/** The same of any burst. @return how many were looked at: 0 where the first one is not such. */
TARGET_WIDE static ALWAYS_INLINE uint32_t
verify_front(const struct wire_pkt *p, uint32_t n, uint32_t *bad)
{
	const uint32_t all = DUMMY + (uint32_t)p->icrc_off - p->l3_off + WIRE_ICRC_LEN;

	if (p->bth_off - p->l3_off != WIRE_IPV4_LEN + WIRE_UDP_LEN || p->icrc_off <= p->bth_off)
		return 0;
	if (all <= BLOCK)
		return verify_alike(p, n, all, ONE, bad);
	if (UNLIKELY(
		    (all - 1) % BLOCK + 1 < DUMMY)) /* a part of the dummy is in the second block */
		return 0;
	if (all <= 2 * BLOCK)
		return verify_alike(p, n, all, TWO, bad);
	return verify_alike(p, n, all, MORE, bad);
}

TARGET_WIDE uint32_t
icrc_verify_wide(const struct wire_pkt *p, uint32_t n)
{
	uint32_t bad = 0, done;

	if (UNLIKELY(n == 0))
		return 0;
	done = verify_front(p, n, &bad);
	if (LIKELY(done == n))
		return bad;
	p += done;
	/* Most packets of a burst are about as long as its first. */
	if ((uint32_t)p->icrc_off <= p->l3_off + short_blocks(p) * BLOCK - DUMMY)
		return bad | verify(p, n - done, true) << done;
	return bad | verify(p, n - done, false) << done;
}
#endif
