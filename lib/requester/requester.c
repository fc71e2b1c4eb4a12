/* SPDX-License-Identifier: BSD-3-Clause */
/* Reset, drain, names of the decisions, the encoding of credits. */
#include "requester_priv.h"

static const struct {
	const char *id;
	const char *text;
} rules[REQRULE_MAX] = {
	[REQRULE_NONE] = { "", "" },
#define RULE(name, rule_id, rule_text) [REQRULE_##name] = { (rule_id), (rule_text) },
#include "tables/requester_rules.def"
#undef RULE
};

const char *
requester_rule_id(enum requester_rule r)
{
	return (unsigned int)r < REQRULE_MAX ? rules[r].id : "";
}

const char *
requester_rule_text(enum requester_rule r)
{
	return (unsigned int)r < REQRULE_MAX ? rules[r].text : "";
}

uint32_t
requester_credits(uint8_t code)
{
	static const uint16_t credits[] = {
#define CREDIT(code, wqes, clause) [code] = (wqes),
#include "tables/credits.def"
#undef CREDIT
	};

	return code < ARRAY_LEN(credits) ? credits[code] : UINT32_MAX;
}

void
requester_reset(struct requester *r, psn_t sq_psn)
{
	r->next = sq_psn;
	r->cur = sq_psn;
	r->una = sq_psn;
	r->head = 0;
	r->tail = 0;
	r->sending = 0;
	r->fresh = 0;
	r->reply_psns = 0;
	r->since_ackreq = 0;
	r->reads = 0;
	r->timing = false;
	r->waiting_rnr = false;
	r->draining = false;
	r->failed = false;
	r->dead = false;
	r->implied = false;
	r->recovering = false;
	r->timed_out = 0;
	r->limited = false;
	r->retry_left = r->retry_cnt;
	r->rnr_left = r->rnr_retry;
	r->deadline = 0;
	r->rnr_code = 0;
	r->limit_msn = 0;
	r->locals = 0;
	r->failed_at = 0;
	r->asked = sq_psn;
	r->heard = sq_psn;
	r->recover = sq_psn;
	r->doubting = false;
	r->probing = 0;
	r->probes = 0;
	r->overlaps = false;
	r->holes = false;
	r->patching = false;
	r->patched = false;
	r->alone = 0;
	r->keeps = 0;
	r->in_vain = 0;
	r->unpatched = 0;
	r->anew = false;
	r->timed = sq_psn;
	req_path_forget(r);
}

bool
requester_drain(struct requester *r, bool on)
{
	r->draining = on;
	return on && r->head == r->fresh;
}
