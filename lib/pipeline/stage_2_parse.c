/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage 2: read headers; what is not RoCE leaves to the control lcore, or for good. */
#include "pipeline_priv.h"

/** ARP, ICMP and ICMPv6 are the control lcore's. */
static void
to_control(struct worker *w, struct burst *b, uint32_t i)
{
	struct mbox_msg msg = { .type = MBOX_PACKET, .port = w->conf.ports[b->port[i]].id };

	msg.pkt.m = b->m[i];
	msg.pkt.time_ns = w->now;
	if (w->mbox != NULL && mbox_send_up(w->mbox, &msg) == 0) {
		count(w, b->port[i], NULL, STAT_rx_control);
		return;
	}
	count(w, b->port[i], NULL, STAT_rx_control_lost);
	mbuf_done(w, b->m[i]);
}

void
stage_parse(struct worker *w, struct burst *b)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		struct rte_mbuf *m = b->m[i];
		struct wire_pkt *p = &b->pkt[kept];
		enum wire_class class;

		if (i + AHEAD < b->n)
			rte_prefetch0(rte_pktmbuf_mtod_offset(b->m[i + AHEAD], void *, 64));
		class = wire_parse(&w->conf.ports[b->port[i]].addr,
			rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, p);
		if (LIKELY(class == WIRE_CLASS_ROCE)) {
			if (UNLIKELY((m->ol_flags & w->fcs_bad) != 0))
				p->faults |= FAULT_BIT(FAULT_FCS);
			rte_prefetch0(&w->qps->slot[p->dest_qpn & w->qps->mask]);
			if (UNLIKELY(kept != i)) {
				b->m[kept] = m;
				b->port[kept] = b->port[i];
			}
			kept++;
		} else if (class == WIRE_CLASS_CONTROL) {
			to_control(w, b, i);
		} else {
			count(w, b->port[i], NULL, STAT_rx_not_roce);
			mbuf_done(w, m);
		}
	}
	b->n = kept;
}
