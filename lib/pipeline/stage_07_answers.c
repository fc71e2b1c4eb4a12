/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 7: send what the responder owes. A positive ACK waits for the end of the burst and grows
 * meanwhile. READ and ATOMIC results stand in the QP's answer queue (resp_answers.h), and whatever
 * comes later stands behind them (RESP-13, RESP-NAK-02, RESP-RNR-10).
 */
#include <errno.h>

#include "acks.h"
#include "answers.h"
#include "count.h"
#include "failure.h"
#include "mem_reach.h"
#include "pace.h"
#include "qp_cc.h"
#include "reply.h"
#include "sending.h"
#include "shares.h"
#include "stage.h"
#include "tx.h"
#include "verdict.h"

/* ---- peers, and QPs that owe them answers ---------------------------------------------------- */

#define HASH_FACTOR 0x9e3779b1u /* the golden ratio's bits */
#define LINGER      64          /* turns without answers (a peer leaves), or other work */
_Static_assert((ANSWER_PEERS & (ANSWER_PEERS - 1)) == 0 && ANSWER_PEERS <= 256, "answers.peer");

/** The place of a QP's peer, for its user: what is asked of another user is another's. */
static uint8_t
place_of(const struct qp *qp)
{
	const struct wire_template *t = &qp->tmpl;
	const uint8_t *ip = t->bytes + t->l3_off + (t->ipv6 != 0 ? 24 : 16);
	uint32_t hash = qp->whose * HASH_FACTOR;

	for (uint32_t at = 4; UNLIKELY(t->ipv6 != 0) && at < 16; at += 4)
		hash = (hash ^ be32_load(ip + at)) * HASH_FACTOR;
	return (uint8_t)((hash ^ be32_load(ip)) * HASH_FACTOR >> 24) & (ANSWER_PEERS - 1);
}

/** What requests have cost is counted from here on. */
static inline void
cost_anew(struct worker *w)
{
	w->served = w->made = 0;
	w->round++;
}

static void
unlist(struct worker *w, struct answer_peer *p)
{
	p->listed = false;
	TAILQ_REMOVE(&w->peers, p, turn);
	w->peers_n--;
}

/** No answers have been owed for SHARES_PAUSE: who was here is not. */
static __attribute__((noinline)) void
forget(struct worker *w)
{
	struct answer_peer *p;

	while ((p = TAILQ_FIRST(&w->peers)) != NULL)
		unlist(w, p);
	w->mixed = 0;
}

static void
line_add(struct worker *w, struct qp *qp)
{
	struct answer_peer *p;

	if ((qp->flags & QPF_ANSWERING) != 0)
		return;
	qp->flags |= QPF_ANSWERING;
	qp->answers.peer = place_of(qp);
	p = &w->peer[qp->answers.peer];
	TAILQ_INSERT_TAIL(&p->qps, qp, answering);
	if (w->answering++ == 0) {
		w->line++;
		cost_anew(w);
		if (UNLIKELY(w->now - w->answered >= SHARES_PAUSE))
			forget(w);
	}
	if (p->line != w->line) { /* nobody has waited since its debt was made */
		p->line = w->line;
		p->credit = 0;
	}
	if (UNLIKELY(!p->listed)) {
		p->listed = true;
		p->idle = 0;
		p->last = NULL;
		TAILQ_INSERT_TAIL(&w->peers, p, turn);
		w->peers_n++;
	}
}

static void
line_remove(struct worker *w, struct qp *qp)
{
	struct answer_peer *p = &w->peer[qp->answers.peer];

	ASSERT((qp->flags & QPF_ANSWERING) != 0);
	qp->flags &= ~(uint32_t)QPF_ANSWERING;
	if (UNLIKELY((qp->flags & QPF_CC_RATE) != 0) && qp_cc(qp)->answers_wait) {
		qp_cc(qp)->answers_wait = false; /* it is on no list */
		return;
	}
	ASSERT(w->answering != 0);
	TAILQ_REMOVE(&p->qps, qp, answering);
	if (--w->answering == 0)
		w->answered = w->now;
}

/** Until pipeline_answers_wake(): off the list. What comes meanwhile stands behind its answers. */
static void
line_wait(struct worker *w, struct qp *qp)
{
	line_remove(w, qp);
	qp->flags |= QPF_ANSWERING;
	qp_cc(qp)->answers_wait = true;
}

