/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARED_RQ_H
#define SHARED_RQ_H
/**
 * @file shared_rq.h  WQEs of a shared receive queue: looked at, then taken.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    SRQ-02, SRQ-04, AE-08, RESP-CLS-A-03.
 */
#include "worker.h"

/** The head of the QP's SRQ into its private copy. @return false: there is none. */
bool pipeline_srq_head(struct worker *w, struct qp *qp, struct responder_facts *f);
/** Is a WQE posted, or must this be told otherwise? */
bool pipeline_srq_has_wqe(const struct qp *qp);
/** Take what pipeline_srq_head() copied. @return false: another QP has it. */
bool pipeline_srq_take(struct worker *w, struct qp *qp, const struct responder_facts *f);
/** The QP is in ERR, and its last WQE has completed (AE-08). */
void pipeline_srq_last_wqe(struct worker *w, struct qp *qp);

#endif
