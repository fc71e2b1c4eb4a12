/* SPDX-License-Identifier: BSD-3-Clause */
/* req.gap=patch: the packet that a sequence NAK names is sent again alone (REQ-NAK-11, -12). */
#include "req.h"

enum { US = 1000, FEW = 8, OPEN_PATCHED = 128 };

static void
sent(struct bed *s, uint32_t n)
{
	bed_init(s);
	s->r.knobs = REQ_KNOB_PATCH;
	post_sends(s, n);
	pump(s);
	assert_int_equal(s->n, n);
}

/** One packet leaves again, and asks for a response; the others are where they were. */
static void
expect_alone(struct bed *s, uint32_t at)
{
	const uint32_t cur = s->r.cur.v, next = s->r.next.v;

	pump(s);
	expect_psns(s, S + at);
	assert_true(s->out[0].resend);
	assert_int_equal(s->out[0].flags & ACKREQ, ACKREQ);
	assert_int_equal(s->r.cur.v, cur);
	assert_int_equal(s->r.next.v, next);
	assert_true(s->r.timing);
}

static void
REQ_NAK_11_one_alone(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 5);
	ack(s, S + 2, NSEQ);
	expect_done(s, 2);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
	assert_int_equal(s->r.retry_left, s->r.retry_cnt - 1);
	assert_int_equal(s->r.open, OPEN_PATCHED);
	expect_alone(s, 2);
	post_sends(s, 2);
	pump(s);
	expect_psns(s, S + 5, S + 6);
	assert_false(s->out[0].resend);
	ack(s, S + 4, ACK);
	expect_done(s, 5);
	assert_int_equal(s->r.retry_left, s->r.retry_cnt);
	ack(s, S + 6, ACK);
	expect_done(s, 7);
	assert_false(s->r.timing);
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 0);
}

/* REQ-NAK-11: a packet within a message is the same as before. */
static void
REQ_NAK_11_inside_a_message(void **state)
{
	struct requester_packet first;
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_PATCH;
	POST(s, WRITE(6 * PMTU));
	pump(s);
	first = s->out[3];
	ack(s, S + 3, NSEQ);
	expect_alone(s, 3);
	assert_int_equal(s->out[0].opcode, first.opcode);
	assert_int_equal(s->out[0].offset, first.offset);
	assert_int_equal(s->out[0].len, first.len);
	ack(s, S + 5, ACK);
	expect_done(s, 1);
}

/* REQ-NAK-11, RESP-SEQ-15: the next gap is told once the first is filled, with an ACK or not. */
static void
REQ_NAK_11_gap_after_gap(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t acked = 0; acked < 2; acked++) {
		sent(s, 12);
		ack(s, S + 1, NSEQ);
		expect_alone(s, 1);
		if (acked)
			ack(s, S + 5, ACK);
		ack(s, S + 6, NSEQ);
		expect_done(s, 6);
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
		expect_alone(s, 6);
		ack(s, S + 11, ACK);
		expect_done(s, 12);
	}
}

/* REQ-NAK-12: a peer that has kept nothing takes what is sent alone, and names the next. */
static void
REQ_NAK_12_peer_keeps_nothing(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t acked = 0; acked < 2; acked++) {
		sent(s, 6);
		ack(s, S + 2, NSEQ);
		expect_alone(s, 2);
		if (acked)
			ack(s, S + 2, ACK);
		ack(s, S + 3, NSEQ);
		expect_done(s, 3);
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
		pump(s);
		expect_psns(s, S + 3, S + 4, S + 5);
		ack(s, S + 4, NSEQ); /* what comes now was sent behind it: a loss like the first */
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
		expect_alone(s, 4);
	}
}

/** Twelve are sent. S+1 and S+3 are lost and go again alone; the peer has kept what is between. */
static void
lost_two(struct bed *s)
{
	sent(s, 12);
	ack(s, S + 1, NSEQ);
	expect_alone(s, 1);
	ack(s, S + 3, NSEQ); /* it had S+2 */
	expect_alone(s, 3);
}

/* REQ-NAK-12: two packets in a row are lost on the way to a peer that has kept some before. */
static void
REQ_NAK_12_two_in_a_row(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	lost_two(s);
	ack(s, S + 4, NSEQ); /* and not S+4 */
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
	expect_alone(s, 4);
	ack(s, S + 4, ACK);
	ack(s, S + 5, NSEQ); /* nor S+5: it keeps nothing any more */
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	pump(s);
	assert_int_equal(s->n, 7);
	ack(s, S + 5, ACK);
	ack(s, S + 6, NSEQ);
	expect_alone(s, 6);
	ack(s, S + 7, NSEQ); /* of which nothing is known any more */
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
}

