/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_STAT_H
#define BENCH_STAT_H
/**
 * @file bench_stat.h  What is made of many samples of one figure.
 *
 * Owner:   benchmarks only.
 * Memory:  the caller's; it is sorted.
 * Depends: nothing.
 */
#include <stdint.h>
#include <stdlib.h>

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
