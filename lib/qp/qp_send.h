/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_SEND_H
#define QP_SEND_H
/**
 * @file qp_send.h  The send side of a queue pair: what the worker keeps beside the requester.
 *
 * Owner:   the QP's worker; fields marked (constant) and (settings) as in qp.h.
 * Memory:  one block with the QP (qp_alloc()): private work requests, behind them their SGEs, the
 *          ring.
 * Depends: base ring wheel requester.
 * Spec:    IBTA vol. 1, 10.8.2 (posting), 9.7.3; rules REQ-*, TMR-*, CC-05, CC-06.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "requester.h"
#include "ring_send.h"
#include "wheel.h"

struct qp;
struct qp_attr;
struct qp_share;

/** send_feed: the worker posts to itself, `depth` requests at a time, and tells no host. */
struct qp_feed {
	uint64_t count; /* requests in all, 0: no end (settings) */
	uint64_t posted;
	uint64_t completed;
	uint64_t remote_addr; /* (settings) */
	struct ring_sge sge;  /* source, or where READ data goes (settings) */
	uint32_t rkey;        /* (settings) */
	uint32_t depth;       /* (settings) */
	uint8_t opcode;       /* ibv_wr_opcode (settings) */
	bool resting;         /* the peer was not there: nothing is sent before `rest_until` */
	uint8_t xrc_srqn[3];  /* big-endian (settings) */
	uint8_t reserved[3];
	ns_t rest_until;
	ns_t rest; /* how long the last rest was */
};

/**
 * A SEND or WRITE that goes out needs the first line and no other, but for a timer that does not
 * run yet. The counts are part of the QP's counters, as those of struct qp_few: qp_sendq_carry()
 * moves them there before they overflow.
 */
struct qp_sendq {
	/* one line: doorbells, posts, packets, completions */
	struct ring ring;        /* consumer view; ring.sh NULL: none (max_send_wr 0, or a feed) */
	struct qp_share *share;  /* where it takes its turn; NULL: with those of no client */
	TAILQ_ENTRY(qp) sending; /* the worker's list, with QPF_SENDING */
	ns_t alarm;              /* `timer` fires by then, for req.deadline; 0: it does not */
	uint32_t taken : 31;     /* ring entries copied into req.wr and not completed */
	uint32_t takes_fast : 1; /* they have SGEs, and nothing that its service adds (constant) */
	uint32_t sent;           /* request packets */
	/* the next one: timer, what an ACK counts, and what struct qp has there */
	struct wheel_node timer; /* for req.deadline, or feed.rest_until */
	uint32_t responses;      /* ACKs, and READs that one packet has answered */
	uint32_t response_bytes; /* of their frames */
	uint32_t messages;       /* that succeeded */
	uint32_t message_bytes;
};

/** Owner: attributes of the mask, and what a move from state to state does to the requester. */
void qp_send_apply(struct qp *qp, uint32_t mask, uint8_t from, uint8_t to);

#endif
