/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_bell.h"
#include "invariant.h"

#include <errno.h>
#include <sched.h>

/*
 * Between honest sides a slot is always free: these bound the wait for a consumer that is not. Few
 * yields, for each takes as long as others on a busy machine like to run.
 */
#define PUT_SPINS  1000
#define PUT_YIELDS 100

size_t
ring_bells_size(uint32_t entries)
{
	if (entries == 0 || entries > RING_BELLS_MAX || (entries & (entries - 1)) != 0)
		return 0;
	return entries * sizeof(uint32_t);
}

void
ring_bells_attach(struct ring_bells *b, void *mem, uint32_t entries)
{
	ASSERT(ring_bells_size(entries) != 0);
	ASSERT((uintptr_t)mem % sizeof(*b->slot) == 0);
	b->slot = mem;
	b->mask = entries - 1;
	atomic_init(&b->next, 0);
}

int
ring_bells_put(struct ring_bells *b, uint32_t number)
{
	const uint32_t at = atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);
	_Atomic uint32_t *slot = &b->slot[at & b->mask];

	ASSERT(number != 0); /* a free slot is 0 */
	for (uint32_t i = 0; i < PUT_SPINS + PUT_YIELDS; i++) {
		uint32_t none = 0;

		if (LIKELY(atomic_compare_exchange_strong_explicit(
			    slot, &none, number, memory_order_seq_cst, memory_order_relaxed)))
			return 0;
		if (i >= PUT_SPINS)
			sched_yield();
	}
	return -ENOSPC;
}
