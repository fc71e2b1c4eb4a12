/* SPDX-License-Identifier: BSD-3-Clause */
/* Local faults (class B), classes C and F, the send queue drained. */
#include "req.h"

/* REQ-CLS-B-01: A finishes late, then B fails; nothing of B or C ever leaves. RX-FATAL-05 */
static void
REQ_CLS_B_01_fault_in_the_queue(void **state)
{
	static const struct {
		uint8_t fault, status;
		const char *rule;
	} rows[] = { { WR_FAULT_PROT, WC_LOC_PROT, "REQ-CLS-B-01" },
		{ WR_FAULT_MALFORMED, WC_LOC_QP_OP, "REQ-CLS-B-05" },
		{ WR_FAULT_LENGTH, WC_LOC_LEN, "REQ-18" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		POST(s, SEND(64));
		POST(s, SEND(64), .fault = rows[i].fault);
		POST(s, SEND(64));
		assert_int_equal(pump(s), REQ_FAULT);
		expect_psns(s, S);
		requester_check_fault(&s->r, &s->v);
		assert_int_equal(s->v.act, 0); /* A first */
		expire(s);                     /* resends of A included */
		assert_int_equal(pump(s), REQ_FAULT);
		expect_psns(s, S);
		ack(s, S, ACK);
		expect_done(s, 1);
		expect_rule(s, rows[i].rule);
		expect_error(s, 1, rows[i].status, 5);
		requester_check_fault(&s->r, &s->v); /* once */
		assert_int_equal(s->v.act, 0);
	}
}

/* REQ-CLS-B-01 when A did not ask for an ACK, hoping for B: it is asked for. */
static void
REQ_CLS_B_01_silent_predecessor(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POSTF(s, 0, SEND(2500));
	POST(s, SEND(64), .fault = WR_FAULT_PROT);
	assert_int_equal(pump(s), REQ_FAULT);
	expect_psns(s, S, S + 1, S + 2, S + 2);
	assert_int_equal(s->out[2].flags & ACKREQ, 0);
	assert_int_equal(s->out[3].flags & ACKREQ, ACKREQ);
	assert_true(s->out[3].resend);
	assert_int_equal(s->out[3].len, 452);
	assert_true(s->r.timing);
	ack(s, S + 2, ACK);
	expect_done(s, 1);
	expect_error(s, 1, WC_LOC_PROT, 5);
}

/* REQ-CLS-B-01: the source of a running message is lost; with packets of later ones out as well. */
static void
REQ_CLS_B_01_fault_while_sending(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t later = 0; later < 2; later++) {
		bed_init(s);
		POSTF(s, 0, SEND(64));
		POSTF(s, 0, READ(3000));
		POSTF(s, 0, SEND(64));
		POSTF(s, 0, WRITE(4000));
		POSTF(s, 0, READ(3000));
		POSTF(s, 0, SEND(64));
		for (uint32_t i = 0; i < (later != 0 ? 9u : 5u); i++)
			assert_int_equal(requester_next(&s->r, s->now, &s->out[0]), REQ_SEND);
		memset(&s->v, 0, sizeof(s->v));
		requester_local_fault(&s->r, 3, WR_FAULT_PROT, &s->v);
		assert_int_equal(s->v.act & (REQACT_ERROR | REQACT_COMPLETE), 0);
		assert_int_equal(pump(s), REQ_FAULT);
		expect_psns(s, S + 4); /* asks about the SEND */
		assert_int_equal(s->out[0].flags & ACKREQ, ACKREQ);
		expire(s); /* what is older is retried, what is not stays here */
		assert_int_equal(pump(s), REQ_FAULT);
		assert_int_equal(s->out[0].psn.v, S);
		assert_int_equal(s->out[1].psn.v, S + 1);
		for (uint32_t i = 2; i < s->n; i++)
			assert_int_equal(s->out[i].psn.v, S + 4);
		FIRST(s, S + 1);
		expect_done(s, 1);
		MIDDLE(s, S + 2);
		LAST(s, S + 3, 952);
		expect_done(s, 2);
		/* the peer may have got all of it: it fails nevertheless */
		ack(s, later != 0 ? S + 8 : S + 5, ACK);
		expect_done(s, 3);
		expect_error(s, 3, WC_LOC_PROT, 5);
	}
}

/*
 * REQ-CLS-B-01: what is at fault does not leave again, whatever the peer asks for. No retry is
 * counted for it, and no path is left (REQ-RETRY-09).
 */
