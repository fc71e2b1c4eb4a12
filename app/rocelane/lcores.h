/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LCORES_H
#define LCORES_H
/**
 * @file lcores.h  Which CPU an lcore runs on.
 *
 * Owner:   main lcore, before EAL starts.
 * Memory:  the caller's.
 * Depends: nothing.
 */
#include <sched.h>
#include <stdint.h>

/**
 * The CPU of each lcore: that of its own number where this process may run there. Others take what
 * is left, and share when nothing is, so that a laptop or a container with fewer CPUs works, too.
 * @param lcore the control lcore, then the workers. @param allowed has a CPU. @param cpu out: n.
 */
void lcores_place(const cpu_set_t *allowed, const uint32_t *lcore, uint32_t n, int *cpu);

#endif
