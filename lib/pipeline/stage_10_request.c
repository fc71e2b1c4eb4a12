/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 10: QPs with something to send take turns, a few packets each; a port whose frames pile up
 * is left alone until they have gone.
 */
#include "count.h"
#include "failure.h"
#include "fast_frame.h"
#include "pace.h"
#include "reply.h"
#include "send_feed.h"
#include "sending.h"
#include "shares.h"
#include "stage.h"
#include "tx.h"

#define SMALL_FRAME (3 * CACHE_LINE) /* all of an RDMA WRITE of 64 bytes */

/** REQ-CLS-C-01: positions that cannot be. */
static inline bool
is_corrupt(const struct requester *r)
{
	return r->tail - r->head > r->wr_mask + 1;
}

/** A source buffer, or an address handle, is none: not sent, nor anything behind it. */
static void
local_fault(struct worker *w, struct qp *qp, uint32_t position, int rc)
{
	const bool memory = rc == -EFAULT;
	struct requester_verdict v = { 0 };

	if (memory)
		pipeline_failure_of_list(w, qp, position);
	requester_local_fault(&qp->req, position, memory ? WR_FAULT_PROT : WR_FAULT_MALFORMED, &v);
	pipeline_act_requester(w, qp, NULL, &v);
}

/**
 * What stops sending for another reason than having nothing to send. @return is there more to do
 * for the QP? Then *left has paid for what was done.
 */
static bool
stopped(struct worker *w, struct qp *qp, enum requester_stop why, uint32_t *left)
{
	struct requester_verdict v;

	if (why == REQ_LOCAL) {
		(*left)--;
		pipeline_local_work(w, qp);
		return true;
	}
	if (why != REQ_FAULT)
		return false;
	requester_check_fault(&qp->req, &v);
	pipeline_act_requester(w, qp, NULL, &v);
	return false;
}

/** May packets of the QP leave now? Otherwise it sleeps; a modify or its timer wakes it. */
static bool
may_send(struct worker *w, struct qp *qp, uint8_t port)
{
	struct requester_verdict v;

	if (port == PORT_NONE)
		return false;
	/* A feed waits for its neighbour: pipeline_sends_found() wakes it. */
	if (UNLIKELY(is_fed(qp) && (qp->send_feed->resting || (qp->flags & QPF_RESOLVED) == 0)))
		return false;
	if (UNLIKELY(is_corrupt(&qp->req))) {
		requester_context_fault(&qp->req, &v);
		pipeline_act_requester(w, qp, NULL, &v);
		return false;
	}
	return true;
}

/** Is there somewhere to send to? Where a datagram goes its request says. */
static inline bool
has_way(const struct qp *qp)
{
	return (qp->flags & (QPF_RESOLVED | QPF_DATAGRAM)) != 0;
}

/** Buffers for the packets of a QP, so many at once. */
struct buffers {
	struct rte_mbuf *m[REQUEST_QP];
	uint32_t n;
};

/**
 * As the pool has them: what was not looked at since they were freed is fetched for writing, up to
 * the end of a small packet. Where a frame will be does not depend on what the mbuf says.
 */
static inline void
buffers_get(struct buffers *b, struct rte_mempool *pool, uint32_t n)
{
	size_t begins;

	b->n = 0;
	if (UNLIKELY(rte_mempool_get_bulk(pool, (void **)b->m, n) != 0))
		return;
	begins = frame_at(pool);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *frame = (const uint8_t *)b->m[i] + begins;

		__builtin_prefetch(b->m[i], 1);
		for (uint32_t at = 0; at < SMALL_FRAME; at += CACHE_LINE)
			__builtin_prefetch(frame + at, 1);
	}
	b->n = n;
}

/** The next one. NULL: there is none. */
static inline struct rte_mbuf *
buffers_next(struct buffers *b, struct rte_mempool *pool)
{
	if (UNLIKELY(b->n == 0)) {
		if (rte_mempool_get(pool, (void **)&b->m[0]) != 0)
			return NULL;
		b->n = 1;
	}
	rte_pktmbuf_reset(b->m[b->n - 1]);
	return b->m[b->n - 1];
}

/** Did the newest packet go out without AckReq? Then requester_next() has it sent once more. */
static inline bool
must_ask(const struct requester *r)
{
	return r->since_ackreq != 0;
}

