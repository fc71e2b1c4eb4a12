/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring.h"
#include "invariant.h"

#include <errno.h>
#include <string.h>

/*
 * How often "full" is asked again because the consumer's index moved meanwhile: an honest consumer
 * makes room with the first move, one that keeps writing the index costs no more than this.
 */
#define FULL_TRIES 64

#define ARM_LEVEL 32
#define ARM_TURN  34

#define BODY_BYTES offsetof(struct ring_cqe, seq)

void
ring_cq_attach(struct ring_cq *q, void *mem, uint32_t entries, uint32_t cqe, bool fresh)
{
	ASSERT(ring_size(entries, sizeof(struct ring_cqe)) != 0);
	ASSERT((uintptr_t)mem % CACHE_LINE == 0);
	q->sh = mem;
	q->mask = entries - 1;
	q->limit = cqe < entries ? cqe : entries;
	q->turn = 0;
	if (fresh) {
		for (uint32_t i = 0; i < entries; i++)
			atomic_store_explicit(&ring_cq_at(q, i)->seq, 0, memory_order_relaxed);
		atomic_store_explicit(&q->sh->arm, 0, memory_order_relaxed);
		atomic_store_explicit(&q->sh->fired, 0, memory_order_relaxed);
		atomic_store_explicit(&q->sh->told, 0, memory_order_relaxed);
		atomic_store_explicit(&q->tail, 0, memory_order_relaxed);
		atomic_store_explicit(&q->sh->cons, 0, memory_order_release);
	}
	q->cons = atomic_load_explicit(&q->sh->cons, memory_order_acquire);
	q->seen = q->cons;
}

/* Far behind what can be added to the old one before all know of the new one. */
#define FOLLOW (1u << 20)

void
ring_cq_follow(struct ring_cq *q, const struct ring_cq *from)
{
	const uint32_t tail = atomic_load_explicit(&from->tail, memory_order_relaxed);
	const uint32_t at = (tail + 2 * FOLLOW) & ~(FOLLOW - 1);

	atomic_store_explicit(&q->tail, at, memory_order_relaxed);
	atomic_store_explicit(&q->sh->fired,
		atomic_load_explicit(&from->sh->fired, memory_order_relaxed), memory_order_relaxed);
	/* What is left of the old one stands before it: who arms for that is told at once. */
	atomic_store_explicit(
		&ring_cq_at(q, at - 1)->seq, ring_cq_seq(q, at - 1), memory_order_relaxed);
	/* Of none in this ring, nor of what is left of the old one. */
	atomic_store_explicit(&q->sh->told, at - 1, memory_order_relaxed);
	atomic_store_explicit(&q->sh->cons, at, memory_order_release);
	q->cons = at;
	q->seen = at;
}

/*
 * The consumer's index is read first: what it has consumed was reserved before,
 * so the difference of the two is never negative. It may be too large when both moved meanwhile;
 * "full" therefore counts only if the consumer's index is still the same.
 */
struct ring_cqe *
ring_cq_reserve(struct ring_cq *q, uint32_t *index)
{
	uint32_t cons, prod;

	if (UNLIKELY(RING_LOAD(uint32_t, &q->limit) == 0))
		return NULL;
	cons = atomic_load_explicit(&q->sh->cons, memory_order_acquire);
	prod = atomic_load_explicit(&q->tail, memory_order_relaxed);
	for (unsigned int full = 0; full < FULL_TRIES; full++) {
		uint32_t before = cons;

		/* A failed attempt means that another worker's succeeded. */
		while (LIKELY(prod - cons < q->limit)) {
			if (LIKELY(atomic_compare_exchange_weak_explicit(&q->tail, &prod, prod + 1,
				    memory_order_relaxed, memory_order_relaxed))) {
				*index = prod;
				return ring_cq_at(q, prod);
			}
		}
		cons = atomic_load_explicit(&q->sh->cons, memory_order_acquire);
		if (cons == before)
			return NULL;
		prod = atomic_load_explicit(&q->tail, memory_order_relaxed);
	}
	return NULL;
}

