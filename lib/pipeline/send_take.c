/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy entries of a send ring to the worker's own work requests, check the copies, and fetch the
 * payloads of the requests that are sent next.
 */
#include <string.h>

#include "mem_reach.h"
#include "reply.h"
#include "requester_fast.h"
#include "send_feed.h"
#include "sending.h"
#include "verbs_wr.h"

#define TAKE_AHEAD 8 /* entries: prefetch distance */

/** What of an entry says how the rest is to be read: each word is read once. */
struct shape {
	uint32_t num_sge;
	uint32_t inline_len;
	uint8_t opcode;
	uint8_t flags;
};

/**
 * What is wrong with the copy (REQ-CLS-B-05, REQ-18); keys are checked when memory is used.
 * @param from the list in the ring.
 * @param sges where it is copied, unless it fits the work request.
 */
static uint8_t
check_copy(const struct qp *qp, struct shape c, const struct ring_sge *from, struct ring_sge *sges,
	struct requester_wr *wr)
{
	struct ring_sge *to = c.num_sge == 1 && !verbs_wr_is_atomic(c.opcode) ? &wr->sge : sges;
	const struct verbs_wr_limits limits = { qp->max_send_sge, qp->max_inline, UINT32_MAX,
		qp->type, verbs_wr_longest(qp->type, qp->req.pmtu) };
	const bool listed = (c.flags & SEND_INLINE) == 0;
	uint64_t bytes = c.inline_len;