/** Up to `most` packets that the fast path has left. @param b buffers for them. */
static __attribute__((noinline)) bool
serve_rest(struct worker *w, struct qp *qp, uint8_t port, struct buffers *b, uint32_t most,
	uint32_t *left)
{
	struct rte_mempool *pool = w->conf.ports[port].pool;
	struct requester_packet p;
	bool more = true;

	for (; most != 0; most--) {
		struct rte_mbuf *m = buffers_next(b, pool);
		enum requester_stop why;
		int rc;

		if (UNLIKELY(m == NULL)) {
			count(w, port, qp, STAT_tx_no_mbuf);
			break;
		}
		why = requester_next(&qp->req, w->now, &p);
		if (why != REQ_SEND) {
			more = stopped(w, qp, why, left);
			break;
		}
		(*left)--;
		rc = pipeline_request_send(w, qp, port, m, &p);
		if (LIKELY(rc == 0)) {
			b->n--;
			continue;
		}
		if (rc == -EFAULT || rc == -EBADF)
			local_fault(w, qp, p.position, rc);
		else if (rc != -EHOSTUNREACH) /* as if lost on the wire */
			count(w, port, qp, STAT_tx_error_drop);
	}
	if (UNLIKELY(b->n != 0))
		rte_pktmbuf_free_bulk(b->m, b->n);
	return more;
}

/**
 * Packets in one visit of the only QP that sends, which loses some. What it makes until it hears of
 * a loss is in vain, and it hears of nothing before the turn ends: as many as make no long turn.
 */
static __attribute__((noinline)) uint32_t
most_alone(struct worker *w, const struct qp *qp)
{
	if (!requester_goes_back(&qp->req))
		return REQUEST_QP;
	w->lossy = true;
	return REQUEST_QP - w->lossy_fewer;
}

void
pipeline_lossy_turn(struct worker *w)
{
	const ns_t took = w->now - w->began;

	if (w->lossy_made >= REQUEST_QP - w->lossy_fewer) { /* it was of full length */
		if (took > LOSSY_LONG)
			w->lossy_fewer += w->lossy_fewer < REQUEST_QP - REQUEST_LOSSY;
		else if (took < LOSSY_SHORT)
			w->lossy_fewer -= w->lossy_fewer != 0;
	}
	w->lossy = false;
	w->lossy_made = 0;
}

/**
 * Packets of a QP in one visit. Where several lose some, few: what answers them leaves sooner. Who
 * loses nothing gets as many as ever, and then all do, for visits are what QPs share.
 */
static ALWAYS_INLINE uint32_t
most_of(struct worker *w, const struct qp *qp)
{
	if (LIKELY(requester_is_free(&qp->req))) {
		w->unhurt = REQUEST_VISITS;
		return REQUEST_QP;
	}
	if (w->senders_n == 1)
		return most_alone(w, qp);
	if (w->unhurt == 0)
		return REQUEST_LOSSY;
	w->unhurt--;
	return REQUEST_QP;
}

/** Buffers for the fast path, which leaves none where it has sent all, and for long messages. */
static ALWAYS_INLINE uint32_t
buffers_wanted(const struct worker *w, const struct qp *qp, uint32_t most)
{
	if (UNLIKELY(requester_next_is_long(&qp->req)) && qp->req.sending != qp->req.tail)
		return requester_parts_wait(&qp->req, most);
	return RTE_MIN(most, w->source->n);
}

/** Up to *left packets of one QP. @return false: it has no more for now. */
static ALWAYS_INLINE bool
serve(struct worker *w, struct qp *qp, uint8_t port, uint32_t *left)
{
	const uint32_t most = RTE_MIN(*left, most_of(w, qp));
	struct buffers b;
	uint32_t sent;

	ASSERT(*left != 0 && *left <= REQUEST_TURN && w->source->n <= REQUEST_QP);
	buffers_get(&b, w->conf.ports[port].pool, buffers_wanted(w, qp, most));
	sent = pipeline_fast_requests(w, qp, port, b.m, &b.n);
	*left -= sent;
	if (LIKELY(sent != 0 && qp->req.sending == qp->req.tail && !must_ask(&qp->req))) {
		ASSERT(b.n == 0);
		return false;
	}
	return serve_rest(w, qp, port, &b, most - sent, left);
}

/**
 * The same where the neighbour's MAC is not known: packets are sent to nobody (RT-05). What there
 * is to do about a request without a MAC is what there is to do about a lost one, at its timer.
 */
