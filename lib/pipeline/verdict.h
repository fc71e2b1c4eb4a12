/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERDICT_H
#define VERDICT_H
/**
 * @file verdict.h  Carry the verdicts of responder and requester out.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: count.h.
 * Spec:    RESP-14, REQ-08, QP-12, QP-16, CQ-02.
 */
#include "count.h"

/** A packet, its QP, and where the region of its key is. */
struct context {
	struct qp *qp;
	const struct wire_pkt *p; /* NULL: no packet of this turn */
	uint8_t *host;            /* of query.va */
	uint64_t va;              /* query.va, query.len */
	uint32_t len;
	uint32_t key; /* without a packet: of the READ that is answered */
};

/** Carry a verdict of the responder out: memory, then the completion, then the answer (RESP-14). */
void pipeline_act_responder(struct worker *w, const struct context *c, struct responder_verdict *v);
/**
 * A SEND of a service without ACKs ends before its time. Its WQE is for the next message, unless it
 * is of a shared queue, to which nothing can be given back: then it completes in error (E).
 * @param v status and rule.
 */
void pipeline_message_cut(
	struct worker *w, const struct context *c, const struct responder_verdict *v);
/** The QP goes to ERR: state, report, flush, NAK. */
void pipeline_fail(struct worker *w, const struct context *c, const struct responder_verdict *v,
	enum mbox_source source);
/** @return 0, or -ENOSPC: the completion queue is in error. */
int pipeline_complete(struct worker *w, const struct context *c, const struct responder_verdict *v);
/**
 * Add a completion, off the good path: cq_add() of complete.h. @param cq NULL: nobody wants it.
 * @return 0, or -ENOSPC: the queue is in error, which was reported.
 */
int pipeline_cq_add(
	struct worker *w, struct qp *qp, struct qp_cq *cq, const struct ring_completion *c);
/** To ERR as an abnormal event asks: 0 or -EALREADY. @param carried out: a completion has it. */
int pipeline_fail_abnormal(struct worker *w, const struct mbox_fail *how, bool *carried);

#endif
