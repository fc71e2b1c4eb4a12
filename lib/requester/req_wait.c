/* SPDX-License-Identifier: BSD-3-Clause */
/* Why the next packet is not sent: for explanations of a QP, and for whoever would wake it. */
#include "requester_priv.h"

enum requester_stop
requester_waits(const struct requester *r, ns_t now)
{
	struct requester copy = *r;
	struct requester_packet ignored;
	struct requester_wr two[2]; /* all that a call looks at, by a position's lowest bit */

	if (r->patching && !r->waiting_rnr && !r->dead)
		return REQ_SEND;
	while (r->holes && req_skip(&copy)) {
	}
	if (r->tail != r->head) {
		two[copy.sending & 1] = *requester_slot(r, copy.sending);
		two[(copy.sending - 1) & 1] = *requester_slot(r, copy.sending - 1);
		copy.wr = two;
		copy.wr_mask = 1;
	}
	return requester_next(&copy, now, &ignored);
}

bool
requester_is_shut(const struct requester *r)
{
	uint32_t flying = requester_in_flight(r);
	enum segment_kind kind;

	if (requester_is_free(r) || r->sending == r->tail || r->since_ackreq != 0 || r->patching ||
		r->waiting_rnr || r->failed || r->dead)
		return false;
	if (r->holes && psn_cmp(r->cur, r->heard) <= 0) /* what was kept is skipped first */
		return false;
	kind = segment_of(requester_slot(r, r->sending))->kind;
	if (kind != SEGMENT_DATA)
		flying = req_flying(r);
	return kind != SEGMENT_NONE && flying != 0 && flying >= req_room(r);
}

ns_t
requester_waits_since(const struct requester *r)
{
	const ns_t wait = r->waiting_rnr ? wire_rnr_us(r->rnr_code) * RNR_NS_PER_US
					 : requester_wait_ns(r->timeout);

	if (r->probing)
		return 0;
	return r->deadline > wait ? r->deadline - wait : 0;
}
