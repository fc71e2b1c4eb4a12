/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 9: hand frames to the ports. What a port does not take waits here, in order; receiving goes
 * on meanwhile and answers pause, so only ACKs pile up, and only so far.
 */
#include "pipeline_priv.h"

void
tx_push(struct worker *w, uint8_t port, struct rte_mbuf *m)
{
	struct tx_queue *q = &w->tx[port];

	if (UNLIKELY(q->tail == TX_ROOM)) {
		if (q->head == 0) {
			count(w, port, NULL, STAT_tx_backlog_drop);
			rte_pktmbuf_free(m);
			return;
		}
		memmove(q->m, q->m + q->head, (q->tail - q->head) * sizeof(q->m[0]));
		q->tail -= q->head;
		q->head = 0;
	}
	q->m[q->tail++] = m;
}

static uint64_t
bytes_of(struct rte_mbuf *const *m, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += m[i]->pkt_len;
	return sum;
}

uint32_t
stage_tx(struct worker *w)
{
	uint32_t total = 0;

	naks_send(w); /* of READs that failed */
	for (uint32_t i = 0; i < w->ports_n; i++) {
		const struct pipeline_port *p = &w->conf.ports[i];
		struct tx_queue *q = &w->tx[i];
		uint32_t n = q->tail - q->head;
		uint64_t bytes;
		uint16_t sent;

		if (n == 0)
			continue;
		stats_add(&w->stats, STAT_sent_pkts, q->made);
		stats_add(&w->port_stats[i], STAT_sent_pkts, q->made);
		q->made = 0;
		/* Once taken, a frame is the driver's: its length is read before. */
		bytes = bytes_of(q->m + q->head, n);
		sent = rte_eth_tx_burst(p->id, p->tx_queue, q->m + q->head, (uint16_t)n);
		q->head += sent;
		if (LIKELY(q->head == q->tail))
			q->head = q->tail = 0;
		else
			bytes -= bytes_of(q->m + q->head, q->tail - q->head);
		stats_add(&w->stats, STAT_tx_packets, sent);
		stats_add(&w->stats, STAT_tx_bytes, bytes);
		stats_add(&w->port_stats[i], STAT_tx_packets, sent);
		stats_add(&w->port_stats[i], STAT_tx_bytes, bytes);
		total += sent;
	}
	return total;
}
