/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services without ACKs. The peer is told nothing and sends nothing again, so there is no gap to
 * close: a message arrives whole or not at all. Which one is open, and where it stands, is all that
 * matters; what does not go on with it ends it, and what begins anew is welcome at any PSN.
 */
#include "responder_priv.h"

/** Does it go on with the open message? */
static bool
goes_on(const struct responder *r, const struct wire_pkt *p)
{
	const uint32_t kind = r->open == OPEN_SEND ? OPF_SEND : OPF_WRITE;

	return psn_eq(p->psn, r->epsn) && op_has(p->op, kind) &&
	       op_has(p->op, OPF_MIDDLE | OPF_LAST);
}

uint32_t
responder_resync(struct responder *r, const struct wire_pkt *p)
{
	const bool starts = op_has(p->op, OPF_REQUEST) && op_has(p->op, OPF_FIRST | OPF_ONLY);
	const bool counts = wire_is_connected(r->transport); /* PSNs of one peer */
	const bool gap = counts && !psn_eq(p->psn, r->epsn) && (starts || r->open != OPEN_NONE);
	uint32_t what = gap ? RESYNC_GAP : 0;

	ASSERT(!wire_is_acked(r->transport) && p->psn.v <= PSN_MASK);
	if (!is_request(r, p)) /* of another service: not the peer's (UC-17) */
		return 0;
	if (r->open != OPEN_NONE && !goes_on(r, p)) {
		what |= r->wqe_active ? RESYNC_CUT : 0;
		responder_message(r, OPEN_NONE, 0);
	}
	if (starts)
		r->epsn = p->psn;
	resp_check_state(r);
	return what;
}

/** What is counted: those of a NAK are counted when it leaves, and here none does. */
static enum responder_counter
counter_of(const struct check *c)
{
	return c->failure == FAIL_NOT_READY || c->failure == FAIL_TOO_LONG
		       ? (enum responder_counter)c->counter
		       : RC_SILENT;
}

void
resp_drop_message(struct request *q, const struct check *c, enum responder_rule rule,
	struct responder_verdict *v)
{
	struct responder *r = q->r;

	if (rule == RULE_INV_STRAY) {
		verdict_drop(v, RULE_SKIPPED, RC_SILENT);
		v->fault = VERDICT_NO_FAULT; /* the loss, or the refusal, was charged */
	} else {
		verdict_drop(v, rule, counter_of(c));
	}
	if (r->wqe_active) {
		v->act |= ACT_CUT;
		v->wc_opcode = WC_RECV;
		v->wc_status = resp_failure_status((enum failure)c->failure);
		v->solicited = 1;
	}
	responder_message(r, OPEN_NONE, 0);
	/* What comes next if nothing is lost; a late packet says nothing about that. */
	if (psn_cmp(q->p->psn, r->epsn) >= 0)
		r->epsn = psn_add(q->p->psn, 1);
}
