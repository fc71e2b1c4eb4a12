/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RING_PRESENCE_H
#define RING_PRESENCE_H
/**
 * @file ring_presence.h  What clients may know of workers: on which CPUs they run, and who sleeps.
 *
 * Owner:   each worker writes its own part; clients have it mapped for reading.
 * Memory:  one area for all clients, ring_presence_size() bytes, zeroed. Nothing in it is an index.
 * Depends: base.
 *
 * A worker that goes to sleep says so first, and then looks at the doorbells once more. Whoever
 * rings one looks here afterwards. So one of the two sees the other: no doorbell is slept over.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

#define RING_PRESENCE_CPUS 512 /* those above are not told */

struct ring_presence_worker {
	_Atomic uint32_t asleep CACHE_ALIGNED; /* a doorbell has to wake it */
};

struct ring_presence {
	_Atomic uint64_t cpus[RING_PRESENCE_CPUS / 64] CACHE_ALIGNED; /* where workers are */
	struct ring_presence_worker worker[];
};

/** Bytes for so many workers. */
static inline size_t
ring_presence_size(uint32_t workers)
{
	return sizeof(struct ring_presence) + workers * sizeof(struct ring_presence_worker);
}

/** Is a worker on this CPU? */
static inline bool
ring_presence_is_on(const struct ring_presence *p, uint32_t cpu)
{
	if (UNLIKELY(cpu >= RING_PRESENCE_CPUS))
		return false;
	return (atomic_load_explicit(&p->cpus[cpu / 64], memory_order_relaxed) >> cpu % 64 & 1) !=
	       0;
}

/**
 * Worker: it is on CPU `now`, and was on `was` when it said so last. Another one that is still
 * there says so again. Cost: a load, as a rule.
 */
static inline void
ring_presence_move(struct ring_presence *p, uint32_t was, uint32_t now)
{
	if (was != now && was < RING_PRESENCE_CPUS)
		atomic_fetch_and_explicit(
			&p->cpus[was / 64], ~(UINT64_C(1) << was % 64), memory_order_relaxed);
	if (now < RING_PRESENCE_CPUS && !ring_presence_is_on(p, now))
		atomic_fetch_or_explicit(
			&p->cpus[now / 64], UINT64_C(1) << now % 64, memory_order_relaxed);
}

/** Worker: it is about to sleep, and looks at its doorbells after this. */
static inline void
ring_presence_sleeps(struct ring_presence *p, uint32_t worker)
{
	atomic_store_explicit(&p->worker[worker].asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/** Worker: it is awake. */
static inline void
ring_presence_wakes(struct ring_presence *p, uint32_t worker)
{
	atomic_store_explicit(&p->worker[worker].asleep, 0, memory_order_relaxed);
}

/** Client, after ring_bells_put(): does the worker have to be woken? */
static inline bool
ring_presence_is_asleep(const struct ring_presence *p, uint32_t worker)
{
	return atomic_load_explicit(&p->worker[worker].asleep, memory_order_relaxed) != 0;
}

#endif
