/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that waits for each of its requests, beside others that always have more. */
#include "apps_rig.h"
#include "worker.h"

enum { TURNS = 96, LONG = 16 * PMTU };

/** So many requests, if the client has none under way. */
static void
post_few(struct bed *b, struct app *a, uint32_t n)
{
	struct sender *s = &a->qp[0];

	acknowledge(b, a);
	if (s->sq.prod != atomic_load(&s->sq.sh->cons))
		return;
	for (; n != 0; n--)
		assert_true(put_one(a, s));
	if (ring_bell_is_due(&s->sq))
		assert_int_equal(ring_bells_put(&a->bells, s->qp->qpn), 0);
}

static void
post_more(struct bed *b, struct app *a)
{
	post(a);
	acknowledge(b, a);
}

/** @return of the packets that left in the last turn, how many did before the first of this one. */
static uint32_t
ahead_of(const struct bed *b, uint32_t client)
{
	for (uint32_t i = 0; i < b->out_n; i++)
		if ((b->pkt[i].dest_qpn - FIRST_QPN) / MOST_QPS == client)
			return i;
	return UINT32_MAX;
}

static void
turn(struct bed *b)
{
	bed_forget_output(b);
	bed_turn(b);
}

/* It goes first in each turn in which it has a request, and has one in each second turn. */
static void
it_goes_ahead(void **state)
{
	struct bed *b = *state;
	uint32_t seen = 0;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 4, WR_RDMA_WRITE, LONG);
	attach(b, THIRD, 4, WR_RDMA_WRITE, LONG);
	for (uint32_t t = 0; t < TURNS; t++) {
		uint32_t before;

		post_more(b, &apps[OTHER]);
		post_more(b, &apps[THIRD]);
		post_few(b, &apps[VICTIM], 1);
		turn(b);
		before = ahead_of(b, VICTIM);
		if (before != UINT32_MAX)
			seen++;
		if (t >= 8 && before != UINT32_MAX)
			assert_int_equal(before, 0);
		count_output(b);
	}
	assert_true(seen >= TURNS / 2 - 1);
	for (uint32_t i = VICTIM; i <= THIRD; i++)
		detach(b, i);
}

/** Bytes of OTHER in a turn, in the mean, beside a client with so many requests at a time. */
static double
bytes_beside(struct bed *b, uint32_t requests)
{
	double bytes;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 1, WR_RDMA_WRITE, LONG);
	for (uint32_t t = 0; t < 2 * TURNS; t++) {
		if (t == TURNS)
			apps[OTHER].bytes = 0;
		post_more(b, &apps[OTHER]);
		post_few(b, &apps[VICTIM], requests);
		turn(b);
		count_output(b);
	}
	bytes = (double)apps[OTHER].bytes / TURNS;
	detach(b, OTHER);
	detach(b, VICTIM);
	return bytes;
}

/* Beside it, turns are half as long as beside one that has many under way. */
static void
its_turns_are_short(void **state)
{
	struct bed *b = *state;
	const double one = bytes_beside(b, 1), many = bytes_beside(b, SENDQ);

	assert_true(one > 0.4 * many && one < 0.7 * many);
}

/** One more client, which rests since the one before it began to: it is still on the list. */
static void
one_rests(struct bed *b)
{
	attach(b, FOURTH, 1, WR_RDMA_WRITE, 64);
	for (uint32_t t = 0; t < 3; t++) {
		post_few(b, &apps[FOURTH], t == 0);
		turn(b);
		count_output(b);
	}
	assert_int_equal(b->w->senders_n, 0);
	assert_true(apps[FOURTH].client.share.listed);
}

/** How many frames fill a burst, beside the ACKs that come. */
static uint32_t
others_than_acks(void)
{
	uint32_t n = PIPELINE_BURST;

	for (uint32_t i = VICTIM; i <= THIRD; i++)
		n -= apps[i].qp[0].acked != apps[i].qp[0].completed;
	return n;
}