/* REQ-NAK-12: two that brought no more, and between them what came through: not in a row. */
static void
REQ_NAK_12_two_apart(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	lost_two(s);
	ack(s, S + 3, ACK); /* and not S+4 */
	for (uint32_t at = 4; at < 10; at += 3) {
		ack(s, S + at, NSEQ);
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
		expect_alone(s, at);
		ack(s, S + at, ACK);
		ack(s, S + at + 1, ACK);
		ack(s, S + at + 2, ACK);
	}
}

/** The packet at `at` is lost, and the peer keeps nothing: is it sent alone at first? */
static void
loses(struct bed *s, uint32_t at, bool tried)
{
	ack(s, S + at, NSEQ);
	if (tried) {
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
		expect_alone(s, at);
		ack(s, S + at + 1, NSEQ);
	}
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	s->r.hard = 0; /* so many in a row would be a full buffer's: see test_pace.c */
	post_sends(s, 2);
	pump(s);
	assert_true(psn_eq(s->r.cur, s->r.next));
}

/** The same of one that brings the two behind it; then of two in a row. */
static uint32_t
is_of_use(struct bed *s, uint32_t at)
{
	ack(s, S + at, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
	expect_alone(s, at);
	post_sends(s, 4);
	pump(s);
	ack(s, S + at + 3, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
	expect_alone(s, at + 3);
	return at + 4;
}

/* REQ-NAK-12: where it is never of use it is tried ever more rarely, until it is. */
static void
REQ_NAK_12_tried_rarely(void **state)
{
	static const uint32_t goes_back[] = { 0, 1, 3, 7, 15, 15 };
	struct bed bed, *s = &bed;
	uint32_t at = 2;

	(void)state;
	sent(s, 8);
	for (uint32_t useful = 0; useful < 2; useful++) {
		for (uint32_t i = 0; i < ARRAY_LEN(goes_back); i++) {
			loses(s, at, true);
			at += 2;
			for (uint32_t n = 0; n < goes_back[i]; n++, at += 2)
				loses(s, at, false);
		}
		at = is_of_use(s, at);
	}
}

/*
 * REQ-NAK-12: the same where the silence behind it ends in a timeout, for no round trip is known,
 * or it is too long for a probe.
 */
static void
REQ_NAK_12_rarely_after_timeouts(void **state)
{
	struct bed bed, *s = &bed;
	uint32_t at = 2;

	(void)state;
	sent(s, 8);
	for (uint32_t n = 0; n < 2; n++, at += 2) {
		ack(s, S + at, NSEQ);
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
		expect_alone(s, at);
		ack(s, S + at, ACK);
		s->r.probing = 0;
		expire(s);
		expect_resend(s, QC_TIMEOUT, "TMR-07");
		post_sends(s, 4);
		s->r.open = REQ_OPEN_ALL;
		pump(s);
		assert_true(psn_eq(s->r.cur, s->r.next));
	}
	loses(s, at, false);
	loses(s, at + 2, true);
}

/* REQ-NAK-12: what is sent alone cannot bring more than itself where nothing else is there. */
static void
REQ_NAK_12_nothing_else(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 3);
	ack(s, S + 2, NSEQ);
	expect_alone(s, 2);
	ack(s, S + 2, ACK);
	post_sends(s, 3);
	pump(s);
	ack(s, S + 3, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-11");
	expect_alone(s, 3);
}

/* REQ-NAK-11: without the knob, and at a READ or ATOMIC, it is going back. */
static void
REQ_NAK_01_goes_back(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 4);
	s->r.knobs = 0;
	ack(s, S + 1, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	pump(s);
	expect_psns(s, S + 1, S + 2, S + 3);
	for (uint32_t atomic = 0; atomic < 2; atomic++) {
		bed_init(s);
		s->r.knobs = REQ_KNOB_PATCH;
		if (atomic)
			POST(s, FADD);
		else
			POST(s, READ(64));
		post_sends(s, 2);
		pump(s);
		ack(s, S, NSEQ);
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
		pump(s);
		expect_psns(s, S, S + 1, S + 2);
	}
}

/* REQ-NAK-11: READs behind the gap were kept, too, and answer when it is filled. */
static void
REQ_NAK_11_reads_behind(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_PATCH;
	post_sends(s, 2);
	POST(s, READ(2 * PMTU));
	post_sends(s, 1);
	pump(s);
	ack(s, S + 1, NSEQ);
	expect_alone(s, 1);
	ack(s, S + 1, ACK);
	FIRST(s, S + 2);
	LAST(s, S + 3, PMTU);
	ack(s, S + 4, ACK);
	expect_done(s, 4);
	assert_int_equal(s->r.reply_psns, 0);
	assert_false(s->r.timing);
}

/* REQ-17: an ACK that comes before the packet has left again: it is not sent. */
static void
REQ_17_late_not_lost(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 5);
	ack(s, S + 2, NSEQ);
	ack(s, S + 3, ACK);
	assert_int_equal(pump(s), REQ_IDLE);
	assert_int_equal(s->n, 0);
	assert_true(s->r.timing);
	ack(s, S + 4, ACK);
	expect_done(s, 5);
}

/* A round trip is known; packet S + 12 is lost, and goes out again alone. */
static void
lost_one(struct bed *s, uint32_t behind)
{
	sent(s, 12);
	s->now += 20 * US;
	ack(s, S + 8, ACK);
	post_sends(s, behind);
	pump(s);
	ack(s, S + 12, NSEQ);
	expect_alone(s, 12);
}

/* TMR-07: silence behind it: a probe is the oldest packet alone; the timeout sends the few. */
static void
TMR_07_probes_and_timeout(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	lost_one(s, 20);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(s->r.probing);
		expire(s);
		expect_resend(s, QC_NONE, "TMR-07");
		assert_int_equal(s->r.retry_left, s->r.retry_cnt - 1);
		assert_int_equal(s->r.open, OPEN_PATCHED);
		expect_alone(s, 12);
	}
	assert_false(s->r.probing);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	pump(s);
	assert_int_equal(s->n, FEW);
	assert_int_equal(s->out[0].psn.v, S + 12);
}

