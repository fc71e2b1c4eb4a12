/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_FEED_H
#define SEND_FEED_H
/**
 * @file send_feed.h  Requests that the worker makes itself, for load and tests.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  the QP's send feed.
 * Depends: worker.h.
 */
#include "worker.h"

/** Does the worker post to the QP itself? Then send_feed is there. */
static inline bool
is_fed(const struct qp *qp)
{
	return (qp->flags & QPF_SEND_FEED) != 0;
}

/** Post as many requests as the feed keeps under way. @param now their time of posting. */
void pipeline_feed_take(struct qp *qp, ns_t now);
/** `n` requests from position `first` on have completed: their latencies are counted. */
void pipeline_feed_completed(struct worker *w, const struct qp *qp, uint32_t first, uint32_t n);
/** The QP would fail by this verdict. @return true: the feed rests and begins again instead. */
bool pipeline_feed_rests(struct worker *w, struct qp *qp, const struct requester_verdict *v);
/** The QP's timer fired. @return true: the feed's rest was what it waited for. */
bool pipeline_feed_timer(struct worker *w, struct qp *qp);

#endif
