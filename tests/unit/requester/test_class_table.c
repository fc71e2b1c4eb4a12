/* SPDX-License-Identifier: BSD-3-Clause */
/* Every row of the table of requester errors, and what follows of its class. */
#include "req.h"

/* What the rows of REQ-CLS-01 begin with; `how` is the row's. */
static void
answered(struct bed *s, uint8_t how)
{
	POST(s, SEND(64));
	pump(s);
	ack(s, S, how);
}

static void
answered_beyond(struct bed *s, uint8_t how)
{
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	ack(s, S + 1, how);
}

static void
not_answered(struct bed *s, uint8_t how)
{
	(void)how;
	POST(s, SEND(64));
	pump(s);
	expire(s);
}

static void
faulty(struct bed *s, uint8_t how)
{
	POST(s, SEND(64), .fault = how);
	assert_int_equal(pump(s), REQ_FAULT);
	assert_int_equal(s->n, 0);
	requester_check_fault(&s->r, &s->v);
}

static void
another_response(struct bed *s, uint8_t how)
{
	POST(s, SEND(64));
	pump(s);
	FEED(s, .op = how, .psn = S, .syn = ACK, .len = 64);
}

static void
short_response(struct bed *s, uint8_t how)
{
	POST(s, READ(64));
	pump(s);
	ONLY(s, S, 64 - how);
}

static void
context(struct bed *s, uint8_t how)
{
	(void)how;
	post_sends(s, 2);
	pump(s);
	requester_context_fault(&s->r, &s->v);
}

static void
queue_full(struct bed *s, uint8_t how)
{
	(void)how;
	post_sends(s, 2);
	pump(s);
	requester_cq_overflow(&s->r, &s->v);
}

/* Above S - 1 by `how`; two are outstanding. */
static void
ghost_ack(struct bed *s, uint8_t how)
{
	post_sends(s, 2);
	pump(s);
	ack(s, S - 1 + how, ACK);
}

/** Class A, while retries are left: sent again, and nobody hears of it once it is answered. */
static void
class_a(struct bed *s)
{
	assert_int_equal(s->v.act, REQACT_RESEND | REQACT_TIMER);
	if (s->r.waiting_rnr)
		expire(s);
	pump(s);
	assert_int_equal(s->out[0].psn.v, S);
	assert_int_equal(s->n, s->posted);
	if (s->wr[0].opcode == WR_RDMA_READ)
		ONLY(s, S, 64);
	ack(s, S + s->posted - 1, ACK);
	expect_done(s, s->posted);
	assert_false(s->r.dead);
}

/** The first work request fails, the others are flushed by the caller; a late answer is none. */
static void
class_b(struct bed *s, uint8_t status)
{
	assert_int_equal(s->v.act & ~(uint32_t)REQACT_TIMER, REQACT_ERROR);
	assert_int_equal(s->v.failed, 0);
	assert_int_equal(s->v.wc_status, status);
	assert_int_not_equal(s->v.fatal, 0);
	expect_done(s, 0);
	POST(s, SEND(64));
	assert_int_equal(pump(s), REQ_FAULT);
	ack(s, S, ACK);
	expect_no_effect(s, "REQ-CLS-B-08");
}

/** No work request is at fault: an event, and nothing completes. */
static void
class_c_or_f(struct bed *s)
{
	assert_int_equal(s->v.act & ~(uint32_t)REQACT_TIMER, REQACT_EVENT);
	assert_int_equal(s->v.event, 1); /* IBV_EVENT_QP_FATAL */
	expect_done(s, 0);
	assert_int_equal(pump(s), REQ_FAULT);
	ack(s, S, ACK);
	expect_no_effect(s, "REQ-CLS-B-08");
}

static void
class_e(struct bed *s)
{
	assert_int_equal(s->v.cause, QC_UNMATCHED);
	expect_no_effect(s, "REQ-CLS-E-01");
	ack(s, S + 1, ACK);
	expect_done(s, 2);
}

/* REQ-CLS-01: data.requester_errors, every RC row but those of memory windows, XRC and devices. */
static void
REQ_CLS_01_table(void **state)
{
	static const struct {
		const char *error;
		void (*happens)(struct bed *s, uint8_t how);
		uint8_t how;
		uint8_t retries; /* both counters */
		char class;
		uint8_t status;
	} rows[] = {
		{ "Packet sequence error", answered, NSEQ, 1, 'A', 0 },
		{ "Implied NAK sequence error", answered_beyond, ACK, 1, 'A', 0 },
		{ "Implied NAK sequence error, by a NAK", answered_beyond, NINV, 1, 'A', 0 },
		{ "Local ACK timeout", not_answered, 0, 1, 'A', 0 },
		{ "RNR NAK", answered, RNR + 1, 1, 'A', 0 },
		{ "Transport retry counter exceeded", answered, NSEQ, 0, 'B', 12 },
		{ "Transport retry counter exceeded", answered_beyond, ACK, 0, 'B', 12 },
		{ "Transport retry counter exceeded", not_answered, 0, 0, 'B', 12 },
		{ "RNR retry counter exceeded", answered, RNR + 1, 0, 'B', 13 },
		/* Opcode, alignment, too many READs, sequence, length and pad: one syndrome. */
		{ "Refused as invalid", answered, NINV, 1, 'B', 9 },
		{ "R_Key violation", answered, NRAE, 1, 'B', 10 },
		{ "Remote operation error", answered, NROE, 1, 'B', 11 },
		{ "Local memory protection", faulty, WR_FAULT_PROT, 1, 'B', 4 },
		{ "Local operation error, WQE", faulty, WR_FAULT_MALFORMED, 1, 'B', 2 },
		{ "Local length error", faulty, WR_FAULT_LENGTH, 1, 'B', 1 },
		{ "Local length error, of a response", short_response, 4, 1, 'B', 1 },
		{ "Bad response, syndrome", answered, 0x45, 1, 'B', 7 },
		{ "Bad response, opcode", another_response, 0x10, 1, 'B', 7 },
		{ "Bad response, opcode", another_response, 0x12, 1, 'B', 7 },
		{ "Local operation error, affiliated", context, 0, 1, 'C', 0 },
		{ "Ghost acknowledge", ghost_ack, 3, 1, 'E', 0 },
		{ "Duplicate acknowledge", ghost_ack, 0, 1, 'E', 0 },
		{ "CQ overflow or inaccessible", queue_full, 0, 1, 'F', 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed bed, *s = &bed;

		bed_init(s);
		s->r.retry_cnt = rows[i].retries;
		s->r.rnr_retry = rows[i].retries;
		requester_reset(&s->r, psn(S));
		rows[i].happens(s, rows[i].how);
		if (rows[i].class == 'A' || rows[i].class == 'B')
			assert_int_equal(s->v.event, 0);
		if (rows[i].class == 'A')
			class_a(s);
		else if (rows[i].class == 'B')
			class_b(s, rows[i].status);
		else if (rows[i].class == 'E')
			class_e(s);
		else
			class_c_or_f(s);
	}
}

RUN(T(REQ_CLS_01_table))
