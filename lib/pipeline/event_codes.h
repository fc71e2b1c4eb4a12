/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EVENT_CODES_H
#define EVENT_CODES_H
/**
 * @file event_codes.h  Event codes of failures, and records for the control lcore alone.
 *
 * Owner:   worker.
 * Memory:  none.
 * Depends: pipeline.
 * Spec:    AEQ-05, AEQ-09, AEQ-10.
 */
#include "pipeline_priv.h"

/** Code of what a QP fails of by this rule (either side's); 0: none of its own. */
uint16_t pipeline_event_code(uint16_t rule);
/** An event record of the QP that changes nothing and that no user is told of (AEQ-05, AEQ-09). */
void pipeline_event_note(struct worker *w, const struct qp *qp, enum aeq_code code);

#endif
