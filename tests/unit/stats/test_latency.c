/* SPDX-License-Identifier: BSD-3-Clause */
/* The histogram against times that are known one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "latency.h"

/* No gap, no overlap: each bucket begins behind the one before it. */
static void
buckets_follow_each_other(void **state UNUSED)
{
	assert_int_equal(latency_bucket(0), 0);
	for (uint32_t i = 0; i + 1 < LATENCY_BUCKETS; i++) {
		uint64_t upper = latency_upper(i);

		assert_int_equal(latency_bucket(upper), i);
		assert_int_equal(latency_bucket(upper + 1), i + 1);
	}
	assert_true(latency_upper(LATENCY_BUCKETS - 1) == (UINT64_C(1) << 36) - 1);
	assert_int_equal(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
	assert_int_equal(latency_bucket(UINT64_C(1) << 36), LATENCY_BUCKETS - 1);
}

static void
a_time_is_told_within_a_sixteenth(void **state UNUSED)
{
	for (uint64_t ns = 1; ns < UINT64_C(1) << 36; ns += 1 + ns / 7) {
		uint64_t told = latency_upper(latency_bucket(ns));

		assert_true(told >= ns);
		assert_true(told - ns <= ns / 16);
	}
}

static int
by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void
percentiles_are_those_of_the_sorted_times(void **state UNUSED)
{
	enum { N = 12345 };
	static const uint32_t permilles[] = { 1, 10, 500, 900, 990, 999, 1000 };
	static uint64_t times[N];
	struct latency *l = calloc(2, sizeof(*l));
	uint64_t x = 1;

	assert_non_null(l);
	for (uint32_t i = 0; i < N; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		times[i] = x >> 40 >> (x % 17);
		latency_add(&l[i % 2], times[i]);
	}
	qsort(times, N, sizeof(times[0]), by_size);
	latency_sum(&l[0], &l[1]);
	assert_int_equal(latency_count(&l[0]), N);
	for (size_t i = 0; i < ARRAY_LEN(permilles); i++) {
		uint32_t rank = (N * permilles[i] + 999) / 1000; /* the least that is enough */
		uint64_t exact = times[rank - 1];
		uint64_t told = latency_permille(&l[0], permilles[i]);

		assert_true(told >= exact);
		assert_true(told - exact <= exact / 16);
	}
	free(l);
}

static void
nothing_has_no_percentile(void **state UNUSED)
{
	struct latency *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	assert_int_equal(latency_count(l), 0);
	assert_int_equal(latency_permille(l, 500), 0);
	assert_int_equal(latency_permille(l, 1000), 0);
	latency_add(l, 10);
	assert_int_equal(latency_permille(l, 1), 10);
	assert_int_equal(latency_permille(l, 1000), 10);
	free(l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_follow_each_other),
		cmocka_unit_test(a_time_is_told_within_a_sixteenth),
		cmocka_unit_test(percentiles_are_those_of_the_sorted_times),
		cmocka_unit_test(nothing_has_no_percentile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
