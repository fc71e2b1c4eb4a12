/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs without a transport timer that have nothing to send for long, while something that
 * they sent is lost. What then shows the loss came after a round trip, not after that silence
 * (REQ-IMPL-05), and the next retry does not wait for another one (REQ-IMPL-01).
 */
#include "req.h"

#define RTT   UINT64_C(10000)
#define SEC   (1000 * MS)
#define STAMP 64 /* ns in which the age of what was sent is told */

static const uint64_t silences[] = { 0, 1000000, SEC, 15 * SEC, 300 * SEC };

enum { LOST_FADD, LOST_READ, LOST_LONG_READ, LOST_KINDS };
enum { THEN_SEND, THEN_WRITE, THEN_READ, THEN_FADD, THEN_KINDS };

/** @return PSNs that it uses. */
static uint32_t
post_lost(struct bed *s, unsigned kind)
{
	if (kind == LOST_FADD)
		POST(s, FADD);
	else
		POST(s, READ(kind == LOST_READ ? 64 : 4 * PMTU));
	return kind == LOST_LONG_READ ? 4 : 1;
}

/** What is sent after the silence. @return PSNs that it uses. */
static uint32_t
post_then(struct bed *s, unsigned kind)
{
	switch (kind) {
	case THEN_SEND:
		POST(s, SEND(64));
		return 1;
	case THEN_WRITE:
		POST(s, WRITE(3 * PMTU));
		return 3;
	case THEN_READ:
		POST(s, READ(64));
		return 1;
	default:
		POST(s, FADD);
		return 1;
	}
}

/** The answer to it, at its last PSN, comes after a round trip. */
static void
answer_then(struct bed *s, unsigned kind, uint32_t p)
{
	s->now += RTT;
	if (kind == THEN_READ)
		ONLY(s, p, 64);
	else if (kind == THEN_FADD)
		FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = p, .syn = ACK);
	else
		ack(s, p, ACK);
}

/** The READ or ATOMIC is lost twice. @param between a SEND right behind it is lost, too. */
static void
lost_twice(unsigned lost, bool between, uint64_t silence, unsigned then)
{
	struct bed bed, *s = &bed;
	uint32_t p = S;

	bed_init(s);
	s->r.timeout = 0;
	p += post_lost(s, lost);
	if (between) {
		pump(s);
		POST(s, SEND(64));
		p++;
	}
	pump(s);
	s->now += silence;
	p += post_then(s, then);
	pump(s);
	s->now += RTT / 2;
	POST(s, SEND(64)); /* has left when the answer comes, and is not what it answers */
	pump(s);
	s->now -= RTT / 2;
	answer_then(s, then, p - 1);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	assert_true((s->v.act & REQACT_RESEND) != 0);
	assert_in_range(s->r.rtt_min, RTT - STAMP, 2 * RTT);
	pump(s);
	answer_then(s, then, p - 1);
	assert_int_equal(s->v.act, REQACT_TIMER);
	assert_in_range(s->r.deadline - s->now, RTT, 4 * RTT);
	expire(s);
	assert_int_equal(s->v.act, REQACT_RESEND | REQACT_TIMER);
	expect_rule(s, "REQ-IMPL-01");
}

static void
REQ_IMPL_05_silence_is_no_round_trip(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < LOST_KINDS; lost++)
		for (unsigned then = 0; then < THEN_KINDS; then++)
			for (size_t i = 0; i < ARRAY_LEN(silences); i++)
				for (unsigned between = 0; between < 2; between++)
					lost_twice(lost, between != 0, silences[i], then);
}

/*
 * A round trip is being timed, and its ACK is lost. The next one says that all has come, after the
 * silence. @param known a round trip was seen before. @param packets of each message.
 */
static void
timed_is_lost(bool rounds, bool known, uint64_t silence, uint32_t packets)
{
	struct bed bed, *s = &bed;
	uint32_t p;

	bed_init(s);
	s->r.timeout = 0;
	s->r.rounds = rounds;
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < 8; i++)
			POST(s, WRITE(packets * PMTU));
		if (k == 0 && known)
			round_trip(s, RTT);
		else if (k == 0)
			continue;
		pump(s);
	}
	assert_true(s->r.timed_at != 0);
	s->now += silence;
	POST(s, WRITE(packets * PMTU));
	round_trip(s, RTT);
	assert_int_equal(s->r.una.v, s->r.next.v);
	assert_in_range(s->r.rtt, RTT, 2 * RTT);
	assert_in_range(s->r.rtt_min, RTT, 2 * RTT);

	p = s->r.next.v;
	POST(s, FADD);
	POST(s, SEND(64));
	round_trip(s, RTT);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	round_trip(s, RTT);
	assert_int_equal(s->v.act, REQACT_TIMER);
	assert_in_range(s->r.deadline - s->now, RTT, 4 * RTT);
	expire(s);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	pump(s);
	expect_psns(s, p, p + 1);
}

