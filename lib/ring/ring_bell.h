/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RING_BELL_H
#define RING_BELL_H
/**
 * @file ring_bell.h  Doorbells: how a client tells a worker which of its queues have new entries.
 *
 * Owner:   one ring for each client and worker; producers are the client's threads, the consumer is
 *          the worker.
 * Memory:  the caller's, shared, ring_bells_size() bytes, zeroed.
 * Depends: base, ring.
 *
 * A slot is 0, or the number of a queue. Nothing else is shared: each side has an index of its own.
 * A queue's `bell` word says whether a number of it is on its way; as long as producers respect it,
 * a ring with a slot for each queue never runs full. The consumer zeroes a slot, then the queue's
 * `bell`, and only then looks at the queue: an entry published before is seen, one published after
 * rings again.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

#define RING_BELLS_MAX (1u << 22) /* slots */

/** What is in a slot, apart from 0. */
#define RING_BELL_QPN  0xffffffu
#define RING_BELL_RECV 0x80000000u /* the receive queue, not the send queue */

/** Private view of either side. */
struct ring_bells {
	_Atomic uint32_t *slot;
	uint32_t mask;
	_Atomic uint32_t next;
};

/** Bytes for `entries`, a power of two; 0: it is none, or above RING_BELLS_MAX. */
size_t ring_bells_size(uint32_t entries);
/** Bind a view to zeroed memory of ring_bells_size(entries) bytes. Each side has its own view. */
void ring_bells_attach(struct ring_bells *b, void *mem, uint32_t entries);

/**
 * Producer, any thread, after ring_produce_commit(): does the consumer have to be told? The caller
 * then does so with ring_bells_put(). Cost: one locked operation.
 */
static inline bool
ring_bell_is_due(struct ring *r)
{
	return atomic_exchange_explicit(&r->sh->bell, 1, memory_order_acq_rel) == 0;
}

/**
 * Producer, any thread: a number that is not 0.
 * What is read behind it is read later, for ring_presence.h.
 * @return 0, or -ENOSPC: the consumer has left no slot free for long; the ring is useless then.
 */
int ring_bells_put(struct ring_bells *b, uint32_t number);

/** Consumer: the next number, or 0. Cost: one line. */
static inline uint32_t
ring_bells_take(struct ring_bells *b)
{
	const uint32_t next = atomic_load_explicit(&b->next, memory_order_relaxed);
	_Atomic uint32_t *slot = &b->slot[next & b->mask];
	const uint32_t number = atomic_load_explicit(slot, memory_order_acquire);

	if (LIKELY(number == 0))
		return 0;
	atomic_store_explicit(slot, 0, memory_order_release);
	atomic_store_explicit(&b->next, next + 1, memory_order_relaxed);
	return number;
}

/** Consumer: the number that stands so many behind the next one; 0: none does, or not yet. */
static inline uint32_t
ring_bells_peek(const struct ring_bells *b, uint32_t behind)
{
	const uint32_t next = atomic_load_explicit(&b->next, memory_order_relaxed);

	return atomic_load_explicit(&b->slot[(next + behind) & b->mask], memory_order_acquire);
}

/** Consumer: is there a number to take? */
static inline bool
ring_bells_ring(const struct ring_bells *b)
{
	return ring_bells_peek(b, 0) != 0;
}

/** Consumer: a queue whose number it has taken may ring again; ring_bells_heard() is next. */
static inline void
ring_bell_clear(struct ring *r)
{
	atomic_store_explicit(&r->sh->bell, 0, memory_order_release);
}

/**
 * Consumer: of the queues whose bells were cleared, every entry is seen from here on that was
 * published when its producer found the bell still ringing; who comes later rings again. Cost: that
 * of one locked operation, for any number of queues.
 */
static inline void
ring_bells_heard(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/** The same of one queue. */
static inline void
ring_bell_heard(struct ring *r)
{
	ring_bell_clear(r);
	ring_bells_heard();
}

#endif
