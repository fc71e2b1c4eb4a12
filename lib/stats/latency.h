/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LATENCY_H
#define LATENCY_H
/**
 * @file latency.h  A histogram of times with 16 buckets for each doubling: a time that it reports
 * is at most a sixteenth too long.
 *
 * Owner:   each block has one writing lcore; any lcore may read, as with stats.h.
 * Memory:  4 KiB, embedded by its owner; of these a steady load touches a few lines.
 * Depends: base.
 */
#include <stdint.h>

#include "compiler.h"

#define LATENCY_STEP_BITS 4  /* buckets a doubling, as a power of two */
#define LATENCY_MAX_BITS  36 /* times from 2^36 ns (69 s) on share the last bucket */
#define LATENCY_BUCKETS   ((LATENCY_MAX_BITS - LATENCY_STEP_BITS + 1) << LATENCY_STEP_BITS)

enum latency_kind { LATENCY_SEND, LATENCY_WRITE, LATENCY_READ, LATENCY_ATOMIC, LATENCY_KINDS };

struct latency {
	uint64_t n[LATENCY_BUCKETS] CACHE_ALIGNED;
};

/** The bucket of a time. */
static inline uint32_t
latency_bucket(uint64_t ns)
{
	uint32_t top;

	if (ns < 1u << LATENCY_STEP_BITS)
		return (uint32_t)ns;
	top = 63u - (uint32_t)__builtin_clzll(ns);
	if (top >= LATENCY_MAX_BITS)
		return LATENCY_BUCKETS - 1;
	top -= LATENCY_STEP_BITS;
	return (top << LATENCY_STEP_BITS) + (uint32_t)(ns >> top);
}

/** The longest time of a bucket. */
uint64_t latency_upper(uint32_t bucket);

/** Add a time, in ns. Cost: one increment. */
static inline void
latency_add(struct latency *l, uint64_t ns)
{
	l->n[latency_bucket(ns)]++;
}

/** Add the counts of `from` to those of `into`. */
void latency_sum(struct latency *into, const struct latency *from);
/** How many times were added. */
uint64_t latency_count(const struct latency *l);
/**
 * The time, in ns, that `permille` of 1000 did not exceed (1000: the longest of all); 0: none.
 * Rounded up to the end of its bucket.
 */
uint64_t latency_permille(const struct latency *l, uint32_t permille);

#endif
