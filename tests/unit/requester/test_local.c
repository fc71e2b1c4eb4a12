/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests without a packet: binds and invalidates. */
#include "req.h"

/* A bind has no PSN: its turn comes when what is older has completed, and holds the rest up. */
static void
MW_12_local_work(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, SEND(64));
	POST(s, .opcode = WR_BIND_MW);
	POST(s, .opcode = WR_LOCAL_INV);
	POST(s, SEND(64));
	assert_int_equal(pump(s), REQ_ORDERED);
	expect_psns(s, S);
	ack(s, S, ACK);
	for (uint32_t position = 1; position <= 2; position++) {
		assert_int_equal(pump(s), REQ_LOCAL);
		assert_int_equal(pump(s), REQ_LOCAL); /* until it is done */
		assert_int_equal(s->n, 0);
		requester_local_done(&s->r, &s->v);
		assert_int_equal(s->v.act, REQACT_COMPLETE);
		assert_int_equal(s->v.head_was, position);
		assert_int_equal(s->v.completed, 1);
	}
	assert_int_equal(pump(s), REQ_IDLE);
	expect_psns(s, S + 1);
}

/* One that cannot be: class B, like any other fault. */
static void
MW_04_local_fault(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, .opcode = WR_BIND_MW);
	assert_int_equal(pump(s), REQ_LOCAL);
	requester_local_fault(&s->r, 0, WR_FAULT_BIND, &s->v);
	assert_int_equal(pump(s), REQ_FAULT);
	requester_check_fault(&s->r, &s->v);
	expect_rule(s, "MW-04");
	expect_error(s, 0, 6, 5); /* IBV_WC_MW_BIND_ERR */
}

/* The peer counts messages, and a bind is none: it uses no credit up, nor does it lend one. */
static void
FLOW_04_local_work_has_no_msn(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_CREDITS;
	for (uint32_t i = 0; i < 8; i++) {
		POST(s, .opcode = i % 2 == 0 ? WR_BIND_MW : WR_LOCAL_INV);
		assert_int_equal(pump(s), REQ_LOCAL);
		requester_local_done(&s->r, &s->v);
		count_completions(s);
	}
	POST(s, SEND(64));
	pump(s);
	expect_psns(s, S);
	FEED(s, .op = OP_RC_ACKNOWLEDGE, .psn = S, .syn = 2, .msn = 1); /* MSN 2 and 3 may go */
	expect_done(s, 9);
	POST(s, SEND(64));
	POST(s, SEND(64));
	POST(s, SEND(64));
	assert_int_equal(pump(s), REQ_NO_CREDIT);
	expect_psns(s, S + 1, S + 2);
}

RUN(T(MW_12_local_work), T(MW_04_local_fault), T(FLOW_04_local_work_has_no_msn))
