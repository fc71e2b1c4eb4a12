/* SPDX-License-Identifier: BSD-3-Clause */
/* PSNs ahead of ePSN (RESP-SEQ), and retries that come before the RNR time is over. */
#include "resp_kept.h"
#include "responder_priv.h"

static void
sequence_nak(struct responder_verdict *v, enum responder_rule rule)
{
	v->act = ACT_NAK;
	v->syndrome = AETH_NAK | NAK_PSN_SEQ_ERR;
	v->rule = rule;
}

/** Not behind a request that met an RNR NAK: the peer sends all of that again. */
static bool
may_keep(const struct request *q)
{
	return q->f->may_keep && (q->r->knobs & RESP_KNOB_KEEP) != 0 && q->r->rnr_until == 0 &&
	       resp_kept_fits(q->r->epsn, q->p->psn);
}

void
resp_ahead(struct request *q, struct responder_verdict *v)
{
	bool told;
	enum responder_rule rule = responder_gap(q->r, q->p->psn, &told);
	const bool keep = may_keep(q);

	if (told && keep) {
		v->act = ACT_KEEP;
		v->rule = RULE_GAP_KEPT;
		v->counter = RC_OUT_OF_SEQUENCE;
		return;
	}
	v->fault = FAULT_PSN;
	if (told) {
		verdict_drop(v, rule, RC_OUT_OF_SEQUENCE);
		return;
	}
	sequence_nak(v, rule);
	v->act |= keep ? ACT_KEEP : 0;
	v->counter = RC_OUT_OF_SEQUENCE;
}

bool
responder_still_missing(struct responder *r, struct responder_verdict *v)
{
	if (r->latched)
		return false;
	*v = verdict_blank(r);
	r->latched = true;
	sequence_nak(v, RULE_GAP_NEXT);
	return true;
}

bool
resp_is_early(const struct request *q)
{
	const struct responder *r = q->r;

	return r->latched && (r->knobs & RESP_KNOB_EARLY_DROP) != 0 && q->now < r->rnr_until;
}
