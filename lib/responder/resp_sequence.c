/* SPDX-License-Identifier: BSD-3-Clause */
/* PSNs ahead of ePSN (RESP-SEQ), and retries that come before the RNR time is over. */
#include "responder_priv.h"

void
resp_ahead(struct request *q, struct responder_verdict *v)
{
	bool told;
	enum responder_rule rule = responder_gap(q->r, q->p->psn, &told);

	v->fault = FAULT_PSN;
	if (told) {
		verdict_drop(v, rule, RC_OUT_OF_SEQUENCE);
		return;
	}
	v->act = ACT_NAK;
	v->syndrome = AETH_NAK | NAK_PSN_SEQ_ERR;
	v->rule = rule;
	v->counter = RC_OUT_OF_SEQUENCE;
}

bool
resp_is_early(const struct request *q)
{
	const struct responder *r = q->r;

	return r->latched && (r->knobs & RESP_KNOB_EARLY_DROP) != 0 && q->now < r->rnr_until;
}
