/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the responder owes. A positive ACK waits for the end of the burst and grows meanwhile. READ
 * and ATOMIC results stand in the QP's answer queue; while anything is there, whatever comes later
 * stands behind it, so that responses leave in PSN order (RESP-13, RESP-NAK-02, RESP-RNR-10).
 */
#include <errno.h>

#include "pipeline_priv.h"

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

/* ---- a QP's queue ---------------------------------------------------------------------------- */

static inline struct qp_answer *
answer_at(const struct qp *qp, uint32_t i)
{
	uint32_t at = (uint32_t)qp->answer_head + i;

	return &qp->answers[at < qp->answer_cap ? at : at - qp->answer_cap];
}

/**
 * May an entry be added that nobody promised room for? Every READ or ATOMIC that the responder can
 * still accept has its place, and so has the NAK that ends everything.
 */
static bool
has_room(const struct qp *qp)
{
	int32_t promised = (int32_t)qp->resp.max_dest_rd_atomic - qp->resp.unfinished;

	return qp->answer_count + (promised > 0 ? promised : 0) + 1 < qp->answer_cap;
}

static void
duplicate_dropped(struct worker *w, struct qp *qp)
{
	stats_inc(&w->stats, STAT_read_duplicates_dropped);
	stats_inc(qp->stats, STAT_read_duplicates_dropped);
}

static void
ack_flush(struct worker *w, struct qp *qp)
{
	if (!qp->ack_pending)
		return;
	qp->ack_pending = false;
	reply_ack(w, qp, qp->ack_syndrome, qp->ack_psn, qp->ack_msn);
}

/** A new last entry, zeroed; what was coalesced so far goes out before it. NULL: full. */
static struct qp_answer *
push(struct worker *w, struct qp *qp)
{
	struct qp_answer *a;

	ack_flush(w, qp);
	if (UNLIKELY(qp->answer_count >= qp->answer_cap))
		return NULL;
	a = answer_at(qp, qp->answer_count++);
	*a = (struct qp_answer){ 0 };
	circle_add(w, qp);
	return a;
}

/**
 * The same for a repeated request, in PSN order: its peer has gone back and takes nothing newer
 * before it, so newer answers that wait stay good where they follow it. It tells no later MSN than
 * they do.
 */
static struct qp_answer *
push_again(struct worker *w, struct qp *qp, const struct responder_verdict *v)
{
	struct qp_answer *a = push(w, qp);
	uint32_t i = qp->answer_count - 1u;
	uint32_t msn = v->reply_msn;

	if (a == NULL)
		return NULL;
	for (; i != 0 && psn_cmp(answer_at(qp, i - 1)->psn, v->first) > 0; i--) {
		msn = answer_at(qp, i - 1)->msn;
		*answer_at(qp, i) = *answer_at(qp, i - 1);
	}
	a = answer_at(qp, i);
	*a = (struct qp_answer){ .duplicate = true, .msn = msn };
	return a;
}

static void
pop(struct worker *w, struct qp *qp)
{
	struct qp_answer *a = answer_at(qp, 0);
	bool ack = a->ack_after;

	if (a->kind != ANSWER_ACK && !a->duplicate)
		responder_answered(&qp->resp);
	if (++qp->answer_head >= qp->answer_cap)
		qp->answer_head = 0;
	qp->answer_count--;
	if (ack)
		reply_ack(w, qp, a->ack_syndrome, a->ack_psn, a->ack_msn);
}

/* ---- what is owed ---------------------------------------------------------------------------- */

