/* SPDX-License-Identifier: BSD-3-Clause */
/* The table that finds a QP by its number. */
#include "qp_table.h"

#include <errno.h>

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

int
qp_table_insert(struct qp_table *t, struct qp *qp)
{
	struct qp *none = NULL;

	ASSERT(qp->qpn != 0);
	/* Neighbouring slots belong to other workers, but this one can be anybody's. */
	if (!atomic_compare_exchange_strong_explicit(&t->slot[qp->qpn & t->mask], &none, qp,
		    memory_order_release, memory_order_relaxed))
		return -EEXIST;
	return 0;
}

void
qp_table_remove(struct qp_table *t, struct qp *qp)
{
	struct qp *expected = qp;

	atomic_compare_exchange_strong_explicit(&t->slot[qp->qpn & t->mask], &expected, NULL,
		memory_order_release, memory_order_relaxed);
}
