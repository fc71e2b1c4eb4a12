/* SPDX-License-Identifier: BSD-3-Clause */
/* The callback: decide for a burst, apply, hand on. */
#include "impair_priv.h"

#include <stdbool.h>
#include <string.h>

#include <rte_mbuf.h>

#include "compiler.h"
#include "impair_apply.h"

static void
count(struct impair *im, uint32_t c, uint64_t n)
{
	uint64_t old = atomic_load_explicit(&im->counters[c], memory_order_relaxed);

	atomic_store_explicit(&im->counters[c], old + n, memory_order_relaxed);
}

static struct rules *
rules_now(struct impair *im)
{
	struct rules *old = atomic_load_explicit(&im->current, memory_order_relaxed);
	struct rules *new;

	if (LIKELY(atomic_load_explicit(&im->pending, memory_order_relaxed) == NULL))
		return old;
	new = atomic_exchange_explicit(&im->pending, NULL, memory_order_acquire);
	if (new == NULL)
		return old;
	atomic_store_explicit(&im->current, new, memory_order_release);
	old->next = atomic_load_explicit(&im->retired, memory_order_relaxed);
	impair_rules_apply(im, new);
	while (!atomic_compare_exchange_weak_explicit(
		&im->retired, &old->next, old, memory_order_release, memory_order_relaxed))
		;
	return new;
}

static struct impair_pkt
look(const struct rte_mbuf *m)
{
	uint8_t gathered[IMPAIR_PEEK_LEN];
	uint32_t have = RTE_MIN(m->pkt_len, (uint32_t)IMPAIR_PEEK_LEN);
	const uint8_t *frame = rte_pktmbuf_read(m, 0, have, gathered);

	return impair_peek(frame, frame != NULL ? have : 0, m->pkt_len);
}

/* Now, or when its time has come. */
static void
send_at(struct impair *im, struct rte_mbuf *m, ns_t at, ns_t now)
{
	if (at > now)
		impair_hold_until(&im->hold, m, at);
	else
		impair_hold_pass(&im->hold, m);
}

static void
send_copies(struct impair *im, const struct rte_mbuf *m, const struct impair_verdict *v, ns_t now)
{
	ns_t at = now + ((ns_t)v->delay_us + v->copy_delay_us) * TIME_NS_PER_US;

	for (uint32_t i = 0; i < v->copies; i++) {
		struct rte_mbuf *copy;

		if (!impair_hold_has_room(&im->hold)) {
			count(im, C_limited, v->copies - i);
			return;
		}
		copy = rte_pktmbuf_copy(m, im->port.pool, 0, UINT32_MAX);
		if (copy == NULL) {
			count(im, C_no_mbuf, v->copies - i);
			return;
		}
		count(im, C_duplicated, 1);
		send_at(im, copy, at, now);
	}
}

/* What the verdict changes in the frame itself. @return the frame, perhaps another mbuf. */
static struct rte_mbuf *
change(struct impair *im, struct rte_mbuf *m, const struct impair_pkt *p,
	const struct impair_verdict *v)
{
	const uint32_t bits = IMPAIR_BIT(IMPAIR_CORRUPT) | IMPAIR_BIT(IMPAIR_CE);
	struct rte_mbuf *own;

	if ((v->actions & bits) == 0)
		return m;
	own = impair_own(m, im->port.pool);
	if (own == NULL) {
		count(im, C_no_mbuf, 1);
		return m;
	}
	if ((v->actions & IMPAIR_BIT(IMPAIR_CE)) != 0) {
		impair_mark_ce(own, p);
		count(im, C_ce_marked, 1);
	}
	if ((v->actions & IMPAIR_BIT(IMPAIR_CORRUPT)) != 0) {
		impair_corrupt(own, v);
		count(im, C_corrupted, 1);
	}
	return own;
}

/*
 * The packet, its copies, then those that waited for it to go by, which one that is delayed does
 * when it goes out; one that is held back lets those go first. Where there is no room to hold it,
 * it goes on at once: the places are asked for in the order they are taken, so that no more than
 * held_max are.
 */
static void
send_on(struct impair *im, struct rte_mbuf *m, const struct impair_verdict *v, uint32_t flow,
	ns_t now)
{
	const uint32_t waits = IMPAIR_BIT(IMPAIR_REORDER) | IMPAIR_BIT(IMPAIR_DELAY);
	struct impair_overtaken wait = { .pkt = m,
		.flow = flow,
		.left = v->distance,
		.due = now + v->delay_us * TIME_NS_PER_US,
		.until = now + v->hold_us * TIME_NS_PER_US };
	bool back = (v->actions & IMPAIR_BIT(IMPAIR_REORDER)) != 0;

	if ((v->actions & waits) != 0 && !impair_hold_has_room(&im->hold)) {
		count(im, C_limited, 1);
		back = false;
		wait.due = now;
	}
	if (back)
		impair_hold_went_by(&im->hold, flow, now);
	if (back && impair_hold_back(&im->hold, &wait) != 0) {
		count(im, C_limited, 1);
		back = false;
	}
	count(im, C_reordered, back);
	count(im, C_delayed, wait.due != now);
	if (!back && wait.due > now)
		impair_hold_overtake(&im->hold, m, wait.due, flow);
	else if (!back)
		impair_hold_pass(&im->hold, m);
	send_copies(im, m, v, now);
	if (!back && wait.due <= now)
		impair_hold_went_by(&im->hold, flow, now);
}