static void
REQ_IMPL_05_lost_ack_is_no_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(silences); i++)
		for (unsigned k = 0; k < 8; k++)
			timed_is_lost(
				(k & 1) != 0, (k & 2) != 0, silences[i], (k & 4) != 0 ? 3 : 1);
}

enum { ENDS_WRITE, ENDS_READ, ENDS_FADD, ENDS_RNR, ENDS_SEQ, ENDS_BEYOND, ENDS_KINDS };

/** The response to what was sent after the silence, which has the PSN `p`. */
static void
end_round(struct bed *s, unsigned how, uint32_t p)
{
	s->now += RTT;
	if (how == ENDS_READ)
		ONLY(s, p, 64);
	else if (how == ENDS_FADD)
		FEED(s, .op = OP_RC_ATOMIC_ACKNOWLEDGE, .psn = p, .syn = ACK);
	else if (how == ENDS_RNR)
		ack(s, p, AETH_RNR | 1);
	else if (how == ENDS_SEQ)
		ack(s, p - 1, AETH_NAK | NAK_PSN_SEQ_ERR); /* of a WRITE that is lost */
	else
		ack(s, p, ACK);
}

/*
 * As above, but what ends the round trip acknowledges the PSNs below its own: data, a NAK, or an
 * ACK beyond an ATOMIC that is lost, too.
 */
static void
timed_ends_below(unsigned how, bool rounds, uint64_t silence)
{
	struct bed bed, *s = &bed;
	uint32_t p;

	bed_init(s);
	s->r.timeout = 0;
	s->r.rounds = rounds;
	for (uint32_t i = 0; i < 8; i++)
		POST(s, WRITE(64));
	pump(s);
	if (how == ENDS_BEYOND) {
		POST(s, FADD);
		pump(s);
	}
	assert_true(s->r.timed_at != 0);
	s->now += silence;
	p = s->r.next.v;
	if (how == ENDS_READ)
		POST(s, READ(64));
	else if (how == ENDS_FADD)
		POST(s, FADD);
	else
		POST(s, SEND(64));
	pump(s);
	end_round(s, how, p);
	assert_int_equal(s->r.timed_at, 0);
	if (how != ENDS_SEQ || s->r.rtt_min != 0) /* what brought the NAK cannot be told */
		assert_in_range(s->r.rtt_min, RTT - STAMP, 2 * RTT);
	if (how == ENDS_BEYOND) {
		assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
		pump(s);
		end_round(s, how, p);
		assert_int_equal(s->v.act, REQACT_TIMER);
		assert_in_range(s->r.deadline - s->now, RTT, 4 * RTT);
	} else if (how != ENDS_SEQ) {
		assert_in_range(s->r.rtt, RTT, 2 * RTT);
	}
}

static void
REQ_IMPL_05_what_is_below_is_no_round_trip(void **state)
{
	(void)state;
	for (unsigned how = 0; how < ENDS_KINDS; how++)
		for (size_t i = 0; i < ARRAY_LEN(silences); i++)
			for (unsigned k = 0; k < 2; k++)
				timed_ends_below(how, k != 0, silences[i]);
}

/*
 * The answer of a READ is lost, and a SEND behind it. After the silence another one shows the
 * latter with a NAK. The READ's next answer is lost, too.
 */
static void
nak_beyond(uint64_t silence)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	s->r.timeout = 0;
	POST(s, READ(64));
	POST(s, SEND(64));
	pump(s);
	s->now += silence;
	POST(s, SEND(64));
	pump(s);
	s->now += RTT;
	ack(s, S + 1, AETH_NAK | NAK_PSN_SEQ_ERR);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-07");
	pump(s);
	s->now += RTT;
	ack(s, S + 2, ACK);
	if (s->v.cause == QC_IMPLIED_NAK)
		return;
	assert_int_equal(s->v.act, REQACT_TIMER);
	assert_in_range(s->r.deadline - s->now, RTT, 16 * RTT);
}

static void
REQ_IMPL_07_missing_is_no_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(silences); i++)
		nak_beyond(silences[i]);
}

/*
 * The round trip of a packet is timed. Shortly before its ACK comes, a later packet of the message
 * is sent once more to ask (REQ-07). That is not what the ACK answers: the round trip is not as
 * short as that. @param all the ACK is of the whole message, as that has come the first time.
 */
