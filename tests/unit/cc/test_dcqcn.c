/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN's rate, target and alpha, CC-09 .. CC-20 and CC-26. Expected values are computed by hand
 * from the rules: with alpha at a half a cut takes a quarter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cc.h"

#define US TIME_NS_PER_US
#define MS TIME_NS_PER_MS

static struct cc c;

/** F-CC: preset mlx5, a port of 10 Gb/s. */
static struct cc_params
f_cc(void)
{
	struct cc_params p;

	cc_preset(CC_MLX5, &p);
	p.line_rate = 10000;
	return p;
}

/** The same with alpha at a half, which stays as it is. */
static struct cc_params
f_half(void)
{
	struct cc_params p = f_cc();

	p.initial_alpha_value = 512;
	p.dce_tcp_rtt = 131071;
	return p;
}

static void
near(uint32_t want, uint32_t got, uint32_t off)
{
	if (got + off < want || got > want + off)
		fail_msg("%u is not within %u of %u", got, off, want);
}

/* The table of the rule: each preset, each value. */
static void
CC_09_presets(void **state UNUSED)
{
	static const uint32_t want[CC_PRESETS][15] = {
		{ 300, 32767, 1, 5, 50, 11, 50, 1, 0, 0, 1019, 1, 4, 1023, 0 },
		{ 55, 10000000, 5, 40, 400, 11, 50, 10, 0, 0, 1020, 55, 50, 1023, 1 },
		{ 900, 0, 1, 50, 100, 11, 50, 100, 0, 0, 1020, 1, 4, 1023, 0 },
	};

	for (int i = 0; i < CC_PRESETS; i++) {
		struct cc_params p;

		cc_preset((enum cc_preset)i, &p);
		assert_memory_equal(&p, want[i], sizeof(want[i]));
		assert_int_equal(i == CC_PAPER, p.hai_grows);
	}
}

static void
CC_10_first_cnp(void **state UNUSED)
{
	struct cc_params p = f_cc();

	p.rate_to_set_on_first_cnp = 100;
	cc_start(&c, &p);
	assert_false(cc_is_paced(&c));
	assert_int_equal(10000000, c.rate);
	cc_notified(&c, 5 * US);
	assert_int_equal(100000, c.rate);
	assert_int_equal(1, c.cnps);
	assert_int_not_equal(CC_FULL, c.stage);
	assert_true(cc_is_paced(&c));

	/* It is the first one's alone. */
	cc_notified(&c, 50 * US);
	assert_in_range(c.rate, 40000, 99999);
	/* Neither above the port's rate nor below the least one. */
	p.rate_to_set_on_first_cnp = 400000;
	cc_start(&c, &p);
	cc_notified(&c, 5 * US);
	assert_int_equal(10000000, c.rate);
	p.rate_to_set_on_first_cnp = 1;
	p.rpg_min_rate = 7;
	cc_start(&c, &p);
	cc_notified(&c, 5 * US);
	assert_int_equal(7000, c.rate);
	p.rpg_min_rate = 1;

	/* An ordinary cut: 1 - 1023 / 2048 of 10 Gb/s. */
	p.rate_to_set_on_first_cnp = 0;
	cc_start(&c, &p);
	cc_notified(&c, 5 * US);
	near(5004883, c.rate, 1);
	assert_int_equal(1, c.cnps);
	assert_int_not_equal(CC_FULL, c.stage);
}

/* Before alpha's update of the same CNP: with alpha at a half, a quarter. */
static void
CC_11_cut(void **state UNUSED)
{
	struct cc_params p = f_half();

	cc_start(&c, &p);
	cc_notified(&c, 0);
	assert_int_equal(7500000, c.rate);
	cc_notified(&c, 10 * US);
	assert_int_equal(5625000, c.rate);
	p.rpg_gd = 10;
	cc_start(&c, &p);
	cc_notified(&c, 0);
	assert_int_equal(5000000, c.rate);
}

static void
CC_12_one_cut_a_period(void **state UNUSED)
{
	struct cc_params p = f_half();
	uint32_t before;

	cc_start(&c, &p);
	for (uint32_t i = 0; i < 10; i++)
		cc_notified(&c, i * 400);
	assert_int_equal(7500000, c.rate);
	assert_int_equal(10, c.cnps);

	cc_start(&c, &p);
	before = c.rate;
	for (uint32_t i = 0; i < 10; i++) {
		cc_notified(&c, i * 10 * US);
		near(before - before / 4, c.rate, 1);
		before = c.rate;
	}
}