void
owe_ack(struct worker *w, struct qp *qp, const struct responder_verdict *v)
{
	if (UNLIKELY(qp->answer_count != 0)) {
		struct qp_answer *a = answer_at(qp, qp->answer_count - 1u);

		if (a->ack_after && psn_cmp(v->reply_psn, a->ack_psn) < 0)
			return;
		a->ack_after = true;
		a->ack_syndrome = v->syndrome;
		a->ack_psn = v->reply_psn;
		a->ack_msn = v->reply_msn;
		return;
	}
	if (!qp->ack_pending && (qp->flags & QPF_DIRTY) == 0) {
		if (UNLIKELY(w->dirty_n == PIPELINE_BURST)) { /* outside a burst */
			reply_ack(w, qp, v->syndrome, v->reply_psn, v->reply_msn);
			return;
		}
		qp->flags |= QPF_DIRTY;
		w->dirty[w->dirty_n++] = qp;
	}
	qp->ack_pending = true;
	qp->ack_syndrome = v->syndrome;
	qp->ack_psn = v->reply_psn;
	qp->ack_msn = v->reply_msn;
}

void
owe_nak(struct worker *w, struct qp *qp, const struct responder_verdict *v)
{
	struct qp_answer *a;

	ack_flush(w, qp);
	if (qp->answer_count == 0) {
		reply_ack(w, qp, v->syndrome, v->reply_psn, v->reply_msn);
		return;
	}
	/* A NAK that can be repeated gives way; the one that ends the connection has its place. */
	if ((v->act & ACT_ERR) == 0 && !has_room(qp))
		return;
	a = push(w, qp);
	if (a == NULL)
		return;
	a->kind = ANSWER_ACK;
	a->syndrome = v->syndrome;
	a->psn = a->first = a->last = v->reply_psn;
	a->msn = v->reply_msn;
}

/** Responses that a READ of `len` bytes takes. */
static uint32_t
read_psns(const struct qp *qp, uint32_t len)
{
	uint32_t shift = (uint32_t)__builtin_ctz(qp->resp.pmtu | 0x10000u);
	uint64_t n = ((uint64_t)len + qp->resp.pmtu - 1) >> shift;

	return n == 0 ? 1 : (uint32_t)n;
}

/**
 * A READ repeated while its answer is still under way: go back in that answer instead of giving a
 * second one. @return false if it is not part of any that waits.
 */
static bool
rejoin(struct qp *qp, const struct responder_verdict *v, psn_t last)
{
	for (uint32_t i = 0; i < qp->answer_count; i++) {
		struct qp_answer *a = answer_at(qp, i);
		int32_t ahead = psn_cmp(v->first, a->psn);

		if (a->kind != ANSWER_READ || !psn_between(v->first, a->first, a->last) ||
			!psn_between(last, a->first, a->last))
			continue;
		if (ahead > 0)
			return true; /* comes anyway */
		if (!psn_eq(last, a->last))
			continue;
		a->psn = v->first;
		a->va = v->va;
		a->len_left = v->len;
		a->restarted = true;
		return true;
	}
	return false;
}

void
owe_read(struct worker *w, struct qp *qp, const struct responder_verdict *v)
{
	psn_t last = psn_add(v->first, read_psns(qp, v->len) - 1);
	bool duplicate = (v->act & ACT_DUPLICATE) != 0;
	struct qp_answer *a;

	if (duplicate) {
		if (rejoin(qp, v, last))
			return;
		if (!has_room(qp)) {
			duplicate_dropped(w, qp);
			return;
		}
	}
	a = duplicate ? push_again(w, qp, v) : push(w, qp);
	if (UNLIKELY(a == NULL))
		return; /* cannot be: the responder accepts no more than have room */
	a->kind = ANSWER_READ;
	a->syndrome = v->syndrome;
	a->psn = a->first = v->first;
	a->last = last;
	if (!duplicate)
		a->msn = v->reply_msn;
	a->rkey = v->rkey;
	a->len_left = v->len;
	a->va = v->va;
}

void
owe_atomic(struct worker *w, struct qp *qp, const struct responder_verdict *v, uint64_t original)
{
	bool duplicate = (v->act & ACT_DUPLICATE) != 0;
	struct qp_answer *a;

	if (duplicate) {
		for (uint32_t i = 0; i < qp->answer_count; i++) {
			a = answer_at(qp, i);
			if (a->kind == ANSWER_ATOMIC && psn_eq(a->psn, v->first))
				return; /* comes anyway */
		}
		if (!has_room(qp)) {
			duplicate_dropped(w, qp);
			return;
		}
	}
	a = duplicate ? push_again(w, qp, v) : push(w, qp);
	if (UNLIKELY(a == NULL))
		return;
	a->kind = ANSWER_ATOMIC;
	a->syndrome = v->syndrome;
	a->psn = a->first = a->last = v->first;
	if (!duplicate)
		a->msn = v->reply_msn;
	a->va = original;
}

