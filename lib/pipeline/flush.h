/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FLUSH_H
#define FLUSH_H
/**
 * @file flush.h  Posted work of a QP in ERR (in SQE: its sends): completed with WR_FLUSH_ERR, so
 *                much of it in a turn.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    QP-11, QP-12, QP-13, CQ-02.
 *
 * A flush begins at once and, as a rule, ends at once. When a turn has flushed FLUSH_TURN requests
 * the QP stands in line (QPF_FLUSHING), with those of its client, and clients take turns. Whoever
 * takes the QP away asks pipeline_is_flushing() first.
 */
#include "worker.h"

#define FLUSH_TURN   256 /* requests of all QPs in a turn of the worker */
#define FLUSH_CLIENT 64  /* ... of one client before the next one's */

/** Complete everything posted to the send queue, oldest first; nothing is ever sent again. */
void pipeline_flush_sends(struct worker *w, struct qp *qp);
/** The same of the receive queue. What the QP has of a shared one comes first, and always now. */
void pipeline_flush_receives(struct worker *w, struct qp *qp);
/** Status that a request gets from a flush: WR_FLUSH_ERR, or that of an abnormal event. */
uint8_t pipeline_flush_status(struct worker *w, uint8_t queue, uint16_t index);
/** Go on with those in line. @return how many requests were flushed. */
uint32_t pipeline_flush_turn(struct worker *w);
/** The QP goes to another worker, or away: it leaves the line with what is still posted. */
void pipeline_flush_leave(struct worker *w, struct qp *qp);
/** It has come from another worker: in ERR it stands in line for what is left. */
void pipeline_flush_resume(struct worker *w, struct qp *qp);

/** Is there more to flush in the turns to come? */
static inline bool
pipeline_is_flushing(const struct qp *qp)
{
	return (qp->flags & QPF_FLUSHING) != 0;
}

#endif
