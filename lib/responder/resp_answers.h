/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESP_ANSWERS_H
#define RESP_ANSWERS_H
/**
 * @file resp_answers.h  What a responder still owes: READs in progress, ATOMIC results, and the
 *                       ACKs and NAKs that stand behind them, so that all leave in PSN order.
 *
 * Owner:   the worker that owns the QP; nothing here is shared.
 * Memory:  the caller's array of slots; no allocation.
 * Depends: base, responder.
 * Spec:    IBTA vol. 1, 9.7.5.1; rules RESP-13, RESP-DUP-*, RESP-NAK-02, RESP-RNR-10.
 *
 * The caller sends: it makes a packet of the head, then says resp_answer_step() or
 * resp_answers_pop(). An ACK or NAK while nothing stands here is the caller's own.
 */
#include "compiler.h"
#include "invariant.h"
#include "responder.h"

enum resp_answer_kind { ANSWER_READ, ANSWER_ATOMIC, ANSWER_ACK };

/** A READ in progress, the result of an ATOMIC, or an ACK or NAK. */
struct resp_answer {
	uint8_t kind; /* enum resp_answer_kind */
	uint8_t syndrome;
	bool duplicate; /* does not count as unfinished */
	bool ack_after; /* a coalesced ACK follows this entry */
	uint8_t ack_syndrome;
	bool restarted; /* the next response opens the stream again: FIRST */
	psn_t psn;      /* next response */
	psn_t last;     /* last response */
	psn_t first;
	uint32_t msn;
	psn_t ack_psn;
	uint32_t ack_msn;
	uint32_t rkey;
	uint32_t pd;       /* READ: the caller's, of its key */
	uint32_t len_left; /* bytes */
	uint64_t va;       /* of the next response; ATOMIC: original value */
};

struct resp_answers {
	struct resp_answer *slot; /* `cap` of them */
	uint8_t head;
	uint8_t count;
	uint8_t cap;  /* at least responder.saved_n + 2 */
	uint8_t peer; /* the owner's: whose turn answers wait for */
};

enum resp_owed {
	OWED_NOW,     /* nothing stands here: the caller sends it */
	OWED_QUEUED,  /* stands in the queue */
	OWED_COMES,   /* what stands there answers this too */
	OWED_NO_ROOM, /* of what may be dropped only: the peer will ask again */
};

/** The i-th from the head, i < count; i == count is the place of the next one. */
static inline struct resp_answer *
resp_answer_at(const struct resp_answers *q, uint32_t i)
{
	uint32_t at = q->head + i;

	ASSERT(q->slot != NULL && q->head < q->cap && i < q->cap);
	return &q->slot[at < q->cap ? at : at - q->cap];
}

/** Forget all answers that are owed. */
static inline void
resp_answers_clear(struct resp_answers *q)
{
	q->head = 0;
	q->count = 0;
}

/** The verdict's ACK goes behind all that stands here. OWED_NOW or OWED_QUEUED. */
enum resp_owed resp_answers_ack(struct resp_answers *q, const struct responder_verdict *v);

/**
 * The verdict's NAK goes behind all that stands here, and is merged with nothing (RESP-NAK-02).
 * OWED_NO_ROOM: of a NAK that can be repeated; one with ACT_ERR has its place.
 */
enum resp_owed resp_answers_nak(
	struct resp_answers *q, const struct responder *r, const struct responder_verdict *v);

/** resp_answers_read() of a duplicate: in PSN order, or in the answer that is under way. */
enum resp_owed resp_answers_read_again(
	struct resp_answers *q, const struct responder *r, const struct responder_verdict *v);

/** resp_answers_atomic() of a duplicate. */
enum resp_owed resp_answers_atomic_again(struct resp_answers *q, const struct responder *r,
	const struct responder_verdict *v, uint64_t original);

/**
 * RESP-NAK-03: the region of the READ at the head went away. Its NAK takes the place of the
 * response, and what was to come after it is no more.
 * @param access false: the unit failed.
 * @param v the NAK.
 * @return false: a duplicate, never answered with a NAK (RESP-DUP-08): nothing was done, pop it.
 */
bool resp_answers_lost(
	struct resp_answers *q, struct responder *r, bool access, struct responder_verdict *v);

/** Responses that a READ of `len` bytes takes. */
static inline uint32_t
resp_answer_psns(const struct responder *r, uint32_t len)
{
	uint32_t shift = (uint32_t)__builtin_ctz(r->pmtu | 0x10000u);
	uint64_t n = ((uint64_t)len + r->pmtu - 1) >> shift;

	return n == 0 ? 1 : (uint32_t)n;
}

