/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate of a port's link, which may change below a QP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cc.h"

/* CC-11, CC-20: the line rate is that of the link now, whatever it was before. */
static void
the_line_changes(void **state UNUSED)
{
	struct cc_params p;
	struct cc c;
	ns_t t = 0;

	cc_preset(CC_MLX5, &p);
	p.line_rate = 10000;
	cc_start(&c, &p);
	cc_line(&c, 0); /* not known */
	assert_int_equal(10000000, c.rate);
	cc_line(&c, 1000);
	assert_int_equal(1000000, c.rate);
	assert_false(cc_is_paced(&c));
	cc_notified(&c, 0);
	assert_true(c.rate < 1000000);
	assert_int_equal(1000000, c.target);
	cc_line(&c, 500);
	assert_true(c.rate <= 500000);
	assert_int_equal(500000, c.target);
	cc_line(&c, 25000);
	while (cc_is_paced(&c) && t < 10000 * TIME_NS_PER_MS)
		cc_advance(&c, t += TIME_NS_PER_MS);
	assert_int_equal(25000000, c.rate);
	c.p.rpg_max_rate = 40000;
	cc_line(&c, 100000);
	assert_int_equal(40000000, c.rate);
	assert_true(cc_is_paced(&c));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
