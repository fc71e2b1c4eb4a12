/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 6, fast path: SEND ONLY in order, and datagrams. The receives are the QP's own, or of a
 * shared queue.
 */
#include "acks.h"
#include "complete.h"
#include "count.h"
#include "local.h"
#include "mem_reach.h"
#include "shared_rq.h"
#include "stage_06_fast.h"
#include "verdict.h"

/** Ahead of a datagram, in one piece: as place_grh() of the full path (UD-14, UD-15). */
static ALWAYS_INLINE void
fast_grh(uint8_t *to, const struct wire_pkt *p)
{
	const uint8_t *ip = p->frame + p->l3_off;

	if (UNLIKELY((p->flags & PKT_IPV6) != 0)) {
		memcpy(to, ip, WIRE_IPV6_LEN);
		return;
	}
	memset(to, 0, WIRE_GRH_LEN - WIRE_IPV4_LEN);
	memcpy(to + WIRE_GRH_LEN - WIRE_IPV4_LEN, ip, WIRE_IPV4_LEN);
}

/** Has the opcode an immediate? Then it is one of these. */
static ALWAYS_INLINE bool
has_immediate(const uint8_t opcode)
{
	return opcode == OP_RC_SEND_ONLY_IMM || opcode == OP_RC_WRITE_ONLY_IMM;
}

static ALWAYS_INLINE enum responder_rule
rule_of(const uint8_t opcode)
{
	return has_immediate(opcode) ? RULE_IMMEDIATE : RULE_SEND_ONLY;
}

/** What a receive is told of the packet. @param head bytes ahead of the payload. */
static ALWAYS_INLINE void
completion(const struct wire_pkt *p, const struct fast_place *at, const uint8_t opcode,
	const uint32_t head, struct ring_completion *c)
{
	const bool datagram = opcode == OP_UD_SEND_ONLY, write = opcode == OP_RC_WRITE_ONLY_IMM;
	const uint32_t imm_off = write ? WIRE_RETH_LEN : 0;

	*c = (struct ring_completion){ .wr_id = at->wr_id,
		.byte_len = head + p->payload_len,
		.imm_data = has_immediate(opcode) ? be32_load(wire_ext(p) + imm_off) : 0,
		.src_qp = datagram ? wire_deth(p).src_qpn : 0,
		.psn = p->psn.v,
		.cause = (uint16_t)rule_of(opcode),
		.opcode = write ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
		.wc_flags = datagram                ? WC_GRH
			    : has_immediate(opcode) ? WC_WITH_IMM
						    : 0,
		.grh_ip = datagram ? wire_ip_version(p) : 0,
		.peer_opcode = opcode,
		.solicited = (p->flags & PKT_SE) != 0 };
}

/** Say in the recorder what the SEND has led to. */
static __attribute__((noinline)) void
trace_send(struct worker *w, struct qp *qp, const struct wire_pkt *p, enum responder_rule rule)
{
	cq_trace(w, qp, &(const struct ring_completion){ .psn = p->psn.v });
	pipeline_fast_trace(w, qp, p, rule);
}

/**
 * Is it the next of a run, and does its place hold? A packet before it may have taken the WQE. A
 * datagram may have any PSN (UD-08). What a SEND of UC that was cut off has taken is for the next
 * one, ahead of the queue's head (UC-07).
 */
static ALWAYS_INLINE bool
is_next(const struct worker *w, const struct burst *b, const struct fast *f,
	const struct wire_pkt *p, const struct fast_place *at, const struct qp *qp,
	const uint8_t opcode, const bool calm)
{
	const bool datagram = opcode == OP_UD_SEND_ONLY;
	const access_t access = opcode == OP_RC_WRITE_ONLY_IMM ? ACCESS_REMOTE_WRITE : 0;

	return LIKELY(p->opcode == opcode) && LIKELY(at->host != NULL) &&
	       (datagram || LIKELY(p->psn.v == qp->resp.epsn.v)) &&
	       LIKELY(at->wqe == qp->rq.cons) &&
	       (opcode != OP_UC_SEND_ONLY || LIKELY(qp->active == NULL)) &&
	       (LIKELY(calm) || place_holds(w, b, (uint32_t)(p - b->pkt), f, access)) &&
	       (!datagram ||
		       (at->room - p->payload_len >= (uint32_t)WIRE_GRH_LEN && !traced(w, qp)));
}

