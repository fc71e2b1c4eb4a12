/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_REQUESTER_RNG_H
#define TEST_REQUESTER_RNG_H
/**
 * @file rng.h  Seeded random numbers; the same seed plays the same stream.
 */
#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t x; /* not 0 */
};

static inline uint64_t
rng_next(struct rng *g)
{
	g->x ^= g->x << 13;
	g->x ^= g->x >> 7;
	g->x ^= g->x << 17;
	return g->x * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static inline uint32_t
below(struct rng *g, uint32_t n)
{
	return (uint32_t)(rng_next(g) % n);
}

/** True once in n. */
static inline bool
rarely(struct rng *g, uint32_t n)
{
	return below(g, n) == 0;
}

/** Any PSN, often next to where they wrap. */
static inline uint32_t
any_psn(struct rng *g)
{
	uint32_t v = (uint32_t)rng_next(g) & 0xffffff;

	return rarely(g, 3) ? 0xfffff0 + (v & 15) : v;
}

#endif
