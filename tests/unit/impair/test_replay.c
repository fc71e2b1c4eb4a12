/* SPDX-License-Identifier: BSD-3-Clause */
/* What was decided at random is decided again by the rules that the log prints. */
#include <stdio.h>

#include "script.h"

#define N 6000

/* Retransmissions: a window of few PSNs, so that every packet comes again and again. */
static struct impair_pkt *
repetitive(uint32_t n, uint32_t seed)
{
	struct impair_pkt *p = calloc(n, sizeof(*p));

	assert_non_null(p);
	for (uint32_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = roce(17 + (seed >> 30), i / 40 + (seed >> 24) % 8,
			(seed >> 20) % 4 == 0 ? ACK : SEND_ONLY);
		if (seed >> 10 << 26 == 0)
			p[i] = other();
	}
	return p;
}

static uint32_t
script_of(const struct impair_model *m, struct impair_rule *rules, uint32_t max)
{
	int len = impair_log_print(impair_model_log(m), NULL, 0);
	char *text = malloc((size_t)len + 1);
	uint32_t n;

	assert_true(len > 0);
	assert_non_null(text);
	assert_int_equal(impair_log_print(impair_model_log(m), text, (size_t)len + 1), len);
	assert_int_equal(strlen(text), len);
	n = script_rules(text, rules, max);
	free(text);
	return n;
}

static void
a_random_run_replays_as_exact_rules(void **state)
{
	static struct impair_rule random[] = {
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_DROP,
			.probability = 0.05,
			.frames = IMPAIR_FRAMES_ALL },
		{ .given = IMPAIR_GIVEN_BURST,
			.action = IMPAIR_DROP,
			.burst = { 0.01, 0.3, 0, 1 } },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_CORRUPT,
			.bits = 2,
			.probability = 0.05,
			.frames = IMPAIR_FRAMES_ALL },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_DELAY,
			.delay_us = 3,
			.jitter_us = 500,
			.probability = 0.05 },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_DELAY,
			.jitter_us = 2, /* one of three is not delayed */
			.probability = 0.05 },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_DUPLICATE,
			.copies = 3,
			.delay_us = 8,
			.probability = 0.05 },
		{ .given = IMPAIR_GIVEN_PROBABILITY,
			.action = IMPAIR_REORDER,
			.distance = 5,
			.hold_us = 90,
			.probability = 0.05 },
		{ .given = IMPAIR_GIVEN_PROBABILITY, .action = IMPAIR_CE, .probability = 0.05 },
	};
	struct impair_pkt *p = repetitive(N, 1);
	struct impair_verdict *first = verdicts(N);
	struct impair_verdict *again = verdicts(N);
	struct impair_rule *exact = calloc(IMPAIR_RULES_MAX, sizeof(*exact));
	struct impair_conf conf = { .rules = exact };
	struct impair_model *m = model_of(99, random, ARRAY_LEN(random));
	uint32_t n, drops = 0, second_or_later = 0;

	(void)state;
	assert_non_null(exact);
	impair_model_decide(m, p, N, first);
	n = script_of(m, exact, IMPAIR_RULES_MAX);
	impair_model_destroy(m);
	assert_in_range(n, 1000, IMPAIR_RULES_MAX);
	for (uint32_t i = 0; i < n; i++) {
		second_or_later += exact[i].skip != 0;
		assert_int_equal(exact[i].times, 1);
	}
	assert_true(second_or_later > 500);
	conf.n_rules = n;
	assert_int_equal(impair_conf_check(&conf, NULL, 0), 0);

	/* Exact rules are not random: the seed is of no matter. */
	run_rules(12345, exact, n, p, N, 32, again);
	for (uint32_t i = 0; i < N; i++) {
		drops += is_dropped(&first[i]);
		assert_memory_equal(&first[i], &again[i], sizeof(first[i]));
	}
	assert_true(drops > 300);
	free(p);
	free(first);
	free(again);
	free(exact);
}