static void
asked_is_no_round_trip(bool all, bool known)
{
	struct bed bed, *s = &bed;
	uint32_t p = S;

	bed_init(s);
	s->r.timeout = 0;
	s->r.max_rd_atomic = 1;
	if (known) {
		for (uint32_t i = 0; i < 8; i++)
			POST(s, WRITE(64));
		round_trip(s, RTT);
		p += 8;
	}
	POST(s, READ(64));
	POSTF(s, 0, WRITE(20 * PMTU));
	POST(s, READ(64)); /* waits for the one before */
	pump(s);
	assert_true(s->r.timed_at != 0);
	assert_int_equal(s->out[s->n - 1].psn.v, p + 20);
	s->now += RTT - RTT / 50;
	requester_drain(&s->r, true);
	pump(s);
	expect_psns(s, p + 20);
	s->now += RTT / 50;
	ONLY(s, p, 64);
	ack(s, s->r.timed.v + (all ? p + 20 - s->r.timed.v : 0), ACK);
	assert_int_equal(s->r.timed_at, 0);
	assert_in_range(s->r.rtt_min, RTT - STAMP, 2 * RTT);
}

static void
REQ_07_copy_is_no_round_trip(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++)
		asked_is_no_round_trip((k & 1) != 0, (k & 2) != 0);
}

/* A peer that is this process itself answers in the same turn of the worker. */
static void
at_once(unsigned lost, uint64_t silence)
{
	struct bed bed, *s = &bed;
	uint32_t p = S;

	bed_init(s);
	s->r.timeout = 0;
	p += post_lost(s, lost);
	pump(s);
	s->now += silence;
	POST(s, SEND(64));
	pump(s);
	ack(s, p, ACK);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	assert_in_range(s->r.rtt_min, 0, STAMP);
}

static void
REQ_IMPL_05_answers_at_once(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < LOST_KINDS; lost++)
		for (size_t i = 0; i < ARRAY_LEN(silences); i++)
			at_once(lost, silences[i]);
}

/*
 * A resend is lost but for its ACKs, and ends with a packet that did not ask for one, as another
 * READ may not be sent yet. Long after, draining asks with a copy of that packet (REQ-07).
 */
static void
asked_later(unsigned lost, uint64_t silence)
{
	struct bed bed, *s = &bed;
	uint32_t p = S, first;

	bed_init(s);
	s->r.timeout = 0;
	s->r.max_rd_atomic = 1;
	p += post_lost(s, lost);
	POSTF(s, 0, WRITE(3 * PMTU));
	POST(s, READ(64)); /* waits for the one before */
	p += 3;
	pump(s);
	first = s->n;
	assert_int_equal(s->out[first - 1].psn.v, p - 1);
	s->now += RTT;
	ack(s, p - 1, ACK);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	pump(s);
	assert_int_equal(s->n, first);
	s->now += silence;
	requester_drain(&s->r, true);
	pump(s);
	expect_psns(s, p - 1);
	s->now += RTT;
	ack(s, p - 1, ACK);
	assert_int_equal(s->v.act, REQACT_TIMER);
	assert_in_range(s->r.deadline - s->now, RTT, 4 * RTT);
	expire(s);
	expect_rule(s, "REQ-IMPL-01");
}

static void
REQ_IMPL_05_asked_after_silence(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < LOST_KINDS; lost++)
		for (size_t i = 0; i < ARRAY_LEN(silences); i++)
			asked_later(lost, silences[i]);
}

/*
 * Of two READs that are resent the second leaves later, as a queue lets it. What has passed since
 * the first one left counts, for its answer is behind that queue, too.
 */
static void
REQ_IMPL_05_queue_counts(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.timeout = 0;
	POST(s, READ(64));
	POST(s, READ(64));
	pump(s);
	s->now += RTT;
	ONLY(s, S + 1, 64);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
	assert_int_equal(next_packet(s, &s->out[0]), REQ_SEND);
	s->now += 3 * RTT;
	assert_int_equal(next_packet(s, &s->out[1]), REQ_SEND);
	s->now += RTT;
	ONLY(s, S + 1, 64);
	assert_int_equal(s->v.act, REQACT_TIMER);
	assert_in_range(s->r.deadline - s->now, 4 * RTT, 16 * RTT);
}

RUN(T(REQ_IMPL_05_silence_is_no_round_trip), T(REQ_IMPL_05_lost_ack_is_no_round_trip),
	T(REQ_IMPL_05_what_is_below_is_no_round_trip), T(REQ_IMPL_07_missing_is_no_round_trip),
	T(REQ_07_copy_is_no_round_trip), T(REQ_IMPL_05_answers_at_once),
	T(REQ_IMPL_05_asked_after_silence), T(REQ_IMPL_05_queue_counts))
