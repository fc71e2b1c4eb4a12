/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OBJECT_NOTIFY_H
#define OBJECT_NOTIFY_H
/**
 * @file object_notify.h  Completion events: a CQ is armed, the next completion fires it, once.
 *
 * Owner:   control lcore; the worker that adds a completion sets qp_cq.notify.
 * Memory:  in the CQ's object.
 * Depends: objects.h.
 * Spec:    CQ-06.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "refusal.h"

struct objects;
struct object_cq;

/**
 * Arm. A completion that is added after this returned fires; one that was added before can be
 * polled. @return 0 or a refusal.
 */
int object_notify_arm(
	struct objects *objs, struct object_cq *cq, bool solicited_only, struct refusal *r);
/** Deliver what has fired. @return how many. */
uint32_t object_notify_poll(struct objects *objs);
/** Oldest by name as {"cq": name}; NULL: none, or no memory. */
json_t *object_notify_take(struct objects *objs);
/** The CQ is destroyed. */
void object_notify_forget(struct objects *objs, struct object_cq *cq);

#endif
