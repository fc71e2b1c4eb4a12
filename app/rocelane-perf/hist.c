/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "perf.h"

#define SUB_BITS 6 /* of HIST_SUB */

void
hist_reset(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

/* Values below HIST_SUB have a bucket each, then every doubling has HIST_SUB of them. */
static unsigned int
bucket_of(uint64_t ns)
{
	unsigned int high;
	unsigned int b;

	if (ns < HIST_SUB)
		return (unsigned int)ns;
	high = 63 - (unsigned int)__builtin_clzll(ns) - SUB_BITS;
	b = (high + 1) * HIST_SUB + (unsigned int)(ns >> high) - HIST_SUB;
	return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

static double
middle_of(unsigned int b)
{
	unsigned int high = b / HIST_SUB;
	double width;

	if (high == 0)
		return b;
	width = ldexp(1, (int)high - 1);
	return (HIST_SUB + b % HIST_SUB) * width + width / 2;
}

void
hist_add(struct hist *h, uint64_t ns)
{
	h->n++;
	h->min = ns < h->min ? ns : h->min;
	h->max = ns > h->max ? ns : h->max;
	h->sum += (double)ns;
	h->sum2 += (double)ns * (double)ns;
	h->bucket[bucket_of(ns)]++;
}

double
hist_at(const struct hist *h, double share)
{
	double want = share * (double)h->n;
	uint64_t seen = 0;

	for (unsigned int b = 0; b < HIST_BUCKETS; b++) {
		seen += h->bucket[b];
		if (h->bucket[b] != 0 && (double)seen >= want) {
			double v = middle_of(b);

			v = v < (double)h->min ? (double)h->min : v;
			return v > (double)h->max ? (double)h->max : v;
		}
	}
	return 0;
}

double
hist_mean(const struct hist *h)
{
	return h->n != 0 ? h->sum / (double)h->n : 0;
}

double
hist_stdev(const struct hist *h)
{
	double mean = hist_mean(h);
	double var = h->n != 0 ? h->sum2 / (double)h->n - mean * mean : 0;

	return var > 0 ? sqrt(var) : 0;
}
