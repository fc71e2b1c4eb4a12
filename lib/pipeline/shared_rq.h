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
/**
 * XRC target: the SRQ that the packet names is the QP's from here on, with its CQ and its PD; while
 * a SEND is open, that SEND's stays (XRC-04, XRC-05). @return false: there is none, or another one.
 */
bool pipeline_srq_select(const struct worker *w, struct qp *qp, const struct wire_pkt *p);
/**
 * XRC target: the SRQ of its open SEND once more. If that is gone, so is the WQE: nobody hears of
 * it any more.
 */
void pipeline_srq_again(const struct worker *w, struct qp *qp);
/** RESP-CLS-A-03, RESP-CLS-L-01, SRQ-04: the queue itself is broken. NULL: there is none. */
void pipeline_srq_fail(struct worker *w, struct qp_srq *srq);
/** Is a WQE posted, or must this be told otherwise? */
bool pipeline_srq_has_wqe(const struct qp *qp);
/** Take what pipeline_srq_head() copied. @return false: another QP has it. */
bool pipeline_srq_take(struct worker *w, struct qp *qp, const struct responder_facts *f);
/** WQEs were taken: fewer than the limit may be left (SRQ-02). */
void pipeline_srq_taken(struct worker *w, struct qp_srq *srq);
/** The QP is in ERR, and its last WQE has completed (AE-08). */
void pipeline_srq_last_wqe(struct worker *w, struct qp *qp);

#endif
