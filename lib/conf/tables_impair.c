/* SPDX-License-Identifier: BSD-3-Clause */
#include "table_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A port's "impair": lib/impair says what the keys mean. */

/* Did a row of the object that is being checked have a fault? Then relations would only echo it. */
static bool
has_fault(const struct conf_errors *err)
{
	const struct conf_error *last = err->n != 0 ? &err->v[err->n - 1] : NULL;

	return last != NULL && strncmp(last->pointer, err->at, err->at_len) == 0 &&
	       last->pointer[err->at_len] == '/';
}

void
conf_check_impair_rule(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const char *fault = has_fault(err) ? NULL : impair_rule_fault(obj);

	if (fault != NULL)
		conf_fault(err, NULL, "%s", fault);
}

void
conf_check_impair(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct impair_conf *c = obj;

	if ((c->log_size & (c->log_size - 1)) != 0)
		conf_fault(err, "log_size", "must be a power of two from 1 to %d, not %u",
			IMPAIR_LOG_MAX, c->log_size);
}

void
conf_check_bottleneck(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const char *fault = has_fault(err) ? NULL : impair_bottleneck_fault(obj);

	if (fault != NULL)
		conf_fault(err, NULL, "%s", fault);
}

/* Where there is none it is not told of. */
static void
hide_bottleneck(const void *obj, json_t *out)
{
	if (((const struct impair_conf *)obj)->bottleneck.rate == 0)
		json_object_del(out, "bottleneck");
}

/* Rates of links are decimal: "10G" are 10^10 bits a second. */
static const struct {
	char letter;
	uint64_t times;
} units[] = { { 'G', 1000000000 }, { 'M', 1000000 }, { 'K', 1000 }, { '\0', 1 } };

static int
decode_rate(const char *text, void *obj)
{
	struct bottleneck_conf *b = obj;
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 13)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		const uint64_t n = strtoull(text, NULL, 10);

		if (text[digits] != units[i].letter)
			continue;
		if (text[digits] != '\0' && text[digits + 1] != '\0')
			return -EINVAL;
		if (n > BOTTLENECK_RATE_MAX / units[i].times ||
			n * units[i].times < BOTTLENECK_RATE_MIN)
			return -EINVAL;
		b->rate = n * units[i].times;
		return 0;
	}
	return -EINVAL;
}

static void
encode_rate(const void *obj, char *buf, size_t room)
{
	const struct bottleneck_conf *b = obj;
	size_t i = 0;

	while (b->rate % units[i].times != 0)
		i++;
	snprintf(buf, room, "%" PRIu64 "%.1s", b->rate / units[i].times, &units[i].letter);
}

static const struct conf_custom rate = {
	"bits a second, from \"1M\" to \"1000G\": digits and K, M or G (decimal)", decode_rate,
	encode_rate
};

#define BITS24 0xffffff

/* clang-format off */
static const struct conf_name actions[] = {
	{ "drop", IMPAIR_DROP }, { "duplicate", IMPAIR_DUPLICATE }, { "reorder", IMPAIR_REORDER },
	{ "corrupt", IMPAIR_CORRUPT }, { "delay", IMPAIR_DELAY }, { "ce", IMPAIR_CE }, { NULL, 0 },
};
static const struct conf_name frames[] = {
	{ "roce", IMPAIR_FRAMES_ROCE }, { "other", IMPAIR_FRAMES_OTHER }, { "all", IMPAIR_FRAMES_ALL },
	{ NULL, 0 },
};
static const struct conf_name directions[] = {
	{ "any", IMPAIR_ANY }, { "request", IMPAIR_REQUEST }, { "response", IMPAIR_RESPONSE },
	{ NULL, 0 },
};

static const struct conf_field burst_rows[] = {
	ROW_REAL(impair_burst, p, "p", 0, 1, WITH(REQUIRED)),
	ROW_REAL(impair_burst, r, "r", 0, 1, WITH(REQUIRED)),
	ROW_REAL(impair_burst, loss_good, "loss_good", 0, 1, WITH(CONF_F_DEFAULT)),
	ROW_REAL(impair_burst, loss_bad, "loss_bad", 0, 1, WITH(CONF_F_DEFAULT), DEFAULT(1)),
};
static const struct conf_table burst_table = { .name = "burst", TABLE_ROWS(burst_rows),
	.size = sizeof(struct impair_burst), .given_offset = CONF_NO_GIVEN };

