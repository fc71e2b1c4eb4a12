/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of a worker: who has one, and whose turn it is. */
#include "shares.h"

void
pipeline_share_init(struct qp_share *s)
{
	*s = (struct qp_share){ 0 };
	TAILQ_INIT(&s->senders);
}

void
pipeline_share_enter(struct worker *w, struct qp_share *s)
{
	s->listed = true;
	TAILQ_INSERT_TAIL(&w->shares, s, turn);
	w->shares_n++;
}

void
pipeline_share_leave(struct worker *w, struct qp_share *s)
{
	ASSERT(s->senders_n == 0);
	if (!s->listed)
		return;
	s->listed = false;
	TAILQ_REMOVE(&w->shares, s, turn);
	w->shares_n--;
}

void
pipeline_share_join(struct worker *w, struct qp *qp)
{
	struct qp_client *c;

	qp->sq.share = NULL;
	if (qp->client == 0)
		return;
	TAILQ_FOREACH (c, &w->clients, polled)
		if (c->id == qp->client)
			qp->sq.share = &c->share;
}
