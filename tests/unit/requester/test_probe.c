/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes: silence that comes before the timer brings the oldest packets again (TMR-07, TMR-02). */
#include "req.h"

enum { US = 1000, PROBE = 24 }; /* typed here on purpose */

/** The silence until the probe that comes next, and what it sends. */
static void
expect_probe(struct bed *s, ns_t silence)
{
	const uint8_t left = s->r.retry_left;
	const ns_t since = s->now;
	const psn_t una = s->r.una;

	expire(s);
	assert_int_equal(s->now - since, silence);
	expect_resend(s, QC_NONE, "TMR-07");
	assert_int_equal(s->r.retry_left, left);
	pump(s);
	expect_run(s, una.v, PROBE);
	assert_int_equal(s->out[PROBE - 1].flags & ACKREQ, ACKREQ);
}

/*
 * TMR-07, TMR-02: the answer to the NAK is lost, too. Two round trips (of the shortest, twice,
 * as none is known since the loss) and 20 us, then the oldest come again: no retry. Then
 * twice as long, and again; after three the timer runs its whole time.
 */
static void
TMR_07_probes_where_packets_were_lost(void **state)
{
	struct bed bed, *s = &bed;
	psn_t una;
	ns_t since;

	(void)state;
	long_write(s, 2000);
	round_trip(s, 10 * US);
	pump(s);
	una = s->r.una;
	ack(s, una.v, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	pump(s);
	for (uint32_t i = 0; i < 3; i++)
		expect_probe(s, (40 + 20) * US << i);
	since = s->now;
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	assert_true(s->now - since >= UINT64_C(4096) << 14);
	assert_int_equal(s->r.retry_left, 3 - 2);
	/* Any progress, and there are three again. */
	pump(s);
	ack(s, una.v + PROBE - 1, ACK);
	assert_int_equal(s->r.retry_left, 3);
	pump(s);
	s->now += 7 * US;
	ack(s, una.v + PROBE, ACK);
	since = s->now;
	expire(s);
	expect_resend(s, QC_NONE, "TMR-07");
	assert_int_equal(s->now - since, (40 + 20) * US);
}

/*
 * TMR-02: no probe where nothing was lost of late, none after a timeout, and none where the
 * shortest round trip, with a quarter more, is longer than three quarters of the timer.
 */
static void
TMR_02_no_probe_on_a_quiet_link(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	long_write(s, 2000);
	round_trip(s, 10 * US);
	pump(s);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	/* The resend itself is not answered: a peer that has vanished, and no probe. */
	pump(s);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");

	long_write(s, 2000);
	s->r.timeout = 4; /* 65.6 us */
	round_trip(s, 40 * US);
	pump(s);
	ack(s, s->r.una.v, NSEQ);
	pump(s);
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
}

/*
 * TMR-07, TMR-02: where two round trips and 20 us are longer than the timer, or nearly so, the
 * probe comes after three quarters of the timer, each of the three; then the timer runs its whole
 * time.
 */
static void
TMR_07_probes_before_a_short_timer(void **state)
{
	const ns_t timer = UINT64_C(4096) << 4;
	struct bed bed, *s = &bed;
	ns_t since;

	(void)state;
	long_write(s, 2000);
	s->r.timeout = 4;
	round_trip(s, 20 * US);
	pump(s);
	ack(s, s->r.una.v, NSEQ);
	pump(s);
	for (uint32_t i = 0; i < 3; i++) {
		since = s->now;
		expire(s);
		expect_resend(s, QC_NONE, "TMR-07");
		assert_true(s->now - since >= timer * 3 / 4);
		assert_true(s->now - since <= timer * 3 / 4 + timer / 512);
		pump(s);
	}
	since = s->now;
	expire(s);
	expect_resend(s, QC_TIMEOUT, "TMR-07");
	assert_true(s->now - since >= timer);
	assert_int_equal(s->r.retry_left, 3 - 2);
}

/*
 * TMR-07, TMR-02: round trips that a queue has made nearly as long as the timer, on a link that is
 * short. Two of the shortest are longer than three quarters of the timer, and so is the newest one;
 * a probe comes all the same.
 */
static void
TMR_07_probes_behind_a_queue(void **state)
{
	const ns_t timer = UINT64_C(4096) << 4;
	struct bed bed, *s = &bed;
	psn_t una;
	ns_t since;

	(void)state;
	for (uint32_t known = 0; known < 2; known++) {
		long_write(s, 2000);
		s->r.timeout = 4;
		round_trip(s, 30 * US);
		round_trip(s, 55 * US);
		pump(s);
		una = s->r.una;
		ack(s, una.v, NSEQ);
		if (known != 0) {
			round_trip(s, 55 * US);
			round_trip(s, 55 * US);
			assert_true(s->r.rtt > 50 * US);
		}
		pump(s);
		since = s->now;
		expire(s);
		expect_resend(s, QC_NONE, "TMR-07");
		assert_true(s->now - since >= timer * 3 / 4);
		assert_true(s->now - since <= timer * 3 / 4 + timer / 512);
	}
}

/*
 * TMR-07, TMR-02, knob req.probe=always: silence where nothing was ever lost. No round trip was
 * longer than the shortest, so its double counts, as above. The same three probes come, none is a
 * retry, and who has vanished then sees its retries and no more. Any progress, and there are three
 * again.
 */
static void
TMR_07_always_probes(void **state)
{
	struct bed bed, *s = &bed;
	psn_t una;

	(void)state;
	long_write(s, 2000);
	s->r.knobs = REQ_KNOB_PROBE;
	round_trip(s, 10 * US);
	pump(s);
	una = s->r.una;
	for (uint32_t i = 0; i < 3; i++)
		expect_probe(s, (40 + 20) * US << i);
	assert_int_equal(s->r.retry_left, 3);
	for (uint32_t i = 0; i < 2; i++) {
		const ns_t since = s->now;

		expire(s);
		expect_resend(s, QC_TIMEOUT, "TMR-07");
		assert_true(s->now - since >= UINT64_C(4096) << 14);
		pump(s);
	}
	assert_int_equal(s->r.retry_left, 3 - 2);
	ack(s, una.v + 7, ACK);
	assert_int_equal(s->r.retry_left, 3);
	pump(s);
	expire(s);
	expect_resend(s, QC_NONE, "TMR-07");
	assert_int_equal(s->r.retry_left, 3);
}

/*
 * TMR-07, knob req.probe=always: a lone message, a SEND or a READ, on a link that never lost
 * anything. It comes again, asks for its answer, and once that is here nothing runs. Probes are
 * counted anew for each.
 */
static void
TMR_07_always_probes_a_lone_message(void **state)
{
	struct bed bed, *s = &bed;
	uint32_t at = S;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_PROBE;
	for (uint32_t i = 0; i < 8; i++, at++) {
		const bool reads = i % 2 != 0;
		const ns_t silence = (40 + 20) * US;
		ns_t since;

		if (reads)
			POST(s, READ(8));
		else
			post_sends(s, 1);
		pump(s);
		expect_psns(s, at);
		for (uint32_t probes = 0; i != 0 && probes < 2; probes++) {
			since = s->now;
			expire(s);
			assert_int_equal(s->now - since, silence << probes);
			expect_resend(s, QC_NONE, "TMR-07");
			pump(s);
			expect_psns(s, at);
			assert_true(s->out[0].flags & ACKREQ);
		}
		s->now += 10 * US;
		if (reads)
			read_rsp(s, OP_RC_READ_RESPONSE_ONLY, at, 8);
		else
			ack(s, at, ACK);
		expect_done(s, i + 1);
		assert_int_equal(s->r.retry_left, 3);
		assert_false(s->r.timing);
	}
}

/*
 * TMR-07, knobs req.probe=always and req.gap=patch: the oldest packet alone, and the window is that
 * of a link that loses packets from then on.
 */
static void
TMR_07_always_probes_alone(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.knobs = REQ_KNOB_PROBE | REQ_KNOB_PATCH;
	post_sends(s, 20);
	pump(s);
	s->now += 10 * US;
	ack(s, S + 9, ACK);
	assert_true(s->r.probing);
	expire(s);
	expect_resend(s, QC_NONE, "TMR-07");
	pump(s);
	expect_psns(s, S + 10);
	ack(s, S + 19, ACK);
	expect_done(s, 20);
	assert_int_equal(s->r.retry_left, 3);
}

/*
 * TMR-07, REQ-07: sending stops behind a packet that did not ask, and it is sent once more to ask:
 * there is a probe for it as for any other.
 */
static void
TMR_07_always_probes_a_copy_that_asks(void **state)
{
	struct requester_packet p;
	struct bed bed, *s = &bed;

	(void)state;
	long_write(s, 8);
	s->r.knobs = REQ_KNOB_PROBE;
	round_trip(s, 10 * US);
	POSTF(s, 0, WRITE(64));
	POST(s, SEND(64));
	assert_int_equal(next_packet(s, &p), REQ_SEND);
	assert_false(s->r.timing);
	requester_drain(&s->r, true);
	pump(s);
	expect_psns(s, S + 8);
	assert_true(s->r.probing);
	expire(s);
	expect_resend(s, QC_NONE, "TMR-07");
	pump(s);
	expect_psns(s, S + 8);
}

/* TMR-07: those that were used up before, on another path, come again after any progress. */
static void
TMR_07_always_probes_again(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	for (uint32_t reads = 0; reads < 2; reads++) {
		bed_init(s);
		s->r.knobs = REQ_KNOB_PROBE;
		s->r.rtt_min = s->r.rtt = 10 * US;
		if (reads)
			POST(s, READ(8));
		post_sends(s, 2);
		s->r.probes = 3;
		pump(s);
		assert_false(s->r.probing);
		if (reads)
			read_rsp(s, OP_RC_READ_RESPONSE_ONLY, S, 8);
		else
			ack(s, S, ACK);
		assert_int_equal(s->r.probes, 0);
		assert_true(s->r.probing);
	}
}

RUN(T(TMR_07_always_probes), T(TMR_07_always_probes_again),
	T(TMR_07_always_probes_a_copy_that_asks), T(TMR_07_always_probes_a_lone_message),
	T(TMR_07_always_probes_alone), T(TMR_07_probes_where_packets_were_lost),
	T(TMR_07_probes_before_a_short_timer), T(TMR_07_probes_behind_a_queue),
	T(TMR_02_no_probe_on_a_quiet_link))
