/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BOTTLENECK_H
#define BOTTLENECK_H
/**
 * @file bottleneck.h  A switch's output queue: what happens to a frame, as a function of time.
 *
 * Owner:   the caller.
 * Memory:  the caller's.
 * Depends: base.
 * Spec:    CC-27.
 *
 * Frames leave at the rate, in order. One that does not fit the buffer is dropped at the end of the
 * queue; others are marked by RED, by the length of the queue that they find: never below kmin,
 * always from kmax on, and in between with a probability that rises to pmax. Nothing is stored: the
 * queue is the time until its last bit has left. The same seed and frames get the same marks.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define BOTTLENECK_RATE_MIN   UINT64_C(1000000)
#define BOTTLENECK_RATE_MAX   UINT64_C(1000000000000)
#define BOTTLENECK_BUFFER_MAX (UINT32_C(1) << 30)

struct bottleneck_conf {
	uint64_t rate;   /* bits a second */
	uint32_t buffer; /* bytes, with the frame that is being sent */
	uint32_t kmin;   /* bytes */
	uint32_t kmax;   /* bytes, >= kmin; 0: no marks */
	double pmax;     /* 0 .. 1 */
	uint64_t seed;
};

struct bottleneck {
	struct bottleneck_conf conf;
	ns_t empty_at;  /* the last bit has left */
	uint64_t carry; /* fractions of that nanosecond */
	uint64_t random;
	/* counters, and the longest queue that a frame has found */
	uint64_t frames;
	uint64_t marked;
	uint64_t dropped;
	uint32_t longest;
};

struct bottleneck_verdict {
	bool dropped;
	bool marked;    /* CE */
	uint32_t queue; /* bytes that the frame has found */
	ns_t leaves;    /* its last bit; not with `dropped` */
};

/** What is wrong with it, for people; NULL: nothing. */
const char *impair_bottleneck_fault(const struct bottleneck_conf *conf);
/** An empty queue. */
void impair_bottleneck_init(struct bottleneck *b, const struct bottleneck_conf *conf);
/** Bytes in the queue. */
uint32_t impair_bottleneck_queue(const struct bottleneck *b, ns_t now);
/** A frame of so many bytes comes. @param ect may it be marked? Otherwise it passes, as it is. */
struct bottleneck_verdict impair_bottleneck_offer(
	struct bottleneck *b, uint32_t len, bool ect, ns_t now);

#endif
