/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_STAT_H
#define BENCH_STAT_H
/**
 * @file bench_stat.h  Which rows are asked for, and what is made of many samples of one figure.
 *
 * Owner:   benchmarks only.
 * Memory:  the caller's; samples are sorted.
 * Depends: nothing.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Does `name` stand among the arguments from `from` on? All do where there are none. */
static inline bool
is_chosen(const char *name, int argc, char **argv, int from)
{
	if (from >= argc)
		return true;
	for (int i = from; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return false;
}

static inline int
stat_compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/** @param n  not 0. */
static inline double
median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), stat_compare);
	return v[n / 2];
}

#endif
