/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPLAIN_TIMER_H
#define EXPLAIN_TIMER_H
/**
 * @file explain_timer.h  Transport timers of a QP that have ended: is `timeout` too short?
 *
 * Owner:   control lcore.
 * Memory:  new JSON values.
 * Depends: qp (qp_snapshot.h), jansson.
 * Spec:    TMR-01, TMR-07.
 */
#include <jansson.h>

#include "qp_snapshot.h"

/** {"count", "early", "timeout", "text"}; the timeout is the one in effect. */
json_t *explain_timeouts(const struct qp_snapshot *s);

#endif
