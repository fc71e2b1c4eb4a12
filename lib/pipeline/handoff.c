/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that arrive at one worker for a QP of another. They leave as soon as their QP is known:
 * untagged IPv4 behind stage 1, anything else behind stage 3, all of them before their ICRC. The
 * owner takes the frame as one more source and runs it through all stages. Nothing that the first
 * worker found out is believed, because the QP may have changed hands or state meanwhile.
 */
#include <string.h>

#include <rte_ring.h>

#include "count.h"
#include "handoff.h"
#include "local.h"
#include "spare.h"
#include "wire_plain.h"

_Static_assert(PIPELINE_MAX_WORKERS <= QP_SLOT_WORKER + 1, "a slot says whose its QP is");

/**
 * Where packets come to the workers of their QPs, no frame is looked at before its headers are
 * read: that begins with the first one that does not, and ends this many bursts after the last.
 */
enum { EARLY = 64 };

/**
 * Is what was found so far all that the packet can be charged to? If not, its QP has to say whether
 * something comes before it (RX-PREC-01), and only the QP's owner may ask.
 */
static inline bool
is_settled(const struct wire_pkt *p)
{
	return p->bth_off == 0 || (p->faults & (FIRST_FAULTS | FAULT_BIT(FAULT_DST_QP))) != 0;
}

/** Whose the packets of a QP are that moves: its next owner's, and kept aside if that is us. */
static inline uint8_t
owner_of_moving(const struct worker *w)
{
	return w->moving.to == w->index ? MOVE_KEEP : w->moving.to;
}

/** As many packets of these ports: one addition where all are of one port. */
static void
count_at_ports(struct worker *w, const uint8_t *port, uint32_t n, enum stats_counter c)
{
	for (uint32_t i = 0, run; i < n; i += run) {
		for (run = 1; i + run < n && port[i + run] == port[i]; run++)
			;
		stats_add(&w->port_stats[port[i]], c, run);
	}
}

/** To their owner at one go; what its ring has no room for is lost. */
static void
send_to(struct worker *w, uint8_t owner, struct rte_mbuf **m, const uint8_t *port, uint32_t n)
{
	struct rte_ring *r = owner < PIPELINE_MAX_WORKERS ? w->conf.handoff[owner] : NULL;
	uint32_t sent = 0;

	if (LIKELY(r != NULL))
		sent = rte_ring_enqueue_burst(r, (void **)m, n, NULL);
	stats_add(&w->stats, STAT_rx_handoff, sent);
	count_at_ports(w, port, sent, STAT_rx_handoff);
	for (uint32_t i = sent; i < n; i++) {
		count(w, port[i], NULL, STAT_rx_handoff_lost);
		mbuf_done(w, m[i]);
	}
}

static __attribute__((noinline)) void
keep_some(struct worker *w, struct burst *b, uint32_t those)
{
	for (; those != 0; those &= those - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(those);

		b->m[i]->port = w->conf.ports[b->port[i]].id;
		pipeline_move_keep(w, b->m[i], b->port[i]);
	}
}

/** These packets to their owner, in their order and at one go. */
static void
send_some(struct worker *w, struct burst *b, uint32_t those, uint8_t owner)
{
	uint32_t n = 0;
	struct rte_mbuf *m[PIPELINE_BURST];
	uint8_t port[PIPELINE_BURST];

	ASSERT(those != 0 && owner != w->index);
	for (uint32_t left = UNLIKELY(w->local_burst) ? those : 0; left != 0; left &= left - 1)
		pipeline_local_seal(w, b->m[__builtin_ctz(left)]);
	if (UNLIKELY(owner == MOVE_KEEP)) {
		keep_some(w, b, those);
		return;
	}
	for (; those != 0; those &= those - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(those);

		m[n] = b->m[i];
		port[n] = b->port[i];
		m[n]->port = w->conf.ports[port[n]].id; /* net_ring leaves it as it was */
		n++;
	}
	send_to(w, owner, m, port, n);
}

