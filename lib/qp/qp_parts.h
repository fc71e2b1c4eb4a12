/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_PARTS_H
#define QP_PARTS_H
/**
 * @file qp_parts.h  What a compact QP is given when it first needs it, and not before.
 *
 * Owner:   the control lcore makes parts and frees them with the QP; the QP's worker takes them.
 * Memory:  a compact QP is struct qp alone, in a cell of a 2 MiB slab. Its side is one rte_malloc()
 *          block out of the worker's stock, its work another one.
 * Depends: qp.h; DPDK.
 *
 * A peer can make a QP need its side: counters that are not of the good path, the queue of answers,
 * saved READs and ATOMICs. The worker takes a side from its stock, which the control lcore fills
 * up. Posting needs the work: rings, private work requests, SGEs. The control lcore makes it before
 * it posts for the first time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qp_failure.h"
#include "requester.h"
#include "resp_answers.h"
#include "responder.h"
#include "ring.h"
#include "stats.h"

struct qp;

#define QP_SIDE_READS   16 /* most max_dest_rd_atomic of a compact QP */
#define QP_SIDE_ANSWERS 34

struct qp_side {
	struct stats_block stats;
	struct resp_answer answers[QP_SIDE_ANSWERS];
	struct responder_saved saved[QP_SIDE_READS];
	struct qp_failure failure;
	struct qp_side *next; /* of a stock */
};

struct qp_work {
	struct ring rq; /* consumer views */
	struct ring sq; /* sh NULL: max_send_wr is 0 */
	struct ring_recv_copy copy;
	struct requester_wr *wr; /* and their SGEs */
	uint32_t wr_mask;
};

/** Control: a zeroed cell for a QP; NULL: no memory. */
struct qp *qp_cell_alloc(int socket);
/** Control: give a cell back. Its parts are gone already. */
void qp_cell_free(struct qp *qp);
/** Owner worker: the QP has it from now on. */
void qp_side_take(struct qp *qp, struct qp_side *side);

#endif
