/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_PIPELINE_CLIENT_RIG_H
#define TEST_PIPELINE_CLIENT_RIG_H
/**
 * @file client_rig.h  A client of the bed: a QP whose rings lie in memory of unstable.h, doorbells.
 *
 * Owner:   the pipeline's unit tests; one rig at a time.
 * Memory:  one area for each ring, mapped once.
 * Depends: bed.h, unstable.h.
 */
#include "bed.h"
#include "mem_window.h"

enum { ENTRIES = 8, CQES = 32, BELLS = 16, OWN_QPN = 0x13, CLIENT = 5 };
enum { WINDOW_KEY = 0x500500, FAST_KEY = 0x600600 };

/** One QP of a client, with all that the client can write to. */
struct rig {
	struct bed *bed;
	struct qp *qp;
	struct qp_cq cq;
	struct ring_cq resized; /* another ring for it: rig_resize() */
	struct qp_srq srq;
	struct qp_client client;
	struct ring sq; /* the client's views */
	struct ring rq;
	struct ring srq_post;
	struct ring_bells bells;
	struct ring_cq polled;
	struct mem_window *window; /* of type 2 */
	struct mem_window *fast;   /* a fast region */
};

/**
 * Make it, with nothing posted. @param shared  receives come from the SRQ. @param crowded  the CQ
 * has more than one producer.
 */
void rig_make(struct rig *r, struct bed *b, bool shared, bool crowded);
/** The CQ is resized: completions go to another ring, which the client can write to as well. */
void rig_resize(struct rig *r);
/** Take it away again; messages of the worker that nobody has read go with it. */
void rig_end(struct rig *r);
/** A request of each kind. */
void rig_post_sends(struct rig *r);
/** SENDs and RDMA WRITEs of several SGEs, and of one behind which the packet has no pad. */
void rig_post_lists(struct rig *r);
/** What has no packet, and the operations of annex A19, twice: the QP has to have that knob. */
void rig_post_rare(struct rig *r);
/** The longest there are, too long ones, and one behind them. */
void rig_post_bad_sends(struct rig *r);
/** Receives of one SGE, of several, of none, to the QP's queue or the SRQ. */
void rig_post_receives(struct rig *r);
/** Both, and doorbells that nobody needs. */
void rig_post_both(struct rig *r);

#endif
