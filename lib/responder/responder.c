/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry of the responder. A SEND or WRITE packet at ePSN with nothing wrong about it is recognised
 * by one predicate and accepted here; everything else goes the slow way, where the same request is
 * judged check by check, so that the predicate may be stricter than the rules but never laxer.
 */
#include "responder_priv.h"

enum plan_kind { PLAN_SLOW, PLAN_SEND, PLAN_WRITE };
enum plan_position { AT_FIRST, AT_MIDDLE, AT_LAST, AT_ONLY };

struct plan {
	uint32_t act;
	uint16_t full;  /* mask on the path MTU: smallest payload of FIRST and MIDDLE */
	uint8_t least;  /* smallest payload of the others, bytes */
	uint8_t kind;   /* enum plan_kind */
	uint8_t before; /* enum responder_open */
	uint8_t after;
	access_t access; /* right that the QP must grant */
	uint8_t starts;  /* FIRST or ONLY */
	uint8_t ends;    /* LAST or ONLY: a message completed */
	uint8_t asks;    /* PKT_ACKREQ, where that means something */
	uint8_t wc_opcode;
	uint8_t wc_flags;
	uint8_t counter;
	uint16_t rule;
};

#define WC_OP_SEND(acts)  (((acts) / ACT_COMPLETE & 1) * WC_RECV)
#define WC_OP_WRITE(acts) (((acts) / ACT_COMPLETE & 1) * WC_RECV_RDMA_WITH_IMM)
#define IS_PART(pos)      (AT_##pos == AT_FIRST || AT_##pos == AT_MIDDLE)

/* Services up to UD; XRC has RC's. */
#define PLANS (4 * OP_RC_END)

