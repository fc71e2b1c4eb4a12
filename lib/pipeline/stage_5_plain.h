/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_5_PLAIN_H
#define STAGE_5_PLAIN_H
/**
 * @file stage_5_plain.h  WRITE ONLY and duplicates where nothing is unusual: no facts, no verdict.
 *
 * Owner:   stage_5_respond.c; the worker's lcore.
 * Memory:  none.
 * Depends: pipeline_priv.h, responder_plain.h, mem_reach.h.
 *
 * Whatever is not plain returns false with nothing done, and goes the way of all requests, where
 * the same packet would be judged the same.
 */
#include "mem_reach.h"
#include "pipeline_priv.h"
#include "responder_plain.h"

/** Owe an ACK for `p`, at the end of the burst; nothing stands in the answer queue. */
static ALWAYS_INLINE void
plain_ack(struct worker *w, struct qp *qp, psn_t p)
{
	ack_owe(w, qp, ack_tail(AETH_ACK | AETH_CREDIT_NONE, p.v, qp->resp.msn));
}

/** Is the QP one whose good packets leave no trace but their effect? */
static ALWAYS_INLINE bool
plain_qp(const struct worker *w, const struct qp *qp, const struct wire_pkt *p)
{
	uint8_t state = qp_state_of(qp);
	uint32_t odd = qp->flags & (QPF_TRACE | QPF_ANSWERING);

	odd |= (state <= QPS_RTR) | (state > QPS_SQE); /* RTR: AE-05 */
	odd |= p->flags & PKT_CE;
	odd |= w->dirty_n == PIPELINE_BURST;
	return odd == 0;
}

/** Where a packet's payload goes if its QP takes it. */
struct place {
	uint8_t *host; /* NULL: not known */
	const struct mem_region *region;
};

/**
 * Look a WRITE ONLY's place up and fetch it for writing, before the first packet of the burst is
 * judged: memory that a peer writes to is in no cache yet.
 */
static ALWAYS_INLINE void
plain_place(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, struct place *at)
{
	const uint8_t *reth = wire_ext(p);

	at->host = NULL;
	if (UNLIKELY(p->opcode != OP_RC_WRITE_ONLY || p->payload_len == 0 ||
		     be32_load(reth + 12) != p->payload_len))
		return;
	at->host = mem_reach(w->mem, be32_load(reth + 8), qp->pd, be64_load(reth), p->payload_len,
		MEM_REMOTE_WRITE, &at->region);
	__builtin_prefetch(at->host, 1);
}

/** Sixteen bytes at a time, some of them twice: no call for what fits a cache line. */
static ALWAYS_INLINE void
plain_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (len - 16 <= 64 - 16) {
		uint32_t middle = len > 32 ? 16 : 0;
		__uint128_t a, b, c, d;

		memcpy(&a, from, 16);
		memcpy(&b, from + middle, 16);
		memcpy(&c, from + len - 16 - middle, 16);
		memcpy(&d, from + len - 16, 16);
		memcpy(to, &a, 16);
		memcpy(to + middle, &b, 16);
		memcpy(to + len - 16 - middle, &c, 16);
		memcpy(to + len - 16, &d, 16);
		return;
	}
	memcpy(to, from, len);
}

/** @return false: nothing was done. */
static ALWAYS_INLINE bool
plain_write(struct worker *w, struct qp *qp, const struct wire_pkt *p, const struct place *at)
{
	/* A packet before this one may have revoked the key. */
	if (UNLIKELY(at->host == NULL || !mem_is_valid(at->region) ||
		     !responder_is_plain(&qp->resp, p, MEM_REMOTE_WRITE)))
		return false;
	plain_copy(at->host, wire_payload(p), p->payload_len);
	responder_take_plain(&qp->resp);
	if (LIKELY((p->flags & PKT_ACKREQ) != 0))
		plain_ack(w, qp, p->psn);
	return true;
}

/** A SEND or WRITE that the QP has had before. @return false: nothing was done. */
static ALWAYS_INLINE bool
plain_duplicate(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	if (!responder_is_plain_duplicate(&qp->resp, p))
		return false;
	plain_ack(w, qp, psn_sub(qp->resp.epsn, 1));
	return true;
}

#endif
