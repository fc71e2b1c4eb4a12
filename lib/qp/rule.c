/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_rule.h"

#include "requester.h"
#include "responder.h"

const char *
qp_rule_id(uint16_t rule)
{
	return (rule & QP_RULE_REQUESTER) != 0
		       ? requester_rule_id((enum requester_rule)(rule & ~QP_RULE_REQUESTER))
		       : responder_rule_id((enum responder_rule)rule);
}

const char *
qp_rule_text(uint16_t rule)
{
	return (rule & QP_RULE_REQUESTER) != 0
		       ? requester_rule_text((enum requester_rule)(rule & ~QP_RULE_REQUESTER))
		       : responder_rule_text((enum responder_rule)rule);
}