static void
apply(struct impair *im, struct rte_mbuf *m, uint32_t i, ns_t now)
{
	const struct impair_pkt *p = &im->pkts[i];
	const struct impair_verdict *v = &im->verdicts[i];

	if (UNLIKELY(im->port.tap != NULL))
		im->port.tap(im->port.tap_arg, m, v->actions, now);
	if (LIKELY(v->actions == 0 && im->hold.n_over == 0)) {
		impair_hold_pass(&im->hold, m);
		return;
	}
	if ((v->actions & IMPAIR_BIT(IMPAIR_DROP)) != 0) {
		rte_pktmbuf_free(m);
		count(im, C_dropped, 1);
		return;
	}
	m = change(im, m, p, v);
	send_on(im, m, v, (p->kind & IMPAIR_PKT_ROCE) != 0 ? p->qpn : OTHER_FLOW, now);
}

/* To the bottleneck. */
static void
enqueue(struct impair *im, struct rte_mbuf *m, ns_t now)
{
	const struct impair_pkt p = look(m);
	const bool full = impair_queue_is_full(&im->queue);
	const struct bottleneck_verdict v =
		impair_queue_offer(&im->queue, p.len, impair_is_ect(m, &p), now);

	if (v.dropped) {
		rte_pktmbuf_free(m);
		count(im, C_queue_dropped, 1);
		count(im, C_limited, full);
		return;
	}
	if (v.marked) {
		struct rte_mbuf *own = impair_own(m, im->port.pool);

		if (own != NULL) {
			m = own;
			impair_mark_ce(m, &p);
		}
		count(im, own != NULL ? C_queue_marked : C_no_mbuf, 1);
	}
	impair_queue_push(&im->queue, m, v.leaves);
}

/* Everything that the rules let pass, and what has left the queue until now. */
static __attribute__((noinline)) uint16_t
through_queue(struct impair *im, struct rte_mbuf *pkts[], uint32_t limit, ns_t now)
{
	const struct bottleneck *b = &im->queue.bottleneck;
	struct rte_mbuf *m;
	uint32_t out = 0;

	while ((m = impair_hold_pop(&im->hold)) != NULL)
		enqueue(im, m, now);
	while (out < limit && (m = impair_queue_pop(&im->queue, now)) != NULL)
		pkts[out++] = m;
	atomic_store_explicit(&im->counters[C_queue_bytes],
		im->queue.on ? impair_bottleneck_queue(b, now) : 0, memory_order_relaxed);
	atomic_store_explicit(&im->counters[C_queue_max], b->longest, memory_order_relaxed);
	return (uint16_t)out;
}

/* What goes out, at most up to `limit`. With a bottleneck nothing does before all has gone in. */
static uint16_t
hand_on(struct impair *im, struct rte_mbuf *pkts[], uint32_t out, uint32_t limit, ns_t now)
{
	if (UNLIKELY(impair_queue_is_on(&im->queue)))
		return through_queue(im, pkts, 0, now);
	while (out < limit) {
		struct rte_mbuf *m = impair_hold_pop(&im->hold);

		if (m == NULL)
			break;
		pkts[out++] = m;
	}
	return (uint16_t)out;
}

/* No rule has anything to say about these. */
static __attribute__((noinline)) void
tell(const struct impair *im, struct rte_mbuf *pkts[], uint16_t n)
{
	const ns_t now = im->port.clock(im->port.clock_arg);

	for (uint16_t i = 0; i < n; i++)
		im->port.tap(im->port.tap_arg, pkts[i], 0, now);
}

/*
 * `pkts` is both what came and what goes. A chunk's places are free once it has been copied away,
 * so the queue of those that go out gets no longer by packets that only pass.
 */
uint16_t
impair_on_receive(
	uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, uint16_t max, void *arg)
{
	struct impair *im = arg;
	const struct rules *rules = rules_now(im);
	uint16_t out = 0;
	ns_t now;

	(void)port;
	(void)queue;
	if (impair_hold_count(&im->hold) == 0 && !impair_queue_is_on(&im->queue) &&
		(n == 0 || impair_model_is_spent(rules->model))) {
		if (UNLIKELY(im->port.tap != NULL) && n != 0)
			tell(im, pkts, n);
		count(im, C_in, n);
		count(im, C_out, n);
		return n;
	}
	now = im->port.clock(im->port.clock_arg);
	if (n == 0 && impair_next(im) > now)
		return 0;
	impair_hold_due(&im->hold, now);
	for (uint32_t first = 0, c; first < n; first += c) {
		c = RTE_MIN((uint32_t)n - first, (uint32_t)CHUNK);
		memcpy(im->mbufs, pkts + first, c * sizeof(im->mbufs[0]));
		for (uint32_t i = 0; i < c; i++)
			im->pkts[i] = look(im->mbufs[i]);
		impair_model_decide(rules->model, im->pkts, c, im->verdicts);
		for (uint32_t i = 0; i < c; i++)
			apply(im, im->mbufs[i], i, now);
		out = hand_on(im, pkts, out, first + c, now);
	}
	out = impair_queue_is_on(&im->queue) ? through_queue(im, pkts, max, now)
					     : hand_on(im, pkts, out, max, now);
	count(im, C_in, n);
	count(im, C_out, out);
	atomic_store_explicit(&im->counters[C_held], impair_hold_count(&im->hold) + im->queue.n,
		memory_order_relaxed);
	return out;
}

uint16_t
impair_receive(struct impair *im, struct rte_mbuf **m, uint16_t n, uint16_t max)
{
	return impair_on_receive(im->port.port_id, im->port.queue, m, n, max, im);
}

ns_t
impair_next(const struct impair *im)
{
	const ns_t hold = impair_hold_next(&im->hold), queue = impair_queue_next(&im->queue);

	return hold < queue ? hold : queue;
}
