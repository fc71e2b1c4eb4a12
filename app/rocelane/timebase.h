/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIMEBASE_H
#define TIMEBASE_H
/**
 * @file timebase.h  The one clock of the process: TSC cycles turned into nanoseconds.
 *
 * Owner:   timebase_init() on the main lcore before the workers start; timebase_now() on any.
 * Memory:  none.
 * Depends: base; DPDK.
 */
#include "clock.h"

/** Measure the TSC (EAL did) and take the present as zero. */
void timebase_init(void);
/** Nanoseconds since timebase_init(). Cost: rdtsc and a multiplication. */
ns_t timebase_now(void);

#endif
