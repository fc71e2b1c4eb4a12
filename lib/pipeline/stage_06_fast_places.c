/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage 6, fast path: where the payloads of a burst go, looked up before the first is judged. */
#include "mem_reach.h"
#include "sending.h"
#include "stage_06_fast.h"

/** The place of a WRITE ONLY or READ whose key is no region's, and may be a window's. */
static __attribute__((noinline)) void
place_window(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, access_t access,
	struct fast_place *at)
{
	const struct wire_reth reth = wire_reth_at(wire_ext(p));

	at->host = mem_reach_window(w->mem, reth.rkey, mem_user(qp->pd, qp->qpn), reth.va,
		reth.dma_len, access, &at->region);
}

/** Where the data of a READ is that one packet answers: it is fetched. */
static __attribute__((noinline)) void
place_read(const struct worker *w, const struct qp *qp, const struct wire_pkt *p,
	struct fast_place *at)
{
	const struct wire_reth reth = wire_reth_at(wire_ext(p));

	if (UNLIKELY(psn_distance(p->psn, qp->resp.epsn) >= PIPELINE_BURST) ||
		UNLIKELY(!fast_qp(w, qp, p)) ||
		!responder_fits_fast_read(&qp->resp, p, reth.dma_len, ACCESS_REMOTE_READ))
		return;
	at->host = mem_reach(
		w->mem, reth.rkey, qp->pd, reth.va, reth.dma_len, ACCESS_REMOTE_READ, &at->region);
	if (UNLIKELY(at->host == NULL))
		place_window(w, qp, p, ACCESS_REMOTE_READ, at);
	__builtin_prefetch(at->host);
}

/** May the fast path take it, if it is next? @param access as responder_fits_fast() has it. */
static ALWAYS_INLINE bool
may_be_next(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, access_t access)
{
	/* What is behind ePSN is a duplicate, and no other packet of the burst is so far ahead. */
	return LIKELY(psn_distance(p->psn, qp->resp.epsn) < PIPELINE_BURST) &&
	       LIKELY(fast_qp(w, qp, p)) && LIKELY(responder_fits_fast(&qp->resp, p, access));
}

/**
 * The place of a WRITE ONLY that may be next, with this RETH: it is fetched for writing.
 * @param t w->mem.
 */
static ALWAYS_INLINE void
place_write(const struct worker *w, const struct mem_table *t, const struct qp *qp,
	const struct wire_pkt *p, const uint8_t *reth, struct fast_place *at)
{
	ASSERT(may_be_next(w, qp, p, ACCESS_REMOTE_WRITE) && reth == wire_ext(p));
	if (UNLIKELY(p->payload_len == 0) || UNLIKELY(be32_load(reth + 12) != p->payload_len)) {
		at->host = NULL;
		return;
	}
	at->host = mem_reach(t, be32_load(reth + 8), qp->pd, be64_load(reth), p->payload_len,
		ACCESS_REMOTE_WRITE, &at->region);
	if (UNLIKELY(at->host == NULL))
		place_window(w, qp, p, ACCESS_REMOTE_WRITE, at);
	__builtin_prefetch(at->host, 1);
}

/** Does a SEND ONLY of RC take what is posted to a shared queue? */
static ALWAYS_INLINE bool
is_shared(const struct qp *qp, const struct wire_pkt *p)
{
	return (qp->flags & (QPF_SRQ | QPF_RECV_FEED)) == QPF_SRQ && p->opcode == OP_RC_SEND_ONLY &&
	       LIKELY(qp->recv_cq != NULL);
}

/** Does it receive by what its application posts to it alone? */
static ALWAYS_INLINE bool
has_own_wqes(const struct qp *qp)
{
	return LIKELY((qp->flags & (QPF_SRQ | QPF_RECV_FEED)) == 0) &&
	       LIKELY(qp->max_recv_sge != 0) && LIKELY(qp->recv_cq != NULL);
}

/** Whose WQE a packet takes. */
#define TAKES_OWN    UINT64_C(1)         /* its QP's: place_posted() follows */
#define TAKES_SHARED (UINT64_C(1) << 32) /* of a shared queue: shared_fetch() follows */

/**
 * Which receive WQE a SEND ONLY or datagram that may be next takes, if those before it in the burst
 * are such, and in order: it is fetched. @return TAKES_OWN.
 */
static ALWAYS_INLINE uint64_t
place_send(const struct qp *qp, uint32_t ahead, struct fast_place *at)
{
	ASSERT(has_own_wqes(qp));
	at->wqe = qp->rq.cons + ahead;
	at->posted = (const struct ring_recv_wqe *)ring_consume_peek(&qp->rq, ahead);
	__builtin_prefetch(at->posted);
	return TAKES_OWN;
}

/**
 * Its place, if the WQE has one SGE that is good. The host may be writing: each word of the WQE is
 * read once. @param pd that its key must be of.
 */
static ALWAYS_INLINE void
place_in(const struct worker *w, const struct qp *qp, uint32_t pd, const struct wire_pkt *p,
	struct fast_place *at)
{
	const struct ring_recv_wqe *wqe = at->posted;
	uint64_t addr;
	uint32_t lkey;

