/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 6, fast path: positive ACKs that acknowledge only SENDs and WRITEs sent once, positive ACKs
 * of nothing that is outstanding, and READ responses in order.
 */
#include "count.h"
#include "mem_reach.h"
#include "requester_fast.h"
#include "send_complete.h"
#include "sending.h"
#include "stage_06_fast.h"

/** ACKs of a burst that one stands for. */
struct acks {
	uint32_t n;
	uint32_t ahead; /* of the newest: PSNs beyond una */
	uint32_t bytes; /* of their frames */
};

/** Is it an ACKNOWLEDGE, and not marked by a switch? */
static ALWAYS_INLINE bool
is_unmarked_ack(const struct wire_pkt *p)
{
	uint16_t kind;

	memcpy(&kind, &p->opcode, sizeof(kind)); /* and the flags */
	return (kind & (PKT_CE << 8 | UINT8_MAX)) == OP_RC_ACKNOWLEDGE;
}
_Static_assert(offsetof(struct wire_pkt, flags) == offsetof(struct wire_pkt, opcode) + 1,
	"the order of that word");

/** Find ACKs of one QP in a row, with rising PSNs. @return false: the first is none. */
static ALWAYS_INLINE bool
acks_find(const struct burst *b, uint32_t i, uint32_t end, struct acks *out)
{
	const struct qp *qp = b->qp[i];
	const uint32_t limit = requester_ack_limit(&qp->req);
	uint32_t at = i, bytes = 0, newest = 0;

	for (; at < end && b->qp[at] == qp; at++) {
		const struct wire_pkt *p = &b->pkt[at];
		uint32_t ahead;

		if (!is_unmarked_ack(p))
			break;
		ahead = requester_ack_ahead(&qp->req, p);
		if (UNLIKELY(ahead >= limit) || UNLIKELY(at != i && ahead <= newest))
			break;
		newest = ahead;
		bytes += p->frame_len;
	}
	*out = (struct acks){ .n = at - i, .ahead = newest, .bytes = bytes };
	return LIKELY(at != i);
}

/** May responses of the QP take the fast path at all? */
static ALWAYS_INLINE bool
may_complete(const struct qp *qp)
{
	return LIKELY((qp->flags & (QPF_TRACE | QPF_SEND_FEED)) == 0) &&
	       LIKELY(qp_state_of(qp) == QPS_RTS);
}

/** Completions of ACKs that stand one behind the other, of any QPs. */
struct ack_run {
	struct cq_run cq;
	struct succeeded all;
};

/** Work requests of the QP have completed: another timer, and room for the next ones. */
static ALWAYS_INLINE void
goes_on(struct worker *w, struct qp *qp)
{
	timer_update(w, qp);
	if (qp->req.sending != qp->req.tail)
		pipeline_send_wake(w, qp);
}

/** The work requests that its queue could not be told of are lost. */
static __attribute__((noinline)) void
overflow(struct worker *w, struct qp *qp, const struct wire_pkt *p, struct ack_run *run)
{
	cq_run_end(&run->cq);
	pipeline_sends_overflow(w, qp, p);
}

/** The n work requests from `first` on are done. @param p the response that says so. */
static ALWAYS_INLINE void
completed(struct worker *w, struct qp *qp, uint32_t first, uint32_t n, const struct wire_pkt *p,
	struct ack_run *run)
{
	if (UNLIKELY(sends_complete(w, qp, first, n, &run->cq, true, &run->all) != 0)) {
		overflow(w, qp, p, run);
		return;
	}
	goes_on(w, qp);
}

static ALWAYS_INLINE void
run_end(struct worker *w, struct ack_run *run)
{
	cq_run_end(&run->cq);
	succeeded_count(w, &run->all);
}

/**
 * Do all completions of these ACKs have a place? The one that has none fails the QP, and the event
 * names the ACK that brought it (REQ-CLS-F-01): then one ACK is taken after the other.
 */
static ALWAYS_INLINE bool
acks_fit(const struct worker *w, const struct qp *qp, const struct acks *a, struct ack_run *run)
{
	const struct requester *r = &qp->req;

	return LIKELY(
		cq_run_fits(w, &run->cq, qp->send_cq, RTE_MIN(a->ahead + 1, r->fresh - r->head)));
}

/** ACKs of what is outstanding. @param a out. @return false: nothing was done. */
static ALWAYS_INLINE bool
acks_take(struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct acks *a,
	struct ack_run *run)
{
	struct qp *qp = b->qp[i];
	struct requester *r = &qp->req;
	const uint32_t first = r->head;
	uint32_t n;

