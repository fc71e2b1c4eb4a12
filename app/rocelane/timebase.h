/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIMEBASE_H
#define TIMEBASE_H
/**
 * @file timebase.h  The one clock of the process: TSC cycles turned into nanoseconds.
 *
 * Owner:   timebase_begin() and timebase_init() on the main lcore before the workers start;
 *          the others on any.
 * Memory:  none.
 * Depends: base; DPDK.
 *
 * The TSC's rate is measured here: EAL rounds what it measured to 10 MHz, and a clock that is fast
 * by a thousandth ends every wait as much too early.
 */
#include "clock.h"

/** First look at the TSC beside the kernel's clock. The longer before timebase_init() the better.
 */
void timebase_begin(void);
/** Second look: the rate, within 20 ppm. Takes the present as zero. May wait for 50 ms. */
void timebase_init(void);
/** Nanoseconds since timebase_init(). Cost: rdtsc and a multiplication. */
ns_t timebase_now(void);
/** CPU time that the calling thread has had, ns. Cost: a system call. */
ns_t timebase_ran(void);

#endif
