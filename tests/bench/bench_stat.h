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
#include <stdio.h>
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

/**
 * Ends the program, with a word, if one of the arguments from `from` on is no row: an option that
 * lacks its value, too.
 * @param name_of the i-th row's name; NULL: there are no more.
 */
static inline void
check_rows(int argc, char **argv, int from, const char *(*name_of)(size_t i))
{
	for (int a = from; a < argc; a++) {
		size_t i = 0;

		while (name_of(i) != NULL && strcmp(name_of(i), argv[a]) != 0)
			i++;
		if (name_of(i) != NULL)
			continue;
		fprintf(stderr, "'%s' is no row, nor an option with its value. Rows:", argv[a]);
		for (i = 0; name_of(i) != NULL; i++)
			fprintf(stderr, " %s", name_of(i));
		fputc('\n', stderr);
		exit(2);
	}
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
