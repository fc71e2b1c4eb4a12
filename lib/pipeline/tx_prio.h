/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TX_PRIO_H
#define TX_PRIO_H
/**
 * @file tx_prio.h  Transmit queues by priority, of ports that have priorities.
 *
 * A QP's path says which queue of its port its frames go to (wire_path.queue), and qp.out names
 * that queue; all that asks whether a port has room asks it of the queue. So a priority that is
 * full, or that the port's neighbour has paused, holds up none but itself. Here the queues of one
 * port share what the port takes: strict ones first, the highest first, then the others by weight.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  worker_create().
 * Depends: worker.h, cc.
 * Spec:    IEEE 802.1Q, 8.6.8; 802.1Qbb; rules FLOW-09..13.
 */
#include "worker.h"

#define PRIO_ROOM 512 /* frames that wait at a priority: requests stop at TX_HIGH, answers here */

/** Deficit round robin: how far it is. */
struct prio_turn {
	int64_t deficit[PRIO_N]; /* bytes that a weighted queue may still send in its turn */
	uint8_t next;            /* whose turn it is */
	bool begun;              /* ... and it has had its quantum */
};

/** What a worker knows of a port's priorities. */
struct prio_tx {
	struct prio_stats stats;
	struct prio_turn turn;
};

/** Stage 11 for such a port. @return frames that it took. */
uint32_t pipeline_prio_tx(struct worker *w, uint32_t port);
/** Count a burst that came from such a port. */
void pipeline_prio_received(struct worker *w, const struct burst *b, uint32_t port);
/** Is frame i a PAUSE frame? Then it is counted, obeyed if the port says so, and done with. */
bool pipeline_prio_paused(struct worker *w, struct burst *b, uint32_t i);
/** The same; of most frames their type says that they are none. */
static inline bool
prio_paused(struct worker *w, struct burst *b, uint32_t i)
{
	return UNLIKELY(pause_may_be(
		       rte_pktmbuf_mtod(b->m[i], const uint8_t *), b->m[i]->data_len)) &&
	       pipeline_prio_paused(w, b, i);
}
/** Is this queue one that the port's neighbour has paused? */
bool pipeline_prio_is_paused(const struct worker *w, uint8_t out);
/** Index of the queue for the QP's CNPs: they have a class of their own. @param out of its path. */
uint8_t pipeline_prio_cnp(const struct worker *w, const struct qp *qp, uint8_t out);

/** The same; where there are no priorities, the QP's own queue. */
static inline uint8_t
prio_cnp(const struct worker *w, const struct qp *qp, uint8_t out)
{
	if (LIKELY(out >= w->wires_n) || LIKELY(w->conf.ports[out].prio == NULL))
		return out;
	return pipeline_prio_cnp(w, qp, out);
}

#endif
