/* SPDX-License-Identifier: BSD-3-Clause */
/* When rules strike and what they decide: frequencies, runs, seeds, combinations. */
#include "packets.h"

#include "impair_rng.h"

/** How many of n packets one rule drops. */
static uint32_t
drops_of(struct impair_rule *r, uint64_t seed, uint32_t n, uint32_t burst)
{
	struct impair_pkt *p = stream(n);
	struct impair_verdict *v = verdicts(n);
	uint32_t drops = 0;

	run_rules(seed, r, 1, p, n, burst, v);
	for (uint32_t i = 0; i < n; i++)
		drops += is_dropped(&v[i]);
	free(p);
	free(v);
	return drops;
}

/* Five standard deviations either way: a fixed seed passes or does not, whatever the day. */
static void
uniform_strikes_as_often_as_said(void **state)
{
	static const struct {
		double p;
		uint32_t low, high; /* of 200000 */
	} rows[] = { { 0.0, 0, 0 }, { 0.01, 1778, 2222 }, { 0.3, 58976, 61024 },
		{ 0.999, 199730, 199870 }, { 1.0, 200000, 200000 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct impair_rule r = { .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_DROP,
			.probability = rows[i].p };

		assert_in_range(drops_of(&r, 7, 200000, 32), rows[i].low, rows[i].high);
	}
}

static void
bursts_have_the_length_and_share_of_gilbert_elliott(void **state)
{
	const uint32_t n = 300000;
	struct impair_rule r = { .given = IMPAIR_GIVEN_BURST,
		.action = IMPAIR_DROP,
		.burst = { .p = 0.01, .r = 0.3, .loss_good = 0.0, .loss_bad = 1.0 } };
	struct impair_pkt *p = stream(n);
	struct impair_verdict *v = verdicts(n);
	uint32_t drops = 0, runs = 0, singles = 0;

	(void)state;
	run_rules(1, &r, 1, p, n, 32, v);
	for (uint32_t i = 1; i + 1 < n; i++) {
		drops += is_dropped(&v[i]);
		if (is_dropped(&v[i]) && !is_dropped(&v[i - 1])) {
			runs++;
			singles += !is_dropped(&v[i + 1]);
		}
	}
	/* Share p / (p + r) = 3.226 %; runs of 1 / r = 3.33 packets, 30 % of them of one. */
	assert_in_range(drops, n * 29 / 1000, n * 36 / 1000);
	assert_in_range(drops * 100 / runs, 307, 360);
	assert_in_range(singles * 1000 / runs, 257, 343);
	free(p);
	free(v);
}

static void
burst_losses_follow_the_state(void **state)
{
	static const struct {
		struct impair_burst b;
		uint32_t low, high; /* of 10000 */
	} rows[] = {
		{ { 0.0, 1.0, 0.0, 1.0 }, 0, 0 },       /* never bad */
		{ { 1.0, 0.0, 0.0, 1.0 }, 9999, 9999 }, /* bad from the second packet on */
		{ { 1.0, 1.0, 0.0, 1.0 }, 5000, 5000 }, /* by turns, good first */
		{ { 1.0, 1.0, 1.0, 0.0 }, 5000, 5000 },
		{ { 0.0, 0.0, 1.0, 0.0 }, 10000, 10000 }, /* good loses too */
		{ { 1.0, 0.0, 0.0, 0.5 }, 4750, 5250 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct impair_rule r = {
			.given = IMPAIR_GIVEN_BURST, .action = IMPAIR_DROP, .burst = rows[i].b
		};

		assert_in_range(drops_of(&r, 3, 10000, 17), rows[i].low, rows[i].high);
	}
}

static void
every_skip_and_times_count_matching_packets(void **state)
{
	static const struct {
		uint32_t every, skip, times;
		uint32_t hit[4]; /* which of 12 packets, from 1 on; 0: no more */
	} rows[] = {
		{ 4, 0, 0, { 4, 8, 12 } },
		{ 4, 1, 0, { 5, 9 } },
		{ 4, 0, 1, { 4 } },
		{ 0, 0, 1, { 1 } },
		{ 0, 2, 3, { 3, 4, 5 } },
		{ 5, 2, 2, { 7, 12 } },
		{ 100, 0, 0, { 0 } },
	};
	struct impair_pkt *p = stream(12);
	struct impair_verdict *v = verdicts(12);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct impair_rule r = { .action = IMPAIR_DROP,
			.every = rows[i].every,
			.skip = rows[i].skip,
			.times = rows[i].times };
		uint32_t want = 0;

		run_rules(0, &r, 1, p, 12, 5, v);
		for (uint32_t k = 0; k < 12; k++) {
			bool hit = want < 4 && rows[i].hit[want] == k + 1;

			want += hit;
			assert_int_equal(is_dropped(&v[k]), hit);
		}
	}
	free(p);
	free(v);
}

/* ---- seeds --------------------------------------------------------------------------------- */

/* Published outputs of SplitMix64 for the seed 1234567. */
static void
numbers_are_splitmix64(void **state)
{
	static const uint64_t want[] = { UINT64_C(6457827717110365317),
		UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
		UINT64_C(4593380528125082431), UINT64_C(16408922859458223821) };
	uint64_t s = 1234567;
	uint32_t seen[7] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_true(impair_rng_next(&s) == want[i]);
	for (uint32_t i = 0; i < 70000; i++) {
		uint64_t r = impair_rng_below(&s, 7);

		assert_in_range(r, 0, 6);
		seen[r]++;
	}
	for (uint32_t i = 0; i < 7; i++)
		assert_in_range(seen[i], 9500, 10500);
	assert_int_equal(impair_rng_below(&s, 1), 0);
	assert_true(impair_rng_stream(1, 0) != impair_rng_stream(1, 1));
	assert_true(impair_rng_stream(1, 0) != impair_rng_stream(2, 0));
}

static struct impair_rule *
some_of_everything(uint32_t *n)
{
	static struct impair_rule r[] = {
		{ .given = IMPAIR_GIVEN_PROBABILITY, .action = IMPAIR_DROP, .probability = 0.1 },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_CORRUPT,
			.probability = 0.1,
			.bits = 3 },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_DELAY,
			.probability = 0.2,
			.delay_us = 5,
			.jitter_us = 100 },
		{ .given = IMPAIR_GIVEN_BURST,
			.action = IMPAIR_DUPLICATE,
			.copies = 2,
			.burst = { 0.1, 0.5, 0.01, 0.9 } },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_REORDER,
			.probability = 0.1,
			.distance = 3 },
		{ .action = IMPAIR_CE, .every = 9 },
	};

	*n = ARRAY_LEN(r);
	return r;
}

