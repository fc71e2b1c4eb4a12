/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BE_H
#define BE_H
/**
 * @file be.h  Unaligned big-endian loads and stores, with the 24-bit fields of the BTH and AETH.
 *
 * Owner:   any lcore (pure functions).
 * Memory:  the caller's; exactly the named number of bytes is touched.
 * Depends: nothing.
 */
#include <stdint.h>
#include <string.h>

/** The 2 bytes at `p`, big-endian, as a number. */
static inline uint16_t
be16_load(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

/** The 3 bytes at `p`, big-endian, as a number. */
static inline uint32_t
be24_load(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/** The 4 bytes at `p`, big-endian, as a number. */
static inline uint32_t
be32_load(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

/** The 8 bytes at `p`, big-endian, as a number. */
static inline uint64_t
be64_load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

/** Store the low 16 bits of `v` at `p`, big-endian: 2 bytes. */
static inline void
be16_store(uint8_t *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

/** Store the low 24 bits of `v` at `p`, big-endian: 3 bytes. */
static inline void
be24_store(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

/** Store the low 32 bits of `v` at `p`, big-endian: 4 bytes. */
static inline void
be32_store(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

/** Store the low 64 bits of `v` at `p`, big-endian: 8 bytes. */
static inline void
be64_store(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

#endif
