/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything at once on a port: the books, the limits, and a failure that replays as a script. */
#include "impair_bed.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "script.h"

#define FRAMES 20000

static struct impair_rule everything[] = {
	{ .action = IMPAIR_DROP, .given = IMPAIR_GIVEN_BURST, .burst = { 0.02, 0.3, 0.001, 0.9 } },
	{ .action = IMPAIR_DUPLICATE,
		.given = IMPAIR_GIVEN_PROBABILITY,
		.probability = 0.1,
		.copies = 2,
		.delay_us = 9 },
	{ .action = IMPAIR_DUPLICATE, .given = IMPAIR_GIVEN_PROBABILITY, .probability = 0.1 },
	{ .action = IMPAIR_REORDER,
		.given = IMPAIR_GIVEN_PROBABILITY,
		.probability = 0.2,
		.distance = 3,
		.hold_us = 40 },
	{ .action = IMPAIR_DELAY,
		.given = IMPAIR_GIVEN_PROBABILITY,
		.probability = 0.3,
		.delay_us = 1,
		.jitter_us = 30 },
	{ .action = IMPAIR_CE, .every = 7 },
	/* In the last payload bytes: the PSN, by which frames are known here, stays. */
	{ .action = IMPAIR_CORRUPT,
		.given = IMPAIR_GIVEN_OFFSET,
		.offset = 77,
		.bits = 2,
		.every = 5 },
};

/* Frames of four QPs in bursts of changing size, polled in bursts of another. */
static void
run(uint32_t frames, uint8_t *times_out)
{
	uint32_t seed = 77, sent = 0;

	for (uint32_t idle = 0; idle < 200; idle += sent == frames) {
		uint32_t burst;

		seed = seed * 1664525 + 1013904223;
		burst = (seed >> 8) % 200;
		for (uint32_t i = 0; i < burst && sent < frames; i++, sent++)
			bed_send(17 + sent % 4, sent);
		bed_poll((uint16_t)(1 + (seed >> 16) % 300));
		for (uint32_t i = 0; i < bed.n; i++) {
			assert_true(bed_psn(i) < frames);
			times_out[bed_psn(i)]++;
		}
		bed.now += (seed >> 28) * TIME_NS_PER_US;
	}
}

static void
every_frame_is_out_or_dropped_and_none_is_lost(void **state)
{
	uint8_t *times_out = calloc(FRAMES, 1);
	struct impair_counters c;
	uint64_t missing = 0, extra = 0;

	(void)state;
	assert_non_null(times_out);
	bed_start_rules(4, everything, ARRAY_LEN(everything));
	run(FRAMES, times_out);
	c = bed_counters();
	for (uint32_t i = 0; i < FRAMES; i++) {
		missing += times_out[i] == 0;
		extra += times_out[i] != 0 ? times_out[i] - 1u : 0;
		assert_true(times_out[i] <= 4);
	}
	assert_int_equal(c.held, 0);
	assert_int_equal(c.in, FRAMES);
	assert_int_equal(missing, c.dropped);
	assert_int_equal(extra, c.duplicated);
	assert_in_range(c.dropped, FRAMES * 3 / 100, FRAMES * 10 / 100);
	assert_in_range(c.duplicated, FRAMES * 20 / 100, FRAMES * 35 / 100);
	assert_in_range(c.reordered, FRAMES * 10 / 100, FRAMES * 25 / 100);
	assert_in_range(c.delayed, FRAMES * 20 / 100, FRAMES * 35 / 100);
	assert_in_range(c.corrupted, FRAMES * 15 / 100, FRAMES * 21 / 100);
	assert_in_range(c.ce_marked, FRAMES * 11 / 100, FRAMES * 15 / 100);
	bed_stop();
	free(times_out);
}

static void
the_books_are_right_at_the_smallest_limits(void **state)
{
	static const uint32_t limits[] = { 1, 2, 5 };
	uint8_t *times_out = calloc(FRAMES, 1);

	(void)state;
	assert_non_null(times_out);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		const struct impair_conf conf = {
			.held_max = limits[i], .n_rules = ARRAY_LEN(everything), .rules = everything
		};

		bed_start(&conf);
		run(FRAMES, times_out);
		assert_true(bed_counters().limited > 1000);
		bed_stop();
	}
	free(times_out);
}

static void
the_limit_on_held_packets_holds(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_DELAY, .delay_us = 1000 },
		{ .action = IMPAIR_DUPLICATE, .copies = 8 },
		{ .action = IMPAIR_REORDER, .given = IMPAIR_GIVEN_PROBABILITY, .probability = 0.5 },
	};
	const struct impair_conf conf = { .held_max = 40, .n_rules = 3, .rules = r };
	struct impair_counters c;
	uint32_t psn_value = 0;

	(void)state;
	bed_start(&conf);
	for (uint32_t round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 150; i++)
			bed_send(17, psn_value++);
		bed_poll(200); /* not so few that copies alone would fill it */
		assert_true(bed_counters().held <= 40);
		assert_true(bed.n >= 100); /* the rest passes */
		bed.now += 100 * TIME_NS_PER_US;
	}
	c = bed_counters();
	assert_true(c.limited > 10000);
	/* Ten times over, 40 places were taken by some packets and eight copies of each. */
	assert_in_range(c.duplicated + c.delayed, 360, 440);
	assert_in_range(c.duplicated, 300, 400);
	bed_stop();
}

