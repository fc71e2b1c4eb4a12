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
#include "reply.h"
#include "sending.h"
#include "stage.h"
#include "tx.h"
#include "verdict.h"

/* ---- the worker's circle of QPs with answers ------------------------------------------------- */

static void
circle_add(struct worker *w, struct qp *qp)
{
	if ((qp->flags & QPF_ANSWERING) != 0)
		return;
	qp->flags |= QPF_ANSWERING;
	if (w->answer_tail == NULL) {
		qp->next_answering = qp;
	} else {
		qp->next_answering = w->answer_tail->next_answering;
		w->answer_tail->next_answering = qp;
	}
	w->answer_tail = qp;
	w->answering++;
}

/** Take out the successor of `before`. */
static void
circle_remove_after(struct worker *w, struct qp *before)
{
	struct qp *qp = before->next_answering;

	ASSERT((qp->flags & QPF_ANSWERING) != 0 && w->answering != 0);
	ASSERT((w->answering == 1) == (qp == before));
	qp->flags &= ~(uint32_t)QPF_ANSWERING;
	if (qp == before) {
		w->answer_tail = NULL;
	} else {
		before->next_answering = qp->next_answering;
		if (w->answer_tail == qp)
			w->answer_tail = before;
	}
	qp->next_answering = NULL;
	w->answering--;
}

/* ---- what is owed ---------------------------------------------------------------------------- */

static void
ack_flush(struct worker *w, struct qp *qp)
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
		ack_flush(w, qp);
		circle_add(w, qp);
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

	ack_flush(w, qp);
	owed = resp_answers_nak(&qp->answers, &qp->resp, v);
	if (owed == OWED_NOW && LIKELY(!traced(w, qp)))
		nak_owe(w, qp, ack_tail(v->syndrome, v->reply_psn.v, v->reply_msn));
	else if (owed == OWED_NOW)
		pipeline_reply_ack(w, qp, v->syndrome, v->reply_psn, v->reply_msn);
	else if (owed == OWED_QUEUED)
		circle_add(w, qp);
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
static uint32_t
answer_read(struct worker *w, struct qp *qp, struct resp_answer *a)
{
	uint32_t len = resp_answer_len(a, &qp->resp);
	const struct mem_region *region;
	uint8_t *host = NULL;
	int rc;

	if (LIKELY(len != 0)) {
		host = mem_reach(w->mem, a->rkey, qp->pd, a->va, len, ACCESS_REMOTE_READ, &region);
		if (UNLIKELY(host == NULL) &&
			UNLIKELY(mem_check(w->mem, a->rkey, qp->pd, a->va, len, ACCESS_REMOTE_READ,
					 &host) != MEM_OK)) {
			read_lost(w, qp);
			return 1;
		}
	}
	rc = pipeline_reply_read(w, qp, a, host, len);
	if (rc == -EAGAIN)
		return 0;
	/* -EMSGSIZE: nothing of it can be sent, the peer will ask again. */
	if (rc != 0 || !resp_answer_step(a, len))
		pop(w, qp);
	return 1;
}

/** One packet from the head of the queue. @return packets made, 0: try again later. */
static uint32_t
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

void
stage_answers(struct worker *w)
{
	uint32_t visits = w->answering < ANSWER_VISITS ? w->answering : ANSWER_VISITS;
	uint32_t left = ANSWER_TURN;

	while (visits-- != 0 && left != 0) {
		struct qp *qp = w->answer_tail->next_answering;
		uint8_t port = w->port_of[qp->port];

		ASSERT(qp->worker == w->index && (qp->flags & QPF_ANSWERING) != 0);
		for (uint32_t i = 0; i < ANSWER_QP && left != 0 && qp->answers.count != 0; i++) {
			if (port != PORT_NONE && tx_is_congested(w, port))
				break;
			if (answer_one(w, qp) == 0)
				break;
			left--;
		}
		if (qp->answers.count == 0)
			circle_remove_after(w, w->answer_tail);
		else
			w->answer_tail = qp; /* the next one's turn */
	}
	if (w->unsealed_n != 0)
		pipeline_requests_seal(w);
}

void
pipeline_answers_leave(struct worker *w, struct qp *qp)
{
	if ((qp->flags & QPF_ANSWERING) == 0)
		return;
	for (struct qp *at = w->answer_tail;; at = at->next_answering)
		if (at->next_answering == qp) {
			circle_remove_after(w, at);
			return;
		}
}

void
pipeline_answers_join(struct worker *w, struct qp *qp)
{
	if (qp->answers.count != 0)
		circle_add(w, qp);
}

void
pipeline_answers_drop(struct worker *w, struct qp *qp)
{
	resp_answers_clear(&qp->answers);
	qp->resp.unfinished = 0;
	ack_take(w, qp);
	pipeline_answers_leave(w, qp);
}