static const struct conf_field rule_rows[] = {
	ROW_ENUM(impair_rule, action, "action", actions, WITH(REQUIRED)),
	ROW_ENUM(impair_rule, frames, "frames", frames, GIVEN(IMPAIR_GIVEN_FRAMES)),
	ROW_ENUM(impair_rule, direction, "direction", directions, GIVEN(IMPAIR_GIVEN_DIRECTION)),
	ROW_U32(impair_rule, qp_num, "qp_num", 0, BITS24, GIVEN(IMPAIR_GIVEN_QP_NUM)),
	ROW_U32(impair_rule, psn, "psn", 0, BITS24, GIVEN(IMPAIR_GIVEN_PSN)),
	ROW_U32(impair_rule, psn_last, "psn_last", 0, BITS24, GIVEN(IMPAIR_GIVEN_PSN_LAST)),
	ROW_U8(impair_rule, opcode, "opcode", 0, 255, GIVEN(IMPAIR_GIVEN_OPCODE)),
	ROW_U64(impair_rule, packet, "packet", 1, UINT64_MAX, GIVEN(IMPAIR_GIVEN_PACKET)),
	ROW_REAL(impair_rule, probability, "probability", 0, 1, GIVEN(IMPAIR_GIVEN_PROBABILITY)),
	ROW_OBJECT(impair_rule, burst, "burst", &burst_table, GIVEN(IMPAIR_GIVEN_BURST)),
	ROW_U32(impair_rule, every, "every", 1, UINT32_MAX, GIVEN(IMPAIR_GIVEN_EVERY)),
	ROW_U32(impair_rule, skip, "skip", 0, UINT32_MAX, GIVEN(IMPAIR_GIVEN_SKIP)),
	ROW_U32(impair_rule, times, "times", 0, UINT32_MAX, GIVEN(IMPAIR_GIVEN_TIMES)),
	ROW_U32(impair_rule, delay_us, "delay_us", 0, IMPAIR_DELAY_MAX, GIVEN(IMPAIR_GIVEN_DELAY_US)),
	ROW_U32(impair_rule, jitter_us, "jitter_us", 0, IMPAIR_DELAY_MAX, GIVEN(IMPAIR_GIVEN_JITTER_US)),
	ROW_U32(impair_rule, copies, "copies", 1, IMPAIR_COPIES_MAX, GIVEN(IMPAIR_GIVEN_COPIES)),
	ROW_U32(impair_rule, distance, "distance", 1, IMPAIR_DISTANCE_MAX, GIVEN(IMPAIR_GIVEN_DISTANCE)),
	ROW_U32(impair_rule, hold_us, "hold_us", 1, IMPAIR_DELAY_MAX, GIVEN(IMPAIR_GIVEN_HOLD_US)),
	ROW_U32(impair_rule, offset, "offset", 0, UINT16_MAX, GIVEN(IMPAIR_GIVEN_OFFSET)),
	ROW_U32(impair_rule, bits, "bits", 1, IMPAIR_BITS_MAX, GIVEN(IMPAIR_GIVEN_BITS)),
	ROW_U8(impair_rule, xor_mask, "xor", 1, 255, GIVEN(IMPAIR_GIVEN_XOR)),
};
static const struct conf_table rule_table = { .name = "rule", TABLE_ROWS(rule_rows),
	.size = sizeof(struct impair_rule), .given_offset = offsetof(struct impair_rule, given),
	.sparse = true, .check = conf_check_impair_rule };

static const struct conf_field bottleneck_rows[] = {
	ROW_CUSTOM(bottleneck_conf, rate, "rate", &rate, WITH(REQUIRED)),
	ROW_SIZE32(bottleneck_conf, buffer, "buffer", 1, BOTTLENECK_BUFFER_MAX, WITH(REQUIRED)),
	ROW_SIZE32(bottleneck_conf, kmin, "kmin", 0, BOTTLENECK_BUFFER_MAX, WITH(CONF_F_DEFAULT)),
	ROW_SIZE32(bottleneck_conf, kmax, "kmax", 0, BOTTLENECK_BUFFER_MAX, WITH(CONF_F_DEFAULT)),
	ROW_REAL(bottleneck_conf, pmax, "pmax", 0, 1, WITH(CONF_F_DEFAULT), DEFAULT(1)),
};
const struct conf_table conf_table_bottleneck = { .name = "bottleneck", TABLE_ROWS(bottleneck_rows),
	.size = sizeof(struct bottleneck_conf), .given_offset = CONF_NO_GIVEN,
	.check = conf_check_bottleneck };

static const struct conf_field impair_rows[] = {
	ROW_U64(impair_conf, seed, "seed", 0, UINT64_MAX, WITH(CONF_F_DEFAULT)),
	ROW_U32(impair_conf, held_max, "held_max", 1, IMPAIR_HELD_MAX, WITH(CONF_F_DEFAULT),
		DEFAULT(IMPAIR_HELD_DEFAULT)),
	ROW_U32(impair_conf, log_size, "log_size", 1, IMPAIR_LOG_MAX, WITH(CONF_F_DEFAULT),
		DEFAULT(IMPAIR_LOG_DEFAULT)),
	ROW_ARRAY(impair_conf, rules, n_rules, "rules", &rule_table, 0, IMPAIR_RULES_MAX),
	ROW_OBJECT(impair_conf, bottleneck, "bottleneck", &conf_table_bottleneck, WITH(NULLABLE),
		GIVEN(IMPAIR_HAS_BOTTLENECK)),
};
const struct conf_table conf_table_impair = { .name = "impair", TABLE_ROWS(impair_rows),
	.size = sizeof(struct impair_conf), .given_offset = offsetof(struct impair_conf, given),
	.check = conf_check_impair, .hide = hide_bottleneck };
/* clang-format on */
