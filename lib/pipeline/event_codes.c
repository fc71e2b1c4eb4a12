/* SPDX-License-Identifier: BSD-3-Clause */
/* Which event code stands for a decision that fails a QP. */
#include "event_codes.h"

static const uint16_t of_responder[RULE_MAX] = {
#define RESPONDER(rule, code) [RULE_##rule] = AEQ_##code,
#define REQUESTER(rule, code)
#include "tables/event_causes.def"
#undef RESPONDER
#undef REQUESTER
};

static const uint16_t of_requester[REQRULE_MAX] = {
#define RESPONDER(rule, code)
#define REQUESTER(rule, code) [REQRULE_##rule] = AEQ_##code,
#include "tables/event_causes.def"
#undef RESPONDER
#undef REQUESTER
};

uint16_t
pipeline_event_code(uint16_t rule)
{
	const uint16_t i = rule & (uint16_t)~QP_RULE_REQUESTER;

	if ((rule & QP_RULE_REQUESTER) != 0)
		return i < REQRULE_MAX ? of_requester[i] : 0;
	return i < RULE_MAX ? of_responder[i] : 0;
}

void
pipeline_event_note(struct worker *w, const struct qp *qp, enum aeq_code code)
{
	struct mbox_msg msg = { .type = MBOX_EVENT, .ev.source = SOURCE_SQ };

	msg.ev.time_ns = w->now;
	msg.ev.qpn = qp->qpn;
	msg.ev.code = (uint16_t)code;
	msg.ev.state = qp_state_of(qp);
	msg.ev.fault = VERDICT_NO_FAULT;
	msg.ev.object = (void *)(uintptr_t)qp;
	pipeline_send_up(w, &msg);
}
