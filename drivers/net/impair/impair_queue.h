/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_QUEUE_H
#define IMPAIR_QUEUE_H
/**
 * @file impair_queue.h  A bottleneck's packets: those that it has taken and that have not left.
 *
 * Owner:   one worker.
 * Memory:  impair_queue_init() allocates for `size` packets; packets are pointers that are handed
 *          on and never looked into.
 * Time:    nanoseconds given by the caller.
 * Depends: base, impair.
 *
 * Packets leave in the order in which they came, none before its time. Every pointer that was
 * pushed comes out once.
 */
#include "bottleneck.h"

struct impair_queued {
	ns_t leaves;
	void *pkt;
};

struct impair_queue {
	struct bottleneck bottleneck;
	bool on; /* else what is in it leaves, and nothing else is held back */
	uint32_t size;
	uint32_t max; /* of these may wait: size or less, changed at any time */
	uint32_t n;
	uint32_t first;
	struct impair_queued *ring;
};

/** Without a bottleneck. @return 0 or -ENOMEM. */
int impair_queue_init(struct impair_queue *q, uint32_t size);
/** The packets must be gone: see impair_queue_take(). */
void impair_queue_fini(struct impair_queue *q);
/** Another bottleneck, empty; rate 0: none. What has been taken leaves at its time. */
void impair_queue_set(struct impair_queue *q, const struct bottleneck_conf *conf);

/** Must packets go through it? */
static inline bool
impair_queue_is_on(const struct impair_queue *q)
{
	return q->on || q->n != 0;
}

/** Is there no place for one more packet, whatever its length? */
static inline bool
impair_queue_is_full(const struct impair_queue *q)
{
	return q->n >= q->max;
}

/** See impair_bottleneck_offer(); without a bottleneck it may leave at once. */
struct bottleneck_verdict impair_queue_offer(
	struct impair_queue *q, uint32_t len, bool ect, ns_t now);
/** The packet that was offered last, and not dropped. The queue is not full. */
void impair_queue_push(struct impair_queue *q, void *pkt, ns_t leaves);
/** The next one that has left, or NULL. */
void *impair_queue_pop(struct impair_queue *q, ns_t now);
/** When impair_queue_pop() will give something; UINT64_MAX: never. */
ns_t impair_queue_next(const struct impair_queue *q);
/** Any packet that is still inside, or NULL: for giving them back at the end. */
void *impair_queue_take(struct impair_queue *q);

#endif
