/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_HOLD_H
#define IMPAIR_HOLD_H
/**
 * @file impair_hold.h  Packets on their way: those that are delayed, overtaken, or next to go out.
 *
 * Owner:   one worker.
 * Memory:  impair_hold_init() allocates for `size` packets; packets are pointers that are handed on
 *          and never looked into.
 * Time:    nanoseconds given by the caller.
 * Depends: base.
 *
 * A packet waits in the reorder list, then in the heap of those with a time, then in the queue of
 * those that go out next. Every pointer that was given in comes out once.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define IMPAIR_REORDER_MAX 256 /* packets waiting to be overtaken */
#define IMPAIR_HOLD_SLACK  64  /* packets that may pass through above `max` */

struct impair_timed {
	ns_t at;
	uint64_t order; /* of packets for the same time */
	void *pkt;
	uint32_t flow;  /* with `overtakes` */
	bool overtakes; /* it goes by others when it goes out, and not before */
};

struct impair_overtaken {
	void *pkt;
	ns_t until;    /* it waits for others until then at the latest */
	ns_t due;      /* ... and goes out then at the earliest */
	uint32_t flow; /* whose packets overtake */
	uint32_t left; /* how many still */
};

struct impair_hold {
	uint32_t size;
	uint32_t max; /* of these may be held: size or less, changed at any time */
	uint32_t n_heap;
	uint32_t n_over;
	uint32_t n_out;
	uint32_t out_at; /* first in `out` */
	uint64_t order;
	struct impair_timed *heap;
	void **out; /* ring of size + IMPAIR_HOLD_SLACK */
	struct impair_overtaken over[IMPAIR_REORDER_MAX];
};

/** @return 0 or -ENOMEM. */
int impair_hold_init(struct impair_hold *h, uint32_t size);
/** The packets must be gone: see impair_hold_take(). */
void impair_hold_fini(struct impair_hold *h);

/** Packets inside. */
static inline uint32_t
impair_hold_count(const struct impair_hold *h)
{
	return h->n_heap + h->n_over + h->n_out;
}

/** May one more be held back? Packets that only pass through need not ask. */
static inline bool
impair_hold_has_room(const struct impair_hold *h)
{
	return impair_hold_count(h) < h->max;
}

/**
 * Send on: at once (behind what goes out before it), or at a time.
 * Between two calls of impair_hold_pop() at most IMPAIR_HOLD_SLACK packets may be sent without
 * room. Cost: constant, or the logarithm of what is in the heap.
 */
void impair_hold_pass(struct impair_hold *h, void *pkt);
void impair_hold_until(struct impair_hold *h, void *pkt, ns_t at);
/** The same of a packet that is to go by others of its flow: impair_hold_went_by() at that time. */
void impair_hold_overtake(struct impair_hold *h, void *pkt, ns_t at, uint32_t flow);

/**
 * Keep a packet until w->left others of its flow have gone by, or until w->until.
 * @return 0, or -ENOBUFS: as many wait as can.
 */
int impair_hold_back(struct impair_hold *h, const struct impair_overtaken *w);
/** A packet of the flow went by: those that waited for the last one go on. Cost: the list. */
void impair_hold_went_by(struct impair_hold *h, uint32_t flow, ns_t now);

/** Send on whatever waited for a time that has come. */
void impair_hold_due(struct impair_hold *h, ns_t now);
/** Earliest time that impair_hold_due() has work; 0: something goes out now; UINT64_MAX: never. */
ns_t impair_hold_next(const struct impair_hold *h);

/** The next to go out, or NULL. */
void *impair_hold_pop(struct impair_hold *h);
/** Any packet that is still inside, due or not, or NULL: for giving them back at the end. */
void *impair_hold_take(struct impair_hold *h);

#endif
