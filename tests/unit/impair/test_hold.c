/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets on their way: order, times, and that each pointer comes out once. */
#include "packets.h"

#include "impair_hold.h"

static int things[1000];

static struct impair_hold *
hold_of(uint32_t max)
{
	struct impair_hold *h = malloc(sizeof(*h));

	assert_non_null(h);
	assert_int_equal(impair_hold_init(h, max), 0);
	return h;
}

static void
hold_gone(struct impair_hold *h)
{
	assert_int_equal(impair_hold_count(h), 0);
	impair_hold_fini(h);
	free(h);
}

static void
expect(struct impair_hold *h, int which)
{
	assert_ptr_equal(impair_hold_pop(h), which < 0 ? NULL : &things[which]);
}

static void
times_are_kept_to_the_nanosecond_and_equal_ones_in_order(void **state)
{
	struct impair_hold *h = hold_of(8);

	(void)state;
	assert_true(impair_hold_next(h) == UINT64_MAX);
	impair_hold_until(h, &things[0], 100);
	impair_hold_until(h, &things[1], 50);
	impair_hold_until(h, &things[2], 100);
	impair_hold_until(h, &things[3], 99);
	impair_hold_until(h, &things[4], 100);
	assert_int_equal(impair_hold_next(h), 50);
	impair_hold_due(h, 49);
	expect(h, -1);
	impair_hold_due(h, 50);
	assert_int_equal(impair_hold_next(h), 0);
	expect(h, 1);
	expect(h, -1);
	assert_int_equal(impair_hold_next(h), 99);
	impair_hold_due(h, 1000);
	impair_hold_pass(h, &things[5]);
	expect(h, 3);
	expect(h, 0);
	expect(h, 2);
	expect(h, 4);
	expect(h, 5);
	hold_gone(h);
}

static void
the_overtaken_wait_for_packets_of_their_flow_or_their_time(void **state)
{
	struct impair_hold *h = hold_of(8);

	(void)state;
	impair_hold_back(h, &(struct impair_overtaken){ &things[0], 1000, 0, 17, 2 });
	impair_hold_back(h, &(struct impair_overtaken){ &things[1], 500, 0, 18, 1 });
	impair_hold_back(h, &(struct impair_overtaken){ &things[2], 1000, 40, 17, 1 });
	assert_int_equal(impair_hold_next(h), 500);
	impair_hold_went_by(h, 19, 10);
	expect(h, -1);
	impair_hold_pass(h, &things[3]);
	impair_hold_went_by(h, 17, 10); /* 2 may go, but is delayed as well */
	expect(h, 3);
	expect(h, -1);
	assert_int_equal(impair_hold_next(h), 40);
	impair_hold_went_by(h, 17, 20);
	expect(h, 0);
	impair_hold_due(h, 40);
	expect(h, 2);
	assert_int_equal(impair_hold_next(h), 500);
	impair_hold_due(h, 499);
	expect(h, -1);
	impair_hold_due(h, 500);
	expect(h, 1);
	hold_gone(h);
}

static void
there_is_room_for_so_many(void **state)
{
	struct impair_hold *h = hold_of(IMPAIR_REORDER_MAX + 10);
	struct impair_overtaken w = { &things[0], 1, 0, 17, 1 };

	(void)state;
	for (uint32_t i = 0; i < IMPAIR_REORDER_MAX; i++)
		assert_int_equal(impair_hold_back(h, &w), 0);
	assert_true(impair_hold_back(h, &w) < 0);
	for (uint32_t i = 0; i < 9; i++)
		impair_hold_until(h, &things[1], 1);
	assert_true(impair_hold_has_room(h));
	impair_hold_pass(h, &things[2]);
	assert_false(impair_hold_has_room(h));
	/* Those that only pass through have the slack. */
	for (uint32_t i = 0; i < IMPAIR_HOLD_SLACK; i++)
		impair_hold_pass(h, &things[3]);
	impair_hold_due(h, 1);
	for (uint32_t i = 0; i < IMPAIR_REORDER_MAX + 10 + IMPAIR_HOLD_SLACK; i++)
		assert_non_null(impair_hold_pop(h));
	hold_gone(h);
}

/* Against a table of when each one may come out at the earliest. */
static void
random_work_gives_every_one_back_once_and_not_early(void **state)
{
	static ns_t due[1000];
	static uint8_t times_out[1000];
	struct impair_hold *h = hold_of(300);
	uint32_t seed = 3, out = 0;
	void *p;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		seed = seed * 1664525 + 1013904223;
		due[i] = i + (seed >> 20) % 200;
		if (seed >> 30 == 0) {
			due[i] = i;
			impair_hold_back(h, &(struct impair_overtaken){ &things[i], i + 50, 0,
						    (seed >> 10) % 4, 1 + (seed >> 12) % 3 });
		} else {
			impair_hold_until(h, &things[i], due[i]);
		}
		impair_hold_went_by(h, (seed >> 14) % 4, i);
		impair_hold_due(h, i);
		while ((p = impair_hold_pop(h)) != NULL) {
			size_t which = (size_t)((int *)p - things);

			assert_true(due[which] <= i);
			times_out[which]++;
			out++;
		}
		assert_true(impair_hold_next(h) > i);
	}
	assert_in_range(out, 700, 999);
	while ((p = impair_hold_take(h)) != NULL)
		times_out[(int *)p - things]++;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(times_out[i], 1);
	hold_gone(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_kept_to_the_nanosecond_and_equal_ones_in_order),
		cmocka_unit_test(the_overtaken_wait_for_packets_of_their_flow_or_their_time),
		cmocka_unit_test(there_is_room_for_so_many),
		cmocka_unit_test(random_work_gives_every_one_back_once_and_not_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
