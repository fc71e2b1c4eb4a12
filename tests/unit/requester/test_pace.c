/* SPDX-License-Identifier: BSD-3-Clause */
/* How many packets are in flight once some were lost (TMR-07, REQ-NAK-01, REQ-07). */
#include "req.h"

enum {
	US = 1000,
	FEW = 8,
	LEAST = 48,
	LINK = 50,
	ROUNDS = 256,
	IN_A_ROW = 6,
	LUCK = 3
}; /* typed here on purpose */

/* TMR-07: a timeout sends a few packets, the oldest first, and as many after the next timeout; what
 * is acknowledged doubles them. Nothing leaves without progress. */
static void
TMR_07_few_after_a_timeout(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	long_write(s, 500);
	pump(s);
	expect_run(s, S, 128);
	for (uint32_t i = 0; i < 3; i++) {
		expire(s);
		expect_resend(s, QC_TIMEOUT, "TMR-07");
		assert_int_equal(pump(s), REQ_WINDOW);
		expect_run(s, S, FEW);
		assert_int_equal(s->out[FEW - 1].flags & ACKREQ, ACKREQ);
		assert_int_equal(s->r.retry_left, 3 - i - 1);
		assert_int_equal(pump(s), REQ_WINDOW);
		assert_int_equal(s->n, 0);
	}
	ack(s, S + FEW - 1, ACK);
	assert_int_equal(s->r.retry_left, 3);
	pump(s);
	expect_run(s, S + 8, 16);
	ack(s, S + 23, ACK);
	pump(s);
	expect_run(s, S + 24, 32);
}

/* TMR-07: the first ACK after a timeout that came too early opens the window at once. */
static void
REQ_17_late_acks_open_the_window(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	long_write(s, 500);
	pump(s);
	expire(s);
	pump(s);
	expect_run(s, S, FEW);
	ack(s, S + 127, ACK);
	pump(s);
	expect_run(s, S + 128, 128 / 2); /* half of what was in flight at the timeout */
	assert_false(s->out[0].resend);
}

/* TMR-07: a window smaller than the few is resent whole. */
static void
TMR_07_small_window(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	long_write(s, 20);
	s->r.window = 5;
	pump(s);
	expire(s);
	pump(s);
	expect_run(s, S, 5);
}

/* REQ-NAK-01: where nothing queues, a NAK resends all that was in flight. */
static void
REQ_NAK_01_link_without_a_queue(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	long_write(s, 2000);
	for (uint32_t i = 0; i < 4; i++)
		round_trip(s, 20 * US);
	pump(s);
	expect_run(s, S + 512, 128);
	s->now += 20 * US;
	ack(s, S + 512, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	pump(s);
	expect_run(s, S + 512, 128);
}

/** The window is full of what queues: round trips of 64 us on a link of 20. */
static void
queueing(struct bed *s)
{
	long_write(s, 60000);
	round_trip(s, 20 * US);
	for (uint32_t i = 0; i < 3; i++)
		round_trip(s, 64 * US);
	pump(s);
}

/* REQ-NAK-01: of a window that stands in a queue only the link's part is resent, and a quarter
 * more: 128 * 20/64 * 5/4. One reduction for what was lost in one round trip. */
static void
REQ_NAK_01_queue_is_not_filled_again(void **state)
{
	struct bed bed, *s = &bed;
	psn_t una;

	(void)state;
	queueing(s);
	una = s->r.una;
	ack(s, una.v, NSEQ);
	pump(s);
	expect_run(s, una.v, LINK);
	ack(s, una.v + 10, NSEQ); /* another one of them, and no round trip in between */
	pump(s);
	expect_run(s, una.v + 10, LINK);
}

/* REQ-NAK-01: that few are behind a lost packet tells how long ago the last resend was, not what
 * the link holds: as many stay as before. In a queue it is the link's part of those, too. */
static void
REQ_NAK_01_few_behind_the_lost_one(void **state)
{
	struct bed bed, *s = &bed;
	psn_t una;

	(void)state;
	for (uint32_t slow = 0; slow < 2; slow++) {
		long_write(s, 2000);
		for (uint32_t i = 0; i < 4; i++)
			round_trip(s, 20 * US);
		pump(s);
		ack(s, s->r.una.v, NSEQ);
		round_trip(s, 20 * US); /* all of it second copies */
		round_trip(s, slow ? 40 * US : 20 * US);
		pump(s);
		una = s->r.una;
		s->now += slow ? 40 * US : 20 * US;
		ack(s, una.v + 100, NSEQ);
		expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
		pump(s);
		/* 128 * 20/40 * 5/4 */
		expect_run(s, una.v + 100, slow ? 80 : 128);
	}
}

/* REQ-NAK-01: however much queues, a NAK leaves some packets. */
static void
REQ_NAK_01_least(void **state)
{
	struct bed bed, *s = &bed;
	psn_t una;

	(void)state;
	long_write(s, 4000);
	round_trip(s, 1 * US);
	round_trip(s, 900 * US);
	pump(s);
	una = s->r.una;
	ack(s, una.v, NSEQ);
	pump(s);
	expect_run(s, una.v, LEAST);
}

/** A NAK has left the least there is. */
static void
at_least(struct bed *s)
{
	long_write(s, 60000);
	round_trip(s, 1 * US);
	round_trip(s, 900 * US);
	pump(s);
	ack(s, s->r.una.v, NSEQ);
}

/** A window of `n` leaves, and `got` packets come through before the next one that is lost. */
static void
lose_behind(struct bed *s, uint32_t n, uint32_t got)
{
	const psn_t una = s->r.una;

	pump(s);
	expect_run(s, una.v, n);
	s->now += 40 * US;
	ack(s, una.v + got, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
}

/* REQ-NAK-01: where each resend loses something before all of it has come through, a buffer on the
 * way holds less than is resent. So it is half of it, down to an eighth. */
static void
REQ_NAK_01_small_buffer(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	at_least(s);
	for (uint32_t n = LEAST; n != LEAST / 16; n /= 2)
		for (uint32_t i = 0; i < IN_A_ROW; i++)
			lose_behind(s, n, n / 2 - 1);
	pump(s);
	assert_int_equal(s->n, LEAST / 8);
}

/** What was in flight at the last loss has come through, and a quarter of the window more. */
static void
come_through(struct bed *s, uint32_t n)
{
	const psn_t una = s->r.una, all = s->r.recover;
	const uint32_t more = n + n / 4 + 1;

	for (uint32_t i = 0; psn_cmp(s->r.una, all) < 0 || psn_distance(s->r.una, una) < more;
		i++) {
		pump(s);
		s->now += 40 * US;
		ack(s, s->r.cur.v - 1, ACK);
		assert_true(i < 8);
	}
}

/* REQ-NAK-01: chance is no buffer: counting begins anew once all that was in flight is through. */
static void
REQ_NAK_01_losses_by_chance(void **state)
{
	struct bed bed, *s = &bed;
	const uint32_t n = LEAST;

	(void)state;
	at_least(s);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i + 1 < IN_A_ROW; i++)
			lose_behind(s, n, 20);
		come_through(s, n);
		pump(s);
		assert_true(s->n >= n);
		ack(s, s->r.una.v + 1, NSEQ);
	}
}

