/* SPDX-License-Identifier: BSD-3-Clause */
/* Responder classes A, B, C, D, G, J row by row (RESP-CLS-01), and AE-01, -02, -03, -10. */
#include "pkt.h"

enum { NONE = 0xff };

/** One row of data.responder_errors for RC: what is sent, completed, raised, and the state. */
struct row {
	const char *error;
	struct spec first; /* accepted first when its opcode is not NONE */
	struct spec p;
	void (*fault)(struct bed *);
	uint8_t syndrome; /* NONE: nothing is sent */
	uint8_t status;   /* NONE: no completion */
	uint8_t event;    /* NONE: no event */
	bool err;
	char cls;
};

static void
no_wqe(struct bed *s)
{
	s->wqes = 0;
}

static void
small_wqe(struct bed *s)
{
	s->wqe_bytes = 10;
}

static void
malformed(struct bed *s)
{
	s->f.wqe_fault = WQE_FAULT_MALFORMED;
}

static void
protection(struct bed *s)
{
	s->f.wqe_fault = WQE_FAULT_PROT;
}

static void
unit_broken(struct bed *s)
{
	s->f.exec_fault = true;
}

static void
no_reads(struct bed *s)
{
	s->r.max_dest_rd_atomic = 0;
}

static void
key_fixed(struct bed *s)
{
	s->may_invalidate = false;
}

static const struct row rows[] = {
	{ "PSN out of sequence", { .op = NONE }, { SEND_ONLY(E + 1, 4) }, NULL, 0x60, NONE, NONE,
		false, 'B' },
	{ "no receive WQE", { .op = NONE }, { SEND_ONLY(E, 4) }, no_wqe, 0x2c, NONE, NONE, false,
		'B' },
	{ "reserved opcode", { .op = NONE }, { .op = 0x1f, .psn = E }, NULL, 0x61, NONE,
		EV_QP_REQ_ERR, true, 'C' },
	{ "misaligned ATOMIC", { .op = NONE },
		{ .op = OP_RC_FETCH_ADD, .psn = E, .va = MR_VA + 4, .rkey = MR_RKEY }, NULL, 0x61,
		NONE, EV_QP_REQ_ERR, true, 'C' },
	{ "too many READs", { .op = NONE }, { READ(E, 4) }, no_reads, 0x61, NONE, EV_QP_REQ_ERR,
		true, 'C' },
	{ "ONLY inside a SEND", { SEND_FIRST(E) }, { WRITE_ONLY(E + 1, 4) }, NULL, 0x61,
		WC_REM_INV_REQ, NONE, true, 'C' },
	{ "ONLY inside a WRITE", { WRITE_FIRST(E, 2048) }, { WRITE_ONLY(E + 1, 4) }, NULL, 0x61,
		NONE, EV_QP_REQ_ERR, true, 'C' },
	{ "stray LAST", { .op = NONE }, { .op = OP_RC_SEND_LAST, .psn = E, .len = 4 }, NULL, 0x61,
		NONE, EV_QP_REQ_ERR, true, 'C' },
	{ "SEND longer than the WQE", { .op = NONE }, { SEND_ONLY(E, 11) }, small_wqe, 0x61,
		WC_LOC_LEN, NONE, true, 'C' },
	{ "length wrong, no WQE active", { .op = NONE }, { SEND_ONLY(E, 1028) }, NULL, 0x61, NONE,
		EV_QP_REQ_ERR, true, 'C' },
	{ "length wrong, WQE active", { SEND_FIRST(E) },
		{ .op = OP_RC_SEND_MIDDLE, .psn = E + 1, .len = 4 }, NULL, 0x61, WC_REM_INV_REQ,
		NONE, true, 'C' },
	{ "DMALen above 2^31", { .op = NONE }, { READ(E, 0x80000001) }, NULL, 0x61, NONE,
		EV_QP_REQ_ERR, true, 'C' },
	{ "R_Key", { .op = NONE },
		{ .op = OP_RC_READ_REQUEST, .psn = E, .va = MR_VA, .rkey = BAD_KEY, .dma_len = 4 },
		NULL, 0x62, NONE, EV_QP_ACCESS_ERR, true, 'C' },
	{ "R_Key of a WRITE with immediate", { .op = NONE }, { WRITE_ONLY_IMM(E, BAD_KEY) }, NULL,
		0x62, WC_REM_ACCESS, NONE, true, 'C' },
	{ "malformed receive WQE", { .op = NONE }, { SEND_ONLY(E, 4) }, malformed, 0x63,
		WC_LOC_QP_OP, NONE, true, 'A' },
	{ "protection error on a receive SGE", { .op = NONE }, { SEND_ONLY(E, 4) }, protection,
		0x63, WC_LOC_PROT, NONE, true, 'A' },
	{ "internal error, WQE active", { .op = NONE }, { SEND_ONLY(E, 4) }, unit_broken, 0x63,
		WC_LOC_QP_OP, NONE, true, 'A' },
	{ "internal error, no WQE", { .op = NONE }, { FETCH_ADD(E) }, unit_broken, 0x63, NONE,
		EV_QP_FATAL, true, 'A' },
	{ "unknown duplicate ATOMIC", { SEND_ONLY(E, 4) }, { FETCH_ADD(E) }, NULL, NONE, NONE, NONE,
		false, 'D' },
	{ "duplicate READ that fails", { SEND_ONLY(E, 4) }, { READ(E, 4) }, NULL, NONE, NONE, NONE,
		false, 'D' },
	{ "SEND with Invalidate, bad R_Key", { .op = NONE },
		{ .op = OP_RC_SEND_ONLY_INV, .psn = E, .len = 4, .imm = INV_KEY }, key_fixed, NONE,
		WC_REM_INV_REQ, NONE, true, 'J' },
};

