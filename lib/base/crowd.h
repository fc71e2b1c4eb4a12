/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CROWD_H
#define CROWD_H
/**
 * @file crowd.h  Does somebody else want this CPU? For threads that spin: only a yield shows that.
 *
 * Who spins in vain yields now and then. Where that takes longer than a bare yield, somebody else
 * has run: then each turn in vain yields. One that takes very long went to a program that does not
 * wait for us: where there is nobody else, the next one is a while later. But two who spin and do
 * not yield are that to each other. Hence: who has spun in vain for as long as the other ran yields
 * again, which leaves him his part. If what we had waited for was there after it, and does not come
 * while we spin, whoever had the CPU has done it for us, and gets it again sooner. A slice that is
 * over is a long yield, too: two may lose their CPU to each other before either has yielded. Own
 * work between two looks is no slice of another: the thread's CPU time tells, asked for seldom. Nor
 * is a sleep, which the kernel counts.
 *
 * Owner:   one thread.
 * Memory:  none.
 * Depends: clock.h.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"

#define CROWD_AWAY      800 /* ns: who yields so long has let somebody else run */
#define CROWD_TURNS     256 /* in vain, after it: each yields */
#define CROWD_HOG       (200 * TIME_NS_PER_US) /* who ran so long did not wait for us */
#define CROWD_HOG_TIME  (100 * TIME_NS_PER_MS) /* ... and does not get it again so soon */
#define CROWD_HOG_TURNS (CROWD_TURNS / 4)      /* fewer turns that yield */
#define CROWD_SPIN      4 /* such a part of that time later who has helped has it again */

/** All zero: nobody was met. */
struct crowd {
	ns_t hogged;     /* until then no yield, unless others are believed to be there */
	ns_t since;      /* turns are in vain, and the CPU is ours */
	ns_t took;       /* the newest time for which somebody else had it */
	ns_t spin;       /* the shorter one of the last two such times: one long slice is no rule */
	ns_t asked;      /* when crowd_ran() was called last; 0: start anew */
	ns_t ran;        /* CPU time of this thread at `asked` */
	uint64_t sleeps; /* how often the thread had slept at `asked` */
	ns_t given;      /* how long yields took, since `asked` */
	ns_t lost; /* slices that others had, found by crowd_ran(), for the next look to judge */
	uint32_t turns; /* in vain, for which others are believed to want this CPU, too */
	const _Atomic uint32_t *away; /* what was looked at before a long yield: was it for us? */
	bool helped;                  /* it was */
};

/** Somebody else has had the CPU for long. For the two below. */
static inline void
crowd_left(struct crowd *c, const _Atomic uint32_t *looked, ns_t took, ns_t now)
{
	c->spin = c->took != 0 && c->took < took ? c->took : took;
	c->took = took;
	c->since = now;
	c->away = looked;
}

/** Before a look: does crowd_ran() have to be called? At most once in CROWD_HOG. */
static inline bool
crowd_asks(const struct crowd *c, ns_t now)
{
	return now - c->asked > CROWD_HOG;
}

/**
 * @param ran CPU time of this thread so far, ns. What it neither had nor gave it has lost, unless
 * it has slept: then nobody knows. @param sleeps how often it has, so far.
 */
static inline void
crowd_ran(struct crowd *c, ns_t now, ns_t ran, uint64_t sleeps)
{
	const ns_t passed = now - c->asked, mine = ran - c->ran + c->given;
	const bool known = c->asked != 0 && sleeps == c->sleeps;

	if (sleeps != c->sleeps) /* others could have the CPU meanwhile */
		c->since = now;
	c->lost = known && passed > mine + CROWD_HOG ? passed - mine : 0;
	c->asked = now;
	c->ran = ran;
	c->sleeps = sleeps;
	c->given = 0;
}

/** The same of a thread that knows when it sleeps. */
static inline void
crowd_slept(struct crowd *c)
{
	c->asked = 0;
}

/**
 * Shall this turn yield? @param now of any clock, always the same one.
 * @param looked `vain` at the last look, of any thread: one for each thing that a thread looks at
 * in turn; 0 at first.
 * @param vain turns in a row in which there was nothing, this one, too.
 */
static inline bool
crowd_may_yield(struct crowd *c, _Atomic uint32_t *looked, ns_t now, uint32_t vain)
{
	const bool came = vain <= atomic_load_explicit(looked, memory_order_relaxed);
	const bool lost = c->lost != 0; /* a slice of the CPU, since the last look */

	atomic_store_explicit(looked, vain, memory_order_relaxed);
	if (lost)
		crowd_left(c, looked, c->lost, now);
	if (came)
		c->since = now;
	/* What a yield was for may come anywhere until it is looked there again. */
	if (came || (c->away == looked && !lost)) {
		c->helped = c->away != NULL && came;
		c->away = NULL;
	}
	c->lost = 0;
	return c->turns != 0 || now >= c->hogged ||
	       now - c->since > (c->helped ? c->spin / CROWD_SPIN : c->spin);
}

/** It has, from `began` to `now`. @param looked as before it. */
static inline void
crowd_yielded(struct crowd *c, const _Atomic uint32_t *looked, ns_t began, ns_t now)
{
	c->given += now - began;
	if (now - began > CROWD_HOG) {
		c->hogged = now + CROWD_HOG_TIME;
		c->turns -= c->turns < CROWD_HOG_TURNS ? c->turns : CROWD_HOG_TURNS;
		crowd_left(c, looked, now - began, now);
	} else if (now - began > CROWD_AWAY) {
		c->turns = CROWD_TURNS;
	} else if (c->turns != 0) {
		c->turns--;
	}
}

#endif