/* REQ-NAK-01: a halved window that comes through and then loses something without having grown is
 * not too large. After some of those it is as large as before. */
static void
REQ_NAK_01_opens_after_chance(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	at_least(s);
	for (uint32_t i = 0; i < IN_A_ROW; i++)
		lose_behind(s, LEAST, 20);
	for (uint32_t i = 0; i < LUCK; i++) {
		assert_int_equal(pump(s), REQ_WINDOW);
		assert_int_equal(s->n, LEAST / 2);
		come_through(s, LEAST / 2);
		pump(s);
		s->now += 40 * US;
		ack(s, s->r.una.v + 1, NSEQ);
	}
	pump(s);
	assert_in_range(s->n, LEAST - 2, LEAST + 4);
}

/* REQ-07: four times in a window that losses have made small, lest it stalls. */
static void
REQ_07_asks_in_a_small_window(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	queueing(s);
	ack(s, s->r.una.v, NSEQ);
	pump(s);
	assert_int_equal(s->n, LINK);
	for (uint32_t i = 0; i < LINK / 4 * 4; i++)
		assert_int_equal(s->out[i].flags & ACKREQ, i % 12 == 11 ? ACKREQ : 0);
}

/* A round trip without a loss adds one packet, until the window is the configured one. After so
 * many round trips more it is as if nothing had been lost. */
static void
REQ_13_window_opens_again(void **state)
{
	struct bed bed, *s = &bed;
	uint32_t n = 0, whole = 0;

	(void)state;
	queueing(s);
	ack(s, s->r.una.v, NSEQ);
	pump(s);
	assert_int_equal(s->n, LINK);
	ack(s, s->r.cur.v - 1, ACK); /* all of it second copies: no round trip is taken from them */
	for (uint32_t i = 0; i < 120 + ROUNDS && !requester_is_free(&s->r); i++) {
		uint32_t before = n;

		pump(s);
		n = s->n;
		if (i > 1 && n < 127)
			assert_true(n == before + 1 || n == before);
		assert_true(n <= 128);
		whole += n == 128;
		s->now += 20 * US;
		ack(s, s->r.cur.v - 1, ACK);
	}
	assert_true(requester_is_free(&s->r));
	assert_int_equal(whole, ROUNDS);
	pump(s);
	assert_int_equal(s->n, 128);
}

