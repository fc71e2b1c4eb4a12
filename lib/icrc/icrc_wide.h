/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ICRC_WIDE_H
#define ICRC_WIDE_H
/**
 * @file icrc_wide.h  The remainder of a packet, 64 bytes at a time: what the wide files share.
 *
 * Owner:   icrc_avx512.c and icrc_verify.c alone.
 * Memory:  the caller's frame.
 * Depends: icrc_internal.h, icrc_fold.h; CPUs that multiply four pairs at once.
 *
 * The message begins with four dummy bytes (icrc_internal.h) and is cut from its end on: the first
 * block is the short one, with zeros before it, which do not count. So no packet has a tail, and a
 * 64-byte WRITE is two blocks. The header's mask slides along with the first block.
 */
#include "icrc_internal.h"
#include "invariant.h"

#if ICRC_CLMUL
#include <immintrin.h>

#include "icrc_fold.h"

#define DUMMY 4   /* bytes of ones in front of the IP header */
#define BLOCK 64u /* bytes */
#define LONG  512 /* bytes behind two blocks from which on four are folded side by side */

_Static_assert(ICRC_MASK_LEN == BLOCK, "icrc_masks has a block of zeros either side");
/** Bits 64 - n + DUMMY and up, for n bytes of a first block: those that are in the packet. */
extern const uint64_t icrc_in_packet[BLOCK + 1];

/* Multipliers of a block that is moved ahead by 1024 and by 2048 bits. */
#define AHEAD_1024 _mm512_set4_epi64(0x14a7fe880, 0x1e88ef372, 0x14a7fe880, 0x1e88ef372)
#define AHEAD_2048 _mm512_set4_epi64(0x1322d1430, 0x11542778a, 0x1322d1430, 0x11542778a)
/* Of the four parts of a block that become one: by 384, 256 and 128 bits; the last one stays. */
#define AHEAD_PARTS                                                                             \
	_mm512_set_epi64(0, 0, 0x0ccaa009e, 0x1751997d0, 0x15a546366, 0x0f1da05aa, 0x174359406, \
		0x03db1ecdc)
/* The same of a block that has one, two or three behind it. */
#define AHEAD_PARTS_1                                                                     \
	_mm512_set_epi64(0x1c6e41596, 0x154442bd4, 0x0ae0b5394, 0x1c7569e54, 0x18cb44e58, \
		0x0df068dc2, 0x1d7cfc6ac, 0x1ea89367e)
#define AHEAD_PARTS_2                                                                     \
	_mm512_set_epi64(0x14a7fe880, 0x1e88ef372, 0x03f41287a, 0x1fdc60a7c, 0x14b57d3f0, \
		0x0e3543be0, 0x10aae2566, 0x1816ab61c)
#define AHEAD_PARTS_3                                                                     \
	_mm512_set_epi64(0x12e958ac4, 0x1821d8bc0, 0x1e7146aac, 0x1b35adb0e, 0x125f17dfc, \
		0x19159bb02, 0x1c47d2a9c, 0x1db06f64c)

/** 64 bytes. */
TARGET_WIDE static ALWAYS_INLINE __m512i
load(const uint8_t *p)
{
	return _mm512_loadu_si512((const void *)p);
}

/** The block of a packet at p. */
TARGET_WIDE static ALWAYS_INLINE __m512i
block_at(const uint8_t *p, const struct blocks from)
{
	__m512i v;

	if (!from.away)
		return load(p);
	v = load(p + from.shift);
	_mm512_storeu_si512((void *)(uintptr_t)p, v);
	return v;
}

/** `a` moved ahead, plus what stands there. */
TARGET_WIDE static ALWAYS_INLINE __m512i
fold_wide(__m512i a, __m512i ahead, __m512i next)
{
	__m512i lo = _mm512_clmulepi64_epi128(a, ahead, 0x00);
	__m512i hi = _mm512_clmulepi64_epi128(a, ahead, 0x11);

	return _mm512_ternarylogic_epi64(lo, hi, next, 0x96); /* exclusive or of three */
}

/** Four parts whose sum is the remainder of a packet that ends with this block. */
TARGET_WIDE static ALWAYS_INLINE __m512i
parts_of_one(__m512i a)
{
	return fold_wide(a, AHEAD_PARTS, _mm512_maskz_mov_epi64(0xc0, a));
}

/** The same of one that ends with these two. */
TARGET_WIDE static ALWAYS_INLINE __m512i
parts_of_two(__m512i a, __m512i b)
{
	return fold_wide(a, AHEAD_PARTS_1, parts_of_one(b));
}

