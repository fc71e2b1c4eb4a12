/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane's clock beside the kernel's: a fast one would end all waits early (TMR-02). Both
 * are read between two readings of the other, so that a lost CPU widens the answer and no more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "timebase.h"

#define APART (200 * TIME_NS_PER_MS)
#define PPM   50

static ns_t
kernel_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (ns_t)ts.tv_sec * TIME_NS_PER_S + (ns_t)ts.tv_nsec;
}

/** By both clocks: the kernel's time, and between which two of ours it was. */
struct moment {
	ns_t kernel, before, after;
};

static struct moment
look(void)
{
	struct moment m, best = { 0, 0, UINT64_MAX };

	for (int i = 0; i < 100; i++) {
		m.before = timebase_now();
		m.kernel = kernel_now();
		m.after = timebase_now();
		if (m.after - m.before < best.after - best.before)
			best = m;
	}
	return best;
}

static void
TMR_02_rate_of_the_clock(void **state)
{
	const struct timespec wait = { 0, (long)APART };
	struct moment a, b;
	ns_t real, slack;

	(void)state;
	timebase_begin();
	timebase_init();
	a = look();
	nanosleep(&wait, NULL);
	b = look();
	real = b.kernel - a.kernel;
	slack = real / 1000000 * PPM;
	assert_true(b.before - a.after <= real + slack); /* fast: at least so much passed for it */
	assert_true(b.after - a.before >= real - slack); /* slow: at most so much */
}

static void
never_back(void **state)
{
	ns_t was = timebase_now();

	(void)state;
	for (int i = 0; i < 100000; i++) {
		const ns_t now = timebase_now();

		assert_true(now >= was);
		was = now;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(TMR_02_rate_of_the_clock),
		cmocka_unit_test(never_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