/** RESP-CLS-01, RESP-CLS-A-01, RESP-CLS-B-01, RESP-CLS-C-01, RESP-CLS-D-01, AE-01, AE-02, AE-03 */
static void
RESP_CLS_01_every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* AE-10: one or the other; knob ae.with_cqe adds the event */
		for (int with = 0; with < 2; with++) {
			const struct row *x = &rows[i];
			struct bed s;
			uint32_t act;

			bed_init(&s);
			s.r.knobs = with != 0 ? RESP_KNOB_EVENT_WITH_CQE : 0;
			if (x->first.op != NONE)
				feed_spec(&s, x->first);
			if (x->fault != NULL)
				x->fault(&s);
			feed_spec(&s, x->p);
			act = s.v.act;
			if ((act & ACT_NAK) != 0)
				assert_int_equal(s.v.syndrome, x->syndrome);
			assert_int_equal((act & ACT_NAK) != 0, x->syndrome != NONE);
			assert_int_equal(act & (ACT_ACK | ACT_PLACE_SEND | ACT_PLACE_WRITE |
						       ACT_READ | ACT_ATOMIC | ACT_INVALIDATE),
				0);
			assert_int_equal((act & ACT_COMPLETE) != 0, x->status != NONE);
			if (x->status != NONE)
				assert_int_equal(s.v.wc_status, x->status);
			assert_int_equal(s.v.solicited, x->status != NONE); /* CQ-06 */
			if (x->event != NONE)
				assert_int_equal(s.v.event, x->event);
			assert_int_equal((act & ACT_EVENT) != 0,
				x->event != NONE || (with != 0 && x->status != NONE));
			assert_int_equal((act & ACT_ERR) != 0, x->err);
			assert_int_equal(s.r.epsn.v, s.before.epsn.v);
			assert_int_equal(s.r.msn, s.before.msn);
			if (x->cls == 'D')
				assert_memory_equal(&s.r, &s.before, sizeof(s.r));
			assert_true(s.v.rule != RULE_NONE);
		}
	}
}

/*
 * RESP-CLS-B-01, RESP-RNR-02: a WRITE of several packets is open when its last one finds no WQE, or
 * comes too early. The WRITE stays open, nothing of the queue is used, and it ends as it should.
 */
