/* SPDX-License-Identifier: BSD-3-Clause */
/* What a work request must wait for, or fails of, before its first packet. */
#include "requester_priv.h"
#include "verbs_wr.h"

const struct segment req_segments[WR_OPCODES + 1] = {
#define SEGMENT(wr, knd, first, middle, last, only, solicited, takes_wqe, clause) \
	[WR_##wr] = { .op = { [AT_FIRST] = OP_RC_##first,                         \
			      [AT_MIDDLE] = OP_RC_##middle,                       \
			      [AT_LAST] = OP_RC_##last,                           \
			      [AT_ONLY] = OP_RC_##only },                         \
		.kind = SEGMENT_##knd,                                            \
		.se = (solicited)*PKT_SE,                                         \
		.wqe = (takes_wqe),                                               \
		.bytes = SEGMENT_##knd == SEGMENT_STORE ? VERBS_ATOMIC_LEN : 0 },
#include "tables/segments.def"
#undef SEGMENT
};

/** What is wrong with a work request that the caller did not find, or cannot know. */
static enum requester_fault
find_fault(const struct requester *r, const struct requester_wr *w, const struct segment *s)
{
	/* The queue's limits were the poster's; max_rd_atomic may be another one since. */
	const uint32_t type = r->qp_type != 0 ? r->qp_type : QPT_RC;
	const struct verbs_wr_limits limits = { UINT32_MAX, UINT32_MAX, r->max_rd_atomic, type,
		verbs_wr_longest(type, r->pmtu) };
	uint32_t shift = (uint32_t)__builtin_ctz(r->pmtu);

	if (w->fault != WR_FAULT_NONE)
		return (enum requester_fault)w->fault;
	if (verbs_wr_form(&limits, w->opcode, w->flags, 0) != VERBS_WR_GOOD)
		return WR_FAULT_MALFORMED;
	/* 2^31 bytes in packets of 256 are one PSN more than a READ may use (REQ-13). */
	if (verbs_wr_length(&limits, w->opcode, w->flags, w->len) == VERBS_WR_LENGTH ||
		(s->kind == SEGMENT_READ && requester_psns_of(w->len, shift) > PSNS_MAX))
		return WR_FAULT_LENGTH;
	return WR_FAULT_NONE;
}

/** Beyond the credits, unless nothing is in flight: then it goes out as a probe (FLOW-04). */
static bool
lacks_credit(const struct requester *r, const struct segment *s)
{
	/* Both have 24 bits. */
	psn_t msn = psn(requester_msn(r, r->fresh)), limit = psn(r->limit_msn);

	return (r->knobs & REQ_KNOB_CREDITS) != 0 && r->limited && s->wqe != 0 &&
	       psn_cmp(msn, limit) > 0 && requester_outstanding(r);
}

enum requester_stop
req_may_start(struct requester *r, struct requester_wr *w)
{
	const struct segment *s = segment_of(w);
	enum requester_fault fault;

	if (r->failed)
		return REQ_FAULT;
	if (r->draining)
		return REQ_DRAINED;
	fault = find_fault(r, w, s);
	if (fault != WR_FAULT_NONE) { /* REQ-CLS-B-01: it and what follows stays here */
		w->fault = (uint8_t)fault;
		r->failed = true;
		r->failed_at = r->fresh;
		return REQ_FAULT;
	}
	if ((w->flags & SEND_FENCE) != 0 && r->reads != 0)
		return REQ_FENCED;
	/* No PSN is its own: when all that has one is acknowledged, it is the oldest. */
	if (s->kind == SEGMENT_NONE)
		return r->head == r->fresh ? REQ_LOCAL : REQ_ORDERED;
	if (s->kind != SEGMENT_DATA && r->reads >= r->max_rd_atomic)
		return REQ_READ_LIMIT;
	return lacks_credit(r, s) ? REQ_NO_CREDIT : REQ_SEND;
}

void
requester_local_done(struct requester *r, struct requester_verdict *v)
{
	*v = verdict_blank(r);
	ASSERT(!r->dead && r->head == r->fresh && r->sending == r->fresh && r->fresh != r->tail);
	ASSERT(verbs_wr_is_local(requester_slot(r, r->head)->opcode));
	requester_slot(r, r->head)->last = psn_sub(r->next, 1);
	r->fresh++;
	r->sending++;
	r->head++;
	r->locals++;
	v->act = REQACT_COMPLETE;
	v->completed = 1;
	v->rule = REQRULE_LOCAL_DONE;
	req_check_state(r);
	req_check_verdict(r, v);
}
