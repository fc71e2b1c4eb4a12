/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_AH_TABLE_H
#define TEST_AH_TABLE_H
/**
 * @file ah_table.h  An empty table of address handles for each test or input in turn.
 *
 * Owner:   tests only; one at a time in a process.
 * Memory:  it stays until the process ends. A table has 16 MiB: to make one anew took more than
 *          half of the time of many tests.
 * Depends: qp.
 */
#include <string.h>

#include "qp_ah.h"

/** @return NULL: no memory. What the last one was given is gone. */
static inline struct qp_ah_table *
ah_table_empty(void)
{
	static struct qp_ah_table *t;

	if (t == NULL)
		t = qp_ah_table_create();
	if (t != NULL) {
		memset(t->slot, 0, (t->made + 1) * sizeof(t->slot[0]));
		t->made = t->used = t->first = t->last = 0;
	}
	return t;
}

#endif
