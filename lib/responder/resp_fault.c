/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a failed check leads to: drop, RNR NAK, or a NAK with the QP in ERR and one local report,
 * by completion or by event (RESP-CLS, AE-10). ePSN never moves here.
 */
#include "responder_priv.h"

static const struct {
	uint8_t syndrome;
	uint8_t status;
	uint8_t event;
	bool drops; /* on a service without ACKs */
	bool tells; /* on XRC: the event, too */
} failures[] = {
#define FAILURE(name, cls, unacked, xrc, syn, stat, ev, clause) \
	[FAIL_##name] = { .syndrome = (syn),                    \
		.status = WC_##stat,                            \
		.event = EVENT_##ev,                            \
		.drops = (unacked) == 'D',                      \
		.tells = (xrc) == 'K' },
#include "tables/failures.def"
#undef FAILURE
};

/**
 * Class B: nothing used, nothing reported; the same latch as for sequence NAKs (AMB-06). A copy of
 * the same moment draws no NAK of its own (RESP-RNR-08).
 */
static void
not_ready(struct request *q, struct responder_verdict *v)
{
	if (responder_is_waiting(q->r, q->now)) {
		verdict_drop(v, RULE_RNR_EARLY,
			v->counter == RC_OUT_OF_BUFFER ? RC_OUT_OF_BUFFER : RC_SILENT);
		return;
	}
	responder_not_ready(q->r, q->now);
	v->act = ACT_NAK;
	v->syndrome = AETH_RNR | (q->r->min_rnr_timer & 31);
}

/** The receive WQE that reports, if there is one: that of the open SEND, or the one due now. */
static void
tie_wqe(struct request *q, const struct check *c, struct responder_verdict *v)
{
	struct responder *r = q->r;

	if (r->wqe_active) {
		v->act |= ACT_COMPLETE;
		v->wc_opcode = WC_RECV;
	} else if (c->order >= ORDER_TAKES_WQE && op_has(q->p->op, OPF_TAKES_WQE) &&
		   q->f->has_wqe) {
		v->act |= ACT_TAKE_WQE | ACT_COMPLETE;
		v->wc_opcode = op_has(q->p->op, OPF_WRITE) ? WC_RECV_RDMA_WITH_IMM : WC_RECV;
	}
	r->wqe_active = false;
}

/**
 * One report, never both unless the knob says so (AMB-16), or on XRC: the SRQ's owner may be
 * another one than the target's (RESP-CLS-K-01).
 */
static void
report(struct request *q, const struct check *c, struct responder_verdict *v)
{
	tie_wqe(q, c, v);
	v->event = failures[c->failure].event;
	if ((v->act & ACT_COMPLETE) == 0) {
		v->act |= ACT_EVENT;
		return;
	}
	v->wc_status = failures[c->failure].status;
	if (c->failure == FAIL_ACCESS && (q->r->knobs & RESP_KNOB_IMM_LOC) != 0)
		v->wc_status = WC_LOC_ACCESS_ERR;
	v->solicited = 1; /* an error always counts as solicited (CQ-06) */
	if ((q->r->knobs & RESP_KNOB_EVENT_WITH_CQE) != 0 ||
		(q->r->transport == WIRE_XRC && failures[c->failure].tells))
		v->act |= ACT_EVENT;
}

uint8_t
resp_failure_status(enum failure f)
{
	return failures[f].status;
}

void
resp_fail(struct request *q, const struct check *c, enum responder_rule rule,
	struct responder_verdict *v)
{
	struct responder *r = q->r;
	const bool acked = wire_is_acked(r->transport);

	ASSERT(rule != RULE_NONE && c->failure < ARRAY_LEN(failures));
	v->rule = rule;
	v->counter = c->counter;
	v->fault = c->fault;
	if (UNLIKELY(!acked) && failures[c->failure].drops) {
		resp_drop_message(q, c, rule, v);
		if (q->f->free_wqes < q->f->rq_limit)
			v->act |= ACT_LOW;
		return;
	}
	if ((c->drop & r->knobs) != 0) {
		verdict_drop(v, rule == RULE_INV_PAD ? RULE_PAD_DROP : RULE_LENGTH_DROP, RC_SILENT);
		return;
	}
	if (c->failure == FAIL_NOT_READY) {
		not_ready(q, v);
		if (q->f->free_wqes < q->f->rq_limit)
			v->act |= ACT_LOW;
		return;
	}

	v->act = ACT_ERR;
	v->syndrome = failures[c->failure].syndrome;
	v->fatal = op_has(q->p->op, OPF_WRITE) ? c->fatal_write : c->fatal;
	if (c->also(q) != RULE_NONE)
		v->fatal |= c->also_fatal;
	if (c->failure != FAIL_NO_NAK) {
		v->act |= acked ? ACT_NAK : 0;
	} else if ((r->knobs & RESP_KNOB_J_ACK) != 0) { /* class J, AMB-18 */
		v->act |= ACT_ACK;
		v->syndrome = AETH_ACK | AETH_CREDIT_NONE;
		v->reply_msn = (r->msn + 1) & PSN_MASK;
	}
	report(q, c, v);
	v->offset = r->received;
	responder_message(r, OPEN_NONE, 0);
}

/** Class A or C in the middle of a READ: no WQE is tied to it, so an event reports. */
void
responder_read_failed(struct responder *r, psn_t at, bool access, struct responder_verdict *v)
{
	enum failure failure = access ? FAIL_ACCESS : FAIL_EXECUTION;

	*v = verdict_blank(r);
	v->act = ACT_NAK | ACT_EVENT | ACT_ERR;
	v->reply_psn = at;
	v->syndrome = failures[failure].syndrome;
	v->event = failures[failure].event;
	v->fatal = access ? FATAL_RKEY : 0;
	v->rule = access ? RULE_READ_REVOKED : RULE_EXECUTION;
	v->counter = access ? RC_NAK_ACCESS : RC_NAK_OPERATION;
}

void
responder_cq_overflow(struct responder *r, struct responder_verdict *v)
{
	*v = verdict_blank(r);
	v->act = ACT_EVENT | ACT_ERR;
	v->event = EVENT_QP_FATAL;
	v->rule = r->transport == WIRE_XRC ? RULE_CQ_OVERFLOW_XRC : RULE_CQ_OVERFLOW;
}