/** Behind the others, with a new quantum. @return false: it has no answers, or a debt. */
static bool
begin_turn(struct worker *w, struct answer_peer *p)
{
	/* A turn that is long for another one is long for it. */
	const int64_t quantum = RTE_MAX(RTE_MAX(w->served, w->made), (int64_t)COST_TURN);

	TAILQ_REMOVE(&w->peers, p, turn);
	TAILQ_INSERT_TAIL(&w->peers, p, turn);
	p->credit = RTE_MIN(p->credit + quantum, quantum);
	if (!TAILQ_EMPTY(&p->qps)) {
		p->idle = 0;
		return p->credit > 0;
	}
	if (p->credit > 0 && ++p->idle == LINGER)
		unlist(w, p);
	return false;
}

/* ---- what is owed ---------------------------------------------------------------------------- */

void
pipeline_ack_flush(struct worker *w, struct qp *qp)
{
	uint64_t t = __builtin_bswap64(ack_take(w, qp));

	if (t != 0)
		pipeline_reply_ack(
			w, qp, (uint8_t)(t >> 24), psn((uint32_t)(t >> 32)), t & PSN_MASK);
}

/** Something new may stand in the queue: what was coalesced so far goes out before it. */
static inline void
queued(struct worker *w, struct qp *qp, enum resp_owed owed)
{
	if (LIKELY(owed == OWED_QUEUED)) {
		pipeline_ack_flush(w, qp);
		line_add(w, qp);
	} else if (owed == OWED_NO_ROOM) {
		stats_inc(&w->stats, STAT_read_duplicates_dropped);
		qp_count(w, qp, STAT_read_duplicates_dropped, 1);
	}
}

void
pipeline_owe_ack(struct worker *w, struct qp *qp, const struct responder_verdict *v)
{
	ASSERT(qp->worker == w->index);
	if (UNLIKELY(qp->answers.count != 0)) {
		resp_answers_ack(&qp->answers, v);
		return;
	}
	if (UNLIKELY(!ack_owe(w, qp, ack_tail(v->syndrome, v->reply_psn.v, v->reply_msn))))
		pipeline_reply_ack(
			w, qp, v->syndrome, v->reply_psn, v->reply_msn); /* outside a burst */
}

void
pipeline_owe_nak(struct worker *w, struct qp *qp, const struct responder_verdict *v)
{
	enum resp_owed owed;

	pipeline_ack_flush(w, qp);
	owed = resp_answers_nak(&qp->answers, &qp->resp, v);
	if (owed == OWED_NOW && LIKELY(!traced(w, qp)))
		nak_owe(w, qp, ack_tail(v->syndrome, v->reply_psn.v, v->reply_msn));
	else if (owed == OWED_NOW)
		pipeline_reply_ack(w, qp, v->syndrome, v->reply_psn, v->reply_msn);
	else if (owed == OWED_QUEUED)
		line_add(w, qp);
}

void
pipeline_owe_read(struct worker *w, struct qp *qp, const struct responder_verdict *v)
{
	queued(w, qp, resp_answers_read(&qp->answers, &qp->resp, v));
}

void
pipeline_owe_atomic(
	struct worker *w, struct qp *qp, const struct responder_verdict *v, uint64_t original)
{
	queued(w, qp, resp_answers_atomic(&qp->answers, &qp->resp, v, original));
}

/* ---- answering ------------------------------------------------------------------------------- */

static void
pop(struct worker *w, struct qp *qp)
{
	const struct resp_answer *a = resp_answers_pop(&qp->answers, &qp->resp);

	if (a->ack_after)
		pipeline_reply_ack(w, qp, a->ack_syndrome, a->ack_psn, a->ack_msn);
}

static void
read_failed(struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	pipeline_failure_of_request(w, c, v);
	pipeline_fail(w, c, v, SOURCE_READ_RESPONSE);
}

/** RESP-NAK-03: the region went away under a READ. */
static void
read_lost(struct worker *w, struct qp *qp)
{
	const struct resp_answer *a = resp_answer_at(&qp->answers, 0);
	const struct context c = {
		.qp = qp, .va = a->va, .len = resp_answer_len(a, &qp->resp), .key = a->rkey
	};
	struct responder_verdict v;

	if (!resp_answers_lost(&qp->answers, &qp->resp, true, &v))
		pop(w, qp);
	else if (qp_state_of(qp) == QPS_ERR)
		pipeline_reply_ack(w, qp, v.syndrome, v.reply_psn, v.reply_msn);
	else
		read_failed(w, &c, &v);
}

