/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer queue: what leaves, in which order, after requests that the responder has judged. */
#include "pkt.h"
#include "resp_answers.h"

#define CAP 6

struct queue {
	struct bed s;
	struct resp_answer slot[CAP];
	struct resp_answers q;
};

/** One packet as it leaves: response opcode or OP_RC_ACKNOWLEDGE, PSN, syndrome, MSN. */
struct left {
	uint8_t opcode;
	uint32_t psn;
	uint8_t syndrome;
	uint32_t msn;
};

static void
init(struct queue *t)
{
	memset(t, 0, sizeof(*t));
	bed_init(&t->s);
	t->q = (struct resp_answers){ .slot = t->slot, .cap = CAP };
}

/** Judge a request; what it owes goes into the queue. */
static enum resp_owed
owe(struct queue *t, struct spec p)
{
	const struct responder_verdict *v = feed_spec(&t->s, p);

	if ((v->act & ACT_READ) != 0)
		return resp_answers_read(&t->q, &t->s.r, v);
	if ((v->act & ACT_ATOMIC) != 0) {
		v->saved->original = 5;
		return resp_answers_atomic(&t->q, &t->s.r, v, 5);
	}
	if ((v->act & ACT_REPLAY) != 0)
		return resp_answers_atomic(&t->q, &t->s.r, v, v->saved->original);
	if ((v->act & ACT_NAK) != 0)
		return resp_answers_nak(&t->q, &t->s.r, v);
	assert_true((v->act & ACT_ACK) != 0);
	return resp_answers_ack(&t->q, v);
}
#define OWE(t, ...) owe((t), (struct spec){ __VA_ARGS__ })

/** Send one packet of the head, and the ACK that follows it. @return packets. */
static uint32_t
send_one(struct queue *t, struct left *out)
{
	struct resp_answer *a = resp_answer_at(&t->q, 0);
	uint32_t len;

	*out = (struct left){ OP_RC_ACKNOWLEDGE, a->psn.v, a->syndrome, a->msn };
	if (a->kind == ANSWER_ATOMIC) {
		out->opcode = OP_RC_ATOMIC_ACKNOWLEDGE;
		assert_int_equal(a->va, 5);
	} else if (a->kind == ANSWER_READ) {
		len = resp_answer_len(a, &t->s.r);
		assert_in_range(len, 0, PMTU);
		out->opcode = resp_answer_opcode(a, len == a->len_left);
		assert_int_equal(a->va, MR_VA + (a->psn.v - a->first.v) * PMTU);
		if (resp_answer_step(a, len))
			return 1;
	}
	a = (struct resp_answer *)(uintptr_t)resp_answers_pop(&t->q, &t->s.r);
	if (!a->ack_after)
		return 1;
	out[1] = (struct left){ OP_RC_ACKNOWLEDGE, a->ack_psn.v, a->ack_syndrome, a->ack_msn };
	return 2;
}

static void
expect_left(struct queue *t, const struct left *want, uint32_t n)
{
	struct left got[64];
	uint32_t made = 0;

	while (t->q.count != 0) {
		assert_in_range(made, 0, ARRAY_LEN(got) - 2);
		made += send_one(t, got + made);
	}
	assert_int_equal(made, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(got[i].opcode, want[i].opcode);
		assert_int_equal(got[i].psn, want[i].psn);
		assert_int_equal(got[i].syndrome, want[i].syndrome);
		assert_int_equal(got[i].msn, want[i].msn);
	}
	assert_int_equal(t->s.r.unfinished, 0);
}
#define EXPECT(t, ...)                                         \
	expect_left((t), (const struct left[]){ __VA_ARGS__ }, \
		sizeof((const struct left[]){ __VA_ARGS__ }) / sizeof(struct left))

#define FIRST(p, m)                                       \
	{                                                 \
		OP_RC_READ_RESPONSE_FIRST, (p), 0x1f, (m) \
	}
#define MIDDLE(p, m)                                       \
	{                                                  \
		OP_RC_READ_RESPONSE_MIDDLE, (p), 0x1f, (m) \
	}
#define LAST(p, m)                                       \
	{                                                \
		OP_RC_READ_RESPONSE_LAST, (p), 0x1f, (m) \
	}
#define ONLY(p, m)                                       \
	{                                                \
		OP_RC_READ_RESPONSE_ONLY, (p), 0x1f, (m) \
	}
#define RESULT(p, m)                                     \
	{                                                \
		OP_RC_ATOMIC_ACKNOWLEDGE, (p), 0x1f, (m) \
	}
