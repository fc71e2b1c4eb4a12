/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules as a person writes them: what is allowed, and how they are written back. */
#include "impair_conf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "compiler.h"

#define BITS24 0xffffffu

static const char *const actions[IMPAIR_ACTIONS] = { [IMPAIR_DROP] = "drop",
	[IMPAIR_DUPLICATE] = "duplicate",
	[IMPAIR_REORDER] = "reorder",
	[IMPAIR_CORRUPT] = "corrupt",
	[IMPAIR_DELAY] = "delay",
	[IMPAIR_CE] = "ce" };

const char *
impair_action_name(uint32_t action)
{
	return action < IMPAIR_ACTIONS ? actions[action] : NULL;
}

/* ---- what is allowed ----------------------------------------------------------------------- */

/* false for NaN too. */
static bool
is_probability(double p)
{
	return p >= 0.0 && p <= 1.0;
}

static const char *
match_fault(const struct impair_rule *r)
{
	const uint64_t bth = IMPAIR_GIVEN_QP_NUM | IMPAIR_GIVEN_PSN | IMPAIR_GIVEN_OPCODE;

	if (r->frames > IMPAIR_FRAMES_ALL)
		return "frames must be roce, other or all";
	if (r->direction > IMPAIR_RESPONSE)
		return "direction must be any, request or response";
	if (r->frames == IMPAIR_FRAMES_OTHER &&
		((r->given & bth) != 0 || r->direction != IMPAIR_ANY))
		return "qp_num, psn, opcode and direction are of RoCE packets, frames says other";
	if ((r->given & IMPAIR_GIVEN_QP_NUM) != 0 && r->qp_num > BITS24)
		return "qp_num must be a number from 0 to 16777215";
	if ((r->given & IMPAIR_GIVEN_PSN) != 0 && r->psn > BITS24)
		return "psn must be a number from 0 to 16777215";
	if ((r->given & IMPAIR_GIVEN_PSN_LAST) != 0 && r->psn_last > BITS24)
		return "psn_last must be a number from 0 to 16777215";
	if ((r->given & IMPAIR_GIVEN_PSN_LAST) != 0 && (r->given & IMPAIR_GIVEN_PSN) == 0)
		return "psn_last needs psn, the first of the range";
	return NULL;
}

static const char *
model_fault(const struct impair_rule *r)
{
	const struct impair_burst *b = &r->burst;
	int models = ((r->given & IMPAIR_GIVEN_PROBABILITY) != 0) +
		     ((r->given & IMPAIR_GIVEN_BURST) != 0) + (r->every != 0);

	if (models > 1)
		return "only one of probability, burst and every may be given";
	if ((r->given & IMPAIR_GIVEN_PROBABILITY) != 0 && !is_probability(r->probability))
		return "probability must be from 0.0 to 1.0";
	if ((r->given & IMPAIR_GIVEN_BURST) != 0 &&
		!(is_probability(b->p) && is_probability(b->r) && is_probability(b->loss_good) &&
			is_probability(b->loss_bad)))
		return "burst: p, r, loss_good and loss_bad must be from 0.0 to 1.0";
	return NULL;
}

static const char *
action_fault(const struct impair_rule *r)
{
	if (r->action >= IMPAIR_ACTIONS)
		return "action must be drop, duplicate, reorder, corrupt, delay or ce";
	if (r->delay_us > IMPAIR_DELAY_MAX || r->jitter_us > IMPAIR_DELAY_MAX ||
		r->hold_us > IMPAIR_DELAY_MAX)
		return "delay_us, jitter_us and hold_us must be numbers from 0 to 10000000";
	if (r->action == IMPAIR_DELAY && r->delay_us == 0 && r->jitter_us == 0)
		return "delay needs delay_us or jitter_us";
	if (r->copies > IMPAIR_COPIES_MAX)
		return "copies must be a number from 1 to 8";
	if (r->distance > IMPAIR_DISTANCE_MAX)
		return "distance must be a number from 1 to 255";
	if (r->bits > IMPAIR_BITS_MAX)
		return "bits must be a number from 1 to 8";
	if ((r->given & IMPAIR_GIVEN_OFFSET) != 0 && r->offset > UINT16_MAX)
		return "offset must be a number from 0 to 65535";
	if (r->xor_mask != 0 && (r->given & IMPAIR_GIVEN_OFFSET) == 0)
		return "xor needs offset";
	return NULL;
}

const char *
impair_rule_fault(const struct impair_rule *r)
{
	const char *fault = action_fault(r);

	if (fault == NULL)
		fault = match_fault(r);
	return fault != NULL ? fault : model_fault(r);
}

