/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeout becomes another one while something is under way: in SQD, or with another path. */
#include "req.h"

/* Another timeout holds for what is in flight, from when its timer began: 0 for ever. */
static void
TMR_03_another_timeout(void **state)
{
	static const uint8_t to[] = { 0, 13, 15 };
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(to); i++) {
		bed_init(s);
		POST(s, SEND(64));
		pump(s);
		s->now += 20 * MS;
		requester_timeout_set(&s->r, to[i]);
		assert_int_equal(s->r.timing, to[i] != 0);
		s->now = T0 - 1;
		s->now += to[i] == 13 ? WAIT_14 / 2 : to[i] == 15 ? 2 * WAIT_14 : 1000 * MS;
		fire(s);
		assert_int_equal(s->v.act, 0);
		s->now += MS;
		if (to[i] == 0)
			requester_timeout_set(&s->r, 14); /* it was over long ago */
		fire(s);
		expect_rule(s, "TMR-07");
		pump(s);
		expect_psns(s, S);
	}
}

/* What is no transport timer goes on: the RNR wait, and nothing where nothing owes a response. */
static void
TMR_08_another_timeout(void **state)
{
	struct bed bed, *s = &bed;
	ns_t deadline;

	(void)state;
	bed_init(s);
	requester_timeout_set(&s->r, 0);
	requester_timeout_set(&s->r, 14);
	assert_false(s->r.timing);
	POST(s, SEND(64));
	pump(s);
	ack(s, S, RNR + 20);
	deadline = s->r.deadline;
	requester_timeout_set(&s->r, 0);
	requester_timeout_set(&s->r, 8);
	assert_true(s->r.waiting_rnr && !s->r.timing);
	assert_int_equal(s->r.deadline, deadline);
	s->now = deadline;
	fire(s);
	pump(s);
	expect_psns(s, S);
	assert_true(s->r.timing);
}

RUN(T(TMR_03_another_timeout), T(TMR_08_another_timeout))