#define ACK(p, m)                                 \
	{                                         \
		OP_RC_ACKNOWLEDGE, (p), 0x1f, (m) \
	}
#define NAK(s, p, m)                             \
	{                                        \
		OP_RC_ACKNOWLEDGE, (p), (s), (m) \
	}

/* Acknowledgements are the caller's while nothing stands here; then all leave in PSN order. */
static void
RESP_13_in_psn_order(void **state)
{
	struct queue t;

	(void)state;
	init(&t);
	assert_int_equal(OWE(&t, SEND_ONLY(E, 8)), OWED_NOW);
	assert_int_equal(OWE(&t, READ(E + 1, 3 * PMTU - 1)), OWED_QUEUED);
	assert_int_equal(OWE(&t, SEND_ONLY(E + 4, 8)), OWED_QUEUED);
	assert_int_equal(OWE(&t, SEND_ONLY(E + 5, 8)), OWED_QUEUED);
	assert_int_equal(OWE(&t, FETCH_ADD(E + 6)), OWED_QUEUED);
	assert_int_equal(OWE(&t, READ(E + 7, 0)), OWED_QUEUED);
	assert_int_equal(t.s.r.unfinished, 3);
	EXPECT(&t, FIRST(E + 1, 2), MIDDLE(E + 2, 2), LAST(E + 3, 2), ACK(E + 5, 4),
		RESULT(E + 6, 5), ONLY(E + 7, 6));
	assert_int_equal(OWE(&t, SEND_ONLY(E + 8, 8)), OWED_NOW);
}

/* A NAK waits behind what was asked before it, and the ACK before it is not merged into it. */
static void
RESP_NAK_02_RESP_RNR_10_behind_what_is_owed(void **state)
{
	struct queue t;

	(void)state;
	init(&t);
	t.s.wqes = 1;
	assert_int_equal(OWE(&t, READ(E, 2 * PMTU)), OWED_QUEUED);
	assert_int_equal(OWE(&t, SEND_ONLY(E + 2, 8)), OWED_QUEUED);
	assert_int_equal(OWE(&t, SEND_ONLY(E + 3, 8)), OWED_QUEUED);
	EXPECT(&t, FIRST(E, 1), LAST(E + 1, 1), ACK(E + 2, 2), NAK(RNR_12, E + 3, 2));

	init(&t);
	assert_int_equal(OWE(&t, READ(E, 2 * PMTU)), OWED_QUEUED);
	assert_int_equal(OWE(&t, SEND_ONLY(E + 7, 8)), OWED_QUEUED);
	EXPECT(&t, FIRST(E, 1), LAST(E + 1, 1), NAK(NAK_SEQ, E + 2, 1));
	assert_int_equal(OWE(&t, .op = OP_RC_WRITE_ONLY, .psn = E + 2, .len = 8, .va = MR_VA,
				 .rkey = BAD_KEY, .dma_len = 8, .flags = PKT_ACKREQ),
		OWED_NOW);
	expect_fatal_event(&t.s, NAK_RAE, EV_QP_ACCESS_ERR);
}

/* A repeated READ is answered before newer ones, with no later MSN than they tell. */
static void
RESP_DUP_03_before_newer_answers(void **state)
{
	struct queue t;

	(void)state;
	init(&t);
	OWE(&t, READ(E, PMTU));
	EXPECT(&t, ONLY(E, 1));
	assert_int_equal(OWE(&t, READ(E + 1, 2 * PMTU)), OWED_QUEUED);
	assert_int_equal(OWE(&t, FETCH_ADD(E + 3)), OWED_QUEUED);
	assert_int_equal(OWE(&t, READ(E, PMTU)), OWED_QUEUED);
	EXPECT(&t, ONLY(E, 2), FIRST(E + 1, 2), LAST(E + 2, 2), RESULT(E + 3, 3));
}