static void
the_same_drop_may_be_scripted_for_each_retransmission(void **state)
{
	struct impair_rule r[] = {
		{ .given = IMPAIR_GIVEN_QP_NUM | IMPAIR_GIVEN_PSN,
			.qp_num = 17,
			.psn = 42,
			.times = 1 },
		{ .given = IMPAIR_GIVEN_QP_NUM | IMPAIR_GIVEN_PSN,
			.qp_num = 17,
			.psn = 42,
			.skip = 2,
			.times = 2 },
	};
	struct impair_pkt p[7];
	struct impair_verdict v[7];

	(void)state;
	for (uint32_t i = 0; i < 7; i++)
		p[i] = roce(17, i == 1 ? 41 : 42, SEND_ONLY);
	run_rules(0, r, 2, p, 7, 2, v);
	assert_true(is_dropped(&v[0])); /* psn 42 for the first time */
	assert_false(is_dropped(&v[1]));
	assert_false(is_dropped(&v[2])); /* the second */
	assert_true(is_dropped(&v[3]));
	assert_true(is_dropped(&v[4]));
	assert_false(is_dropped(&v[5]));
	assert_false(is_dropped(&v[6]));
}

static void
a_rule_reads_back_as_it_was_written(void **state)
{
	static const struct impair_rule rules[] = {
		{ .action = IMPAIR_DROP },
		{ .action = IMPAIR_DROP, .given = IMPAIR_GIVEN_PROBABILITY, .probability = 0.1 },
		{ .action = IMPAIR_DROP, .given = IMPAIR_GIVEN_PROBABILITY, .probability = 1e-9 },
		{ .action = IMPAIR_DROP,
			.given = IMPAIR_GIVEN_BURST,
			.burst = { 0.01, 0.3, 0.0, 1.0 } },
		{ .action = IMPAIR_DUPLICATE,
			.copies = 3,
			.delay_us = 7,
			.frames = IMPAIR_FRAMES_ALL },
		{ .action = IMPAIR_REORDER,
			.distance = 9,
			.hold_us = 5,
			.direction = IMPAIR_RESPONSE },
		{ .action = IMPAIR_CORRUPT,
			.given = IMPAIR_GIVEN_OFFSET,
			.offset = 0,
			.xor_mask = 255,
			.every = 100 },
		{ .action = IMPAIR_CORRUPT, .bits = 8, .frames = IMPAIR_FRAMES_OTHER },
		{ .action = IMPAIR_DELAY,
			.delay_us = 1,
			.jitter_us = 2,
			.direction = IMPAIR_REQUEST },
		{ .action = IMPAIR_CE,
			.given = IMPAIR_GIVEN_QP_NUM | IMPAIR_GIVEN_PSN | IMPAIR_GIVEN_PSN_LAST |
				 IMPAIR_GIVEN_OPCODE,
			.qp_num = 0,
			.psn = 0xffffff,
			.psn_last = 0,
			.opcode = 0,
			.packet = UINT64_C(1) << 40,
			.skip = 4000000000,
			.times = 4000000000 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		char one[IMPAIR_RECORD_MAX];
		char text[IMPAIR_RECORD_MAX + 32];
		struct impair_rule back;
		int len = impair_rule_print(&rules[i], one, sizeof(one));

		assert_in_range(len, 1, sizeof(one) - 1);
		snprintf(text, sizeof(text), "{\"rules\": [%s]}", one);
		assert_int_equal(script_rules(text, &back, 1), 1);
		assert_memory_equal(&back, &rules[i], sizeof(back));
	}
}

/* As a person would write it, and as the documentation shows it. */
static void
the_documented_example_means_what_it_says(void **state)
{
	static const char text[] =
		"{\"seed\": 1, \"rules\": [{\"action\": \"drop\", \"probability\": 0.01},"
		" {\"action\": \"delay\", \"delay_us\": 10},"
		" {\"action\": \"drop\", \"qp_num\": 17, \"psn\": 42, \"times\": 1},"
		" {\"action\": \"corrupt\", \"every\": 100},"
		" {\"action\": \"drop\","
		"  \"burst\": {\"p\": 0.01, \"r\": 0.3, \"loss_good\": 0, \"loss_bad\": 1}}]}";
	struct impair_rule r[5];
	const struct impair_conf conf = { .seed = 1, .n_rules = 5, .rules = r };
	struct impair_pkt p[100];
	struct impair_verdict v[100];

	(void)state;
	assert_int_equal(script_rules(text, r, 5), 5);
	assert_int_equal(impair_conf_check(&conf, NULL, 0), 0);
	for (uint32_t i = 0; i < 100; i++)
		p[i] = roce(17, i, SEND_ONLY);
	run_rules(1, r + 1, 3, p, 100, 32, v); /* those that are not random */
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(is_dropped(&v[i]), i == 42);
		assert_int_equal(v[i].delay_us, i == 42 ? 0 : 10);
		assert_int_equal(v[i].n_flips, i == 99);
	}
}

