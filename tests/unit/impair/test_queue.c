/* SPDX-License-Identifier: BSD-3-Clause */
/* A bottleneck on a port (CC-27): when frames leave, which are marked, which are dropped. */
#include "impair_bed.h"

#define FRAME_NS 1000 /* at the rate below */

static const struct impair_conf one_a_microsecond = {
	.bottleneck = { .rate = FRAME_LEN * UINT64_C(8000000), .buffer = 100 * FRAME_LEN }
};

static void
frames_leave_at_its_rate_and_in_order(void **state)
{
	(void)state;
	bed_start(&one_a_microsecond);
	assert_true(impair_next(bed.im) == UINT64_MAX);
	for (uint32_t i = 0; i < 4; i++)
		bed_send(17 + i, i);
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	assert_int_equal(bed_counters().queue_bytes, 4 * FRAME_LEN);
	assert_int_equal(bed_counters().held, 4);
	assert_true(impair_next(bed.im) == bed.now + FRAME_NS);
	bed.now += FRAME_NS - 1;
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	bed.now += 1;
	bed_poll(32);
	bed_expect(0);
	bed.now += 2 * FRAME_NS;
	bed_poll(1);
	bed_expect(1);
	bed_poll(32);
	bed_expect(2);
	bed.now += FRAME_NS;
	bed_poll(32);
	bed_expect(3);
	assert_int_equal(bed_counters().queue_bytes, 0);
	assert_int_equal(bed_counters().queue_max, 3 * FRAME_LEN);
	assert_true(impair_next(bed.im) == UINT64_MAX);
	bed_send(17, 4); /* some wait, some are left at the end */
	bed_send(17, 5);
	bed_poll(32);
	bed_stop();
}

static void
what_does_not_fit_is_dropped(void **state)
{
	struct impair_conf conf = one_a_microsecond;

	(void)state;
	conf.bottleneck.buffer = 3 * FRAME_LEN;
	bed_start(&conf);
	for (uint32_t i = 0; i < 5; i++)
		bed_send(17, i);
	bed_poll(32);
	assert_int_equal(bed_counters().queue_dropped, 2);
	assert_int_equal(bed_counters().limited, 0);
	bed.now += FRAME_NS;
	bed_send(17, 5);
	bed_poll(32);
	bed_expect(0);
	bed.now += 5 * FRAME_NS;
	bed_poll(32);
	bed_expect(1, 2, 5);
	bed_stop();
}

static void
the_limit_on_held_packets_holds(void **state)
{
	struct impair_conf conf = one_a_microsecond;

	(void)state;
	conf.held_max = 2;
	bed_start(&conf);
	for (uint32_t i = 0; i < 5; i++)
		bed_send(17, i);
	bed_poll(32);
	assert_int_equal(bed_counters().held, 2);
	assert_int_equal(bed_counters().queue_dropped, 3);
	assert_int_equal(bed_counters().limited, 3);
	/* Another limit counts from the next packet on; with less of it nothing is lost. */
	conf.held_max = 4;
	assert_int_equal(impair_set(bed.im, &conf), 0);
	for (uint32_t i = 5; i < 8; i++)
		bed_send(17, i);
	bed_poll(32);
	assert_int_equal(bed_counters().held, 4);
	assert_int_equal(bed_counters().limited, 4);
	conf.held_max = 1;
	assert_int_equal(impair_set(bed.im, &conf), 0);
	bed_send(17, 8);
	bed_poll(32);
	assert_int_equal(bed_counters().held, 4);
	assert_int_equal(bed_counters().limited, 5);
	bed.now += 10 * FRAME_NS;
	bed_poll(32);
	bed_expect(0, 1, 5, 6);
	bed_stop();
}

/* From kmax on all are marked, below kmin none, and never one that is Not-ECT. */
static void
marks_by_the_queue_that_a_frame_finds(void **state)
{
	struct impair_conf conf = one_a_microsecond;
	struct rte_mbuf *m;

	(void)state;
	conf.bottleneck.kmin = 2 * FRAME_LEN;
	conf.bottleneck.kmax = 2 * FRAME_LEN;
	conf.bottleneck.pmax = 1;
	for (uint32_t ipv6 = 0; ipv6 < 2; ipv6++) {
		/* In IPv6 a byte's high half: the frame is longer, and its payload begins later. */
		bed_start(&conf);
		for (uint32_t i = 0; i < 4; i++)
			bed_put(bed_frame(17, i, SEND_ONLY, ipv6 != 0));
		m = bed_frame(17, 4, SEND_ONLY, ipv6 != 0);
		rte_pktmbuf_mtod(m, uint8_t *)[15] &= ipv6 != 0 ? 0xcf : 0xfc;
		bed_put(m);
		bed_poll(32);
		bed.now += 10 * FRAME_NS;
		bed_poll(32);
		bed_expect(0, 1, 2, 3, 4);
		for (uint32_t i = 0; i < 5; i++) {
			const uint8_t ecn = rte_pktmbuf_mtod(bed.m[i], const uint8_t *)[15] >>
					    (ipv6 != 0 ? 4 : 0);

			assert_int_equal(ecn & 3, i < 2 ? 2 : i < 4 ? 3 : 0);
		}
		assert_int_equal(bed_counters().queue_marked, 2);
		bed_stop();
	}
}

/* The rules come first: what they delay or drop is not in the queue. */
static void
the_rules_come_before_it(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_DELAY, .delay_us = 2, .given = IMPAIR_GIVEN_PSN, .psn = 0 },
		{ .action = IMPAIR_DROP, .given = IMPAIR_GIVEN_PSN, .psn = 1 },
		{ .action = IMPAIR_DUPLICATE, .given = IMPAIR_GIVEN_PSN, .psn = 3 },
	};
	struct impair_conf conf = one_a_microsecond;

	(void)state;
	conf.rules = r;
	conf.n_rules = 3;
	bed_start(&conf);
	for (uint32_t i = 0; i < 4; i++)
		bed_send(17, i);
	bed_poll(32);
	assert_int_equal(bed_counters().queue_bytes, 3 * FRAME_LEN);
	bed.now += 2 * FRAME_NS;
	bed_poll(32);
	bed_expect(2, 3);
	bed.now += 2 * FRAME_NS;
	bed_poll(32);
	bed_expect(3, 0);
	bed_stop();
}

/* Nothing overtakes what waits when another bottleneck comes, or none. */
static void
what_waits_leaves_when_the_bottleneck_is_taken_away(void **state)
{
	const struct impair_conf none = { 0 };

	(void)state;
	bed_start(&one_a_microsecond);
	bed_send(17, 0);
	bed_send(17, 1);
	bed_poll(32);
	assert_int_equal(impair_set(bed.im, &none), 0);
	bed_send(17, 2);
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	bed.now += 2 * FRAME_NS;
	bed_poll(32);
	bed_expect(0, 1, 2);
	bed_send(17, 3);
	bed_poll(32);
	bed_expect(3);
	assert_int_equal(impair_set(bed.im, &one_a_microsecond), 0);
	bed_send(17, 4);
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	bed_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_leave_at_its_rate_and_in_order),
		cmocka_unit_test(what_does_not_fit_is_dropped),
		cmocka_unit_test(the_limit_on_held_packets_holds),
		cmocka_unit_test(marks_by_the_queue_that_a_frame_finds),
		cmocka_unit_test(the_rules_come_before_it),
		cmocka_unit_test(what_waits_leaves_when_the_bottleneck_is_taken_away),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
