/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 9: read the doorbells of clients. They are shared memory, so each number is checked.
 *
 * A client that posts one request after the other would ring in nearly every turn, and the lines of
 * the bell and of its slot would go to and fro between two cores. So where few bells ring, a queue
 * is watched: its bell stays rung, the client has none to ring, and the worker looks at the queue
 * by itself in every turn, until nothing was posted for WATCHED_VAIN turns.
 */
#include "count.h"
#include "credits.h"
#include "sending.h"
#include "shares.h"
#include "stage.h"
#include "verdict.h"

/** REQ-CLS-C-01: an index that no producer can have reached. The QP fails; its client is told. */
static void
corrupt(struct worker *w, struct qp *qp)
{
	struct requester_verdict v;

	requester_context_fault(&qp->req, &v);
	pipeline_act_requester(w, qp, NULL, &v);
}

/** Whose bell it is. */
static ALWAYS_INLINE struct qp *
owner(const struct worker *w, const struct qp_client *c, uint32_t number)
{
	struct qp *qp = qp_lookup(w->qps, number & RING_BELL_QPN);

	if (UNLIKELY(qp == NULL || qp->worker != w->index || qp->sq.share != &c->share ||
		     (number & ~(RING_BELL_QPN | RING_BELL_RECV)) != 0))
		return NULL;
	return qp;
}

/** From now on, in place of a bell that may ring again. */
static ALWAYS_INLINE void
watch(struct worker *w, const struct qp_client *c, const struct qp *qp, uint32_t number)
{
	ASSERT(w->watched_n < WATCHED_MAX);
	w->watched[w->watched_n++] = (struct watched){
		.client = c, .number = number, .prod = RING_LOAD(uint32_t, &qp->sq.ring.sh->prod)
	};
}

/**
 * Whose bell it is. It may ring again, or its queue is watched.
 * @param few not many bells ring. @return NULL: there is nothing to look at.
 */
static ALWAYS_INLINE struct qp *
hear(struct worker *w, const struct qp_client *c, uint32_t number, bool few)
{
	struct qp *qp = owner(w, c, number);

	if (UNLIKELY(qp == NULL)) {
		stats_inc(&w->stats, STAT_doorbell_garbage);
		return NULL;
	}
	stats_inc(&w->stats, STAT_doorbells);
	if (UNLIKELY((number & RING_BELL_RECV) != 0))
		ring_bell_clear(&qp->rq);
	else if (UNLIKELY(qp->sq.ring.sh == NULL))
		return NULL;
	else if (few && w->watched_n < WATCHED_MAX)
		watch(w, c, qp, number);
	else
		ring_bell_clear(&qp->sq.ring);
	return qp;
}

/** What was posted is seen now. */
static ALWAYS_INLINE void
answer(struct worker *w, struct qp *qp, uint32_t number)
{
	if (UNLIKELY((number & RING_BELL_RECV) != 0)) {
		pipeline_receives_posted(w, qp);
		return;
	}
	if (UNLIKELY(ring_is_corrupt(&qp->sq.ring)) && qp_state_of(qp) >= QPS_RTS &&
		qp_state_of(qp) <= QPS_SQD)
		corrupt(w, qp);
	pipeline_sends_posted(w, qp);
}

/** Bells of a client: all of them with one barrier. */
static ALWAYS_INLINE void
answer_all(struct worker *w, const struct qp_client *c, const uint32_t *number, uint32_t n)
{
	struct qp *qp[DOORBELL_CLIENT];

	ASSERT(n <= DOORBELL_CLIENT);
	for (uint32_t i = 0; i < n; i++)
		qp[i] = hear(w, c, number[i], n <= WATCHED_BELLS);
	ring_bells_heard();
	for (uint32_t i = 0; i < n; i++)
		if (LIKELY(qp[i] != NULL))
			answer(w, qp[i], number[i]);
}

/**
 * Fetch what the queues of these numbers need, a step behind the other: nothing is believed here,
 * hear() looks at all of it again.
 */