	if (UNLIKELY(__atomic_load_n(&wqe->num_sge, __ATOMIC_RELAXED) != 1))
		return;
	at->wr_id = __atomic_load_n(&wqe->wr_id, __ATOMIC_RELAXED);
	at->room = __atomic_load_n(&wqe->sge[0].length, __ATOMIC_RELAXED);
	addr = __atomic_load_n(&wqe->sge[0].addr, __ATOMIC_RELAXED);
	lkey = __atomic_load_n(&wqe->sge[0].lkey, __ATOMIC_RELAXED);
	if (UNLIKELY(at->room == 0) || UNLIKELY(p->payload_len > at->room))
		return;
	at->host = mem_reach(w->mem, lkey, pd, addr, at->room, ACCESS_LOCAL_WRITE, &at->region);
	__builtin_prefetch(at->host, 1);
	if (UNLIKELY(qp->resp.head != 0) && LIKELY(at->host != NULL))
		__builtin_prefetch(at->host + CACHE_LINE, 1);
}

static ALWAYS_INLINE void
place_posted(const struct worker *w, struct qp *qp, const struct wire_pkt *p, struct fast_place *at)
{
	if (LIKELY(ring_consume_count(&qp->rq) > at->wqe - qp->rq.cons))
		place_in(w, qp, qp->pd, p, at);
}

void
pipeline_fast_place_shared(const struct worker *w, const struct qp *qp, const struct wire_pkt *p,
	const struct ring_srq_run *run, uint32_t i, struct fast_place *at)
{
	at->host = NULL;
	if (i >= run->n)
		return;
	at->wqe = run->head + i;
	at->posted = ring_srq_at(run, i);
	place_in(w, qp, qp->srq->pd, p, at);
}

/** Fetch what these SENDs will take if the queue is theirs alone; all of one queue. */
static __attribute__((noinline)) void
shared_fetch(const struct worker *w, const struct burst *b, struct fast *f)
{
	struct qp_srq *srq = b->qp[__builtin_ctz(f->shared)]->srq;
	const struct ring_srq_run run = ring_srq_look(&srq->ring);
	uint32_t i = 0, left;

	for (left = f->shared; left != 0 && i < run.n; left &= left - 1, i++)
		__builtin_prefetch(ring_srq_at(&run, i));
	i = 0;
	for (left = f->shared; left != 0; left &= left - 1) {
		const uint32_t k = (uint32_t)__builtin_ctz(left);

		if (b->qp[k]->srq == srq)
			pipeline_fast_place_shared(w, b->qp[k], &b->pkt[k], &run, i++, &f->at[k]);
	}
}

/**
 * Fetch for writing where the data of a READ response goes if it is in order: it is the answer to
 * the request so many PSNs behind the oldest one, or a part of the oldest one's answer. The place
 * is where the work request's buffer begins.
 */
static __attribute__((noinline)) void
response_fetch(const struct worker *w, const struct qp *qp, const struct wire_pkt *p,
	struct fast_place *place)
{
	const struct requester *r = &qp->req;
	uint32_t at = psn_distance(p->psn, r->una), started = r->fresh - r->head;
	const struct requester_wr *wr;
	const struct ring_sge *g;
	uint64_t offset = 0;

	if (started == 0)
		return;
	if (at >= started || !psn_eq(r->wr[(r->head + at) & r->wr_mask].first, p->psn))
		at = 0;
	wr = &r->wr[(r->head + at) & r->wr_mask];
	if (wr->opcode != WR_RDMA_READ || wr->num_sge != 1)
		return;
	if (at == 0)
		offset = (uint64_t)psn_distance(p->psn, wr->first) * r->pmtu;
	g = request_sges(qp, r->head + at);
	place->host = mem_reach(
		w->mem, g->lkey, qp->pd, g->addr, g->length, ACCESS_LOCAL_WRITE, &place->region);
	place->wqe = r->head + at;
	place->room = g->length;
	if (place->host != NULL && offset < g->length)
		__builtin_prefetch(place->host + offset, 1);
}

/**
 * The place of a WRITE ONLY with an immediate, which takes a WQE so far behind the head. Only one
 * without SGEs: what others say has to be looked at, and is not used.
 */
static __attribute__((noinline)) void
place_immediate(const struct worker *w, struct qp *qp, const struct wire_pkt *p, uint32_t ahead,
	struct fast_place *at)
{
	place_send(qp, ahead, at);
	if (ring_consume_count(&qp->rq) <= ahead ||
		__atomic_load_n(&at->posted->num_sge, __ATOMIC_RELAXED) != 0)
		return;
	at->wr_id = __atomic_load_n(&at->posted->wr_id, __ATOMIC_RELAXED);
	place_write(w, w->mem, qp, p, wire_ext(p), at);
}

