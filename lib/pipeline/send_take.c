/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of a send ring become the worker's own work requests, which are judged after they were
 * copied, and the payloads of those that come next are looked up and fetched.
 */
#include <string.h>

#include "mem_reach.h"
#include "pipeline_priv.h"
#include "requester_plain.h"

#define MESSAGE_MAX UINT32_C(0x80000000) /* bytes (REQ-18) */
#define ATOMIC_LEN  8

static inline bool
is_known(uint8_t opcode)
{
	return opcode <= WR_ATOMIC_FETCH_AND_ADD || opcode == WR_SEND_WITH_INV;
}

static inline bool
is_atomic(uint8_t opcode)
{
	return opcode == WR_ATOMIC_CMP_AND_SWP || opcode == WR_ATOMIC_FETCH_AND_ADD;
}

/** What of an entry says how the rest is to be read: each word is read once. */
struct shape {
	uint32_t num_sge;
	uint32_t inline_len;
	uint8_t opcode;
	uint8_t flags;
};

/** One entry of a list in the ring to its private place. @return its length. */
static ALWAYS_INLINE uint32_t
copy_sge(struct ring_sge *to, const struct ring_sge *from)
{
	uint64_t addr, rest;

	memcpy(&addr, &from->addr, sizeof(addr));
	memcpy(&rest, &from->length, sizeof(rest));
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(&to->addr, &addr, sizeof(addr));
	memcpy(&to->length, &rest, sizeof(rest));
	return (uint32_t)rest; /* the hosts are little-endian */
}

/**
 * What is wrong with the copy (REQ-CLS-B-05, REQ-18); keys are judged when memory is used.
 * @param sge where its entries are copied from the ring.
 */
static ALWAYS_INLINE uint8_t
judge(const struct qp_sendq *q, struct shape c, const struct ring_sge *from, struct ring_sge *sge,
	struct requester_wr *wr)
{
	uint64_t bytes;

	if (UNLIKELY(!is_known(c.opcode)))
		return WR_FAULT_MALFORMED;
	if ((c.flags & WR_INLINE) != 0) {
		if (c.opcode == WR_RDMA_READ || is_atomic(c.opcode) || c.inline_len > q->max_inline)
			return WR_FAULT_MALFORMED;
		wr->len = c.inline_len;
		return WR_FAULT_NONE;
	}
	if (UNLIKELY(c.num_sge > q->max_sge))
		return WR_FAULT_MALFORMED;
	if (LIKELY(c.num_sge == 1)) {
		bytes = copy_sge(sge, from);
	} else {
		memcpy(sge, from, c.num_sge * sizeof(*sge));
		atomic_signal_fence(memory_order_seq_cst);
		bytes = mem_sge_bytes(sge, c.num_sge);
	}
	if (UNLIKELY(bytes > MESSAGE_MAX))
		return WR_FAULT_LENGTH;
	wr->num_sge = (uint8_t)c.num_sge;
	wr->len = (uint32_t)bytes;
	if (UNLIKELY(is_atomic(c.opcode))) {
		if (bytes < ATOMIC_LEN)
			return WR_FAULT_LENGTH;
		wr->len = ATOMIC_LEN;
	}
	return WR_FAULT_NONE;
}

/* What an entry and its work request begin with is the same. */
#define SAME_BYTES offsetof(struct requester_wr, len)
_Static_assert(
	offsetof(struct requester_wr, remote_addr) == offsetof(struct ring_send_wqe, remote_addr) &&
		offsetof(struct requester_wr, compare_add) ==
			offsetof(struct ring_send_wqe, compare_add) &&
		offsetof(struct requester_wr, swap) == offsetof(struct ring_send_wqe, swap) &&
		offsetof(struct requester_wr, rkey) == offsetof(struct ring_send_wqe, rkey) &&
		offsetof(struct requester_wr, imm) == offsetof(struct ring_send_wqe, imm) &&
		offsetof(struct ring_send_wqe, num_sge) == SAME_BYTES,
	"wr_id, remote_addr, compare_add, swap, rkey, imm");