static void
RESP_CLS_B_01_inside_a_write(void **state)
{
	const struct spec last = {
		.op = OP_RC_WRITE_LAST_IMM, .psn = E + 2, .len = 10, .flags = PKT_ACKREQ, .imm = 7
	};
	struct spec early = last;

	(void)state;
	early.psn = E + 3;
	for (int gap = 0; gap < 2; gap++) {
		struct bed s;

		bed_init(&s);
		s.wqes = gap;
		FEED(&s, WRITE_FIRST(E, 2058));
		FEED(&s, .op = OP_RC_WRITE_MIDDLE, .psn = E + 1, .len = PMTU);
		feed_spec(&s, gap != 0 ? early : last);
		expect_nak(&s, gap != 0 ? NAK_SEQ : RNR_12, E + 2, 0);
		assert_int_equal(s.v.event, 0);
		assert_int_equal(s.v.wc_status, WC_SUCCESS);
		assert_int_equal(s.v.fatal, 0);
		assert_int_equal(s.r.open, s.before.open);
		assert_int_equal(s.r.received, s.before.received);
		assert_int_equal(s.r.wqe_active, s.before.wqe_active);
		assert_int_equal(s.r.va, s.before.va);
		assert_int_equal(s.r.rkey, s.before.rkey);
		assert_int_equal(s.wqes, gap);
		s.wqes = 1;
		s.now += 640 * TIME_NS_PER_US + TIME_NS_PER_MS; /* of code 12, and more */
		feed_spec(&s, last);
		expect_ack(&s, E + 2, 1);
		assert_int_equal(s.v.act, ACT_ACK | ACT_TAKE_WQE | ACT_PLACE_WRITE | ACT_COMPLETE);
		assert_true(s.v.va == MR_VA + 2048);
		assert_int_equal(s.v.byte_len, 2058);
		assert_int_equal(s.wqes, 0);
	}
}

static void
AE_10_event_kind_with_completion(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.r.knobs = RESP_KNOB_EVENT_WITH_CQE;
	FEED(&s, WRITE_ONLY_IMM(E, BAD_KEY));
	assert_int_equal(s.v.act, ACT_NAK | ACT_ERR | ACT_TAKE_WQE | ACT_COMPLETE | ACT_EVENT);
	assert_int_equal(s.v.event, EV_QP_ACCESS_ERR);
	bed_init(&s);
	s.r.knobs = RESP_KNOB_EVENT_WITH_CQE;
	s.wqe_bytes = 1;
	FEED(&s, SEND_ONLY(E, 4));
	assert_int_equal(s.v.act, ACT_NAK | ACT_ERR | ACT_TAKE_WQE | ACT_COMPLETE | ACT_EVENT);
	assert_int_equal(s.v.event, EV_QP_REQ_ERR);
}

static void
RESP_CLS_D_01_not_a_request(void **state)
{
	const uint8_t ops[] = { OP_RC_ACKNOWLEDGE, OP_RC_READ_RESPONSE_ONLY,
		OP_RC_ATOMIC_ACKNOWLEDGE, OP_UC_SEND_ONLY, OP_UC_WRITE_ONLY, OP_UD_SEND_ONLY,
		OP_CNP, 0xff, 0x4a };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		for (uint32_t p = E - 1; p <= E + 1; p++) {
			struct bed s;

			bed_init(&s);
			FEED(&s, .op = ops[i], .psn = p, .len = 4);
			expect_silent(&s);
			assert_int_equal(s.v.counter, RC_SILENT);
			expect_rule(&s, "RESP-CLS-D-01");
			assert_false(s.q.wqe || s.q.key || s.q.invalidate);
		}
}

static void
RESP_CLS_G_01_cq_overflow(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	FEED(&s, SEND_ONLY(E, 4));
	s.before = s.r;
	memset(&s.v, 0xa5, sizeof(s.v));
	responder_cq_overflow(&s.r, &s.v);
	assert_int_equal(s.v.fatal, 0);
	assert_int_equal(s.v.counter, RC_NONE);
	assert_int_equal(s.v.act, ACT_EVENT | ACT_ERR);
	assert_int_equal(s.v.event, EV_QP_FATAL);
	assert_int_equal(s.v.fault, VERDICT_NO_FAULT);
	expect_rule(&s, "RESP-CLS-G-01");
	assert_memory_equal(&s.r, &s.before, sizeof(s.r));
}

