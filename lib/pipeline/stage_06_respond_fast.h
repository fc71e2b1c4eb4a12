/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_06_RESPOND_FAST_H
#define STAGE_06_RESPOND_FAST_H
/**
 * @file stage_06_respond_fast.h  Packets about which nothing is unusual: no facts, no verdict.
 *
 * Owner:   stage_06_respond.c; the worker's lcore.
 * Memory:  none.
 * Depends: acks.h, complete.h, pipeline_priv.h, responder_fast.h, mem_reach.h.
 *
 * WRITE ONLY, SEND ONLY, and duplicates of both. Whatever is not plain returns false with nothing
 * done, and goes the way of all requests, where the same packet would be judged the same.
 */
#include "acks.h"
#include "complete.h"
#include "mem_reach.h"
#include "pipeline_priv.h"
#include "responder_fast.h"

/** Owe an ACK for `p`, at the end of the burst; nothing stands in the answer queue. */
static ALWAYS_INLINE void
plain_ack(struct worker *w, struct qp *qp, psn_t p)
{
	ack_owe(w, qp, ack_tail(AETH_ACK | AETH_CREDIT_NONE, p.v, qp->resp.msn));
}

/** Is the QP one whose good packets leave no trace but their effect, and a line in the recorder? */
static ALWAYS_INLINE bool
plain_qp(const struct worker *w, const struct qp *qp, const struct wire_pkt *p)
{
	/* RTR: AE-05 */
	return LIKELY((uint8_t)(qp_state_of(qp) - QPS_RTS) <= QPS_SQE - QPS_RTS) &&
	       LIKELY((qp->flags & QPF_ANSWERING) == 0) && LIKELY((p->flags & PKT_CE) == 0) &&
	       LIKELY(w->dirty_n != PIPELINE_BURST);
}

/** Where a packet's payload goes if its QP takes it. */
struct place {
	uint8_t *host; /* NULL: not known */
	const struct mem_region *region;
	uint64_t wr_id; /* of the receive WQE that a SEND takes */
	uint32_t room;  /* bytes of it */
	uint32_t wqe;   /* its index */
};

/**
 * Look a WRITE ONLY's place up and fetch it for writing, before the first packet of the burst is
 * judged: memory that a peer writes to is in no cache yet. Of a SEND ONLY the WQE is fetched.
 * @return is it one? Then plain_posted() follows.
 */
static ALWAYS_INLINE bool
plain_place(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, struct place *at)
{
	const uint8_t *reth = wire_ext(p);

	at->host = NULL;
	if (UNLIKELY(p->opcode != OP_RC_WRITE_ONLY)) {
		if (p->opcode != OP_RC_SEND_ONLY || (qp->flags & (QPF_SRQ | QPF_RECV_FEED)) != 0)
			return false;
		if (UNLIKELY(qp->resp.latched) && ring_is_empty(&qp->rq))
			return false; /* its peer was told so */
		__builtin_prefetch(ring_consume_peek(&qp->rq, 0));
		return true;
	}
	/* What is behind ePSN is a duplicate, and no other packet of the burst is so far ahead. */
	if (UNLIKELY(psn_distance(p->psn, qp->resp.epsn) >= PIPELINE_BURST) ||
		UNLIKELY(!plain_qp(w, qp, p)) ||
		UNLIKELY(!responder_fits_fast(&qp->resp, p, ACCESS_REMOTE_WRITE)) ||
		UNLIKELY(p->payload_len == 0 || be32_load(reth + 12) != p->payload_len))
		return false;
	at->host = mem_reach(w->mem, be32_load(reth + 8), qp->pd, be64_load(reth), p->payload_len,
		ACCESS_REMOTE_WRITE, &at->region);
	__builtin_prefetch(at->host, 1);
	return false;
}

/**
 * The place of a SEND ONLY, if the head of the receive queue has one SGE that is good. The host may
 * be writing: each word of the WQE is read once.
 */
static ALWAYS_INLINE void
plain_posted(const struct worker *w, struct qp *qp, struct place *at)
{
	const struct ring_recv_wqe *wqe = ring_consume_peek(&qp->rq, 0);
	uint64_t addr;
	uint32_t lkey;

	if (UNLIKELY(ring_consume_count(&qp->rq) == 0) ||
		UNLIKELY(__atomic_load_n(&wqe->num_sge, __ATOMIC_RELAXED) != 1) ||
		UNLIKELY(qp->max_recv_sge == 0))
		return;
	at->wr_id = __atomic_load_n(&wqe->wr_id, __ATOMIC_RELAXED);
	at->wqe = qp->rq.cons;
	at->room = __atomic_load_n(&wqe->sge[0].length, __ATOMIC_RELAXED);
	addr = __atomic_load_n(&wqe->sge[0].addr, __ATOMIC_RELAXED);
	lkey = __atomic_load_n(&wqe->sge[0].lkey, __ATOMIC_RELAXED);
	if (UNLIKELY(at->room == 0))
		return;
	at->host = mem_reach(w->mem, lkey, qp->pd, addr, at->room, ACCESS_LOCAL_WRITE, &at->region);
	__builtin_prefetch(at->host, 1);
}

