/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head of the ICRC, and short packets as a whole, by carry-less multiplication.
 *
 * A header that is masked in memory and read back by a vector CRC stalls store forwarding. Here it
 * is loaded straight from the frame as vectors and masked there, and the CRC of all blocks is
 * taken in registers: block A followed by 128 bits has the remainder of A(x) * x^128, so each
 * block is multiplied by two constants and added to the next one.
 */
#include "icrc_internal.h"
#include "invariant.h"

#if ICRC_CLMUL
#include "icrc_fold.h"

#define FF ((char)0xff)

TARGET_CLMUL static inline __m128i
load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/** `a` moved 128 bits ahead, plus the block that stands there. */
TARGET_CLMUL static inline __m128i
fold(__m128i a, __m128i next)
{
	__m128i lo = _mm_clmulepi64_si128(a, FOLD_128, 0x00);
	__m128i hi = _mm_clmulepi64_si128(a, FOLD_128, 0x11);

	return _mm_xor_si128(_mm_xor_si128(lo, hi), next);
}

/** Four zero bytes, four of the dummy, 40 of the header; TOS, TTL, checksums, BTH 4 as ones. */
TARGET_CLMUL static inline __m128i
head_ipv4(const uint8_t *l3)
{
	const __m128i m0 = _mm_setr_epi8(0, 0, 0, 0, FF, FF, FF, FF, 0, FF, 0, 0, 0, 0, 0, 0);
	const __m128i m1 = _mm_setr_epi8(FF, 0, FF, FF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	const __m128i m2 = _mm_setr_epi8(0, 0, FF, FF, 0, 0, 0, 0, FF, 0, 0, 0, 0, 0, 0, 0);
	__m128i a = _mm_or_si128(_mm_slli_si128(load(l3), 8), m0);

	a = fold(a, _mm_or_si128(load(l3 + 8), m1));
	return fold(a, _mm_or_si128(load(l3 + 24), m2));
}

/** Four dummy bytes, 60 of the header; class, flow label, hop limit, checksum, BTH 4 as ones. */
TARGET_CLMUL static inline __m128i
head_ipv6(const uint8_t *l3)
{
	const __m128i m0 = _mm_setr_epi8(FF, FF, FF, FF, 0x0f, FF, FF, FF, 0, 0, 0, FF, 0, 0, 0, 0);
	const __m128i m3 = _mm_setr_epi8(0, 0, FF, FF, 0, 0, 0, 0, FF, 0, 0, 0, 0, 0, 0, 0);
	__m128i a = _mm_or_si128(_mm_slli_si128(load(l3), 4), m0);

	a = fold(a, load(l3 + 12));
	a = fold(a, load(l3 + 28));
	return fold(a, _mm_or_si128(load(l3 + 44), m3));
}

TARGET_CLMUL uint32_t
icrc_begin_clmul(const uint8_t *l3, bool ipv6)
{
	return fold_reduce(ipv6 ? head_ipv6(l3) : head_ipv4(l3));
}

/*
 * 64 bits are their own quotient's product: times the inverse of the polynomial as a power series
 * modulo x^64 gives the quotient, times the polynomial leaves the remainder above bit 63.
 */
TARGET_CLMUL static ALWAYS_INLINE uint32_t
update8(uint32_t state, uint64_t word)
{
	const __m128i inverse = _mm_set_epi64x(0x1db710641, (long long)0xb4e5b025f7011641ull);
	__m128i q = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)(word ^ state)), inverse, 0);

	return (uint32_t)_mm_extract_epi32(_mm_clmulepi64_si128(q, inverse, 0x10), 2);
}

TARGET_CLMUL uint32_t
icrc_update8_clmul(uint32_t state, uint64_t word)
{
	return update8(state, word);
}

TARGET_CLMUL void
icrc_words8_burst_clmul(uint32_t *state, const uint64_t *word, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		state[i] = update8(0, word[i]);
}

/** update8() of a state of 0, over each of the four words that stand in `word`. */
TARGET_WIDE static ALWAYS_INLINE __m128i
words8_four(__m256i word)
{
	const __m512i inverse = _mm512_broadcast_i32x4(
		_mm_set_epi64x(0x1db710641, (long long)0xb4e5b025f7011641ull));
	const __m512i apart = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
	const __m512i third = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 14, 10, 6, 2);
	__m512i q = _mm512_clmulepi64_epi128(
		_mm512_permutexvar_epi64(apart, _mm512_castsi256_si512(word)), inverse, 0x00);

	q = _mm512_clmulepi64_epi128(q, inverse, 0x10);
	return _mm512_castsi512_si128(_mm512_permutexvar_epi32(third, q));
}

TARGET_WIDE void
icrc_words8_burst_wide(uint32_t *state, const uint64_t *word, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 4) {
		const __mmask8 some = (__mmask8)(n - i < 4 ? BIT32(n - i) - 1 : 0xf);

		_mm_mask_storeu_epi32(
			&state[i], some, words8_four(_mm256_maskz_loadu_epi64(some, &word[i])));
	}
}

TARGET_CLMUL uint32_t
icrc_whole_clmul(const uint8_t *l3, bool ipv6, uint32_t len)
{
	__m128i a = ipv6 ? head_ipv6(l3) : head_ipv4(l3);
	const uint8_t *p = l3 + icrc_head_len(ipv6);
	const uint8_t *end = l3 + len;
	uint32_t rest;

	ASSERT(len >= icrc_head_len(ipv6)); /* the packet has 16 bytes before its end */
	for (; end - p >= 16; p += 16)
		a = fold(a, load(p));
	rest = (uint32_t)(end - p);
	if (rest != 0) {
		/*
		 * 16 folded bytes and `rest` more: the first `rest` of them become a block of their
		 * own, with zeros before; the others and the packet's last bytes are the block
		 * behind it. The last 16 bytes of the packet have the latter in place already.
		 */
		__m128i up = load(icrc_shift_up + rest);
		__m128i down = load(icrc_shift_up + 16 + rest);
		__m128i last = _mm_blendv_epi8(_mm_shuffle_epi8(a, down), load(end - 16), down);

		a = fold(_mm_shuffle_epi8(a, up), last);
	}
	return fold_reduce(a);
}
#endif
