/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORKERS_MANY_H
#define BENCH_WORKERS_MANY_H
/**
 * @file bench_workers_many.h  More workers than there are CPUs: one thread plays all of them.
 *
 * Owner:   bench_workers.c; one thread, but for many_half().
 * Memory:  static.
 * Depends: bench_rig.h, net_pair.
 *
 * A port with a receive queue for each worker, and queue pairs whose packets come to any of them:
 * of n workers each hands (n - 1) / n of what it receives over. Turns are timed one by one. What
 * the busiest worker takes for all packets is what they would take together, but for lines that
 * come out of another CPU's cache: here all are in one.
 */
#include "bench_rig.h"

enum { MANY_MOST = 16, MANY_QPS = MANY_MOST * RING_QPS };

struct many {
	double handed;  /* part of the packets */
	double cycles;  /* a packet, at all workers that have to do with it */
	double busiest; /* that a packet takes of the time of the worker with most work */
};

/** Workers and their port. @param rig with MANY_QPS QPs. */
void many_set_up(struct bench_rig *rig);
/** @param workers 1 to MANY_MOST. */
struct many many_measure(const struct bench_case *c, uint32_t workers, uint32_t repeats);

/** Two of them at the same time, each on a CPU. */
struct many_half {
	uint32_t samples; /* in which both threads had their CPUs */
	double one;       /* cycles a packet of a worker that is alone ... */
	double two;       /* ... and of two, which hand half of all packets over */
	double speedup;
};

/** @param second the lcore of the second worker; the first one is on the caller's. */
struct many_half many_half(const struct bench_case *c, uint32_t second, uint32_t repeats);

#endif
