/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TX_QUEUE_H
#define TX_QUEUE_H
/**
 * @file tx_queue.h  Frames that wait for their port; QPs whose waits begin when they leave.
 *
 * Owner:   the worker's lcore.
 * Memory:  worker_create().
 * Depends: base; DPDK's mbuf as a name.
 */
#include "clock.h"

#define TX_STARTS   1024 /* waits that begin when frames leave */
#define TX_PATIENCE 8    /* timeouts: how long a packet may wait for its port and not be lost */

struct qp;
struct rte_mbuf;

/** What begins when a frame leaves. */
enum tx_what {
	TX_REQUESTS, /* the transport timer */
	TX_UNACKED,  /* nothing: the work requests up to `psn` are done */
	TX_CNP,      /* the interval between CNPs */
};

/** A QP whose wait counts from when frames leave, and until then from when they were made. */
struct tx_start {
	struct qp *qp; /* NULL: not any more */
	ns_t made;
	uint32_t upto; /* tx_queue.gone, when they have left */
	uint32_t what; /* enum tx_what; above TX_WHAT_BITS the PSN that follows the frames */
};

#define TX_WHAT_BITS 8

/** What begins. */
static inline enum tx_what
tx_start_what(const struct tx_start *s)
{
	return (enum tx_what)(s->what & ((1u << TX_WHAT_BITS) - 1));
}

/** Frames made for a port and not taken by it yet, in order: m[head] .. m[tail - 1]. */
struct tx_queue {
	struct rte_mbuf **m; /* TX_ROOM */
	uint32_t head;
	uint32_t tail;
	uint32_t made;        /* replies since the last stage_tx(), to be counted as sent_pkts */
	uint32_t gone;        /* frames that the port took, ever */
	uint32_t starts_head; /* both run freely, and from 0 on as often as none is left */
	uint32_t starts_tail;
	struct tx_start *starts; /* TX_STARTS, in order */
};

#endif
