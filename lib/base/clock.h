/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLOCK_H
#define CLOCK_H
/**
 * @file clock.h  Time as it is passed down: nanoseconds, and the wheel's ticks.
 *
 * Owner:   any lcore. Nothing here reads a clock; the main loops do, between two stages.
 * Memory:  none.
 * Depends: nothing.
 * Spec:    IBTA vol. 1, 9.7.6.1.3: timeouts are multiples of 4.096 us (TMR-01).
 */
#include <stdint.h>

typedef uint64_t ns_t;   /* nanoseconds since the dataplane's clock started */
typedef uint64_t tick_t; /* 4.096 us each */

#define TICK_SHIFT 12 /* 4096 ns */

#define TIME_NS_PER_US 1000ull
#define TIME_NS_PER_MS 1000000ull
#define TIME_NS_PER_S  1000000000ull

/** The tick that a time is in: ticks are rounded down. */
static inline tick_t
tick_of(ns_t t)
{
	return t >> TICK_SHIFT;
}

/** First tick that is not before `t`: arming a timer there never fires early. */
static inline tick_t
tick_after(ns_t t)
{
	return (t + (1u << TICK_SHIFT) - 1) >> TICK_SHIFT;
}

#endif