static void
CC_13_least_factor_and_rate(void **state UNUSED)
{
	struct cc_params p = f_cc();
	uint32_t before;

	p.rpg_gd = 10; /* alpha near one: it would be nearly all */
	cc_start(&c, &p);
	for (uint32_t i = 0; i < 1000; i++) {
		before = c.rate;
		cc_notified(&c, i * 10 * US);
		assert_true(c.rate >= before / 2);
		assert_true(c.rate >= 1000);
	}
	assert_int_equal(1000, c.rate);
	cc_sent(&c, 1500); /* 12 ms at 1 Mb/s */
	assert_int_equal(0, cc_packets(&c, 1500, c.due - 1));
	assert_int_equal(1, cc_packets(&c, 1500, c.due));

	p.rpg_min_dec_fac = 90;
	cc_start(&c, &p);
	cc_notified(&c, 0);
	assert_int_equal(9000000, c.rate);
}

/* (1023 * 1019 + 5 * 1024) / 2^20 after the first update, 1019 / 1024 of that after the next. */
static void
CC_14_alpha(void **state UNUSED)
{
	struct cc_params p = f_cc();

	cc_start(&c, &p);
	assert_int_equal(1023 << 20, c.alpha);
	cc_advance(&c, 7 * MS);
	assert_int_equal(1023 << 20, c.alpha); /* before the first CNP */
	cc_notified(&c, 10 * MS);
	cc_advance(&c, 10 * MS + US - 1);
	assert_int_equal(1023 << 20, c.alpha);
	cc_advance(&c, 10 * MS + US);
	near(1072698368, c.alpha, 2);
	cc_advance(&c, 10 * MS + 2 * US);
	near(1067460583, c.alpha, 2);
	cc_notified(&c, 10 * MS + 2 * US);
	cc_advance(&c, 10 * MS + 3 * US);
	near(1067460583u / 1024 * 1019 + (5 << 20), c.alpha, 1024);
	assert_true(c.alpha <= CC_ALPHA_ONE);
	cc_advance(&c, 1000 * MS);
	near(0, c.alpha, 1);
	/* With a CNP in each of them it rises, and not above one. */
	for (uint32_t i = 0; i < 5000; i++)
		cc_notified(&c, 1000 * MS + i * US);
	near(CC_ALPHA_ONE, c.alpha, 2048);
	assert_true(c.alpha <= CC_ALPHA_ONE);
}

/*
 * CC-14: a time that has begun is not lost when the one before it ends late: twice one and a half
 * are three. Alpha of 1023/1024 becomes 1023 x g / 1024 + 5, then g / 1024 of that, twice.
 */
static void
CC_14_halves_add_up(void **state UNUSED)
{
	struct cc_params p = f_cc();
	const double g = 1019.0 / 1024;
	const double first = 1023.0 / 1024 * g + 5.0 / 1024;

	p.dce_tcp_rtt = 10;
	cc_start(&c, &p);
	cc_notified(&c, 10 * MS);
	cc_advance(&c, 10 * MS + 15 * US);
	near((uint32_t)(first * CC_ALPHA_ONE), c.alpha, 4);
	cc_advance(&c, 10 * MS + 30 * US - 1);
	near((uint32_t)(first * g * CC_ALPHA_ONE), c.alpha, 4);
	cc_advance(&c, 10 * MS + 30 * US);
	near((uint32_t)(first * g * g * CC_ALPHA_ONE), c.alpha, 4);
	/* ... and so without a look in between. */
	cc_start(&c, &p);
	cc_notified(&c, 10 * MS);
	cc_advance(&c, 10 * MS + 15 * US);
	cc_advance(&c, 10 * MS + 30 * US);
	near((uint32_t)(first * g * g * CC_ALPHA_ONE), c.alpha, 4);
}

static void
CC_15_target(void **state UNUSED)
{
	struct cc_params p = f_half();

	for (uint32_t clamp = 0; clamp < 2; clamp++) {
		p.clamp_tgt_rate = clamp;
		cc_start(&c, &p);
		cc_notified(&c, 0);
		assert_int_equal(10000000, c.target);
		cc_notified(&c, 10 * US);
		assert_int_equal(clamp != 0 ? 7500000 : 10000000, c.target);
		assert_int_equal(5625000, c.rate);

		cc_start(&c, &p);
		cc_notified(&c, 0);
		cc_advance(&c, 300 * US); /* to the middle of 7.5 and 10 */
		assert_int_equal(8750000, c.rate);
		cc_notified(&c, 310 * US);
		assert_int_equal(8750000, c.target);
		assert_int_equal(6562500, c.rate);
	}
}

