/* SPDX-License-Identifier: BSD-3-Clause */
/* req.read_gap=keep: responses of later READs are kept, and each gap alone is asked for again. */
#include "req.h"

enum { N = 4, READS = 4, US = 1000, NEVER = 0xff, OPEN_KEPT = 56 }; /* packets of a READ */

static void
started(struct bed *s)
{
	bed_init(s);
	s->r.knobs = REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP;
	for (uint32_t i = 0; i < READS; i++)
		POST(s, READ(N * PMTU));
	pump(s);
	expect_psns(s, S, S + N, S + 2 * N, S + 3 * N);
}

/** The response at this place, counted over all READs, of streams that were asked for once. */
static void
data(struct bed *s, uint32_t at)
{
	const uint32_t place = at % N;
	const uint8_t op = place == 0       ? OP_RC_READ_RESPONSE_FIRST
			   : place + 1 == N ? OP_RC_READ_RESPONSE_LAST
					    : OP_RC_READ_RESPONSE_MIDDLE;

	s->now += US;
	read_rsp(s, op, S + at, PMTU);
}

/** Those from `from` to `to`, but one. */
static void
data_but(struct bed *s, uint32_t from, uint32_t to, uint32_t lost)
{
	for (uint32_t at = from; at <= to; at++)
		if (at != lost)
			data(s, at);
}

static void
expect_kept(struct bed *s, uint32_t at)
{
	assert_true((s->v.act & REQACT_PLACE) != 0);
	assert_int_equal(s->v.act & (REQACT_COMPLETE | REQACT_DROP), 0);
	assert_int_equal(s->v.position, at / N);
	assert_int_equal(s->v.offset, at % N * PMTU);
	assert_int_equal(s->r.una.v, s->before.una.v);
}

/** One request leaves: for so many packets from this place on. */
static void
expect_asked(struct bed *s, uint32_t at, uint32_t packets)
{
	const uint32_t cur = s->r.cur.v, next = s->r.next.v;

	pump(s);
	assert_int_equal(s->n, 1);
	assert_int_equal(s->out[0].opcode, OP_RC_READ_REQUEST);
	assert_int_equal(s->out[0].psn.v, S + at);
	assert_int_equal(s->out[0].position, at / N);
	assert_true(s->out[0].va == VA + at % N * PMTU);
	assert_int_equal(s->out[0].dma_len, packets * PMTU);
	assert_true(s->out[0].resend);
	assert_int_equal(s->r.cur.v, cur);
	assert_int_equal(s->r.next.v, next);
}

/* REQ-IMPL-04: what is missing is asked for, and nothing else; what it completes is done. */
static void
REQ_IMPL_04_one_gap(void **state)
{
	static const uint8_t ops[] = { OP_RC_READ_RESPONSE_ONLY, OP_RC_READ_RESPONSE_FIRST,
		OP_RC_READ_RESPONSE_MIDDLE, OP_RC_READ_RESPONSE_LAST };
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t lost = 0; lost < 2 * N; lost++) {
		for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
			if (lost % N + 1 == N && (i == 1 || i == 2))
				continue; /* no stream ends so */
			started(s);
			data_but(s, 0, lost + 1, lost);
			expect_kept(s, lost + 1);
			assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
			assert_true((s->v.act & REQACT_RESEND) != 0);
			assert_int_equal(s->r.retry_left, s->r.retry_cnt - 1);
			assert_int_equal(s->r.open, OPEN_KEPT);
			expect_asked(s, lost, 1);
			for (uint32_t at = lost + 2; at < 3 * N; at++) {
				data(s, at);
				expect_kept(s, at);
				assert_int_equal(s->v.cause, QC_NONE);
			}
			expect_done(s, lost / N);
			read_rsp(s, ops[i], S + lost, PMTU);
			expect_done(s, 3);
			assert_int_equal(s->v.cause, QC_NONE);
			assert_int_equal(s->r.una.v, S + 3 * N);
			assert_int_equal(s->r.reads, 1);
			assert_int_equal(s->r.reply_psns, N - 1);
			assert_false(s->r.holes);
			data_but(s, 3 * N, 4 * N - 1, NEVER);
			expect_done(s, 4);
			assert_int_equal(s->r.reply_psns, 0);
			assert_false(s->r.timing);
		}
	}
}

