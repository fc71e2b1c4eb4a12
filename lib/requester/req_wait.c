/* SPDX-License-Identifier: BSD-3-Clause */
/* Why the next packet is not sent: for explanations of a QP that does nothing. */
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

ns_t
requester_waits_since(const struct requester *r)
{
	const ns_t wait = r->waiting_rnr ? wire_rnr_us(r->rnr_code) * RNR_NS_PER_US
					 : requester_wait_ns(r->timeout);

	if (r->probing)
		return 0;
	return r->deadline > wait ? r->deadline - wait : 0;
}