	if (!may_complete(qp) || UNLIKELY(!acks_find(b, i, end, a)))
		return false;
	if (a->n > 1 && !acks_fit(w, qp, a, run))
		acks_find(b, i, i + 1, a);
	n = requester_take_acks(r, a->ahead, w->now);
	completed(w, qp, first, n, &b->pkt[i + a->n - 1], run);
	return true;
}

/**
 * ACKs of nothing that is outstanding, in a row: they are counted, nothing else (REQ-CLS-E-01).
 * @param out as above. @return false: the first is none.
 */
static __attribute__((noinline)) bool
acks_unmatched(struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct acks *out)
{
	struct qp *qp = b->qp[i];
	uint32_t at = i, bytes = 0;

	if ((qp->flags & QPF_TRACE) != 0 || !qp_receives(qp_state_of(qp)) ||
		w->port_of[qp->port] != b->port[i])
		return false;
	for (; at < end && b->qp[at] == qp; at++) {
		const struct wire_pkt *p = &b->pkt[at];

		if (!requester_is_unmatched_ack(&qp->req, p) || UNLIKELY((p->flags & PKT_CE) != 0))
			break;
		bytes += p->frame_len;
	}
	if (at == i)
		return false;
	*out = (struct acks){ .n = at - i, .bytes = bytes };
	qp_count(w, qp, STAT_rx_responses_unmatched, out->n);
	if (UNLIKELY(qp->req.sending != qp->req.tail) || UNLIKELY(qp->send_feed != NULL))
		pipeline_send_wake(w, qp);
	return true;
}

uint32_t
pipeline_fast_acks(
	struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct fast_counts *n)
{
	struct ack_run run = { .cq = { .cq = NULL } };
	bool more = true;
	uint32_t at = i;

	while (more && at < end && LIKELY(b->pkt[at].opcode == OP_RC_ACKNOWLEDGE)) {
		struct qp *qp = b->qp[at];
		struct acks a;

		if (UNLIKELY(!acks_take(w, b, at, end, &a, &run))) {
			if (!acks_unmatched(w, b, at, end, &a))
				break;
			n->unmatched += a.n;
		}
		at += a.n;
		qp_count_responses(w, qp, a.n, a.bytes);
		more = LIKELY(qp_state_of(qp) == QPS_RTS);
	}
	run_end(w, &run);
	n->acks += at - i;
	return at - i;
}

/**
 * Where the data of the oldest work request goes, a READ. @param at what was looked up with the
 * burst: the oldest one may have been another then. NULL: it is in pieces, or not accessible.
 */
static ALWAYS_INLINE uint8_t *
read_place(const struct worker *w, const struct qp *qp, const struct fast_place *at)
{
	const struct requester_wr *wr = requester_slot(&qp->req, qp->req.head);
	const struct mem_region *region;
	const struct ring_sge *g;

	if (LIKELY(at->host != NULL) && LIKELY(at->wqe == qp->req.head) &&
		LIKELY(mem_is_valid(at->region)))
		return at->host;
	if (wr->num_sge != 1)
		return NULL;
	g = request_sges(qp, qp->req.head);
	return mem_reach(w->mem, g->lkey, qp->pd, g->addr, g->length, ACCESS_LOCAL_WRITE, &region);
}

/** A response that is due, or a part. @param offset of its data. @return 1; 0: it is not taken. */
static ALWAYS_INLINE uint32_t
read_take(struct worker *w, const struct burst *b, uint32_t i, struct fast *f, uint32_t offset)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];
	const uint32_t head = qp->req.head;
	uint8_t *host = read_place(w, qp, &f->at[i]);
	uint32_t ends;

	if (UNLIKELY(host == NULL))
		return 0;
	ASSERT((uint64_t)offset + p->payload_len <= request_sges(qp, head)->length);
	fast_deliver(w, b, i, host + offset);
	ends = requester_take_read(&qp->req, w->now);
	if (ends != 0 && UNLIKELY(pipeline_sends_complete(w, qp, head, 1) != 0))
		pipeline_sends_overflow(w, qp, p);
	else
		goes_on(w, qp);
	f->n.acks++;
	qp_count_responses(w, qp, 1, p->frame_len);
	return 1;
}

uint32_t
pipeline_fast_data(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	const struct wire_pkt *p = &b->pkt[i];
	const struct qp *qp = b->qp[i];
	uint32_t offset = 0;

	if (UNLIKELY((p->flags & PKT_CE) != 0) || !may_complete(qp))
		return 0;
	if (p->opcode == OP_RC_READ_RESPONSE_ONLY) {
		if (UNLIKELY(!requester_fits_read(&qp->req, p)))
			return 0;
	} else if (UNLIKELY(!requester_fits_read_part(&qp->req, p, &offset))) {
		return 0;
	}
	return read_take(w, b, i, f, offset);
}
