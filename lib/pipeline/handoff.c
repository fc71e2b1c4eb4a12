/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that arrive at one worker for a QP of another. The owner takes the frame as one more
 * source and runs it through all stages: nothing that the first worker found out is believed,
 * because the QP may have changed hands or state meanwhile.
 */
#include <rte_ring.h>

#include "pipeline_priv.h"

void
handoff_send(struct worker *w, struct burst *b, uint32_t i, uint8_t owner)
{
	struct rte_ring *r = owner < PIPELINE_MAX_WORKERS ? w->conf.handoff[owner] : NULL;

	b->m[i]->port = w->conf.ports[b->port[i]].id; /* net_ring leaves it as it was */
	if (LIKELY(r != NULL) && rte_ring_enqueue(r, b->m[i]) == 0) {
		count(w, b->port[i], NULL, STAT_rx_handoff);
		return;
	}
	count(w, b->port[i], NULL, STAT_rx_handoff_lost);
	mbuf_done(w, b->m[i]);
}

void
handoff_receive(struct worker *w, struct burst *b)
{
	uint32_t n =
		rte_ring_dequeue_burst(w->conf.handoff_in, (void **)b->m, PIPELINE_BURST, NULL);

	for (uint32_t i = 0; i < n; i++) {
		uint16_t id = b->m[i]->port;
		uint8_t port = id < ARRAY_LEN(w->port_of) ? w->port_of[id] : PORT_NONE;

		/*
		 * Every worker knows every port; a frame from elsewhere is answered as the first's.
		 */
		b->port[i] = port != PORT_NONE ? port : 0;
		stats_inc(&w->port_stats[b->port[i]], STAT_rx_handoff_in);
		rte_prefetch0(rte_pktmbuf_mtod(b->m[i], void *));
	}
	stats_add(&w->stats, STAT_rx_handoff_in, n);
	b->n = n;
}
