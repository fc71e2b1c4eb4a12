/* SPDX-License-Identifier: BSD-3-Clause */
/* req.read_gap=fill: READ responses behind a missing one are kept. */
#include "req.h"

enum { O_FIRST = 0x0d, O_MIDDLE = 0x0e, O_LAST = 0x0f, O_ONLY = 0x10 };

static void
started(struct bed *s, uint32_t packets)
{
	bed_init(s);
	s->r.knobs = REQ_KNOB_READ_FILL;
	POST(s, READ(packets * PMTU), .imm = 0x10002); /* an immediate that a READ has no use for */
	POST(s, READ(64));
	pump(s);
	expect_psns(s, S, S + packets);
}

/** The response at this place of the READ, as a stream goes on that has lost nothing. */
static void
data(struct bed *s, uint32_t at, uint32_t packets)
{
	const uint8_t op = at == 0 ? O_FIRST : at + 1 == packets ? O_LAST : O_MIDDLE;

	read_rsp(s, op, S + at, PMTU);
}

static void
expect_kept(struct bed *s, uint32_t at)
{
	assert_true((s->v.act & REQACT_PLACE) != 0);
	assert_int_equal(s->v.act & (REQACT_COMPLETE | REQACT_DROP), 0);
	assert_int_equal(s->v.position, 0);
	assert_int_equal(s->v.offset, at * PMTU);
	assert_int_equal(s->r.una.v, s->before.una.v);
}

static void
expect_asked(struct bed *s, uint32_t at, uint32_t packets)
{
	pump(s);
	assert_int_equal(s->n, 2);
	assert_int_equal(s->out[0].opcode, 0x0c);
	assert_int_equal(s->out[0].psn.v, S + at);
	assert_true(s->out[0].va == VA + at * PMTU);
	assert_int_equal(s->out[0].dma_len, packets * PMTU);
	assert_true(s->out[0].resend);
	assert_int_equal(s->out[1].position, 1);
}

/* REQ-IMPL-04: the missing part alone is asked for. REQ-IMPL-09: any stream may answer. */
static void
REQ_IMPL_04_the_missing_part(void **state)
{
	static const struct {
		uint32_t packets, lost, n; /* places lost .. lost + n - 1 are missing */
		uint8_t ops[3];            /* of the answer */
	} rows[] = {
		{ 4, 1, 1, { O_ONLY } },
		{ 4, 1, 1, { O_LAST } },
		{ 4, 1, 1, { O_FIRST } },
		{ 4, 1, 1, { O_MIDDLE } },
		{ 4, 1, 2, { O_FIRST, O_LAST } },
		{ 4, 1, 2, { O_MIDDLE, O_LAST } },
		{ 4, 1, 2, { O_MIDDLE, O_MIDDLE } },
		{ 8, 3, 3, { O_FIRST, O_MIDDLE, O_LAST } },
		{ 8, 4, 3, { O_MIDDLE, O_MIDDLE, O_LAST } },
		{ 2, 0, 1, { O_ONLY } },
		{ 2, 0, 1, { O_LAST } },
		{ 2, 0, 1, { O_FIRST } },
		{ 4, 0, 3, { O_FIRST, O_MIDDLE, O_LAST } },
		{ 4, 0, 3, { O_MIDDLE, O_MIDDLE, O_LAST } },
	};
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint32_t end = rows[i].lost + rows[i].n, all = rows[i].packets;

		started(s, all);
		for (uint32_t at = 0; at < rows[i].lost; at++)
			data(s, at, all);
		data(s, end, all);
		expect_kept(s, end);
		assert_true((s->v.act & REQACT_RESEND) != 0);
		assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
		expect_asked(s, rows[i].lost, rows[i].n);
		for (uint32_t at = end + 1; at < all; at++) {
			data(s, at, all);
			expect_kept(s, at);
			assert_int_equal(s->v.cause, QC_NONE);
		}
		for (uint32_t k = 0; k < rows[i].n; k++) {
			expect_done(s, 0);
			read_rsp(s, rows[i].ops[k], S + rows[i].lost + k, PMTU);
			assert_int_equal(s->v.offset, (rows[i].lost + k) * PMTU);
		}
		expect_done(s, 1);
		assert_int_equal(s->r.una.v, S + all);
		assert_int_equal(s->r.retry_left, s->r.retry_cnt);
		ONLY(s, S + all, 64);
		expect_done(s, 2);
		assert_int_equal(s->r.reply_psns, 0);
	}
}

