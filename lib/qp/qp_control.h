/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_CONTROL_H
#define QP_CONTROL_H
/**
 * @file qp_control.h  What the control lcore does with a QP: makes it, frees it.
 *
 * Owner:   control lcore only.
 * Memory:  one rte_malloc() block for each QP, with its rings unless they have memory of their own;
 *          a compact QP is a cell of a slab (qp_parts.h).
 * Depends: base; DPDK.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qp;

struct qp_alloc_params {
	uint32_t max_recv_wr;
	uint32_t max_recv_sge;
	uint32_t max_send_wr;  /* 0: the QP never sends */
	uint32_t max_send_sge;
	uint32_t max_inline;   /* bytes */
	bool send_feed;        /* no send ring; max_send_wr is the feed's depth */
	uint8_t max_dest_rd_atomic; /* most the QP may be configured with, <= QP_MAX_RD_ATOMIC */
	int socket;
	bool own_area; /* each ring in a mem_area of its own */
	bool compact;  /* nothing but struct qp, until it is needed: qp_parts.h */
	void *rq_mem; /* the caller's memory for the rings, of qp_ring_bytes(); NULL: none of it */
	void *sq_mem;
};
#define QP_MAX_RD_ATOMIC  128
#define QP_ANSWER_RESERVE 8 /* answer queue entries beyond max_dest_rd_atomic, at least */

/**
 * Control lcore. @return zeroed QP in RESET with its rings, slots and statistics, or NULL.
 */
struct qp *qp_alloc(const struct qp_alloc_params *p);
/** Control lcore: free the QP and all that it has; no worker knows it any more. NULL is allowed. */
void qp_free(struct qp *qp);

/** Bytes of each ring; *sq is 0 when there is none. @return 0 or -EINVAL. */
int qp_ring_bytes(const struct qp_alloc_params *p, size_t *rq, size_t *sq);

/** Bytes of memory one QP of these parameters takes, all rings included. */
size_t qp_footprint(const struct qp_alloc_params *p);

#endif
