/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VICTIM_H
#define VICTIM_H
/**
 * @file victim.h  For tests: a client that writes, reads back and compares every byte.
 *
 * Owner:   one thread.
 * Memory:  the report is the caller's; others may look at it and write into it meanwhile.
 * Depends: pair.h.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct victim_report {
	_Atomic uint64_t blocks;     /* of 2 KiB: written, read back and compared */
	_Atomic uint64_t longest_ns; /* from one block to the next; whoever looks may zero it */
	_Atomic bool stop;
	_Atomic uint64_t longest_net_ns; /* without our waits for a CPU, and the workers' */
};

/**
 * Works until it is told to stop. VICTIM_WAITS: files of the workers, "/proc/1/task/2/schedstat",
 * with colons between them. Whatever is wrong ends the process with 1, and says what.
 */
void victim_run(const char *socket, struct victim_report *r);

#endif
