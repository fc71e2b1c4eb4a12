/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_RNG_H
#define TEST_RNG_H
/**
 * @file rng.h  Seeded random numbers; the same seed plays the same run.
 *
 * Owner:   tests only.
 * Memory:  the caller's.
 * Depends: nothing.
 */
#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t x; /* not 0 */
};

/** 48 bits. */
static inline uint64_t
rng_next(struct rng *g)
{
	g->x ^= g->x << 13;
	g->x ^= g->x >> 7;
	g->x ^= g->x << 17;
	return g->x * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

/** 0 .. n-1; 0 for n = 0. */
static inline uint32_t
below(struct rng *g, uint32_t n)
{
	return (uint32_t)((rng_next(g) & 0xffffffff) * n >> 32);
}

/** first .. last. */
static inline uint32_t
range(struct rng *g, uint32_t first, uint32_t last)
{
	return first + below(g, last - first + 1);
}

/** True once in n; never for n = 0. */
static inline bool
rarely(struct rng *g, uint32_t n)
{
	return n != 0 && below(g, n) == 0;
}

/** True with a chance of ppm in a million. */
static inline bool
chance(struct rng *g, uint32_t ppm)
{
	return ppm != 0 && below(g, 1000000) < ppm;
}

/** Any PSN, often next to where they wrap. */
static inline uint32_t
rng_psn(struct rng *g)
{
	uint32_t v = (uint32_t)rng_next(g) & 0xffffff;

	return rarely(g, 3) ? 0xfffff0 + (v & 15) : v;
}

#endif