static void
REQ_CLS_B_01_asked_for_again(void **state)
{
	static const uint8_t asks[] = { NSEQ, RNR + 20 };
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		bed_init(s);
		s->r.retry_cnt = s->r.rnr_retry = 0;
		s->r.armed = i % 2 != 0;
		requester_reset(&s->r, psn(S));
		POSTF(s, 0, SEND(64));
		POSTF(s, 0, WRITE(4000));
		for (uint32_t k = 0; k < 2; k++)
			assert_int_equal(requester_next(&s->r, s->now, &s->out[0]), REQ_SEND);
		memset(&s->v, 0, sizeof(s->v));
		requester_local_fault(&s->r, 1, WR_FAULT_PROT, &s->v);
		ack(s, S + 1, asks[i / 2]);
		expect_done(s, 1);
		expect_error(s, 1, WC_LOC_PROT, 5);
		assert_int_equal(s->v.act & (REQACT_RESEND | REQACT_MIGRATE), 0);
		assert_int_equal(s->v.cause, QC_NONE);
	}
}

static void
REQ_CLS_B_01_fault_at_the_head(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, WRITE(4000));
	assert_int_equal(requester_next(&s->r, s->now, &s->out[0]), REQ_SEND);
	memset(&s->v, 0, sizeof(s->v));
	requester_local_fault(&s->r, 0, WR_FAULT_PROT, &s->v);
	expect_error(s, 0, WC_LOC_PROT, 5);
}

/* REQ-CLS-B-01 right behind a READ: data, success and the error come in one verdict; REQ-19 when
 * that data cannot be placed: the READ fails instead. */
static void
REQ_CLS_B_01_behind_a_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t lost = 0; lost < 2; lost++) {
		bed_init(s);
		POST(s, READ(64));
		POST(s, SEND(64), .fault = WR_FAULT_LENGTH);
		assert_int_equal(pump(s), REQ_FAULT);
		make_rsp(s,
			&(struct rsp){
				.op = OP_RC_READ_RESPONSE_ONLY, .psn = S, .syn = ACK, .len = 64 });
		requester_response(&s->r, &s->pkt, s->now, &s->v);
		assert_int_equal(
			s->v.act, REQACT_PLACE | REQACT_COMPLETE | REQACT_TIMER | REQACT_ERROR);
		assert_int_equal(s->v.position, 0);
		assert_int_equal(s->v.failed, 1);
		assert_int_equal(s->v.wc_status, WC_LOC_LEN);
		if (lost == 0)
			continue;
		requester_local_fault(&s->r, 0, WR_FAULT_PROT, &s->v);
		count_completions(s);
		expect_error(s, 0, WC_LOC_PROT, 5);
	}
}

/* A fault of something completed, not started or unknown does no harm. */
static void
REQ_CLS_B_01_fault_elsewhere(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	post_sends(s, 3);
	pump(s);
	ack(s, S, ACK);
	memset(&s->v, 0, sizeof(s->v));
	requester_local_fault(&s->r, 0, WR_FAULT_PROT, &s->v);
	assert_int_equal(s->v.act, 0);
	requester_local_fault(&s->r, 77, WR_FAULT_PROT, &s->v);
	assert_int_equal(s->v.act, 0);
	assert_false(s->r.failed);
	post_sends(s, 1);
	requester_local_fault(&s->r, 3, WR_FAULT_PROT, &s->v);
	assert_int_equal(pump(s), REQ_FAULT);
	assert_int_equal(s->n, 0);
	ack(s, S + 2, ACK);
	expect_error(s, 3, WC_LOC_PROT, 5);

	bed_init(s); /* the place of one that has completed is another one's */
	post_sends(s, 1);
	pump(s);
	ack(s, S, ACK);
	post_sends(s, SLOTS);
	requester_local_fault(&s->r, 0, WR_FAULT_PROT, &s->v);
	assert_int_equal(s->wr[0].fault, WR_FAULT_NONE);
}

/* REQ-CLS-B-01: of two at fault the older one stops the queue, whichever was found first. */
static void
REQ_CLS_B_01_two_at_fault(void **state)
{
	static const uint8_t found[][2] = { { 1, 2 }, { 2, 1 } };
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		bed_init(s);
		post_sends(s, 4);
		pump(s);
		memset(&s->v, 0, sizeof(s->v));
		requester_local_fault(&s->r, found[i][0], WR_FAULT_PROT, &s->v);
		requester_local_fault(&s->r, found[i][1], WR_FAULT_PROT, &s->v);
		expire(s);
		assert_int_equal(pump(s), REQ_FAULT);
		expect_psns(s, S);
		ack(s, S, ACK);
		expect_error(s, 1, WC_LOC_PROT, 5);
	}
}