int
ring_cq_push(struct ring_cq *q, const struct ring_cqe *cqe)
{
	uint32_t index;
	struct ring_cqe *slot = ring_cq_reserve(q, &index);

	if (slot == NULL)
		return -ENOSPC;
	memcpy(slot, cqe, BODY_BYTES);
	ring_cq_publish(q, slot, index);
	return 0;
}

uint32_t
ring_cq_poll(struct ring_cq *q, struct ring_cqe *out, uint32_t n)
{
	uint32_t got;

	for (got = 0; got < n; got++) {
		const struct ring_cqe *slot = ring_cq_at(q, q->cons + got);
		uint32_t seq = ring_cq_seq(q, q->cons + got);

		if (atomic_load_explicit(&slot->seq, memory_order_acquire) != seq)
			break;
		memcpy(&out[got], slot, BODY_BYTES);
		atomic_store_explicit(&out[got].seq, seq, memory_order_relaxed);
	}
	if (got != 0) {
		ASSERT(got <= q->mask + 1);
		q->cons += got;
		atomic_store_explicit(&q->sh->cons, q->cons, memory_order_release);
	}
	return got;
}

uint32_t
ring_cq_end(const struct ring_cq *q)
{
	uint32_t at = q->cons;

	while (at - q->cons <= q->mask && atomic_load_explicit(&ring_cq_at(q, at)->seq,
						  memory_order_acquire) == ring_cq_seq(q, at))
		at++;
	return at;
}

/* What is published is the consumer's own: those that stay move up to the newest one's place. */
void
ring_cq_forget(struct ring_cq *q, uint32_t qp_num)
{
	uint32_t at = ring_cq_end(q), to = at;

	while (at != q->cons) {
		const struct ring_cqe *e = ring_cq_at(q, --at);

		if (e->qp_num != qp_num && --to != at)
			memcpy(ring_cq_at(q, to), e, BODY_BYTES);
	}
	q->cons = to;
	atomic_store_explicit(&q->sh->cons, to, memory_order_release);
}

void
ring_cq_arm_at(struct ring_cq *q, enum ring_cq_level level, uint32_t at)
{
	const uint64_t word = at | (uint64_t)level << ARM_LEVEL | (uint64_t)++q->turn << ARM_TURN;

	ASSERT(level <= RING_CQ_NEXT);
	atomic_store_explicit(&q->sh->arm, word, memory_order_release);
}

void
ring_cq_arm(struct ring_cq *q, enum ring_cq_level level)
{
	ring_cq_arm_at(q, level, q->cons);
}

/* Reserved is not enough: who is woken before the entry is there finds an empty queue. */
static bool
is_there(const struct ring_cq *q, uint32_t index)
{
	const uint32_t seq = atomic_load_explicit(&ring_cq_at(q, index)->seq, memory_order_relaxed);

	return seq != 0 && seq != ring_cq_seq(q, index - (q->mask + 1));
}

bool
ring_cq_is_due(const struct ring_cq *q, uint64_t arm, uint32_t solicited)
{
	const uint32_t polled = (uint32_t)arm;
	const uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	switch ((enum ring_cq_level)(arm >> ARM_LEVEL & 3)) {
	case RING_CQ_NEXT:
		return tail != polled && is_there(q, polled);
	case RING_CQ_SOLICITED: /* one of 2^31 ago looks as if it was still to come */
		return (int32_t)(solicited - polled) > 0 && (int32_t)(tail - solicited) >= 0;
	default:
		return false;
	}
}

void
ring_cq_answer(struct ring_cq *q, uint64_t arm)
{
	atomic_store_explicit(&q->sh->told, (uint32_t)arm + 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&q->sh->fired, 1, memory_order_release);
}

uint32_t
ring_cq_untold(const struct ring_cq *q, uint32_t from)
{
	const uint32_t told = atomic_load_explicit(&q->sh->told, memory_order_acquire);

	/* Behind the newest one it says nothing: it is long ago, or of another ring. */
	return told != from && told - from <= ring_cq_end(q) - from ? told : from;
}
