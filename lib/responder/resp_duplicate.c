/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests behind ePSN (RESP-DUP). Nothing here changes the state but what the peer has been told
 * of credits, and nothing is ever refused with a NAK: what cannot be answered is dropped (class D).
 */
#include "responder_priv.h"

/** The ACK names the newest request taken, so one answers any number of duplicates. */
static void
acknowledge_again(const struct request *q, struct responder_verdict *v)
{
	v->act |= ACT_ACK;
	v->syndrome = responder_offer(q->r, q->f->free_wqes);
	v->rule = op_has(q->p->op, OPF_SEND) ? RULE_DUP_SEND : RULE_DUP_WRITE;
}

static void
read_again(const struct request *q, struct responder_verdict *v)
{
	const struct responder *r = q->r;
	const struct wire_pkt *p = q->p;
	struct responder_saved *s = resp_saved_find(r, p->psn, OP_RC_READ_REQUEST);
	struct wire_reth reth;
	uint64_t offset;

	if (s == NULL || p->payload_len != 0 || p->pad != 0) {
		verdict_drop(v, RULE_DUP_READ_OUTSIDE, RC_DUPLICATE);
		return;
	}
	reth = wire_reth(p);
	offset = (uint64_t)psn_distance(p->psn, s->first) * r->pmtu;
	/* A length of 0 is the rest of the saved READ only if that had none. */
	if (reth.rkey != s->rkey || reth.va != s->va + offset || offset > s->len ||
		reth.dma_len > s->len - offset || (reth.dma_len == 0 && s->len != 0)) {
		verdict_drop(v, RULE_DUP_READ_OUTSIDE, RC_DUPLICATE);
		return;
	}
	if (reth.dma_len != 0 && !q->f->key_ok) {
		verdict_drop(v, RULE_DUP_READ_KEY, RC_DUPLICATE);
		return;
	}
	v->act |= ACT_READ;
	v->rule = offset != 0 ? RULE_DUP_READ_PART : RULE_DUP_READ;
	v->first = p->psn;
	v->va = reth.va;
	v->len = reth.dma_len;
	v->rkey = reth.rkey;
	v->saved = s;
}

static void
atomic_again(const struct request *q, struct responder_verdict *v)
{
	const struct wire_pkt *p = q->p;
	struct responder_saved *s = resp_saved_find(q->r, p->psn, p->opcode);
	struct wire_atomiceth a = wire_atomiceth(p);

	if (s == NULL || a.va != s->va || a.rkey != s->rkey) {
		verdict_drop(v, RULE_DUP_ATOMIC_UNKNOWN, RC_DUPLICATE);
		return;
	}
	v->act |= ACT_REPLAY;
	v->rule = RULE_DUP_ATOMIC;
	v->first = p->psn;
	v->va = s->va;
	v->len = s->len;
	v->rkey = s->rkey;
	v->saved = s;
}

/** It was done: only the answer is given again. */
static void
placement_again(const struct request *q, struct responder_verdict *v)
{
	const struct wire_pkt *p = q->p;
	struct responder_saved *s = resp_saved_find(q->r, p->psn, p->opcode);
	struct wire_reth reth = wire_reth_any(p);

	if (s == NULL || reth.va != s->va || reth.rkey != s->rkey || reth.dma_len != s->len ||
		(op_has(p->op, OPF_FETH) && wire_feth(p) != s->original)) {
		verdict_drop(v, RULE_DUP_ATOMIC_UNKNOWN, RC_DUPLICATE);
		return;
	}
	v->act |= ACT_READ;
	v->rule = RULE_DUP_PLACEMENT;
	v->first = p->psn;
	v->va = s->va;
	v->rkey = s->rkey;
	v->saved = s;
}

void
resp_duplicate(const struct request *q, struct responder_verdict *v)
{
	opflags_t op = q->p->op;

	ASSERT(responder_region(q->r, q->p->psn) == REGION_DUPLICATE);
	v->act = ACT_DUPLICATE;
	v->counter = RC_DUPLICATE;
	v->reply_psn = responder_newest(q->r);
	v->syndrome = responder_ack_syndrome(q->r, q->f->free_wqes);
	if (op_has(op, OPF_SEND | OPF_WRITE))
		acknowledge_again(q, v);
	else if (!op_has(op, OPF_READ | OPF_ATOMIC | OPF_PLACEMENT) || is_disabled(q->r, q->p))
		verdict_drop(v, RULE_DUP_OPCODE, RC_DUPLICATE);
	else if (q->f->short_of_resources || q->f->exec_fault)
		verdict_drop(v, RULE_DUP_SHORTAGE, RC_DUPLICATE);
	else if (op_has(op, OPF_READ))
		read_again(q, v);
	else if (op_has(op, OPF_PLACEMENT))
		placement_again(q, v);
	else
		atomic_again(q, v);
	/*
	 * FLOW-07: the answer may wait already, with what could be told before. Then the peer is
	 * not told of more.
	 */
	if ((v->act & (ACT_READ | ACT_REPLAY)) != 0)
		q->r->starved |= v->syndrome == AETH_ACK;
}
