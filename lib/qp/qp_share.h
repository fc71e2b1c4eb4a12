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

#include "clock.h"

struct qp;

/** What somebody's requests have cost in a round of the worker's (worker.round). */
struct qp_round_cost {
	int64_t cost;
	uint32_t round;
};

struct qp_share {
	TAILQ_HEAD(, qp) senders; /* QPs with something to send, in turn */
	uint32_t senders_n;
	uint16_t idle;         /* turns without senders, while it is listed */
	bool listed;           /* on the worker's list */
	uint8_t weight;        /* of its quantum (constant) */
	uint32_t siblings;     /* shares of its user on that list, with it */
	uint32_t line;         /* worker.send_line when it had something to send last */
	uint64_t user;         /* whose it is; 0: it has no siblings (constant) */
	const struct qp *last; /* that had a turn; it may be gone: it is only compared */
	int64_t credit;        /* what it may still cost in this turn; below 0: a debt */
	uint64_t rate;         /* bytes a second, 0: any (constant) */
	int64_t tokens;        /* bytes that it may move now; below 0: a debt */
	ns_t filled;           /* when tokens were added last */
	TAILQ_ENTRY(qp_share) turn;
	uint64_t began;            /* worker.turns_begun when it had its last turn */
	uint64_t jumped;           /* ... when it went ahead of those that waited; 0: not yet */
	int64_t spent;             /* since it had nothing to send */
	TAILQ_HEAD(, qp) flushing; /* QPs in ERR with work to flush, in turn (QPF_FLUSHING) */
	TAILQ_ENTRY(qp_share) flush_turn; /* on the worker's list, unless that is empty */
	struct qp_share *first;           /* of its siblings one that stands for all, or itself */
	struct qp_round_cost made;        /* of these siblings' requests, where it is `first` */
};

#endif
