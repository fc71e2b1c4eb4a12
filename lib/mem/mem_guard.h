/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEM_GUARD_H
#define MEM_GUARD_H
/**
 * @file mem_guard.h  Memory shared with clients must not be able to kill the process.
 *
 * Owner:   any thread adds and removes an area of its own; mem_guard_fault() runs in a signal
 *          handler of any thread.
 * Memory:  one static table: a signal handler has no argument of its own.
 * Depends: mem.h.
 *
 * Sealed memory keeps its size, but a page of it may be missing when it is used: its owner can
 * punch a hole into a file of hugepages, which gives up the page's reservation, a swapped page may
 * not come back, a DIMM may fail. Memory that is not sealed can be made shorter, too. Such an
 * access raises SIGBUS. The piece of 4 MiB of the area that has the page, or a page that is larger,
 * or all of it where there can be no more mappings, is replaced by private zeros, the access goes
 * on, and the area is marked, for the control lcore to end its client.
 */
#include <stdbool.h>

#include "mem.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

/** Guard this area from now on. @return 0, or -ENOSPC: table full. Cost: a search of the table. */
int mem_guard_add(struct mem_area *a);
/** Guard it no longer. An area that was never added is left alone. */
void mem_guard_remove(struct mem_area *a);
/** Call it from the handler of SIGBUS. @return false: the address is in no guarded area. */
bool mem_guard_fault(void *address);
/** How many accesses failed so far, all areas together. */
unsigned int mem_guard_faults(void);
/** Did an access to this area fail? */
bool mem_guard_is_hit(const struct mem_area *a);

#endif