/* REQ-IMPL-05: one retry for each gap, in ascending order, one after the other. */
static void
REQ_IMPL_05_gap_after_gap(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	data_but(s, 0, 2, 1);
	expect_asked(s, 1, 1);
	data_but(s, 3, 10, 6); /* another READ's */
	data_but(s, 11, 15, 12);
	assert_int_equal(s->v.cause, QC_NONE);
	pump(s);
	assert_int_equal(s->n, 0);
	ONLY(s, S + 1, PMTU);
	expect_done(s, 1);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	expect_asked(s, 6, 1);
	ONLY(s, S + 6, PMTU);
	expect_done(s, 3);
	expect_asked(s, 12, 1);
	FIRST(s, S + 12);
	expect_done(s, 4);
}

/* REQ-IMPL-05: behind a second gap of the same READ nothing is kept; its rest is asked for. */
static void
REQ_IMPL_05_two_gaps_of_one(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	data(s, 1);
	expect_asked(s, 0, 1);
	data(s, 3);
	assert_int_equal(s->v.act, REQACT_DROP);
	ONLY(s, S, PMTU);
	assert_int_equal(s->r.una.v, S + 2);
	expect_asked(s, 2, 2);
	FIRST(s, S + 2);
	LAST(s, S + 3, PMTU);
	expect_done(s, 1);
	data(s, 4);
	assert_int_equal(s->v.cause, QC_NONE);
}

/*
 * REQ-IMPL-05: responses to what was asked before say nothing of the gap; one to what was asked
 * after it says that the request, or its answer, is lost.
 */
static void
REQ_IMPL_05_lost_again(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	data(s, 0);
	data(s, 2);
	expect_asked(s, 1, 1);
	POST(s, READ(64));
	s->r.max_rd_atomic = 8;
	pump(s);
	expect_psns(s, S + 16);
	data_but(s, 3, 15, NEVER);
	assert_int_equal(s->v.cause, QC_NONE);
	ONLY(s, S + 16, 64);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	assert_int_equal(s->r.retry_left, s->r.retry_cnt - 2);
	expect_asked(s, 1, 1);
	ONLY(s, S + 1, PMTU);
	expect_done(s, 5);
}

/* REQ-IMPL-06: each retry counts, and the last one is the last. */
static void
REQ_IMPL_06_counter(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	s->r.max_rd_atomic = 16;
	data(s, 1);
	expect_asked(s, 0, 1);
	for (uint32_t i = 0; i < 3; i++) {
		POST(s, READ(PMTU));
		pump(s);
		expect_psns(s, S + 16 + i);
		s->now += US;
		ONLY(s, S + 16 + i, PMTU);
		if (i < 2)
			expect_asked(s, 0, 1);
	}
	assert_true((s->v.act & REQACT_ERROR) != 0);
	assert_int_equal(s->v.failed, 0);
	assert_int_equal(s->v.wc_status, WC_RETRY_EXC);
}