static void
RESP_CLS_J_01_invalidate_refused(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s); /* unknown key */
	FEED(&s, .op = OP_RC_SEND_ONLY_INV, .psn = E, .len = 4, .flags = PKT_ACKREQ,
		.imm = BAD_KEY);
	assert_int_equal(s.v.act, ACT_ERR | ACT_TAKE_WQE | ACT_COMPLETE);
	assert_int_equal(s.v.wc_status, WC_REM_INV_REQ);
	expect_rule(&s, "RESP-CLS-J-01");
	expect_state(&s, E, 0);

	bed_init(&s); /* found at LAST: the WQE is there already */
	FEED(&s, SEND_FIRST(E));
	FEED(&s, .op = OP_RC_SEND_LAST_INV, .psn = E + 1, .len = 4, .imm = BAD_KEY);
	assert_int_equal(s.v.act, ACT_ERR | ACT_COMPLETE);
	assert_int_equal(s.wqes, 3);

	bed_init(&s); /* knob resp.class_j_ack=ack */
	s.r.knobs = RESP_KNOB_J_ACK;
	FEED(&s, .op = OP_RC_SEND_ONLY_INV, .psn = E, .len = 4, .imm = BAD_KEY);
	assert_int_equal(s.v.act, ACT_ERR | ACT_TAKE_WQE | ACT_COMPLETE | ACT_ACK);
	assert_int_equal(s.v.syndrome, 0x1f);
	assert_int_equal(s.v.reply_psn.v, E);
	assert_int_equal(s.v.reply_msn, 1);
}

static void
RESP_CLS_J_02_lowest_priority(void **state)
{
	const struct spec bad = { .op = OP_RC_SEND_ONLY_INV, .psn = E, .len = 100, .imm = BAD_KEY };
	struct spec gap = bad;
	struct bed s;

	(void)state;
	bed_init(&s);
	s.wqe_bytes = 99;
	feed_spec(&s, bad);
	expect_fatal_cqe(&s, NAK_INV, WC_LOC_LEN, ACT_TAKE_WQE);
	bed_init(&s);
	s.wqes = 0;
	feed_spec(&s, bad);
	expect_nak(&s, RNR_12, E, 0);
	bed_init(&s);
	gap.psn = E + 1;
	feed_spec(&s, gap);
	expect_nak(&s, NAK_SEQ, E, 0);
}

/** AMB-13: codes 4..31 and reserved kinds are never sent; every rule has an id and a text. */
static void
RESP_NAK_01_texts_and_ids(void **state)
{
	(void)state;
	assert_string_equal(responder_rule_id(RULE_NONE), "");
	assert_string_equal(responder_rule_id(RULE_MAX), "");
	assert_string_equal(responder_rule_text((enum responder_rule)9999), "");
	for (int i = RULE_NONE + 1; i < RULE_MAX; i++) {
		const char *id = responder_rule_id((enum responder_rule)i);

		assert_true(strncmp(id, "RESP-", 5) == 0 || strncmp(id, "RX-", 3) == 0 ||
			    strncmp(id, "AE-", 3) == 0 || strncmp(id, "UC-", 3) == 0 ||
			    strncmp(id, "XRC-", 4) == 0 || strncmp(id, "FLOW-", 5) == 0);
		assert_true(strlen(responder_rule_text((enum responder_rule)i)) > 5);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_CLS_01_every_row),
		cmocka_unit_test(RESP_CLS_B_01_inside_a_write),
		cmocka_unit_test(AE_10_event_kind_with_completion),
		cmocka_unit_test(RESP_CLS_D_01_not_a_request),
		cmocka_unit_test(RESP_CLS_G_01_cq_overflow),
		cmocka_unit_test(RESP_CLS_J_01_invalidate_refused),
		cmocka_unit_test(RESP_CLS_J_02_lowest_priority),
		cmocka_unit_test(RESP_NAK_01_texts_and_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