/** Two cuts with clamp: target 7.5 Gb/s, rate 5.625 Gb/s, nothing counted, at 10 us. */
static void
cut_twice(struct cc_params p)
{
	p.clamp_tgt_rate = 1;
	cc_start(&c, &p);
	cc_notified(&c, 0);
	cc_notified(&c, 10 * US);
	assert_int_equal(7500000, c.target);
	assert_int_equal(5625000, c.rate);
}

static void
CC_16_fast_recovery(void **state UNUSED)
{
	static const uint32_t want[] = { 6562500, 7031250, 7265625, 7382813, 7441407 };
	struct cc_params p = f_half();

	p.rpg_threshold = 5;
	cut_twice(p);
	for (uint32_t i = 0; i < 5; i++) {
		cc_advance(&c, 10 * US + (i + 1) * 300 * US);
		near(want[i], c.rate, 1);
		assert_int_equal(7500000, c.target);
		assert_int_equal(CC_FAST_RECOVERY, c.stage);
	}
}

static void
CC_17_additive_increase(void **state UNUSED)
{
	struct cc_params p = f_half();

	/* The timer alone: 2 events, of which one is fast recovery. */
	cut_twice(p);
	cc_advance(&c, 610 * US);
	assert_int_equal(CC_ADDITIVE, c.stage);
	assert_int_equal(7505000, c.target);
	near((6562500 + 7505000) / 2, c.rate, 1);
	/* The byte counter alone. */
	cut_twice(p);
	cc_sent(&c, 32767);
	assert_int_equal(CC_FAST_RECOVERY, c.stage);
	cc_sent(&c, 32767);
	assert_int_equal(CC_ADDITIVE, c.stage);
	assert_int_equal(7505000, c.target);
	near((6562500 + 7505000) / 2, c.rate, 1);
}

static void
CC_18_hyper_increase(void **state UNUSED)
{
	struct cc_params p = f_half();

	/* mlx5's form: 50 Mb/s at each event. */
	cut_twice(p);
	cc_advance(&c, 610 * US);
	cc_sent(&c, 32767);
	assert_int_equal(CC_ADDITIVE, c.stage);
	assert_int_equal(7510000, c.target);
	for (uint32_t i = 1; i < 4; i++) {
		cc_sent(&c, 32767);
		assert_int_equal(CC_HYPER, c.stage);
		assert_int_equal(7510000 + i * 50000, c.target);
	}
	/* The paper's: 1 x, 1 x, 2 x. */
	p.hai_grows = true;
	cut_twice(p);
	cc_advance(&c, 610 * US);
	for (uint32_t i = 0; i < 3; i++)
		cc_sent(&c, 32767);
	assert_int_equal(7610000, c.target);
	cc_advance(&c, 910 * US);
	assert_int_equal(7710000, c.target);
	/* Never above the QP's own limit, nor the port's. */
	p.rpg_hai_rate = 400000;
	for (uint32_t max = 0; max <= 8000; max += 8000) {
		p.rpg_max_rate = max;
		p.clamp_tgt_rate = 0;
		cc_start(&c, &p);
		cc_notified(&c, 0);
		cc_advance(&c, 600 * US);
		for (uint32_t i = 0; i < 100; i++)
			cc_sent(&c, 32767);
		assert_int_equal(max != 0 ? 8000000 : 10000000, c.target);
		assert_int_equal(c.target, c.rate);
		assert_int_equal(max != 0, cc_is_paced(&c));
	}
}

static void
CC_19_byte_counter_and_timer(void **state UNUSED)
{
	struct cc_params p = f_half();

	cut_twice(p);
	cc_sent(&c, 32766);
	cc_advance(&c, 310 * US - 1);
	assert_int_equal(5625000, c.rate);
	cc_sent(&c, 1);
	assert_int_equal(1, c.byte_events);
	assert_int_equal(0, c.timer_events);
	near(6562500, c.rate, 1);
	cc_advance(&c, 310 * US);
	assert_int_equal(1, c.timer_events);
	near(7031250, c.rate, 1);
	/* A CNP: all begins anew. */
	cc_sent(&c, 30000);
	cc_notified(&c, 400 * US);
	assert_int_equal(0, c.byte_events + c.timer_events + c.bytes);
	assert_int_equal(CC_FAST_RECOVERY, c.stage);
	cc_advance(&c, 700 * US - 1);
	cc_sent(&c, 32766);
	assert_int_equal(0, c.byte_events + c.timer_events);
	cc_advance(&c, 700 * US);
	assert_int_equal(1, c.timer_events);
	/* No byte counter. */
	p.rpg_byte_reset = 0;
	cut_twice(p);
	cc_sent(&c, 1u << 30);
	assert_int_equal(0, c.byte_events);
	assert_int_equal(5625000, c.rate);
}