/* REQ-CLS-B-01, REQ-IMPL-02: a later READ whose data has no place fails in its turn, not before. */
static void
REQ_CLS_B_01_later_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t goes_back = 0; goes_back < 2; goes_back++) {
		started(s);
		if (goes_back) { /* the first that shows it has an ATOMIC behind it */
			POST(s, FADD);
			pump(s);
		}
		data(s, 0);
		data(s, 4 + 1); /* of the second READ, behind a gap */
		assert_int_equal(s->v.position, 1);
		assert_true((s->v.act & REQACT_PLACE) != 0);
		requester_local_fault(&s->r, 1, WR_FAULT_PROT, &s->v);
		assert_int_equal(s->v.act & (REQACT_PLACE | REQACT_ERROR | REQACT_COMPLETE), 0);
		assert_int_equal(s->v.act & REQACT_RESEND, REQACT_RESEND);
		pump(s);
		assert_int_equal(s->n, 1); /* the first alone is asked for again */
		assert_int_equal(s->out[0].psn.v, S + 1);
		for (uint32_t at = 1; at < N; at++)
			data(s, at);
		assert_int_equal(s->v.completed, 1);
		assert_true((s->v.act & REQACT_ERROR) != 0);
		assert_int_equal(s->v.failed, 1);
		assert_int_equal(s->v.wc_status, WC_LOC_PROT);
	}
}

/* REQ-IMPL-04: what lies too far from the READ's beginning is not kept: its place has no number. */
static void
REQ_IMPL_04_far_away(void **state)
{
	static const uint32_t most[] = { 65535, 1023 };
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t keep = 0; keep < 2; keep++) {
		for (uint32_t far = 0; far < 2; far++) {
			bed_init(s);
			s->r.knobs = REQ_KNOB_READ_FILL | (keep != 0 ? REQ_KNOB_READ_KEEP : 0);
			POST(s, READ(70000 * PMTU));
			pump(s);
			FIRST(s, S);
			MIDDLE(s, S + most[keep] - 1 + far);
			assert_int_equal((s->v.act & REQACT_PLACE) != 0, far == 0);
			assert_int_equal(s->v.act & REQACT_RESEND, REQACT_RESEND);
		}
	}
}

/* REQ-CLS-B-01: all of it was kept, and its region is gone: what is behind it stays here, too. */
static void
REQ_CLS_B_01_kept_read(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	data_but(s, 0, 2 * N - 1, 1);
	memset(&s->v, 0, sizeof(s->v));
	requester_local_fault(&s->r, 1, WR_FAULT_PROT, &s->v);
	assert_int_equal(pump(s), REQ_FAULT);
	expect_psns(s, S + 1);
	data(s, 1);
	assert_int_equal(s->v.completed, 1);
	assert_true((s->v.act & REQACT_ERROR) != 0);
	assert_int_equal(s->v.failed, 1);
	assert_int_equal(s->v.wc_status, WC_LOC_PROT);
}

/* TMR-07: silence behind a patch: the probe asks for what is missing, and for that alone. */
static void
TMR_07_probe(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	data_but(s, 0, 9, 5);
	expect_asked(s, 5, 1);
	assert_true(s->r.probing);
	expire(s);
	expect_rule(s, "TMR-07");
	assert_int_equal(s->v.cause, QC_NONE);
	pump(s);
	expect_psns(s, S + 5, S + 10, S + 12);
	assert_int_equal(s->out[0].dma_len, PMTU);
	assert_int_equal(s->out[1].dma_len, 2 * PMTU);
	assert_int_equal(s->out[2].dma_len, N * PMTU);
	ONLY(s, S + 5, PMTU);
	expect_done(s, 2);
	FIRST(s, S + 10);
	assert_int_equal(s->v.cause, QC_NONE);
	LAST(s, S + 11, PMTU);
	data_but(s, 12, 15, NEVER);
	expect_done(s, 4);
	assert_int_equal(s->r.reply_psns, 0);
}

/* TMR-07, req.probe=always: what only came late is no loss, and silence brings a probe still. */
static void
TMR_07_always_probes_behind_late_ones(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t always = 0; always < 2; always++) {
		started(s);
		s->r.knobs |= 3 << REQ_KNOB_REORDER_SHIFT;
		s->r.knobs |= always ? REQ_KNOB_PROBE : 0;
		data(s, 0);
		data(s, 2);
		assert_true(s->r.holes);
		data(s, 1);
		assert_false(s->r.holes);
		assert_true(s->r.timing);
		expire(s);
		expect_resend(s, always ? QC_NONE : QC_TIMEOUT, "TMR-07");
		assert_int_equal(s->r.retry_left, s->r.retry_cnt - !always);
	}
}

