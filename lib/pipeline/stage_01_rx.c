/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage 1: take frames from a port, and make each of them contiguous. */
#include <string.h>

#include "count.h"
#include "tx_prio.h"
#include "stage.h"

/** A driver may say more than there is: net_pcap does so of a frame above 64 KiB. */
static bool
is_whole(const struct rte_mbuf *m)
{
	uint32_t n = 0;

	for (const struct rte_mbuf *s = m; s != NULL; s = s->next)
		n += s->data_len;
	return n == m->pkt_len;
}

/**
 * A chained frame in one piece, or NULL when there is no room for it (counted).
 * Takes `m` over.
 */
static struct rte_mbuf *
contiguous(struct worker *w, uint32_t port, struct rte_mbuf *m)
{
	struct rte_mbuf *copy = NULL;

	if (LIKELY(is_whole(m))) {
		if (rte_pktmbuf_linearize(m) == 0)
			return m;
		copy = rte_pktmbuf_copy(m, w->conf.ports[port].pool, 0, UINT32_MAX);
	}
	rte_pktmbuf_free(m);
	if (copy != NULL && copy->nb_segs == 1) {
		copy->port = w->conf.ports[port].id;
		return copy;
	}
	rte_pktmbuf_free(copy);
	count(w, (uint8_t)port, NULL, STAT_rx_segments);
	return NULL;
}

/** RX-LNK-02: what a port with this mtu would not have taken from its wire. */
static __attribute__((noinline)) void
drop_oversize(struct worker *w, struct burst *b, uint32_t port, uint32_t max)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		if (b->m[i]->pkt_len <= max) {
			b->m[kept++] = b->m[i];
			continue;
		}
		count(w, (uint8_t)port, NULL, STAT_rx_oversize);
		rte_pktmbuf_free(b->m[i]);
	}
	b->n = kept;
}

/** Some frames are chained: each of them becomes one piece, or is dropped. */
static __attribute__((noinline)) void
unchain(struct worker *w, struct burst *b, uint32_t port)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		struct rte_mbuf *m = b->m[i];

		if (m->nb_segs != 1)
			m = contiguous(w, port, m);
		if (m != NULL)
			b->m[kept++] = m;
	}
	b->n = kept;
}

static ALWAYS_INLINE void
taken(struct worker *w, struct burst *b, uint32_t port, uint32_t n)
{
	const struct pipeline_port *p = &w->conf.ports[port];
	struct stats_block *ps = &w->port_stats[port];
	const uint32_t max = p->max_frame != 0 ? p->max_frame : UINT16_MAX;
	uint32_t chained = 0, third;
	uint64_t bytes = 0;
	int64_t room = 0; /* negative: of some frame */

	ASSERT(n <= PIPELINE_BURST);
	b->n = n;
	if (n == 0)
		return;
	/* Where the ICRC of a short WRITE ends. As the first frame is, most others are. */
	third = b->m[0]->pkt_len > 2 * CACHE_LINE ? 2 * CACHE_LINE : 0;
	clock_read(w); /* what these frames start counts from when they were here (REQ-RNR-01) */
	for (uint32_t i = 0; i < n && i < AHEAD; i++)
		rte_prefetch0(b->m[i]);

	for (uint32_t i = 0; i < n; i++) {
		const struct rte_mbuf *m = b->m[i];

		if (i + AHEAD < n)
			rte_prefetch0(b->m[i + AHEAD]);
		rte_prefetch0(rte_pktmbuf_mtod(m, void *));
		rte_prefetch0(rte_pktmbuf_mtod_offset(m, void *, CACHE_LINE));
		rte_prefetch0(rte_pktmbuf_mtod_offset(m, void *, third));
		bytes += m->pkt_len;
		room |= (int64_t)max - m->pkt_len;
		chained |= m->nb_segs - 1u;
	}
	memset(b->port, (int)port, sizeof(b->port));
	if (UNLIKELY(chained != 0))
		unchain(w, b, port);
	ASSERT(b->n <= n);
	if (UNLIKELY(room < 0))
		drop_oversize(w, b, port, max);
	if (UNLIKELY(p->prio != NULL))
		pipeline_prio_received(w, b, port);
	stats_add(&w->stats, STAT_rx_packets, n);
	stats_add(&w->stats, STAT_rx_bytes, bytes);
	stats_add(ps, STAT_rx_packets, n);
	stats_add(ps, STAT_rx_bytes, bytes);
}

void
stage_rx(struct worker *w, struct burst *b, uint32_t port)
{
	const struct pipeline_port *p = &w->conf.ports[port];

	taken(w, b, port, rte_eth_rx_burst(p->id, p->rx_queue, b->m, PIPELINE_BURST));
}

void
stage_rx_taken(struct worker *w, struct burst *b, uint32_t port)
{
	taken(w, b, port, b->n);
}
