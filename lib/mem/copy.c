/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cpu.h"
#include "mem.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET_WIDE __attribute__((target("avx")))
#define VECTOR      32u
#define PIECE       (2 * VECTOR)

/** Two vectors: loads first, so that a piece may lie partly in the one before it. */
TARGET_WIDE static ALWAYS_INLINE void
copy_piece(uint8_t *to, const uint8_t *from)
{
	__m256i a = _mm256_loadu_si256((const __m256i *)(const void *)from);
	__m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(from + VECTOR));

	_mm256_storeu_si256((__m256i *)(void *)to, a);
	_mm256_storeu_si256((__m256i *)(void *)(to + VECTOR), b);
}

TARGET_WIDE static void
copy_wide(uint8_t *to, const uint8_t *from, uint32_t len)
{
	for (; len > 2 * PIECE; len -= 2 * PIECE) {
		copy_piece(to, from);
		copy_piece(to + PIECE, from + PIECE);
		to += 2 * PIECE;
		from += 2 * PIECE;
	}
	if (len > PIECE)
		copy_piece(to, from);
	copy_piece(to + len - PIECE, from + len - PIECE);
}

void
mem_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (LIKELY(len >= PIECE) && LIKELY(cpu_has(CPU_AVX)))
		copy_wide(to, from, len);
	else
		memcpy(to, from, len);
}
#else
void
mem_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	memcpy(to, from, len);
}
#endif