/**
 * parts() of a packet of ten blocks and more: four side by side, the first few in the last
 * places, so that all others are whole fours, and nothing is folded one by one behind them.
 * @param a, b the first two blocks. @param p the third.
 */
TARGET_WIDE static ALWAYS_INLINE __m512i
parts_long(__m512i a, __m512i b, const uint8_t *p, const uint8_t *end, const struct blocks from)
{
	__m512i a0 = a, a1 = b, a2, a3;
	const uint32_t more = (uint32_t)(end - p) / BLOCK & 3;

	if (more == 3) { /* one, and four */
		a0 = b;
		a1 = block_at(p, from);
		a2 = block_at(p + BLOCK, from);
		a3 = fold_wide(a, AHEAD_2048, block_at(p + 2 * BLOCK, from));
		p += 3 * BLOCK;
	} else if (more == 0) { /* two, and four */
		a0 = block_at(p, from);
		a1 = block_at(p + BLOCK, from);
		a2 = fold_wide(a, AHEAD_2048, block_at(p + 2 * BLOCK, from));
		a3 = fold_wide(b, AHEAD_2048, block_at(p + 3 * BLOCK, from));
		p += 4 * BLOCK;
	} else if (more == 1) { /* three, and four */
		a0 = block_at(p + BLOCK, from);
		a1 = fold_wide(a, AHEAD_2048, block_at(p + 2 * BLOCK, from));
		a2 = fold_wide(b, AHEAD_2048, block_at(p + 3 * BLOCK, from));
		a3 = fold_wide(block_at(p, from), AHEAD_2048, block_at(p + 4 * BLOCK, from));
		p += 5 * BLOCK;
	} else {
		a2 = block_at(p, from);
		a3 = block_at(p + BLOCK, from);
		p += 2 * BLOCK;
	}
	for (; p < end; p += 4 * BLOCK) {
		a0 = fold_wide(a0, AHEAD_2048, block_at(p, from));
		a1 = fold_wide(a1, AHEAD_2048, block_at(p + BLOCK, from));
		a2 = fold_wide(a2, AHEAD_2048, block_at(p + 2 * BLOCK, from));
		a3 = fold_wide(a3, AHEAD_2048, block_at(p + 3 * BLOCK, from));
	}
	return fold_wide(a0, AHEAD_PARTS_3, fold_wide(a1, AHEAD_PARTS_2, parts_of_two(a2, a3)));
}

/** Bytes of a packet's first block. */
static ALWAYS_INLINE uint32_t
first_len(uint32_t len)
{
	return (len + DUMMY - 1) % BLOCK + 1;
}

/** The first block, of `first` bytes. Neither it nor the second reads the dummy's place. */
TARGET_WIDE static ALWAYS_INLINE __m512i
first_of(const uint8_t *l3, bool ipv6, uint32_t first)
{
	return _mm512_or_si512(load(icrc_masks[ipv6] + first),
		_mm512_maskz_loadu_epi8(
			~UINT64_C(0) << (BLOCK - first) << DUMMY, l3 - DUMMY + first - BLOCK));
}

/** The second one; the dummy may reach into it. */
TARGET_WIDE static ALWAYS_INLINE __m512i
second_of(const uint8_t *l3, bool ipv6, uint32_t first)
{
	const uint32_t dummy = first < DUMMY ? DUMMY - first : 0;

	return _mm512_or_si512(load(icrc_masks[ipv6] + BLOCK + first),
		_mm512_maskz_loadu_epi8(~UINT64_C(0) << dummy, l3 - DUMMY + first));
}

/** Parts of a packet that begins with blocks a and b, and goes on from p to end in whole ones. */
TARGET_WIDE static ALWAYS_INLINE __m512i
parts_behind(__m512i a, __m512i b, const uint8_t *p, const uint8_t *end)
{
	if (end - p >= LONG)
		return parts_long(a, b, p, end, (struct blocks){ false, 0 });
	if (((end - p) & BLOCK) != 0) {
		__m512i third = fold_wide(a, AHEAD_1024, load(p));

		a = b;
		b = third;
		p += BLOCK;
	}
	for (; p < end; p += 2 * BLOCK) {
		a = fold_wide(a, AHEAD_1024, load(p));
		b = fold_wide(b, AHEAD_1024, load(p + BLOCK));
	}
	return parts_of_two(a, b);
}

