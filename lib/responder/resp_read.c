/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READ and ATOMIC requests at ePSN that passed every check: saved for duplicates, counted as
 * unfinished until their responses are out (RESP-06, RESP-07, RESP-DUP-11).
 */
#include "responder_priv.h"

/*
 * Slots are used in turn, all that there are: max_dest_rd_atomic may change while the peer can
 * still repeat what was done before. At most so many requests are unfinished, in order, so the slot
 * written over is always that of a finished one.
 */
static struct responder_saved *
save(struct responder *r, uint32_t psns, uint8_t kind)
{
	struct responder_saved *s = &r->saved[r->saved_next];

	ASSERT(r->saved != NULL && r->saved_next < r->saved_n);
	ASSERT(r->unfinished < r->saved_n);
	r->saved_next++;
	if (r->saved_next >= r->saved_n)
		r->saved_next = 0;
	r->unfinished++;
	*s = (struct responder_saved){
		.first = r->epsn, .last = psn_add(r->epsn, psns - 1), .kind = kind
	};
	return s;
}

static void
account(struct request *q, uint32_t psns, struct responder_verdict *v)
{
	struct responder *r = q->r;

	v->first = r->epsn;
	responder_advance(r, psns, 1);
	v->reply_psn = responder_newest(r);
	v->reply_msn = r->msn;
	v->syndrome = responder_ack_syndrome(r, q->f->free_wqes);
}

void
resp_accept_read(struct request *q, struct responder_verdict *v)
{
	struct wire_reth reth = wire_reth(q->p);
	uint32_t psns = read_psns(reth.dma_len, q->r->pmtu);
	struct responder_saved *s = save(q->r, psns, OP_RC_READ_REQUEST);

	s->va = reth.va;
	s->len = reth.dma_len;
	s->rkey = reth.rkey;
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
	struct responder_saved *s = save(q->r, 1, q->p->opcode);

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

void
responder_answered(struct responder *r)
{
	if (r->unfinished > 0)
		r->unfinished--;
}
