/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that spin on one CPU, by a clock of the test's: who waits for whom is found out. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "crowd.h"

#define POLL   40  /* ns that one poll takes */
#define LOOK   16  /* of so many in vain one looks */
#define ALONE  200 /* ns of a yield where nobody else is */
#define SWITCH 600 /* ... and of going to somebody else */
#define SLICE  (3 * TIME_NS_PER_MS)
#define BALLS  2000
#define FAR    200 /* balls that fly */

/* Two who throw one ball to and fro. */
struct player {
	struct crowd crowd;
	uint32_t queues; /* one more is polled, in which never is anything; 0 is 1 */
	uint32_t vain[2];
	_Atomic uint32_t looked[2];
	uint32_t at; /* the queue of the last look */
	ns_t left;   /* when it yielded; 0: its slice was over */
	ns_t gone;   /* when it left the CPU, either way; 0: it is there */
	ns_t away;   /* how long it was gone in all */
	uint64_t sleeps; /* so often of its own will, which is a part of that */
};

static ns_t clock_ns = TIME_NS_PER_S;

/* It has the CPU again, if it had left it. */
static void
comes_back(struct player *p)
{
	if (p->gone != 0)
		p->away += clock_ns - p->gone;
	p->gone = 0;
}

/* A poll in vain. @return whether it has yielded. */
static bool
poll_in_vain(struct player *p, uint32_t queue)
{
	clock_ns += POLL;
	p->vain[queue]++;
	p->at = queue;
	if (p->crowd.turns == 0 && p->vain[queue] % LOOK != 0)
		return false;
	if (crowd_asks(&p->crowd, clock_ns))
		crowd_ran(&p->crowd, clock_ns, clock_ns - p->away, p->sleeps);
	return crowd_may_yield(&p->crowd, &p->looked[queue], clock_ns, p->vain[queue]);
}

/* The same of its queues in turn: it goes on behind the last one. */
static bool
turn(struct player *p)
{
	return poll_in_vain(p, p->queues > 1 ? (p->at + 1) % p->queues : 0);
}

static void
yielded(struct player *p, ns_t from)
{
	crowd_yielded(&p->crowd, &p->looked[p->at], from, clock_ns);
}

/* It has the CPU until it yields, or for a slice. */
static void
spin(struct player *p)
{
	const ns_t end = clock_ns + SLICE;

	p->left = 0;
	while (clock_ns < end)
		if (turn(p)) {
			p->left = clock_ns;
			break;
		}
	p->gone = clock_ns;
	clock_ns += SWITCH;
}

/* @return ns that each ball took. */
static ns_t
play(struct player *one, struct player *other)
{
	const ns_t began = clock_ns;

	for (int i = 0; i < BALLS; i++) {
		struct player *p = i % 2 == 0 ? one : other;

		comes_back(p);
		if (p->left != 0)
			yielded(p, p->left);
		p->vain[0] = 0; /* it has the ball, and throws it */
		spin(p);
	}
	return (clock_ns - began) / BALLS;
}

static void
two_who_yield_to_each_other_go_on(void **state)
{
	struct player one = { 0 }, other = { 0 };

	(void)state;
	(void)play(&one, &other);
	/* Each turn in vain: what a switch costs, and a poll or two. */
	assert_in_range(play(&one, &other), 0, SWITCH + 4 * POLL);
}

/* Somebody else has run for long while one of them had yielded: that is not the other's fault. */
static void
one_long_absence_does_not_part_them(void **state)
{
	(void)state;
	for (uint32_t queues = 1; queues <= 2; queues++) {
		struct player one = { .queues = queues }, other = { .queues = queues };

		(void)play(&one, &other);
		one.left = other.left = one.gone = other.gone = clock_ns;
		clock_ns += SLICE;
		assert_in_range(play(&one, &other), 0, 2 * TIME_NS_PER_US);
	}
}

/* Both take each other for a program that waits for nobody. */
static void
two_who_do_not_yield_find_each_other_again(void **state)
{
	(void)state;
	for (uint32_t queues = 1; queues <= 2; queues++) {
		struct player one = { .queues = queues }, other = { .queues = queues };

		one.crowd.hogged = clock_ns + CROWD_HOG_TIME;
		other.crowd.hogged = one.crowd.hogged - 3 * SLICE;
		(void)play(&one, &other);
		assert_in_range(play(&one, &other), 0, SWITCH + 4 * queues * POLL);
	}
}

/* What two players share. */
struct cpu {
	struct player *p;
	ns_t slice;
	ns_t end; /* of the slice of the one who is on */
	uint32_t on;
};

