/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_EAL_H
#define TEST_EAL_H
/**
 * @file eal.h  DPDK for a test that needs nothing of the machine: no devices, no files, one lcore.
 *
 * Owner:   tests only; once a process.
 * Memory:  DPDK's.
 * Depends: DPDK.
 */
#include <stdint.h>

#include <rte_eal.h>

/** @param megabytes  of memory, in decimal. @return 0, or -1. */
static inline int
eal_start(const char *megabytes)
{
	char *argv[] = { (char *)(uintptr_t) "unit", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--log-level=critical",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t)megabytes, NULL };

	/* Its folder stays: it is that of all who name none, and one who starts needs it. */
	return rte_eal_init(8, argv) < 0 ? -1 : 0;
}

#endif
