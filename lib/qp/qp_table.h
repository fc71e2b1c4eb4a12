/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_TABLE_H
#define QP_TABLE_H
/**
 * @file qp_table.h  The table that finds a QP by its number. qp_lookup() is in qp.h.
 *
 * Owner:   the control lcore makes and destroys it; a QP's worker puts the QP in and takes it out.
 * Memory:  one rte_malloc() block.
 * Depends: base; DPDK.
 * Spec:    QP-20.
 */
#include <stdatomic.h>
#include <stdint.h>

struct qp;

/**
 * QPN -> QP by direct index: low bits of the QPN are the slot, the rest is the generation, which
 * tells a QP from the one that had its slot before (QP-20).
 */
struct qp_table {
	uint32_t mask;
	uint32_t entries;
	struct qp *_Atomic slot[];
};

/**
 * Control: an empty table.
 * @param entries up to 2^24; rounded up to a power of two.
 * @param socket  NUMA node, or SOCKET_ID_ANY.
 * @return NULL: no memory, or no such size.
 */
struct qp_table *qp_table_create(uint32_t entries, int socket);
/** Control: free it. The QPs in it are the caller's. */
void qp_table_destroy(struct qp_table *t);
/** Owner worker: publish. @return 0 or -EEXIST when the slot is taken. */
int qp_table_insert(struct qp_table *t, struct qp *qp);
/** Owner worker: take it out; nothing happens when the slot is another QP's. */
void qp_table_remove(struct qp_table *t, struct qp *qp);

#endif
