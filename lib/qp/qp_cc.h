/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_CC_H
#define QP_CC_H
/**
 * @file qp_cc.h  The rate of a QP with cc.algo=dcqcn or delay.
 *
 * Owner:   the QP's worker; before attach, the control lcore.
 * Memory:  right behind struct qp (qp_alloc()).
 * Depends: base cc; qp.h.
 * Spec:    CC-09 .. CC-23, CC-33.
 */
#include "cc_delay.h"
#include "qp.h"

struct qp_cc {
	struct cc cc;
	bool sends_wait;   /* requests: for cc.due */
	bool answers_wait; /* READ responses: likewise */
};

/** With QPF_CC_RATE. */
static inline struct qp_cc *
qp_cc(struct qp *qp)
{
	ASSERT((qp->flags & QPF_CC_RATE) != 0);
	return (struct qp_cc *)(void *)(qp + 1);
}

/** Is QPF_PACED right? */
static inline void
qp_cc_note(struct qp *qp)
{
	if (cc_is_paced(&qp_cc(qp)->cc))
		qp->flags |= QPF_PACED;
	else
		qp->flags &= ~(uint32_t)QPF_PACED;
}

/** With cc.algo=delay: request packets in flight, at most those of the QP's own window. */
static inline void
qp_cc_window(struct qp *qp)
{
	const uint32_t n = cc_delay_window(&qp_cc(qp)->cc);

	qp->req.window = n < qp->window ? n : qp->window;
}

/** At its full rate, as if there had never been a CNP. What waits goes on doing so. */
static inline void
qp_cc_start(struct qp *qp, const struct cc_params *p)
{
	cc_start(&qp_cc(qp)->cc, p);
	qp_cc_note(qp);
	qp->req.rounds = p->by_delay;
	if (p->by_delay)
		qp_cc_window(qp);
}

#endif
