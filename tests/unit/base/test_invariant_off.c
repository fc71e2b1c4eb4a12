/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ASSERT as release builds have it: nothing is evaluated, and what only an ASSERT uses gives no
 * warning. This program is linked without lib/base, so that a call of invariant_failed() would be
 * an error of the linker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "invariant.h"

static int calls;

static int
count_a_call(void)
{
	return ++calls;
}

static void
does_not_evaluate_the_condition(void **state)
{
	const int used_in_an_assert_only = 3;

	(void)state;
	ASSERT(count_a_call() == 7);
	ASSERT(used_in_an_assert_only == 4);
	assert_int_equal(calls, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_not_evaluate_the_condition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
