/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CROWD_H
#define CROWD_H
/**
 * @file crowd.h  Does somebody else want this CPU? For threads that spin: only a yield shows that.
 *
 * Who spins in vain yields now and then. Where that takes long, somebody else has run: then each
 * turn in vain yields. One that takes very long went to a program that does not wait for us: where
 * there is nobody else, the next one is a while later.
 *
 * Owner:   one thread.
 * Memory:  none.
 * Depends: clock.h.
 */
#include <stdbool.h>

#include "clock.h"

#define CROWD_AWAY      (2 * TIME_NS_PER_US)   /* who yields so long has let somebody else run */
#define CROWD_TURNS     256                    /* in vain, after it: each yields */
#define CROWD_HOG       (200 * TIME_NS_PER_US) /* who ran so long did not wait for us */
#define CROWD_HOG_TIME  (100 * TIME_NS_PER_MS) /* ... and does not get it again so soon */
#define CROWD_HOG_TURNS (CROWD_TURNS / 4)      /* fewer turns that yield */

/** All zero: nobody was met. */
struct crowd {
	ns_t hogged;    /* until then no yield, unless others are believed to be there */
	uint32_t turns; /* in vain, for which others are believed to want this CPU, too */
};

/** Shall this turn yield? @param now of any clock, always the same one. */
static inline bool
crowd_may_yield(const struct crowd *c, ns_t now)
{
	return c->turns != 0 || now >= c->hogged;
}

/** It has, from `began` to `now`. */
static inline void
crowd_yielded(struct crowd *c, ns_t began, ns_t now)
{
	if (now - began > CROWD_HOG) {
		c->hogged = now + CROWD_HOG_TIME;
		c->turns -= c->turns < CROWD_HOG_TURNS ? c->turns : CROWD_HOG_TURNS;
	} else if (now - began > CROWD_AWAY) {
		c->turns = CROWD_TURNS;
	} else if (c->turns != 0) {
		c->turns--;
	}
}

#endif
