/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of what there is only so much of: what a user and an operator get beside greedy users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler.h"
#include "quota.h"

#define USERS 20

static struct quota q;
static uint64_t has[USERS];

static enum quota_answer
get(uint32_t user, uint64_t more)
{
	const enum quota_answer a = quota_ask(&q, has[user], more, false);

	if (a == QUOTA_OK) {
		quota_take(&q, has[user], more, false);
		has[user] += more;
	}
	return a;
}

static void
give(uint32_t user, uint64_t less)
{
	quota_give(&q, has[user], less, false);
	has[user] -= less;
}

static uint64_t
get_all(uint32_t user)
{
	uint64_t n = 0;

	while (get(user, 1) == QUOTA_OK)
		n++;
	return n;
}

static void
begin(uint64_t total, uint64_t kept, uint64_t most)
{
	quota_init(&q, total, kept, most);
	for (uint32_t i = 0; i < USERS; i++)
		has[i] = 0;
}

static void
one_user_has_no_more_than_his_most(void **state UNUSED)
{
	begin(128, 16, 64);
	assert_int_equal(get_all(0), 64);
	assert_int_equal(get(0, 1), QUOTA_USER);
	give(0, 1);
	assert_int_equal(get(0, 2), QUOTA_USER);
	assert_int_equal(get(0, 1), QUOTA_OK);
	assert_int_equal(get(0, UINT64_MAX), QUOTA_USER);
}

/* Two take all they can: whoever comes later still gets something, up to so many. */
static void
each_user_has_a_least(void **state UNUSED)
{
	begin(128, 16, UINT64_MAX);
	assert_true(get_all(0) > 64);
	get_all(1);
	assert_int_equal(get(0, 1), QUOTA_ALL);
	for (uint32_t i = 2; i < 8; i++)
		assert_int_equal(get_all(i), q.least);
	assert_true(q.least >= 3);
	for (uint32_t i = 8; i < USERS; i++)
		get_all(i);
	assert_int_equal(q.used, 112); /* in the end all of it is used, but not the operators' */
	for (uint32_t i = 0; i < USERS; i++)
		give(i, has[i]);
	assert_int_equal(q.used, 0);
	assert_int_equal(q.beyond, 0);
}

static void
operators_have_what_is_kept_for_them(void **state UNUSED)
{
	begin(128, 16, UINT64_MAX);
	for (uint32_t i = 0; i < USERS; i++)
		get_all(i);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(quota_ask(&q, i, 1, true), QUOTA_OK);
		quota_take(&q, i, 1, true);
	}
	assert_int_equal(quota_ask(&q, 16, 1, true), QUOTA_ALL);
	quota_give(&q, 16, 16, true);
	for (uint32_t i = 0; i < USERS; i++)
		give(i, has[i]);
	/* Alone they may have everything; users then get what is left. */
	assert_int_equal(quota_ask(&q, 0, 128, true), QUOTA_OK);
	quota_take(&q, 0, 127, true);
	assert_int_equal(get(3, 1), QUOTA_OK);
	assert_int_equal(get(4, 1), QUOTA_ALL);
}

/* What operators use out of their part takes nothing from the users'. */
static void
operators_and_users_are_apart(void **state UNUSED)
{
	begin(128, 16, UINT64_MAX);
	quota_take(&q, 0, 16, true);
	for (uint32_t i = 0; i < USERS; i++)
		get_all(i);
	assert_int_equal(q.used, 112);
}

/* A small number is not eaten up by what is kept free. */
static void
small_totals(void **state UNUSED)
{
	for (uint64_t total = 1; total < 40; total++) {
		begin(total, 0, UINT64_MAX);
		assert_true(get_all(0) * 4 >= total * 3);
		assert_true(total < 4 || get(1, 1) == QUOTA_OK);
	}
	begin(4, 8, UINT64_MAX);
	assert_int_equal(get(0, 1), QUOTA_ALL);
	assert_int_equal(quota_ask(&q, 0, 4, true), QUOTA_OK);
}

static void
any_order_adds_up(void **state UNUSED)
{
	uint32_t r = 7;

	begin(1 << 20, 1 << 16, 1 << 19);
	for (uint32_t i = 0; i < 200000; i++) {
		uint64_t sum = 0, beyond = 0;
		uint32_t u;

		r = r * 1664525 + 1013904223;
		u = r >> 8 & 15;
		if ((r >> 30) != 0)
			get(u, r >> 12 & 0xffff);
		else
			give(u, has[u] * (r >> 12 & 0xff) / 255);
		for (u = 0; u < USERS; u++) {
			sum += has[u];
			beyond += has[u] > q.least ? has[u] - q.least : 0;
			assert_true(has[u] <= q.most);
		}
		assert_int_equal(sum, q.used);
		assert_int_equal(beyond, q.beyond);
		assert_true(sum <= q.total - q.kept);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_has_no_more_than_his_most),
		cmocka_unit_test(each_user_has_a_least),
		cmocka_unit_test(operators_have_what_is_kept_for_them),
		cmocka_unit_test(operators_and_users_are_apart),
		cmocka_unit_test(small_totals),
		cmocka_unit_test(any_order_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
