/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells of clients: numbers out of shared memory, of which none is believed. */
#include "pipeline_priv.h"

/** REQ-CLS-C-01: an index that no producer can have reached. The QP fails; its client is told. */
static void
corrupt(struct worker *w, struct qp *qp)
{
	struct requester_verdict v;

	requester_context_fault(&qp->req, &v);
	requester_act(w, qp, NULL, &v);
}

static void
answer(struct worker *w, const struct qp_client *c, uint32_t number)
{
	struct qp *qp = qp_lookup(w->qps, number & RING_BELL_QPN);

	if (UNLIKELY(qp == NULL || qp->worker != w->index || qp->sq.client != c->id ||
		     (number & ~(RING_BELL_QPN | RING_BELL_RECV)) != 0)) {
		stats_inc(&w->stats, STAT_doorbell_garbage);
		return;
	}
	stats_inc(&w->stats, STAT_doorbells);
	if (UNLIKELY((number & RING_BELL_RECV) != 0)) {
		ring_bell_heard(&qp->rq);
		if (qp_state_of(qp) == QPS_ERR)
			flush_receives(w, qp);
		return;
	}
	if (UNLIKELY(qp->sq.ring.sh == NULL))
		return;
	ring_bell_heard(&qp->sq.ring);
	if (UNLIKELY(ring_is_corrupt(&qp->sq.ring)) && qp_state_of(qp) >= QPS_RTS &&
		qp_state_of(qp) <= QPS_SQD)
		corrupt(w, qp);
	sends_posted(w, qp);
}

uint32_t
doorbells_run(struct worker *w)
{
	struct qp_client *c;
	uint32_t done = 0;

	TAILQ_FOREACH (c, &w->clients, polled) {
		for (uint32_t i = 0; i < DOORBELL_CLIENT; i++) {
			const uint32_t number = ring_bells_take(&c->bells);

			if (LIKELY(number == 0))
				break;
			answer(w, c, number);
			done++;
		}
	}
	return done;
}

void
client_attach(struct worker *w, struct qp_client *c)
{
	if (c->polls)
		return;
	TAILQ_INSERT_TAIL(&w->clients, c, polled);
	c->polls = true;
	w->clients_n++;
}

void
client_detach(struct worker *w, struct qp_client *c)
{
	if (!c->polls)
		return; /* asked twice */
	TAILQ_REMOVE(&w->clients, c, polled);
	c->polls = false;
	w->clients_n--;
}
