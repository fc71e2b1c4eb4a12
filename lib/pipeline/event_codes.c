/* SPDX-License-Identifier: BSD-3-Clause */
/* Which event code stands for a decision that fails a QP. */
#include "report.h"

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
