/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
impair_hold_init(struct impair_hold *h, uint32_t size)
{
	const size_t n = (size_t)size + IMPAIR_HOLD_SLACK;

	memset(h, 0, sizeof(*h));
	h->heap = calloc(n, sizeof(*h->heap));
	h->out = calloc(n, sizeof(*h->out));
	if (h->heap == NULL || h->out == NULL) {
		impair_hold_fini(h);
		return -ENOMEM;
	}
	h->size = size;
	h->max = size;
	return 0;
}

void
impair_hold_fini(struct impair_hold *h)
{
	free(h->heap);
	free(h->out);
	h->heap = NULL;
	h->out = NULL;
}

/* ---- the queue of those that go out ---------------------------------------------------------- */

void
impair_hold_pass(struct impair_hold *h, void *pkt)
{
	const uint32_t size = h->size + IMPAIR_HOLD_SLACK;
	uint32_t at = h->out_at + h->n_out;

	h->out[at < size ? at : at - size] = pkt;
	h->n_out++;
}

void *
impair_hold_pop(struct impair_hold *h)
{
	void *pkt;

	if (h->n_out == 0)
		return NULL;
	pkt = h->out[h->out_at];
	h->n_out--;
	if (++h->out_at == h->size + IMPAIR_HOLD_SLACK)
		h->out_at = 0;
	return pkt;
}

/* ---- the heap of those with a time ----------------------------------------------------------- */

static bool
earlier(const struct impair_timed *a, const struct impair_timed *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void
heap_put(struct impair_hold *h, const struct impair_timed *t)
{
	uint32_t i = h->n_heap++;

	for (; i != 0 && earlier(t, &h->heap[(i - 1) / 2]); i = (i - 1) / 2)
		h->heap[i] = h->heap[(i - 1) / 2];
	h->heap[i] = *t;
}

void
impair_hold_until(struct impair_hold *h, void *pkt, ns_t at)
{
	heap_put(h, &(struct impair_timed){ .at = at, .order = h->order++, .pkt = pkt });
}

void
impair_hold_overtake(struct impair_hold *h, void *pkt, ns_t at, uint32_t flow)
{
	heap_put(h, &(struct impair_timed){ .at = at,
			    .order = h->order++,
			    .pkt = pkt,
			    .flow = flow,
			    .overtakes = true });
}

/* Take the root; the heap is not empty. */
static struct impair_timed
heap_take(struct impair_hold *h)
{
	const struct impair_timed root = h->heap[0];
	const struct impair_timed t = h->heap[--h->n_heap];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < h->n_heap && earlier(&h->heap[child + 1], &h->heap[child]))
			child++;
		if (child >= h->n_heap || !earlier(&h->heap[child], &t))
			break;
		h->heap[i] = h->heap[child];
		i = child;
	}
	h->heap[i] = t;
	return root;
}

/* ---- those that others overtake ------------------------------------------------------------ */

int
impair_hold_back(struct impair_hold *h, const struct impair_overtaken *w)
{
	if (h->n_over == IMPAIR_REORDER_MAX)
		return -ENOBUFS;
	h->over[h->n_over++] = *w;
	return 0;
}

/* Send on, in the order they came, those with nothing left or with a time that has come. */
static void
overtaken_go_on(struct impair_hold *h, ns_t now)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < h->n_over; i++) {
		const struct impair_overtaken w = h->over[i];

		if (w.left != 0 && w.until > now)
			h->over[kept++] = w;
		else if (w.due > now)
			impair_hold_until(h, w.pkt, w.due);
		else
			impair_hold_pass(h, w.pkt);
	}
	h->n_over = kept;
}

void
impair_hold_went_by(struct impair_hold *h, uint32_t flow, ns_t now)
{
	bool any = false;

	for (uint32_t i = 0; i < h->n_over; i++) {
		if (h->over[i].flow == flow)
			any |= --h->over[i].left == 0;
	}
	if (any)
		overtaken_go_on(h, now);
}

void
impair_hold_due(struct impair_hold *h, ns_t now)
{
	if (h->n_over != 0)
		overtaken_go_on(h, now);
	while (h->n_heap != 0 && h->heap[0].at <= now) {
		const struct impair_timed t = heap_take(h);

		impair_hold_pass(h, t.pkt);
		if (t.overtakes)
			impair_hold_went_by(h, t.flow, now);
	}
}

ns_t
impair_hold_next(const struct impair_hold *h)
{
	ns_t next = h->n_heap != 0 ? h->heap[0].at : UINT64_MAX;

	if (h->n_out != 0)
		return 0;
	for (uint32_t i = 0; i < h->n_over; i++)
		next = h->over[i].until < next ? h->over[i].until : next;
	return next;
}

void *
impair_hold_take(struct impair_hold *h)
{
	if (h->n_out != 0)
		return impair_hold_pop(h);
	if (h->n_heap != 0)
		return heap_take(h).pkt;
	return h->n_over != 0 ? h->over[--h->n_over].pkt : NULL;
}
