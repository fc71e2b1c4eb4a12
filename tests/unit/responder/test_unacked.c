/* SPDX-License-Identifier: BSD-3-Clause */
/* Services without ACKs: column class_uc of data.responder_errors (RESP-CLS-01), UC-05, UC-07. */
#include "pkt.h"

#define UC(rc) (OP_RC_END | (rc))

enum { NONE = 0xff };

static void
uc_init(struct bed *s)
{
	bed_init(s);
	s->r.transport = WIRE_UC;
	s->r.saved_n = s->r.max_dest_rd_atomic = 0;
	s->r.saved = NULL;
}

/** As a worker does it. @return RESYNC_*. */
static uint32_t
uc_feed(struct bed *s, struct spec p)
{
	uint32_t what;

	p.op = p.op < OP_RC_END ? UC(p.op) : p.op;
	p.flags |= PKT_ACKREQ;
	make_pkt(s, &p);
	what = responder_resync(&s->r, &s->pkt);
	feed_spec(s, p);
	assert_false((s->v.act & (ACT_ACK | ACT_NAK)) != 0); /* UC-01 */
	return what;
}
#define UC_FEED(s, ...) uc_feed((s), (struct spec){ __VA_ARGS__ })

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

/** A row of the table: classes D1 and E drop, class A is an error of the QP. */
struct row {
	const char *error;
	struct spec p;
	void (*fault)(struct bed *);
	uint8_t status; /* class A: of the completion; NONE: class D1 */
};

static const struct row rows[] = {
	{ "no receive WQE", { SEND_ONLY(E, 4) }, no_wqe, NONE },
	{ "no receive WQE for an immediate", { WRITE_ONLY_IMM(E, MR_RKEY) }, no_wqe, NONE },
	{ "reserved opcode", { .op = UC(0x0c), .psn = E }, NULL, NONE },
	{ "reserved opcode", { .op = UC(0x1f), .psn = E }, NULL, NONE },
	{ "stray LAST", { .op = OP_RC_SEND_LAST, .psn = E, .len = 4 }, NULL, NONE },
	{ "stray MIDDLE", { .op = OP_RC_WRITE_MIDDLE, .psn = E, .len = PMTU }, NULL, NONE },
	{ "SEND longer than the WQE", { SEND_ONLY(E, 11) }, small_wqe, NONE },
	{ "length wrong", { SEND_ONLY(E, 1028) }, NULL, NONE },
	{ "pad wrong", { SEND_FIRST(E), .pad = 1 }, NULL, NONE },
	{ "DMALen wrong",
		{ .op = OP_RC_WRITE_ONLY,
			.psn = E,
			.len = 4,
			.va = MR_VA,
			.rkey = MR_RKEY,
			.dma_len = 5 },
		NULL, NONE },
	{ "R_Key",
		{ .op = OP_RC_WRITE_ONLY,
			.psn = E,
			.len = 4,
			.va = MR_VA,
			.rkey = BAD_KEY,
			.dma_len = 4 },
		NULL, NONE },
	{ "R_Key with immediate", { WRITE_ONLY_IMM(E, BAD_KEY) }, NULL, NONE },
	{ "malformed receive WQE", { SEND_ONLY(E, 4) }, malformed, WC_LOC_QP_OP },
	{ "protection error on a receive SGE", { SEND_ONLY(E, 4) }, protection, WC_LOC_PROT },
	{ "internal error", { SEND_ONLY(E, 4) }, unit_broken, WC_LOC_QP_OP },
};

static void
RESP_CLS_01_every_row(void **state)
{
	struct bed s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uc_init(&s);
		if (rows[i].fault != NULL)
			rows[i].fault(&s);
		uc_feed(&s, rows[i].p);
		if (rows[i].status == NONE) {
			assert_int_equal(s.v.act, ACT_DROP);
			assert_int_equal(s.r.open, OPEN_NONE);
			if (strncmp(rows[i].error, "stray", 5) == 0) /* what it follows was */
				assert_int_equal(s.v.fault, VERDICT_NO_FAULT);
			continue;
		}
		assert_int_equal(s.v.act, ACT_ERR | ACT_COMPLETE | ACT_TAKE_WQE);
		assert_int_equal(s.v.wc_status, rows[i].status);
	}
}