/*
 * REQ-IMPL-01: of what was asked for again the first is lost once more. What comes behind it, with
 * room for it or not, tells so: no transport timer is needed.
 */
static void
REQ_IMPL_01_lost_once_more(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t next = 2; next <= 3; next++) { /* the places from 4 on are kept */
		started(s, 8);
		s->r.timeout = 0;
		s->now += 10000;
		for (uint32_t at = 4; at < 8; at++)
			data(s, at, 8);
		expect_asked(s, 0, 4);
		s->now += 10000;
		data(s, 0, 8);
		assert_int_equal(s->r.una.v, S + 1);
		data(s, next, 8);
		expect_rule(s, "REQ-IMPL-05");
		assert_int_equal(s->v.act & REQACT_TIMER, REQACT_TIMER);
		assert_int_equal((s->v.act & REQACT_PLACE) != 0, next == 3);
		assert_in_range(s->r.deadline - s->now, 10000, 100 * 10000);
		expire(s);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
		expect_asked(s, 1, next == 3 ? 2 : 3);
		for (uint32_t at = 1; at < (next == 3 ? 3 : 4); at++)
			data(s, at, 8);
		expect_done(s, 1);
	}
}

/* REQ-IMPL-05: one retry for each gap, and none for what shows it again. */
static void
REQ_IMPL_05_two_gaps(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 6);
	data(s, 0, 6);
	data(s, 2, 6);
	expect_kept(s, 2);
	expect_asked(s, 1, 1);
	data(s, 4, 6); /* behind another gap: one piece is kept */
	assert_int_equal(s->v.act & (REQACT_PLACE | REQACT_RESEND), 0);
	ONLY(s, S + 1, PMTU);
	assert_int_equal(s->v.act, REQACT_PLACE | REQACT_RESEND | REQACT_TIMER);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	assert_int_equal(s->r.una.v, S + 3);
	expect_asked(s, 3, 3);
	FIRST(s, S + 3);
	MIDDLE(s, S + 4);
	LAST(s, S + 5, PMTU);
	expect_done(s, 1);
}

/*
 * REQ-IMPL-05: a peer may answer the second request before the rest of the first, whose responses
 * have higher PSNs (as this responder does). Nothing tells that they are lost.
 */
static void
REQ_IMPL_05_answered_between(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t more = 0; more < 2;
		more++) { /* kept ones behind the gap, before the answer */
		started(s, 6);
		data(s, 0, 6);
		data(s, 2, 6);
		expect_asked(s, 1, 1);
		if (more)
			data(s, 3, 6);
		ONLY(s, S + 1, PMTU);
		assert_int_equal(s->v.act & REQACT_RESEND, 0);
		assert_int_equal(s->v.cause, QC_NONE);
		assert_int_equal(s->r.una.v, S + 3 + more);
		assert_int_equal(s->r.retry_left, s->r.retry_cnt);
		for (uint32_t at = 3 + more; at < 6; at++)
			data(s, at, 6);
		expect_done(s, 1);
		ONLY(s, S + 6, 64);
		expect_done(s, 2);
		assert_false(s->r.timing);
	}
}

/* REQ-IMPL-01: if they are, the next response shows it. */
static void
REQ_IMPL_01_the_rest_is_lost(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 6);
	data(s, 0, 6);
	data(s, 2, 6);
	expect_asked(s, 1, 1);
	ONLY(s, S + 1, PMTU);
	assert_true(s->r.timing);
	s->now += 1000;
	data(s, 4, 6);
	expect_kept(s, 4);
	expire(s);
	assert_true((s->v.act & REQACT_RESEND) != 0);
	expect_asked(s, 3, 1);
}

/* It was late, not lost: the rest of the stream is on its way, and nothing is asked for. */
static void
REQ_IMPL_05_overtaken(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 5);
	data(s, 0, 5);
	data(s, 2, 5);
	data(s, 1, 5); /* before the resend is out */
	assert_int_equal(s->r.una.v, S + 3);
	data(s, 3, 5);
	data(s, 4, 5);
	expect_done(s, 1);

	started(s, 5);
	data(s, 0, 5);
	data(s, 2, 5);
	expect_asked(s, 1, 1);
	data(s, 1, 5);
	assert_int_equal(s->v.act & REQACT_RESEND, 0);
	assert_int_equal(s->r.una.v, S + 3);
	ONLY(s, S + 1, PMTU); /* the answer to the needless request */
	expect_no_effect(s, "REQ-16");
	data(s, 3, 5);
	data(s, 4, 5);
	expect_done(s, 1);

	started(s, 5); /* the piece grows at both ends */
	data(s, 0, 5);
	data(s, 3, 5);
	data(s, 2, 5);
	expect_kept(s, 2);
	data(s, 4, 5);
	expect_kept(s, 4);
	expect_asked(s, 1, 1);
	data(s, 1, 5);
	expect_done(s, 1);
}