	if (UNLIKELY(verbs_wr_has(c.opcode, WR_HAS_ANSWER)) &&
		(qp->req.knobs & REQ_KNOB_PLACEMENT) == 0)
		return WR_FAULT_MALFORMED;
	if (UNLIKELY(verbs_wr_form(&limits, c.opcode, c.flags, listed ? c.num_sge : 0) !=
		     VERBS_WR_GOOD))
		return WR_FAULT_MALFORMED;
	if (UNLIKELY(c.opcode == WR_FLUSH)) {
		if (!verbs_flush_exists(wr->swap))
			return WR_FAULT_MALFORMED;
		bytes = wr->compare_add;
	} else if (listed) {
		memcpy(to, from, c.num_sge * sizeof(*to));
		atomic_signal_fence(memory_order_seq_cst);
		bytes = mem_sge_bytes(to, c.num_sge);
	}
	switch (verbs_wr_length(&limits, c.opcode, c.flags, bytes)) {
	case VERBS_WR_GOOD:
		break;
	case VERBS_WR_ATOMIC_LONG: /* the result goes to the first of them */
		if (!verbs_wr_is_atomic(c.opcode))
			return WR_FAULT_LENGTH;
		bytes = VERBS_ATOMIC_LEN;
		break;
	case VERBS_WR_INLINE_LENGTH:
		return WR_FAULT_MALFORMED;
	default:
		return WR_FAULT_LENGTH;
	}
	wr->num_sge = listed ? (uint8_t)c.num_sge : 0;
	wr->len = (uint32_t)bytes;
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

/** Flags that the QP adds. */
static ALWAYS_INLINE uint32_t
flags_added(const struct qp *qp)
{
	return (qp->flags & QPF_SIG_ALL) != 0 ? SEND_SIGNALED : 0;
}

/** Flags that a host may give, and those. */
static ALWAYS_INLINE uint32_t
flags_of(uint32_t added, uint8_t flags)
{
	return (flags & (SEND_FENCE | SEND_SIGNALED | SEND_SOLICITED | SEND_INLINE)) | added;
}

/** Any entry: check_copy() says what is wrong with it. */
static __attribute__((noinline)) void
take_slow(struct qp *qp, const struct ring_send_wqe *wqe, uint32_t position)
{
	uint32_t slot = position & qp->req.wr_mask, what;
	struct requester_wr *wr = &qp->req.wr[slot];
	struct shape c;

	memcpy(wr, wqe, SAME_BYTES);
	c = (struct shape){ .num_sge = RING_LOAD(uint32_t, &wqe->num_sge),
		.inline_len = RING_LOAD(uint32_t, &wqe->inline_len),
		.opcode = RING_LOAD(uint8_t, &wqe->opcode),
		.flags = RING_LOAD(uint8_t, &wqe->flags) };
	/* The host may still be writing: from here on only the copies are looked at. */
	atomic_signal_fence(memory_order_seq_cst);
	wr->len = 0;
	wr->first = wr->last = psn(0);
	wr->num_sge = 0;
	be24_store(wr->xrc_srqn, RING_LOAD(uint32_t, &wqe->xrc_srqn));
	what = c.opcode | flags_of(flags_added(qp), c.flags) << 8;
	what |= (uint32_t)check_copy(qp, c, wqe->sge, qp_send_sges(qp, position), wr) << 16;
	memcpy(&wr->opcode, &what, sizeof(what)); /* as requester_what() reads it */
}

/**
 * SENDs, WRITEs and READs of one SGE, neither inline nor too long, word by word. The result is that
 * of take_slow(). @param added flags_added(). @return false: another kind, or longer; *wr says
 * nothing.
 */
static ALWAYS_INLINE bool
take_fast(uint32_t added, const struct ring_send_wqe *wqe, struct requester_wr *wr)
{
	const uint32_t num_sge = RING_LOAD(uint32_t, &wqe->num_sge);
	uint64_t addr, rest, zero = 0, sge_n = 1;
	uint16_t kind;
	uint32_t what;

	memcpy(&kind, &wqe->opcode, sizeof(kind));
	memcpy(&addr, &wqe->sge[0].addr, sizeof(addr));
	memcpy(&rest, &wqe->sge[0].length, sizeof(rest));
	memcpy(wr, wqe, offsetof(struct requester_wr, sge));
	memcpy(&wr->rkey, &wqe->rkey, sizeof(wr->rkey) + sizeof(wr->imm));
	/* The host may still be writing: from here on only the copies are looked at. */
	atomic_signal_fence(memory_order_seq_cst);
	if (UNLIKELY((kind & UINT8_MAX) > WR_RDMA_READ) ||
		UNLIKELY((kind & SEND_INLINE << 8) != 0) || UNLIKELY(num_sge != 1) ||
		UNLIKELY((uint32_t)rest > VERBS_MESSAGE_MAX))
		return false;
	what = (kind & UINT8_MAX) | flags_of(added, (uint8_t)(kind >> 8)) << 8;
	memcpy(&wr->sge.addr, &addr, sizeof(addr));
	memcpy(&wr->sge.length, &rest, sizeof(rest)); /* and the key */
	wr->len = (uint32_t)rest;
	memcpy(&wr->first, &zero, sizeof(wr->first) + sizeof(wr->last));
	memcpy(&wr->opcode, &what, sizeof(what));
	memcpy(&wr->num_sge, &sge_n, sizeof(sge_n));
	return true;
}
_Static_assert(
	offsetof(struct requester_wr, num_sge) + sizeof(uint64_t) == sizeof(struct requester_wr),
	"num_sge, and what is reserved, are a word");

/**
 * Where these bytes are.
 * @param last the region found last: as a rule they are all in one.
 * @param access what the key has to allow: of a READ, that its data is written there.
 */
static ALWAYS_INLINE const uint8_t *
find(const struct mem_table *t, uint32_t pd, const struct ring_sge *g, access_t access,
	const struct mem_region **last)
{
	if (LIKELY(*last != NULL) && LIKELY((*last)->key == g->lkey) &&
		LIKELY((access & ~(*last)->access) == 0))
		return mem_reach_in(*last, g->addr, g->length);
	return mem_reach(t, g->lkey, pd, g->addr, g->length, access, last);
}

/** A READ writes to its entries. */
static ALWAYS_INLINE access_t
access_of(uint32_t opcode)
{
	return opcode == WR_RDMA_READ ? ACCESS_LOCAL_WRITE : 0;
}

/** Source number i of those that are fetched. @param in the region that they are in. */
static ALWAYS_INLINE void
add(struct request_sources *to, uint32_t i, const uint8_t *host, const struct mem_region *in)
{
	ASSERT(i < REQUEST_QP);
	to->host[i] = host;
	to->region[i] = in;
	__builtin_prefetch(host);
}

/** The region of bytes that stand in their entry, which nobody takes away. */
static const struct mem_region inline_bytes = { .valid = true };

/**
 * Source number i, of a request, or a READ's place, if it is in one piece and the key is good; else
 * NULL: mem_gather() or mem_check_sges() says.
 */
static ALWAYS_INLINE void
add_source_of(struct request_sources *out, uint32_t i, const struct mem_table *t,
	const struct qp *qp, uint32_t position, const struct mem_region **last)
{
	const struct requester_wr *wr = &qp->req.wr[position & qp->req.wr_mask];
	const uint32_t what = requester_what(wr);
	const uint8_t *host = NULL;

	if (UNLIKELY((what & (UINT8_MAX << 16 | SEND_INLINE << 8)) == SEND_INLINE << 8)) {
		add(out, i, pipeline_sendq_inline(qp, position), &inline_bytes);
		return;
	}
	if (LIKELY(wr->num_sge == 1) && LIKELY((what & UINT8_MAX << 16) == 0))
		host = find(
			t, qp->pd, request_sges(qp, position), access_of(what & UINT8_MAX), last);
	add(out, i, host, *last);
}

/** An entry that the poster's core has, and that is copied soon. */
static ALWAYS_INLINE void
entry_fetch(const struct ring *ring, uint32_t i)
{
	const uint8_t *entry = ring_consume_peek(ring, i);

	__builtin_prefetch(entry);
	__builtin_prefetch(entry + CACHE_LINE);
}

/**
 * Copy what was posted into the requester's array, and fetch what has room in *out. What does not
 * change meanwhile is read before: a copy is a store that could change anything.
 */
static ALWAYS_INLINE void
take(const struct worker *w, struct qp *qp, struct request_sources *out,
	const struct mem_region *last)
{
	struct requester *r = &qp->req;
	struct requester_wr *const wrs = r->wr;
	const struct mem_table *mem = w->mem;
	const uint32_t used = r->tail - r->head, tail = r->tail, mask = r->wr_mask;
	const uint32_t taken = qp->sq.taken, added = flags_added(qp), pd = qp->pd;
	const bool fast = qp->sq.takes_fast;
	uint32_t n, room = used <= mask ? mask + 1 - used : 0, sources = out->n;
	struct ring ring;

	/* More than a turn sends: the QP looks again before it has sent all of them. */
	n = RTE_MIN(RTE_MIN(sendq_waiting(&qp->sq), room), (uint32_t)TAKE_QP);
	ring = qp->sq.ring;
	for (uint32_t i = 1; i < n && i < TAKE_AHEAD; i++) /* the first one was fetched */
		entry_fetch(&ring, taken + i);
	for (uint32_t i = 0; i < n; i++) {
		const struct ring_send_wqe *wqe = ring_consume_peek(&ring, taken + i);
		struct requester_wr *wr = &wrs[(tail + i) & mask];

		if (i + TAKE_AHEAD < n)
			entry_fetch(&ring, taken + i + TAKE_AHEAD);
		if (LIKELY(fast) && LIKELY(take_fast(added, wqe, wr))) {
			if (LIKELY(sources < REQUEST_QP)) {
				const uint8_t *host =
					find(mem, pd, &wr->sge, access_of(wr->opcode), &last);

				add(out, sources++, host, last);
			}
			continue;
		}
		take_slow(qp, wqe, tail + i);
		if (LIKELY(sources < REQUEST_QP))
			add_source_of(out, sources++, mem, qp, tail + i, &last);
	}
	ASSERT(n == 0 || tail + n - r->head <= mask + 1);
	out->n = sources;
	qp->sq.taken += n;
	requester_posted(r, tail + n);
}

void
pipeline_requests_take(const struct worker *w, struct qp *qp, struct request_sources *out)
{
	const struct mem_region *last = NULL;
	uint32_t n;

	if (UNLIKELY(is_fed(qp)))
		pipeline_feed_take(qp, w->now);
	out->qp = qp;
	out->first = qp->req.sending;
	n = RTE_MIN(qp->req.tail - qp->req.sending, (uint32_t)REQUEST_QP);
	for (uint32_t i = 0; i < n; i++)
		add_source_of(out, i, w->mem, qp, out->first + i, &last);
	out->n = n;
	/*
	 * With more than a visit sends the QP comes again, and looks then. What was sent before
	 * does not count: a response may say at any time that it need not be sent again, and
	 * nobody wakes a QP that has nothing to send.
	 */
	if (LIKELY(qp->req.tail - qp->req.fresh <= REQUEST_QP) && LIKELY(!is_fed(qp)))
		take(w, qp, out, last);
}