/** One response of the READ at the head. @return packets made, 0: try again later. */
static ALWAYS_INLINE uint32_t
answer_read(struct worker *w, struct qp *qp, struct resp_answer *a)
{
	uint32_t len = resp_answer_len(a, &qp->resp);
	const struct mem_region *region;
	uint8_t *host = NULL;
	int rc;

	if (LIKELY(len != 0)) {
		const uint64_t user = mem_user(a->pd, qp->qpn);

		host = mem_reach_remote(
			w->mem, a->rkey, user, a->va, len, ACCESS_REMOTE_READ, &region);
		if (UNLIKELY(host == NULL) &&
			UNLIKELY(mem_check(w->mem, a->rkey, user, a->va, len, ACCESS_REMOTE_READ,
					 &host) != MEM_OK)) {
			read_lost(w, qp);
			return 1;
		}
	}
	rc = pipeline_reply_read(w, qp, a, host, len);
	if (rc == -EAGAIN)
		return 0;
	if (UNLIKELY((qp->flags & QPF_PACED) != 0) && rc == 0)
		pipeline_pace_sent_one(w, qp);
	/* -EMSGSIZE: nothing of it can be sent, the peer will ask again. */
	if (rc != 0 || !resp_answer_step(a, len))
		pop(w, qp);
	return 1;
}

/** One packet from the head of the queue. @return packets made, 0: try again later. */
static ALWAYS_INLINE uint32_t
answer_one(struct worker *w, struct qp *qp)
{
	struct resp_answer *a = resp_answer_at(&qp->answers, 0);

	switch (a->kind) {
	case ANSWER_READ:
		return answer_read(w, qp, a);
	case ANSWER_ATOMIC:
		if (pipeline_reply_atomic(w, qp, a) != 0)
			return 0;
		break;
	default:
		pipeline_reply_ack(w, qp, a->syndrome, a->psn, a->msn);
		break;
	}
	pop(w, qp);
	return 1;
}

/** CC-22, CC-23: READ responses are paced, what else is owed is not. */
static __attribute__((noinline)) bool
is_its_turn(struct worker *w, struct qp *qp)
{
	const struct resp_answer *a = resp_answer_at(&qp->answers, 0);

	return a->kind != ANSWER_READ || pipeline_pace_response(w, qp);
}

/** What the next packet costs, as shares.h has it, with the request that asked for it. */
static int64_t
cost_of(const struct answer_peer *p, const struct qp *qp)
{
	const struct resp_answer *a = resp_answer_at(&qp->answers, 0);
	const int64_t cost = COST_PACKET + (p->last != qp ? COST_SWITCH : 0);

	if (a->kind == ANSWER_READ)
		return cost + COST_FULL + cost_bytes(resp_answer_len(a, &qp->resp));
	return a->kind == ANSWER_ATOMIC ? cost + COST_ATOMIC : cost;
}

/** Of a turn. Short ones are many: a visit leaves none, and stage 6 answers the next at once. */
static ALWAYS_INLINE uint32_t
weight_of(const struct qp *qp)
{
	const struct resp_answer *a = resp_answer_at(&qp->answers, 0);
	const bool is_read = a->kind == ANSWER_READ;

	return is_read && resp_answer_len(a, &qp->resp) > ANSWER_SHORT ? ANSWER_LONG : 1;
}

/**
 * Packets of up to so much weight for a peer, its QPs in turn. @return what is left of it.
 * @param pays others wait for their turn: no more than it has credit for.
 */
static ALWAYS_INLINE uint32_t
serve_peer(struct worker *w, struct answer_peer *p, uint32_t left, const bool pays)
{
	uint32_t visits = RTE_MIN(w->answering, (uint32_t)ANSWER_VISITS);

	while (visits-- != 0 && left != 0 && !TAILQ_EMPTY(&p->qps) && (!pays || p->credit > 0)) {
		struct qp *qp = TAILQ_FIRST(&p->qps);
		uint32_t some = RTE_MIN(left, (uint32_t)ANSWER_QP);
		uint8_t port = w->port_of[qp->out];

		ASSERT(qp->worker == w->index && (qp->flags & QPF_ANSWERING) != 0);
		while (some != 0 && qp->answers.count != 0) {
			const int64_t cost = pays ? cost_of(p, qp) : 0;
			const uint32_t weight = RTE_MIN(some, weight_of(qp));

			if (port != PORT_NONE && tx_is_congested(w, port))
				break;
			if (UNLIKELY((qp->flags & QPF_PACED) != 0) && !is_its_turn(w, qp)) {
				line_wait(w, qp);
				break;
			}
			if (answer_one(w, qp) == 0)
				break;
			left -= weight;
			some -= weight;
			p->credit -= cost;
			p->last = qp;
			if (pays && p->credit <= 0)
				break;
		}
		if (TAILQ_FIRST(&p->qps) != qp)
			continue; /* it has failed, or waits for its turn */
		if (qp->answers.count == 0) {
			line_remove(w, qp);
		} else { /* the next one's turn */
			TAILQ_REMOVE(&p->qps, qp, answering);
			TAILQ_INSERT_TAIL(&p->qps, qp, answering);
		}
	}
	return left;
}

