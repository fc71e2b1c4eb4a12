/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_CLIENT_H
#define QP_CLIENT_H
/**
 * @file qp_client.h  An application as one worker knows it: a ring of doorbells, and its share.
 *
 * Owner:   the control lcore makes it and frees it; from CLIENT_ATTACH to CLIENT_DETACH it is the
 *          worker's.
 * Memory:  the control lcore's.
 * Depends: ring, qp_share.h.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "qp_share.h"
#include "ring_bell.h"

/** A client as one worker knows it. Memory: the control lcore's, from attach to detach. */
struct qp_client {
	struct ring_bells bells; /* consumer view */
	struct qp_share share;   /* of its QPs: sq.share (worker) */
	uint32_t id;             /* of its QPs: client (control) */
	uint32_t weight;         /* of its share; 0: 1 (control) */
	uint64_t rate;           /* bytes a second that it may move; 0: any (control) */
	uint64_t user;           /* who runs it: user id + 1 (control) */
	TAILQ_ENTRY(qp_client) polled;
	bool polls;                   /* it is on the list (worker) */
	_Atomic uint32_t events_lost; /* that found no room (worker) */
};

#endif