/* After each poll. @param leaves he yields. */
static void
go_on(struct cpu *c, bool leaves)
{
	struct player *p = &c->p[c->on];

	if (leaves)
		p->left = clock_ns;
	else if (clock_ns < c->end)
		return;
	p->gone = clock_ns;
	clock_ns += SWITCH;
	c->end = clock_ns + c->slice;
	c->on = 1 - c->on;
	p = &c->p[c->on];
	comes_back(p);
	if (p->left != 0)
		yielded(p, p->left);
	p->left = 0;
}

/* Somebody else has it for so long, to whom both have yielded. The first one has it then. */
static void
both_wait(struct player *p, ns_t slice)
{
	p[0].left = p[1].left = p[0].gone = p[1].gone = clock_ns;
	clock_ns += slice;
	comes_back(&p[0]);
	yielded(&p[0], p[0].left);
	p[0].left = 0;
}

/* A ball that is held for long, and now and then flies for a while. */
struct flight {
	ns_t slice;
	ns_t flies; /* each tenth time; else it is there at once */
	ns_t held;
};

/* @return ns that each ball took. */
static ns_t
play_far(struct player *p, const struct flight *f)
{
	const ns_t began = clock_ns;
	struct cpu cpu = { p, f->slice, began + f->slice, 0 };
	ns_t comes = began;
	uint32_t thrown = 0;

	while (thrown < FAR) {
		bool leaves = false;

		if (thrown % 2 == cpu.on && clock_ns >= comes) {
			p[cpu.on].vain[0] = 0;
			clock_ns += f->held;
			comes = clock_ns + (++thrown % 10 == 0 ? f->flies : 0);
		} else {
			leaves = turn(&p[cpu.on]);
		}
		go_on(&cpu, leaves);
	}
	return (clock_ns - began) / FAR;
}

/*
 * It comes a while after a long yield, as the receiver's timer has it, and not at once: whoever had
 * the CPU meanwhile may be the one who throws it all the same.
 */
static void
two_whose_ball_flies_do_not_wait_for_slices(void **state)
{
	static const struct flight flights[] = {
		{ SLICE, 640 * TIME_NS_PER_US, 300 * TIME_NS_PER_US },
		{ 100 * TIME_NS_PER_MS, 640 * TIME_NS_PER_US, 300 * TIME_NS_PER_US },
		{ 100 * TIME_NS_PER_MS, 100 * TIME_NS_PER_US, TIME_NS_PER_MS },
		{ 100 * TIME_NS_PER_MS, 2 * TIME_NS_PER_MS, 300 * TIME_NS_PER_US },
	};

	(void)state;
	for (uint32_t i = 0; i < 2 * sizeof(flights) / sizeof(flights[0]); i++) {
		const struct flight *f = &flights[i / 2];
		struct player p[2] = { { .queues = 1 + i % 2 }, { .queues = 1 + i % 2 } };

		assert_in_range(play_far(p, f), 0, f->held + f->held / 2 + f->flies / 10);
		/* Somebody else had the CPU for a slice of the real-time class. */
		both_wait(p, 100 * TIME_NS_PER_MS);
		assert_in_range(play_far(p, f), 0, f->held + f->held / 2 + f->flies / 10);
	}
}

/*
 * Two who look into their memory for the ball, and poll only for what they threw: as long as one
 * looks there, the other, who has the same CPU, does not come to throw.
 * @return ns that each ball took.
 */
static ns_t
play_in_memory(struct player *p, ns_t flies)
{
	const ns_t began = clock_ns;
	struct cpu cpu = { p, SLICE, began + SLICE, 0 };
	ns_t comes = began;
	uint32_t thrown = 0;

	while (thrown < FAR) {
		const bool has = clock_ns >= comes;
		bool leaves = false;

		if (thrown % 2 == cpu.on && has) { /* his completion is there, too */
			p[cpu.on].vain[0] = 0;
			thrown++;
			comes = clock_ns + flies;
		} else if (thrown % 2 != cpu.on && !has && turn(&p[cpu.on])) {
			leaves = true;
		} else {
			clock_ns += POLL;
		}
		go_on(&cpu, leaves);
	}
	return (clock_ns - began) / FAR;
}

static void
two_who_look_into_memory_do_not_wait_for_slices(void **state)
{
	static const ns_t flights[] = {
		5 * TIME_NS_PER_US,
		110 * TIME_NS_PER_US,
		850 * TIME_NS_PER_US,
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(flights) / sizeof(flights[0]); i++) {
		struct player p[2] = { 0 };

		assert_in_range(play_in_memory(p, flights[i]), 0, flights[i] * 5 / 4);
		/* Somebody else had the CPU for a slice: then it takes them a while. */
		both_wait(p, SLICE);
		(void)play_in_memory(p, flights[i]);
		for (int k = 0; k < 4; k++)
			assert_in_range(play_in_memory(p, flights[i]), 0, flights[i] * 5 / 4);
	}
}