/* REQ-CLS-B-05: opcodes that do not exist. */
static void
REQ_CLS_B_05_malformed(void **state)
{
	(void)state;
	for (uint32_t op = 0; op < 256; op++) {
		struct bed bed, *s = &bed;

		if (op <= 9 || op == 14 || op == 15)
			continue;
		bed_init(s);
		POST(s, .opcode = (uint8_t)op, .len = 8);
		assert_int_equal(pump(s), REQ_FAULT);
		assert_int_equal(s->n, 0);
		requester_check_fault(&s->r, &s->v);
		expect_rule(s, "REQ-CLS-B-05");
		expect_error(s, 0, WC_LOC_QP_OP, 5);
	}
}

static void
REQ_CLS_C_01_context(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	post_sends(s, 3);
	pump(s);
	requester_context_fault(&s->r, &s->v);
	assert_int_equal(s->v.act, REQACT_EVENT | REQACT_TIMER);
	assert_int_equal(s->v.event, 1); /* IBV_EVENT_QP_FATAL */
	assert_int_equal(s->v.completed, 0);
	expect_rule(s, "REQ-CLS-C-01");
	assert_int_equal(pump(s), REQ_FAULT);
	ack(s, S + 2, ACK);
	expect_no_effect(s, "REQ-CLS-B-08");
	requester_context_fault(&s->r, &s->v);
	assert_int_equal(s->v.act, 0);
}

static void
REQ_CLS_F_01_cq_overflow(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	post_sends(s, 3);
	pump(s);
	ack(s, S, ACK);
	requester_cq_overflow(&s->r, &s->v);
	assert_int_equal(s->v.act, REQACT_EVENT | REQACT_TIMER);
	assert_int_equal(s->v.event, 1);
	expect_rule(s, "REQ-CLS-F-01");
	assert_false(s->r.timing);
	assert_int_equal(pump(s), REQ_FAULT);
}

/* QP-09: nothing new starts, what was started finishes with its resends, then one report. */
static void
QP_09_drain(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.window = 3;
	post_sends(s, 6);
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_false(requester_drain(&s->r, true));
	assert_int_equal(pump(s), REQ_DRAINED);
	assert_int_equal(s->n, 0);
	ack(s, S, ACK);
	assert_int_equal(s->v.act & REQACT_DRAINED, 0);
	expire(s);
	pump(s);
	expect_psns(s, S + 1, S + 2);
	ack(s, S + 2, ACK);
	assert_int_equal(s->v.act, REQACT_COMPLETE | REQACT_TIMER | REQACT_DRAINED);
	assert_int_equal(pump(s), REQ_DRAINED);
	assert_int_equal(s->n, 0);
	/* QP-10: posting goes on; all of it starts after the return to RTS */
	post_sends(s, 1);
	assert_int_equal(pump(s), REQ_DRAINED);
	assert_int_equal(s->n, 0);
	assert_false(requester_drain(&s->r, false));
	pump(s);
	expect_psns(s, S + 3, S + 4, S + 5);
	ack(s, S + 5, ACK);
	assert_int_equal(s->v.act & REQACT_DRAINED, 0);
}

static void
QP_09_drained_at_once(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	assert_true(requester_drain(&s->r, true));
	requester_drain(&s->r, false);
	post_sends(s, 1);
	pump(s);
	ack(s, S, ACK);
	assert_true(requester_drain(&s->r, true));
	assert_int_equal(pump(s), REQ_DRAINED);
	/* What is posted and was not begun is not waited for. */
	requester_drain(&s->r, false);
	post_sends(s, 2);
	assert_true(requester_drain(&s->r, true));
	assert_int_equal(pump(s), REQ_DRAINED);
	assert_int_equal(s->n, 0);
}

/* QP-09 with nothing signalled and half a message sent: it goes to its end, and asks. */
static void
QP_09_drain_half_a_message(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POSTF(s, 0, SEND(64));
	POSTF(s, 0, SEND(3000));
	POSTF(s, 0, SEND(64));
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(requester_next(&s->r, s->now, &s->out[i]), REQ_SEND);
	assert_false(requester_drain(&s->r, true));
	assert_int_equal(pump(s), REQ_DRAINED);
	expect_psns(s, S + 2, S + 3);
	assert_int_equal(s->out[1].flags & ACKREQ, ACKREQ);
	ack(s, S + 3, ACK);
	assert_int_equal(s->v.act & REQACT_DRAINED, REQACT_DRAINED);

	bed_init(s); /* the newest packet is out already */
	POSTF(s, 0, SEND(64));
	POSTF(s, 0, SEND(64));
	assert_int_equal(requester_next(&s->r, s->now, &s->out[0]), REQ_SEND);
	assert_false(requester_drain(&s->r, true));
	assert_int_equal(pump(s), REQ_DRAINED);
	expect_psns(s, S);
	assert_int_equal(s->out[0].flags & ACKREQ, ACKREQ);
	ack(s, S, ACK);
	assert_int_equal(s->v.act & REQACT_DRAINED, REQACT_DRAINED);
}

