/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The window of cc.algo=delay, CC-29 .. CC-33. Expected values are computed by hand from the rules:
 * with the default scale, from 0.1 to 100 packets, a window of one packet adds 0.9 / 3.0623 of
 * 100 us.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cc_delay.h"

#define US    TIME_NS_PER_US
#define FRAME 1000u

static struct cc c;

static void
near(uint64_t want, uint64_t got, uint64_t off)
{
	if (got + off < want || got > want + off)
		fail_msg("%llu is not within %llu of %llu", (unsigned long long)got,
			(unsigned long long)off, (unsigned long long)want);
}

/** A port of 10 Gb/s, a window of so many thousandths of a packet. */
static void
begin(uint32_t thousandths)
{
	struct cc_params p;

	cc_delay_preset(&p);
	p.line_rate = 10000;
	cc_start(&c, &p);
	c.delay.window = (uint32_t)((uint64_t)thousandths * CC_PACKET / 1000);
}

static void
sample(uint32_t us, uint32_t hops, ns_t at_us)
{
	const struct cc_round s = { .rtt = us * (uint32_t)US, .hops = hops, .frame = FRAME };

	cc_delay_round(&c, &s, at_us * US);
}

static uint32_t
thousandths(void)
{
	return (uint32_t)(((uint64_t)c.delay.window * 1000 + CC_PACKET / 2) / CC_PACKET);
}

static void
CC_29_target(void **state UNUSED)
{
	static const struct {
		uint32_t window, hops, ns;
	} rows[] = {
		{ 200000, 0, 50000 },
		{ 100000, 0, 50000 },
		{ 4000, 0, 63062 },
		{ 1000, 0, 79390 },
		{ 1000, 5, 84390 },
		{ 100, 0, 150000 },
		{ 50, 0, 150000 },
	};

	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin(rows[i].window);
		sample(10, rows[i].hops, 1000);
		near(rows[i].ns, c.delay.target, 30);
	}
	/* A scale that is none adds nothing. */
	begin(1000);
	c.p.delay.fs_max = 100;
	sample(10, 0, 1000);
	assert_int_equal(50000, c.delay.target);
	/* Without a scale between its ends: all of it below. */
	begin(50);
	c.p.delay.fs_max = c.p.delay.fs_min = 100;
	sample(10, 0, 1000);
	assert_int_equal(150000, c.delay.target);
}

static void
CC_29_hops(void **state UNUSED)
{
	assert_int_equal(0, cc_delay_hops(64));
	assert_int_equal(2, cc_delay_hops(62));
	assert_int_equal(15, cc_delay_hops(49));
	assert_int_equal(0, cc_delay_hops(48));
	assert_int_equal(0, cc_delay_hops(128));
	assert_int_equal(3, cc_delay_hops(125));
	assert_int_equal(0, cc_delay_hops(255));
	assert_int_equal(1, cc_delay_hops(254));
	assert_int_equal(0, cc_delay_hops(3));
	assert_int_equal(0, cc_delay_hops(0));
}

static void
CC_30_increase(void **state UNUSED)
{
	begin(4000);
	for (uint32_t i = 1; i <= 10; i++) {
		sample(40, 0, i * 40);
		assert_int_equal(4000 + i * 1000, thousandths());
	}
	c.p.delay.ai = 250;
	sample(40, 0, 500);
	assert_int_equal(14250, thousandths());
	/* The greatest window. */
	c.p.delay.max_window = 14;
	sample(40, 0, 600);
	assert_int_equal(14000, thousandths());
	assert_int_equal(14, cc_delay_window(&c));
}

