/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READ, ATOMIC, ATOMIC WRITE and FLUSH at ePSN that passed every check: saved for duplicates,
 * counted as unfinished until their responses are out (RESP-06, RESP-07, RESP-DUP-11).
 */
#include "responder_priv.h"

static void
account(struct request *q, uint32_t psns, struct responder_verdict *v)
{
	struct responder *r = q->r;

	v->first = r->epsn;
	responder_advance(r, psns, 1);
	v->reply_psn = responder_newest(r);
	v->reply_msn = r->msn;
	v->syndrome = responder_offer(r, q->f->free_wqes);
}

void
resp_accept_read(struct request *q, struct responder_verdict *v)
{
	struct wire_reth reth = wire_reth(q->p);
	uint32_t psns = read_psns(reth.dma_len, q->r->pmtu);
	struct responder_saved *s = responder_save_read(q->r, psns, &reth);

	account(q, psns, v);
	v->act = ACT_READ;
	v->va = reth.va;
	v->len = reth.dma_len;
	v->rkey = reth.rkey;
	v->saved = s;
	v->rule = RULE_READ;
	v->counter = RC_READ;
}

void
resp_accept_atomic(struct request *q, struct responder_verdict *v)
{
	struct wire_atomiceth a = wire_atomiceth(q->p);
	struct responder_saved *s = responder_save(q->r, 1, q->p->opcode);

	s->va = a.va;
	s->len = 8;
	s->rkey = a.rkey;
	account(q, 1, v);
	v->act = ACT_ATOMIC;
	v->va = a.va;
	v->len = 8;
	v->rkey = a.rkey;
	v->saved = s;
	v->rule = RULE_ATOMIC;
	v->counter = RC_ATOMIC;
}

/* What answers is a READ without data: it stands in line with the READs, and looks like one. */
void
resp_accept_placement(struct request *q, struct responder_verdict *v)
{
	const bool flush = op_has(q->p->op, OPF_FLUSH);
	struct wire_reth reth = wire_reth_any(q->p);
	struct responder_saved *s = responder_save(q->r, 1, q->p->opcode);

	s->va = reth.va;
	s->len = reth.dma_len;
	s->rkey = reth.rkey;
	s->original = flush ? wire_feth(q->p) : 0;
	account(q, 1, v);
	v->act = ACT_READ | (flush ? ACT_FENCE : ACT_STORE);
	v->va = reth.va;
	v->rkey = reth.rkey;
	v->saved = s;
	v->rule = flush ? RULE_FLUSH : RULE_ATOMIC_WRITE;
	v->counter = flush ? RC_FLUSH : RC_ATOMIC_WRITE;
}

/* Newest first, so that a PSN used again 2^24 packets later finds its own slot. */
struct responder_saved *
resp_saved_find(const struct responder *r, psn_t p, uint8_t kind)
{
	uint32_t at = r->saved_next;

	if (r->saved == NULL)
		return NULL;
	for (uint32_t i = 0; i < r->saved_n; i++) {
		struct responder_saved *s;

		at = at == 0 ? r->saved_n - 1u : at - 1;
		s = &r->saved[at];
		if (s->kind == kind && psn_between(p, s->first, s->last))
			return s;
	}
	return NULL;
}
