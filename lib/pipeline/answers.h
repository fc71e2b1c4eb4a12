/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ANSWERS_H
#define ANSWERS_H
/**
 * @file answers.h  What a QP owes its peer: ACKs, NAKs, READ data, results of ATOMICs.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    RESP-13, RESP-NAK-02, RESP-RNR-10.
 */
#include "worker.h"

/** Owe an ACK up to v->reply_psn; several of a burst become one. */
void pipeline_owe_ack(struct worker *w, struct qp *qp, const struct responder_verdict *v);
/** Owe a NAK or RNR NAK; it goes behind the answers that are owed already. */
void pipeline_owe_nak(struct worker *w, struct qp *qp, const struct responder_verdict *v);
/** Owe the responses of a READ. */
void pipeline_owe_read(struct worker *w, struct qp *qp, const struct responder_verdict *v);
/** Owe the response of an ATOMIC. @param original the value before the operation. */
void pipeline_owe_atomic(
	struct worker *w, struct qp *qp, const struct responder_verdict *v, uint64_t original);
/** Forget everything owed: RESET, ERR by the control lcore, detach. */
void pipeline_answers_drop(struct worker *w, struct qp *qp);
/** Off the circle with everything owed, and on to that of the next worker. */
void pipeline_answers_leave(struct worker *w, struct qp *qp);
/** Onto the circle of this worker with what the QP brings, after pipeline_answers_leave(). */
void pipeline_answers_join(struct worker *w, struct qp *qp);
/** Answers are owed, and this burst was served: whose turn is it now? */
void pipeline_answers_beside(struct worker *w, const struct burst *b);
/** The same of one READ of the burst, with its response of so many bytes. */
void pipeline_answers_one_beside(struct worker *w, const struct qp *qp, uint32_t len);
/** A paced QP's turn has come (pace.h). */
void pipeline_answers_wake(struct worker *w, struct qp *qp);

#endif
