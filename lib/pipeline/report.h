/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPORT_H
#define REPORT_H
/**
 * @file report.h  What a worker tells of a failure or an event: one form for both sides of a QP.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    RX-ERR-04, AE-09, AE-11, AEQ-05, AEQ-09, QP-16.
 */
#include "verdict.h"

/** Made from a verdict; the same facts go to the control lcore, the recorder and last_error. */
struct report {
	uint32_t psn;
	uint32_t len;  /* payload bytes of the packet */
	uint16_t rule; /* of either side: with QP_RULE_REQUESTER */
	uint16_t code; /* enum aeq_code of the event; 0: a report of `event` */
	uint8_t event; /* ibv_event_type */
	uint8_t fatal; /* FATAL code, or 0 */
	uint8_t opcode;
	uint8_t syndrome;
	uint8_t fault; /* enum wire_fault, or VERDICT_NO_FAULT */
	uint8_t wc_status;
	uint8_t flags;  /* QP_ERROR_* */
	uint8_t source; /* enum mbox_source of the event */
};

/** A verdict of the responder, about c->p or, without it, about the READ that is answered. */
struct report pipeline_report_of_request(
	const struct context *c, const struct responder_verdict *v, enum mbox_source source);
/** A verdict of the requester. @param p the response; NULL: the oldest request without an ACK. */
struct report pipeline_report_of_send(const struct qp *qp, const struct wire_pkt *p,
	const struct requester_verdict *v, enum mbox_source source);

/** Raise the event of the report: to the control lcore, and to the recorder if the QP is traced. */
void pipeline_report_event(struct worker *w, struct qp *qp, const struct report *r);
/** The same without the recorder: the caller has written a line of its own there. */
void pipeline_report_event_only(struct worker *w, struct qp *qp, const struct report *r);
/**
 * The QP goes to ERR, or SQE: its state, last_error, the FATAL code for the control lcore, the
 * recorder. Completions, the event and the flush are the caller's, in that order.
 */
void pipeline_report_failure(
	struct worker *w, struct qp *qp, const struct report *r, enum qp_state to);
/** The completion of this failure found no place: an event of the QP tells instead. */
void pipeline_report_lost(struct worker *w, struct qp *qp, const struct report *r);
/** An event record of the QP that changes nothing and that no user is told of (AEQ-05, AEQ-09). */
void pipeline_report_note(struct worker *w, struct qp *qp, enum aeq_code code);
/** An event of a CQ or SRQ. @param event ibv_event_type or EVENT_*. */
void pipeline_report_cq(struct worker *w, struct qp_cq *cq, uint8_t event);
/** The same of an SRQ. */
void pipeline_report_srq(struct worker *w, struct qp_srq *srq, uint8_t event);

/** Code of what a QP fails of by this rule (either side's); 0: none of its own (AEQ-10). */
uint16_t pipeline_event_code(uint16_t rule);

#endif
