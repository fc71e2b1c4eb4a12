/* SPDX-License-Identifier: BSD-3-Clause */
/* When a worker did not turn: what is kept of it, and which of it was at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler.h"
#include "load.h"

#define MS TIME_NS_PER_MS

static struct stats_load l;

/** A turn that begins now; the one before it began so long ago. */
static void
turn(ns_t now, ns_t ago)
{
	stats_turn_begins(&l, now - ago, now);
}

static int
begin(void **state UNUSED)
{
	memset(&l, 0, sizeof(l));
	return 0;
}

static void
none_before_the_first_turn(void **state UNUSED)
{
	assert_int_equal(stats_stall_between(&l, 0, UINT64_MAX, 1000 * MS), 0);
}

static void
short_ones_are_none(void **state UNUSED)
{
	turn(100 * MS, 10 * MS - 1);
	assert_int_equal(l.stalls_n, 0);
	assert_int_equal(stats_stall_between(&l, 0, 200 * MS, 100 * MS + 10 * MS - 1), 0);
	turn(200 * MS, 10 * MS);
	assert_int_equal(l.stalls_n, 1);
	assert_int_equal(l.stall_ns, 10 * MS);
	assert_int_equal(stats_stall_between(&l, 0, 300 * MS, 200 * MS), 10 * MS);
}

/* From 100 to 150 ms: any time that shares some of it. */
static void
counts_where_it_was(void **state UNUSED)
{
	static const struct {
		ns_t from, to, want;
	} rows[] = {
		{ 0, 100, 0 },
		{ 0, 101, 50 },
		{ 120, 130, 50 },
		{ 149, 400, 50 },
		{ 150, 400, 0 },
	};

	turn(150 * MS, 50 * MS);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(stats_stall_between(
					 &l, rows[i].from * MS, rows[i].to * MS, 151 * MS),
			rows[i].want * MS);
}

static void
the_longest_counts(void **state UNUSED)
{
	turn(100 * MS, 20 * MS);
	turn(200 * MS, 70 * MS);
	turn(300 * MS, 30 * MS);
	assert_int_equal(stats_stall_between(&l, 0, 300 * MS, 300 * MS), 70 * MS);
	assert_int_equal(stats_stall_between(&l, 250 * MS, 300 * MS, 300 * MS), 30 * MS);
	assert_int_equal(l.stall_ns, 120 * MS);
}

/* A worker that does not come back: as long as it is now. */
static void
one_that_goes_on(void **state UNUSED)
{
	turn(100 * MS, 0);
	assert_int_equal(stats_stall_between(&l, 90 * MS, 120 * MS, 600 * MS), 500 * MS);
	assert_int_equal(stats_stall_between(&l, 90 * MS, 100 * MS, 600 * MS), 0);
	assert_int_equal(stats_stall_between(&l, 600 * MS, 600 * MS, 600 * MS), 500 * MS);
	turn(700 * MS, 600 * MS);
	assert_int_equal(stats_stall_between(&l, 90 * MS, 120 * MS, 701 * MS), 600 * MS);
}

/* The newest seven: the eighth place may be being written. */
static void
old_ones_are_forgotten(void **state UNUSED)
{
	for (ns_t i = 1; i <= 40; i++)
		turn(i * 1000 * MS, i * 10 * MS);
	assert_int_equal(l.stalls_n, 40);
	assert_int_equal(stats_stall_between(&l, 0, 33001 * MS, 40000 * MS), 0);
	assert_int_equal(stats_stall_between(&l, 0, 34001 * MS, 40000 * MS), 340 * MS);
	assert_int_equal(stats_stall_between(&l, 0, 40000 * MS, 40000 * MS), 400 * MS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(none_before_the_first_turn, begin),
		cmocka_unit_test_setup(short_ones_are_none, begin),
		cmocka_unit_test_setup(counts_where_it_was, begin),
		cmocka_unit_test_setup(the_longest_counts, begin),
		cmocka_unit_test_setup(one_that_goes_on, begin),
		cmocka_unit_test_setup(old_ones_are_forgotten, begin),
	};

	return cmocka_run_group_tests_name("stall", tests, NULL, NULL);
}