/* What is under way goes back to where it is asked for, and is not answered twice. */
static void
RESP_DUP_04_in_the_answer_under_way(void **state)
{
	struct left out[2];
	struct queue t;

	(void)state;
	init(&t);
	OWE(&t, READ(E, 4 * PMTU));
	assert_int_equal(OWE(&t, READ(E, 4 * PMTU)), OWED_COMES);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(send_one(&t, out), 1);
	assert_int_equal(out[0].psn, E + 2);
	assert_int_equal(OWE(&t, .op = OP_RC_READ_REQUEST, .psn = E + 1, .va = MR_VA + PMTU,
				 .rkey = MR_RKEY, .dma_len = 3 * PMTU),
		OWED_COMES);
	EXPECT(&t, FIRST(E + 1, 1), MIDDLE(E + 2, 1), LAST(E + 3, 1));

	/* The end of it, not sent so far, changes nothing. */
	OWE(&t, READ(E + 4, 4 * PMTU));
	assert_int_equal(OWE(&t, .op = OP_RC_READ_REQUEST, .psn = E + 7, .va = MR_VA + 3 * PMTU,
				 .rkey = MR_RKEY, .dma_len = PMTU),
		OWED_COMES);
	EXPECT(&t, FIRST(E + 4, 2), MIDDLE(E + 5, 2), MIDDLE(E + 6, 2), LAST(E + 7, 2));
}

/* What is asked for again is all that is sent again: what was still to come stays to come. */
static void
RESP_DUP_04_a_part_of_what_was_sent(void **state)
{
	struct left out[2];
	struct queue t;

	(void)state;
	init(&t);
	OWE(&t, READ(E, 2 * PMTU - 1));
	assert_int_equal(send_one(&t, out), 1);
	assert_int_equal(OWE(&t, READ(E, PMTU)), OWED_QUEUED);
	EXPECT(&t, ONLY(E, 1), LAST(E + 1, 1));

	OWE(&t, READ(E + 2, 2 * PMTU));
	assert_int_equal(send_one(&t, out), 1);
	assert_int_equal(OWE(&t, READ(E + 2, PMTU)), OWED_QUEUED);
	EXPECT(&t, ONLY(E + 2, 2), LAST(E + 3, 2));
}

static void
RESP_DUP_06_result_stands_here_once(void **state)
{
	struct queue t;

	(void)state;
	init(&t);
	OWE(&t, FETCH_ADD(E));
	assert_int_equal(OWE(&t, FETCH_ADD(E)), OWED_COMES);
	EXPECT(&t, RESULT(E, 1));
	assert_int_equal(OWE(&t, READ(E + 1, PMTU)), OWED_QUEUED);
	assert_int_equal(OWE(&t, FETCH_ADD(E)), OWED_QUEUED);
	assert_int_equal(OWE(&t, FETCH_ADD(E)), OWED_COMES);
	EXPECT(&t, RESULT(E, 2), ONLY(E + 1, 2));
}

/*
 * RESP-DUP-11: duplicates and NAKs that can be repeated leave room for every READ or ATOMIC that
 * may still be accepted, and for the NAK that ends the connection.
 */
static void
RESP_DUP_11_promised_room(void **state)
{
	struct queue t;

	(void)state;
	init(&t); /* four may be unfinished, of six places */
	OWE(&t, FETCH_ADD(E));
	EXPECT(&t, RESULT(E, 1));
	assert_int_equal(OWE(&t, READ(E + 1, PMTU)), OWED_QUEUED);
	assert_int_equal(OWE(&t, FETCH_ADD(E)), OWED_QUEUED);
	assert_int_equal(OWE(&t, READ(E + 3, PMTU)), OWED_NO_ROOM); /* a gap: NAK-SEQ */
	for (uint32_t i = 2; i < 5; i++)
		assert_int_equal(OWE(&t, READ(E + i, PMTU)), OWED_QUEUED);
	assert_int_equal(t.s.r.unfinished, 4);
	assert_int_equal(t.q.count, CAP - 1);
	assert_int_equal(OWE(&t, .op = OP_RC_WRITE_ONLY, .psn = E + 5, .len = 8, .va = MR_VA,
				 .rkey = BAD_KEY, .dma_len = 8, .flags = PKT_ACKREQ),
		OWED_QUEUED);
	assert_int_equal(t.q.count, CAP);
	EXPECT(&t, RESULT(E, 2), ONLY(E + 1, 2), ONLY(E + 2, 3), ONLY(E + 3, 4), ONLY(E + 4, 5),
		NAK(NAK_RAE, E + 5, 5));
}

/* The NAK has the PSN of the response that it replaces, and nothing follows. */
/*
 * The same of those that may be accepted once max_dest_rd_atomic is greater, as it may become in
 * SQD: duplicates that came before do not have their places.
 */
