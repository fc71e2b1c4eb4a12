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

TARGET_WIDE uint32_t
icrc_verify_wide(const struct wire_pkt *p, uint32_t n)
{
	/* Most packets of a burst are as long as its first. */
	if (n != 0 && (uint32_t)p->icrc_off <= p->l3_off + short_blocks(p) * BLOCK - DUMMY)
		return verify(p, n, true);
	return verify(p, n, false);
}
#endif
