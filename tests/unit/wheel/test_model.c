/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wheel against a model that is plainly right: an array that is searched. A failing run prints
 * its seed and step; the sequence is the same each time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../clib/rng.h"
#include "wheel.h"

#define NODES 200
#define OPS   100000

static struct wheel w;
static struct wheel_node nodes[NODES];

static struct {
	bool armed;
	tick_t deadline;
} model[NODES];

static struct rng rng;

/* All orders of magnitude up to 2^top alike. */
static tick_t
random_distance(unsigned int top)
{
	return rng_next(&rng) >> (48 - 1 - below(&rng, top));
}

static tick_t
model_first(void)
{
	tick_t first = WHEEL_NEVER;

	for (unsigned int i = 0; i < NODES; i++) {
		if (model[i].armed && model[i].deadline < first)
			first = model[i].deadline;
	}
	return first;
}

/* @return NULL, or what is wrong with what the wheel handed out. */
static const char *
check_fired(tick_t now, struct wheel_node **out, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		size_t i = (size_t)(out[k] - nodes);

		if (i >= NODES || !model[i].armed)
			return "handed out, but not armed";
		if (model[i].deadline > now)
			return "early";
		if (wheel_is_armed(out[k]))
			return "handed out and still armed";
		model[i].armed = false;
	}
	return NULL;
}

static const char *
advance(tick_t now, uint32_t max)
{
	struct wheel_node *out[NODES];
	uint32_t n = wheel_advance(&w, now, out, max);
	const char *wrong = check_fired(now, out, n);

	if (n > max)
		return "more than asked for";
	if (wrong != NULL)
		return wrong;
	if (wheel_next(&w) > now && model_first() <= now)
		return "due, and not handed out";
	if (wheel_next(&w) <= now && n < max && model_first() > now)
		return "says it is behind, and is not";
	return NULL;
}

static const char *
one_operation(tick_t *now)
{
	unsigned int i = below(&rng, NODES);
	unsigned int op = below(&rng, 16);
	tick_t at;

	if (op < 8) { /* arm or re-arm, one in eight in the past */
		at = op == 0 ? *now - random_distance(8) : *now + random_distance(36);
		wheel_arm(&w, &nodes[i], at);
		model[i].armed = true;
		model[i].deadline = at;
	} else if (op < 11) {
		wheel_cancel(&w, &nodes[i]);
		model[i].armed = false;
	} else if (op < 15) {
		if (op == 14 && wheel_next(&w) != WHEEL_NEVER && wheel_next(&w) > *now)
			*now = wheel_next(&w);
		else
			*now += random_distance(op == 13 ? 34 : 9);
		return advance(*now, rarely(&rng, 3) ? 1 : NODES);
	} else {
		do {
			const char *wrong = advance(*now, 7);

			if (wrong != NULL)
				return wrong;
		} while (wheel_next(&w) <= *now);
	}
	if (wheel_is_armed(&nodes[i]) != model[i].armed)
		return "armed or not";
	if (wheel_next(&w) > model_first() && model_first() >= *now)
		return "would sleep too long";
	return NULL;
}

static void
run(uint64_t seed, tick_t start)
{
	tick_t now = start;

	rng.x = seed;
	memset(nodes, 0, sizeof(nodes));
	memset(model, 0, sizeof(model));
	wheel_init(&w, start);
	for (unsigned int step = 0; step < OPS; step++) {
		const char *wrong = one_operation(&now);

		if (wrong != NULL)
			fail_msg("seed %llu step %u: %s", (unsigned long long)seed, step, wrong);
	}
	while (wheel_next(&w) != WHEEL_NEVER) { /* all that is left comes, in the end */
		const char *wrong;

		now = wheel_next(&w) > now ? wheel_next(&w) : now;
		wrong = advance(now, 3);
		if (wrong != NULL)
			fail_msg("seed %llu at the end: %s", (unsigned long long)seed, wrong);
	}
	assert_true(model_first() == WHEEL_NEVER);
	for (unsigned int i = 0; i < NODES; i++)
		assert_false(wheel_is_armed(&nodes[i]));
}

static void
agrees_from_zero(void **state UNUSED)
{
	run(20240229, 1000);
}

static void
agrees_across_level_borders(void **state UNUSED)
{
	run(7, (1ull << 36) - 5);
	run(11, (1ull << 48) - (1ull << 34));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_from_zero),
		cmocka_unit_test(agrees_across_level_borders),
	};

	return cmocka_run_group_tests_name("wheel_model", tests, NULL, NULL);
}