static const struct plan plans[PLANS] = {
#define PLAN(op, knd, pos, bef, aft, acts, flags, cnt, rl)                      \
	[OP_##op] = { .act = (acts),                                            \
		.full = IS_PART(pos) ? UINT16_MAX : 0,                          \
		.least = AT_##pos == AT_LAST,                                   \
		.kind = PLAN_##knd,                                             \
		.before = OPEN_##bef,                                           \
		.after = OPEN_##aft,                                            \
		.access = PLAN_##knd == PLAN_WRITE ? ACCESS_REMOTE_WRITE : 0,   \
		.starts = AT_##pos == AT_FIRST || AT_##pos == AT_ONLY,          \
		.ends = !IS_PART(pos),                                          \
		.asks = WIRE_ACKED >> OP_##op / OP_RC_END & 1 ? PKT_ACKREQ : 0, \
		.wc_opcode = WC_OP_##knd((acts)),                               \
		.wc_flags = (flags),                                            \
		.counter = (cnt),                                               \
		.rule = RULE_##rl },
#include "tables/plans.def"
#undef PLAN
};

/** The plan of an opcode; NULL: the service has none. */
static ALWAYS_INLINE const struct plan *
plan_of(uint8_t opcode)
{
	if (opcode < PLANS)
		return &plans[opcode];
	return wire_transport_of(opcode) == WIRE_XRC ? &plans[wire_operation(opcode)] : NULL;
}

void
responder_reset(struct responder *r, psn_t rq_psn)
{
	r->epsn = rq_psn;
	r->msn = 0;
	responder_message(r, OPEN_NONE, 0);
	responder_unlatch(r);
	r->starved = false;
	r->unfinished = 0;
	r->saved_next = 0;
	r->dma_len = 0;
	r->va = 0;
	r->rkey = 0;
	if (r->saved == NULL)
		return;
	for (uint32_t i = 0; i < r->saved_n; i++)
		r->saved[i] = (struct responder_saved){ .kind = 0 };
}

/* ---- the fast path --------------------------------------------------------------------------- */

/** The RETH. @param rc the caller knows that no XRCETH is ahead of it. */
static ALWAYS_INLINE struct wire_reth
reth_of(const struct wire_pkt *p, bool rc)
{
	return rc ? wire_reth_at(wire_ext(p)) : wire_reth(p);
}

/**
 * A SEND or WRITE at ePSN that no check would refuse. Short of that it may say no wrongly.
 * @param rc it is a constant plan: a packet of RC.
 */
static ALWAYS_INLINE bool
is_fast(const struct responder *r, const struct wire_pkt *p, const struct responder_facts *f,
	const struct plan *pl, bool rc)
{
	uint32_t len = p->payload_len, dma_len = r->dma_len;
	uint32_t least = (r->pmtu & pl->full) | pl->least;
	uint64_t sum = (uint64_t)r->received + len;
	bool odd;

	if (pl->kind == PLAN_WRITE && pl->starts != 0)
		dma_len = reth_of(p, rc).dma_len;
	odd = (p->psn.v != r->epsn.v) | (r->open != pl->before) |
	      ((pl->access & ~(uint32_t)r->access) != 0);
	odd |= (len < least) | (len > r->pmtu) | ((p->pad & pl->full) != 0);
	odd |= r->latched | f->short_of_resources | f->exec_fault;
	odd |= wire_transport_of(p->opcode) != r->transport;
	if (pl->kind == PLAN_SEND) {
		odd |= !(f->has_wqe | r->wqe_active) | (f->wqe_fault != WQE_FAULT_NONE);
		odd |= (sum + r->head > f->wqe_bytes) | (sum > VERBS_MESSAGE_MAX);
		odd |= ((pl->act & ACT_INVALIDATE) != 0) & !f->invalidate_ok;
	} else {
		odd |= (pl->ends != 0 ? sum != dma_len : sum > dma_len) |
		       (dma_len > VERBS_MESSAGE_MAX);
		odd |= !f->key_ok & (dma_len != 0);
		odd |= ((pl->act & ACT_TAKE_WQE) != 0) &
		       (!f->has_wqe | (f->wqe_fault == WQE_FAULT_MALFORMED));
		odd |= !rc & (f->wqe_fault == WQE_FAULT_NO_SRQ);
	}
	return !odd;
}

/** Receives left once this packet has taken its own: credits (FLOW-03), and the limit (FLOW-08). */
static __attribute__((noinline)) void
count_receives(struct responder *r, const struct responder_facts *f, struct responder_verdict *v)
{
	uint32_t free = f->free_wqes;

	if ((v->act & ACT_TAKE_WQE) != 0 && free != UINT32_MAX && free != 0)
		free--;
	if ((v->act & ACT_ACK) != 0)
		v->syndrome = responder_offer(r, free);
	if (free < f->rq_limit)
		v->act |= ACT_LOW;
}

bool
responder_posted(struct responder *r, uint32_t free, struct responder_verdict *v)
{
	if (!r->starved || free == 0)
		return false;
	*v = verdict_blank(r);
	v->act = ACT_ACK;
	v->reply_psn = responder_newest(r);
	v->syndrome = responder_offer(r, free);
	v->rule = RULE_CREDIT_AGAIN;
	return true;
}

static ALWAYS_INLINE void
accept(struct responder *r, const struct wire_pkt *p, const struct responder_facts *f,
	const struct plan *pl, bool rc, struct responder_verdict *v)
{
	uint32_t len = p->payload_len, offset = r->received, sum = offset + len;
	uint32_t act = pl->act | ((p->flags & pl->asks) != 0 ? ACT_ACK : 0);
	uint64_t va = 0;
	uint32_t rkey = 0, imm = 0;

	ASSERT(psn_eq(p->psn, r->epsn) && r->open == pl->before);
	ASSERT(pl->kind != PLAN_SLOW && (pl->starts == 0 || offset == 0));
	if (pl->kind == PLAN_WRITE) {
		struct wire_reth reth = { r->va, r->rkey, r->dma_len };

		if (pl->starts != 0)
			reth = reth_of(p, rc);
		if (pl->starts != 0 && pl->after == OPEN_WRITE)
			responder_write_begins(r, &reth);
		va = reth.va + offset;
		rkey = reth.rkey;
		act |= len != 0 ? ACT_PLACE_WRITE : 0;
	} else {
		act |= len != 0 ? ACT_PLACE_SEND : 0;
	}
	if (UNLIKELY((pl->wc_flags & (WC_WITH_IMM | WC_WITH_INV)) != 0)) {
		imm = wire_imm_or_inv(p);
		rkey = (act & ACT_INVALIDATE) != 0 ? imm : rkey;
	}

	responder_advance(r, 1, pl->ends);
	responder_message(r, pl->after, sum);
	*v = (struct responder_verdict){
		.act = act,
		.reply_psn = responder_newest(r),
		.reply_msn = r->msn,
		.va = va,
		.rkey = rkey,
		.offset = offset + r->head,
		.byte_len = (act & ACT_COMPLETE) != 0 ? sum + r->head : 0,
		.imm = imm,
		.syndrome = AETH_ACK | AETH_CREDIT_NONE,
		.wc_opcode = pl->wc_opcode,
		.wc_flags = pl->wc_flags,
		.fault = VERDICT_NO_FAULT,
		.solicited = (act & ACT_COMPLETE) != 0 && (p->flags & PKT_SE) != 0,
		.rule = pl->rule,
		.counter = pl->counter,
	};

	if (UNLIKELY((r->knobs & (RESP_KNOB_CREDITS | RESP_KNOB_RQ_LIMIT)) != 0))
		count_receives(r, f, v);
}

/* ---- the slow path --------------------------------------------------------------------------- */

static void
accept_slow(struct request *q, struct responder_verdict *v)
{
	struct responder *r = q->r;

	responder_unlatch(r);
	if (op_has(q->p->op, OPF_READ))
		resp_accept_read(q, v);
	else if (op_has(q->p->op, OPF_ATOMIC))
		resp_accept_atomic(q, v);
	else if (op_has(q->p->op, OPF_PLACEMENT))
		resp_accept_placement(q, v);
	else
		accept(r, q->p, q->f, plan_of(q->p->opcode), false, v);
}

static __attribute__((noinline)) void
receive_slow(struct responder *r, const struct wire_pkt *p, const struct responder_facts *f,
	ns_t now, struct responder_verdict *v)
{
	struct request request = { .r = r, .p = p, .f = f, .now = now }, *q = &request;
	enum responder_rule rule;
	const struct check *failed;

	*v = verdict_blank(r);
	if (!is_request(r, p)) {
		verdict_drop(v, RULE_NOT_A_REQUEST, RC_SILENT);
		return;
	}
	switch (region_of(r, p->psn)) {
	case REGION_AHEAD:
		resp_ahead(q, v);
		return;
	case REGION_DUPLICATE:
		resp_duplicate(q, v);
		return;
	case REGION_EXPECTED:
		break;
	}
	if (resp_is_early(q)) {
		verdict_drop(v, RULE_RNR_EARLY, RC_SILENT);
		return;
	}
	failed = resp_check(q, &rule);
	if (failed == NULL)
		accept_slow(q, v);
	else
		resp_fail(q, failed, rule, v);
}

/** Any other SEND or WRITE: the same, with its plan read from the table. */
static __attribute__((noinline)) void
receive_planned(struct responder *r, const struct wire_pkt *p, const struct responder_facts *f,
	ns_t now, struct responder_verdict *v)
{
	const struct plan *pl = plan_of(p->opcode);

	if (LIKELY(pl != NULL && pl->kind != PLAN_SLOW && is_fast(r, p, f, pl, false)))
		accept(r, p, f, pl, false, v);
	else
		receive_slow(r, p, f, now, v);
}

/*
 * The plan of the two commonest opcodes is a constant here, so that the compiler leaves out what
 * they do not need: 9 % of the instructions of a WRITE ONLY that takes the full path, 6 % of a SEND
 * ONLY's.
 */
static ALWAYS_INLINE void
receive(struct responder *r, const struct wire_pkt *p, const struct responder_facts *f, ns_t now,
	struct responder_verdict *v)
{
	if (p->opcode == OP_RC_WRITE_ONLY && is_fast(r, p, f, &plans[OP_RC_WRITE_ONLY], true))
		accept(r, p, f, &plans[OP_RC_WRITE_ONLY], true, v);
	else if (p->opcode == OP_RC_SEND_ONLY && is_fast(r, p, f, &plans[OP_RC_SEND_ONLY], true))
		accept(r, p, f, &plans[OP_RC_SEND_ONLY], true, v);
	else
		receive_planned(r, p, f, now, v);
}

void
responder_receive(struct responder *r, const struct wire_pkt *p, const struct responder_facts *f,
	ns_t now, struct responder_verdict *v)
{
	psn_t before;

	ASSERT(r->pmtu != 0 && (r->pmtu & (r->pmtu - 1)) == 0);
	ASSERT(p->psn.v <= PSN_MASK);
	resp_check_state(r);
	if (UNLIKELY((r->knobs & RESP_KNOB_RESYNC) != 0))
		r->epsn = p->psn;
	before = r->epsn;
	receive(r, p, f, now, v);
	resp_check_state(r);
	resp_check_verdict(r, before, v);
	(void)before;
}
