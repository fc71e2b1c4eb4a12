/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONGESTION_H
#define CONGESTION_H
/**
 * @file congestion.h  ECN marks and CNPs.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    CC-01, CC-04, CC-08, CC-24, CC-29, CC-32.
 */
#include "worker.h"

/** An accepted packet had the IP CE mark. */
void pipeline_congestion_mark(
	struct worker *w, uint8_t port, struct qp *qp, const struct wire_pkt *p);
/** A good CNP of the QP has arrived at the worker's port `port`: react as cc.algo says. */
void pipeline_congestion_notified(struct worker *w, uint8_t port, struct qp *qp);
/**
 * What cc.algo=delay wants to know of a verdict: a round trip ended, or packets were lost. Others
 * do not need to be told.
 * @param p the response; or NULL.
 */
void pipeline_congestion_heard(struct worker *w, struct qp *qp, const struct wire_pkt *p,
	const struct requester_verdict *v);
/** Of the link of the port by which it sends, Mb/s; 0: not known. */
uint32_t pipeline_congestion_mbps(const struct worker *w, const struct qp *qp);
/** With QPF_CC_RATE: the link of the port by which it sends may have another rate by now. */
void pipeline_congestion_line(const struct worker *w, struct qp *qp);
/** The control lcore has sent the QP's CNP (CC-04): it stands in a queue. */
void pipeline_congestion_sent(struct worker *w, uint32_t qpn);
/** Is a CNP formed as it must be? (CC-01, CC-08) */
bool pipeline_cnp_is_good(const struct wire_pkt *p);

#endif
