/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that arrive at one worker for a QP of another. They leave as soon as their QP is known,
 * before their ICRC is: the owner takes the frame as one more source and runs it through all
 * stages. Nothing that the first worker found out is believed, because the QP may have changed
 * hands or state meanwhile.
 */
#include <rte_ring.h>

#include "count.h"
#include "handoff.h"
#include "local.h"
#include "spare.h"

_Static_assert(PIPELINE_MAX_WORKERS <= QP_SLOT_WORKER + 1, "a slot says whose its QP is");

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
	struct rte_ring *r = owner < PIPELINE_MAX_WORKERS ? w->conf.handoff[owner] : NULL;
	uint32_t n = (uint32_t)__builtin_popcount(those), sent = 0, at = 0;
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

		m[at] = b->m[i];
		port[at] = b->port[i];
		m[at]->port = w->conf.ports[port[at]].id; /* net_ring leaves it as it was */
		at++;
	}
	if (LIKELY(r != NULL))
		sent = rte_ring_enqueue_burst(r, (void **)m, n, NULL);
	stats_add(&w->stats, STAT_rx_handoff, sent);
	count_at_ports(w, port, sent, STAT_rx_handoff);
	for (uint32_t i = sent; i < n; i++) {
		count(w, port[i], NULL, STAT_rx_handoff_lost);
		mbuf_done(w, m[i]);
	}
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

void
pipeline_handoff_send(struct worker *w, struct burst *b, uint32_t i)
{
	const struct qp *qp = b->qp[i];

	send_some(w, b, BIT32(i), qp == w->moving.qp ? owner_of_moving(w) : qp->worker);
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
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
		rte_prefetch0(rte_pktmbuf_mtod_offset(m[i], void *, CACHE_LINE));
		if (m[i]->data_len > 2 * CACHE_LINE)
			rte_prefetch0(rte_pktmbuf_mtod_offset(m[i], void *, 2 * CACHE_LINE));
	}
	b->n = n;
}

void
pipeline_handoff_receive(struct worker *w, struct burst *b)
{
	uint32_t n =
		rte_ring_dequeue_burst(w->conf.handoff_in, (void **)b->m, PIPELINE_BURST, NULL);

	uint32_t local = 0;

	if (n != 0)
		clock_read(w); /* the other worker received them after our turn began, perhaps */
	pipeline_handoff_take(w, b, b->m, n);
	for (uint32_t i = 0; i < n; i++)
		local |= b->port[i] >= w->wires_n;
	if (UNLIKELY(local != 0))
		n = pipeline_local_arrive(w, b);
	count_at_ports(w, b->port, n, STAT_rx_handoff_in);
	stats_add(&w->stats, STAT_rx_handoff_in, n);
}
