/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far two CPUs are apart: the cycles in which a cache line goes from one to the other and back.
 * On a virtual machine that is not a constant: it depends on where the host lets the CPUs run.
 *
 *   bench_distance CPU CPU
 *
 * Prints a JSON object with the median of ROUNDS rounds.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "compiler.h"

enum { ROUNDS = 51, TIMES = 200 };

static struct {
	_Atomic uint32_t ball; /* even: ours */
} line CACHE_ALIGNED;

static int cpus[2];

static void
settle(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0) {
		fprintf(stderr, "bench_distance: there is no CPU %d\n", cpu);
		exit(1);
	}
}

static void *
other(void *arg UNUSED)
{
	settle(cpus[1]);
	for (uint32_t i = 0; i < ROUNDS * TIMES; i++) {
		while (atomic_load_explicit(&line.ball, memory_order_acquire) != 2 * i + 1)
			;
		atomic_store_explicit(&line.ball, 2 * i + 2, memory_order_release);
	}
	return NULL;
}

static int
by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
	static uint64_t cycles[ROUNDS];
	pthread_t thread;

	if (argc != 3) {
		fprintf(stderr, "usage: bench_distance CPU CPU\n");
		return 1;
	}
	for (int i = 0; i < 2; i++)
		cpus[i] = (int)strtol(argv[1 + i], NULL, 10) % CPU_SETSIZE;
	if (pthread_create(&thread, NULL, other, NULL) != 0)
		return 1;
	settle(cpus[0]);
	for (uint32_t i = 0; i < ROUNDS * TIMES; i++) {
		const uint64_t start = rte_rdtsc();

		atomic_store_explicit(&line.ball, 2 * i + 1, memory_order_release);
		while (atomic_load_explicit(&line.ball, memory_order_acquire) != 2 * i + 2)
			;
		cycles[i / TIMES] += rte_rdtsc() - start;
	}
	pthread_join(thread, NULL);
	qsort(cycles, ROUNDS, sizeof(cycles[0]), by_value);
	printf("{\"cycles\": %.1f}\n", (double)cycles[ROUNDS / 2] / TIMES);
	return 0;
}
