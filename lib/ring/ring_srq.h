/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RING_SRQ_H
#define RING_SRQ_H
/**
 * @file ring_srq.h  Shared receive ring: one producer, and QPs of any worker that take from it.
 *
 * Owner:   the producer posts through a `struct ring` of its own; any worker looks and takes.
 * Memory:  the caller's, ring_size() bytes of the layout in ring.h, and a bigger one after
 *          ring_srq_move().
 * Depends: base, ring.h.
 * Spec:    SRQ-01.
 *
 * No lock: a worker copies the entry at the head, decides, and then takes it with one
 * compare-and-swap on the head. That fails only if another worker took it first, and then the
 * decision is made again with the entry that is the head now. An entry is never given to two QPs.
 */
#include "ring.h"

/** Where the entries are. */
struct ring_srq_view {
	struct ring_shared *sh;
	uint32_t mask;
	uint32_t stride;
};

struct ring_srq {
	_Atomic uint32_t head CACHE_ALIGNED; /* next entry to be taken; writers: workers */
	struct ring_srq_view *_Atomic at CACHE_ALIGNED; /* one of `view` */
	struct ring_srq_view view[2];
};

/** Bind to fresh memory of ring_size(entries, stride) bytes. */
void ring_srq_attach(struct ring_srq *q, void *mem, uint32_t entries, uint32_t stride);
/** The producer's view of the ring as it is now; a limit and ring_produce_slot() do the rest. */
void ring_srq_producer(const struct ring_srq *q, struct ring *out);
/**
 * Producer: go on in memory for `entries` (no fewer than before). Nothing is lost, and consumers
 * need not stop. The old memory must stay until each consumer has left the burst that it is in;
 * do not call this again before.
 */
void ring_srq_move(struct ring_srq *q, void *mem, uint32_t entries);

/**
 * Any worker: copy the head's entry; of more than max_sge SGEs only the number is copied.
 * @return 1; 0: nothing is posted; -EBADMSG: an index that no honest producer could have reached.
 * Cost: three lines, and those of the entry.
 */
int ring_srq_peek(struct ring_srq *q, uint32_t max_sge, struct ring_recv_copy *out);
/** Any worker: take the entry that was copied. @return false: another worker has it. */
bool ring_srq_take(struct ring_srq *q, const struct ring_recv_copy *copy);
/** Entries from the head on, as a worker sees them. */
struct ring_srq_run {
	const struct ring_srq_view *view;
	uint32_t head; /* index of the first */
	uint32_t n;
};
/**
 * Any worker: what is posted; of impossible indices nothing is. Whatever is read of the entries
 * (ring_srq_at()) is theirs only if ring_srq_take_run() says so afterwards.
 */
struct ring_srq_run ring_srq_look(struct ring_srq *q);
/** The entry so far behind the head: i < run->n. Read each word once. */
static inline const struct ring_recv_wqe *
ring_srq_at(const struct ring_srq_run *run, uint32_t i)
{
	const struct ring_srq_view *v = run->view;
	const uint8_t *slot = v->sh->slots + (size_t)((run->head + i) & v->mask) * v->stride;

	return (const void *)slot;
}
/** Any worker: take the first n of them, n > 0. @return false: another worker has the first. */
bool ring_srq_take_run(struct ring_srq *q, const struct ring_srq_run *run, uint32_t n);
/**
 * Anybody but the producer: nothing is taken any more; ring.h's `alert` tells the producer. Call it
 * again after a move.
 */
void ring_srq_fail(struct ring_srq *q);
/** Anybody: entries posted and not taken; 0 where the indices are impossible. */
uint32_t ring_srq_count(struct ring_srq *q);
/** Slot of an entry, 0 .. entries - 1. */
uint32_t ring_srq_slot(const struct ring_srq *q, const struct ring_recv_copy *copy);

#endif
