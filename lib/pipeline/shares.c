/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of a worker: who has one, and whose turn it is. */
#include "shares.h"

/* What a client with a rate may move at once after a silence: a millisecond's worth, or this. */
#define BURST_LEAST 16384 /* bytes */

void
pipeline_share_init(struct qp_share *s)
{
	*s = (struct qp_share){ .weight = 1, .first = s };
	TAILQ_INIT(&s->senders);
	TAILQ_INIT(&s->flushing);
}

void
pipeline_share_init_for(struct qp_share *s, const struct qp_client *c)
{
	ASSERT(c->weight <= 100);
	pipeline_share_init(s);
	s->weight = (uint8_t)RTE_MAX(c->weight, 1u);
	s->rate = c->rate;
	s->user = c->user;
}

/** The list has changed. */
static void
look_at_list(struct worker *w)
{
	struct qp_share *s;

	w->heaviest = 1;
	w->fewest = UINT32_MAX;
	TAILQ_FOREACH (s, &w->shares, turn) {
		w->heaviest = RTE_MAX(w->heaviest, s->weight);
		w->fewest = RTE_MIN(w->fewest, s->siblings);
	}
	s = TAILQ_FIRST(&w->shares);
	w->alone = w->shares_n == 1 && s->rate == 0 ? s : NULL;
}

void
pipeline_share_set(struct worker *w, struct qp_client *c, uint32_t weight, uint64_t rate)
{
	ASSERT(weight != 0 && weight <= 100);
	c->share.weight = (uint8_t)weight;
	if (c->share.rate == 0)
		c->share.filled = w->now; /* it has saved nothing up */
	c->share.rate = rate;
	look_at_list(w);
}

/** One more share on the list, or one less, is of this user. @return how many others are. */
static uint32_t
count_siblings(struct worker *w, struct qp_share *of, int more)
{
	struct qp_share *s, *first = of;
	uint32_t n = 0;

	TAILQ_FOREACH (s, &w->shares, turn) {
		if (s == of || of->user == 0 || s->user != of->user)
			continue;
		if (n++ == 0)
			first = s;
		s->first = first;
		s->siblings += (uint32_t)more;
	}
	of->first = more > 0 ? first : of; /* who is not listed may outlive the others */
	return n;
}

void
pipeline_share_enter(struct worker *w, struct qp_share *s)
{
	s->listed = true;
	s->idle = 0;
	s->last = NULL;
	s->siblings = count_siblings(w, s, 1) + 1;
	TAILQ_INSERT_TAIL(&w->shares, s, turn);
	w->shares_n++;
	look_at_list(w);
}

#define LINGER 64 /* turns without work, until a share leaves the list; of short ones */

/*
 * Who asks for little waits for others no longer than it must: it goes ahead of them, and while
 * there is such a one, turns are short. It gains no more than a place: the one that waits longest
 * is overtaken once by each between two of its turns.
 */
void
pipeline_share_hurry(struct worker *w, struct qp_share *s)
{
	const struct qp_share *first;

	if (UNLIKELY(!s->listed))
		pipeline_share_enter(w, s);
	if (s->spent <= COST_BRIEF)
		w->brief = LINGER;
	s->spent = 0;
	first = TAILQ_FIRST(&w->shares);
	if (first == s || first->began < s->jumped)
		return;
	s->jumped = ++w->turns_begun;
	TAILQ_REMOVE(&w->shares, s, turn);
	TAILQ_INSERT_HEAD(&w->shares, s, turn);
}

static void
unlist(struct worker *w, struct qp_share *s)
{
	s->listed = false;
	count_siblings(w, s, -1);
	TAILQ_REMOVE(&w->shares, s, turn);
	w->shares_n--;
	look_at_list(w);
}

void
pipeline_share_leave(struct worker *w, struct qp_share *s)
{
	ASSERT(s->senders_n == 0 && TAILQ_EMPTY(&s->flushing));
	if (s->listed)
		unlist(w, s);
}

void
pipeline_shares_forget(struct worker *w)
{
	struct qp_share *s, *next;

	for (s = TAILQ_FIRST(&w->shares); s != NULL; s = next) {
		next = TAILQ_NEXT(s, turn);
		if (TAILQ_EMPTY(&s->flushing))
			unlist(w, s);
	}
}

void
pipeline_share_join(struct worker *w, struct qp *qp)
{
	struct qp_client *c;

	qp->sq.share = NULL;
	qp->whose = qp->client;
	if (qp->client == 0)
		return;
	TAILQ_FOREACH (c, &w->clients, polled)
		if (c->id == qp->client) {
			/* A target sends nothing, and stays when it is another client's. */
			if (qp->type != QPT_XRC_RECV)
				qp->sq.share = &c->share;
			/* An id of a client is another number. */
			if (c->user != 0)
				qp->whose = ~(uint32_t)c->user;
		}
}

