/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ICRC_FOLD_H
#define ICRC_FOLD_H
/**
 * @file icrc_fold.h  Folding by carry-less multiplication: what its three widths share.
 *
 * Owner:   icrc_clmul.c, icrc_ymm.c and the wide files alone.
 * Memory:  constant tables.
 * Depends: icrc.h; SSE 4.1 and PCLMULQDQ.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "icrc.h"

#define TARGET_CLMUL __attribute__((target("pclmul,sse4.1")))
#define TARGET_WIDE  __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul,sse4.1")))

enum { ICRC_MASK_LEN = 64 };

/**
 * What is replaced by ones (ICRC-02, ICRC-03), of a message that begins with four dummy bytes; as
 * many zeros either side.
 */
extern const uint8_t icrc_masks[2][3 * ICRC_MASK_LEN];
/**
 * The 16 bytes from n on are a shuffle that moves a block's first n bytes to its end, those from
 * 16 + n on one that moves the others to its start; zeros come in.
 */
extern const uint8_t icrc_shift_up[48];

/** Where blocks are: in their packet, or so many bytes away, and they are copied to it. */
struct blocks {
	bool away;
	ptrdiff_t shift;
};

/** Write the ICRC of a frame: x86 is little-endian, too. */
static ALWAYS_INLINE void
seal(const struct icrc_frame *f, uint32_t icrc)
{
	memcpy(f->frame + f->len - WIRE_ICRC_LEN, &icrc, sizeof(icrc));
}

/* Powers of x modulo 0x04C11DB7, bit-reflected: over 128 bits, then over 64, then Barrett's. */
#define FOLD_128 _mm_set_epi64x(0x0ccaa009e, 0x1751997d0)
#define FOLD_64  _mm_set_epi64x(0, 0x163cd6124)
#define BARRETT  _mm_set_epi64x(0x1f7011641, 0x1db710641)

/** Remainder of the folded blocks: 128 to 96 to 64 bits, then Barrett's division. */
TARGET_CLMUL static ALWAYS_INLINE uint32_t
fold_reduce(__m128i a)
{
	const __m128i low32 = _mm_set_epi32(0, ~0, 0, ~0);
	__m128i t;

	a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, FOLD_128, 0x10));
	t = _mm_clmulepi64_si128(_mm_and_si128(a, low32), FOLD_64, 0x00);
	a = _mm_xor_si128(_mm_srli_si128(a, 4), t);
	t = _mm_clmulepi64_si128(_mm_and_si128(a, low32), BARRETT, 0x10);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low32), BARRETT, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, t), 1);
}

#endif
