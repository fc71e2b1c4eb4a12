/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "invariant.h"

int
impair_queue_init(struct impair_queue *q, uint32_t size)
{
	memset(q, 0, sizeof(*q));
	q->ring = calloc(size, sizeof(*q->ring));
	q->size = size;
	q->max = size;
	return q->ring != NULL ? 0 : -ENOMEM;
}

void
impair_queue_fini(struct impair_queue *q)
{
	free(q->ring);
	q->ring = NULL;
}

void
impair_queue_set(struct impair_queue *q, const struct bottleneck_conf *conf)
{
	q->on = conf->rate != 0;
	if (q->on)
		impair_bottleneck_init(&q->bottleneck, conf);
}

struct bottleneck_verdict
impair_queue_offer(struct impair_queue *q, uint32_t len, bool ect, ns_t now)
{
	if (impair_queue_is_full(q))
		return (struct bottleneck_verdict){ .dropped = true };
	if (!q->on)
		return (struct bottleneck_verdict){ .leaves = now };
	return impair_bottleneck_offer(&q->bottleneck, len, ect, now);
}

void
impair_queue_push(struct impair_queue *q, void *pkt, ns_t leaves)
{
	const uint32_t at = q->first + q->n;

	ASSERT(!impair_queue_is_full(q));
	q->ring[at < q->size ? at : at - q->size] =
		(struct impair_queued){ .leaves = leaves, .pkt = pkt };
	q->n++;
}

void *
impair_queue_take(struct impair_queue *q)
{
	void *pkt;

	if (q->n == 0)
		return NULL;
	pkt = q->ring[q->first].pkt;
	if (++q->first == q->size)
		q->first = 0;
	q->n--;
	return pkt;
}

void *
impair_queue_pop(struct impair_queue *q, ns_t now)
{
	return impair_queue_next(q) <= now ? impair_queue_take(q) : NULL;
}

ns_t
impair_queue_next(const struct impair_queue *q)
{
	return q->n != 0 ? q->ring[q->first].leaves : UINT64_MAX;
}
