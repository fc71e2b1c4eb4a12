/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_SHARE_H
#define QP_SHARE_H
/**
 * @file qp_share.h  A client's share of one worker: its QPs with something to send.
 *
 * Owner:   the worker's lcore, from CLIENT_ATTACH to CLIENT_DETACH.
 * Memory:  in struct qp_client, or in the worker for the QPs of no client.
 * Depends: base.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct qp;

struct qp_share {
	TAILQ_HEAD(, qp) senders; /* QPs with something to send, in turn */
	uint32_t senders_n;
	bool listed; /* on the worker's list */
	TAILQ_ENTRY(qp_share) turn;
};

#endif
