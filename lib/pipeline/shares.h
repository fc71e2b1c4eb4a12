/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARES_H
#define SHARES_H
/**
 * @file shares.h  Whose turn it is: clients first, then the QPs of each.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 */
#include "worker.h"

/** A share that nobody has used yet. */
void pipeline_share_init(struct qp_share *s);
/** Its client is gone, after its QPs. */
void pipeline_share_leave(struct worker *w, struct qp_share *s);
/** Put it on the worker's list. */
void pipeline_share_enter(struct worker *w, struct qp_share *s);
/** The QP is this worker's from now on: find the share of its client. */
void pipeline_share_join(struct worker *w, struct qp *qp);

/** Where the QP takes its turn. */
static ALWAYS_INLINE struct qp_share *
share_of(struct worker *w, const struct qp *qp)
{
	return qp->sq.share != NULL ? qp->sq.share : &w->own;
}

/** The QP has something to send. */
static ALWAYS_INLINE void
share_add(struct worker *w, struct qp_share *s, struct qp *qp)
{
	TAILQ_INSERT_TAIL(&s->senders, qp, sq.sending);
	s->senders_n++;
	w->senders_n++;
	if (UNLIKELY(!s->listed))
		pipeline_share_enter(w, s);
}

/** It has no more. */
static ALWAYS_INLINE void
share_remove(struct worker *w, struct qp_share *s, struct qp *qp)
{
	ASSERT(w->senders_n != 0 && s->senders_n != 0);
	TAILQ_REMOVE(&s->senders, qp, sq.sending);
	s->senders_n--;
	w->senders_n--;
}

/** It had its turn. */
static ALWAYS_INLINE void
share_rotate(struct qp_share *s, struct qp *qp)
{
	if (TAILQ_NEXT(qp, sq.sending) == NULL)
		return;
	TAILQ_REMOVE(&s->senders, qp, sq.sending);
	TAILQ_INSERT_TAIL(&s->senders, qp, sq.sending);
}

#endif