/** Sixteen bytes at a time, some of them twice: no call for what fits a cache line. */
static ALWAYS_INLINE void
plain_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (LIKELY(len - 16 <= 64 - 16)) {
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
	mem_copy(to, from, len);
}

/** @return false: nothing was done. */
static ALWAYS_INLINE bool
plain_write(struct worker *w, struct qp *qp, const struct wire_pkt *p, const struct place *at)
{
	/* A packet before this one may have revoked the key. */
	if (UNLIKELY(at->host == NULL || !mem_is_valid(at->region) ||
		     !responder_is_fast(&qp->resp, p, ACCESS_REMOTE_WRITE)))
		return false;
	plain_copy(at->host, wire_payload(p), p->payload_len);
	responder_take_fast(&qp->resp);
	if (LIKELY((p->flags & PKT_ACKREQ) != 0))
		plain_ack(w, qp, p->psn);
	return true;
}

/**
 * Take WRITE ONLYs from b->pkt[i] on, as long as nothing is unusual, and since plain_place() looked
 * nothing was. @return the first that is left.
 */
static ALWAYS_INLINE uint32_t
plain_writes(struct worker *w, struct burst *b, uint32_t i, const struct place *at)
{
	if (UNLIKELY(w->dirty_n + (b->n - i) > PIPELINE_BURST))
		return i;
	for (; i < b->n; i++) {
		const struct wire_pkt *p = &b->pkt[i];
		struct qp *qp = b->qp[i];

		if (UNLIKELY(p->opcode != OP_RC_WRITE_ONLY) || UNLIKELY(at[i].host == NULL) ||
			UNLIKELY(p->psn.v != qp->resp.epsn.v) || traced(w, qp))
			break;
		plain_copy(at[i].host, wire_payload(p), p->payload_len);
		responder_take_fast(&qp->resp);
		if (LIKELY((p->flags & PKT_ACKREQ) != 0))
			plain_ack(w, qp, p->psn);
		qp_few_write(qp, p->frame_len);
	}
	return i;
}

/** The completion of a SEND ONLY, of which `slot` is the place. */
static ALWAYS_INLINE void
plain_complete(struct worker *w, struct qp *qp, const struct wire_pkt *p, uint64_t wr_id,
	struct ring_cqe *slot)
{
	slot->wr_id = wr_id;
	slot->qp_num = qp->qpn;
	slot->byte_len = p->payload_len;
	slot->imm_data = 0;
	slot->vendor_err = 0;
	slot->src_qp = 0;
	slot->psn = p->psn.v;
	slot->time_ns = w->now;
	slot->cause = RULE_SEND_ONLY;
	slot->status = WC_SUCCESS;
	slot->opcode = WC_RECV;
	slot->wc_flags = 0;
	slot->solicited = (p->flags & PKT_SE) != 0;
	slot->peer_opcode = OP_RC_SEND_ONLY;
	memset(slot->reserved, 0, sizeof(slot->reserved));
}

/** @return false: nothing was done. */
static ALWAYS_INLINE bool
plain_send(struct worker *w, struct qp *qp, const struct wire_pkt *p, const struct place *at)
{
	struct qp_cq *cq = qp->recv_cq;
	struct ring_cqe *slot;
	uint32_t index;

	/* A packet before this one may have taken the WQE. */
	if (UNLIKELY(at->host == NULL || at->wqe != qp->rq.cons || !mem_is_valid(at->region) ||
		     !responder_is_fast(&qp->resp, p, 0) || p->payload_len > at->room ||
		     cq == NULL))
		return false;
	slot = cq_begin(w, cq, &index);
	if (UNLIKELY(slot == NULL))
		return false;
	plain_copy(at->host, wire_payload(p), p->payload_len);
	ring_consume_done(&qp->rq, 1);
	plain_complete(w, qp, p, at->wr_id, slot);
	ring_cq_publish(&cq->ring, slot, index);
	cq_end(w, qp, cq, (struct added){ p->psn.v, WC_SUCCESS, (p->flags & PKT_SE) != 0 });
	responder_take_fast(&qp->resp);
	if (LIKELY((p->flags & PKT_ACKREQ) != 0))
		plain_ack(w, qp, p->psn);
	return true;
}

/** A SEND or WRITE that the QP has had before. @return false: nothing was done. */
static ALWAYS_INLINE bool
plain_duplicate(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	if (!responder_is_fast_duplicate(&qp->resp, p))
		return false;
	plain_ack(w, qp, psn_sub(qp->resp.epsn, 1));
	return true;
}

#endif
