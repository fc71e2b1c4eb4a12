/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that asks for more time. */
#include <errno.h>

#include "active.h"

/* CM_25: after an MRA the REQ rests; a late REP is welcome. */
static void
mra(void **state)
{
	struct cm_ask ask;
	struct bed b;

	(void)state;
	bed_init(&b);
	ask = ask_of(&b);
	ask.time = 30 * TIME_NS_PER_S;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	b.c = b.v.conn;
	for (int i = 0; i < 4; i++) { /* each MRA counts from its own arrival */
		bed_message(&b, CM_MRA);
		mad_set(b.mad, MRA_service_timeout, 20);
		bed_receive(&b);
		bed_silent(&b);
		bed_state(&b, CM_MRA_REQ_RCVD);
		assert_false(bed_due(&b, cm_time(20)));
	}
	rep(&b);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_ESTABLISHED, 0);

	/* A peer that asks for more time for ever does not get it. */
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	b.c = b.v.conn;
	for (int i = 0; i < 31; i++) {
		if (bed_due(&b, TIME_NS_PER_S) && b.v.over)
			break;
		bed_message(&b, CM_MRA);
		mad_set(b.mad, MRA_service_timeout, 31);
		bed_receive(&b);
	}
	bed_event(&b, CM_EVENT_UNREACHABLE, ETIMEDOUT);
	bed_fini(&b);
}

/*
 * CM_25: an attempt of an application lasts as long as the MRAs say, but not for ever: each further
 * one costs a repetition of the REQ.
 */
static void
mra_to_the_patient(void **state)
{
	const ns_t more = cm_time(24);
	struct cm_ask ask;
	uint32_t asked = 0;
	ns_t until;
	struct bed b;

	(void)state;
	bed_init(&b);
	ask = ask_of(&b);
	ask.time = 60 * TIME_NS_PER_S;
	ask.patient = true;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	b.c = b.v.conn;
	bed_message(&b, CM_MRA);
	mad_set(b.mad, MRA_service_timeout, 24);
	bed_receive(&b);
	assert_false(bed_due(&b, more));
	rep(&b);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_ESTABLISHED, 0);

	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	b.c = b.v.conn;
	until = b.now + (CM_RETRIES + 2) * (more + 10 * TIME_NS_PER_S);
	do {
		assert_true(b.now < until);
		bed_message(&b, CM_MRA);
		mad_set(b.mad, MRA_service_timeout, 24);
		bed_receive(&b);
		asked++;
	} while (!(bed_due(&b, 60 * TIME_NS_PER_S) && b.v.over));
	bed_event(&b, CM_EVENT_UNREACHABLE, ETIMEDOUT);
	assert_int_equal(asked, CM_RETRIES + 2); /* the last one brings nothing */
	bed_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mra),
		cmocka_unit_test(mra_to_the_patient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
