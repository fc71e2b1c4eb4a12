/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer queue off its straight way: ACKs and NAKs, repeated requests, lost regions. */
#include "resp_answers.h"

/**
 * May an entry be added that nobody promised room for? Every READ or ATOMIC that the responder can
 * still accept has its place, also once max_dest_rd_atomic is the greatest that it may become, and
 * so has the NAK that ends everything.
 */
static bool
has_room(const struct resp_answers *q, const struct responder *r)
{
	int32_t promised = (int32_t)r->saved_n - r->unfinished;

	return q->count + (promised > 0 ? promised : 0) + 1 < q->cap;
}

enum resp_owed
resp_answers_ack(struct resp_answers *q, const struct responder_verdict *v)
{
	struct resp_answer *a;

	if (q->count == 0)
		return OWED_NOW;
	a = resp_answer_at(q, q->count - 1u);
	if (a->ack_after && psn_cmp(v->reply_psn, a->ack_psn) < 0)
		return OWED_QUEUED;
	a->ack_after = true;
	a->ack_syndrome = v->syndrome;
	a->ack_psn = v->reply_psn;
	a->ack_msn = v->reply_msn;
	return OWED_QUEUED;
}

enum resp_owed
resp_answers_nak(
	struct resp_answers *q, const struct responder *r, const struct responder_verdict *v)
{
	struct resp_answer *a;

	if (q->count == 0)
		return OWED_NOW;
	/* A NAK that can be repeated gives way; the one that ends the connection has its place. */
	if ((v->act & ACT_ERR) == 0 && !has_room(q, r))
		return OWED_NO_ROOM;
	a = resp_answers_push(q);
	if (a == NULL)
		return OWED_NO_ROOM;
	ASSERT((v->act & ACT_NAK) != 0);
	a->kind = ANSWER_ACK;
	a->syndrome = v->syndrome;
	a->psn = a->first = a->last = v->reply_psn;
	a->msn = v->reply_msn;
	return OWED_QUEUED;
}

/**
 * A new entry for a repeated request, in PSN order: its peer has gone back and takes nothing newer
 * before it, so newer answers that wait stay good where they follow it. It tells no later MSN than
 * they do. NULL: no room.
 */
static struct resp_answer *
insert(struct resp_answers *q, const struct responder *r, const struct responder_verdict *v)
{
	struct resp_answer *a;
	uint32_t msn = v->reply_msn;
	uint32_t i;

	if (!has_room(q, r) || resp_answers_push(q) == NULL)
		return NULL;
	for (i = q->count - 1u; i != 0; i--) {
		const struct resp_answer *before = resp_answer_at(q, i - 1);

		if (psn_cmp(before->psn, v->first) <= 0)
			break;
		msn = before->msn;
		*resp_answer_at(q, i) = *before;
	}
	a = resp_answer_at(q, i);
	*a = (struct resp_answer){ .duplicate = true, .msn = msn };
	return a;
}

/**
 * A READ repeated while its answer is still under way: go back in that answer instead of giving a
 * second one. @return false if it is not part of any that waits.
 */
static bool
rejoin(struct resp_answers *q, const struct responder_verdict *v, psn_t last)
{
	for (uint32_t i = 0; i < q->count; i++) {
		struct resp_answer *a = resp_answer_at(q, i);
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

enum resp_owed
resp_answers_read_again(
	struct resp_answers *q, const struct responder *r, const struct responder_verdict *v)
{
	struct resp_answer *a;

	if (rejoin(q, v, psn_add(v->first, resp_answer_psns(r, v->len) - 1)))
		return OWED_COMES;
	a = insert(q, r, v);
	if (a == NULL)
		return OWED_NO_ROOM;
	resp_answer_fill_read(a, r, v);
	return OWED_QUEUED;
}

enum resp_owed
resp_answers_atomic_again(struct resp_answers *q, const struct responder *r,
	const struct responder_verdict *v, uint64_t original)
{
	struct resp_answer *a;

	for (uint32_t i = 0; i < q->count; i++) {
		a = resp_answer_at(q, i);
		if (a->kind == ANSWER_ATOMIC && psn_eq(a->psn, v->first))
			return OWED_COMES;
	}
	a = insert(q, r, v);
	if (a == NULL)
		return OWED_NO_ROOM;
	resp_answer_fill_atomic(a, v, original);
	return OWED_QUEUED;
}

bool
resp_answers_lost(
	struct resp_answers *q, struct responder *r, bool access, struct responder_verdict *v)
{
	const struct resp_answer *a = resp_answer_at(q, 0);

	ASSERT(q->count != 0 && a->kind == ANSWER_READ);
	if (a->duplicate)
		return false;
	q->count = 0;
	responder_read_failed(r, a->psn, access, v);
	return true;
}