static void PRINTF(3, 4) say(char *why, size_t room, const char *fmt, ...)
{
	va_list ap;

	if (why == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(why, room, fmt, ap);
	va_end(ap);
}

int
impair_conf_check(const struct impair_conf *conf, char *why, size_t room)
{
	if (conf->n_rules > IMPAIR_RULES_MAX || (conf->n_rules != 0 && conf->rules == NULL)) {
		say(why, room, "rules: at most %d", IMPAIR_RULES_MAX);
		return -EINVAL;
	}
	if (conf->held_max > IMPAIR_HELD_MAX) {
		say(why, room, "held_max must be a number from 1 to %d", IMPAIR_HELD_MAX);
		return -EINVAL;
	}
	if (conf->log_size > IMPAIR_LOG_MAX || (conf->log_size & (conf->log_size - 1)) != 0) {
		say(why, room, "log_size must be a power of two up to %d", IMPAIR_LOG_MAX);
		return -EINVAL;
	}
	if (conf->bottleneck.rate != 0 && impair_bottleneck_fault(&conf->bottleneck) != NULL) {
		say(why, room, "bottleneck: %s", impair_bottleneck_fault(&conf->bottleneck));
		return -EINVAL;
	}
	for (uint32_t i = 0; i < conf->n_rules; i++) {
		const char *fault = impair_rule_fault(&conf->rules[i]);

		if (fault != NULL) {
			say(why, room, "rules/%" PRIu32 ": %s", i, fault);
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- how it is written --------------------------------------------------------------------- */

struct text {
	char *buf;
	size_t room;
	size_t len; /* of what there is to say, which may be more than fits */
};

static void PRINTF(2, 3) add(struct text *t, const char *fmt, ...)
{
	size_t left = t->len < t->room ? t->room - t->len : 0;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(left != 0 ? t->buf + t->len : NULL, left, fmt, ap);
	va_end(ap);
	t->len += n > 0 ? (size_t)n : 0;
}

static void
add_number(struct text *t, const char *key, uint64_t n, bool wanted)
{
	if (wanted)
		add(t, ", \"%s\": %" PRIu64, key, n);
}

static void
print_match(struct text *t, const struct impair_rule *r)
{
	if (r->frames != IMPAIR_FRAMES_ROCE)
		add(t, ", \"frames\": \"%s\"", r->frames == IMPAIR_FRAMES_OTHER ? "other" : "all");
	if (r->direction != IMPAIR_ANY)
		add(t, ", \"direction\": \"%s\"",
			r->direction == IMPAIR_REQUEST ? "request" : "response");
	add_number(t, "qp_num", r->qp_num, (r->given & IMPAIR_GIVEN_QP_NUM) != 0);
	add_number(t, "psn", r->psn, (r->given & IMPAIR_GIVEN_PSN) != 0);
	add_number(t, "psn_last", r->psn_last, (r->given & IMPAIR_GIVEN_PSN_LAST) != 0);
	add_number(t, "opcode", r->opcode, (r->given & IMPAIR_GIVEN_OPCODE) != 0);
	add_number(t, "packet", r->packet, r->packet != 0);
}

/* 17 digits give every double back as it was. */
static void
print_model(struct text *t, const struct impair_rule *r)
{
	const struct impair_burst *b = &r->burst;

	if ((r->given & IMPAIR_GIVEN_PROBABILITY) != 0)
		add(t, ", \"probability\": %.17g", r->probability);
	if ((r->given & IMPAIR_GIVEN_BURST) != 0)
		add(t, ", \"burst\": {\"p\": %.17g, \"r\": %.17g, \"loss_good\": %.17g, \"loss_bad\": %.17g}",
			b->p, b->r, b->loss_good, b->loss_bad);
	add_number(t, "every", r->every, r->every != 0);
	add_number(t, "skip", r->skip, r->skip != 0);
	add_number(t, "times", r->times, r->times != 0);
}

int
impair_rule_print(const struct impair_rule *rule, char *buf, size_t room)
{
	const struct impair_rule *r = rule;
	struct text t = { .buf = buf, .room = room };

	if (room != 0)
		buf[0] = '\0';
	add(&t, "{\"action\": \"%s\"", r->action < IMPAIR_ACTIONS ? actions[r->action] : "?");
	print_match(&t, r);
	print_model(&t, r);
	add_number(&t, "delay_us", r->delay_us, r->delay_us != 0);
	add_number(&t, "jitter_us", r->jitter_us, r->jitter_us != 0);
	add_number(&t, "copies", r->copies, r->copies > 1);
	add_number(&t, "distance", r->distance, r->distance > 1);
	add_number(&t, "hold_us", r->hold_us, r->hold_us != 0);
	add_number(&t, "offset", r->offset, (r->given & IMPAIR_GIVEN_OFFSET) != 0);
	add_number(&t, "bits", r->bits, r->bits > 1);
	add_number(&t, "xor", r->xor_mask, r->xor_mask != 0);
	add(&t, "}");
	return (int)t.len;
}
