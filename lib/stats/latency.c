/* SPDX-License-Identifier: BSD-3-Clause */
#include "latency.h"

uint64_t
latency_upper(uint32_t bucket)
{
	const uint32_t steps = 1u << LATENCY_STEP_BITS;
	uint32_t shift;

	if (bucket < 2 * steps)
		return bucket;
	shift = bucket / steps - 1;
	return (((uint64_t)(bucket % steps) + steps + 1) << shift) - 1;
}

void
latency_sum(struct latency *into, const struct latency *from)
{
	for (uint32_t i = 0; i < LATENCY_BUCKETS; i++)
		into->n[i] += from->n[i];
}

uint64_t
latency_count(const struct latency *l)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < LATENCY_BUCKETS; i++)
		sum += l->n[i];
	return sum;
}

uint64_t
latency_permille(const struct latency *l, uint32_t permille)
{
	const uint64_t all = latency_count(l);
	const uint64_t want = all / 1000 * permille + (all % 1000 * permille + 999) / 1000;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) {
		seen += l->n[i];
		if (seen != 0 && seen >= want)
			return latency_upper(i);
	}
	return 0;
}
