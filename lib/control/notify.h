/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NOTIFY_H
#define NOTIFY_H
/**
 * @file notify.h  Completion events: a CQ is armed, the next completion fires it, once.
 *
 * Owner:   control lcore; the worker that adds a completion sets qp_cq.notify.
 * Memory:  in the CQ's object.
 * Depends: qp.
 * Spec:    CQ-06.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "refusal.h"

struct control;
struct object_cq;

/**
 * Arm. A completion that is added after this returned fires; one that was added before can be
 * polled. @return 0 or a refusal.
 */
int notify_arm(struct control *c, struct object_cq *cq, bool solicited_only, struct refusal *r);
/** Deliver what has fired. @return how many. */
uint32_t notify_poll(struct control *c);
/** Oldest by name as {"cq": name}; NULL: none, or no memory. */
json_t *notify_take(struct control *c);
/** The CQ is destroyed. */
void notify_forget(struct control *c, struct object_cq *cq);

#endif