static void
same_seed_and_packets_same_decisions_however_cut(void **state)
{
	static const uint32_t bursts[] = { 1, 2, 31, 32, 64, 5000 };
	const uint32_t n = 5000;
	struct impair_pkt *p = stream(n);
	struct impair_verdict *first = verdicts(n);
	struct impair_verdict *v = verdicts(n);
	uint32_t n_rules;
	struct impair_rule *r = some_of_everything(&n_rules);

	(void)state;
	run_rules(42, r, n_rules, p, n, 32, first);
	for (size_t i = 0; i < ARRAY_LEN(bursts); i++) {
		run_rules(42, r, n_rules, p, n, bursts[i], v);
		assert_memory_equal(first, v, n * sizeof(*v));
	}
	run_rules(43, r, n_rules, p, n, 32, v);
	assert_memory_not_equal(first, v, n * sizeof(*v));
	free(p);
	free(first);
	free(v);
}

static void
a_rule_decides_alike_whatever_others_do(void **state)
{
	const uint32_t n = 3000;
	struct impair_rule r[2] = {
		{ .given = IMPAIR_GIVEN_PROBABILITY, .action = IMPAIR_CE, .probability = 0.2 },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_DUPLICATE,
			.probability = 0.5 },
	};
	struct impair_pkt *p = stream(n);
	struct impair_verdict *alone = verdicts(n);
	struct impair_verdict *both = verdicts(n);
	uint32_t hits = 0;

	(void)state;
	run_rules(5, r, 1, p, n, 32, alone);
	run_rules(5, r, 2, p, n, 32, both);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(alone[i].actions & IMPAIR_BIT(IMPAIR_CE),
			both[i].actions & IMPAIR_BIT(IMPAIR_CE));
		hits += both[i].actions == (IMPAIR_BIT(IMPAIR_CE) | IMPAIR_BIT(IMPAIR_DUPLICATE));
	}
	assert_in_range(hits, 200, 400); /* independent: a tenth */
	free(p);
	free(alone);
	free(both);
}