static __attribute__((noinline)) void
fetch(const struct worker *w, const uint32_t *number, uint32_t n)
{
	const _Atomic uintptr_t *slot[DOORBELL_CLIENT];
	const struct qp *qp[DOORBELL_CLIENT];

	for (uint32_t i = 0; i < n; i++) {
		slot[i] = &w->qps->slot[number[i] & w->qps->mask];
		__builtin_prefetch((const void *)slot[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		qp[i] = qp_of_slot(atomic_load_explicit(slot[i], memory_order_acquire));
		if (LIKELY(qp[i] != NULL))
			sender_fetch(qp[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		if (LIKELY(qp[i] != NULL) && LIKELY(qp[i]->worker == w->index) &&
			LIKELY(qp[i]->sq.ring.sh != NULL))
			sendq_fetch(qp[i]);
}

/**
 * The client has rung more bells than a turn takes. Whose the next ones are stage 10 fetches while
 * it makes packets, and where the table has those behind them is fetched here.
 */
static __attribute__((noinline)) void
look_ahead(struct worker *w, const struct qp_client *c)
{
	w->coming_n = 0;
	for (uint32_t i = 0; i < DOORBELL_CLIENT; i++) {
		const uint32_t next = ring_bells_peek(&c->bells, i);
		const uint32_t later = ring_bells_peek(&c->bells, DOORBELL_CLIENT + i);
		struct qp *qp = qp_of_worker(qp_table_at(w->qps, next), w->index);

		__builtin_prefetch((const void *)&w->qps->slot[later & w->qps->mask]);
		if (UNLIKELY(qp == NULL))
			continue;
		/* With all of them at once their pages are looked up, too. */
		__builtin_prefetch(qp);
		w->coming[w->coming_n++] = qp;
	}
}

/**
 * Look at a watched queue: what was posted counts as a bell does.
 * @return false: it is not watched any more; its bell rings again, unless the QP is gone.
 */
static ALWAYS_INLINE bool
look(struct worker *w, struct watched *at, uint32_t *posts)
{
	struct qp *qp = owner(w, at->client, at->number);
	uint32_t prod;

	if (UNLIKELY(qp == NULL) || UNLIKELY(qp->sq.ring.sh == NULL))
		return false;
	prod = RING_LOAD(uint32_t, &qp->sq.ring.sh->prod);
	if (prod == at->prod) {
		if (LIKELY(++at->vain < WATCHED_VAIN))
			return true;
		ring_bell_heard(&qp->sq.ring);
		answer(w, qp, at->number);
		return false;
	}
	at->prod = prod;
	at->vain = 0;
	answer(w, qp, at->number);
	share_charge(w, qp->sq.share, COST_BELL);
	++*posts;
	return true;
}

static __attribute__((noinline)) uint32_t
look_at_watched(struct worker *w)
{
	uint32_t kept = 0, posts = 0;

	for (uint32_t i = 0; i < w->watched_n; i++) {
		if (LIKELY(look(w, &w->watched[i], &posts)))
			w->watched[kept++] = w->watched[i];
	}
	w->watched_n = kept;
	return posts;
}

uint32_t
stage_doorbells(struct worker *w)
{
	uint32_t number[DOORBELL_CLIENT], done = 0;
	struct qp_client *c;

	if (w->watched_n != 0)
		done += look_at_watched(w);
	TAILQ_FOREACH (c, &w->clients, polled) {
		uint32_t n = 0;

		while (n < DOORBELL_CLIENT) {
			number[n] = ring_bells_take(&c->bells);
			if (LIKELY(number[n] == 0))
				break;
			n++;
		}
		if (LIKELY(n == 0))
			continue;
		if (n > 1)
			fetch(w, number, n);
		answer_all(w, c, number, n);
		if (n == DOORBELL_CLIENT)
			look_ahead(w, c);
		share_charge(w, &c->share, (int64_t)n * COST_BELL);
		done += n;
	}
	return done;
}

bool
worker_is_rung(const struct worker *w)
{
	const struct qp_client *c;

	if (w->watched_n != 0)
		return true; /* nobody rings for these */
	TAILQ_FOREACH (c, &w->clients, polled) {
		if (ring_bells_ring(&c->bells))
			return true;
	}
	return false;
}

void
pipeline_client_attach(struct worker *w, struct qp_client *c)
{
	if (c->polls)
		return;
	pipeline_share_init_for(&c->share, c);
	TAILQ_INSERT_TAIL(&w->clients, c, polled);
	c->polls = true;
	w->clients_n++;
}

/** Its QPs are gone, or go. */
static void
unwatch(struct worker *w, const struct qp_client *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->watched_n; i++) {
		if (w->watched[i].client != c)
			w->watched[kept++] = w->watched[i];
	}
	w->watched_n = kept;
}

void
pipeline_client_detach(struct worker *w, struct qp_client *c)
{
	if (!c->polls)
		return; /* asked twice */
	unwatch(w, c);
	pipeline_share_leave(w, &c->share);
	TAILQ_REMOVE(&w->clients, c, polled);
	c->polls = false;
	w->clients_n--;
}