/* ---- answering ------------------------------------------------------------------------------- */

/**
 * RESP-NAK-03: the region went away under a READ. Its NAK takes the place of the response; what
 * was to come after it is no more.
 */
static void
read_lost(struct worker *w, struct qp *qp)
{
	struct qp_answer a = *answer_at(qp, 0);
	const struct context c = { .qp = qp };
	struct responder_verdict v;

	if (a.duplicate) { /* RESP-DUP-08: never a NAK */
		pop(w, qp);
		return;
	}
	qp->answer_count = 0;
	responder_read_failed(&qp->resp, a.psn, true, &v);
	if (qp_state_of(qp) != QPS_ERR)
		fail(w, &c, &v, SOURCE_READ_RESPONSE);
	else
		reply_ack(w, qp, v.syndrome, v.reply_psn, v.reply_msn);
}

/** One response of the READ at the head. @return packets made, 0: try again later. */
static uint32_t
answer_read(struct worker *w, struct qp *qp, struct qp_answer *a)
{
	uint32_t len = a->len_left < qp->resp.pmtu ? a->len_left : qp->resp.pmtu;
	uint8_t *host = NULL;
	int rc;

	if (len != 0 && UNLIKELY(mem_check(w->mem, a->rkey, qp->pd, a->va, len, MEM_REMOTE_READ,
					 &host) != MEM_OK)) {
		read_lost(w, qp);
		return 1;
	}
	rc = reply_read(w, qp, a, host, len);
	if (rc == -EAGAIN)
		return 0;
	if (rc != 0) { /* nothing of it can be sent: the peer will ask again */
		pop(w, qp);
		return 1;
	}
	a->restarted = false;
	a->len_left -= len;
	if (a->len_left == 0) {
		pop(w, qp);
		return 1;
	}
	a->va += len;
	a->psn = psn_add(a->psn, 1);
	return 1;
}

/** One packet from the head of the queue. @return packets made, 0: try again later. */
static uint32_t
answer_one(struct worker *w, struct qp *qp)
{
	struct qp_answer *a = answer_at(qp, 0);

	switch (a->kind) {
	case ANSWER_READ:
		return answer_read(w, qp, a);
	case ANSWER_ATOMIC:
		if (reply_atomic(w, qp, a) != 0)
			return 0;
		break;
	default:
		reply_ack(w, qp, a->syndrome, a->psn, a->msn);
		break;
	}
	pop(w, qp);
	return 1;
}

void
answers_run(struct worker *w)
{
	uint32_t visits = w->answering < ANSWER_VISITS ? w->answering : ANSWER_VISITS;
	uint32_t left = ANSWER_TURN;

	while (visits-- != 0 && left != 0) {
		struct qp *qp = w->answer_tail->next_answering;
		uint8_t port = w->port_of[qp->port];

		for (uint32_t i = 0; i < ANSWER_QP && left != 0 && qp->answer_count != 0; i++) {
			if (port != PORT_NONE && tx_is_congested(w, port))
				break;
			if (answer_one(w, qp) == 0)
				break;
			left--;
		}
		if (qp->answer_count == 0)
			circle_remove_after(w, w->answer_tail);
		else
			w->answer_tail = qp; /* the next one's turn */
	}
}

void
answers_drop(struct worker *w, struct qp *qp)
{
	qp->answer_count = 0;
	qp->answer_head = 0;
	qp->resp.unfinished = 0;
	qp->ack_pending = false;
	if ((qp->flags & QPF_ANSWERING) == 0)
		return;
	for (struct qp *at = w->answer_tail;; at = at->next_answering)
		if (at->next_answering == qp) {
			circle_remove_after(w, at);
			return;
		}
}
