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
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_memory.h>

/* A refusal is none: then its pages are small. */
static inline int
eal_memory_huge(const struct rte_memseg_list *list, void *arg)
{
	(void)arg;
	(void)!madvise(list->base_va, list->len, MADV_HUGEPAGE);
	return 0;
}

/**
 * rte_eal_init() for a program whose only thread at work is this one. EAL would keep it on the CPU
 * of its main lcore, which is the same one for all tests that run at once.
 * @return as rte_eal_init().
 */
static inline int
eal_init_anywhere(int argc, char **argv)
{
	cpu_set_t allowed;
	const int known = sched_getaffinity(0, sizeof(allowed), &allowed);
	const int rc = rte_eal_init(argc, argv);

	if (rc >= 0 && known == 0)
		sched_setaffinity(0, sizeof(allowed), &allowed);
	/* Packet buffers: thousands of pages, each written at the start and at the end. */
	if (rc >= 0)
		rte_memseg_list_walk(eal_memory_huge, NULL);
	return rc;
}

/** @param megabytes  of memory, in decimal. @return 0, or -1. */
static inline int
eal_start(const char *megabytes)
{
	char *argv[] = { (char *)(uintptr_t) "unit", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--log-level=critical",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t)megabytes, NULL };

	/* Its folder stays: it is that of all who name none, and one who starts needs it. */
	return eal_init_anywhere(8, argv) < 0 ? -1 : 0;
}

#endif
