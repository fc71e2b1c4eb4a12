/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_srq.h"
#include "invariant.h"

#include <errno.h>
#include <string.h>

static const struct ring_recv_wqe *
entry(const struct ring_srq_view *v, uint32_t index)
{
	const uint8_t *slot = v->sh->slots + (size_t)(index & v->mask) * v->stride;

	ASSERT((v->mask & (v->mask + 1)) == 0 && v->stride % 16 == 0);
	return (const void *)slot;
}

static inline struct ring_sge
sge_at(const struct ring_sge *sge)
{
	return (struct ring_sge){ .addr = RING_LOAD(uint64_t, &sge->addr),
		.length = RING_LOAD(uint32_t, &sge->length),
		.lkey = RING_LOAD(uint32_t, &sge->lkey) };
}

/**
 * Read the head, where the entries are, and how many there are. If the head has moved meanwhile,
 * another worker took an entry, and everything is read again.
 * @return entries posted, or UINT32_MAX: the indices are impossible.
 */
static uint32_t
look(struct ring_srq *q, uint32_t *head, const struct ring_srq_view **view)
{
	const struct ring_srq_view *v;
	uint32_t n;

	for (;;) {
		*head = atomic_load_explicit(&q->head, memory_order_acquire);
		*view = v = atomic_load_explicit(&q->at, memory_order_acquire);
		ASSERT(v == &q->view[0] || v == &q->view[1]);
		n = atomic_load_explicit(&v->sh->prod, memory_order_acquire) - *head;
		if (LIKELY(n <= v->mask + 1))
			return n;
		if (atomic_load_explicit(&q->head, memory_order_acquire) == *head)
			return UINT32_MAX;
	}
}

/**
 * Tell the producer where the head is. Each writer looks at the head again afterwards: so the last
 * write is the newest head.
 */
static void
publish(struct ring_srq *q)
{
	const struct ring_srq_view *v;
	uint32_t head;

	do {
		v = atomic_load(&q->at);
		head = atomic_load(&q->head);
		atomic_store(&v->sh->cons, head);
	} while (atomic_load(&q->head) != head || atomic_load(&q->at) != v);
}

void
ring_srq_attach(struct ring_srq *q, void *mem, uint32_t entries, uint32_t stride)
{
	struct ring fresh;

	ring_attach(&fresh, mem, entries, stride, true);
	q->view[0] = (struct ring_srq_view){ .sh = mem, .mask = entries - 1, .stride = stride };
	atomic_store_explicit(&q->head, 0, memory_order_relaxed);
	atomic_store_explicit(&q->at, &q->view[0], memory_order_release);
}

void
ring_srq_producer(const struct ring_srq *q, struct ring *out)
{
	const struct ring_srq_view *v = atomic_load_explicit(&q->at, memory_order_relaxed);

	ring_attach(out, v->sh, v->mask + 1, v->stride, false);
}

void
ring_srq_move(struct ring_srq *q, void *mem, uint32_t entries)
{
	const struct ring_srq_view *from = atomic_load_explicit(&q->at, memory_order_relaxed);
	struct ring_srq_view *to = from == &q->view[0] ? &q->view[1] : &q->view[0];
	uint32_t prod = atomic_load_explicit(&from->sh->prod, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&q->head, memory_order_acquire);

	ASSERT(entries > from->mask && ring_size(entries, from->stride) != 0);
	ASSERT((uintptr_t)mem % CACHE_LINE == 0 && mem != (void *)from->sh);
	*to = (struct ring_srq_view){ .sh = mem, .mask = entries - 1, .stride = from->stride };
	/* An entry keeps its index; what is taken meanwhile was copied in vain. */
	for (uint32_t i = head; i != prod && i - head <= from->mask; i++)
		memcpy(to->sh->slots + (size_t)(i & to->mask) * to->stride, entry(from, i),
			from->stride);
	atomic_store_explicit(&to->sh->cons, head, memory_order_relaxed);
	atomic_store_explicit(&to->sh->prod, prod, memory_order_relaxed);
	atomic_store(&q->at, to);
	publish(q);
}

void
ring_srq_fail(struct ring_srq *q)
{
	atomic_store_explicit(&atomic_load(&q->at)->sh->alert, 1, memory_order_release);
}

int
ring_srq_peek(struct ring_srq *q, uint32_t max_sge, struct ring_recv_copy *out)
{
	const struct ring_srq_view *v;
	const struct ring_recv_wqe *wqe;
	uint32_t head, n;

	do {
		n = look(q, &head, &v);
		if (n == 0)
			return 0;
		if (UNLIKELY(n == UINT32_MAX))
			return -EBADMSG;
		wqe = entry(v, head);
		out->wr_id = RING_LOAD(uint64_t, &wqe->wr_id);
		out->index = head;
		n = RING_LOAD(uint32_t, &wqe->num_sge);
		out->num_sge = n;
		if (LIKELY(n <= max_sge && n <= RING_MAX_SGE))
			for (uint32_t i = 0; i < n; i++)
				out->sge[i] = sge_at(&wqe->sge[i]);
		/* A slot whose entry was taken may have been filled again meanwhile. */
		atomic_thread_fence(memory_order_acquire);
	} while (UNLIKELY(atomic_load_explicit(&q->head, memory_order_relaxed) != head));
	return 1;
}

/** Take entries from this index on. */
static bool
take(struct ring_srq *q, uint32_t head, uint32_t n)
{
	/* What was read of them was read before. */
	if (!atomic_compare_exchange_strong(&q->head, &head, head + n))
		return false;
	publish(q);
	return true;
}

bool
ring_srq_take(struct ring_srq *q, const struct ring_recv_copy *copy)
{
	return take(q, copy->index, 1);
}

struct ring_srq_run
ring_srq_look(struct ring_srq *q)
{
	struct ring_srq_run run;

	run.n = look(q, &run.head, &run.view);
	if (UNLIKELY(run.n == UINT32_MAX))
		run.n = 0;
	return run;
}

bool
ring_srq_take_run(struct ring_srq *q, const struct ring_srq_run *run, uint32_t n)
{
	ASSERT(n != 0 && n <= run->n);
	return take(q, run->head, n);
}

uint32_t
ring_srq_count(struct ring_srq *q)
{
	const struct ring_srq_view *v;
	uint32_t head;
	uint32_t n = look(q, &head, &v);

	return n != UINT32_MAX ? n : 0;
}

uint32_t
ring_srq_slot(const struct ring_srq *q, const struct ring_recv_copy *copy)
{
	return copy->index & atomic_load_explicit(&q->at, memory_order_relaxed)->mask;
}
