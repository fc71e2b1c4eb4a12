/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

static struct perf_places
places_of(const struct perf *p, uint64_t size)
{
	const uint64_t step = (size + p->line - 1) / p->line * p->line;

	if (p->o.validate)
		return (struct perf_places){ size, p->slots };
	if (p->o.lat || step > p->cycle_buffer / 2)
		return (struct perf_places){ 0, 1 };
	return (struct perf_places){ step, (uint32_t)(p->cycle_buffer / step) };
}

void
places_set(struct perf *p, uint64_t size)
{
	p->sent_at = places_of(p, size);
	p->received_at = places_of(p, size + p->head);
}