/* A wait beside one that never yields. @return ns that it was given. */
static ns_t
wait_beside(struct player *p, ns_t comes)
{
	ns_t given = 0;

	while (clock_ns < comes)
		if (turn(p)) {
			const ns_t left = clock_ns;

			clock_ns += SLICE;
			p->away += SLICE;
			given += SLICE;
			yielded(p, left);
		}
	return given;
}

/* What we wait for comes from elsewhere; whoever has the CPU instead of us does not help. */
static void
beside_one_that_never_yields(ns_t apart, uint32_t queues, uint32_t percent)
{
	struct player p = { .queues = queues };
	ns_t given = 0;
	const ns_t began = clock_ns;

	while (clock_ns < began + TIME_NS_PER_S) {
		p.vain[0] = 0;
		given += wait_beside(&p, clock_ns + apart);
	}
	assert_in_range(given, 0, (clock_ns - began) / 100 * percent);
}

/* Who works between two looks has lost nothing meanwhile, and does not give away the more. */
static void
work_is_no_absence(void **state)
{
	static const ns_t works[] = { 20, 250, 400, 1000 }; /* us */

	(void)state;
	for (uint32_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		struct player p = { 0 };
		const ns_t began = clock_ns;
		ns_t given = 0;

		while (clock_ns < began + TIME_NS_PER_S) {
			p.vain[0] = 0;
			clock_ns += works[i] * TIME_NS_PER_US;
			given += wait_beside(&p, clock_ns + 300 * TIME_NS_PER_US);
		}
		assert_in_range(given, 0, (clock_ns - began) / 10);
	}
}

/* Now and then it sleeps, and then polls for a while. @param comes there is something each time. */
static ns_t
sleeps_beside(ns_t sleep, bool comes)
{
	struct player p = { 0 };
	const ns_t began = clock_ns;
	ns_t given = 0;

	while (clock_ns < began + TIME_NS_PER_S) {
		clock_ns += 20 * TIME_NS_PER_US + sleep;
		p.away += sleep;
		p.sleeps++;
		if (comes)
			p.vain[0] = 0;
		given += wait_beside(&p, clock_ns + 300 * TIME_NS_PER_US);
	}
	return given;
}

/*
 * Nor has who sleeps, although it has not run: the clocks are the same as after a slice. The other
 * has the CPU meanwhile, and need not be given more.
 */
static void
sleep_is_no_absence(void **state)
{
	static const ns_t sleeps[] = { 100, 250, 300, 1000, 5000 }; /* us */

	(void)state;
	for (uint32_t i = 0; i < 2 * sizeof(sleeps) / sizeof(sleeps[0]); i++)
		assert_in_range(sleeps_beside(sleeps[i / 2] * TIME_NS_PER_US, i % 2 == 0), 0,
			TIME_NS_PER_S / 10);
}

static void
a_program_that_waits_for_nobody_has_no_more_than_its_part(void **state)
{
	(void)state;
	for (uint32_t queues = 1; queues <= 2; queues++) {
		beside_one_that_never_yields(10 * TIME_NS_PER_US, queues, 10);
		beside_one_that_never_yields(200 * TIME_NS_PER_US, queues, 10);
		beside_one_that_never_yields(20 * TIME_NS_PER_MS, queues, 60);
	}
}

static void
alone_it_yields_at_a_look(void **state)
{
	struct player p = { 0 };
	uint32_t yields = 0;

	(void)state;
	for (int i = 0; i < 100 * LOOK; i++)
		if (turn(&p)) {
			const ns_t left = clock_ns;

			clock_ns += ALONE;
			p.away += ALONE;
			yielded(&p, left);
			yields++;
		}
	assert_int_equal(100, yields);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_who_yield_to_each_other_go_on),
		cmocka_unit_test(one_long_absence_does_not_part_them),
		cmocka_unit_test(two_who_do_not_yield_find_each_other_again),
		cmocka_unit_test(two_whose_ball_flies_do_not_wait_for_slices),
		cmocka_unit_test(two_who_look_into_memory_do_not_wait_for_slices),
		cmocka_unit_test(work_is_no_absence),
		cmocka_unit_test(sleep_is_no_absence),
		cmocka_unit_test(a_program_that_waits_for_nobody_has_no_more_than_its_part),
		cmocka_unit_test(alone_it_yields_at_a_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