static __attribute__((noinline)) bool
serve_nobody(struct worker *w, struct qp *qp, uint8_t port, uint32_t *left)
{
	const uint32_t most = RTE_MIN(*left, (uint32_t)REQUEST_QP);
	struct requester_packet p;

	for (uint32_t i = 0; i < most; i++) {
		const enum requester_stop why = requester_next(&qp->req, w->now, &p);

		if (why != REQ_SEND)
			return stopped(w, qp, why, left);
		(*left)--;
		if (pipeline_request_lose(w, qp, port, &p) != 0)
			local_fault(w, qp, p.position, -EFAULT);
	}
	return true;
}

/** The same of a QP that may not send at its port's rate: at most `some`, and in its turn. */
static __attribute__((noinline)) bool
serve_paced(struct worker *w, struct qp *qp, uint8_t port, uint32_t *left, uint32_t some)
{
	uint32_t turn, place;
	bool more;

	if (!may_send(w, qp, port))
		return false;
	turn = pipeline_pace_requests(w, qp);
	some = RTE_MIN(some, turn);
	if (some == 0)
		return false;
	place = pace_place(&w->tx[port]);
	*left -= some;
	more = has_way(qp) ? serve(w, qp, port, &some) : serve_nobody(w, qp, port, &some);
	*left += some;
	pipeline_pace_sent(w, qp, port, place);
	return more;
}

/** A QP is going to be served: copy what was posted, fetch what its packets are made from. */
static inline void
look_ahead(struct worker *w, struct qp *qp, struct request_sources *s)
{
	s->qp = NULL;
	if (qp == NULL)
		return;
	pipeline_requests_take(w, qp, s);
}

/** Senders further down the list, which may be in no cache. */
struct senders_ahead {
	const struct qp *lines; /* the next one whose own lines are fetched */
	const struct qp *queue; /* ... whose queue is: AHEAD before, as its own lines say where */
};

static inline void
fetch_next(struct senders_ahead *a, bool queue)
{
	if (LIKELY(a->lines != NULL)) {
		sender_fetch(a->lines);
		a->lines = TAILQ_NEXT(a->lines, sq.sending);
	}
	if (queue && LIKELY(a->queue != NULL)) {
		if (LIKELY(a->queue->sq.ring.sh != NULL))
			sendq_fetch(a->queue);
		a->queue = TAILQ_NEXT(a->queue, sq.sending);
	}
}

/** One more of those who come in the next turn, if there are any. */
static inline void
coming_fetch(struct worker *w)
{
	if (UNLIKELY(w->coming_n != 0))
		sender_fetch(w->coming[--w->coming_n]);
}

/** How many packets of this length there may be of a QP at once, beside another client. */
static inline uint32_t
at_once(uint32_t len)
{
	return len <= REQUEST_BYTES / REQUEST_QP ? REQUEST_QP : REQUEST_BYTES / len;
}

/** What look_ahead() found, if it still holds. */
static inline void
look(struct worker *w, struct qp *qp, struct request_sources *s)
{
	w->source = s;
	if (LIKELY(s->qp == qp) && LIKELY(s->first == qp->req.sending))
		return;
	pipeline_requests_take(w, qp, s);
}

/** Packets of the QP were made: what begins with them begins when they have left. */
static inline void
departs(struct worker *w, uint8_t port, struct qp *qp)
{
	if (LIKELY((qp->flags & (QPF_NOT_RC | QPF_RESOLVED)) == QPF_RESOLVED))
		tx_departs(w, port, qp, TX_REQUESTS);
	else if ((qp->flags & QPF_NOT_RC) != 0 && !wire_is_acked(qp->req.transport))
		tx_departs(w, port, qp, TX_UNACKED);
	else if ((qp->flags & QPF_RESOLVED) != 0)
		tx_departs(w, port, qp, TX_REQUESTS);
}

/**
 * So many packets were made while answers are owed, which may cost as much as those of the user who
 * has most: a reader keeps up with each who sends, not with all of them together.
 */
static __attribute__((noinline)) void
answers_wait(struct worker *w, const struct qp_share *s, uint8_t port, uint32_t packets)
{
	const int64_t cost = packets * COST_PACKET + cost_bytes(share_bytes(&w->tx[port], packets));

	w->made = RTE_MAX(w->made, round_cost_add(w, &s->first->made, cost));
}

/** How long a turn is where somebody else could have work meanwhile. */
static inline uint32_t
turn_bytes(const struct worker *w)
{
	const uint32_t fewer = UNLIKELY(w->lossy) ? w->lossy_fewer : 0;

	return REQUEST_BYTES - fewer * (REQUEST_BYTES / REQUEST_QP);
}

