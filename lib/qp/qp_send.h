/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_SEND_H
#define QP_SEND_H
/**
 * @file qp_send.h  The send side of a queue pair: what the worker keeps beside the requester.
 *
 * Owner:   the QP's worker; fields marked (constant) and (settings) as in qp.h.
 * Memory:  one block with the QP (qp_alloc()): private work requests, their SGEs, the ring.
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

struct qp_sendq {
	/* one line: posts, packets, completions */
	struct ring ring;        /* consumer view; ring.sh NULL: none (max_send_wr 0, or a feed) */
	struct ring_sge *sges;   /* max_sge for each slot of req.wr */
	TAILQ_ENTRY(qp) sending; /* the worker's list, with QPF_SENDING */
	ns_t alarm;              /* `timer` fires by then, for req.deadline; 0: it does not */
	uint32_t taken;          /* ring entries copied into req.wr and not completed */
	uint16_t max_inline;     /* bytes (constant) */
	uint8_t max_sge;         /* (constant) */
	bool takes_fast; /* entries have SGEs, and nothing that its service adds (constant) */
	/* the next one: doorbells, and what struct qp has there */
	struct wheel_node timer; /* for req.deadline, or feed.rest_until */
	struct qp_feed *feed;    /* with QPF_SEND_FEED (constant) */
	struct qp_share *share;  /* where it takes its turn; NULL: with those of no client */
};

/** Owner: attributes of the mask, and what a move from state to state does to the requester. */
void qp_send_apply(struct qp *qp, uint32_t mask, uint8_t from, uint8_t to);

#endif
