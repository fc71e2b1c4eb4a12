/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_OPS_H
#define IMPAIR_OPS_H
/**
 * @file impair_ops.h  How the control lcore reaches a port's impairment, whatever does it.
 *
 * Owner:   control lcore.
 * Memory:  the implementer's; it outlives the control lcore's objects.
 * Depends: this module's configuration.
 *
 * drivers/net/impair does the work and app/rocelane the wiring: nothing below app/ includes a
 * driver.
 */
#include <stdbool.h>
#include <stdint.h>

#include "impair_conf.h"

#define IMPAIR_COUNTERS(COUNTER)                                    \
	COUNTER(in, "packets received")                             \
	COUNTER(out, "packets handed on")                           \
	COUNTER(held, "packets held back now")                      \
	COUNTER(dropped, "packets dropped")                         \
	COUNTER(duplicated, "copies made")                          \
	COUNTER(reordered, "packets that waited for others")        \
	COUNTER(corrupted, "packets with flipped bits")             \
	COUNTER(delayed, "packets sent on later")                   \
	COUNTER(ce_marked, "packets marked congestion experienced") \
	COUNTER(limited, "holds and copies left out: held_max")     \
	COUNTER(no_mbuf, "copies and changes left out: no mbuf")    \
	COUNTER(queue_marked, "bottleneck: packets marked")         \
	COUNTER(queue_dropped, "bottleneck: packets dropped")       \
	COUNTER(queue_bytes, "bottleneck: bytes in its queue now")  \
	COUNTER(queue_max, "bottleneck: the longest queue, bytes")

struct impair_counters {
#define COUNTER(name, help) uint64_t name;
	IMPAIR_COUNTERS(COUNTER)
#undef COUNTER
};

struct impair_ops {
	/**
	 * New rules from now on, the first ones included; none: n_rules 0. `conf` is copied.
	 * @return 0, -EINVAL, -ENOMEM, -ENOTSUP; on failure the old rules stay.
	 */
	int (*set)(void *ctx, const struct impair_conf *conf);
	/**
	 * Rules that were set last, valid until the next set; and the counters since the first.
	 * @return NULL: there have never been rules, and *out is all zero.
	 */
	const struct impair_conf *(*get)(void *ctx, struct impair_counters *out);
	/**
	 * Decisions since the rules were set, oldest first, from number *from (0: the first) on, as
	 * the exact rules that would decide the same again; *from moves behind the last one, and
	 * back to there from a number that has not come yet.
	 * @return how many, at most `max`; fewer than *from moved when old ones were overwritten.
	 */
	uint32_t (*log)(void *ctx, uint64_t *from, struct impair_rule *out, uint32_t max);
};

#endif
