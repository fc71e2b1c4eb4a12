/* SPDX-License-Identifier: BSD-3-Clause */
/* The longest turn is kept with its longest piece, and the CPU's time of it is never too little. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "compiler.h"
#include "turn.h"

static ns_t now;

static ns_t
fake_clock(void)
{
	return now;
}

static ns_t
thread_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (ns_t)t.tv_sec * TIME_NS_PER_S + (ns_t)t.tv_nsec;
}

/* This thread runs for at least so long; returns what it was. */
static ns_t
burn(ns_t cpu)
{
	const ns_t from = thread_time();
	ns_t ran;

	do
		ran = thread_time() - from;
	while (ran < cpu);
	return ran;
}

static void
the_longest_turn_is_kept(void **state UNUSED)
{
	struct turns t = { 0 };

	now = 1000;
	env_turn_begin(&t, fake_clock, now);
	now += 5;
	env_turn_piece(&t, "short");
	now += 100;
	env_turn_piece(&t, "long");
	env_turn_end(&t);
	env_turn_begin(&t, fake_clock, now);
	now += 50;
	env_turn_piece(&t, "other");
	env_turn_end(&t);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.worst.took, 105);
	assert_int_equal(t.worst.piece_took, 100);
	assert_string_equal(t.worst.piece, "long");
	assert_true(t.worst.cpu <= t.worst.took);
}

static void
waits_are_no_time_of_the_cpu(void **state UNUSED)
{
	struct turns t = { 0 };

	now = TIME_NS_PER_S;
	env_turn_begin(&t, fake_clock, now);
	now += 3600 * TIME_NS_PER_S;
	env_turn_piece(&t, "wait");
	env_turn_end(&t);
	assert_int_equal(t.worst.took, 3600 * TIME_NS_PER_S);
	assert_true(t.worst.cpu < 60 * TIME_NS_PER_S);
}

/* The CPU's time was read in an earlier turn; what this one used is all in it. */
static void
work_counts_after_many_short_turns(void **state UNUSED)
{
	struct turns t = { 0 };
	ns_t ran;

	now = TIME_NS_PER_S;
	for (unsigned int i = 0; i < 50; i++) {
		env_turn_begin(&t, fake_clock, now);
		now += TURN_CPU_EVERY / 7;
		env_turn_piece(&t, "short");
		env_turn_end(&t);
	}
	env_turn_begin(&t, fake_clock, now);
	ran = burn(2 * TIME_NS_PER_MS);
	now += TIME_NS_PER_S;
	env_turn_piece(&t, "work");
	env_turn_end(&t);
	assert_string_equal(t.worst.piece, "work");
	assert_true(t.worst.cpu >= ran);
}

/* What was used before, in short turns or between them, is not charged to a later turn. */
static void
work_before_does_not_count_for_long(void **state UNUSED)
{
	struct turns t = { 0 };

	now = TIME_NS_PER_S;
	env_turn_begin(&t, fake_clock, now);
	env_turn_end(&t);
	burn(20 * TIME_NS_PER_MS);
	now += TURN_CPU_EVERY;
	env_turn_begin(&t, fake_clock, now);
	now += TIME_NS_PER_S;
	env_turn_piece(&t, "nothing");
	env_turn_end(&t);
	assert_true(t.worst.cpu < 20 * TIME_NS_PER_MS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_turn_is_kept),
		cmocka_unit_test(waits_are_no_time_of_the_cpu),
		cmocka_unit_test(work_counts_after_many_short_turns),
		cmocka_unit_test(work_before_does_not_count_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
