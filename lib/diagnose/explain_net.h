/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPLAIN_NET_H
#define EXPLAIN_NET_H
/**
 * @file explain_net.h  What neighbours, links and workers have to do with a QP that does not get
 * on.
 *
 * Owner:   control lcore.
 * Memory:  new JSON values.
 * Depends: neigh.h link.h, jansson.
 * Spec:    RT-04, RT-05.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "qp_snapshot.h"

struct diagnose;
struct admin_qp;

/** What it is about. */
struct explain_when {
	ns_t failed;   /* explain_given_up() */
	uint64_t lost; /* packets that had nowhere to go; QP_NOWHERE_MANY: so many or more */
	uint32_t una;  /* the oldest packet that is, or was then, not acknowledged */
};

/** {"neighbor", "alt_neighbor", "link", "not_sent", "text"} of now; "text" is null or as below. */
json_t *explain_net_json(struct diagnose *dg, struct admin_qp *rec, const struct qp_snapshot *s);
/**
 * What is wrong between the QP and its peer, as sentences with "; " between them: a neighbour that
 * does not answer, a route that is missing, a link that is down, an interface that is too small for
 * the QP's packets, and explain_inside_text().
 * @return false: nothing is known to be, and the text is empty.
 */
bool explain_net_text(struct diagnose *dg, struct admin_qp *rec, const struct explain_when *when,
	char *buf, size_t room);
/** When the QP's transport retries were used up; 0: it did not fail of that. */
ns_t explain_given_up(const struct qp_error *e);
/**
 * What this dataplane itself may have done to the QP's packets, or to the peer's, if both are here:
 * - a worker that has them did not turn now, or for a timeout or longer while the QP's retries were
 *   used up: "worker 1 stood still for 517 ms";
 * - a rule at their port took theirs: "impair at port p1 dropped or corrupted 8 packets";
 * - the queue in front of their port was full at times, for them or for others.
 * @return false: nothing, and the text is empty.
 */
bool explain_inside_text(const struct diagnose *dg, const struct admin_qp *rec,
	const struct explain_when *when, char *buf, size_t room);

/**
 * The same behind a summary, where it may be the cause: requests wait for an answer, or packets had
 * nowhere to go; or retries were used up, then as it was at that time. Takes the summary over.
 * @return it, or a longer one.
 */
json_t *explain_net_add(
	struct diagnose *dg, struct admin_qp *rec, const struct qp_snapshot *s, json_t *summary);

#endif
