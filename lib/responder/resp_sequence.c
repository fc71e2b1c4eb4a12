/* SPDX-License-Identifier: BSD-3-Clause */
/* PSNs ahead of ePSN (RESP-SEQ), and retries that come before the RNR time is over. */
#include "responder_priv.h"

/*
 * One latch serves sequence and RNR NAKs (AMB-06): while it is set nothing ahead of ePSN is
 * answered. Only a request accepted at ePSN clears it, and `rnr_until` with it.
 */
void
resp_ahead(struct request *q, struct responder_verdict *v)
{
	struct responder *r = q->r;

	v->fault = FAULT_PSN;
	if (r->latched) {
		verdict_drop(v, r->rnr_until != 0 ? RULE_GAP_AFTER_RNR : RULE_GAP_AGAIN,
			RC_OUT_OF_SEQUENCE);
		return;
	}
	r->latched = true;
	v->act = ACT_NAK;
	v->syndrome = AETH_NAK | NAK_PSN_SEQ_ERR;
	v->rule = psn_distance(q->p->psn, r->epsn) == PSN_HALF ? RULE_GAP_HALF : RULE_GAP;
	v->counter = RC_OUT_OF_SEQUENCE;
}

bool
resp_is_early(const struct request *q)
{
	const struct responder *r = q->r;

	return r->latched && (r->knobs & RESP_KNOB_EARLY_DROP) != 0 && q->now < r->rnr_until;
}
