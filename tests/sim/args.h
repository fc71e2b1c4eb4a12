/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ARGS_H
#define ARGS_H
/**
 * @file args.h  Arguments of the simulations: a word that is none plays something else than is
 *               meant, and passes. It ends the program with 2.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline _Noreturn void
args_bad(const char *usage)
{
	fprintf(stderr, "usage: %s\n", usage);
	exit(2);
}

static inline uint64_t
args_number(const char *text, const char *usage)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-') {
		fprintf(stderr, "'%s' is not a number\n", text);
		args_bad(usage);
	}
	return v;
}

/** Seeds count up from the first one. */
static inline void
args_seeds(uint64_t first, uint64_t n, const char *usage)
{
	if (n <= UINT64_MAX - first)
		return;
	fprintf(stderr, "there are no %llu seeds from %llu on\n", (unsigned long long)n,
		(unsigned long long)first);
	args_bad(usage);
}

#endif
