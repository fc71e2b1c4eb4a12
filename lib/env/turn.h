/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TURN_H
#define TURN_H
/**
 * @file turn.h  How long the control lcore's turns take, and what the longest one did.
 *
 * Owner:   the control lcore.
 * Memory:  part of struct env.
 * Time:    a turn is a few pieces of work, each ended by env_turn_piece(), which reads the clock.
 *          The time of the CPU costs a system call: it is read every TURN_CPU_EVERY at most.
 * Depends: base.
 *
 * Whoever asks the control lcore waits for the turn that is under way. What others ask for is part
 * of it: the longest turn is what they can cost.
 */
#include <stdint.h>

#include "clock.h"

#define TURN_CPU_EVERY (100 * TIME_NS_PER_US)

/** The longest turn, and its longest piece. */
struct turn_worst {
	ns_t took;
	/* Of it, this thread ran; of short turns the ones just before may count, too, up to
	 * TURN_CPU_EVERY. The rest it waited, for a CPU or a worker.
	 */
	ns_t cpu;
	ns_t piece_took;
	const char *piece; /* a method, or a part of the loop; NULL: there was no turn */
};

struct turns {
	ns_t (*clock)(void);
	ns_t began;
	ns_t cpu_read_at; /* on `clock`, in this turn or shortly before it */
	ns_t cpu_read;    /* what the CPU's time was then */
	ns_t piece_began;
	ns_t piece_took; /* the longest piece of this turn */
	const char *piece;
	uint64_t n;
	struct turn_worst worst; /* since it was asked with `reset` */
};

/** @param now a reading of `clock`. */
void env_turn_begin(struct turns *t, ns_t (*clock)(void), ns_t now);
/** What was done since the piece before was `what`, which is a constant. */
void env_turn_piece(struct turns *t, const char *what);
/** The turn is over. */
void env_turn_end(struct turns *t);

#endif
