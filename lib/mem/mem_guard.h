/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEM_GUARD_H
#define MEM_GUARD_H
/**
 * @file mem_guard.h  Memory shared with clients must not be able to kill the process.
 *
 * Owner:   the control lcore adds and removes; mem_guard_fault() runs in a signal handler of any
 *          thread.
 * Memory:  one static table: a signal handler has no argument of its own.
 * Depends: mem.h.
 *
 * Sealed memory keeps its size, but not every page of it can be had at any time: a hole that its
 * owner punches into a file of hugepages takes the page's reservation along, a swapped page may not
 * come back, a DIMM may fail. Such an access raises SIGBUS. The page is replaced by a private one
 * of zeros, the access goes on, and the area is marked, for the control lcore to end its client.
 */
#include <stdbool.h>

#include "mem.h"

/** @return 0, or -ENOSPC: the table is full. Cost: a search of the table. */
int mem_guard_add(struct mem_area *a);
/** Also of an area that was never added. */
void mem_guard_remove(struct mem_area *a);
/** From a handler of SIGBUS. @return false: the address is none of ours. */
bool mem_guard_fault(void *address);
/** How many accesses failed so far, all areas together. */
unsigned int mem_guard_faults(void);
/** Did an access to this area fail? */
bool mem_guard_is_hit(const struct mem_area *a);

#endif
