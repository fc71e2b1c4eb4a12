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
	_Atomic uint64_t stalled_ns;     /* a witness's: no program had its CPU */
};

/**
 * Works until it is told to stop. VICTIM_WAITS: files of the workers, "/proc/1/task/2/schedstat",
 * with colons between them. Whatever is wrong ends the process with 1, and says what.
 */
void victim_run(const char *socket, struct victim_report *r);

/**
 * Until it is told to stop: adds to r->stalled_ns how long nothing ran on this CPU, not even this
 * thread, which is ahead of all others. The machine below us had the CPU then. No thread's counters
 * tell of that. Without the right to be ahead it does nothing.
 */
void victim_witness(struct victim_report *r, int cpu);

#endif
