/* SPDX-License-Identifier: BSD-3-Clause */
/* resp.gap=keep: requests ahead of ePSN wait for their turn (RESP-SEQ-14, RESP-SEQ-15). */
#include "pkt.h"
#include "resp_kept.h"
#include "responder_fast.h"

enum { PLACES = 256, UNKNOWN = 0xff };

static void
keeping(struct bed *s)
{
	bed_init(s);
	s->r.knobs = RESP_KNOB_KEEP;
	s->f.may_keep = true;
}

static void
expect_kept(const struct bed *s, bool nak)
{
	assert_int_equal(s->v.act, nak ? ACT_KEEP | ACT_NAK : ACT_KEEP);
	assert_int_equal(s->v.counter, RC_OUT_OF_SEQUENCE);
	assert_int_equal(s->v.fault, nak ? 21 : UNKNOWN); /* RX-SYN-21, or none */
	assert_int_equal(s->r.epsn.v, s->before.epsn.v);
	assert_int_equal(s->r.msn, s->before.msn);
	assert_false(s->q.wqe || s->q.key || s->q.invalidate); /* not before its turn */
}

/* RESP-SEQ-14: the first draws the NAK of the gap and is kept, the others are kept. */
static void
RESP_SEQ_14_kept(void **state)
{
	const struct spec rows[] = {
		{ SEND_ONLY(E + 2, 4) },
		{ SEND_FIRST(E + 3) },
		{ WRITE_ONLY(E + 4, 4) },
		{ READ(E + 5, 4) },
		{ FETCH_ADD(E + PLACES - 1) },
		{ SEND_ONLY(E + 1, 4) },
	};
	struct bed s;

	(void)state;
	keeping(&s);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_kept(&s, true);
	assert_int_equal(s.v.syndrome, NAK_SEQ);
	assert_int_equal(s.v.reply_psn.v, E);
	expect_rule(&s, "RESP-SEQ-01");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		feed_spec(&s, rows[i]);
		expect_kept(&s, false);
		expect_rule(&s, "RESP-SEQ-14");
	}
	FEED(&s, SEND_ONLY(E, 4));
	expect_ack(&s, E, 1);
	FEED(&s, SEND_ONLY(E + 1, 4)); /* its turn: as any other */
	expect_ack(&s, E + 1, 2);
}

/* RESP-SEQ-14: what is too far ahead, or finds no room, is dropped as ever. */
static void
RESP_SEQ_02_not_kept(void **state)
{
	struct bed s;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		keeping(&s);
		if (i == 0)
			s.r.knobs = 0;
		s.f.may_keep = i != 1;
		FEED(&s, SEND_ONLY(i == 2 ? E + PLACES : E + 1, 4));
		expect_nak(&s, NAK_SEQ, E, 0);
		FEED(&s, SEND_ONLY(i == 2 ? E + PLACES : E + 2, 4));
		expect_silent(&s);
		expect_rule(&s, "RESP-SEQ-02");
		assert_int_equal(s.v.fault, 21);
	}
}

/* RESP-RNR-05: behind an RNR NAK nothing is kept, for the peer sends all of it again. */
static void
RESP_RNR_05_not_kept(void **state)
{
	struct bed s;

	(void)state;
	keeping(&s);
	s.wqes = 0;
	FEED(&s, SEND_ONLY(E, 4));
	expect_nak(&s, RNR_12, E, 0);
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_silent(&s);
	expect_rule(&s, "RESP-RNR-05");
}

/* RESP-SEQ-15: what is missing next is told once, unless the peer knows of it. */
static void
RESP_SEQ_15_next_gap(void **state)
{
	struct responder_verdict v;
	struct bed s;

	(void)state;
	keeping(&s);
	FEED(&s, SEND_ONLY(E + 1, 4));
	assert_false(responder_still_missing(&s.r, &v));
	FEED(&s, SEND_ONLY(E, 4));
	assert_true(responder_still_missing(&s.r, &v));
	assert_int_equal(v.act, ACT_NAK);
	assert_int_equal(v.syndrome, NAK_SEQ);
	assert_int_equal(v.reply_psn.v, E + 1);
	assert_int_equal(v.reply_msn, 1);
	assert_string_equal(responder_rule_id((enum responder_rule)v.rule), "RESP-SEQ-15");
	assert_false(responder_still_missing(&s.r, &v));
	FEED(&s, SEND_ONLY(E + 3, 4));
	expect_kept(&s, false);
	s.wqes = 0;
	FEED(&s, SEND_ONLY(E + 1, 4));
	expect_nak(&s, RNR_12, E + 1, 1);
	assert_false(responder_still_missing(&s.r, &v));
}

/* RESP-SEQ-14: the short way of a gap does not know of it. */
static void
RESP_SEQ_14_full_path(void **state)
{
	struct bed s;

	(void)state;
	keeping(&s);
	make_pkt(&s, &(struct spec){ SEND_ONLY(E + 1, 4) });
	assert_false(responder_is_fast_gap(&s.r, &s.pkt));
	s.r.knobs = 0;
	assert_true(responder_is_fast_gap(&s.r, &s.pkt));
}