/** A new last entry, zeroed. NULL: full. */
static inline struct resp_answer *
resp_answers_push(struct resp_answers *q)
{
	struct resp_answer *a;

	if (UNLIKELY(q->count >= q->cap))
		return NULL;
	ASSERT(q->count < q->cap);
	a = resp_answer_at(q, q->count++);
	*a = (struct resp_answer){ 0 };
	return a;
}

/** Fill in the READ of ACT_READ; `duplicate` and `msn` stay. */
static inline void
resp_answer_fill_read(
	struct resp_answer *a, const struct responder *r, const struct responder_verdict *v)
{
	ASSERT((v->act & ACT_READ) != 0 && r->pmtu != 0);
	a->kind = ANSWER_READ;
	a->syndrome = v->syndrome;
	a->psn = a->first = v->first;
	a->last = psn_add(v->first, resp_answer_psns(r, v->len) - 1);
	a->rkey = v->rkey;
	a->pd = v->pd;
	a->len_left = v->len;
	a->va = v->va;
}

/** The same for ACT_ATOMIC, ACT_REPLAY. @param original the value before the operation. */
static inline void
resp_answer_fill_atomic(struct resp_answer *a, const struct responder_verdict *v, uint64_t original)
{
	ASSERT((v->act & (ACT_ATOMIC | ACT_REPLAY)) != 0);
	a->kind = ANSWER_ATOMIC;
	a->syndrome = v->syndrome;
	a->psn = a->first = a->last = v->first;
	a->va = original;
}

/**
 * ACT_READ. OWED_NO_ROOM can be that of a duplicate only: the responder accepts no more requests
 * than have room.
 */
static inline enum resp_owed
resp_answers_read(
	struct resp_answers *q, const struct responder *r, const struct responder_verdict *v)
{
	struct resp_answer *a;

	if (UNLIKELY((v->act & ACT_DUPLICATE) != 0))
		return resp_answers_read_again(q, r, v);
	a = resp_answers_push(q);
	if (UNLIKELY(a == NULL))
		return OWED_NO_ROOM;
	resp_answer_fill_read(a, r, v);
	a->msn = v->reply_msn;
	return OWED_QUEUED;
}

/** ACT_ATOMIC, ACT_REPLAY: the same. */
static inline enum resp_owed
resp_answers_atomic(struct resp_answers *q, const struct responder *r,
	const struct responder_verdict *v, uint64_t original)
{
	struct resp_answer *a;

	if (UNLIKELY((v->act & ACT_DUPLICATE) != 0))
		return resp_answers_atomic_again(q, r, v, original);
	a = resp_answers_push(q);
	if (UNLIKELY(a == NULL))
		return OWED_NO_ROOM;
	resp_answer_fill_atomic(a, v, original);
	a->msn = v->reply_msn;
	return OWED_QUEUED;
}

/**
 * The head has been sent in full, or is given up.
 * @return it, as long as nothing is added; with `ack_after`, that ACK is to be sent now.
 */
static inline const struct resp_answer *
resp_answers_pop(struct resp_answers *q, struct responder *r)
{
	const struct resp_answer *a = resp_answer_at(q, 0);

	ASSERT(q->count != 0 && q->count <= q->cap && a->kind <= ANSWER_ACK);
	if (a->kind != ANSWER_ACK && !a->duplicate)
		responder_answered(r);
	if (++q->head >= q->cap)
		q->head = 0;
	q->count--;
	return a;
}

/** READ: bytes of its next response. */
static inline uint32_t
resp_answer_len(const struct resp_answer *a, const struct responder *r)
{
	return a->len_left < r->pmtu ? a->len_left : r->pmtu;
}

/** READ: opcode of its next response, by its place in the stream; as RC has it. */
static inline uint8_t
resp_answer_opcode(const struct resp_answer *a, bool is_last)
{
	if (a->restarted || psn_eq(a->psn, a->first))
		return is_last ? OP_RC_READ_RESPONSE_ONLY : OP_RC_READ_RESPONSE_FIRST;
	return is_last ? OP_RC_READ_RESPONSE_LAST : OP_RC_READ_RESPONSE_MIDDLE;
}

/** READ: a response of `len` bytes was sent. @return false: it was the last one, pop it. */
static inline bool
resp_answer_step(struct resp_answer *a, uint32_t len)
{
	ASSERT(a->kind == ANSWER_READ && len <= a->len_left);
	ASSERT(psn_between(a->psn, a->first, a->last));
	ASSERT((len == a->len_left) == psn_eq(a->psn, a->last));
	a->restarted = false;
	a->len_left -= len;
	if (a->len_left == 0)
		return false;
	a->va += len;
	a->psn = psn_add(a->psn, 1);
	return true;
}

#endif
