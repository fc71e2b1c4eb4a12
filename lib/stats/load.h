/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATS_LOAD_H
#define STATS_LOAD_H
/**
 * @file load.h  What a worker does with its time: busy turns, stalls, and when asked for, cycles by
 * stage and the longest turn.
 *
 * Owner:   the worker writes; any lcore reads (as stats.h). `measure` turns the cycles by
 *          stage on.
 * Memory:  embedded in the worker.
 * Time:    nanoseconds of the dataplane's clock, cycles of the TSC.
 * Depends: base.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "compiler.h"

#define STATS_STALL_NS (10 * TIME_NS_PER_MS) /* ten times an idle worker's longest sleep */
#define STATS_STALLS   8 /* that are kept, the newest ones; one is the writer's */

enum pipeline_stage {
	STAGE_RX,
	STAGE_PARSE,
	STAGE_ICRC,
	STAGE_STEER,
	STAGE_RESPOND,
	STAGE_TIMERS,
	STAGE_DOORBELLS,
	STAGE_FLUSH,
	STAGE_REQUEST,
	STAGE_TX,
	STAGE_MAILBOX,
	STAGE_MAX
};

/** "rx", "parse" ... by enum pipeline_stage. */
extern const char *const stats_stage_names[STAGE_MAX];

/** A turn of a worker, and what it did. */
struct stats_turn {
	uint64_t cpu_ns; /* that its thread ran: waits for a CPU are not in it */
	uint64_t took_ns;
	uint64_t stage_cycles; /* of `stage`, the longest: waits for a CPU are in them */
	uint32_t stage;        /* enum pipeline_stage */
	uint32_t faults;       /* of pages, without a read from a disk */
	uint32_t disk_faults;  /* with one */
	uint32_t waits;        /* the thread itself gave its CPU away */
	uint32_t preempted;    /* others took it */
};

/** Between the beginnings of two turns: mostly the worker waited for a CPU. */
struct stats_stall {
	ns_t end;
	ns_t ns;
};

struct stats_load {
	_Atomic bool measure; /* count cycles by stage; costs about 25 cycles a stage and burst, and
				 three system calls a turn */
	_Atomic bool turn_new; /* control: forget the longest turn; the worker clears it */
	uint64_t turns;
	uint64_t busy_turns;        /* that received, sent or timed something */
	uint64_t busy_ns;           /* time of those */
	uint64_t total_ns;          /* since the worker began to turn */
	uint64_t packets;           /* received while `measure` was set */
	uint64_t cycles[STAGE_MAX]; /* likewise */
	struct stats_turn longest;  /* by cpu_ns, while `measure` was set */
	_Atomic ns_t turned;        /* when the newest turn began; 0: not in worker_run() */
	ns_t stall_ns;              /* sum of all stalls */
	_Atomic uint32_t stalls_n;  /* the newest is at (stalls_n - 1) % STATS_STALLS */
	struct stats_stall stalls[STATS_STALLS];
};

/** A stall is over, which began at `was`. */
void stats_stalled(struct stats_load *l, ns_t was, ns_t now);

/** The worker: a turn begins. `was` is when the one before it began. Cost: a store. */
static inline void
stats_turn_begins(struct stats_load *l, ns_t was, ns_t now)
{
	if (UNLIKELY(now - was >= STATS_STALL_NS))
		stats_stalled(l, was, now);
	atomic_store_explicit(&l->turned, now, memory_order_relaxed);
}

/**
 * The longest stall that was going on at any time from `from` to `to`, also one that goes on now.
 * @return 0: none was, or it is forgotten.
 */
ns_t stats_stall_between(const struct stats_load *l, ns_t from, ns_t to, ns_t now);

#endif