static void
REQ_16_kept_already(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 5);
	data(s, 0, 5);
	data(s, 2, 5);
	data(s, 3, 5);
	pump(s);
	for (uint32_t at = 0; at < 4; at += at == 0 ? 2 : 1) {
		data(s, at, 5);
		expect_no_effect(s, "REQ-16");
	}
}

/* REQ-CLS-B-03, REQ-CLS-B-02: what does not fit its place is not kept. */
static void
REQ_CLS_B_03_not_kept(void **state)
{
	static const struct rsp rows[] = {
		{ .op = O_MIDDLE, .psn = S + 2, .len = PMTU - 4 },
		{ .op = O_MIDDLE, .psn = S + 2, .len = PMTU, .pad = 1 },
		{ .op = O_LAST, .psn = S + 2, .len = PMTU },
		{ .op = O_FIRST, .psn = S + 2, .len = PMTU, .syn = 0x60 },
		{ .op = O_LAST, .psn = S + 3, .len = PMTU - 1 },
		{ .op = O_MIDDLE, .psn = S + 3, .len = PMTU },
		{ .op = O_ONLY, .psn = S + 4, .len = 64 }, /* of the next READ */
	};
	struct bed bed, *s = &bed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		started(s, 4);
		data(s, 0, 4);
		feed_rsp(s, rows[i]);
		expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
		expect_asked(s, 1, 3);
	}
}

/* What was kept stays kept over a timeout: the answer to the request before it may still come. */
static void
TMR_07_timeout_keeps(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 5);
	data(s, 0, 5);
	data(s, 3, 5);
	expect_asked(s, 1, 2);
	s->now = s->r.deadline - 1;
	data(s, 4, 5); /* TMR-06: the peer is there */
	expect_kept(s, 4);
	assert_true(s->r.deadline > s->before.deadline);
	for (uint32_t probes = 0; probes <= 3; probes++) { /* and silent from here on */
		expire(s);
		assert_true((s->v.act & REQACT_RESEND) != 0);
		expect_asked(s, 1, 2);
		if (s->v.cause == QC_TIMEOUT)
			break;
	}
	assert_int_equal(s->v.cause, QC_TIMEOUT);
	FIRST(s, S + 1);
	LAST(s, S + 2, PMTU);
	expect_done(s, 1);
}

/* REQ-19: the buffer of what is kept is gone. */
static void
REQ_19_kept_nowhere(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 4);
	data(s, 0, 4);
	memset(&s->v, 0, sizeof(s->v));
	make_rsp(s, &(struct rsp){ .op = O_MIDDLE, .psn = S + 2, .len = PMTU });
	requester_response(&s->r, &s->pkt, s->now, &s->v);
	requester_local_fault(&s->r, 0, WR_FAULT_PROT, &s->v);
	expect_rule(s, "REQ-19");
	expect_error(s, 0, WC_LOC_PROT, 5);
}

/*
 * The first answer of all is lost: how long a round trip takes is seen by what lies beyond it. The
 * rest of that pass comes right behind the resend, whose own answer has a round trip to go.
 */
static void
REQ_IMPL_05_first_round_trip(void **state)
{
	const ns_t round = 24000, grain = 64;
	struct bed bed, *s = &bed;
	ns_t resent;

	(void)state;
	bed_init(s);
	POST(s, READ(64));
	post_sends(s, 3);
	pump(s);
	s->now += round;
	ack(s, S + 1, ACK);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	pump(s);
	resent = s->now;
	s->now += 704;
	ack(s, S + 2, ACK);
	expect_rule(s, "REQ-IMPL-05");
	ack(s, S + 3, ACK);
	expect_rule(s, "REQ-IMPL-05");
	assert_true(s->r.doubting);
	assert_true(s->r.deadline >= resent + round - grain);
	s->now = resent + round - grain;
	assert_int_equal(s->r.retry_left, 2);
	ONLY(s, S, 64);
	expect_done(s, 1);
	ack(s, S + 3, ACK);
	expect_done(s, 4);
}