/** A packet that is not plain. @return TAKES_*, or 0. */
static ALWAYS_INLINE uint64_t
place_other(const struct worker *w, struct qp *qp, const struct wire_pkt *p, struct fast_place *at)
{
	if (FAST_OPERATION(p->opcode) == OP_RC_WRITE_ONLY) {
		if (LIKELY(may_be_next(w, qp, p, ACCESS_REMOTE_WRITE)))
			place_write(w, w->mem, qp, p, wire_ext(p), at);
	} else if (FAST_OPERATION(p->opcode) == OP_RC_SEND_ONLY ||
		   p->opcode == OP_RC_SEND_ONLY_IMM) {
		if (UNLIKELY(!may_be_next(w, qp, p, 0)))
			return 0;
		if (UNLIKELY(!has_own_wqes(qp)))
			return is_shared(qp, p) ? TAKES_SHARED : 0;
		return place_send(qp, psn_distance(p->psn, qp->resp.epsn), at);
	} else if (op_has(p->op, OPF_RESPONSE)) {
		if (op_has(p->op, OPF_READ))
			response_fetch(w, qp, p, at);
	} else if (p->opcode == OP_RC_READ_REQUEST) {
		place_read(w, qp, p, at);
	} else if (p->opcode == OP_UD_SEND_ONLY) {
		const uint32_t ahead = psn_distance(p->psn, qp->resp.epsn);

		/* Whatever its PSN is (UD-08): those of one sender are in order, as a rule. */
		if (LIKELY(fast_qp(w, qp, p)) && LIKELY(responder_fits_fast(&qp->resp, p, 0)) &&
			LIKELY(has_own_wqes(qp)))
			return place_send(qp, ahead < PIPELINE_BURST ? ahead : 0, at);
	} else if (p->opcode == OP_RC_WRITE_ONLY_IMM) {
		if (LIKELY(may_be_next(w, qp, p, ACCESS_REMOTE_WRITE)) && LIKELY(has_own_wqes(qp)))
			place_immediate(w, qp, p, psn_distance(p->psn, qp->resp.epsn), at);
	}
	return 0;
}

/** The first n packets, plain WRITEs: they are untagged IPv4. */
static ALWAYS_INLINE void
place_writes(const struct worker *w, const struct burst *b, uint32_t n, struct fast *f)
{
	const struct wire_pkt *p = b->pkt, *const end = &b->pkt[n];
	const struct mem_table *t = w->mem;
	struct qp *const *qps = b->qp;
	struct fast_place *at = f->at;

	for (; p != end; p++, at++, qps++)
		place_write(w, t, *qps, p, p->frame + WIRE_PLAIN_BTH + WIRE_BTH_LEN, at);
}

/** The first n packets, plain SENDs. @return TAKES_OWN of each. */
static ALWAYS_INLINE uint64_t
place_sends(const struct burst *b, uint32_t n, struct fast *f)
{
	const struct wire_pkt *p = b->pkt, *const end = &b->pkt[n];
	struct qp *const *qps = b->qp;
	struct fast_place *at = f->at;

	for (; p != end; p++, at++, qps++) {
		at->host = NULL;
		place_send(*qps, psn_distance(p->psn, (*qps)->resp.epsn), at);
	}
	return (TAKES_OWN << n) - TAKES_OWN;
}

/*
 * Places are looked up before the first packet of the burst is judged: memory that a peer writes
 * to is in no cache yet. Of a SEND ONLY the WQE is fetched, of a READ what it asks for.
 */
void
pipeline_fast_begin(const struct worker *w, const struct burst *b, struct fast *f)
{
	const bool writes = b->pkt[0].opcode == OP_RC_WRITE_ONLY; /* plain ones are as the first */
	const uint32_t all = (uint32_t)__builtin_ctzll(~(uint64_t)b->plain);
	const struct wire_pkt *p = &b->pkt[all], *const end = &b->pkt[b->n];
	struct qp *const *qps = &b->qp[all];
	uint32_t sends, plain = (uint32_t)((uint64_t)b->plain >> all);
	uint64_t takes = 0;
	struct fast_place *at = &f->at[all];

	f->n = (struct fast_counts){ 0 };
	f->reused = 0;
	f->reads = 0;
	f->one_port = b->one_port;
	f->calm = f->one_port;
	if (LIKELY(writes))
		place_writes(w, b, all, f);
	else
		takes = place_sends(b, all, f);
	for (; p != end; p++, at++, qps++, plain >>= 1) {
		const bool is_plain = (plain & 1) != 0;

		if (p->opcode == OP_RC_ACKNOWLEDGE) /* goes nowhere */
			continue;
		at->host = NULL;
		if (LIKELY(is_plain) && LIKELY(writes))
			place_write(w, w->mem, *qps, p, wire_ext(p), at);
		else
			takes |= (is_plain ? place_send(*qps,
						     psn_distance(p->psn, (*qps)->resp.epsn), at)
					   : place_other(w, *qps, p, at))
				 << (p - b->pkt);
	}
	sends = (uint32_t)takes;
	f->shared = (uint32_t)(takes >> 32);
	for (; UNLIKELY(sends != 0); sends &= sends - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(sends);

		place_posted(w, b->qp[i], &b->pkt[i], &f->at[i]);
	}
	if (UNLIKELY(f->shared != 0))
		shared_fetch(w, b, f);
}
