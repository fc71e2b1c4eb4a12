/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on this side. A work request at fault stops everything from itself on; what is older
 * finishes first, then the fault is reported on it (class B). Classes C and F have no work request.
 */
#include "requester_priv.h"

static const struct local_fault {
	uint8_t status;
	uint16_t rule;
} local_faults[] = {
	[WR_FAULT_NONE] = { WC_LOC_QP_OP_ERR, REQRULE_LOCAL_FORM },
	[WR_FAULT_MALFORMED] = { WC_LOC_QP_OP_ERR, REQRULE_LOCAL_FORM },
	[WR_FAULT_LENGTH] = { WC_LOC_LEN_ERR, REQRULE_LOCAL_LENGTH },
	[WR_FAULT_PROT] = { WC_LOC_PROT_ERR, REQRULE_LOCAL_PROT },
	[WR_FAULT_BIND] = { WC_MW_BIND_ERR, REQRULE_LOCAL_BIND },
	[WR_FAULT_KEY] = { WC_LOC_PROT_ERR, REQRULE_LOCAL_KEY },
};

static const struct local_fault *
local_fault(const struct requester *r)
{
	uint8_t fault = requester_slot(r, r->failed_at)->fault;

	return &local_faults[fault < ARRAY_LEN(local_faults) ? fault : WR_FAULT_MALFORMED];
}

void
req_report_fault(struct requester *r, struct requester_verdict *v)
{
	const struct local_fault *f = local_fault(r);

	ASSERT(r->failed && r->head == r->failed_at);
	v->rule = f->rule;
	fail_head(r, v, f->status, FATAL_WQE);
}

void
requester_check_fault(struct requester *r, struct requester_verdict *v)
{
	*v = verdict_blank(r);
	if (fault_is_due(r))
		req_report_fault(r, v);
}

/** Of the packets in flight, PSNs that only READ responses use. */
static uint32_t
count_reply_psns(const struct requester *r)
{
	uint32_t n = 0;

	for (uint32_t i = r->head; i != r->sending; i++) {
		const struct requester_wr *w = requester_slot(r, i);

		if (is_read(w))
			n += psn_distance(w->last, i == r->head ? r->una : w->first);
	}
	return n;
}

/** The data of a verdict could not be placed: what it completed from there on is taken back. */
static void
take_back(struct requester *r, uint32_t position, struct requester_verdict *v)
{
	uint32_t older = position - v->head_was;

	if ((v->act & REQACT_COMPLETE) != 0 && older < v->completed) {
		v->completed = older;
		v->act &= ~(older == 0 ? (uint32_t)REQACT_COMPLETE : 0);
	}
	v->act &= ~(uint32_t)(REQACT_PLACE | REQACT_ATOMIC);
	r->head = position;
	r->failed = true;
	r->failed_at = position;
	req_report_fault(r, v);
	v->rule = REQRULE_LOCAL_GONE;
}

/**
 * Nothing from failed_at on is sent any more. Unless its request is signalled, the newest older
 * packet may have gone out without AckReq, in the hope of a later one (REQ-07): since_ackreq makes
 * requester_next() ask for it once more.
 */
static void
cut_off(struct requester *r)
{
	const struct requester_wr *w = requester_slot(r, r->failed_at),
				  *older = requester_slot(r, r->failed_at - 1);
	bool beyond = psn_distance(r->cur, r->una) > psn_distance(w->first, r->una);

	if (!beyond)
		return;
	r->cur = w->first;
	r->sending = r->failed_at;
	r->reply_psns = count_reply_psns(r);
	r->since_ackreq = is_acked(r) && !requester_is_read_or_atomic(older) &&
			  (older->flags & SEND_SIGNALED) == 0;
}

/**
 * The packet made last is the one that could not be made, and where nothing is sent again its PSN
 * is the next packet's (UC-15).
 */
static void
take_back_packet(struct requester *r)
{
	const psn_t first = requester_slot(r, r->failed_at)->first;

	ASSERT(r->failed && psn_eq(r->cur, r->next));
	r->next = psn_sub(r->cur, 1);
	r->cur = psn_cmp(first, r->una) > 0 ? first : r->una;
	r->sending = r->failed_at;
	r->since_ackreq = 0;
}

/** Data of a later READ, which was to be kept: its turn has not come, and an older one may fail. */
static void
kept_fault(struct requester *r, uint32_t position, enum requester_fault fault,
	struct requester_verdict *v)
{
	v->act &= ~(uint32_t)(REQACT_PLACE | REQACT_ATOMIC);
	requester_slot(r, position)->fault = (uint8_t)fault;
	if (r->failed && r->failed_at - r->head <= position - r->head)
		return;
	r->failed = true;
	r->failed_at = position;
	cut_off(r);
	v->act |= REQACT_RESEND;
	v->rule = local_fault(r)->rule;
}

void
requester_local_fault(struct requester *r, uint32_t position, enum requester_fault fault,
	struct requester_verdict *v)
{
	bool placing = (v->act & (REQACT_PLACE | REQACT_ATOMIC)) != 0 && v->position == position;

	if (placing && position - v->head_was > v->completed) {
		kept_fault(r, position, fault, v);
		return;
	}
	if (placing) {
		requester_slot(r, position)->fault = (uint8_t)fault;
		take_back(r, position, v);
		return;
	}
	*v = verdict_blank(r);
	if (r->dead)
		return;
	if (position - r->head >= r->tail - r->head)
		return; /* completed meanwhile, or never posted */
	requester_slot(r, position)->fault = (uint8_t)fault;
	if (position - r->head >= r->fresh - r->head)
		return; /* requester_next() will come upon it */
	if (r->failed && r->failed_at - r->head <= position - r->head)
		return;
	r->failed = true;
	r->failed_at = position;
	if (!is_acked(r))
		take_back_packet(r);
	if (fault_is_due(r)) {
		req_report_fault(r, v);
		return;
	}
	cut_off(r);
	v->act |= REQACT_RESEND;
	v->rule = local_fault(r)->rule;
}

static void
fatal_event(struct requester *r, enum requester_rule rule, struct requester_verdict *v)
{
	*v = verdict_blank(r);
	if (r->dead)
		return;
	v->act = REQACT_EVENT | REQACT_TIMER;
	v->event = EVENT_QP_FATAL;
	v->rule = (uint16_t)rule;
	r->dead = true;
	r->timing = false;
	r->waiting_rnr = false;
}

void
requester_context_fault(struct requester *r, struct requester_verdict *v)
{
	fatal_event(r, REQRULE_CONTEXT, v);
}

void
requester_cq_overflow(struct requester *r, struct requester_verdict *v)
{
	fatal_event(r, REQRULE_CQ_FULL, v);
}
