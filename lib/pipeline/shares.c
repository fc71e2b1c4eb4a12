/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of a worker: who has one, and whose turn it is. */
#include "shares.h"

void
pipeline_share_init(struct qp_share *s)
{
	*s = (struct qp_share){ 0 };
	TAILQ_INIT(&s->senders);
	TAILQ_INIT(&s->flushing);
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
	ASSERT(s->senders_n == 0 && TAILQ_EMPTY(&s->flushing));
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

/* ---- whose turn it is ------------------------------------------------------------------------ */

#define LINGER 64 /* turns without work, until a share leaves the list */

/** It has had its turn, or has nothing to use it for. @return false: it waits. */
static bool
begin_turn(struct worker *w, struct qp_share *s)
{
	TAILQ_REMOVE(&w->shares, s, turn);
	TAILQ_INSERT_TAIL(&w->shares, s, turn);
	s->credit = RTE_MIN(s->credit + COST_TURN, (int64_t)COST_TURN);
	if (s->senders_n == 0) {
		if (s->credit > 0 && ++s->idle == LINGER)
			pipeline_share_leave(w, s);
		return false;
	}
	s->idle = 0;
	return s->credit > 0;
}

struct qp_share *
pipeline_share_next(struct worker *w)
{
	for (uint32_t n = w->shares_n; n != 0; n--) {
		struct qp_share *s = TAILQ_FIRST(&w->shares);

		if (begin_turn(w, s))
			return s;
	}
	return NULL;
}

/** What a request costs beside its packets. */
static int64_t
cost_of(const struct requester_wr *wr)
{
	int64_t cost = 0;

	if (wr->opcode == WR_RDMA_READ)
		cost = COST_READ + cost_bytes(wr->len);
	else if (verbs_wr_is_atomic(wr->opcode))
		cost = COST_ATOMIC;
	else if (wr->num_sge != 1)
		cost = COST_FULL;
	return wr->num_sge > 1 ? cost + wr->num_sge * COST_SGE : cost;
}

void
pipeline_share_pay(struct worker *w, struct qp_share *s, const struct qp *qp, uint32_t first,
	uint32_t packets)
{
	const struct requester *r = &qp->req;
	const uint8_t port = w->port_of[qp->port];
	int64_t cost = (int64_t)packets * COST_PACKET;
	uint32_t begun = r->sending - first;

	if (s->last != qp)
		cost += COST_SWITCH;
	s->last = qp;
	if (begun <= r->wr_mask) /* else it has failed, or goes back */
		for (uint32_t i = 0; i < begun; i++)
			cost += cost_of(&r->wr[(first + i) & r->wr_mask]);
	if (LIKELY(port != PORT_NONE)) {
		const struct tx_queue *q = &w->tx[port];

		packets = RTE_MIN(packets, q->tail - q->head);
		for (uint32_t i = 1; i <= packets; i++)
			cost += cost_bytes(q->m[q->tail - i]->pkt_len);
	}
	s->credit -= cost;
}
