/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WHEEL_H
#define WHEEL_H
/**
 * @file wheel.h  Hierarchical timing wheel: arm, re-arm and cancel in O(1), never early.
 *
 * Owner:   one lcore; no function here is safe from another.
 * Memory:  nodes are embedded in the caller's objects, the wheel in its owner; nothing is
 *          allocated. A node must be cancelled before its memory goes away.
 * Time:    absolute ticks given by the caller; the wheel never reads a clock.
 * Depends: base.
 * Spec:    IBTA vol. 1, 9.7.6.1.3 (TMR-01, TMR-02, TMR-10).
 *
 * Level l has 64 slots of 64^l ticks. A node waits in the lowest level where its tick and the
 * wheel's differ, and moves down when the wheel enters its slot. Eleven levels cover all 64 bits,
 * so that no timeout is too long (the longest of InfiniBand is 2^33 ticks).
 *
 * Progress only moves a deadline: arming an armed node for a later tick leaves it in its slot.
 * It is looked at when the slot is due, and put where it belongs then.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "compiler.h"
#include "invariant.h"

#define WHEEL_LEVELS  11
#define WHEEL_SLOTS   64
#define WHEEL_NEVER   UINT64_MAX
#define WHEEL_MOVES   1024 /* nodes that one wheel_advance() moves down at most */
#define WHEEL_NO_SLOT UINT32_MAX

/** All zero: not armed. */
struct wheel_node {
	struct wheel_node *next;
	struct wheel_node **link; /* what points here; NULL: not armed */
	tick_t deadline;
	uint32_t slot; /* level * 64 + slot it waits in */
};

/** Private; here so that it can be embedded. */
struct wheel {
	tick_t cur;                  /* all before it has been fired */
	tick_t next;                 /* no slot is due before it */
	uint32_t pending;            /* slot whose moving down was interrupted, or WHEEL_NO_SLOT */
	uint64_t used[WHEEL_LEVELS]; /* bit: slot is not empty */
	struct wheel_node *slots[WHEEL_LEVELS * WHEEL_SLOTS];
};

/** Empty wheel that stands at tick `now`. */
void wheel_init(struct wheel *w, tick_t now);

/** Is the node in the wheel? Cost: one load. */
static inline bool
wheel_is_armed(const struct wheel_node *n)
{
	return n->link != NULL;
}

/** Put a node that is in no slot where it belongs: for wheel_arm(). */
void wheel_link(struct wheel *w, struct wheel_node *n);

/** Cancel: the node will not be handed out. Not armed: nothing happens. Cost: node and slot. */
void wheel_cancel(struct wheel *w, struct wheel_node *n);

/**
 * Arm, or re-arm.
 * @param at absolute tick; one in the past fires at the next wheel_advance().
 * Cost: one store when an armed node's deadline moves away, else node and slot. Cannot fail.
 */
static inline void
wheel_arm(struct wheel *w, struct wheel_node *n, tick_t at)
{
	if (n->link != NULL) {
		if (LIKELY(at >= n->deadline)) {
			n->deadline = at;
			return;
		}
		wheel_cancel(w, n);
	}
	n->deadline = at;
	wheel_link(w, n);
}

/** The rest of wheel_advance(), for when a slot is due. */
uint32_t wheel_expire(struct wheel *w, tick_t now, struct wheel_node **out, uint32_t max);

/**
 * Collect nodes whose deadline is not after `now`, earliest first; they are not armed any more.
 * @return how many, at most `max`. There may be more after `max`, or after a long list has been
 * moved in part (at most WHEEL_MOVES a call): then wheel_next() is not after `now`, and the next
 * call goes on. In between, nodes can be armed and cancelled. A `now` that went back does nothing.
 * Cost: a compare when nothing is due.
 */
static inline uint32_t
wheel_advance(struct wheel *w, tick_t now, struct wheel_node **out, uint32_t max)
{
	if (LIKELY(now < w->next)) {
		ASSERT(w->pending == WHEEL_NO_SLOT || now < w->cur);
		if (now > w->cur)
			w->cur = now;
		return 0;
	}
	return wheel_expire(w, now, out, max);
}

/**
 * No node fires before this tick (WHEEL_NEVER: none is armed); for how long to sleep. It may be
 * too early, never too late: wheel_advance() then finds nothing, and the next bound is better.
 */
static inline tick_t
wheel_next(const struct wheel *w)
{
	return w->next;
}

/** Ticks of the 5-bit exponent of an InfiniBand timeout: 2^n; 0 means no timer (TMR-01, TMR-03). */
static inline tick_t
wheel_timeout_ticks(unsigned int n)
{
	return (n & 31) == 0 ? 0 : BIT64(n & 31);
}

#endif
