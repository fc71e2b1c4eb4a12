/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for addresses of this process: taken from their queue as if a port had received them. */
#include "local.h"

#include <rte_ring.h>

#include "copy.h"
#include "count.h"
#include "spare.h"
#include "stage.h"
#include "wire_group.h"

#define TYPE_VLAN 0x8100

/** Where the IP header of a frame is that this process made. */
static inline uint16_t
l3_of(const uint8_t *frame)
{
	const bool tagged = be16_load(frame + 12) == TYPE_VLAN;

	return tagged ? WIRE_ETH_LEN + WIRE_VLAN_LEN : WIRE_ETH_LEN;
}

static inline bool
has_address(const struct worker *w, uint32_t port, const uint8_t *l3)
{
	const bool ipv6 = l3[0] >> 4 == 6;

	return wire_port_has(&w->conf.ports[port].addr, ipv6, l3 + (ipv6 ? 24 : 16));
}

/** Index of the port that has the frame's address, the sender's own port first; or PORT_NONE. */
static uint8_t
destination(const struct worker *w, uint32_t own, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *l3 = frame + l3_of(frame);

	if (LIKELY(has_address(w, own, l3)))
		return (uint8_t)own;
	for (uint32_t i = 0; i < w->ports_n; i++)
		if (has_address(w, i, l3))
			return (uint8_t)i;
	return wire_ip_is_group(l3) ? (uint8_t)own : PORT_NONE; /* mcast.h */
}

/** May a whole burst go to any of the other workers? */
static bool
others_have_room(const struct worker *w)
{
	for (uint32_t i = 0; i < w->conf.workers_n; i++) {
		const struct rte_ring *r = i != w->index ? w->conf.handoff[i] : NULL;

		if (r != NULL && rte_ring_free_count(r) < PIPELINE_BURST)
			return false;
	}
	return true;
}

/* ---- payloads on loan ------------------------------------------------------------------------ */

void
pipeline_local_own(const struct worker *w, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const struct local_loan *l = local_loan(frame);

	if (!local_is_lent(w, m))
		return;
	m->ol_flags &= ~w->lent_flag;
	ASSERT(l->at + l->len + (-(uint32_t)l->len & 3) + WIRE_ICRC_LEN == m->pkt_len);
	mem_copy(frame + l->at, l->from, l->len);
	memset(frame + l->at + l->len, 0, -(uint32_t)l->len & 3); /* pad */
}

/** Of a burst that is being served, from the packet on that local_serve() was told last. */
static void
own_burst(const struct worker *w)
{
	const struct burst *b = w->serving;

	if (b == NULL)
		return;
	for (uint32_t i = w->serving_at; i < b->n; i++)
		if (LIKELY(b->m[i] != NULL)) /* kept */
			pipeline_local_own(w, b->m[i]);
	for (uint32_t i = w->few_end; b == &w->few && i < w->burst.n; i++)
		pipeline_local_own(w, w->burst.m[i]);
}

void
pipeline_local_own_all(struct worker *w)
{
	if (LIKELY(!w->lends))
		return;
	w->lends = false;
	own_burst(w);
	for (uint32_t out = w->wires_n; out < w->outs_n; out++)
		for (uint32_t i = w->tx[out].head; i != w->tx[out].tail; i++)
			pipeline_local_own(w, w->tx[out].m[i]);
}

void
pipeline_local_deliver(
	const struct worker *w, struct rte_mbuf *m, const struct wire_pkt *p, uint8_t *to)
{
	const struct local_loan *l = local_loan(rte_pktmbuf_mtod(m, uint8_t *));
	const uint32_t len = p->payload_len;

	/* A copy goes forward: over itself a payload goes by way of the frame. */
	if (UNLIKELY(!local_is_lent(w, m)) ||
		UNLIKELY((uintptr_t)to - (uintptr_t)l->from + len < 2ull * len)) {
		pipeline_local_own(w, m);
		payload_copy(to, wire_payload(p), len);
		return;
	}
	ASSERT(l->len == len && l->at == p->payload_off);
	m->ol_flags &= ~w->lent_flag;
	/*
	 * Not mem_copy(): neither end is in the L1 cache. memcpy() may write the beginning last,
	 * and the host may take the last bytes for a sign that the others are there.
	 */
	memcpy(to, l->from, len - LOCAL_END);
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(to + len - LOCAL_END, l->from + len - LOCAL_END, LOCAL_END);
}

enum mem_fault
pipeline_local_scatter(const struct worker *w, const struct wire_pkt *p, const struct ring_sge *sge,
	uint32_t n, uint32_t pd, uint64_t offset)
{
	struct rte_mbuf *m = local_lent(w, p);
	uint8_t *host;

	if (m != NULL && n == 1 && offset + p->payload_len <= sge->length) {
		const enum mem_fault fault = mem_check(
			w->mem, sge->lkey, pd, sge->addr, sge->length, ACCESS_LOCAL_WRITE, &host);

		if (fault == MEM_OK)
			pipeline_local_deliver(w, m, p, host + offset);
		return fault;
	}
	if (m != NULL)
		pipeline_local_own(w, m);
	return mem_scatter(w->mem, sge, n, pd, offset, wire_payload(p), p->payload_len);
}

void
pipeline_local_seal(struct worker *w, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const uint16_t l3 = l3_of(frame);

	pipeline_local_own(w, m);
	icrc_seal(w->crc, frame, l3, frame[l3] >> 4 == 6, m->pkt_len);
}

