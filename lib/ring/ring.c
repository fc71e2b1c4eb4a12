/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring.h"
#include "invariant.h"

#define FETCH_AHEAD 6 /* entries, which a consumer that is near has in its cache */

static bool
is_power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

size_t
ring_size(uint32_t entries, uint32_t stride)
{
	size_t bytes;

	if (!is_power_of_two(entries) || entries > RING_MAX_ENTRIES)
		return 0;
	if (stride == 0 || stride % 16 != 0)
		return 0;
	bytes = sizeof(struct ring_shared) + (size_t)entries * stride;
	return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

uint32_t
ring_recv_stride(uint32_t max_sge)
{
	if (max_sge > RING_MAX_SGE)
		return 0;
	return (uint32_t)(sizeof(struct ring_recv_wqe) + max_sge * sizeof(struct ring_sge));
}

uint32_t
ring_entries(uint32_t n)
{
	uint32_t entries = 1;

	if (n > RING_MAX_ENTRIES)
		return 0;
	while (entries < n)
		entries <<= 1;
	ASSERT(is_power_of_two(entries) && entries >= n);
	return entries;
}

void
ring_attach(struct ring *r, void *mem, uint32_t entries, uint32_t stride, bool fresh)
{
	ASSERT(ring_size(entries, stride) != 0);
	ASSERT((uintptr_t)mem % CACHE_LINE == 0);
	r->sh = mem;
	r->mask = entries - 1;
	r->stride = stride;
	if (fresh) {
		atomic_store_explicit(&r->sh->prod, 0, memory_order_relaxed);
		atomic_store_explicit(&r->sh->bell, 0, memory_order_relaxed);
		atomic_store_explicit(&r->sh->alert, 0, memory_order_relaxed);
		atomic_store_explicit(&r->sh->cons, 0, memory_order_relaxed);
	}
	r->prod = atomic_load_explicit(&r->sh->prod, memory_order_acquire);
	r->cons = atomic_load_explicit(&r->sh->cons, memory_order_acquire);
	if (r->prod - r->cons > entries)
		r->cons = r->prod; /* indices that cannot be: begin as if empty */
	ASSERT(r->prod - r->cons <= entries);
}

/* The consumer has read these lines: nobody waits while they come back, to be written. */
static inline void
fetch_ahead(const struct ring *r)
{
	const uint8_t *entry = ring_slot(r, r->prod + FETCH_AHEAD);

	prefetch_write(entry);
	prefetch_write(entry + CACHE_LINE);
}

void *
ring_produce_slot(struct ring *r, uint32_t limit)
{
	uint32_t cons;

	ASSERT(r->prod - r->cons <= r->mask + 1);
	if (limit > r->mask + 1)
		limit = r->mask + 1;
	fetch_ahead(r);
	if (LIKELY(r->prod - r->cons < limit))
		return ring_slot(r, r->prod);

	cons = atomic_load_explicit(&r->sh->cons, memory_order_acquire);
	if (r->prod - cons >= limit)
		return NULL; /* full, or an index that the consumer made up */
	r->cons = cons;
	return ring_slot(r, r->prod);
}

void
ring_produce_commit(struct ring *r)
{
	ASSERT(r->prod - r->cons <= r->mask); /* ring_produce_slot() has found a free slot */
	r->prod++;
	atomic_store_explicit(&r->sh->prod, r->prod, memory_order_release);
}

bool
ring_is_corrupt(const struct ring *r)
{
	return atomic_load_explicit(&r->sh->prod, memory_order_relaxed) - r->cons > r->mask + 1;
}
