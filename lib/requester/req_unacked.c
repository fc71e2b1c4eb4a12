/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services without ACKs. A packet that the port has taken is done with: to the requester that is
 * the same as an ACK of it, so work requests complete in order, and faults wait for their turn.
 */
#include "requester_priv.h"

void
requester_left(struct requester *r, psn_t end, ns_t now, struct requester_verdict *v)
{
	/* A fault may have taken back what was to be sent. */
	const uint32_t made = psn_distance(r->cur, r->una), left = psn_distance(end, r->una);
	const uint32_t psns = left < made ? left : made;

	*v = verdict_blank(r);
	req_check_state(r);
	ASSERT(!is_acked(r) && !r->timing);
	if (r->dead || psns == 0 || left >= PSN_HALF)
		return;
	v->rule = REQRULE_LEFT;
	req_acknowledge(r, psn_add(r->una, psns), now, v);
	if (fault_is_due(r))
		req_report_fault(r, v);
	req_check_state(r);
	req_check_verdict(r, v);
}

void
requester_resume(struct requester *r)
{
	ASSERT(!is_acked(r));
	r->una = r->cur = r->next;
	r->head = r->sending = r->fresh = r->tail;
	r->since_ackreq = 0;
	r->draining = false;
	r->failed = false;
	r->dead = false;
	req_check_state(r);
}
