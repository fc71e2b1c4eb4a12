/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H
/**
 * @file bench_row.h  What the rows of bench_pipeline.c have in common: columns, and timed spans.
 *
 * Owner:   bench_pipeline.c, bench_requests.c; one thread.
 * Memory:  none.
 * Depends: lib/stats, DPDK.
 */
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <rte_cycles.h>

#include "load.h"

enum { TOTAL, RATIO, BARE, BY_BARE, EMPTY, COPIED, STAGES, COLUMNS = STAGES + STAGE_MAX };

/** Time that belongs to the row. */
struct span {
	uint64_t cpu;
	uint64_t wall;
	uint64_t start;
	uint64_t cycles;
};

static inline uint64_t
span_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline struct span
span_begin(void)
{
	struct span s = { .wall = rte_rdtsc_precise() };

	s.cpu = span_cpu_ns();
	s.start = rte_rdtsc_precise();
	return s;
}

/** @return false: too much of the time went to other processes. */
static inline bool
span_end(struct span *s)
{
	uint64_t cpu;

	s->cycles = rte_rdtsc_precise() - s->start;
	cpu = span_cpu_ns() - s->cpu;
	s->wall = rte_rdtsc_precise() - s->wall;
	return (double)cpu * (double)rte_get_tsc_hz() * 1e-9 >= 0.95 * (double)s->cycles &&
	       s->wall <= 4 * s->cycles + 20000;
}

#endif
