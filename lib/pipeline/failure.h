/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAILURE_H
#define FAILURE_H
/**
 * @file failure.h  What a QP's failure was about, written to qp->failure when it is too late.
 *
 * Owner:   the QP's worker.
 * Memory:  none.
 * Depends: worker.h.
 */
#include "drops.h"
#include "verdict.h"

/** A request that brings the QP to ERR, before its verdict is carried out. */
void pipeline_failure_of_request(
	struct worker *w, const struct context *c, const struct responder_verdict *v);
/** The list of send request `position` was refused: its report may have to wait. */
void pipeline_failure_of_list(struct worker *w, struct qp *qp, uint32_t position);
/** Send request `position`, a bind or invalidate, was refused; `m` has the range, keys and why. */
void pipeline_failure_of_local(
	struct worker *w, struct qp *qp, uint32_t position, const struct mem_refusal *m);
/** The send request of an error, when it is reported. */
void pipeline_failure_of_send(struct worker *w, struct qp *qp, const struct requester_verdict *v);
/** The QP is in ERR: a line in the recorder, behind the error's place in it, if memory did it. */
void pipeline_failure_trace(struct worker *w, const struct qp *qp);

/** A packet refused without a fault of the syndrome: recorded; c.fault is VERDICT_NO_FAULT. */
void pipeline_refusal_record(struct worker *w, struct burst *b, uint32_t i, struct charge c);

#endif