/* QP-10: of what is posted in SQD nothing is told, not even that it is at fault. */
static void
QP_10_fault_in_SQD(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	assert_true(requester_drain(&s->r, true));
	POST(s, SEND(64), .fault = WR_FAULT_PROT);
	assert_int_equal(pump(s), REQ_DRAINED);
	requester_check_fault(&s->r, &s->v);
	assert_int_equal(s->v.act, 0);
	requester_drain(&s->r, false);
	assert_int_equal(pump(s), REQ_FAULT);
	requester_check_fault(&s->r, &s->v);
	expect_error(s, 0, WC_LOC_PROT, 5);
}

/* A local fault behind a READ does not stop the READ's timer. */
static void
TMR_06_read_before_a_fault(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	POST(s, READ(3072));
	POST(s, SEND(64));
	pump(s);
	memset(&s->v, 0, sizeof(s->v));
	requester_local_fault(&s->r, 1, WR_FAULT_PROT, &s->v);
	FIRST(s, S);
	assert_true(s->r.timing);
	assert_int_equal(pump(s), REQ_FAULT);
	assert_int_equal(s->n, 0);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	assert_int_equal(pump(s), REQ_FAULT);
	expect_psns(s, S + 1);
}

/* TMR-10: a reset leaves nothing behind. */
static void
TMR_10_reset_is_complete(void **state)
{
	struct bed bed, fresh, *s = &bed;

	(void)state;
	bed_init(s);
	bed_init(&fresh);
	s->r.knobs = fresh.r.knobs = REQ_KNOB_CREDITS;
	POST(s, READ(3000));
	POST(s, SEND(64));
	POST(s, READ(3000));
	POSTF(s, 0, SEND(6000));
	pump(s);
	FIRST(s, S);
	LAST(s, S + 2, 952);
	pump(s);
	FEED(s, .op = OP_RC_ACKNOWLEDGE, .psn = S + 4, .syn = 3, .msn = 9);
	expire(s);
	pump(s);
	ack(s, S + 1, RNR + 20);
	requester_drain(&s->r, true);
	memset(&s->v, 0, sizeof(s->v));
	requester_local_fault(&s->r, 2, WR_FAULT_PROT, &s->v);
	ack(s, S + 1, NINV);
	assert_true(s->r.dead);
	requester_reset(&s->r, psn(S));
	s->r.wr = fresh.r.wr;
	assert_memory_equal(&s->r, &fresh.r, sizeof(s->r));
}

static void
rules_have_names(void **state)
{
	(void)state;
	assert_string_equal(requester_rule_id(REQRULE_NONE), "");
	assert_string_equal(requester_rule_id(REQRULE_MAX), "");
	assert_string_equal(requester_rule_text(REQRULE_MAX), "");
	for (uint32_t i = 1; i < REQRULE_MAX; i++) {
		assert_true(strlen(requester_rule_id((enum requester_rule)i)) > 4);
		assert_true(strlen(requester_rule_text((enum requester_rule)i)) > 4);
	}
}

RUN(T(REQ_CLS_B_01_fault_in_the_queue), T(REQ_CLS_B_01_silent_predecessor),
	T(REQ_CLS_B_01_fault_while_sending), T(REQ_CLS_B_01_asked_for_again),
	T(REQ_CLS_B_01_fault_at_the_head), T(REQ_CLS_B_01_behind_a_read),
	T(REQ_CLS_B_01_fault_elsewhere), T(REQ_CLS_B_01_two_at_fault), T(QP_10_fault_in_SQD),
	T(REQ_CLS_B_05_malformed), T(REQ_CLS_C_01_context), T(REQ_CLS_F_01_cq_overflow),
	T(QP_09_drain), T(QP_09_drained_at_once), T(QP_09_drain_half_a_message),
	T(TMR_06_read_before_a_fault), T(TMR_10_reset_is_complete), T(rules_have_names))