/** One behind the last packet, from b->pkt[i] on, whose receive can be of its QP's own queue. */
static ALWAYS_INLINE uint32_t
own_end(const struct burst *b, uint32_t i, const struct fast *f)
{
	const uint64_t shared = f->shared & ~UINT64_C(0) << i;

	return LIKELY(shared == 0) ? b->n : (uint32_t)__builtin_ctzll(shared);
}

/**
 * SEND ONLYs at ePSN, or datagrams, whose place is known, from b->pkt[i] on: those of one opcode.
 * A WRITE ONLY with an immediate takes a receive as they do; its place is another.
 * @param local their payloads may be on loan.
 * @return how many.
 */
static ALWAYS_INLINE uint32_t
fast_sends(struct worker *w, const struct burst *b, uint32_t i, struct fast *f,
	const uint8_t opcode, const bool local)
{
	const bool datagram = opcode == OP_UD_SEND_ONLY, write = opcode == OP_RC_WRITE_ONLY_IMM;
	const bool acked = wire_is_acked(wire_transport_of(opcode));
	const bool calm = LIKELY(f->calm) && LIKELY(w->dirty_n + (b->n - i) <= PIPELINE_BURST);
	const uint32_t head = datagram ? WIRE_GRH_LEN : 0;
	const struct wire_pkt *p = &b->pkt[i], *const end = &b->pkt[own_end(b, i, f)];
	const struct wire_pkt *const from = p;
	const struct fast_place *at = &f->at[i];
	struct qp *const *qps = &b->qp[i];
	struct cq_run run = { .cq = NULL };

	/* Pointers, not i: as in fast_writes(). */
	for (; p != end && is_next(w, b, f, p, at, *qps, opcode, calm); p++, at++, qps++) {
		struct qp *qp = *qps;
		struct ring_completion c;
		struct cq_place to;
		const bool in_run = LIKELY(cq_run_has(w, &run, qp->recv_cq));

		if (UNLIKELY(!in_run) && !cq_begin(w, qp->recv_cq, &to))
			break;
		if (datagram)
			fast_grh(at->host, p);
		if (local)
			pipeline_local_deliver(w, b->m[p - b->pkt], p, at->host);
		else if (!datagram || LIKELY(p->payload_len != 0))
			payload_copy(at->host + head, wire_payload(p), p->payload_len);
		/* Who polls the completion may post again. */
		ring_consume_done(&qp->rq, 1);
		completion(p, at, opcode, head, &c);
		if (LIKELY(in_run))
			cq_run_put(w, &run, qp, &c);
		else
			cq_write(w, qp, qp->recv_cq, &to, &c);
		if (datagram)
			qp->resp.epsn = p->psn;
		responder_take_fast(&qp->resp);
		if (acked && LIKELY((p->flags & PKT_ACKREQ) != 0))
			fast_ack(w, qp, p->psn);
		if (write)
			qp_few_write(qp, p->frame_len);
		else
			qp_few_send(qp, p->frame_len);
		if (!datagram && traced(w, qp))
			trace_send(w, qp, p, rule_of(opcode));
	}
	cq_run_end(&run);
	if (write)
		f->n.writes += (uint32_t)(p - from);
	else
		f->n.sends += (uint32_t)(p - from);
	return (uint32_t)(p - from);
}

/** The same of UC. */
static __attribute__((noinline)) uint32_t
fast_sends_uc(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	return fast_sends(w, b, i, f, OP_UC_SEND_ONLY, false);
}

static __attribute__((noinline)) uint32_t
fast_datagrams(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	return fast_sends(w, b, i, f, OP_UD_SEND_ONLY, false);
}

/** The same of RC, from an address of this process. */
static __attribute__((noinline)) uint32_t
fast_sends_local(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	return fast_sends(w, b, i, f, OP_RC_SEND_ONLY, true);
}

static __attribute__((noinline)) uint32_t
fast_sends_imm(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	return fast_sends(w, b, i, f, OP_RC_SEND_ONLY_IMM, w->local_burst);
}

static __attribute__((noinline)) uint32_t
fast_writes_imm(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	return fast_sends(w, b, i, f, OP_RC_WRITE_ONLY_IMM, w->local_burst);
}

/* ---- shared receive queues ------------------------------------------------------------------- */