static inline bool
is_impaired(const struct pipeline_port *p)
{
	return p->impair != NULL && p->impair->is_on(p->impair->ctx);
}

/** To the worker that polls the port: it alone may ask the port's impairment. */
static void
send_to_poller(struct worker *w, struct burst *b, uint8_t port)
{
	const struct pipeline_port *p = &w->conf.ports[port];
	struct rte_ring *r = w->conf.handoff[p->rx_worker];
	uint32_t sent = 0;

	for (uint32_t i = 0; i < b->n; i++)
		b->m[i]->port = p->id | QP_OUT_LOCAL;
	if (r != NULL)
		sent = rte_ring_enqueue_burst(r, (void **)b->m, b->n, NULL);
	for (; sent < b->n; sent++) {
		count(w, port, NULL, STAT_tx_backlog_drop);
		rte_pktmbuf_free(b->m[sent]);
	}
	b->n = 0;
}

/** These frames come to a port with a bad wire. */
static __attribute__((noinline)) void
impair(struct worker *w, struct burst *b, uint8_t port)
{
	const struct pipeline_port *p = &w->conf.ports[port];

	for (uint32_t i = 0; i < b->n; i++)
		pipeline_local_seal(w, b->m[i]);
	w->local_burst = false;
	if (p->rx_worker != w->index) {
		send_to_poller(w, b, port);
		return;
	}
	b->n = p->impair->receive(p->impair->ctx, b->m, (uint16_t)b->n, PIPELINE_BURST);
	stage_rx_taken(w, b, port);
}

/** The frames have left their queue. */
static void
count_sent(struct worker *w, struct tx_queue *q, uint32_t port, const struct burst *b)
{
	struct stats_block *ps = &w->port_stats[port];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < b->n; i++)
		bytes += b->m[i]->pkt_len;
	stats_add(&w->stats, STAT_sent_pkts, q->made);
	stats_add(ps, STAT_sent_pkts, q->made);
	q->made = 0;
	stats_add(&w->stats, STAT_tx_packets, b->n);
	stats_add(ps, STAT_tx_packets, b->n);
	stats_add(&w->stats, STAT_tx_bytes, bytes);
	stats_add(ps, STAT_tx_bytes, bytes);
	stats_add(&w->stats, STAT_local_packets, b->n);
	stats_add(ps, STAT_local_packets, b->n);
}

uint32_t
pipeline_local_receive(struct worker *w, struct burst *b, uint32_t out, uint32_t most)
{
	const uint32_t own = out - w->wires_n;
	struct tx_queue *q = &w->tx[out];
	uint32_t n = 1;
	uint8_t port;

	b->n = 0;
	most = RTE_MIN(RTE_MIN(most, q->tail - q->head), (uint32_t)PIPELINE_BURST);
	if (most == 0 || !others_have_room(w))
		return 0;
	port = destination(w, own, q->m[q->head]);
	while (n < most && destination(w, own, q->m[q->head + n]) == port)
		n++;
	memcpy(b->m, q->m + q->head, n * sizeof(b->m[0]));
	b->n = n;
	q->head += n;
	q->gone += n;
	if (LIKELY(q->head == q->tail))
		q->head = q->tail = 0;
	count_sent(w, q, own, b);
	w->local_burst = true;
	if (UNLIKELY(port == PORT_NONE)) { /* cannot be: its address was a port's, and stays so */
		rte_pktmbuf_free_bulk(b->m, n);
		b->n = 0;
	} else if (UNLIKELY(is_impaired(&w->conf.ports[port]))) {
		impair(w, b, port);
	} else {
		stage_rx_taken(w, b, port);
	}
	return n;
}

uint32_t
pipeline_local_arrive(struct worker *w, struct burst *b)
{
	struct rte_mbuf *local[PIPELINE_BURST];
	uint8_t to[PIPELINE_BURST];
	uint32_t kept = 0, others, n = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		if (b->port[i] < w->wires_n) {
			b->m[kept] = b->m[i];
			b->port[kept++] = b->port[i];
			continue;
		}
		to[n] = (uint8_t)(b->port[i] - w->wires_n);
		local[n++] = b->m[i];
	}
	others = kept;
	for (uint32_t at = 0, run; at < n; at += run) {
		const struct pipeline_port *p = &w->conf.ports[to[at]];
		struct burst *few = &w->few;
		uint32_t room;

		for (run = 1; at + run < n && to[at + run] == to[at]; run++)
			;
		/* Places for those that follow stay free: no more goes on than came in all. */
		room = PIPELINE_BURST - kept - (n - at - run);
		memcpy(few->m, local + at, run * sizeof(few->m[0]));
		few->n = run;
		if (LIKELY(p->impair != NULL))
			few->n = p->impair->receive(
				p->impair->ctx, few->m, (uint16_t)run, (uint16_t)room);
		stage_rx_taken(w, few, to[at]);
		memcpy(b->m + kept, few->m, few->n * sizeof(b->m[0]));
		memset(b->port + kept, to[at], few->n);
		kept += few->n;
	}
	b->n = kept;
	return others;
}

void
pipeline_local_settle(struct worker *w)
{
	for (uint32_t out = w->ports_n; out < w->outs_n; out++) {
		const uint8_t i = w->port_of[w->conf.ports[out].id];
		struct stats_block *from = &w->port_stats[out];

		for (uint32_t s = 0; s < STAT_MAX; s++) {
			if (from->c[s] == 0)
				continue;
			stats_add(&w->port_stats[i], (enum stats_counter)s, from->c[s]);
			from->c[s] = 0;
		}
	}
}