/* req.reorder: fewer than three that overtake it do not make it lost. */
static void
REQ_IMPL_05_reorder(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t late = 1; late <= 2; late++) {
		started(s, 6);
		s->r.knobs |= 3 << REQ_KNOB_REORDER_SHIFT;
		data(s, 0, 6);
		for (uint32_t at = 2; at < 2 + late; at++) {
			data(s, at, 6);
			expect_kept(s, at);
			assert_int_equal(s->v.act & REQACT_RESEND, 0);
		}
		data(s, 1, 6);
		assert_false(s->r.doubting);
		for (uint32_t at = 2 + late; at < 6; at++)
			data(s, at, 6);
		expect_done(s, 1);
		assert_int_equal(s->r.retry_left, s->r.retry_cnt);
		pump(s);
		assert_int_equal(s->n, 0);
	}

	started(s, 6); /* the third */
	s->r.knobs |= 3 << REQ_KNOB_REORDER_SHIFT;
	data(s, 0, 6);
	data(s, 2, 6);
	data(s, 3, 6);
	data(s, 4, 6);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	expect_asked(s, 1, 1);
	data(s, 5, 6);
	ONLY(s, S + 1, PMTU);
	expect_done(s, 1);

	started(s, 3); /* nothing more comes */
	s->r.knobs |= 3 << REQ_KNOB_REORDER_SHIFT;
	data(s, 0, 3);
	data(s, 2, 3);
	assert_int_equal(s->v.act, REQACT_PLACE | REQACT_TIMER);
	expire(s);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	expect_asked(s, 1, 1);

	started(s, 3); /* the next READ is answered */
	s->r.knobs |= 3 << REQ_KNOB_REORDER_SHIFT;
	data(s, 0, 3);
	data(s, 2, 3);
	ONLY(s, S + 3, 64);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
	expect_asked(s, 1, 1);
}

/*
 * REQ-IMPL-01, req.reorder: of two that are missing the first is late and the second is lost. It is
 * missed as well, whether or not more comes behind it, and where no transport timer helps.
 */
static void
REQ_IMPL_01_one_late_one_lost(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t more = 0; more <= 1; more++)
		for (uint32_t timeout = 0; timeout <= 14; timeout += 14) {
			started(s, 6);
			s->r.knobs |= 3 << REQ_KNOB_REORDER_SHIFT;
			s->r.timeout = (uint8_t)timeout;
			s->r.timing &= timeout != 0;
			data(s, 0, 6);
			data(s, 3, 6);
			assert_true(s->r.doubting);
			data(s, 1, 6);
			assert_int_equal(s->r.una.v, S + 2);
			if (more)
				data(s, 4, 6);
			assert_true(s->r.doubting);
			expire(s);
			expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
			expect_asked(s, 2, 1);
		}
}

/*
 * REQ-RNR-09, req.reorder: an older copy of the READ is served behind the RNR NAK. Nothing leaves
 * before the wait is over, so nothing is missed.
 */
static void
REQ_RNR_09_kept_in_the_wait(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s, 6);
	s->r.knobs |= 3 << REQ_KNOB_REORDER_SHIFT;
	ack(s, S, RNR | 1);
	assert_true(s->r.waiting_rnr);
	data(s, 1, 6);
	expect_kept(s, 1);
	assert_true(s->r.waiting_rnr);
	assert_false(s->r.timing);
	assert_int_equal(pump(s), REQ_RNR_WAIT);
	expire(s);
	expect_rule(s, "REQ-RNR-01");
	expect_asked(s, 0, 1);
}

RUN(T(REQ_RNR_09_kept_in_the_wait), T(REQ_IMPL_01_one_late_one_lost),
	T(REQ_IMPL_01_lost_once_more),
	T(REQ_IMPL_04_the_missing_part), T(REQ_IMPL_05_first_round_trip), T(REQ_IMPL_05_two_gaps),
	T(REQ_IMPL_05_answered_between), T(REQ_IMPL_01_the_rest_is_lost), T(REQ_IMPL_05_overtaken),
	T(REQ_16_kept_already), T(REQ_CLS_B_03_not_kept), T(TMR_07_timeout_keeps),
	T(REQ_19_kept_nowhere), T(REQ_IMPL_05_reorder))