/* ---- what is decided ------------------------------------------------------------------------ */

static void
a_drop_wins_and_is_all_that_is_logged(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_CORRUPT, .bits = 8 },
		{ .action = IMPAIR_CORRUPT, .bits = 7 },
		{ .action = IMPAIR_DROP },
		{ .action = IMPAIR_CORRUPT, .bits = 8 },
		{ .action = IMPAIR_DELAY, .delay_us = 10 },
		{ .action = IMPAIR_DROP },
	};
	struct impair_model *m = model_of(1, r, ARRAY_LEN(r));
	struct impair_pkt p = roce(17, 42, SEND_ONLY);
	struct impair_verdict v;
	struct impair_record rec[4];
	uint64_t from = 0;

	(void)state;
	impair_model_decide(m, &p, 1, &v);
	assert_int_equal(v.actions, IMPAIR_BIT(IMPAIR_DROP));
	assert_int_equal(v.n_flips, 0);
	assert_int_equal(v.delay_us, 0);
	assert_int_equal(impair_log_read(impair_model_log(m), &from, rec, 4), 1);
	assert_int_equal(rec[0].action, IMPAIR_DROP);
	assert_int_equal(rec[0].rule, 2);
	assert_int_equal(rec[0].packet, 1);
	assert_int_equal(rec[0].qpn, 17);
	assert_int_equal(rec[0].psn, 42);
	assert_int_equal(rec[0].opcode, SEND_ONLY);
	assert_int_equal(rec[0].nth, 1);
	impair_model_destroy(m);
}

static void
actions_of_several_rules_add_up_to_a_bound(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_DELAY, .delay_us = 10 },
		{ .action = IMPAIR_DELAY, .delay_us = 7 },
		{ .action = IMPAIR_DUPLICATE, .copies = 2, .delay_us = 50 },
		{ .action = IMPAIR_DUPLICATE },
		{ .action = IMPAIR_REORDER, .distance = 4, .hold_us = 77 },
		{ .action = IMPAIR_CE },
		{ .action = IMPAIR_CORRUPT, .bits = 8 },
		{ .action = IMPAIR_CORRUPT, .bits = 3 }, /* 17 records: too many */
		{ .action = IMPAIR_CORRUPT,
			.given = IMPAIR_GIVEN_OFFSET,
			.offset = 60,
			.xor_mask = 0x81 },
		{ .action = IMPAIR_CORRUPT, .bits = 1 },
		{ .action = IMPAIR_CORRUPT, .bits = 1 }, /* the seventeenth */
		{ .action = IMPAIR_DELAY, .delay_us = 1000 },
	};
	struct impair_pkt p = roce(17, 42, SEND_ONLY);
	struct impair_verdict v;

	(void)state;
	run_rules(9, r, ARRAY_LEN(r), &p, 1, 1, &v);
	assert_int_equal(v.actions, IMPAIR_BIT(IMPAIR_DELAY) | IMPAIR_BIT(IMPAIR_DUPLICATE) |
					    IMPAIR_BIT(IMPAIR_REORDER) | IMPAIR_BIT(IMPAIR_CE) |
					    IMPAIR_BIT(IMPAIR_CORRUPT));
	assert_int_equal(v.delay_us, 17);
	assert_int_equal(v.copies, 3);
	assert_int_equal(v.copy_delay_us, 50);
	assert_int_equal(v.distance, 4);
	assert_int_equal(v.hold_us, 77);
	assert_int_equal(v.n_flips, 10);
	assert_int_equal(v.flips[8].offset, 60);
	assert_int_equal(v.flips[8].mask, 0x81);
}