/** Packets of the QP that moves have another owner than its slot says. @return theirs, too. */
static __attribute__((noinline)) uint32_t
with_moving(const struct worker *w, const struct burst *b, uint32_t foreign, uint8_t *owner)
{
	for (uint32_t i = 0; i < b->n; i++) {
		if (b->qp[i] != w->moving.qp)
			continue;
		owner[i] = owner_of_moving(w);
		foreign |= BIT32(i);
	}
	return foreign;
}

/** Some that another worker need not look at stay. @return those that leave. */
static inline uint32_t
without_settled(const struct burst *b, uint32_t foreign)
{
	for (uint32_t left = foreign; left != 0; left &= left - 1) {
		const struct wire_pkt *p = &b->pkt[__builtin_ctz(left)];

		if (UNLIKELY(p->faults != 0) && is_settled(p))
			foreign &= ~(left & -left);
	}
	return foreign;
}

void
pipeline_handoff_sort(
	struct worker *w, struct burst *b, uint32_t foreign, uint8_t owner[PIPELINE_BURST])
{
	uint32_t kept = 0;

	if (UNLIKELY(w->moving.qp != NULL))
		foreign = with_moving(w, b, foreign, owner);
	foreign = without_settled(b, foreign);
	w->early_left = foreign != 0 ? EARLY : w->early_left;
	for (uint32_t left = foreign; left != 0;) {
		const uint8_t to = owner[__builtin_ctz(left)];
		uint32_t those = 0;

		for (uint32_t l = left; l != 0; l &= l - 1)
			those |= owner[__builtin_ctz(l)] == to ? l & -l : 0;
		send_some(w, b, those, to);
		left &= ~those;
	}
	for (uint32_t i = 0; i < b->n; i++)
		if ((foreign >> i & 1) == 0)
			burst_keep(b, kept++, i);
	b->n = kept;
}

/** @return what a plain frame's QP number stands for if it is another worker's QP, or 0. */
static ALWAYS_INLINE uintptr_t
foreign_slot(const struct worker *w, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uintptr_t slot;

	if (UNLIKELY(m->data_len < WIRE_PLAIN_MIN) || UNLIKELY(!wire_is_roce(frame)))
		return 0;
	slot = qp_table_at(w->qps, be32_load(frame + WIRE_PLAIN_BTH + 4) & PSN_MASK);
	return ((slot - w->index) & QP_SLOT_WORKER) != 0 && qp_of_slot(slot) != NULL ? slot : 0;
}

/** Frames of one port to several workers, each worker's at one go. */
static __attribute__((noinline)) void
send_each(struct worker *w, struct rte_mbuf *const *from, const uint8_t *owner, uint32_t n,
	const uint8_t *port)
{
	uint32_t left = (uint32_t)(BIT64(n) - 1);

	while (left != 0) {
		const uint8_t to = owner[__builtin_ctz(left)];
		struct rte_mbuf *m[PIPELINE_BURST];
		uint32_t those = 0;

		for (uint32_t l = left; l != 0; l &= l - 1) {
			const uint32_t i = (uint32_t)__builtin_ctz(l);

			if (owner[i] != to)
				continue;
			m[those++] = from[i];
			left &= ~BIT32(i);
		}
		send_to(w, to, m, port, those);
	}
}

void
pipeline_handoff_early(struct worker *w, struct burst *b)
{
	const uint16_t id = w->conf.ports[b->port[0]].id;
	struct rte_mbuf *m[PIPELINE_BURST];
	uint8_t owner[PIPELINE_BURST];
	uint32_t n = 0, kept = 0;
	uint8_t mixed = 0;

	if (LIKELY(w->early_left == 0) || UNLIKELY(w->moving.qp != NULL))
		return;
	for (uint32_t i = 0; i < b->n; i++) {
		struct rte_mbuf *one = b->m[i];
		const uintptr_t slot = foreign_slot(w, one);
		const uint8_t to = slot & QP_SLOT_WORKER;

		if (slot == 0) {
			b->m[kept++] = one;
			continue;
		}
		one->port = id;
		mixed |= n != 0 ? to ^ owner[0] : 0;
		owner[n] = to;
		m[n++] = one;
	}
	b->n = kept;
	w->early_left = n != 0 ? EARLY : w->early_left - 1;
	if (UNLIKELY(mixed != 0))
		send_each(w, m, owner, n, b->port);
	else if (n != 0)
		send_to(w, owner[0], m, b->port, n);
}