/** Four parts whose sum is the remainder of the packet, in 128 bits. */
TARGET_WIDE static ALWAYS_INLINE __m512i
parts(const uint8_t *l3, bool ipv6, uint32_t len)
{
	const uint32_t first = first_len(len);
	const uint8_t *p = l3 - DUMMY + first, *end = l3 + len;
	const __m512i a = first_of(l3, ipv6, first);

	if (UNLIKELY(p == end))
		return parts_of_one(a);
	return parts_behind(a, second_of(l3, ipv6, first), p + BLOCK, end);
}

/** The first block of an IPv4 packet, of `first` bytes: it ends where `end` stands. */
TARGET_WIDE static ALWAYS_INLINE __m512i
first_block(const uint8_t *end, uint32_t first)
{
	return _mm512_or_si512(load(icrc_masks[0] + first),
		_mm512_maskz_loadu_epi8(icrc_in_packet[first], end - BLOCK));
}

/** parts() of an IPv4 packet of one or two blocks. @return false: it is longer, or none. */
TARGET_WIDE static ALWAYS_INLINE bool
parts_short(const uint8_t *l3, uint32_t len, __m512i *out)
{
	const uint32_t all = len + DUMMY;
	const uint8_t *end = l3 + len;

	if (UNLIKELY(len - ICRC_HEAD_IPV4 > 2 * BLOCK - DUMMY - ICRC_HEAD_IPV4))
		return false;
	if (all <= BLOCK) {
		*out = parts_of_one(first_block(end, all));
	} else if (LIKELY(all >= BLOCK + DUMMY)) {
		*out = parts_of_two(first_block(end - BLOCK, all - BLOCK),
			_mm512_or_si512(load(end - BLOCK), load(icrc_masks[0] + all)));
	} else {
		return false; /* a part of the dummy is in the second block */
	}
	return true;
}

/** The remainder. */
TARGET_WIDE static ALWAYS_INLINE uint32_t
reduce(__m512i a)
{
	__m256i b = _mm256_xor_si256(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));

	return fold_reduce(
		_mm_xor_si128(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1)));
}

/** The remainder of a packet, not complemented. */
TARGET_WIDE static ALWAYS_INLINE uint32_t
whole(const uint8_t *l3, bool ipv6, uint32_t len)
{
	return reduce(parts(l3, ipv6, len));
}

/** The sums of the four parts of a, b, c and d. */
TARGET_WIDE static ALWAYS_INLINE __m512i
sums(__m512i a, __m512i b, __m512i c, __m512i d)
{
	__m512i ab = _mm512_xor_si512(
		_mm512_shuffle_i64x2(a, b, 0x44), _mm512_shuffle_i64x2(a, b, 0xee));
	__m512i cd = _mm512_xor_si512(
		_mm512_shuffle_i64x2(c, d, 0x44), _mm512_shuffle_i64x2(c, d, 0xee));

	return _mm512_xor_si512(
		_mm512_shuffle_i64x2(ab, cd, 0x88), _mm512_shuffle_i64x2(ab, cd, 0xdd));
}

/** fold_reduce() of four packets at once; what it gives stands in the second word of each. */
TARGET_WIDE static ALWAYS_INLINE __m512i
reduce_four(__m512i a)
{
	const __m512i low32 = _mm512_set1_epi64(UINT32_MAX);
	const __m512i fold_128 = _mm512_broadcast_i32x4(FOLD_128);
	const __m512i fold_64 = _mm512_broadcast_i32x4(FOLD_64);
	const __m512i barrett = _mm512_broadcast_i32x4(BARRETT);
	__m512i t;

	a = _mm512_xor_si512(
		_mm512_bsrli_epi128(a, 8), _mm512_clmulepi64_epi128(a, fold_128, 0x10));
	t = _mm512_clmulepi64_epi128(_mm512_and_si512(a, low32), fold_64, 0x00);
	a = _mm512_xor_si512(_mm512_bsrli_epi128(a, 4), t);
	t = _mm512_clmulepi64_epi128(_mm512_and_si512(a, low32), barrett, 0x10);
	t = _mm512_clmulepi64_epi128(_mm512_and_si512(t, low32), barrett, 0x00);
	return _mm512_xor_si512(a, t);
}

/** Four packets share what makes 32 bits of a remainder. */
TARGET_WIDE static ALWAYS_INLINE __m128i
remainders(__m512i a, __m512i b, __m512i c, __m512i d)
{
	const __m512i second = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13, 9, 5, 1);

	return _mm512_castsi512_si128(
		_mm512_permutexvar_epi32(second, reduce_four(sums(a, b, c, d))));
}
#endif

#endif
