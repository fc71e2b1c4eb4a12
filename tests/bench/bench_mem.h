/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MEM_H
#define BENCH_MEM_H
/**
 * @file bench_mem.h  Huge pages by advice, which no privilege is needed for.
 *
 * Owner:   the rigs of the benchmarks; one thread.
 * Memory:  never given back.
 * Depends: DPDK.
 */
#include <stddef.h>
#include <stdint.h>

/** Zeroed memory, or the end of the program. */
uint8_t *bench_huge_pages(size_t len);
/** A heap of rte_malloc() on such memory: EAL's own is not, without privileges. @return socket. */
int bench_heap(const char *name, size_t len);

#endif
