/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CREDITS_H
#define CREDITS_H
/**
 * @file credits.h  Receives of a QP that its peer (resp.credits) or its host (rq_limit) hears of.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    IBTA vol. 1, 9.7.7.2; rules FLOW-03, FLOW-07, FLOW-08, SRQ-03.
 */
#include "worker.h"

/**
 * How many there are, for the responder's facts; UINT32_MAX: the peer is told nothing. From the
 * last but one on the host is asked to say when it posts more.
 */
uint32_t pipeline_credits_left(struct qp *qp);
/** ACT_LOW: the event, once; rq_limit is 0 then. */
void pipeline_receives_low(struct worker *w, struct qp *qp);
/** The host says that it has posted. Called outside a burst: nothing is owed but answers. */
void pipeline_receives_posted(struct worker *w, struct qp *qp);

#endif
