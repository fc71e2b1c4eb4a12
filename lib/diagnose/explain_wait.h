/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPLAIN_WAIT_H
#define EXPLAIN_WAIT_H
/**
 * @file explain_wait.h  What a QP that has not failed waits for, since when, and what would end it.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Depends: qp objects neigh, jansson.
 */
#include <jansson.h>

#include "qp_snapshot.h"

struct diagnose;
struct admin_qp;

/**
 * What stands against the QP's next step on either side, what is nearest to the wire first; empty
 * in ERR. An entry has "kind", "text" and "wakes" for people, and where they are known "since" and
 * "until" with since_ns and until_ns; more by kind: "psn", "wr_id", "retries_left".
 */
json_t *explain_waits(struct diagnose *dg, struct admin_qp *rec, const struct qp_snapshot *s);

#endif
