/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_ah.h"
#include "invariant.h"

#include <stdlib.h>

struct qp_ah_table *
qp_ah_table_create(void)
{
	struct qp_ah_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	/* Pages that were never used stay the kernel's. */
	t->mem = calloc(QP_AH_MAX + 2, sizeof(struct qp_ah_slot));
	if (t->mem == NULL) {
		free(t);
		return NULL;
	}
	t->slot = (struct qp_ah_slot *)(((uintptr_t)t->mem + CACHE_LINE - 1) &
					~((uintptr_t)CACHE_LINE - 1));
	return t;
}

void
qp_ah_table_destroy(struct qp_ah_table *t)
{
	if (t == NULL)
		return;
	free(t->mem);
	free(t);
}

static struct qp_ah_slot *
slot_of(struct qp_ah_table *t, uint32_t handle)
{
	struct qp_ah_slot *s = &t->slot[handle & QP_AH_MAX];

	ASSERT(handle != 0 && atomic_load_explicit(&s->handle, memory_order_relaxed) == handle);
	return s;
}

static void
fill(struct qp_ah_dest *d, const struct wire_path *path, uint16_t by_qp, bool known)
{
	wire_template_init(&d->tmpl, path, 0, 0);
	d->sport = path->sport;
	d->by_qp = by_qp;
	d->known = known;
	d->local = path->local;
	d->queue = path->local ? 0 : path->queue;
}

/** The slot that was given back longest ago, or one that nobody had. 0: none. */
static uint32_t
take(struct qp_ah_table *t)
{
	const uint32_t i = t->first;

	if (t->made < QP_AH_MAX && (i == 0 || t->made < QP_AH_MAX / 64))
		return ++t->made;
	if (i != 0)
		t->first = t->slot[i].next;
	if (t->first == 0)
		t->last = 0;
	return i;
}

uint32_t
qp_ah_add(struct qp_ah_table *t, uint32_t pd, uint32_t port, const struct wire_path *path,
	uint16_t by_qp, bool known)
{
	const uint32_t i = take(t);
	struct qp_ah_slot *s = &t->slot[i];

	if (i == 0)
		return 0;
	ASSERT(atomic_load_explicit(&s->handle, memory_order_relaxed) == 0);
	s->pd = pd;
	s->port = port;
	fill(&s->dest[atomic_load_explicit(&s->turn, memory_order_relaxed) & 1], path, by_qp,
		known);
	s->life = s->life == UINT16_MAX ? 1 : s->life + 1;
	t->used++;
	atomic_store_explicit(&s->handle, s->life << 16 | i, memory_order_release);
	return s->life << 16 | i;
}

void
qp_ah_change(struct qp_ah_table *t, uint32_t handle, const struct wire_path *path, bool known)
{
	struct qp_ah_slot *s = slot_of(t, handle);
	const uint32_t turn = atomic_load_explicit(&s->turn, memory_order_relaxed);

	fill(&s->dest[~turn & 1], path, s->dest[turn & 1].by_qp, known);
	atomic_store_explicit(&s->turn, turn + 1, memory_order_release);
	/* What the next change writes is not seen without this one. */
	atomic_thread_fence(memory_order_release);
}

void
qp_ah_remove(struct qp_ah_table *t, uint32_t handle)
{
	struct qp_ah_slot *s = slot_of(t, handle);
	const uint32_t i = handle & QP_AH_MAX;

	atomic_store_explicit(&s->handle, 0, memory_order_relaxed);
	/* Nothing that is written to the slot from now on is seen without the 0. */
	atomic_thread_fence(memory_order_release);
	s->next = 0;
	if (t->last != 0)
		t->slot[t->last].next = i;
	else
		t->first = i;
	t->last = i;
	t->used--;
}
