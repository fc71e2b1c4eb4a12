/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARES_H
#define SHARES_H
/**
 * @file shares.h  Whose turn it is: users first, then the clients of each, then their QPs.
 *
 * Who runs several clients has the turn of one: as long as others wait, they have parts of it.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 */
#include "worker.h"

/** A share that nobody has used yet, of the QPs of no client. */
void pipeline_share_init(struct qp_share *s);
/** A client's. Its weight is that of its quantum, up to 100. */
void pipeline_share_init_for(struct qp_share *s, const struct qp_client *c);
/** A client that is here has another weight and rate: what it owes or has saved up stays. */
void pipeline_share_set(struct worker *w, struct qp_client *c, uint32_t weight, uint64_t rate);
/** Its client is gone, after its QPs. */
void pipeline_share_leave(struct worker *w, struct qp_share *s);
/** Put it on the worker's list. */
void pipeline_share_enter(struct worker *w, struct qp_share *s);
/** It has work again: its turn is next, unless it has gone ahead of the one that waits longest. */
void pipeline_share_hurry(struct worker *w, struct qp_share *s);
/** Nobody has had anything to send for SHARES_PAUSE: who was here is not, and whose turn it was. */
void pipeline_shares_forget(struct worker *w);
/** The QP is this worker's from now on: find the share of its client, and whose turns it takes. */
void pipeline_share_join(struct worker *w, struct qp *qp);

/*
 * What work costs, in about cycles of a worker: its sending, and what comes of it at both ends, as
 * if both were here. Where that differs, a client pays more rather than less.
 */
#define COST_PACKET 256  /* a packet */
#define COST_SWITCH 1536 /* another QP than before: its lines at both ends */
#define COST_FULL   512  /* more for a request that the fast paths do not take */
#define COST_SGE    192  /* more for each piece of its payload */
#define COST_READ   1024 /* more for a READ; its data costs as if sent */
#define COST_ATOMIC 2304 /* more for an ATOMIC */
#define COST_BELL   64   /* a doorbell */
#define COST_FLUSH  88   /* a request that is flushed */
#define COST_TURN   6912 /* what a client may cost in a turn, beside others */
#define COST_BRIEF  3456 /* ... one of which waits for each of its requests */

/*
 * Those who had work lately are on lists for some turns with work, so that the next one does not
 * take their turn. What was before a pause of this length decides nothing any more. It is of the
 * clock, because how many turns a worker without work has depends on how it sleeps.
 */
#define SHARES_PAUSE TIME_NS_PER_MS

/** So many bytes of frames, or of the data that a READ asks for: memory that is in no cache. */
static ALWAYS_INLINE int64_t
cost_bytes(uint64_t bytes)
{
	return (int64_t)(bytes + bytes / 4);
}

/** It has cost so much more. @return what it has cost in this round. */
static inline int64_t
round_cost_add(const struct worker *w, struct qp_round_cost *c, int64_t cost)
{
	if (c->round != w->round)
		*c = (struct qp_round_cost){ .round = w->round };
	c->cost += cost;
	return c->cost;
}

/**
 * The share whose turn it is, with a new quantum; it goes to the end of the list.
 * @return NULL: nobody has both work and credit.
 */
struct qp_share *pipeline_share_next(struct worker *w);
/** When somebody has both work and bytes that its rate lets it move; 0: now. */
ns_t pipeline_shares_next(const struct worker *w);
/** Until when it has used up what its rate lets it move; 0: it has not. */
ns_t pipeline_share_empty_until(const struct worker *w, const struct qp_share *s);
/** So many packets of a QP have just been made, of requests from position `first` on. */
void pipeline_share_pay(struct worker *w, struct qp_share *s, const struct qp *qp, uint32_t first,
	uint32_t packets);
/** The longest of the QP's next packets, headers left out: of as many as there may be at once. */
static inline uint32_t
share_longest(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	const uint32_t n = RTE_MIN(r->tail - r->sending, (uint32_t)REQUEST_QP);
	uint32_t longest = 0;

	for (uint32_t i = 0; i < n && longest < r->pmtu; i++)
		longest = RTE_MAX(longest, r->wr[(r->sending + i) & r->wr_mask].len);
	return RTE_MIN(longest, (uint32_t)r->pmtu);
}

/** The bytes of the newest frames of a queue. */
static inline uint64_t
share_bytes(const struct tx_queue *q, uint32_t frames)
{
	uint64_t bytes = 0;

	frames = RTE_MIN(frames, q->tail - q->head);
	for (uint32_t i = 1; i <= frames; i++)
		bytes += q->m[q->tail - i]->pkt_len;
	return bytes;
}

/** How many packets of this length the share can pay for: at least one. */
static inline uint32_t
share_packets(const struct qp_share *s, uint32_t len)
{
	const int64_t most = s->credit / (COST_PACKET + cost_bytes(len));

	return most > 1 ? (uint32_t)RTE_MIN(most, (int64_t)REQUEST_QP) : 1;
}

/** Other work of a client than requests: it has so much less for these, if others wait. */
static ALWAYS_INLINE void
share_charge(const struct worker *w, struct qp_share *s, int64_t cost)
{
	if (UNLIKELY(w->alone == NULL) && s->listed)
		s->credit -= cost;
}

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
	const bool rested = s->senders_n++ == 0;

	TAILQ_INSERT_TAIL(&s->senders, qp, sq.sending);
	if (w->senders_n++ == 0) {
		w->send_line++;
		w->brief = 0;
		if (UNLIKELY(w->now - w->sent >= SHARES_PAUSE))
			pipeline_shares_forget(w);
	}
	if (s->line != w->send_line) { /* nobody has waited since its debt was made */
		s->line = w->send_line;
		s->credit = 0;
		s->spent = COST_TURN; /* not known */
		s->began = s->jumped = 0;
	}
	if (rested && UNLIKELY(w->alone != s))
		pipeline_share_hurry(w, s);
}

/** It has no more. */
static ALWAYS_INLINE void
share_remove(struct worker *w, struct qp_share *s, struct qp *qp)
{
	ASSERT(w->senders_n != 0 && s->senders_n != 0);
	TAILQ_REMOVE(&s->senders, qp, sq.sending);
	s->senders_n--;
	if (--w->senders_n == 0)
		w->sent = w->now;
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