/**
 * Up to so many packets of the QPs of a share, in turn.
 * @param pays others wait for their turn: no more than the share has credit for.
 * @return how many packets are left.
 */
static ALWAYS_INLINE uint32_t
serve_share(struct worker *w, struct qp_share *s, uint32_t left, const bool pays)
{
	/* A QP that is alone may have all packets of a turn, while they are short. */
	const uint32_t more_visits =
		s->senders_n < REQUEST_ROUNDS ? REQUEST_ROUNDS - s->senders_n : 0;
	const bool beside = w->clients_n >= 2;
	uint32_t visits = RTE_MIN(s->senders_n + more_visits, (uint32_t)REQUEST_VISITS);
	uint32_t turn = 0, bytes = 0;
	struct senders_ahead a = { TAILQ_FIRST(&s->senders), TAILQ_FIRST(&s->senders) };

	for (uint32_t i = 0; i < 2 * AHEAD && i < visits; i++)
		fetch_next(&a, i >= AHEAD);
	look_ahead(w, TAILQ_FIRST(&s->senders), &w->sources[0]);
	for (; visits-- != 0 && left != 0 && !TAILQ_EMPTY(&s->senders); turn ^= 1) {
		struct qp *qp = TAILQ_FIRST(&s->senders);
		uint8_t port = w->port_of[qp->out];
		const uint32_t before = left, first = qp->req.sending;
		uint32_t some = left, len = 0;
		bool more = true;

		ASSERT((qp->flags & QPF_SENDING) != 0 && qp->worker == w->index);
		w->sources[turn ^ 1].qp = NULL;
		coming_fetch(w);
		if (visits > AHEAD)
			fetch_next(&a, true);
		if (visits != 0)
			look_ahead(w, TAILQ_NEXT(qp, sq.sending), &w->sources[turn ^ 1]);
		if (port != PORT_NONE && tx_takes_no_requests(w, port)) {
			share_rotate(s, qp);
			continue;
		}
		look(w, qp, &w->sources[turn]);
		if (pays || beside || more_visits != 0)
			len = share_longest(qp);
		if (pays)
			some = RTE_MIN(some, share_packets(s, len));
		if (beside)
			some = RTE_MIN(some, at_once(len));
		if (UNLIKELY((qp->flags & QPF_PACED) != 0)) {
			more = serve_paced(w, qp, port, &left, some);
		} else {
			left -= some;
			more = may_send(w, qp, port) &&
			       (LIKELY(has_way(qp)) ? serve(w, qp, port, &some)
						    : serve_nobody(w, qp, port, &some));
			left += some;
		}
		if (pays)
			pipeline_share_pay(w, s, qp, first, before - left);
		if (UNLIKELY(w->answering != 0) && LIKELY(port != PORT_NONE))
			answers_wait(w, s, port, before - left);
		/* It may have failed meanwhile, and be off the list. */
		if ((qp->flags & QPF_SENDING) == 0)
			continue;
		if (LIKELY(left != before))
			departs(w, port, qp);
		timer_update(w, qp);
		if (more)
			share_rotate(s, qp);
		else
			pipeline_send_sleep(w, qp);
		bytes += (before - left) * len;
		if ((pays && s->credit <= 0) ||
			UNLIKELY((beside || visits <= more_visits) && bytes >= turn_bytes(w)))
			break;
	}
	return left;
}

/** Several clients have work: each gets its quantum, or waits for the next turn. */
static __attribute__((noinline)) uint32_t
serve_several(struct worker *w, uint32_t left)
{
	/* Frames wait already: what is sent now would wait behind them. */
	uint32_t shares = w->crowded ? 1 : w->shares_n;

	w->brief -= w->brief != 0;
	while (shares-- != 0 && left != 0) {
		struct qp_share *s = pipeline_share_next(w);

		if (s == NULL)
			break;
		while (left != 0 && s->credit > 0 && s->senders_n != 0) {
			const uint32_t before = left;

			left = serve_share(w, s, left, true);
			if (left == before)
				break;
		}
	}
	return left;
}

uint32_t
stage_request(struct worker *w)
{
	uint32_t left = REQUEST_TURN;

	if (LIKELY(w->alone != NULL))
		left = serve_share(w, w->alone, left, false);
	else
		left = serve_several(w, left);
	pipeline_requests_seal(w);
	ASSERT(left <= REQUEST_TURN && w->unsealed_n == 0);
	if (UNLIKELY(w->lossy))
		w->lossy_made += REQUEST_TURN - left;
	return REQUEST_TURN - left;
}