/* Not before the first round trip either. */
static void
CC_33_first_window(void **state UNUSED)
{
	static const struct {
		uint32_t start, most, want;
	} rows[] = { { 32, 256, 32 }, { 32, 4, 4 }, { 65535, 65535, 65535 }, { 1, 1, 1 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cc_params p;

		cc_delay_preset(&p);
		p.delay.start = rows[i].start;
		p.delay.max_window = rows[i].most;
		cc_start(&c, &p);
		assert_int_equal(cc_delay_window(&c), rows[i].want);
	}
}

static void
CC_31_decrease(void **state UNUSED)
{
	begin(100000);
	/* 100 us, 50 wanted: 1 - 0.8 * 50 / 100. */
	sample(100, 0, 1000);
	near(60000, thousandths(), 2);
	/* Less than a round trip later: nothing; then 1.5 us of 51.5 too much, scale included. */
	sample(100, 0, 1099);
	near(60000, thousandths(), 2);
	sample(100, 0, 1100);
	/* The target of 60 packets: (0.1291 - 0.1) / 3.0623 * 100 us + 50 us = 50.950 us. */
	near(36456, thousandths(), 10);
	/* Ten times too much takes no more than max_mdf. */
	begin(100000);
	sample(500, 0, 1000);
	near(50000, thousandths(), 2);
	/* The least window. */
	for (uint32_t i = 1; i < 30; i++)
		sample(1000, 0, 1000 + 1000 * i);
	assert_int_equal(10, thousandths());
	assert_int_equal(1, cc_delay_window(&c));
}

static void
CC_32_losses(void **state UNUSED)
{
	begin(100000);
	sample(20, 0, 100);
	cc_delay_lost(&c, false, 200 * US);
	near(50500, thousandths(), 2);
	cc_delay_lost(&c, false, 219 * US);
	near(50500, thousandths(), 2);
	cc_delay_lost(&c, true, 220 * US);
	near(25250, thousandths(), 2);
	cc_delay_lost(&c, true, 300 * US);
	near(12625, thousandths(), 2);
	near(5050000, c.rate, 1000); /* so many frames in 20 us, from the loss on (CC-33) */
	assert_string_equal("decrease", cc_stage_name(c.stage));
	/* A response between: they are not three in a row. */
	sample(20, 0, 320);
	cc_delay_lost(&c, true, 400 * US);
	near(6812, thousandths(), 3);
	cc_delay_lost(&c, true, 500 * US);
	cc_delay_lost(&c, true, 600 * US);
	assert_int_equal(10, thousandths());
	/* Nor are they where a NAK told of one: it is a response. */
	begin(100000);
	sample(20, 0, 100);
	for (uint32_t i = 0; i < 5; i++)
		cc_delay_lost(&c, i != 2, (200 + 100 * i) * US);
	assert_true(thousandths() > 1000);
	/* CNPs are counted. */
	begin(100000);
	cc_notified(&c, 100 * US);
	assert_int_equal(1, c.cnps);
	assert_int_equal(100000, thousandths());
	assert_int_equal(10000000, c.rate);
	assert_false(cc_is_paced(&c));
}

static void
CC_33_rate(void **state UNUSED)
{
	begin(10000);
	assert_false(cc_is_paced(&c)); /* nothing is known yet */
	/* Eleven frames of 1000 bytes in 40 us: 2.2 Gb/s. */
	sample(40, 0, 100);
	near(2200000, c.rate, 100);
	assert_true(cc_is_paced(&c));
	assert_int_equal(11, cc_delay_window(&c));
	assert_string_equal("additive", cc_stage_name(c.stage));
	/* More than the port has: nobody waits. */
	begin(200000);
	sample(40, 0, 100);
	assert_int_equal(10000000, c.rate);
	assert_false(cc_is_paced(&c));
	assert_string_equal("line", cc_stage_name(c.stage));
	/* An eighth of a packet in 200 us: one each 1.6 ms. */
	begin(250);
	sample(400, 0, 1000);
	near(125, thousandths(), 1);
	sample(200, 0, 1100); /* no decrease: less than that since the last */
	near(125, thousandths(), 1);
	near(5000, c.rate, 10);
	assert_int_equal(1, cc_delay_window(&c));
	assert_string_equal("decrease", cc_stage_name(c.stage));
	c.due = 2000 * US;
	assert_int_equal(1, cc_packets(&c, FRAME, 2000 * US));
	cc_sent(&c, FRAME);
	assert_int_equal(0, cc_packets(&c, FRAME, 3590 * US));
	assert_int_equal(1, cc_packets(&c, FRAME, 3605 * US));
	/* Never below a megabit a second. */
	begin(10);
	sample(1000000, 0, 10000000);
	assert_int_equal(1000, c.rate);
}

/* CC-34: the same rounds, the same rates; time alone changes nothing. */
static void
CC_34_time(void **state UNUSED)
{
	struct cc first;

	for (int i = 0; i < 2; i++) {
		begin(10000);
		for (uint32_t at = 0; at < 10000; at += 50)
			sample(20 + at % 170, at % 7, at + 1000);
		if (i == 0)
			first = c;
	}
	assert_memory_equal(&first, &c, sizeof(c));
	cc_advance(&c, TIME_NS_PER_S);
	assert_memory_equal(&first, &c, sizeof(c));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CC_29_target),
		cmocka_unit_test(CC_29_hops),
		cmocka_unit_test(CC_30_increase),
		cmocka_unit_test(CC_31_decrease),
		cmocka_unit_test(CC_32_losses),
		cmocka_unit_test(CC_33_first_window),
		cmocka_unit_test(CC_33_rate),
		cmocka_unit_test(CC_34_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
