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
#include <stddef.h>
#include <stdint.h>

struct qp;

/**
 * QPN -> QP by direct index: low bits of the QPN are the slot, the rest is the generation, which
 * tells a QP from the one that had its slot before (QP-20).
 *
 * A slot says whose the QP is, too, so that who hands a packet over does not read the QP: its first
 * line is written for each packet, by a worker on another CPU.
 */
#define QP_SLOT_WORKER 63 /* bits of a slot: qp.worker; the others: the QP's address, or 0 */

struct qp_table {
	uint32_t mask;
	uint32_t entries;
	_Atomic uintptr_t slot[];
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
/** The new owner: it is this worker's from now on. Packets may still come to the old one. */
void qp_table_give(struct qp_table *t, struct qp *qp, uint8_t worker);

/** What stands at a number: a QP of perhaps another one, and its worker; 0: nothing. */
static inline uintptr_t
qp_table_at(const struct qp_table *t, uint32_t qpn)
{
	return atomic_load_explicit(&t->slot[qpn & t->mask], memory_order_acquire);
}

/** The QP of what qp_table_at() returned, if it is this worker's, or NULL. */
static inline struct qp *
qp_of_worker(uintptr_t slot, uintptr_t worker)
{
	return ((slot - worker) & QP_SLOT_WORKER) == 0 ? (struct qp *)(slot - worker) : NULL;
}

/** The QP of what qp_table_at() returned, or NULL. */
static inline struct qp *
qp_of_slot(uintptr_t slot)
{
	return (struct qp *)(slot & ~(uintptr_t)QP_SLOT_WORKER);
}

#endif
