/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_AH_H
#define QP_AH_H
/**
 * @file qp_ah.h  Address handles: where the datagrams of work requests go.
 *
 * Owner:   the control lcore makes, changes and removes handles; workers of all QPs copy what is
 *          behind one.
 * Memory:  qp_ah_table_create(): one table, which is never moved. A slot is used again at once, by
 *          another handle.
 * Depends: base, wire.
 * Spec:    UD-05, UD-31.
 *
 * A work request names its handle by a number that a host wrote: so a worker asks for it, with the
 * protection domain and the port that it must be of, and copies. Nobody waits: a change is written
 * beside what is read, and a reader that was overtaken sees that afterwards.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "wire_build.h"

#define QP_AH_MAX 65535u /* handles at a time */

/** What a worker needs to send there. */
struct qp_ah_dest {
	struct wire_template tmpl; /* without P_Key and destination QP */
	uint16_t sport;            /* of UDP, before `by_qp` */
	uint16_t by_qp;            /* bits of it that are different from QP to QP (WIRE-15) */
	bool known;                /* there is a MAC to send to */
	bool local;                /* nothing goes to the wire (LB-04) */
	uint8_t queue;             /* wire_path.queue */
};

struct qp_ah_slot {
	_Atomic uint32_t handle; /* 0: free */
	uint32_t pd;
	uint32_t port;         /* DPDK port id */
	_Atomic uint32_t turn; /* dest[turn & 1] is in effect */
	uint32_t next;         /* (control) of the free ones */
	uint32_t life;         /* (control) high bits of the newest handle */
	struct qp_ah_dest dest[2];
} CACHE_ALIGNED;

struct qp_ah_table {
	struct qp_ah_slot *slot; /* QP_AH_MAX + 1 of them; the first is none */
	void *mem;
	uint32_t first, last; /* (control) free slots, oldest first; 0: none */
	uint32_t made;        /* (control) slots that were ever used */
	uint32_t used;        /* (control) */
};

/** @return NULL: no memory. */
struct qp_ah_table *qp_ah_table_create(void);
/** After the workers have stopped. */
void qp_ah_table_destroy(struct qp_ah_table *t);
/**
 * Control lcore: a new handle. @param port DPDK port id. @param known path->dmac is the
 * neighbour's. @return never 0; 0: there is no room.
 */
uint32_t qp_ah_add(struct qp_ah_table *t, uint32_t pd, uint32_t port, const struct wire_path *path,
	uint16_t by_qp, bool known);
/** Control lcore: another MAC, or none any more. */
void qp_ah_change(struct qp_ah_table *t, uint32_t handle, const struct wire_path *path, bool known);
/** Control lcore: no request finds it from now on. */
void qp_ah_remove(struct qp_ah_table *t, uint32_t handle);

/**
 * Any worker: a copy of what is behind a handle of that protection domain and port.
 * @return false: there is no such handle. Cost: three cache lines, a copy of two.
 */
static ALWAYS_INLINE bool
qp_ah_copy(const struct qp_ah_table *t, uint32_t handle, uint32_t pd, uint32_t port,
	struct qp_ah_dest *out)
{
	const struct qp_ah_slot *s = &t->slot[handle & QP_AH_MAX];
	uint32_t turn = atomic_load_explicit(&s->turn, memory_order_acquire), before;

	do {
		before = turn;
		if (UNLIKELY(handle == 0) ||
			UNLIKELY(
				atomic_load_explicit(&s->handle, memory_order_acquire) != handle) ||
			UNLIKELY(s->pd != pd) || UNLIKELY(s->port != port))
			return false;
		memcpy(out, &s->dest[before & 1], sizeof(*out));
		atomic_thread_fence(memory_order_acquire);
		if (UNLIKELY(atomic_load_explicit(&s->handle, memory_order_relaxed) != handle))
			return false;
		turn = atomic_load_explicit(&s->turn, memory_order_relaxed);
		/* A change is written beside, but the next one would be written here. */
	} while (UNLIKELY(turn != before));
	return true;
}

#endif
