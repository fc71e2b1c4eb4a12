/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency histogram of rocelane-perf: shares within a bucket's width, whatever the range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf.h"

#define WIDTH (1.0 / 64) /* of a bucket, relative */

static struct hist h;

static void
near(double got, double want)
{
	if (got < want * (1 - WIDTH) - 1 || got > want * (1 + WIDTH) + 1)
		fail_msg("%f is not within a bucket of %f", got, want);
}

static void
test_empty(void **state)
{
	(void)state;
	hist_reset(&h);
	assert_true(hist_at(&h, 0.5) == 0 && hist_mean(&h) == 0 && hist_stdev(&h) == 0);
}

static void
test_shares_of_a_ramp(void **state)
{
	static const uint64_t steps[] = { 1, 7, 1000, 123457, 1000000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const double step = (double)steps[i];

		hist_reset(&h);
		for (uint64_t k = 1; k <= 1000; k++)
			hist_add(&h, k * steps[i]);
		assert_int_equal(1000, h.n);
		assert_int_equal(steps[i], h.min);
		assert_int_equal(1000 * steps[i], h.max);
		near(hist_at(&h, 0.5), 500 * step);
		near(hist_at(&h, 0.99), 990 * step);
		near(hist_at(&h, 0.999), 999 * step);
		near(hist_mean(&h), 500.5 * step);
		near(hist_stdev(&h), 288.67 * step); /* sqrt((1000^2 - 1) / 12) */
	}
}

static void
test_one_value_is_itself(void **state)
{
	static const uint64_t values[] = { 0, 1, 63, 64, 65, 127, 128, 4095, 999999999,
		UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		hist_reset(&h);
		hist_add(&h, values[i]);
		assert_true(hist_at(&h, 0.5) == (double)values[i]);
		assert_true(hist_at(&h, 1) == (double)values[i]);
	}
}

/* One completion tells of 100 messages each 0.7 s, and somebody looks every 10 ms. */
static void
peak_is_from_completion_to_completion(void **state)
{
	struct meter m;

	(void)state;
	meter_start(&m, 5);
	for (uint64_t t = 0; t <= 2100; t += 10)
		meter_see(&m, t / 700 * 100, 5 + t * 1000000);
	assert_true(m.peak > 142.8 && m.peak < 142.9);
}

/* The rate of the best window, where it changes; none while nothing is done. */
static void
peak_is_the_best_window(void **state)
{
	struct meter m;
	uint64_t done = 0;

	(void)state;
	meter_start(&m, 0);
	for (uint64_t t = 1; t <= 1000; t++) {
		done += t > 400 && t <= 600 ? 20 : 5;
		meter_see(&m, done, t * 1000000);
	}
	assert_true(m.peak > 19999 && m.peak < 20001);
	meter_start(&m, 0);
	meter_see(&m, 0, 900000000);
	assert_true(m.peak < 0.5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_shares_of_a_ramp),
		cmocka_unit_test(test_one_value_is_itself),
		cmocka_unit_test(peak_is_from_completion_to_completion),
		cmocka_unit_test(peak_is_the_best_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
