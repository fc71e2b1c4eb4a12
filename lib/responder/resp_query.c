/* SPDX-License-Identifier: BSD-3-Clause */
/* What has to be looked up before a packet can be judged. */
#include "responder_priv.h"

/**
 * The key of a RETH covers the whole message (RESP-NAK-RAE-05). Of a length beyond the limit only
 * the first byte is asked for: whether the key is bad as well (RX-FATAL-22).
 */
static ALWAYS_INLINE void
query_reth(const struct wire_pkt *p, access_t access, struct responder_query *q)
{
	struct wire_reth reth = wire_reth(p);

	q->key = reth.dma_len != 0;
	q->access = access;
	q->rkey = reth.rkey;
	q->len = reth.dma_len > VERBS_MESSAGE_MAX ? 1 : reth.dma_len;
	q->va = reth.va;
}

static ALWAYS_INLINE void
query_write(const struct responder *r, const struct wire_pkt *p, struct responder_query *q)
{
	q->wqe = op_has(p->op, OPF_IMM);
	if (LIKELY(op_has(p->op, OPF_RETH))) {
		query_reth(p, ACCESS_REMOTE_WRITE, q);
	} else if (r->open == OPEN_WRITE) { /* its own bytes again (RESP-NAK-RAE-09) */
		q->key = true;
		q->access = ACCESS_REMOTE_WRITE;
		q->rkey = r->rkey;
		q->len = p->payload_len;
		q->va = r->va + r->received;
	}
}

/** The key of a FLUSH is checked whatever its length; of a whole region no range is. */
static void
query_flush(const struct wire_pkt *p, struct responder_query *q)
{
	struct wire_reth reth = wire_reth_any(p);

	q->key = true;
	q->whole = (wire_feth(p) & FLUSH_MR) != 0;
	q->access = verbs_flush_access(wire_feth(p));
	q->rkey = reth.rkey;
	q->len = q->whole ? 0 : reth.dma_len > VERBS_MESSAGE_MAX ? 1 : reth.dma_len;
	q->va = reth.va;
}

void
responder_query(const struct responder *r, const struct wire_pkt *p, struct responder_query *q)
{
	enum responder_region region;

	*q = (struct responder_query){ .wqe = false };
	if (UNLIKELY(!is_request(r, p) || !op_has(p->op, OPF_REQUEST)))
		return;
	if (UNLIKELY(!psn_eq(p->psn, r->epsn))) {
		region = region_of(r, p->psn);
		if (region == REGION_DUPLICATE && op_has(p->op, OPF_READ))
			query_reth(p, ACCESS_REMOTE_READ, q);
		if (region != REGION_EXPECTED)
			return;
	}

	if (op_has(p->op, OPF_WRITE)) {
		query_write(r, p, q);
	} else if (op_has(p->op, OPF_SEND)) {
		q->wqe = true;
		q->invalidate = op_has(p->op, OPF_IETH);
		if (UNLIKELY(q->invalidate))
			q->inv_key = wire_imm_or_inv(p);
	} else if (op_has(p->op, OPF_READ)) {
		query_reth(p, ACCESS_REMOTE_READ, q);
	} else if (UNLIKELY(op_has(p->op, OPF_ATOMIC_WRITE))) {
		query_reth(p, ACCESS_REMOTE_WRITE, q);
	} else if (UNLIKELY(op_has(p->op, OPF_FLUSH))) {
		query_flush(p, q);
	} else {
		struct wire_atomiceth a = wire_atomiceth(p);

		q->key = true;
		q->access = ACCESS_REMOTE_ATOMIC;
		q->rkey = a.rkey;
		q->len = 8;
		q->va = a.va;
	}
}