/**
 * How many SENDs, from b->pkt[i] on, take the entries from the queue's head on, and have a place
 * there: at the head of their QPs, one behind the other, with completions in one queue.
 */
static uint32_t
shared_count(const struct worker *w, const struct burst *b, uint32_t i, struct fast *f,
	const struct ring_srq_run *posted, struct cq_run *run)
{
	const bool calm = f->calm && w->dirty_n + (b->n - i) <= PIPELINE_BURST;
	const struct qp *const first = b->qp[i];
	uint64_t seen = 0; /* queue pairs of the run, by the lowest bits of their numbers */
	uint32_t n = 0, room;

	if (!cq_run_has(w, run, first->recv_cq))
		return 0;
	room = RTE_MIN(run->end - run->at, PIPELINE_BURST - w->dirty_n);
	room = RTE_MIN(room, posted->n); /* places were found when there may have been more */
	for (; i < b->n && (f->shared >> i & 1) != 0 && n < room; i++, n++) {
		const struct wire_pkt *p = &b->pkt[i];
		const struct qp *qp = b->qp[i];
		const bool again = n != 0 && qp == b->qp[i - 1];
		const uint64_t bit = UINT64_C(1) << (qp->qpn & 63);

		/* Its ePSN is that before the run: a duplicate may have it, too. */
		if (!again && (seen & bit) != 0)
			break;
		seen |= bit;
		if (qp->srq != first->srq || qp->recv_cq != first->recv_cq ||
			p->psn.v != (again ? psn_add(b->pkt[i - 1].psn, 1) : qp->resp.epsn).v)
			break;
		if (f->at[i].host == NULL || f->at[i].wqe != posted->head + n)
			pipeline_fast_place_shared(w, qp, p, posted, n, &f->at[i]);
		if (f->at[i].host == NULL || (!calm && !place_holds(w, b, i, f, 0)))
			break;
		ASSERT(qp->active == NULL);
	}
	return n;
}

/** As fast_sends(): all that take the queue's next entries, which they take at once. */
static __attribute__((noinline)) uint32_t
fast_sends_shared(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	struct qp_srq *srq = b->qp[i]->srq;
	struct cq_run run = { .cq = NULL };
	struct ring_srq_run posted;
	uint32_t n = 0;

	if (UNLIKELY(atomic_load_explicit(&srq->error, memory_order_relaxed)))
		return 0;
	posted = ring_srq_look(&srq->ring);
	n = shared_count(w, b, i, f, &posted, &run);
	if (n == 0 || UNLIKELY(!ring_srq_take_run(&srq->ring, &posted, n)))
		return 0;
	pipeline_srq_taken(w, srq);
	for (uint32_t k = i; k < i + n; k++) {
		const struct wire_pkt *p = &b->pkt[k];
		struct qp *qp = b->qp[k];
		struct ring_completion c;

		fast_deliver(w, b, k, f->at[k].host);
		completion(p, &f->at[k], OP_RC_SEND_ONLY, 0, &c);
		cq_run_put(w, &run, qp, &c);
		responder_take_fast(&qp->resp);
		if (LIKELY((p->flags & PKT_ACKREQ) != 0))
			fast_ack(w, qp, p->psn);
		qp_few_send(qp, p->frame_len);
		if (traced(w, qp))
			trace_send(w, qp, p, RULE_SEND_ONLY);
	}
	cq_run_end(&run);
	f->n.sends += n;
	return n;
}

uint32_t
pipeline_fast_sends(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	const uint8_t opcode = b->pkt[i].opcode;

	if (UNLIKELY(f->shared >> i & 1))
		return fast_sends_shared(w, b, i, f);
	if (LIKELY(opcode == OP_RC_SEND_ONLY))
		return LIKELY(!w->local_burst) ? fast_sends(w, b, i, f, OP_RC_SEND_ONLY, false)
					       : fast_sends_local(w, b, i, f);
	switch (opcode) {
	case OP_RC_SEND_ONLY_IMM:
		return fast_sends_imm(w, b, i, f);
	case OP_RC_WRITE_ONLY_IMM:
		return fast_writes_imm(w, b, i, f);
	case OP_UC_SEND_ONLY:
		return fast_sends_uc(w, b, i, f);
	default:
		return fast_datagrams(w, b, i, f);
	}
}
