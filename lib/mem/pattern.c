/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem.h"

#define PIECE ((size_t)4 << 20)

static inline uint8_t
mix(uint32_t start, uint32_t i)
{
	uint32_t x = start + i * 0x9E3779B1u;

	x ^= x >> 15;
	x *= 0x2C1B3C6Du;
	x ^= x >> 12;
	return (uint8_t)x;
}

uint8_t
mem_pattern_byte(uint32_t seed, uint32_t i)
{
	return mix(seed * 0x85EBCA6Bu, i);
}

void
mem_pattern_fill(uint8_t *dst, size_t len, uint32_t seed, uint32_t first)
{
	uint32_t start = seed * 0x85EBCA6Bu;

	for (size_t from = 0, to; from < len && !mem_is_stopped(); from = to) {
		to = len - from < PIECE ? len : from + PIECE;
		for (size_t i = from; i < to; i++)
			dst[i] = mix(start, first + (uint32_t)i);
	}
}
