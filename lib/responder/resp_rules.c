/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the decisions, and the encoding of credits. */
#include "responder_priv.h"

static const struct {
	const char *id;
	const char *text;
} rules[RULE_MAX] = {
	[RULE_NONE] = { "", "" },
#define RULE(name, rule_id, rule_text) [RULE_##name] = { (rule_id), (rule_text) },
#include "tables/responder_rules.def"
#undef RULE
};

const char *
responder_rule_id(enum responder_rule r)
{
	return (unsigned int)r < RULE_MAX ? rules[r].id : "";
}

const char *
responder_rule_text(enum responder_rule r)
{
	return (unsigned int)r < RULE_MAX ? rules[r].text : "";
}

/*
 * Codes 2k and 2k+1 stand for 2^k and 3 * 2^(k-1), k from 1 to 15; 0 and 1 for themselves
 * (FLOW-01, data.credit_encoding). Code 30, 32768, is the largest.
 */
uint8_t
responder_credit_code(uint32_t n)
{
	uint32_t k;

	if (n < 2)
		return (uint8_t)n;
	if (n >= 32768)
		return 30;
	k = 31 - (uint32_t)__builtin_clz(n);
	return (uint8_t)(2 * k + (n >= UINT32_C(3) << (k - 1)));
}
