/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 6, fast path: packets of RDMA WRITEs of several, and MIDDLEs of SENDs, each at ePSN. Where
 * their payloads go is looked up when they are taken: most of them tell nothing of it.
 */
#include "acks.h"
#include "count.h"
#include "mem_reach.h"
#include "responder_fast.h"
#include "stage_06_fast.h"

/**
 * Where the payload goes, if the key is good: of a FIRST for all of the message (RESP-NAK-RAE-05),
 * else for the packet's own bytes (RESP-NAK-RAE-09).
 */
static ALWAYS_INLINE uint8_t *
place(const struct worker *w, const struct qp *qp, const struct wire_pkt *p,
	const struct wire_reth *reth)
{
	const struct responder *r = &qp->resp;
	const uint64_t user = mem_user(qp->pd, qp->qpn);
	const struct mem_region *region;

	if (op_has(p->op, OPF_FIRST))
		return mem_reach_remote(w->mem, reth->rkey, user, reth->va, reth->dma_len,
			ACCESS_REMOTE_WRITE, &region);
	return mem_reach_remote(w->mem, r->rkey, user, r->va + r->received, p->payload_len,
		ACCESS_REMOTE_WRITE, &region);
}

/** All but to count it. @return false: nothing was done. */
static ALWAYS_INLINE bool
part_take(struct worker *w, struct burst *b, uint32_t i)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];
	struct wire_reth reth = { 0 };
	uint8_t *host;

	if (UNLIKELY(!fast_qp(w, qp, p)) || UNLIKELY(p->psn.v != qp->resp.epsn.v))
		return false;
	if (op_has(p->op, OPF_FIRST))
		reth = wire_reth_at(wire_ext(p));
	if (UNLIKELY(!responder_fits_fast_part(&qp->resp, p, &reth, ACCESS_REMOTE_WRITE)))
		return false;
	host = place(w, qp, p, &reth);
	if (UNLIKELY(host == NULL))
		return false;
	fast_deliver(w, b, i, host);
	responder_take_fast_part(&qp->resp, p, &reth);
	if ((p->flags & PKT_ACKREQ) != 0)
		fast_ack(w, qp, p->psn);
	if (traced(w, qp))
		pipeline_fast_trace(w, qp, p, RULE_WRITE);
	return true;
}

/** @return false: nothing was done. */
static ALWAYS_INLINE bool
fast_part(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	const struct wire_pkt *p = &b->pkt[i];

	if (UNLIKELY(!part_take(w, b, i)))
		return false;
	if (op_has(p->op, OPF_FIRST)) {
		qp_few_write(b->qp[i], p->frame_len);
		f->n.writes++;
	} else {
		count_taken(w, b->qp[i], p);
		f->n.parts++;
	}
	return true;
}

bool
pipeline_fast_kept(struct worker *w, struct burst *b, uint32_t i)
{
	if (!responder_is_part(b->pkt[i].opcode) || !part_take(w, b, i))
		return false;
	if (op_has(b->pkt[i].op, OPF_FIRST))
		count(w, b->port[i], b->qp[i], STAT_rx_write_requests);
	return true;
}

/**
 * Where the payload of a MIDDLE goes: behind what the SEND has brought, if its WQE has one SGE that
 * is good, and room.
 */
static ALWAYS_INLINE uint8_t *
middle_place(const struct worker *w, const struct qp *qp, const struct wire_pkt *p)
{
	const struct ring_recv_copy *a = qp->active;
	const struct mem_region *region;
	uint8_t *host;

	if (UNLIKELY(a == NULL) || UNLIKELY(a->num_sge != 1) ||
		UNLIKELY((uint64_t)qp->resp.received + p->payload_len > a->sge[0].length))
		return NULL;
	host = mem_reach(w->mem, a->sge[0].lkey, qp_recv_pd(qp), a->sge[0].addr, a->sge[0].length,
		ACCESS_LOCAL_WRITE, &region);
	return LIKELY(host != NULL) ? host + qp->resp.received : NULL;
}

/** @return false: nothing was done. */
static ALWAYS_INLINE bool
fast_middle(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];
	uint8_t *host;

	if (UNLIKELY(!fast_qp(w, qp, p)) || UNLIKELY(p->psn.v != qp->resp.epsn.v) ||
		UNLIKELY(!responder_fits_fast_middle(&qp->resp, p)))
		return false;
	host = middle_place(w, qp, p);
	if (UNLIKELY(host == NULL))
		return false;
	fast_deliver(w, b, i, host);
	responder_take_fast_middle(&qp->resp, p);
	if ((p->flags & PKT_ACKREQ) != 0)
		fast_ack(w, qp, p->psn);
	count_taken(w, qp, p);
	f->n.parts++;
	if (traced(w, qp))
		pipeline_fast_trace(w, qp, p, RULE_SEND_PART);
	return true;
}

uint32_t
pipeline_fast_middles(struct worker *w, struct burst *b, uint32_t i, uint32_t end, struct fast *f)
{
	uint32_t at = i;

	while (at < end && b->pkt[at].opcode == OP_RC_SEND_MIDDLE && fast_middle(w, b, at, f))
		at++;
	return at - i;
}

uint32_t
pipeline_fast_parts(struct worker *w, struct burst *b, uint32_t i, uint32_t end, struct fast *f)
{
	uint32_t at = i;

	while (at < end && responder_is_part(b->pkt[at].opcode) && fast_part(w, b, at, f))
		at++;
	/* A message may be open now, or no longer: places were looked up before. */
	f->calm &= at == i;
	return at - i;
}