/* ---- whose turn it is ------------------------------------------------------------------------ */

/** The bytes that its rate has brought since it was asked last. @return may it move any? */
static bool
fill(struct qp_share *s, ns_t now)
{
	const int64_t most = (int64_t)RTE_MAX(s->rate / 1000, (uint64_t)BURST_LEAST);
	const double byte_ns = (double)TIME_NS_PER_S / (double)s->rate;
	const double more = (double)(now - s->filled) / byte_ns;

	/* Compared as they are: a silence is as long as it likes, and what is owed may be, too. */
	if (more >= (double)(most - s->tokens)) {
		s->tokens = most;
		s->filled = now;
		return true;
	}
	s->tokens += (int64_t)more;
	s->filled += (ns_t)((double)(int64_t)more * byte_ns); /* parts of a byte come later */
	s->filled = RTE_MIN(s->filled, now);
	return s->tokens > 0;
}

/** It has had its turn, or has nothing to use it for. @return false: it waits. */
static bool
begin_turn(struct worker *w, struct qp_share *s)
{
	int64_t quantum = (w->brief != 0 ? COST_BRIEF : COST_TURN) * s->weight / w->heaviest;

	if (UNLIKELY(s->siblings != w->fewest))
		quantum = RTE_MAX(quantum * w->fewest / s->siblings, (int64_t)1);
	s->began = ++w->turns_begun;
	TAILQ_REMOVE(&w->shares, s, turn);
	TAILQ_INSERT_TAIL(&w->shares, s, turn);
	s->credit = RTE_MIN(s->credit + quantum, quantum);
	if (s->senders_n == 0) {
		if (s->credit > 0 && ++s->idle == LINGER)
			unlist(w, s);
		return false;
	}
	s->idle = 0;
	return s->credit > 0 && (LIKELY(s->rate == 0) || fill(s, w->now));
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

/** When its rate brings the first byte: at a byte a second, of many long READs, never. */
static ns_t
fills_at(const struct qp_share *s)
{
	const double wait = (double)(1 - s->tokens) * (double)TIME_NS_PER_S / (double)s->rate;

	return s->filled + (wait < (double)INT64_MAX ? (ns_t)wait : INT64_MAX) + 1;
}

ns_t
pipeline_share_empty_until(const struct worker *w, const struct qp_share *s)
{
	if (s->rate == 0 || s->tokens > 0 || fills_at(s) <= w->now)
		return 0;
	return fills_at(s);
}

ns_t
pipeline_shares_next(const struct worker *w)
{
	const struct qp_share *s;
	ns_t first = UINT64_MAX;

	TAILQ_FOREACH (s, &w->shares, turn) {
		if (s->senders_n == 0)
			continue;
		if (s->rate == 0 || s->tokens > 0 || s->credit <= 0)
			return 0;
		first = RTE_MIN(first, fills_at(s));
	}
	return first;
}

/** What a request costs beside its packets. */
static int64_t
cost_of(const struct requester_wr *wr)
{
	int64_t cost = 0;

	if (wr->opcode == WR_RDMA_READ)
		cost = COST_READ;
	else if (verbs_wr_is_atomic(wr->opcode))
		cost = COST_ATOMIC;
	else if (wr->num_sge != 1)
		cost = COST_FULL;
	return wr->num_sge > 1 ? cost + wr->num_sge * COST_SGE : cost;
}

void
pipeline_share_pay(
	struct worker *w, struct qp_share *s, const struct qp *qp, uint32_t first, uint32_t packets)
{
	const struct requester *r = &qp->req;
	const uint8_t port = w->port_of[qp->out];
	int64_t cost = (int64_t)packets * COST_PACKET;
	uint32_t begun = r->sending - first;
	uint64_t bytes = 0;

	if (s->last != qp)
		cost += COST_SWITCH;
	s->last = qp;
	if (begun <= r->wr_mask) /* else it has failed, or goes back */
		for (uint32_t i = 0; i < begun; i++) {
			const struct requester_wr *wr = &r->wr[(first + i) & r->wr_mask];

			cost += cost_of(wr);
			bytes += wr->opcode == WR_RDMA_READ ? wr->len : 0;
		}
	if (LIKELY(port != PORT_NONE))
		bytes += share_bytes(&w->tx[port], packets);
	cost += cost_bytes(bytes);
	s->credit -= cost;
	s->spent += cost;
	if (UNLIKELY(s->rate != 0))
		s->tokens -= (int64_t)bytes;
}
