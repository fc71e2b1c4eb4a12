/* SPDX-License-Identifier: BSD-3-Clause */
/* Services without ACKs: done when the port has it (UC-02), SQE and back (UC-15), UC-16, UC-19. */
#include "req.h"
#include "verbs.h"

static void
uc_init(struct bed *s)
{
	bed_init(s);
	s->r.transport = WIRE_UC;
	s->r.qp_type = QPT_UC;
	s->r.timeout = 0;
}

/** The next packet, by requester_next() alone. */
static enum requester_stop
next(struct bed *s, struct requester_packet *p)
{
	const enum requester_stop why = requester_next(&s->r, s->now, p);

	assert_false(s->r.timing);
	if (why == REQ_SEND) {
		assert_int_equal(p->flags & PKT_ACKREQ, 0);
		assert_int_equal(p->opcode / OP_RC_END, WIRE_UC);
		assert_false(p->resend);
	}
	return why;
}

static const struct requester_verdict *
left(struct bed *s, uint32_t end)
{
	requester_left(&s->r, psn(end), s->now, &s->v);
	return &s->v;
}

static void
UC_02_done_when_the_port_has_it(void **state)
{
	struct requester_packet p;
	struct bed s;

	(void)state;
	uc_init(&s);
	POST(&s, WRITE(3 * PMTU));
	POST(&s, SEND(8));
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(next(&s, &p), REQ_SEND);
		assert_int_equal(p.psn.v, S + i);
	}
	assert_int_equal(next(&s, &p), REQ_IDLE);
	assert_int_equal(left(&s, S + 2)->act & REQACT_COMPLETE, 0);
	assert_int_equal(left(&s, S + 3)->completed, 1);
	assert_int_equal(left(&s, S + 3)->act & REQACT_COMPLETE, 0);
	assert_int_equal(left(&s, S + 4)->completed, 1);
	assert_int_equal(s.v.head_was, 1);
	assert_false(requester_outstanding(&s.r));
}

/** The window is what waits for the port. */
static void
UC_02_window(void **state)
{
	struct requester_packet p;
	struct bed s;

	(void)state;
	uc_init(&s);
	s.r.window = 2;
	POST(&s, SEND(3 * PMTU));
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_int_equal(next(&s, &p), REQ_WINDOW);
	left(&s, S + 1);
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_int_equal(left(&s, S + 3)->completed, 1);
}

static void
UC_15_fault_waits_for_its_turn(void **state)
{
	struct requester_packet p;
	struct bed s;

	(void)state;
	uc_init(&s);
	POST(&s, SEND(8));
	POST(&s, SEND(2 * PMTU));
	POST(&s, SEND(8));
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_int_equal(next(&s, &p), REQ_SEND); /* and this one could not be made */
	s.v = (struct requester_verdict){ 0 };
	requester_local_fault(&s.r, 1, WR_FAULT_PROT, &s.v);
	assert_int_equal(s.v.act & REQACT_ERROR, 0);
	assert_int_equal(next(&s, &p), REQ_FAULT);
	left(&s, S + 2); /* the first and a part of the second */
	assert_int_equal(
		s.v.act & (REQACT_COMPLETE | REQACT_ERROR), REQACT_COMPLETE | REQACT_ERROR);
	assert_int_equal(s.v.completed, 1);
	assert_int_equal(s.v.failed, 1);
	assert_int_equal(s.v.wc_status, 4); /* LOC_PROT_ERR */
	assert_int_equal(next(&s, &p), REQ_FAULT);
	requester_resume(&s.r); /* the third was flushed */
	POST(&s, SEND(8));
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_int_equal(p.psn.v, S + 2);
	assert_int_equal(left(&s, S + 3)->completed, 1);
	assert_int_equal(s.v.head_was, 3);
}

/** What of the message has left is not taken back. */
static void
UC_15_a_part_has_left(void **state)
{
	struct requester_packet p;
	struct bed s;

	(void)state;
	uc_init(&s);
	POST(&s, SEND(4 * PMTU));
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(next(&s, &p), REQ_SEND); /* and the fourth could not be made */
		if (i == 1)
			left(&s, S + 2);
	}
	s.v = (struct requester_verdict){ 0 };
	requester_local_fault(&s.r, 0, WR_FAULT_PROT, &s.v);
	assert_int_equal(s.v.act & REQACT_ERROR, REQACT_ERROR);
	assert_int_equal(s.v.failed, 0);
	assert_int_equal(next(&s, &p), REQ_FAULT);
	requester_resume(&s.r);
	POST(&s, SEND(8));
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_int_equal(p.psn.v, S + 3);
}

/** SQE entered from SQD: in RTS again, new requests start. */
static void
QP_11_from_SQD(void **state)
{
	struct requester_packet p;
	struct bed s;

	(void)state;
	uc_init(&s);
	POST(&s, SEND(2 * PMTU));
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_false(requester_drain(&s.r, true));
	assert_int_equal(next(&s, &p), REQ_SEND); /* and this one could not be made */
	s.v = (struct requester_verdict){ 0 };
	requester_local_fault(&s.r, 0, WR_FAULT_PROT, &s.v);
	assert_int_equal(s.v.act & REQACT_ERROR, REQACT_ERROR);
	requester_resume(&s.r);
	POST(&s, SEND(8));
	assert_int_equal(next(&s, &p), REQ_SEND);
	assert_int_equal(p.psn.v, S + 1);
	/* What left before SQE says nothing of it. */
	assert_int_equal(left(&s, S + 1)->completed, 0);
	assert_int_equal(left(&s, S)->completed, 0);
	assert_int_equal(left(&s, S + 2)->completed, 1);
}

/** Posted in spite of all: it fails here, and nothing of it leaves. */
static void
UC_16_operations(void **state)
{
	static const uint8_t not_on_uc[] = { WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP,
		WR_ATOMIC_FETCH_AND_ADD, WR_SEND_WITH_INV };
	struct requester_packet p;
	struct bed s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(not_on_uc); i++) {
		uc_init(&s);
		POST(&s, .opcode = not_on_uc[i], .len = 8);
		assert_int_equal(next(&s, &p), REQ_FAULT);
		requester_check_fault(&s.r, &s.v);
		assert_int_equal(s.v.act & REQACT_ERROR, REQACT_ERROR);
		assert_int_equal(s.v.wc_status, 2); /* LOC_QP_OP_ERR */
	}
}

/** A new MAC, or a timer, sends nothing again. */
static void
UC_14_nothing_is_sent_again(void **state)
{
	struct requester_packet p;
	struct bed s;

	(void)state;
	uc_init(&s);
	POST(&s, SEND(8));
	assert_int_equal(next(&s, &p), REQ_SEND);
	requester_found(&s.r, &s.v);
	assert_int_equal(s.v.act, 0);
	s.now += UINT64_C(100000000000);
	requester_timer(&s.r, s.now, &s.v);
	assert_int_equal(s.v.act, 0);
	assert_int_equal(next(&s, &p), REQ_IDLE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(UC_02_done_when_the_port_has_it),
		cmocka_unit_test(UC_02_window),
		cmocka_unit_test(UC_15_fault_waits_for_its_turn),
		cmocka_unit_test(UC_15_a_part_has_left),
		cmocka_unit_test(QP_11_from_SQD),
		cmocka_unit_test(UC_16_operations),
		cmocka_unit_test(UC_14_nothing_is_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
