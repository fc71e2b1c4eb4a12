/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOVE_H
#define MOVE_H
/**
 * @file move.h  A QP goes from one worker to another while packets come for it.
 *
 * Owner:   the worker's lcore, by messages of the control lcore (lib/admin/admin_move.c).
 * Memory:  the worker's; packets that are kept aside are its own.
 * Depends: base; worker.h includes it.
 */
#include <stdint.h>

#define MOVE_ROOM 1024 /* packets kept aside for a QP that is on its way here */
#define MOVE_KEEP 0xfe /* instead of an owner: keep it aside */

struct qp;
struct rte_mbuf;
struct worker;

/** A QP that is on its way from one worker to another (move.c). */
struct move {
	struct qp *qp; /* or NULL; only compared */
	uint8_t to;    /* its packets go to this worker; ourselves: are kept aside */
	uint32_t kept_n;
	struct rte_mbuf *kept[MOVE_ROOM];
};

/** QP_PARK: keep the QP's packets, which go to worker `to` later. @return 0, -EBUSY. */
int pipeline_move_park(struct worker *w, struct qp *qp, uint32_t to);
/** QP_RELEASE: serve what waits, let the QP go. @return 0, -EBUSY; -EAGAIN: frames wait in tx. */
int pipeline_move_release(struct worker *w, struct qp *qp, uint32_t to);
/** QP_ADOPT: it is this worker's from now on. @return 0. */
int pipeline_move_adopt(struct worker *w, struct qp *qp);
/** QP_UNPARK: the move is over, done or not; kept packets are looked at. */
void pipeline_move_unpark(struct worker *w, const struct qp *qp);
/** A packet of the QP that is on its way here. */
void pipeline_move_keep(struct worker *w, struct rte_mbuf *m, uint8_t port);

#endif