static void
the_log_keeps_the_newest_and_says_where_it_is(void **state)
{
	struct impair_rule r = { .action = IMPAIR_DROP };
	const struct impair_conf conf = { .n_rules = 1, .rules = &r, .log_size = 8 };
	struct impair_record rec[20];
	struct impair_pkt *p = stream(100);
	struct impair_verdict *v = verdicts(100);
	struct impair_model *m;
	uint64_t from = 0;
	char text[64];

	(void)state;
	assert_int_equal(impair_model_create(&conf, &m), 0);
	assert_int_equal(impair_log_read(impair_model_log(m), &from, rec, 20), 0);
	impair_model_decide(m, p, 3, v);
	assert_int_equal(impair_log_read(impair_model_log(m), &from, rec, 2), 2);
	assert_int_equal(rec[0].packet, 1);
	assert_int_equal(impair_log_read(impair_model_log(m), &from, rec, 20), 1);
	assert_int_equal(rec[0].packet, 3);
	assert_int_equal(impair_log_read(impair_model_log(m), &from, rec, 20), 0);
	impair_model_decide(m, p + 3, 97, v);
	assert_int_equal(impair_log_read(impair_model_log(m), &from, rec, 20), 8);
	assert_int_equal(rec[0].packet, 93);
	assert_int_equal(rec[0].psn, 92);
	assert_int_equal(rec[7].packet, 100);
	assert_int_equal(from, 100);
	from = UINT64_MAX; /* a place that is not there any more */
	assert_int_equal(impair_log_read(impair_model_log(m), &from, rec, 20), 0);
	assert_int_equal(from, 100);

	/* Too little room: cut, ended by a zero, and the length that it takes. */
	memset(text, 'x', sizeof(text));
	assert_true(impair_log_print(impair_model_log(m), text, 20) > 200);
	assert_int_equal(strlen(text), 19);
	assert_int_equal(text[20], 'x');
	impair_model_destroy(m);
	free(p);
	free(v);
}

static void
retransmissions_are_told_apart_and_the_oldest_is_forgotten(void **state)
{
	struct impair_log *log = impair_log_create(8);
	struct impair_pkt p = roce(17, 1, SEND_ONLY);

	(void)state;
	assert_non_null(log);
	for (uint32_t i = 1; i <= 5; i++)
		assert_int_equal(impair_log_seen(log, &p), i);
	p.opcode = ACK;
	assert_int_equal(impair_log_seen(log, &p), 1);
	p = roce(0, 0, 0); /* all zero is a packet, too */
	assert_int_equal(impair_log_seen(log, &p), 1);
	assert_int_equal(impair_log_seen(log, &p), 2);
	/* What is seen all the time stays, however many others come between. */
	for (uint32_t i = 0; i < 10 * IMPAIR_SEEN; i++) {
		struct impair_pkt q = roce(18, i, SEND_ONLY);

		assert_int_equal(impair_log_seen(log, &q), 1);
		if (i % 64 == 0)
			assert_int_equal(impair_log_seen(log, &p), 3 + i / 64);
	}
	impair_log_destroy(log);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_random_run_replays_as_exact_rules),
		cmocka_unit_test(the_same_drop_may_be_scripted_for_each_retransmission),
		cmocka_unit_test(a_rule_reads_back_as_it_was_written),
		cmocka_unit_test(the_documented_example_means_what_it_says),
		cmocka_unit_test(the_log_keeps_the_newest_and_says_where_it_is),
		cmocka_unit_test(retransmissions_are_told_apart_and_the_oldest_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
