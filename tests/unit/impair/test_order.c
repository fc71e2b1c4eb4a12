/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that wait: for a time, for others of their QP, or for both. */
#include "impair_bed.h"

#define US TIME_NS_PER_US

static void
delays_to_the_nanosecond_and_lets_others_overtake(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_DELAY, .delay_us = 10, .direction = IMPAIR_REQUEST },
	};

	(void)state;
	bed_start_rules(0, r, 1);
	bed_send(17, 0);
	bed_send(17, 1);
	bed_put(bed_frame(17, 2, ACK, false));
	bed_poll(32);
	bed_expect(2);
	bed.now += 4 * US;
	bed_send(17, 3);
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	assert_int_equal(impair_next(bed.im), TIME_NS_PER_S + 10 * US);
	bed.now += 6 * US - 1;
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	bed.now += 1;
	bed_poll(32); /* nothing arrives: an empty poll is enough */
	bed_expect(0, 1);
	bed.now += 4 * US;
	bed_put(bed_frame(17, 4, ACK, false));
	bed_poll(32); /* what is due goes before what arrives */
	bed_expect(3, 4);
	assert_int_equal(bed_counters().delayed, 3);
	bed_stop();
}

static void
reorders_by_packets_of_the_same_qp_or_gives_up(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_REORDER, .distance = 2, .given = IMPAIR_GIVEN_PSN, .psn = 10 },
		{ .action = IMPAIR_REORDER, .hold_us = 20, .given = IMPAIR_GIVEN_PSN, .psn = 20 },
		{ .action = IMPAIR_DROP, .given = IMPAIR_GIVEN_PSN, .psn = 11 },
	};

	(void)state;
	bed_start_rules(0, r, 3);
	bed_send(17, 10);
	bed_send(18, 5);  /* another QP */
	bed_send(17, 11); /* dropped: has not gone by */
	bed_send(17, 12);
	bed_send(17, 13);
	bed_send(17, 14);
	bed_poll(32);
	bed_expect(5, 12, 13, 10, 14);
	bed_send(17, 20);
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	assert_int_equal(impair_next(bed.im), TIME_NS_PER_S + 20 * US);
	bed.now += 20 * US - 1;
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	bed.now += 1;
	bed_poll(32);
	bed_expect(20);
	assert_int_equal(bed_counters().reordered, 2);
	bed_stop();
}

static void
a_packet_overtaken_and_delayed_is_both(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_DELAY, .delay_us = 10 },
		{ .action = IMPAIR_REORDER, .given = IMPAIR_GIVEN_PSN, .psn = 0 },
	};

	(void)state;
	bed_start_rules(0, r, 2);
	bed_send(17, 0);
	bed_send(17, 1);
	bed_send(17, 2);
	bed_poll(32);
	bed.now += 10 * US;
	bed_poll(32);
	bed_expect(1, 0, 2);
	bed_stop();
}

/* A packet that is put off has overtaken nobody yet. */
static void
a_delayed_packet_overtakes_when_it_goes_out(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_REORDER, .given = IMPAIR_GIVEN_PSN, .psn = 0, .hold_us = 50 },
		{ .action = IMPAIR_DELAY, .delay_us = 10, .given = IMPAIR_GIVEN_PSN, .psn = 1 },
		{ .action = IMPAIR_REORDER, .given = IMPAIR_GIVEN_PSN, .psn = 10, .hold_us = 50 },
		{ .action = IMPAIR_DELAY, .delay_us = 10, .given = IMPAIR_GIVEN_PSN, .psn = 11 },
	};

	(void)state;
	bed_start_rules(0, r, 4);
	for (uint32_t psn = 0; psn < 4; psn++)
		bed_send(17, psn);
	bed_poll(32);
	bed_expect(2, 0, 3);
	bed.now += 10 * US;
	bed_poll(32);
	bed_expect(1);
	bed_send(17, 10);
	bed_send(17, 11);
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	bed.now += 10 * US;
	bed_poll(32);
	bed_expect(11, 10);
	assert_int_equal(bed_counters().reordered, 2);
	assert_int_equal(bed_counters().delayed, 2);
	bed_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_to_the_nanosecond_and_lets_others_overtake),
		cmocka_unit_test(reorders_by_packets_of_the_same_qp_or_gives_up),
		cmocka_unit_test(a_packet_overtaken_and_delayed_is_both),
		cmocka_unit_test(a_delayed_packet_overtakes_when_it_goes_out),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
