/* SPDX-License-Identifier: BSD-3-Clause */
#include "timebase.h"

#include <time.h>

#include <rte_cycles.h>

#define FRACTION_BITS 32
#define LOOKS         32 /* at both clocks: the one that was interrupted least counts */
#define APART_NS      (50 * TIME_NS_PER_MS) /* 1 us of uncertainty at both ends is 40 ppm of it */

/** The same moment by both clocks. */
struct moment {
	uint64_t cycles;
	ns_t ns;
};

static struct moment first;
static uint64_t base_cycles;
static uint64_t ns_per_cycle; /* fixed point, FRACTION_BITS behind the point */

/* The raw clock: what NTP does to the other at this moment must not stay for ever. */
static ns_t
kernel_time(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (ns_t)ts.tv_sec * TIME_NS_PER_S + (ns_t)ts.tv_nsec;
}

static struct moment
look(void)
{
	struct moment best = { 0, 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < LOOKS; i++) {
		const uint64_t before = rte_get_tsc_cycles();
		const ns_t ns = kernel_time(CLOCK_MONOTONIC_RAW);
		const uint64_t took = rte_get_tsc_cycles() - before;

		if (took >= least)
			continue;
		least = took;
		best = (struct moment){ before + took / 2, ns };
	}
	return best;
}

void
timebase_begin(void)
{
	first = look();
}

void
timebase_init(void)
{
	const struct timespec wait = { 0, (long)APART_NS };
	struct moment second = look();

	while (second.ns - first.ns < APART_NS) {
		nanosleep(&wait, NULL);
		second = look();
	}
	ns_per_cycle = (uint64_t)(((__uint128_t)(second.ns - first.ns) << FRACTION_BITS) /
				  (second.cycles - first.cycles));
	base_cycles = rte_get_tsc_cycles();
}

ns_t
timebase_now(void)
{
	uint64_t cycles = rte_get_tsc_cycles() - base_cycles;

	return (ns_t)(((__uint128_t)cycles * ns_per_cycle) >> FRACTION_BITS);
}

ns_t
timebase_ran(void)
{
	return kernel_time(CLOCK_THREAD_CPUTIME_ID);
}
