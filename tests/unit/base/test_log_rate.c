/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody else can cause does not fill the log, and is not lost without a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler.h"
#include "log_rate.h"

static uint32_t lines;
static char last[512];

static void
sink(void *ctx UNUSED, enum log_level level UNUSED, const char *line)
{
	lines++;
	snprintf(last, sizeof(last), "%s", line);
}

static int
setup(void **state UNUSED)
{
	lines = 0;
	log_set_sink(sink, NULL);
	return 0;
}

static void
a_flood_is_a_few_lines_and_a_number(void **state UNUSED)
{
	struct log_rate rate = { 0 };
	ns_t now = 1000;
	uint32_t left_out;

	for (uint32_t i = 0; i < 1000; i++)
		log_rated(&rate, now, LOG_WARN, "line %u", i);
	assert_int_equal(lines, LOG_RATE_BURST);
	assert_string_equal(last, "line 4");
	/* An hour of it, a thousand a second: one line in ten seconds, and the sum is right. */
	left_out = 1000 - LOG_RATE_BURST;
	for (uint32_t i = 0; i < 3600000; i++) {
		uint32_t before = lines;

		now += TIME_NS_PER_MS;
		log_rated(&rate, now, LOG_WARN, "line");
		if (lines != before) {
			char want[128];

			snprintf(want, sizeof(want),
				"line (%u lines like this one were left out before it)", left_out);
			assert_string_equal(last, want);
			left_out = 0;
		} else {
			left_out++;
		}
	}
	assert_in_range(lines, 360 + LOG_RATE_BURST - 1, 360 + LOG_RATE_BURST);
}

static void
one_now_and_then_is_written(void **state UNUSED)
{
	struct log_rate rate = { 0 };
	ns_t now = 1;

	for (uint32_t i = 0; i < 100; i++, now += LOG_RATE_EVERY)
		assert_true(log_rated(&rate, now, LOG_WARN, "%s", "now and then"));
	assert_string_equal(last, "now and then");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_flood_is_a_few_lines_and_a_number, setup),
		cmocka_unit_test_setup(one_now_and_then_is_written, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
