/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CPUS_H
#define CPUS_H
/**
 * @file cpus.h  A worker that polls has a CPU of its own, where there are enough.
 *
 * A worker that is kept from its CPU answers nobody meanwhile: a program that spins beside it costs
 * both of them more than it gains. Each end of a test has a CPU as well: three at least.
 *
 * Owner:   any thread.
 * Memory:  the caller's.
 * Depends: nothing.
 */
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define CPUS_LEAST 3                 /* fewer are shared */
#define CPUS_TEXT  (CPU_SETSIZE * 5) /* room for each list */

/**
 * Of the CPUs that this process may use, the last one is the worker's: the first ones have most of
 * the interrupts. All others are its program's, and the control lcore's.
 * @return false: there are too few, all CPUs are everybody's.
 */
bool cpus_apart(const cpu_set_t *allowed, cpu_set_t *worker, cpu_set_t *others);

/** As EAL's and taskset's lists: 0-2,5. @param out CPUS_TEXT bytes. */
void cpus_text(const cpu_set_t *set, char *out);

#endif
