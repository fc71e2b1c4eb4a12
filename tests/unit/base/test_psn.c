/* SPDX-License-Identifier: BSD-3-Clause */
/* WIRE-11: PSNs are counted modulo 2^24. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler.h"
#include "psn.h"

/* WIRE-11: 0xFFFFFE, 0xFFFFFF, 0, 1 follow each other. */
static void
WIRE_11_counts_over_the_wrap(void **state)
{
	static const uint32_t want[] = { 0xfffffe, 0xffffff, 0x000000, 0x000001 };
	psn_t p = psn(0xfffffe);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_int_equal(p.v, want[i]);
		p = psn_add(p, 1);
	}
	assert_int_equal(psn_sub(psn(1), 3).v, 0xfffffe);
	assert_int_equal(psn_add(psn(0x123456), 0x1000000).v, 0x123456);
	assert_int_equal(psn(0xff123456).v, 0x123456);
}

static void
WIRE_11_compares_over_the_wrap(void **state)
{
	static const struct {
		uint32_t a, b;
		int32_t cmp;
		uint32_t distance;
	} rows[] = {
		{ 5, 5, 0, 0 },
		{ 6, 5, 1, 1 },
		{ 5, 6, -1, 0xffffff },
		{ 0, 0xffffff, 1, 1 },
		{ 0xffffff, 0, -1, 0xffffff },
		{ 0x7fffff, 0, 0x7fffff, 0x7fffff },
		{ 0x800001, 0, -0x7fffff, 0x800001 },
		{ 0x800000, 0, -0x800000, 0x800000 },
		{ 0, 0x800000, -0x800000, 0x800000 },
		{ 0x7ffffe, 0xffffff, 0x7fffff, 0x7fffff },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(psn_cmp(psn(rows[i].a), psn(rows[i].b)), rows[i].cmp);
		assert_int_equal(psn_distance(psn(rows[i].a), psn(rows[i].b)), rows[i].distance);
		assert_int_equal(psn_eq(psn(rows[i].a), psn(rows[i].b)), rows[i].cmp == 0);
	}
}

static void
WIRE_11_ranges_over_the_wrap(void **state)
{
	static const struct {
		uint32_t p, first, last;
		bool in;
	} rows[] = {
		{ 5, 5, 5, true },
		{ 4, 5, 5, false },
		{ 6, 5, 5, false },
		{ 0, 0xfffffe, 1, true },
		{ 0xfffffe, 0xfffffe, 1, true },
		{ 1, 0xfffffe, 1, true },
		{ 2, 0xfffffe, 1, false },
		{ 0xfffffd, 0xfffffe, 1, false },
		{ 0x900000, 0x100000, 0x0fffff, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(psn_between(psn(rows[i].p), psn(rows[i].first), psn(rows[i].last)),
			rows[i].in);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(WIRE_11_counts_over_the_wrap),
		cmocka_unit_test(WIRE_11_compares_over_the_wrap),
		cmocka_unit_test(WIRE_11_ranges_over_the_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