/* Copies that a pool cannot give are not made; nothing else suffers. */
static void
an_empty_pool_costs_copies_only(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_DUPLICATE, .copies = 3 },
		{ .action = IMPAIR_CORRUPT,
			.given = IMPAIR_GIVEN_OFFSET,
			.offset = 60,
			.xor_mask = 1 },
	};
	static struct rte_mbuf *hoard[8192];
	struct rte_mbuf *shared;
	uint32_t n = 0;

	(void)state;
	bed_start_rules(0, r, 2);
	shared = bed_frame(17, 1, SEND_ONLY, false);
	rte_mbuf_refcnt_update(shared, 1);
	bed_put(shared);
	bed_send(17, 2);
	while (n < 8192 && (hoard[n] = rte_pktmbuf_alloc(bed.pool)) != NULL)
		n++;
	bed_poll(32);
	bed_expect(1, 2);
	assert_int_equal(bed_counters().no_mbuf, 7);
	assert_int_equal(bed_counters().corrupted, 1);
	assert_int_equal(*rte_pktmbuf_mtod_offset(bed.m[0], uint8_t *, 60), 0);
	assert_int_equal(*rte_pktmbuf_mtod_offset(bed.m[1], uint8_t *, 60), 1);
	rte_pktmbuf_free_bulk(hoard, n);
	rte_pktmbuf_free(shared);
	bed_stop();
}

static void
what_was_lost_at_random_is_lost_again_by_script(void **state)
{
	struct impair_rule random[] = {
		{ .action = IMPAIR_DROP, .given = IMPAIR_GIVEN_PROBABILITY, .probability = 0.05 },
		{ .action = IMPAIR_DUPLICATE,
			.given = IMPAIR_GIVEN_PROBABILITY,
			.probability = 0.02 },
	};
	const uint32_t frames = 5000;
	uint8_t *first = calloc(frames, 1), *again = calloc(frames, 1), *other_seed;
	struct impair_rule *exact = calloc(IMPAIR_RULES_MAX, sizeof(*exact));
	char *text;
	uint32_t n;
	int len;

	(void)state;
	other_seed = calloc(frames, 1);
	assert_true(first != NULL && again != NULL && exact != NULL && other_seed != NULL);
	bed_start_rules(8, random, 2);
	run(frames, first);
	len = impair_log_script(bed.im, NULL, 0);
	text = malloc((size_t)len + 1);
	assert_non_null(text);
	assert_int_equal(impair_log_script(bed.im, text, (size_t)len + 1), len);
	assert_int_equal(bed_counters().dropped + bed_counters().duplicated,
		n = script_rules(text, exact, IMPAIR_RULES_MAX));
	bed_stop();
	assert_in_range(n, 250, 450);

	bed_start_rules(9, random, 2);
	run(frames, other_seed);
	bed_stop();
	assert_memory_not_equal(first, other_seed, frames);
	bed_start_rules(9, exact, n);
	run(frames, again);
	bed_stop();
	assert_memory_equal(first, again, frames);
	free(first);
	free(again);
	free(other_seed);
	free(exact);
	free(text);
}

/* ---- rules change under way ------------------------------------------------------------------ */

static _Atomic bool control_done;

/* What the control lcore does, as fast as it can. */
static void *
control(void *arg)
{
	struct impair_rule late = { .action = IMPAIR_DELAY, .delay_us = 1 };
	const struct impair_conf confs[2] = {
		{ .n_rules = ARRAY_LEN(everything), .rules = everything, .log_size = 16 },
		{ .n_rules = 1, .rules = &late, .log_size = 16 },
	};
	uint32_t *bad = arg;

	for (uint32_t i = 0; i < 200; i++) {
		struct impair_record rec[32];
		struct impair_counters c = { 0 };
		uint64_t from = 0;
		uint32_t n;

		*bad += impair_set(bed.im, &confs[i % 2]) != 0;
		for (uint32_t k = 0; k < 20; k++) {
			n = impair_log(bed.im, &from, rec, 32);
			*bad += n > 16;
			/* No record is half one packet and half another. */
			for (uint32_t r = 0; r < n; r++)
				*bad += rec[r].qpn != 17 + rec[r].psn % 4;
		}
		impair_read(bed.im, &c);
		*bad += c.held > IMPAIR_HELD_DEFAULT;
		/* Every other time the rules are in use before the next ones come. */
		for (uint64_t in = c.in; i % 2 == 0 && c.in < in + 64; impair_read(bed.im, &c))
			sched_yield();
		*bad += impair_get(bed.im)->n_rules != confs[i % 2].n_rules;
	}
	atomic_store(&control_done, true);
	return NULL;
}

static void
control_may_set_and_read_while_the_poller_polls(void **state)
{
	const struct impair_conf first = { .log_size = 16 };
	uint32_t sent = 0, bad = 0;
	pthread_t thread;

	(void)state;
	atomic_store(&control_done, false);
	bed_start(&first);
	assert_int_equal(pthread_create(&thread, NULL, control, &bad), 0);
	while (!atomic_load(&control_done)) {
		for (uint32_t i = 0; i < 32; i++, sent++)
			bed_send(17 + sent % 4, sent & 0xffffff);
		bed_poll(200);
		bed.now += TIME_NS_PER_US;
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(bad, 0);
	bed_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_is_out_or_dropped_and_none_is_lost),
		cmocka_unit_test(the_books_are_right_at_the_smallest_limits),
		cmocka_unit_test(the_limit_on_held_packets_holds),
		cmocka_unit_test(an_empty_pool_costs_copies_only),
		cmocka_unit_test(what_was_lost_at_random_is_lost_again_by_script),
		cmocka_unit_test(control_may_set_and_read_while_the_poller_polls),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