/** A turn with a full burst, in which one share is served. @param frames to nobody. */
static void
full_turn(struct bed *b, uint32_t frames)
{
	for (; frames != 0; frames--) {
		struct wire_fields f = { .opcode = OP_RC_ACKNOWLEDGE, .dest_qpn = 0x999 };

		bed_send(b, &f);
	}
	turn(b);
	count_output(b);
}

/*
 * One share a turn: whoever rests long enough for all others to have had theirs has the next one,
 * also where these have not rested for so long that 32 bits do not count their turns.
 */
static void
it_goes_ahead_for_ever(void **state)
{
	struct bed *b = *state;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 1, WR_RDMA_WRITE, LONG);
	attach(b, THIRD, 1, WR_RDMA_WRITE, LONG);
	for (uint32_t t = 0; t < 2 * TURNS; t++) {
		const uint32_t frames = others_than_acks();
		const bool asks = t % 6 == 5;

		if (t == TURNS)
			b->w->turns_begun = UINT32_MAX - 12;
		post_more(b, &apps[OTHER]);
		post_more(b, &apps[THIRD]);
		if (asks)
			post_few(b, &apps[VICTIM], 1);
		else
			acknowledge(b, &apps[VICTIM]);
		full_turn(b, frames);
		assert_int_equal(ahead_of(b, VICTIM), asks ? 0 : UINT32_MAX);
	}
	for (uint32_t i = VICTIM; i <= THIRD; i++)
		detach(b, i);
}

/* A full burst: one share a turn. Clients that go ahead all the time would leave no turn to it. */
static void
nobody_is_overtaken_twice(void **state)
{
	struct bed *b = *state;
	uint64_t packets[3];

	one_rests(b);
	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 1, WR_RDMA_WRITE, 64);
	attach(b, THIRD, 1, WR_RDMA_WRITE, LONG);
	for (uint32_t t = 0; t < TURNS; t++) {
		const uint32_t frames = others_than_acks();

		post_few(b, &apps[VICTIM], 1);
		post_few(b, &apps[OTHER], 1);
		post_more(b, &apps[THIRD]);
		full_turn(b, frames);
	}
	for (uint32_t i = VICTIM; i <= THIRD; i++)
		packets[i] = apps[i].packets;
	for (uint32_t i = VICTIM; i <= THIRD; i++)
		assert_true(packets[i] >= TURNS / 4);
	for (uint32_t i = VICTIM; i <= FOURTH; i++)
		detach(b, i);
}

/** Bytes of the longest turn of a client that nobody disturbs. */
static uint64_t
longest(struct bed *b, bool mixed)
{
	uint64_t most = 0;

	attach(b, OTHER, MOST_QPS, WR_RDMA_WRITE, LONG);
	apps[OTHER].mixed = mixed;
	for (uint32_t t = 0; t < TURNS; t++) {
		apps[OTHER].bytes = 0;
		post_more(b, &apps[OTHER]);
		turn(b);
		count_output(b);
		most = most > apps[OTHER].bytes ? most : apps[OTHER].bytes;
	}
	detach(b, OTHER);
	do /* what it made while it went */
		turn(b);
	while (b->out_n != 0);
	return most;
}

/* Where another client is attached, which may ring at any time, a turn is bounded in bytes. */
static void
a_turn_has_so_many_bytes(void **state)
{
	struct bed *b = *state;
	uint64_t alone, not_alone, mixed;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	not_alone = longest(b, false);
	mixed = longest(b, true); /* whatever the first request of a turn is */
	detach(b, VICTIM);
	alone = longest(b, false);
	assert_true(alone >= 32 * PMTU);
	assert_true(not_alone >= 16 * PMTU && not_alone <= 16 * (PMTU + 100));
	assert_true(mixed >= 8 * PMTU && mixed <= 16 * (PMTU + 100));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_goes_ahead),
		TEST(its_turns_are_short),
		TEST(nobody_is_overtaken_twice),
		TEST(it_goes_ahead_for_ever),
		TEST(a_turn_has_so_many_bytes),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
