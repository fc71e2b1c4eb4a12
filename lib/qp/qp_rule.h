/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_RULE_H
#define QP_RULE_H
/**
 * @file qp_rule.h  Names and texts of the rules that decided, of responder and requester.
 *
 * Owner:   pure functions: anybody.
 * Memory:  constant.
 * Depends: responder requester.
 */
#include <stdint.h>

/** Rule indices of the requester have this bit where both sides' stand side by side. */
#define QP_RULE_REQUESTER 0x8000u

/** "REQ-NAK-05", "RESP-SEQ-03"; "" for 0. @param rule QP_RULE_REQUESTER with the index, or not. */
const char *qp_rule_id(uint16_t rule);
/** What the rule says, in a few words; "" for 0. */
const char *qp_rule_text(uint16_t rule);

#endif
