/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BROKER_QUEUE_H
#define BROKER_QUEUE_H
/**
 * @file broker_queue.h  From a connection's thread to the control lcore: requests in order; and
 *                       back: what is left to do.
 *
 * Owner:   broker_queue_put() is the thread's alone, broker_queue_take() and broker_queue_done()
 *          the control lcore's alone; broker_jobs_take() is the thread's, broker_jobs_put()
 *          anybody's.
 * Memory:  the caller's; a fixed number of pointers. Jobs are links in what they are about.
 * Depends: base.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

#define BROKER_QUEUE 8u /* entries, a power of two */

struct broker_queue {
	void *slot[BROKER_QUEUE];
	_Atomic uint32_t put; /* ever */
	CACHE_ALIGNED _Atomic uint32_t taken;
	_Atomic uint32_t done; /* of those taken */
};

/** How many were put and are not done with. The thread's: it grows by its own hand alone. */
static inline uint32_t
broker_queue_open(const struct broker_queue *q)
{
	return atomic_load_explicit(&q->put, memory_order_relaxed) -
	       atomic_load_explicit(&q->done, memory_order_seq_cst);
}

/** @return false: full. */
static inline bool
broker_queue_put(struct broker_queue *q, void *item)
{
	const uint32_t put = atomic_load_explicit(&q->put, memory_order_relaxed);

	if (broker_queue_open(q) >= BROKER_QUEUE)
		return false;
	q->slot[put % BROKER_QUEUE] = item;
	atomic_store_explicit(&q->put, put + 1, memory_order_release);
	return true;
}

/** Is there an entry? The control lcore's. */
static inline bool
broker_queue_has(const struct broker_queue *q)
{
	return atomic_load_explicit(&q->taken, memory_order_relaxed) !=
	       atomic_load_explicit(&q->put, memory_order_acquire);
}

/** Oldest entry, or NULL. */
static inline void *
broker_queue_take(struct broker_queue *q)
{
	const uint32_t taken = atomic_load_explicit(&q->taken, memory_order_relaxed);

	if (taken == atomic_load_explicit(&q->put, memory_order_acquire))
		return NULL;
	atomic_store_explicit(&q->taken, taken + 1, memory_order_relaxed);
	return q->slot[taken % BROKER_QUEUE];
}

/** What was taken first is done with: its slot is free. */
static inline void
broker_queue_done(struct broker_queue *q)
{
	atomic_fetch_add_explicit(&q->done, 1, memory_order_seq_cst);
}

/** Something for the thread to do. It is the list's until it was run. */
struct broker_job {
	struct broker_job *next;
	void (*run)(struct broker_job *job);
};

struct broker_jobs {
	_Atomic(struct broker_job *) newest;
};

/** Add one. Never waits. */
static inline void
broker_jobs_put(struct broker_jobs *l, struct broker_job *job)
{
	struct broker_job *newest = atomic_load_explicit(&l->newest, memory_order_relaxed);

	do {
		job->next = newest;
	} while (!atomic_compare_exchange_weak_explicit(
		&l->newest, &newest, job, memory_order_release, memory_order_relaxed));
}

/** All of them, oldest first; NULL: none. */
static inline struct broker_job *
broker_jobs_take(struct broker_jobs *l)
{
	struct broker_job *from = atomic_exchange_explicit(&l->newest, NULL, memory_order_acquire);
	struct broker_job *to = NULL;

	while (from != NULL) {
		struct broker_job *next = from->next;

		from->next = to;
		to = from;
		from = next;
	}
	return to;
}

#endif