/** The same behind the FIRST of a SEND: its receive is told of. */
static void
RESP_CLS_01_inside_a_send(void **state)
{
	static const struct spec bad[] = {
		{ .op = OP_RC_SEND_MIDDLE, .psn = E + 1, .len = 4 },
		{ .op = OP_RC_SEND_LAST, .psn = E + 1, .len = 0 },
		{ .op = OP_RC_SEND_LAST, .psn = E + 1, .len = PMTU + 4 },
	};
	struct bed s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uc_init(&s);
		UC_FEED(&s, SEND_FIRST(E));
		assert_true(s.r.wqe_active);
		assert_int_equal(uc_feed(&s, bad[i]), 0);
		assert_int_equal(s.v.act, ACT_DROP | ACT_CUT);
		assert_int_equal(s.v.solicited, 1);              /* CQ-06: an error, without SE */
		assert_int_equal(s.v.wc_status, WC_REM_INV_REQ); /* class E */
		assert_false(s.r.wqe_active);
	}
	uc_init(&s);
	s.wqe_bytes = PMTU + 3;
	UC_FEED(&s, SEND_FIRST(E));
	UC_FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 1, .len = 4);
	assert_int_equal(s.v.act, ACT_DROP | ACT_CUT);
	assert_int_equal(s.v.wc_status, WC_LOC_LEN);
}

static void
UC_05_begins_at_any_psn(void **state)
{
	static const uint32_t psns[] = { E, E + 5, E - 1, 0x800000, 0xffffff, 0 };
	struct bed s;

	(void)state;
	uc_init(&s);
	for (size_t i = 0; i < ARRAY_LEN(psns); i++) {
		s.wqes = 1;
		assert_int_equal(
			UC_FEED(&s, SEND_ONLY(psns[i], 4)), i == 0 || i == 5 ? 0 : RESYNC_GAP);
		assert_int_equal(s.v.act, ACT_TAKE_WQE | ACT_PLACE_SEND | ACT_COMPLETE);
		assert_int_equal(s.r.epsn.v, (psns[i] + 1) & 0xffffff);
	}
}

static void
UC_07_what_cuts_a_message_off(void **state)
{
	static const struct {
		struct spec p;
		uint32_t what;
	} next[] = {
		{ { .op = OP_RC_SEND_LAST, .psn = E + 1, .len = 4 }, 0 },
		{ { .op = OP_RC_SEND_LAST, .psn = E + 2, .len = 4 }, RESYNC_CUT | RESYNC_GAP },
		{ { .op = OP_RC_SEND_MIDDLE, .psn = E, .len = PMTU }, RESYNC_CUT | RESYNC_GAP },
		{ { SEND_ONLY(E + 1, 4) }, RESYNC_CUT },
		{ { SEND_FIRST(E + 3) }, RESYNC_CUT | RESYNC_GAP },
		{ { WRITE_ONLY(E + 1, 4) }, RESYNC_CUT },
		{ { .op = OP_RC_WRITE_LAST, .psn = E + 1, .len = 4 }, RESYNC_CUT },
		{ { .op = UC(0x0d), .psn = E + 1 }, RESYNC_CUT },
		{ { .op = OP_UD_SEND_ONLY, .psn = E + 1 }, 0 },
	};
	struct bed s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(next); i++) {
		uc_init(&s);
		UC_FEED(&s, SEND_FIRST(E));
		assert_int_equal(uc_feed(&s, next[i].p), next[i].what);
	}
	uc_init(&s);
	UC_FEED(&s, WRITE_FIRST(E, 2048)); /* it has no receive */
	assert_int_equal(UC_FEED(&s, SEND_ONLY(E + 1, 4)), 0);
}

/** A packet of another service is no request of this one, whatever it would be there. */
static void
UC_17_other_services(void **state)
{
	struct bed s;

	(void)state;
	uc_init(&s);
	feed_spec(&s, (struct spec){ WRITE_ONLY(E, 4) });
	assert_int_equal(s.v.act, ACT_DROP);
	bed_init(&s);
	feed_spec(&s, (struct spec){ .op = UC(OP_RC_SEND_ONLY), .psn = E, .len = 4 });
	assert_int_equal(s.v.act, ACT_DROP);
	expect_state(&s, E, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_CLS_01_every_row),
		cmocka_unit_test(RESP_CLS_01_inside_a_send),
		cmocka_unit_test(UC_05_begins_at_any_psn),
		cmocka_unit_test(UC_07_what_cuts_a_message_off),
		cmocka_unit_test(UC_17_other_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
