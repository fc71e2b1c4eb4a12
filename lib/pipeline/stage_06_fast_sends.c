/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage 6, fast path: SEND ONLY in order, and datagrams. */
#include "acks.h"
#include "complete.h"
#include "count.h"
#include "local.h"
#include "mem_reach.h"
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

/** What a receive is told of the packet. @param head bytes ahead of the payload. */
static ALWAYS_INLINE void
completion(const struct wire_pkt *p, const struct fast_place *at, const uint8_t opcode,
	const uint32_t head, struct ring_completion *c)
{
	const bool datagram = opcode == OP_UD_SEND_ONLY;

	*c = (struct ring_completion){ .wr_id = at->wr_id,
		.byte_len = head + p->payload_len,
		.src_qp = datagram ? wire_deth(p).src_qpn : 0,
		.psn = p->psn.v,
		.cause = RULE_SEND_ONLY,
		.opcode = WC_RECV,
		.wc_flags = datagram ? WC_GRH : 0,
		.grh_ip = datagram ? wire_ip_version(p) : 0,
		.peer_opcode = opcode,
		.solicited = (p->flags & PKT_SE) != 0 };
}

/** Say in the recorder what the SEND has led to. */
static __attribute__((noinline)) void
trace_send(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	cq_trace(w, qp, &(const struct ring_completion){ .psn = p->psn.v });
	pipeline_fast_trace(w, qp, p, RULE_SEND_ONLY);
}

/**
 * Is it the next of a run, and does its place hold? A packet before it may have taken the WQE. A
 * datagram may have any PSN (UD-08).
 */
static ALWAYS_INLINE bool
is_next(const struct worker *w, const struct burst *b, const struct fast *f,
	const struct wire_pkt *p, const struct fast_place *at, const struct qp *qp,
	const uint8_t opcode, const bool calm)
{
	const bool datagram = opcode == OP_UD_SEND_ONLY;

	return LIKELY(p->opcode == opcode) && LIKELY(at->host != NULL) &&
	       (datagram || LIKELY(p->psn.v == qp->resp.epsn.v)) &&
	       LIKELY(at->wqe == qp->rq.cons) &&
	       (LIKELY(calm) || place_holds(w, b, (uint32_t)(p - b->pkt), f, 0)) &&
	       (!datagram ||
		       (at->room - p->payload_len >= (uint32_t)WIRE_GRH_LEN && !traced(w, qp)));
}

/**
 * SEND ONLYs at ePSN, or datagrams, whose place is known, from b->pkt[i] on: those of one service.
 * @param local their payloads may be on loan.
 * @return how many.
 */
static ALWAYS_INLINE uint32_t
fast_sends(struct worker *w, const struct burst *b, uint32_t i, struct fast *f,
	const uint8_t opcode, const bool local)
{
	const bool datagram = opcode == OP_UD_SEND_ONLY;
	const bool acked = wire_is_acked(wire_transport_of(opcode));
	const bool calm = LIKELY(f->calm) && LIKELY(w->dirty_n + (b->n - i) <= PIPELINE_BURST);
	const uint32_t head = datagram ? WIRE_GRH_LEN : 0;
	const struct wire_pkt *p = &b->pkt[i], *const end = &b->pkt[b->n], *const from = p;
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
		qp_few_send(qp, p->frame_len);
		if (!datagram && traced(w, qp))
			trace_send(w, qp, p);
	}
	cq_run_end(&run);
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

uint32_t
pipeline_fast_sends(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	const uint8_t opcode = b->pkt[i].opcode;

	if (LIKELY(opcode == OP_RC_SEND_ONLY))
		return LIKELY(!w->local_burst) ? fast_sends(w, b, i, f, OP_RC_SEND_ONLY, false)
					       : fast_sends_local(w, b, i, f);
	return opcode == OP_UC_SEND_ONLY ? fast_sends_uc(w, b, i, f) : fast_datagrams(w, b, i, f);
}
