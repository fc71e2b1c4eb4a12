/* SPDX-License-Identifier: BSD-3-Clause */
/* Places at the control socket: what a user takes, and what stays for others. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compiler.h"
#include "rpc_admit.h"

static struct rpc_admission a;
static struct refusal r;

static int
setup(void **state UNUSED)
{
	struct conf_control conf = { .client_limits.user.connections = 80 };

	memset(&a, 0, sizeof(a));
	rpc_admission_init(&a, &conf);
	return 0;
}

static uint32_t
fill(uint32_t uid, bool operator)
{
	uint32_t n = 0;

	while (rpc_admit(&a, uid, operator, & r) == 0)
		n++;
	return n;
}

/* 111 idle connections of a user locked all others out. */
static void
a_greedy_user_locks_nobody_out(void **state UNUSED)
{
	assert_int_equal(fill(1001, false), 80);
	assert_int_equal(r.err, EUSERS);
	assert_non_null(strstr(r.text, "user 1001 has 80 connections, and "
				       "control.client_limits.user.connections is 80"));
	fill(1002, false);
	assert_non_null(strstr(r.text, "kept for the operator and other users"));
	for (uint32_t uid = 2000; uid < 2006; uid++)
		assert_true(fill(uid, false) >= 3);
	assert_true(fill(0, true) >= RPC_PLACES - CONF_MAX_CLIENTS);
}

/* It said "0 of them of user 0": the operator's are counted apart. */
static void
the_operator_is_told_of_his_own(void **state UNUSED)
{
	assert_int_equal(rpc_admit(&a, 7, false, &r), 0);
	assert_int_equal(fill(0, true), RPC_PLACES - 1);
	assert_string_equal(
		r.text, "there are 128 connections already, 127 of them of the operator: end one");
	fill(7, false);
	assert_non_null(strstr(r.text, "128 connections already, 1 of them of user 7"));
}

static void
who_leaves_makes_room(void **state UNUSED)
{
	for (uint32_t round = 0; round < 3; round++) {
		uint32_t n[2] = { fill(7, false), fill(8, false) };

		assert_int_equal(rpc_admitted(&a, 7), n[0]);
		while (n[0]-- != 0)
			rpc_admit_end(&a, 7, false);
		while (n[1]-- != 0)
			rpc_admit_end(&a, 8, false);
		assert_int_equal(rpc_admitted(&a, 8), 0);
		assert_int_equal(a.users_n, 0);
		assert_int_equal(fill(0, true), RPC_PLACES);
		for (uint32_t i = 0; i < RPC_PLACES; i++)
			rpc_admit_end(&a, 0, true);
	}
}

/* As many users as there are places: each has one, and no more than there are are counted. */
static void
a_user_for_each_place(void **state UNUSED)
{
	uint32_t uid = 5000;

	while (rpc_admit(&a, uid, false, &r) == 0)
		uid++;
	assert_int_equal(uid - 5000, CONF_MAX_CLIENTS);
	while (uid-- != 5000)
		rpc_admit_end(&a, uid, false);
	assert_int_equal(a.users_n, 0);
}

static void
who_is_an_operator(void **state UNUSED)
{
	const struct owner_process root = { .uid = 0 }, own = { .uid = geteuid() },
				   other = { .uid = geteuid() + 4711 };

	assert_true(rpc_is_operator(&root, false));
	assert_true(rpc_is_operator(&own, false));
	assert_false(rpc_is_operator(&other, false));
	assert_false(rpc_is_operator(&root, true));
	assert_false(rpc_is_operator(&own, true));
}

/* Who has had least of the control lcore's time is served first. */
static void
time_is_shared_by_user(void **state UNUSED)
{
	assert_int_equal(rpc_admit(&a, 7, false, &r), 0);
	assert_int_equal(rpc_admit(&a, 8, false, &r), 0);
	rpc_paid(&a, 7, false, 5000);
	assert_true(rpc_used(&a, 8, false) < rpc_used(&a, 7, false));
	assert_true(rpc_used(&a, 0, true) < rpc_used(&a, 7, false));
	/* More connections are not more time. */
	assert_int_equal(rpc_admit(&a, 7, false, &r), 0);
	assert_true(rpc_used(&a, 8, false) < rpc_used(&a, 7, false));
	rpc_paid(&a, 8, false, 9000);
	assert_true(rpc_used(&a, 7, false) < rpc_used(&a, 8, false));
}

/* A user who asks for nothing saves nothing up, and one who comes again has no better place. */
static void
silence_saves_nothing_up(void **state UNUSED)
{
	assert_int_equal(rpc_admit(&a, 7, false, &r), 0);
	assert_int_equal(rpc_admit(&a, 8, false, &r), 0);
	for (uint32_t i = 0; i < 1000; i++)
		rpc_paid(&a, 7, false, 1000);
	assert_true(rpc_used(&a, 7, false) - rpc_used(&a, 8, false) <= 1000);
	assert_int_equal(rpc_admit(&a, 9, false, &r), 0);
	assert_true(rpc_used(&a, 9, false) >= rpc_used(&a, 8, false));
	assert_true(rpc_used(&a, 9, false) >= 999 * 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_greedy_user_locks_nobody_out, setup),
		cmocka_unit_test_setup(the_operator_is_told_of_his_own, setup),
		cmocka_unit_test_setup(who_leaves_makes_room, setup),
		cmocka_unit_test_setup(a_user_for_each_place, setup),
		cmocka_unit_test_setup(who_is_an_operator, setup),
		cmocka_unit_test_setup(time_is_shared_by_user, setup),
		cmocka_unit_test_setup(silence_saves_nothing_up, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