/** All responses of a READ. */
static void
read_all(struct bed *s, uint32_t p, uint32_t n)
{
	FIRST(s, p);
	for (uint32_t i = 1; i + 1 < n; i++)
		MIDDLE(s, p + i);
	LAST(s, p + n - 1, PMTU);
}

/* REQ-IMPL-02: a READ's lost responses leave fewer of them on their way, counted by their PSNs. */
static void
REQ_IMPL_02_responses_count(void **state)
{
	struct bed bed, *s = &bed;
	uint32_t b = S + 17;

	(void)state;
	bed_init(s);
	s->r.max_rd_atomic = 16;
	POST(s, READ(16 * PMTU));
	POST(s, READ(64));
	pump(s);
	s->now += 20 * US;
	read_all(s, S, 16);
	ONLY(s, b - 1, 64);
	for (uint32_t i = 0; i < 8; i++)
		POST(s, READ(16 * PMTU));
	pump(s);
	assert_int_equal(s->n, 8);
	s->now += 80 * US;
	read_all(s, b, 16);
	FIRST(s, b + 16);
	MIDDLE(s, b + 18);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-02");
	/* Of the 111 responses under way the link holds 111 * 20/80 * 5/4 = 34: a READ starts while
	 * fewer are asked for. 15, 31, 47. */
	pump(s);
	expect_psns(s, b + 17, b + 32, b + 48);
	/* 47 are under way and 40 stay, the least of READs: nobody need try before 8 have come. */
	for (uint32_t i = 0; i < 8; i++) {
		assert_true(requester_is_shut(&s->r));
		MIDDLE(s, b + 17 + i);
	}
	assert_false(requester_is_shut(&s->r));
	pump(s);
	expect_psns(s, b + 64);
}

/* REQ-RETRY-09: nothing of this path's losses is held against the other one. */
static void
REQ_RETRY_09_other_path(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	long_write(s, 500);
	s->r.armed = true;
	pump(s);
	for (uint32_t i = 0; i < 4; i++) {
		expire(s);
		pump(s);
	}
	assert_int_equal(s->v.act & REQACT_MIGRATE, REQACT_MIGRATE);
	expect_run(s, S, 128);
}

/* QP-09: a reset forgets it all. */
static void
QP_09_reset(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	queueing(s);
	ack(s, s->r.una.v, NSEQ);
	assert_false(requester_is_free(&s->r));
	requester_reset(&s->r, psn(S));
	assert_true(requester_is_free(&s->r));
	assert_int_equal(s->r.rtt_min, 0);
	assert_int_equal(s->r.timed_at, 0);
}

/* CC-30: with `rounds` each round trip is told, that of a single packet too. */
static void
CC_30_rounds_are_told(void **state)
{
	(void)state;
	for (int on = 0; on < 2; on++) {
		struct bed bed, *s = &bed;

		long_write(s, 1);
		s->r.rounds = on != 0;
		round_trip(s, 20 * US);
		assert_int_equal(
			s->v.act, REQACT_COMPLETE | REQACT_TIMER | (on ? REQACT_ROUND : 0));
		assert_true(on == 0 || (s->r.rtt >= 20 * US - 1 && s->r.rtt <= 20 * US + 1));
		POST(s, WRITE(20 * PMTU));
		s->r.window = 20;
		round_trip(s, 20 * US);
		assert_int_equal((s->v.act & REQACT_ROUND) != 0, on);
	}
}

/* CC-32: a NAK that ends a round trip tells of the loss alone, and the next round trip is told. */
static void
CC_32_loss_goes_before(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	long_write(s, 500);
	s->r.rounds = true;
	pump(s);
	s->now += 20 * US;
	ack(s, S + 100, NSEQ);
	expect_resend(s, QC_SEQ_NAK, "REQ-NAK-01");
	assert_int_equal(s->r.rtt, 0);
	pump(s);
	s->now += 20 * US;
	ack(s, s->r.next.v - 1, ACK);
	pump(s);
	s->now += 20 * US;
	ack(s, s->r.next.v - 1, ACK);
	assert_int_equal(s->v.act & REQACT_ROUND, REQACT_ROUND);
}

RUN(T(CC_30_rounds_are_told), T(CC_32_loss_goes_before), T(TMR_07_few_after_a_timeout),
	T(REQ_17_late_acks_open_the_window), T(TMR_07_small_window),
	T(REQ_NAK_01_link_without_a_queue), T(REQ_NAK_01_queue_is_not_filled_again),
	T(REQ_NAK_01_few_behind_the_lost_one), T(REQ_NAK_01_least), T(REQ_NAK_01_small_buffer),
	T(REQ_NAK_01_losses_by_chance), T(REQ_NAK_01_opens_after_chance),
	T(REQ_07_asks_in_a_small_window), T(REQ_13_window_opens_again),
	T(REQ_IMPL_02_responses_count), T(REQ_RETRY_09_other_path), T(QP_09_reset))