/** Each peer that waits for answers gets a quantum, or waits for the next turn. */
static __attribute__((noinline)) void
serve_several(struct worker *w)
{
	/* As in stage 10: what is sent now would wait behind what waits already. */
	uint32_t peers = w->peers_n, turns = w->crowded ? 1 : peers, left = ANSWER_TURN;

	while (peers-- != 0 && turns != 0 && left != 0) {
		struct answer_peer *p = TAILQ_FIRST(&w->peers);

		if (!begin_turn(w, p))
			continue;
		turns--;
		for (uint32_t before = 0; left != before && left != 0 && !TAILQ_EMPTY(&p->qps);) {
			before = left;
			left = serve_peer(w, p, left, true);
			if (p->credit <= 0)
				break;
		}
	}
}

/** So much of this turn's work was for the peer of a QP, whose requests do not wait. */
static void
serve_cost(struct worker *w, const struct qp *qp, int64_t cost)
{
	struct answer_peer *p = &w->peer[place_of(qp)];

	w->served = RTE_MAX(w->served, round_cost_add(w, &p->served, cost));
	w->mixed = LINGER + 1;
}

/**
 * Does the response tell of somebody who waits for its turn? A part of a long READ of ours does
 * not, for such parts come all the time, nor does what a loss leads to: a NAK, or the answer to a
 * READ of the missing part.
 */
static inline bool
tells_of_waiting(const struct burst *b, uint32_t i)
{
	const struct wire_pkt *p = &b->pkt[i];

	if (op_has(p->op, OPF_ACK))
		return (wire_aeth(p).syndrome & AETH_KIND_MASK) == AETH_ACK;
	return !op_has(p->op, OPF_FIRST | OPF_MIDDLE | OPF_LAST) && (b->parts & BIT32(i)) == 0;
}

/**
 * Who sends what is answered at once, or waits for the answer to a request of ours, waits for its
 * turn no less than who asks for answers: while such frames come, and for so many turns after them,
 * a peer has no more than its quantum.
 */
void
pipeline_answers_beside(struct worker *w, const struct burst *b)
{
	int64_t cost = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const opflags_t op = b->pkt[i].op;

		if (op_has(op, OPF_RESPONSE)) {
			if (tells_of_waiting(b, i))
				w->mixed = LINGER + 1;
		} else if (!op_has(op, OPF_READ | OPF_ATOMIC)) {
			cost += COST_PACKET + cost_bytes(b->pkt[i].frame_len);
		}
		if (cost != 0 && (i + 1 == b->n || b->qp[i + 1] != b->qp[i])) {
			serve_cost(w, b->qp[i], cost);
			cost = 0;
		}
	}
}

void
pipeline_answers_one_beside(struct worker *w, const struct qp *qp, uint32_t len)
{
	serve_cost(w, qp, COST_PACKET + cost_bytes(len));
}

void
stage_answers(struct worker *w)
{
	w->mixed -= w->mixed != 0;
	if (LIKELY(w->mixed == 0) && LIKELY(w->peers_n == 1))
		serve_peer(w, TAILQ_FIRST(&w->peers), ANSWER_TURN, false);
	else
		serve_several(w);
	cost_anew(w);
	if (w->unsealed_n != 0)
		pipeline_requests_seal(w);
}

void
pipeline_answers_leave(struct worker *w, struct qp *qp)
{
	struct answer_peer *p = &w->peer[qp->answers.peer];

	if (p->last == qp) /* the next QP at this address is another one */
		p->last = NULL;
	if ((qp->flags & QPF_ANSWERING) != 0)
		line_remove(w, qp);
}

void
pipeline_answers_join(struct worker *w, struct qp *qp)
{
	if (qp->answers.count != 0)
		line_add(w, qp);
}

void
pipeline_answers_wake(struct worker *w, struct qp *qp)
{
	line_remove(w, qp);
	pipeline_answers_join(w, qp);
}

void
pipeline_answers_drop(struct worker *w, struct qp *qp)
{
	resp_answers_clear(&qp->answers);
	qp->resp.unfinished = 0;
	ack_take(w, qp);
	pipeline_answers_leave(w, qp);
}
