/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATS_H
#define STATS_H
/**
 * @file stats.h  Counters: always compiled in, the same names at every scope.
 *
 * Owner:   each block has one writing lcore; any lcore may read (a torn 64-bit read cannot happen
 *          on the machines we build for, and a slightly old value is fine).
 * Memory:  a block is a plain array, embedded by its owner.
 * Depends: base.
 */
#include <stdint.h>

#include "compiler.h"

enum stats_counter {
#define COUNTER(name, unit, drop, help) STAT_##name,
#include "counters.def"
#undef COUNTER
	STAT_MAX
};

struct stats_info {
	const char *name; /* as users see it */
	const char *unit; /* "packets", "bytes", "events" ... */
	const char *help;
	uint8_t drop; /* 1: a packet received and not accepted; the drops add up */
};

extern const struct stats_info stats_info[STAT_MAX];

/** The first so many are those of every packet of the good path, and fill a cache line. */
#define STATS_HOT 8
_Static_assert(STAT_duplicate_request == STATS_HOT - 1, "counters.def: the good path comes first");

/** Per worker: all counters. */
struct stats_block {
	uint64_t c[STAT_MAX] CACHE_ALIGNED;
};

/** The worker whose block it is: add n to a counter. */
static inline void
stats_add(struct stats_block *b, enum stats_counter s, uint64_t n)
{
	b->c[s] += n;
}

/** The worker whose block it is: add one to a counter. */
static inline void
stats_inc(struct stats_block *b, enum stats_counter s)
{
	b->c[s]++;
}

/** rx_syndrome_<bit> of a bit 0..31. */
enum stats_counter stats_of_syndrome(unsigned int bit);
/** Counter by name, or STAT_MAX. */
enum stats_counter stats_by_name(const char *name);
/** Add each counter of `from` to that of `into`. */
void stats_sum(struct stats_block *into, const struct stats_block *from);

#endif