/* The distance to the line rate halves every 300 us: 4,995,117 kb/s are gone after 23 of them. */
static void
CC_20_back_to_line_rate(void **state UNUSED)
{
	struct cc_params p = f_cc();
	uint32_t alpha;
	ns_t t = 0;

	cc_start(&c, &p);
	cc_notified(&c, 0);
	while (cc_is_paced(&c) && t < 100 * MS)
		cc_advance(&c, t += US);
	assert_int_equal(10000000, c.rate);
	assert_true(t >= 23 * 270 * US && t <= 23 * 330 * US);
	alpha = c.alpha;
	assert_true(alpha != 0 || t > 4 * MS);
	cc_advance(&c, t + 100 * MS);
	assert_true(c.alpha == 0 || c.alpha < alpha);
	assert_int_equal(10000000, c.rate);
	/* The next CNP finds a QP at its full rate. */
	c.p.rate_to_set_on_first_cnp = 200;
	cc_notified(&c, t + 200 * MS);
	assert_int_equal(200000, c.rate);
	/* Ten seconds of silence are one call, at any rate of the increase. */
	cc_advance(&c, t + 10000 * MS);
	assert_false(cc_is_paced(&c));
}

/** Bytes and CNPs as they come to somebody; `grain` between two calls of cc_advance(). */
static void
play(struct cc *x, const struct cc_params *p, ns_t grain)
{
	uint32_t seed = 1;

	cc_start(x, p);
	for (ns_t t = 0; t < 200 * MS; t += 10 * MS) {
		for (ns_t at = t; at < t + 10 * MS; at += grain)
			cc_advance(x, at);
		cc_advance(x, t + 10 * MS);
		for (uint32_t i = 0; i < 50; i++) {
			seed = seed * 1664525u + 1013904223u;
			cc_sent(x, 64 + (seed >> 20));
		}
		if (seed >> 31 != 0)
			cc_notified(x, t + 10 * MS);
	}
}

static void
CC_26_virtual_time(void **state UNUSED)
{
	static struct cc a, b;

	for (int preset = 0; preset < CC_PRESETS; preset++) {
		struct cc_params p;

		cc_preset((enum cc_preset)preset, &p);
		p.line_rate = 10000;
		memset(&a, 0xee, sizeof(a));
		memset(&b, 0x11, sizeof(b));
		play(&a, &p, US);
		play(&b, &p, US);
		assert_int_equal(a.rate, b.rate);
		assert_int_equal(a.target, b.target);
		assert_int_equal(a.alpha, b.alpha);
		assert_true(a.due == b.due && a.carry == b.carry);
		/* One call for 10 ms. */
		play(&b, &p, 10 * MS);
		near(a.rate, b.rate, a.rate / 100000 + 4);
		near(a.target, b.target, a.target / 100000 + 4);
		near(a.alpha, b.alpha, 4096);
		assert_int_equal(a.stage, b.stage);
	}
	/* A long silence is made up for in a few steps. */
	struct cc_params p = f_cc();

	p.line_rate = 400000;
	p.rpg_ai_rate = 1;
	p.rate_to_set_on_first_cnp = 1;
	for (uint32_t i = 0; i < 2; i++) {
		struct cc *x = i == 0 ? &a : &b;

		cc_start(x, &p);
		cc_notified(x, 0);
		for (ns_t t = 0; t < 3000 * MS; t += i == 0 ? 100 * US : 3000 * MS)
			cc_advance(x, t);
		cc_advance(x, 3000 * MS);
	}
	/* 10,000 events of 300 us, one of them fast recovery. */
	assert_int_equal(1000 + 9999 * 1000, a.target);
	assert_int_equal(a.target, b.target);
	near(a.rate, b.rate, 2);
	assert_int_equal(a.timer_events, b.timer_events);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CC_09_presets),
		cmocka_unit_test(CC_10_first_cnp),
		cmocka_unit_test(CC_11_cut),
		cmocka_unit_test(CC_12_one_cut_a_period),
		cmocka_unit_test(CC_13_least_factor_and_rate),
		cmocka_unit_test(CC_14_alpha),
		cmocka_unit_test(CC_14_halves_add_up),
		cmocka_unit_test(CC_15_target),
		cmocka_unit_test(CC_16_fast_recovery),
		cmocka_unit_test(CC_17_additive_increase),
		cmocka_unit_test(CC_18_hyper_increase),
		cmocka_unit_test(CC_19_byte_counter_and_timer),
		cmocka_unit_test(CC_20_back_to_line_rate),
		cmocka_unit_test(CC_26_virtual_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
