/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCRIPT_H
#define SCRIPT_H
/**
 * @file script.h  Rules from JSON, read by the table of impair_conf.h.
 *
 * Owner:   tests/unit/impair.
 * Memory:  the caller's array.
 * Depends: jansson, cmocka, drivers/net/impair.
 */
#include <jansson.h>

#include "packets.h"

static inline void
script_burst(json_t *v, struct impair_burst *b)
{
	b->p = json_number_value(json_object_get(v, "p"));
	b->r = json_number_value(json_object_get(v, "r"));
	b->loss_good = json_number_value(json_object_get(v, "loss_good"));
	b->loss_bad = json_number_value(json_object_get(v, "loss_bad"));
}

static inline uint32_t
script_name(json_t *v, const char *const *names)
{
	for (uint32_t i = 0; names[i] != NULL; i++) {
		if (strcmp(names[i], json_string_value(v)) == 0)
			return i;
	}
	fail_msg("unknown name %s", json_string_value(v));
	return 0;
}

static inline void
script_key(const char *key, json_t *v, struct impair_rule *r)
{
	static const char *const action[] = { "drop", "duplicate", "reorder", "corrupt", "delay",
		"ce", NULL };
	static const char *const frames[] = { "roce", "other", "all", NULL };
	static const char *const direction[] = { "any", "request", "response", NULL };
	const struct {
		const char *name;
		uint32_t *to;
		uint64_t given;
	} numbers[] = { { "qp_num", &r->qp_num, IMPAIR_GIVEN_QP_NUM },
		{ "psn", &r->psn, IMPAIR_GIVEN_PSN },
		{ "psn_last", &r->psn_last, IMPAIR_GIVEN_PSN_LAST }, { "every", &r->every, 0 },
		{ "skip", &r->skip, 0 }, { "times", &r->times, 0 }, { "delay_us", &r->delay_us, 0 },
		{ "jitter_us", &r->jitter_us, 0 }, { "copies", &r->copies, 0 },
		{ "distance", &r->distance, 0 }, { "hold_us", &r->hold_us, 0 },
		{ "offset", &r->offset, IMPAIR_GIVEN_OFFSET }, { "bits", &r->bits, 0 } };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		if (strcmp(key, numbers[i].name) == 0) {
			*numbers[i].to = (uint32_t)json_integer_value(v);
			r->given |= numbers[i].given;
			return;
		}
	}
	if (strcmp(key, "action") == 0) {
		r->action = script_name(v, action);
	} else if (strcmp(key, "frames") == 0) {
		r->frames = script_name(v, frames);
	} else if (strcmp(key, "direction") == 0) {
		r->direction = script_name(v, direction);
	} else if (strcmp(key, "packet") == 0) {
		r->packet = (uint64_t)json_integer_value(v);
	} else if (strcmp(key, "opcode") == 0) {
		r->opcode = (uint8_t)json_integer_value(v);
		r->given |= IMPAIR_GIVEN_OPCODE;
	} else if (strcmp(key, "xor") == 0) {
		r->xor_mask = (uint8_t)json_integer_value(v);
	} else if (strcmp(key, "probability") == 0) {
		r->probability = json_number_value(v);
		r->given |= IMPAIR_GIVEN_PROBABILITY;
	} else if (strcmp(key, "burst") == 0) {
		script_burst(v, &r->burst);
		r->given |= IMPAIR_GIVEN_BURST;
	} else {
		fail_msg("unknown key %s", key);
	}
}

static inline void
script_rule(json_t *obj, struct impair_rule *r)
{
	const char *key;
	json_t *v;

	memset(r, 0, sizeof(*r));
	json_object_foreach (obj, key, v)
		script_key(key, v, r);
}

/** @return rules in the text of a port's "impair". */
static inline uint32_t
script_rules(const char *text, struct impair_rule *out, uint32_t max)
{
	json_error_t err;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &err);
	json_t *rules, *obj;
	size_t i;

	if (root == NULL)
		fail_msg("line %d: %s", err.line, err.text);
	rules = json_object_get(root, "rules");
	assert_true(json_is_array(rules));
	assert_true(json_array_size(rules) <= max);
	json_array_foreach (rules, i, obj)
		script_rule(obj, &out[i]);
	json_decref(root);
	return (uint32_t)i;
}

#endif