/* TMR-07: so many and no more, also of what lies below something that was kept. */
static void
TMR_07_few_below_what_was_kept(void **state)
{
	enum { MANY = 32, FEW = 24 };
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP;
	s->r.max_rd_atomic = MANY;
	for (uint32_t i = 0; i < MANY; i++)
		POST(s, READ(N * PMTU));
	pump(s);
	assert_int_equal(s->n, MANY);
	data(s, 1);
	expect_asked(s, 0, 1);
	data(s, (MANY - 1) * N);
	expect_kept(s, (MANY - 1) * N);
	expire(s);
	expect_rule(s, "TMR-07");
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_int_equal(s->n, FEW + 1); /* the first READ is asked for in two pieces */
	assert_int_equal(s->out[0].psn.v, S);
	assert_int_equal(s->out[1].psn.v, S + 2);
	assert_int_equal(pump(s), REQ_WINDOW);
	assert_int_equal(s->n, 0);
}

/* REQ-IMPL-07: a NAK beyond the gap comes once: all that is missing leaves again. */
static void
REQ_IMPL_07_nak(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	data_but(s, 0, 7, 2);
	expect_asked(s, 2, 1);
	ack(s, S + 8, NSEQ);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-07");
	pump(s);
	expect_psns(s, S + 2, S + 8, S + 12);
	assert_int_equal(s->out[0].dma_len, PMTU);
	ONLY(s, S + 2, PMTU);
	expect_done(s, 2);
	data_but(s, 8, 15, NEVER);
	expect_done(s, 4);
}

/* REQ-IMPL-01: an ACK is not kept: with anything else on its way, all of it leaves again. */
static void
REQ_IMPL_01_not_only_reads(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP;
	POST(s, READ(N * PMTU));
	POST(s, SEND(64));
	POST(s, READ(N * PMTU));
	pump(s);
	data(s, 0);
	data(s, 2);
	assert_true((s->v.act & REQACT_PLACE) != 0);
	pump(s);
	expect_psns(s, S + 1, S + 3, S + 4, S + 5);
	assert_int_equal(s->out[0].dma_len, PMTU);
	s->now += US;
	read_rsp(s, OP_RC_READ_RESPONSE_FIRST, S + 5, PMTU); /* behind the SEND */
	assert_int_equal(s->v.act & REQACT_PLACE, 0);
}

/* REQ-16: once kept, it is not placed again. */
static void
REQ_16_kept_already(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	data_but(s, 0, 9, 2);
	pump(s);
	for (uint32_t at = 3; at <= 9; at++) {
		data(s, at);
		expect_no_effect(s, "REQ-16");
	}
}

/* REQ-IMPL-02: without the knob responses of later READs are discarded. */
static void
REQ_IMPL_02_fill_keeps_one(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	started(s);
	s->r.knobs = REQ_KNOB_READ_FILL;
	data_but(s, 0, 3, 1);
	data(s, 4);
	assert_int_equal(s->v.act & REQACT_PLACE, 0);
}

RUN(T(REQ_CLS_B_01_later_read), T(REQ_CLS_B_01_kept_read), T(REQ_IMPL_04_one_gap),
	T(REQ_IMPL_04_far_away), T(REQ_IMPL_05_gap_after_gap), T(REQ_IMPL_05_two_gaps_of_one),
	T(REQ_IMPL_05_lost_again), T(REQ_IMPL_06_counter), T(TMR_07_probe),
	T(TMR_07_always_probes_behind_late_ones), T(TMR_07_few_below_what_was_kept),
	T(REQ_IMPL_07_nak), T(REQ_IMPL_01_not_only_reads), T(REQ_16_kept_already),
	T(REQ_IMPL_02_fill_keeps_one))