static void
flips_are_different_bits_of_the_frame(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_CORRUPT, .bits = 8 },
		{ .action = IMPAIR_CORRUPT, .given = IMPAIR_GIVEN_OFFSET, .offset = 5, .bits = 8 },
	};
	static bool hit[62 * 8];
	const uint32_t n = 2000;
	struct impair_pkt *p = stream(n);
	struct impair_verdict *v = verdicts(n);

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		p[i].len = 62;
	run_rules(11, r, 2, p, n, 32, v);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t frame[62] = { 0 };
		uint32_t ones = 0;

		assert_int_equal(v[i].n_flips, 16);
		for (uint32_t k = 0; k < 8; k++) {
			assert_true(v[i].flips[k].offset < 62);
			assert_true((v[i].flips[k].mask & (v[i].flips[k].mask - 1)) == 0);
			frame[v[i].flips[k].offset] ^= v[i].flips[k].mask;
			hit[v[i].flips[k].offset * 8 + __builtin_ctz(v[i].flips[k].mask)] = true;
		}
		for (uint32_t k = 0; k < 62; k++)
			ones += (uint32_t)__builtin_popcount(frame[k]);
		assert_int_equal(ones, 8);
		/* All eight bits of one byte: each of them once. */
		frame[0] = 0;
		for (uint32_t k = 8; k < 16; k++) {
			assert_int_equal(v[i].flips[k].offset, 5);
			frame[0] ^= v[i].flips[k].mask;
		}
		assert_int_equal(frame[0], 0xff);
	}
	for (uint32_t i = 0; i < ARRAY_LEN(hit); i++)
		assert_true(hit[i]); /* no bit is out of reach */
	free(p);
	free(v);
}

static void
a_rule_that_cannot_act_does_not_fire(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_CORRUPT,
			.given = IMPAIR_GIVEN_OFFSET,
			.offset = 100,
			.xor_mask = 1,
			.times = 1,
			.frames = IMPAIR_FRAMES_ALL },
		{ .action = IMPAIR_CE, .times = 1, .frames = IMPAIR_FRAMES_ALL },
	};
	struct impair_pkt p[3] = { other(), roce(17, 1, SEND_ONLY), roce(17, 2, SEND_ONLY) };
	struct impair_pkt nothing = { 0 };
	struct impair_verdict v[3];

	(void)state;
	run_rules(0, r, 2, p, 3, 3, v);
	assert_int_equal(v[0].actions, 0); /* 60 bytes, no IP */
	assert_int_equal(v[1].actions, IMPAIR_BIT(IMPAIR_CORRUPT) | IMPAIR_BIT(IMPAIR_CE));
	assert_int_equal(v[2].actions, 0); /* once is enough */

	r[0] = (struct impair_rule){
		.action = IMPAIR_CORRUPT, .frames = IMPAIR_FRAMES_ALL, .bits = 8
	};
	run_rules(0, r, 1, &nothing, 1, 1, v); /* no bit to flip */
	assert_int_equal(v[0].actions, 0);
}

static void
jitter_is_uniform_above_the_delay(void **state)
{
	struct impair_rule r = { .action = IMPAIR_DELAY, .delay_us = 100, .jitter_us = 9 };
	const uint32_t n = 20000;
	struct impair_pkt *p = stream(n);
	struct impair_verdict *v = verdicts(n);
	uint32_t seen[10] = { 0 };

	(void)state;
	run_rules(2, &r, 1, p, n, 32, v);
	for (uint32_t i = 0; i < n; i++) {
		assert_in_range(v[i].delay_us, 100, 109);
		seen[v[i].delay_us - 100]++;
	}
	for (uint32_t i = 0; i < 10; i++)
		assert_in_range(seen[i], 1780, 2220);
	free(p);
	free(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uniform_strikes_as_often_as_said),
		cmocka_unit_test(bursts_have_the_length_and_share_of_gilbert_elliott),
		cmocka_unit_test(burst_losses_follow_the_state),
		cmocka_unit_test(every_skip_and_times_count_matching_packets),
		cmocka_unit_test(numbers_are_splitmix64),
		cmocka_unit_test(same_seed_and_packets_same_decisions_however_cut),
		cmocka_unit_test(a_rule_decides_alike_whatever_others_do),
		cmocka_unit_test(a_drop_wins_and_is_all_that_is_logged),
		cmocka_unit_test(actions_of_several_rules_add_up_to_a_bound),
		cmocka_unit_test(flips_are_different_bits_of_the_frame),
		cmocka_unit_test(a_rule_that_cannot_act_does_not_fire),
		cmocka_unit_test(jitter_is_uniform_above_the_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