static ALWAYS_INLINE void
take_one(struct qp *qp, const struct ring_send_wqe *wqe, uint32_t position)
{
	uint32_t slot = position & qp->req.wr_mask, what;
	struct requester_wr *wr = &qp->req.wr[slot];
	struct shape c;
	uint64_t counts;
	uint16_t kind;

	memcpy(wr, wqe, SAME_BYTES);
	memcpy(&counts, &wqe->num_sge, sizeof(counts));
	memcpy(&kind, &wqe->opcode, sizeof(kind));
	/* The host may still be writing: from here on only the copies are looked at. */
	atomic_signal_fence(memory_order_seq_cst);
	c = (struct shape){ .num_sge = (uint32_t)counts,
		.inline_len = (uint32_t)(counts >> 32),
		.opcode = (uint8_t)kind,
		.flags = (uint8_t)(kind >> 8) };
	wr->len = 0;
	wr->first = wr->last = psn(0);
	wr->num_sge = 0;
	what = c.opcode | (c.flags & (WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE)) << 8;
	what |= (qp->flags & QPF_SIG_ALL) != 0 ? WR_SIGNALED << 8 : 0;
	what |= (uint32_t)judge(
			&qp->sq, c, wqe->sge, qp->sq.sges + (size_t)slot * qp->sq.max_sge, wr)
		<< 16;
	memcpy(&wr->opcode, &what, sizeof(what)); /* as requester_what() reads it */
}

/**
 * Its source, if one entry has it all and the key is good; else NULL: mem_gather() says.
 * @param last the region of the newest source, or NULL: as a rule they are all in one.
 */
static ALWAYS_INLINE const uint8_t *
source_of(const struct mem_table *t, const struct qp *qp, uint32_t position,
	const struct mem_region **last)
{
	const struct requester_wr *wr = &qp->req.wr[position & qp->req.wr_mask];
	const struct ring_sge *g = request_sges(qp, position);
	const uint32_t what = requester_what(wr);

	if (UNLIKELY(wr->num_sge != 1) ||
		UNLIKELY((what & (UINT8_MAX << 16 | WR_INLINE << 8)) != 0) ||
		UNLIKELY((what & UINT8_MAX) == WR_RDMA_READ))
		return NULL;
	if (LIKELY(*last != NULL) && LIKELY((*last)->key == g->lkey))
		return mem_reach_in(*last, g->addr, g->length);
	return mem_reach(t, g->lkey, qp->pd, g->addr, g->length, 0, last);
}

/** Copy what was posted into the requester's array. */
static ALWAYS_INLINE void
take(const struct worker *w, struct qp *qp)
{
	struct requester *r = &qp->req;
	const uint32_t used = r->tail - r->head;
	uint32_t n, room = used <= r->wr_mask ? r->wr_mask + 1 - used : 0;

	if (UNLIKELY(is_fed(qp))) {
		feed_take(qp, w->now);
		return;
	}
	n = RTE_MIN(sendq_waiting(&qp->sq), room);
	for (uint32_t i = 0; i < n; i++)
		take_one(qp, ring_consume_peek(&qp->sq.ring, qp->sq.taken + i), r->tail + i);
	qp->sq.taken += n;
	requester_posted(r, r->tail + n);
}

void
requests_take(const struct worker *w, struct qp *qp, struct request_sources *out)
{
	const struct mem_region *last = NULL;
	uint32_t n;

	take(w, qp);
	n = RTE_MIN(qp->req.tail - qp->req.sending, (uint32_t)REQUEST_QP);
	out->qp = qp;
	out->first = qp->req.sending;
	out->n = n;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *host = source_of(w->mem, qp, out->first + i, &last);

		out->host[i] = host;
		out->region[i] = last;
		__builtin_prefetch(host);
	}
}
