/* SPDX-License-Identifier: BSD-3-Clause */
/* PAUSE frames as functions: FLOW-11..13. Values typed from 802.1Qbb and 802.3 annex 31B. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pause.h"

#define MS      UINT64_C(1000000)
#define AT      (1000 * MS)
#define LONGEST UINT64_C(3355392) /* ns: 65535 quanta of 512 bits at 10 Gb/s */

static struct pause p;
static struct pause_done done;

static void
fresh(uint32_t mbps)
{
	memset(&p, 0, sizeof(p));
	p.conf = (struct pause_conf){ .obeyed = 1 << 3, .most = 200 * MS, .restore = 400 * MS };
	p.mbps = mbps;
}

static void
pfc(ns_t now, uint16_t quanta)
{
	struct pause_frame f = { .opcode = PAUSE_BY_PRIORITY, .enabled = 1 << 3 };

	f.quanta[3] = quanta;
	cc_pause_receive(&p, &f, now, &done);
}

static void
FLOW_11_parse(void **state)
{
	static const uint8_t wire[] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 2, 0, 0, 0, 0, 0x22,
		0x88, 0x08, 0x01, 0x01, 0x00, 0x88, 0, 1, 0, 2, 0, 3, 0xff, 0xff, 0, 5, 0, 6, 0, 7,
		0x12, 0x34 };
	struct pause_frame f;

	(void)state;
	assert_true(cc_pause_parse(wire, sizeof(wire), &f));
	assert_int_equal(f.opcode, 0x0101);
	assert_int_equal(f.enabled, 0x88);
	assert_int_equal(f.quanta[0], 1);
	assert_int_equal(f.quanta[3], 0xffff);
	assert_int_equal(f.quanta[7], 0x1234);
	for (uint32_t len = 0; len < sizeof(wire); len++)
		assert_false(cc_pause_parse(wire, len, &f));
}

static void
FLOW_12_parse(void **state)
{
	static const uint8_t wire[] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 2, 0, 0, 0, 0, 0x22,
		0x88, 0x08, 0x00, 0x01, 0x01, 0x02 };
	struct pause_frame f;

	(void)state;
	assert_true(cc_pause_parse(wire, sizeof(wire), &f));
	assert_int_equal(f.opcode, 0x0001);
	assert_int_equal(f.enabled, 0xff);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(f.quanta[i], 0x0102);
	for (uint32_t len = 0; len < sizeof(wire); len++)
		assert_false(cc_pause_parse(wire, len, &f));
}

/* 512 bit times of the link, whatever its rate; of 10 Gb/s where a device does not know. */
static void
FLOW_11_quanta(void **state)
{
	static const struct {
		uint32_t mbps;
		ns_t ns;
	} rates[] = { { 0, 51200 }, { 1000, 512000 }, { 10000, 51200 }, { 100000, 5120 } };

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		fresh(rates[i].mbps);
		pfc(AT, 1000);
		assert_int_equal(pause_mask(&p, AT + rates[i].ns - 1), 1 << 3);
		assert_int_equal(pause_mask(&p, AT + rates[i].ns), 0);
		assert_int_equal(done.held[3], rates[i].ns);
	}
}

static void
FLOW_11_held_time_adds_up(void **state)
{
	(void)state;
	fresh(10000);
	pfc(AT, 65535);
	assert_int_equal(done.held[3], LONGEST);
	pfc(AT + MS, 65535); /* a millisecond longer than before */
	assert_int_equal(done.held[3], MS);
	pfc(AT + 2 * MS, 0);
	assert_int_equal(done.held[3], -(int64_t)(LONGEST - MS));
	assert_int_equal(pause_mask(&p, AT + 2 * MS), 0);
	pfc(AT + 3 * MS, 0); /* it was not silent */
	assert_int_equal(done.held[3], 0);
}

/* However often and whatever a neighbour says, no stretch is longer than `most`. */
static void
FLOW_13_no_stretch_is_longer(void **state)
{
	ns_t silent = 0, longest = 0;
	uint32_t random = 1;
	int64_t held = 0;

	(void)state;
	fresh(10000);
	for (ns_t now = AT; now < AT + 5000 * MS; now += 10000) {
		random = random * 1664525u + 1013904223u;
		if (random >> 28 < 3)
			pfc(now, random >> 27 == 0 ? 0 : (uint16_t)(random >> 8 | 0x8000));
		held += done.held[3];
		done.held[3] = 0;
		silent = pause_mask(&p, now) != 0 ? silent + 10000 : 0;
		longest = silent > longest ? silent : longest;
	}
	assert_in_range(longest, 1, 200 * MS + 10000);
	assert_true(held >= 0);
}

/* A storm that goes on for ever silences a priority once. */
static void
FLOW_13_one_stretch_of_a_storm(void **state)
{
	uint32_t storms = 0;
	int64_t held = 0;

	(void)state;
	fresh(10000);
	for (ns_t now = AT; now < AT + 10000 * MS; now += MS) {
		pfc(now, 65535);
		storms += (uint32_t)__builtin_popcount(done.storms);
		held += done.held[3];
	}
	assert_int_equal(storms, 1);
	assert_int_equal(held, 200 * MS);
	assert_int_equal(pause_mask(&p, AT + 10000 * MS), 0);
	pfc(AT + 10400 * MS, 65535); /* 401 ms after the last one */
	assert_int_equal(done.held[3], LONGEST);
}

/* A release is no storm, whenever it comes: what the neighbour says next is obeyed. */
static void
FLOW_13_a_release_at_the_end(void **state)
{
	(void)state;
	fresh(10000);
	for (ns_t now = AT; now < AT + 200 * MS; now += MS)
		pfc(now, 65535);
	pfc(AT + 200 * MS, 0);
	assert_int_equal(done.storms, 0);
	pfc(AT + 210 * MS, 65535);
	assert_int_equal(done.storms, 0);
	assert_int_equal(done.held[3], LONGEST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(FLOW_11_parse),
		cmocka_unit_test(FLOW_12_parse),
		cmocka_unit_test(FLOW_11_quanta),
		cmocka_unit_test(FLOW_11_held_time_adds_up),
		cmocka_unit_test(FLOW_13_no_stretch_is_longer),
		cmocka_unit_test(FLOW_13_one_stretch_of_a_storm),
		cmocka_unit_test(FLOW_13_a_release_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