/*
 * TMR-07, REQ-NAK-12: what was sent alone is acknowledged, and then there is silence, for nothing
 * was sent behind it. So the peer keeps nothing, and the link is no emptier than a NAK finds it.
 */
static void
TMR_07_probe_in_vain(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	lost_one(s, 40);
	ack(s, S + 12, ACK);
	assert_true(s->r.probing);
	expire(s);
	expect_resend(s, QC_NONE, "TMR-07");
	assert_int_equal(s->r.open, OPEN_PATCHED);
	pump(s);
	assert_int_equal(s->n, 39);
	assert_int_equal(s->out[0].psn.v, S + 13);
}

/* TMR-07: one probe too many costs one packet, so it comes before a timer of a round trip, too. */
static void
TMR_07_probe_within_a_round_trip(void **state)
{
	const ns_t wait = (UINT64_C(4096) << 4) + (UINT64_C(4096) << 4) / 1024;
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t patch = 0; patch < 2; patch++) {
		sent(s, 12);
		s->r.timeout = 4;
		s->r.knobs = patch ? REQ_KNOB_PATCH : 0;
		s->now += 60 * US;
		ack(s, S + 8, ACK); /* a round trip is known */
		post_sends(s, 20);
		pump(s);
		ack(s, S + 12, NSEQ);
		pump(s);
		assert_int_equal(s->out[0].psn.v, S + 12);
		assert_int_equal(s->r.probing, patch);
		assert_true(s->r.deadline - s->now == (patch ? wait / 4 * 3 : wait));
	}
}

/* REQ-RNR-03: an RNR NAK behind it goes back, for the peer keeps nothing then. */
static void
REQ_RNR_03_goes_back(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 5);
	ack(s, S + 1, NSEQ);
	expect_alone(s, 1);
	ack(s, S + 3, RNR | 1);
	expect_done(s, 3);
	assert_int_equal(pump(s), REQ_RNR_WAIT);
	expire(s);
	pump(s);
	expect_psns(s, S + 3, S + 4);
}

/* REQ-RETRY-02: each of them is a retry, and the last one is the last. */
static void
REQ_RETRY_02_counted(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	sent(s, 5);
	for (uint32_t i = 0; i < 3; i++) {
		ack(s, S + 2, NSEQ);
		expect_alone(s, 2);
	}
	ack(s, S + 2, NSEQ);
	assert_int_equal(s->v.wc_status, WC_RETRY_EXC);
	assert_int_equal(s->v.failed, 2);
}

RUN(T(REQ_NAK_11_one_alone), T(REQ_NAK_11_inside_a_message), T(REQ_NAK_11_gap_after_gap),
	T(REQ_NAK_12_peer_keeps_nothing), T(REQ_NAK_12_two_in_a_row), T(REQ_NAK_12_two_apart),
	T(REQ_NAK_12_tried_rarely),
	T(REQ_NAK_12_rarely_after_timeouts), T(REQ_NAK_12_nothing_else), T(REQ_NAK_01_goes_back),
	T(REQ_NAK_11_reads_behind), T(REQ_17_late_not_lost), T(TMR_07_probes_and_timeout),
	T(TMR_07_probe_in_vain), T(TMR_07_probe_within_a_round_trip), T(REQ_RNR_03_goes_back),
	T(REQ_RETRY_02_counted))