static void
RESP_DUP_11_room_for_more(void **state)
{
	struct queue t;

	(void)state;
	init(&t);
	t.s.r.max_dest_rd_atomic = 1;
	OWE(&t, FETCH_ADD(E));
	EXPECT(&t, RESULT(E, 1));
	OWE(&t, READ(E + 1, 4 * PMTU));
	EXPECT(&t, FIRST(E + 1, 2), MIDDLE(E + 2, 2), MIDDLE(E + 3, 2), LAST(E + 4, 2));
	assert_int_equal(OWE(&t, FETCH_ADD(E)), OWED_QUEUED);
	for (uint32_t i = 1; i < 5; i++)
		OWE(&t, .op = OP_RC_READ_REQUEST, .psn = E + i, .va = MR_VA + (i - 1) * PMTU,
			.rkey = MR_RKEY, .dma_len = 8);
	t.s.r.max_dest_rd_atomic = 4;
	for (uint32_t i = 5; i < 9; i++)
		assert_int_equal(OWE(&t, READ(E + i, PMTU)), OWED_QUEUED);
	assert_int_equal(t.s.r.unfinished, 4);
}

static void
RESP_NAK_03_region_lost_RESP_DUP_08_never_for_a_duplicate(void **state)
{
	struct responder_verdict v;
	struct left out[2];
	struct queue t;

	(void)state;
	init(&t);
	OWE(&t, READ(E, 4 * PMTU));
	OWE(&t, SEND_ONLY(E + 4, 8));
	send_one(&t, out);
	send_one(&t, out);
	assert_true(resp_answers_lost(&t.q, &t.s.r, true, &v));
	assert_int_equal(v.act & (ACT_NAK | ACT_ERR), ACT_NAK | ACT_ERR);
	assert_int_equal(v.syndrome, NAK_RAE);
	assert_int_equal(v.reply_psn.v, E + 2);
	assert_int_equal(t.q.count, 0);

	init(&t);
	OWE(&t, READ(E, PMTU));
	EXPECT(&t, ONLY(E, 1));
	OWE(&t, READ(E, PMTU));
	assert_false(resp_answers_lost(&t.q, &t.s.r, true, &v));
	assert_int_equal(t.q.count, 1);
}

/* QP-05: nothing that was owed is owed any more, and nothing waits behind it. */
static void
QP_05_cleared(void **state)
{
	struct queue t;

	(void)state;
	init(&t);
	OWE(&t, READ(E, 2 * PMTU));
	OWE(&t, FETCH_ADD(E + 2));
	resp_answers_clear(&t.q);
	responder_reset(&t.s.r, psn(E));
	assert_int_equal(OWE(&t, SEND_ONLY(E, 8)), OWED_NOW);
	assert_int_equal(OWE(&t, READ(E + 1, PMTU)), OWED_QUEUED);
	EXPECT(&t, ONLY(E + 1, 2));
}

/* Any number of entries goes around the array, and the PSN around its 24 bits (WIRE-11). */
static void
WIRE_11_around(void **state)
{
	struct queue t;
	uint32_t p;

	(void)state;
	init(&t);
	p = PSN_MASK - 40;
	responder_reset(&t.s.r, psn(p));
	for (uint32_t i = 0; i < 50; i++, p = (p + 3) & PSN_MASK) {
		uint32_t q = (p + 2) & PSN_MASK;

		OWE(&t, .op = OP_RC_READ_REQUEST, .psn = p, .va = MR_VA, .rkey = MR_RKEY,
			.dma_len = 8);
		OWE(&t, FETCH_ADD((p + 1) & PSN_MASK));
		OWE(&t, READ(q, 8));
		assert_int_equal(OWE(&t, FETCH_ADD((p + 1) & PSN_MASK)), OWED_COMES);
		EXPECT(&t, ONLY(p, 3 * i + 1), RESULT((p + 1) & PSN_MASK, 3 * i + 2),
			ONLY(q, 3 * i + 3));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_13_in_psn_order),
		cmocka_unit_test(RESP_NAK_02_RESP_RNR_10_behind_what_is_owed),
		cmocka_unit_test(RESP_DUP_03_before_newer_answers),
		cmocka_unit_test(RESP_DUP_04_in_the_answer_under_way),
		cmocka_unit_test(RESP_DUP_04_a_part_of_what_was_sent),
		cmocka_unit_test(RESP_DUP_06_result_stands_here_once),
		cmocka_unit_test(RESP_DUP_11_promised_room),
		cmocka_unit_test(RESP_DUP_11_room_for_more),
		cmocka_unit_test(RESP_NAK_03_region_lost_RESP_DUP_08_never_for_a_duplicate),
		cmocka_unit_test(QP_05_cleared),
		cmocka_unit_test(WIRE_11_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
