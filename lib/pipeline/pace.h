/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PACE_H
#define PACE_H
/**
 * @file pace.h  Packets of QPs that do not send at their port's rate (QPF_PACED).
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    CC-20 .. CC-23.
 *
 * A QP that has to wait for its turn is on no list: its timer wakes it. Stages 7 and 10 ask, for
 * what they send of such a QP; nobody asks for ACKs, NAKs, ATOMIC responses and CNPs.
 */
#include "worker.h"

/** @return how many requests may leave now. 0: none, and the QP is off the list of senders. */
uint32_t pipeline_pace_requests(struct worker *w, struct qp *qp);
/** May a READ response leave now? Otherwise it is woken up: take the QP off the list of answers. */
bool pipeline_pace_response(struct worker *w, struct qp *qp);

/** A place in a port's queue: how many frames have ever stood before it. */
static inline uint32_t
pace_place(const struct tx_queue *q)
{
	return q->gone + (q->tail - q->head);
}

/** The frames behind `place` are the QP's, and were asked for. */
void pipeline_pace_sent(struct worker *w, struct qp *qp, uint8_t port, uint32_t place);
/** The newest frame where the QP's go is one of its READ responses. */
void pipeline_pace_sent_one(struct worker *w, struct qp *qp);
/** The QP's timer was cancelled, and it sends nothing: do READ responses wait for their turn? */
void pipeline_pace_answers(struct worker *w, struct qp *qp);
/** The QP's timer fired: is it its turn? */
void pipeline_pace_timer(struct worker *w, struct qp *qp);

#endif