/* RESP-SEQ-14: whom the short way keeps the full path keeps as well, and nobody else. */
static void
RESP_SEQ_14_short_way(void **state)
{
	const struct spec rows[] = {
		{ SEND_ONLY(E, 4) },
		{ SEND_ONLY(E - 1, 4) },
		{ SEND_ONLY(E + 1, 4) },
		{ WRITE_ONLY(E + PLACES - 1, 4) },
		{ WRITE_ONLY(E + PLACES, 4) },
		{ READ(E + 2, 4) },
		{ .op = OP_RC_ACKNOWLEDGE, .psn = E + 1 },
	};
	uint32_t kept = 0;

	(void)state;
	for (uint32_t how = 0; how < 4; how++) /* a gap; told of; behind an RNR NAK; no knob */
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct bed s;
			bool is;

			keeping(&s);
			s.r.latched = how != 0;
			s.r.rnr_until = how == 2 ? s.now + 1 : 0;
			s.r.knobs = how == 3 ? 0 : RESP_KNOB_KEEP;
			make_pkt(&s, &rows[i]);
			is = responder_keeps(&s.r, &s.pkt);
			feed_spec(&s, rows[i]);
			assert_int_equal(is, s.v.act == ACT_KEEP);
			kept += is;
		}
	assert_int_equal(kept, 3);
}

/* ---- the places ------------------------------------------------------------------------------ */

static uint32_t things[4 * PLACES];

static void
expect_due(struct resp_kept *k, uint32_t epsn, uint32_t thing)
{
	void *what = NULL;

	assert_int_equal(resp_kept_take(k, psn(epsn), &what), KEPT_IS_DUE);
	assert_ptr_equal(what, &things[thing]);
}

static void
expect_over(struct resp_kept *k, uint32_t epsn, uint32_t thing)
{
	void *what = NULL;

	assert_int_equal(resp_kept_take(k, psn(epsn), &what), KEPT_IS_OVER);
	assert_ptr_equal(what, &things[thing]);
}

static void
expect_none(struct resp_kept *k, uint32_t epsn)
{
	void *what = NULL;

	assert_int_equal(resp_kept_take(k, psn(epsn), &what), KEPT_IS_NONE);
}

/* RESP-SEQ-14: in PSN order, each when ePSN has come to it; PSNs wrap. */
static void
RESP_SEQ_14_in_order(void **state)
{
	static const uint32_t starts[] = { E, 0xfffffe, 0xffff80 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		const uint32_t e = starts[i];
		struct resp_kept k = { .n = 0 };

		for (uint32_t at = PLACES - 1; at != 0; at--)
			assert_null(
				resp_kept_put(&k, psn(e), psn((e + at) & 0xffffff), &things[at]));
		expect_none(&k, e);
		for (uint32_t at = 1; at < PLACES; at++) {
			expect_due(&k, (e + at) & 0xffffff, at);
			expect_none(&k, (e + at) & 0xffffff);
		}
		assert_int_equal(k.n, 0);
	}
}

/* RESP-SEQ-14: of two copies the newer one stays. */
static void
RESP_SEQ_14_two_copies(void **state)
{
	struct resp_kept k = { .n = 0 };

	(void)state;
	assert_null(resp_kept_put(&k, psn(E), psn(E + 1), &things[0]));
	assert_ptr_equal(resp_kept_put(&k, psn(E), psn(E + 1), &things[1]), &things[0]);
	assert_int_equal(k.n, 1);
	expect_due(&k, E + 1, 1);
}

/* RESP-SEQ-14: what ePSN has passed is dropped, also behind a READ of more PSNs than places. */
static void
RESP_SEQ_14_passed(void **state)
{
	struct resp_kept k = { .n = 0 };

	(void)state;
	for (uint32_t at = 1; at < 6; at++)
		resp_kept_put(&k, psn(E), psn(E + at), &things[at]);
	for (uint32_t at = 1; at < 4; at++)
		expect_over(&k, E + 4, at);
	expect_due(&k, E + 4, 4);
	expect_none(&k, E + 4);
	assert_int_equal(k.n, 1);
	resp_kept_put(&k, psn(E + 4), psn(E + 4 + PLACES - 1), &things[6]);
	expect_over(&k, E + 4 * PLACES, 5);
	expect_over(&k, E + 4 * PLACES, 6);
	expect_none(&k, E + 4 * PLACES);
	assert_int_equal(k.n, 0);
	assert_null(resp_kept_put(&k, psn(0x800000), psn(0x800001), &things[7]));
	assert_ptr_equal(resp_kept_drop(&k), &things[7]);
	assert_null(resp_kept_drop(&k));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_SEQ_14_kept),
		cmocka_unit_test(RESP_SEQ_02_not_kept),
		cmocka_unit_test(RESP_RNR_05_not_kept),
		cmocka_unit_test(RESP_SEQ_15_next_gap),
		cmocka_unit_test(RESP_SEQ_14_full_path),
		cmocka_unit_test(RESP_SEQ_14_short_way),
		cmocka_unit_test(RESP_SEQ_14_in_order),
		cmocka_unit_test(RESP_SEQ_14_two_copies),
		cmocka_unit_test(RESP_SEQ_14_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
