/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry of responses, in the order of data.check_order: PSN range, implied NAK, opcode, syndrome,
 * length. What a knob says to drop is dropped before it can have any effect.
 */
#include "requester_priv.h"

/** Why nothing comes of an ACKNOWLEDGE outside una .. next-1. */
static enum requester_rule
unmatched_rule(const struct requester *r, const struct wire_pkt *p)
{
	uint8_t syndrome = wire_aeth(p).syndrome;

	switch (req_syndrome_kind(r, syndrome)) {
	case SYNDROME_ACK:
		if ((r->knobs & REQ_KNOB_CREDITS) != 0 && psn_eq(psn_add(p->psn, 1), r->una))
			return REQRULE_UNMATCHED_CREDIT;
		return REQRULE_UNMATCHED;
	case SYNDROME_RNR:
		return REQRULE_UNMATCHED_RNR;
	case SYNDROME_NAK:
		if (syndrome == (AETH_NAK | NAK_PSN_SEQ_ERR))
			return REQRULE_UNMATCHED_SEQ;
		return REQRULE_UNMATCHED;
	case SYNDROME_RESERVED:
		break;
	}
	return REQRULE_UNMATCHED;
}

static __attribute__((noinline)) void
unmatched(const struct requester *r, const struct wire_pkt *p, struct requester_verdict *v)
{
	v->cause = QC_UNMATCHED;
	verdict_drop(v, op_has(p->op, OPF_ACK) ? unmatched_rule(r, p) : REQRULE_UNMATCHED_DATA);
}

/**
 * Newest credits (FLOW-04): of a response in the range, or of the ACK just below it (FLOW-05).
 * The newest MSN that may be sent is the peer's plus the receive WQEs it has.
 */
static __attribute__((noinline)) void
take_credits(struct requester *r, const struct wire_pkt *p)
{
	psn_t below = psn_sub(r->una, 1);
	struct wire_aeth aeth;
	uint32_t credits;

	if (!op_has(p->op, OPF_AETH) || psn_distance(p->psn, below) > psn_distance(r->next, r->una))
		return;
	if (psn_eq(p->psn, below) && !op_has(p->op, OPF_ACK))
		return;
	aeth = wire_aeth(p);
	if (req_syndrome_kind(r, aeth.syndrome) != SYNDROME_ACK)
		return;
	credits = requester_credits(aeth.syndrome);
	r->limited = credits != UINT32_MAX;
	r->limit_msn = (aeth.msn + credits) & MSN_MASK;
}

/** Responses that a knob declares harmless. */
static bool
is_ignored(const struct requester *r, const struct wire_pkt *p, struct requester_verdict *v)
{
	if ((r->knobs & REQ_KNOB_BAD_AETH_DROP) != 0 && op_has(p->op, OPF_AETH) &&
		req_syndrome_kind(r, wire_aeth(p).syndrome) == SYNDROME_RESERVED) {
		v->fault = FAULT_AETH;
		verdict_drop(v, REQRULE_SYNDROME_DROP);
		return true;
	}
	if ((r->knobs & REQ_KNOB_LEN_PAD_DROP) != 0 && op_has(p->op, OPF_READ) &&
		op_has(p->op, OPF_FIRST | OPF_MIDDLE) && p->pad != 0) {
		v->fault = FAULT_PAD;
		verdict_drop(v, REQRULE_PAD_DROP);
		return true;
	}
	return false;
}

static ALWAYS_INLINE void
response(struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v)
{
	uint32_t ahead = psn_distance(p->psn, r->una);

	*v = verdict_blank(r);
	if (!op_has(p->op, OPF_RESPONSE) || !op_has(p->op, OPF_ACK | OPF_READ | OPF_ATOMIC) ||
		wire_transport_of(p->opcode) != r->transport) {
		verdict_drop(v, REQRULE_NOT_A_RESPONSE);
		return;
	}
	if (r->dead) {
		verdict_drop(v, REQRULE_IN_ERR);
		return;
	}
	if ((r->knobs & REQ_KNOB_CREDITS) != 0)
		take_credits(r, p);
	if (ahead >= psn_distance(r->next, r->una)) {
		unmatched(r, p, v);
		return;
	}
	if (is_ignored(r, p, v))
		return;
	if (op_has(p->op, OPF_READ))
		req_read_response(r, p, now, v);
	else if (op_has(p->op, OPF_ATOMIC))
		req_atomic_response(r, p, now, v);
	else if (req_syndrome_kind(r, wire_aeth(p).syndrome) == SYNDROME_ACK)
		req_ack(r, ahead, now, v);
	else
		req_nak(r, p->psn, wire_aeth(p).syndrome, now, v);
	if (fault_is_due(r))
		req_report_fault(r, v);
}

void
requester_response(
	struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v)
{
	req_check_state(r);
	ASSERT(p->psn.v <= PSN_MASK);
	response(r, p, now, v);
	req_check_state(r);
	req_check_verdict(r, v);
}
