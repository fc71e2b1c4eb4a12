/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_RNG_H
#define IMPAIR_RNG_H
/**
 * @file impair_rng.h  The numbers that decide: SplitMix64, one stream a rule, one a bottleneck.
 *
 * Owner:   one lcore a stream.
 * Memory:  eight bytes, the caller's.
 * Depends: nothing.
 *
 * SplitMix64 (Steele, Lea, Flood 2014): a counter by an odd constant, then a mixing function. Its
 * numbers are the same on every machine, so that a seed can be sent to a colleague.
 */
#include <stdbool.h>
#include <stdint.h>

/** The next number of a stream. */
static inline uint64_t
impair_rng_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/** The stream of the bottleneck; rules have those from 0 on. */
#define IMPAIR_RNG_BOTTLENECK UINT32_MAX

/** First state of stream `index` of a seed: far from those of other indices and seeds. */
static inline uint64_t
impair_rng_stream(uint64_t seed, uint32_t index)
{
	uint64_t s = impair_rng_next(&seed) + index;

	return impair_rng_next(&s);
}

/** A number from 0 to n - 1; n is not 0. The bias is below n / 2^64. */
static inline uint64_t
impair_rng_below(uint64_t *state, uint64_t n)
{
	return (uint64_t)((__extension__(unsigned __int128) impair_rng_next(state) * n) >> 64);
}

/** What impair_rng_chance() takes for a probability from 0.0 to 1.0. */
static inline uint64_t
impair_rng_threshold(double p)
{
	return p >= 1.0 ? UINT64_MAX : (uint64_t)(p * 18446744073709551616.0);
}

/** Always takes one number from the stream; never true for 0.0, always for 1.0. */
static inline bool
impair_rng_chance(uint64_t *state, uint64_t threshold)
{
	uint64_t r = impair_rng_next(state);

	return r < threshold || threshold == UINT64_MAX;
}

#endif
