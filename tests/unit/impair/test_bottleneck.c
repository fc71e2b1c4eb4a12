/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch's output queue: rate, marks, the end of its buffer (CC-27). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bottleneck.h"
#include "compiler.h"
#include "impair_rng.h"

static struct bottleneck b;

/* 1 Gb/s: 1000 bytes take 8 us. */
static const struct bottleneck_conf conf = {
	.rate = 1000000000, .buffer = 100000, .kmin = 20000, .kmax = 60000, .pmax = 0.5, .seed = 1
};

static void
leaves_at_its_rate(void **state UNUSED)
{
	struct bottleneck_conf c = conf;

	impair_bottleneck_init(&b, &c);
	assert_int_equal(8000, impair_bottleneck_offer(&b, 1000, true, 0).leaves);
	assert_int_equal(16000, impair_bottleneck_offer(&b, 1000, true, 0).leaves);
	assert_int_equal(2000, impair_bottleneck_queue(&b, 0));
	assert_int_equal(500, impair_bottleneck_queue(&b, 12000));
	assert_int_equal(0, impair_bottleneck_queue(&b, 16000));
	/* An empty one begins with the frame. */
	assert_int_equal(108000, impair_bottleneck_offer(&b, 1000, true, 100000).leaves);
	/* Fractions add up: 100 frames of 64 bytes at 3 Gb/s, 17,066.7 ns. */
	c.rate = 3000000000;
	impair_bottleneck_init(&b, &c);
	for (uint32_t i = 0; i < 99; i++)
		impair_bottleneck_offer(&b, 64, true, 0);
	assert_int_equal(17066, impair_bottleneck_offer(&b, 64, true, 0).leaves);
}

static void
drops_what_does_not_fit(void **state UNUSED)
{
	impair_bottleneck_init(&b, &conf);
	for (uint32_t i = 0; i < 100; i++)
		assert_false(impair_bottleneck_offer(&b, 1000, false, 0).dropped);
	assert_true(impair_bottleneck_offer(&b, 1, false, 0).dropped);
	assert_int_equal(100000, impair_bottleneck_queue(&b, 0));
	assert_false(impair_bottleneck_offer(&b, 1000, false, 8000).dropped);
	assert_int_equal(1, b.dropped);
	assert_int_equal(102, b.frames);
	assert_int_equal(100000, b.longest);
}

/** Marks of n frames that find a queue of so many bytes. */
static uint32_t
marks_at(uint32_t queue, uint32_t n, bool ect)
{
	uint32_t marked = 0;

	impair_bottleneck_init(&b, &conf);
	for (uint32_t i = 0; i < n; i++) {
		/* As much has left as comes. */
		const ns_t now = b.empty_at > (ns_t)queue * 8 ? b.empty_at - (ns_t)queue * 8 : 0;

		if (b.empty_at < (ns_t)queue * 8)
			b.empty_at = (ns_t)queue * 8;
		marked += impair_bottleneck_offer(&b, 100, ect, now).marked;
	}
	return marked;
}

/* None below kmin, half of pmax in the middle, pmax before kmax, all from kmax on. */
static void
marks_by_its_length(void **state UNUSED)
{
	uint32_t n;

	assert_int_equal(0, marks_at(19000, 10000, true));
	n = marks_at(40000, 10000, true);
	assert_true(n > 2300 && n < 2700);
	n = marks_at(59900, 10000, true);
	assert_true(n > 4800 && n < 5200);
	assert_int_equal(10000, marks_at(60500, 10000, true));
	assert_int_equal(0, marks_at(60500, 10000, false)); /* Not-ECT */
}

static void
same_seed_same_marks(void **state UNUSED)
{
	struct bottleneck_conf c = conf;
	uint64_t marks[3] = { 0 };

	for (uint32_t run = 0; run < 3; run++) {
		c.seed = run == 2 ? 2 : 1;
		impair_bottleneck_init(&b, &c);
		b.empty_at = 40000 * 8;
		for (uint32_t i = 0; i < 64; i++)
			marks[run] = marks[run] << 1 |
				     impair_bottleneck_offer(&b, 1000, true, i * 8000).marked;
	}
	assert_true(marks[0] == marks[1]);
	assert_true(marks[0] != marks[2]);
}

/* What a rule of the same seed drops is not what is marked: each has numbers of its own. */
static void
no_numbers_of_a_rule(void **state UNUSED)
{
	for (uint32_t rule = 0; rule < 64; rule++) {
		uint64_t numbers = impair_rng_stream(conf.seed, rule);
		uint32_t same = 0;

		impair_bottleneck_init(&b, &conf);
		b.empty_at = 40000 * 8;
		for (uint32_t i = 0; i < 1000; i++) {
			const bool drops = impair_rng_chance(&numbers, impair_rng_threshold(0.25));

			same += impair_bottleneck_offer(&b, 1000, true, i * 8000).marked == drops;
		}
		assert_in_range(same, 500, 750); /* 625 by chance */
	}
}

static void
faults(void **state UNUSED)
{
	struct bottleneck_conf c = conf;

	assert_null(impair_bottleneck_fault(&c));
	c.kmax = c.kmin - 1;
	assert_non_null(impair_bottleneck_fault(&c));
	c = conf;
	c.pmax = 1.5;
	assert_non_null(impair_bottleneck_fault(&c));
	c = conf;
	c.rate = 0;
	assert_non_null(impair_bottleneck_fault(&c));
	c = conf;
	c.buffer = 0;
	assert_non_null(impair_bottleneck_fault(&c));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_at_its_rate),
		cmocka_unit_test(drops_what_does_not_fit),
		cmocka_unit_test(marks_by_its_length),
		cmocka_unit_test(same_seed_same_marks),
		cmocka_unit_test(no_numbers_of_a_rule),
		cmocka_unit_test(faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