void
pipeline_handoff_send(struct worker *w, struct burst *b, uint32_t i)
{
	const struct qp *qp = b->qp[i];

	send_some(w, b, BIT32(i), qp == w->moving.qp ? owner_of_moving(w) : qp->worker);
}

/** A frame of another CPU's cache: its headers, and where the ICRC of a short WRITE ends. */
static ALWAYS_INLINE void
fetch_frame(const struct rte_mbuf *m)
{
	rte_prefetch0(rte_pktmbuf_mtod(m, void *));
	rte_prefetch0(rte_pktmbuf_mtod_offset(m, void *, CACHE_LINE));
	if (m->data_len > 2 * CACHE_LINE)
		rte_prefetch0(rte_pktmbuf_mtod_offset(m, void *, 2 * CACHE_LINE));
}

void
pipeline_handoff_take(struct worker *w, struct burst *b, struct rte_mbuf *const *m, uint32_t n)
{
	ASSERT(n <= PIPELINE_BURST);
	/* What follows comes out of another CPU's cache: ask for all of it at once. */
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(m[i]);
	for (uint32_t i = 0; i < n; i++) {
		uint16_t id = m[i]->port;
		uint8_t port = id < ARRAY_LEN(w->port_of) ? w->port_of[id] : PORT_NONE;

		/*
		 * Every worker knows every port; a frame from elsewhere is answered as the first's.
		 */
		b->m[i] = m[i];
		b->port[i] = port != PORT_NONE ? port : 0;
		fetch_frame(m[i]);
	}
	b->n = n;
}

uint32_t
pipeline_handoff_join(
	struct worker *w, struct burst *b, uint32_t port, struct rte_mbuf *aside[PIPELINE_BURST])
{
	const uint16_t id = w->conf.ports[port].id;
	struct rte_mbuf **m = b->m + b->n;
	uint32_t other = 0, n;

	ASSERT(b->n <= PIPELINE_BURST && port < w->wires_n);
	n = rte_ring_dequeue_burst(w->conf.handoff_in, (void **)m, PIPELINE_BURST - b->n, NULL);
	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(m[i]);
	clock_read(w); /* the other worker received them after our turn began, perhaps */
	for (uint32_t i = 0; i < n; i++) {
		other |= (uint32_t)m[i]->port ^ id;
		fetch_frame(m[i]);
	}
	if (UNLIKELY(other != 0)) {
		memcpy(aside, m, n * sizeof(m[0]));
		return n;
	}
	b->n += n;
	stats_add(&w->port_stats[port], STAT_rx_handoff_in, n);
	stats_add(&w->stats, STAT_rx_handoff_in, n);
	return 0;
}

void
pipeline_handoff_arrive(struct worker *w, struct burst *b, struct rte_mbuf *const *m, uint32_t n)
{
	uint32_t local = 0;

	pipeline_handoff_take(w, b, m, n);
	for (uint32_t i = 0; i < n; i++)
		local |= b->port[i] >= w->wires_n;
	if (UNLIKELY(local != 0))
		n = pipeline_local_arrive(w, b);
	count_at_ports(w, b->port, n, STAT_rx_handoff_in);
	stats_add(&w->stats, STAT_rx_handoff_in, n);
}

void
pipeline_handoff_receive(struct worker *w, struct burst *b, uint32_t max)
{
	const uint32_t n = rte_ring_dequeue_burst(w->conf.handoff_in, (void **)b->m, max, NULL);

	if (n != 0)
		clock_read(w); /* the other worker received them after our turn began, perhaps */
	pipeline_handoff_arrive(w, b, b->m, n);
}
