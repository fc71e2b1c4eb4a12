/* SPDX-License-Identifier: BSD-3-Clause */
/* The table that finds a QP by its number. */
#include "qp_table.h"

#include <errno.h>
#include <stdbool.h>

#include <rte_malloc.h>

#include "invariant.h"
#include "qp.h"

struct qp_table *
qp_table_create(uint32_t entries, int socket)
{
	struct qp_table *t;
	uint32_t n = 1;

	if (entries == 0 || entries > 1u << 24)
		return NULL;
	while (n < entries)
		n <<= 1;
	t = rte_zmalloc_socket(
		"qp_table", sizeof(*t) + (size_t)n * sizeof(t->slot[0]), CACHE_LINE, socket);
	if (t == NULL)
		return NULL;
	t->mask = n - 1;
	t->entries = n;
	ASSERT((t->entries & t->mask) == 0);
	return t;
}

void
qp_table_destroy(struct qp_table *t)
{
	rte_free(t);
}

/** What stands in the slot of this QP. */
static uintptr_t
slot_of(const struct qp *qp)
{
	ASSERT(qp->worker <= QP_SLOT_WORKER && ((uintptr_t)qp & QP_SLOT_WORKER) == 0);
	return (uintptr_t)qp | qp->worker;
}

/** Neighbouring slots belong to other workers, but this one can be anybody's. */
static bool
slot_set(struct qp_table *t, const struct qp *qp, uintptr_t from, uintptr_t to)
{
	return atomic_compare_exchange_strong_explicit(
		&t->slot[qp->qpn & t->mask], &from, to, memory_order_release, memory_order_relaxed);
}

int
qp_table_insert(struct qp_table *t, struct qp *qp)
{
	ASSERT(qp->qpn != 0);
	return slot_set(t, qp, 0, slot_of(qp)) ? 0 : -EEXIST;
}

void
qp_table_remove(struct qp_table *t, struct qp *qp)
{
	slot_set(t, qp, slot_of(qp), 0);
}

void
qp_table_give(struct qp_table *t, struct qp *qp, uint8_t worker)
{
	const uintptr_t from = slot_of(qp);

	qp->worker = worker;
	slot_set(t, qp, from, slot_of(qp));
}
