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

/** Anything but the common packet. */
static __attribute__((noinline)) bool
parse_odd(struct worker *w, struct burst *b, uint32_t i, struct wire_pkt *p)
{
	struct rte_mbuf *m = b->m[i];
	enum wire_class class = wire_parse_any(&w->conf.ports[b->port[i]].addr,
		rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, p);

	if (LIKELY(class == WIRE_CLASS_ROCE))
		return true;
	if (class == WIRE_CLASS_CONTROL) {
		to_control(w, b, i);
		return false;
	}
	count(w, b->port[i], NULL, STAT_rx_not_roce);
	mbuf_done(w, m);
	return false;
}

/** Packet i was read, or is going to be. @return 1: it stays, at place `kept`. */
static ALWAYS_INLINE uint32_t
keep(struct worker *w, struct burst *b, uint32_t i, uint32_t kept, bool is_plain)
{
	const struct qp_table *qps = w->qps;
	struct wire_pkt *p = &b->pkt[kept];
	struct rte_mbuf *m = b->m[i];

	if (UNLIKELY(!is_plain) && !parse_odd(w, b, i, p))
		return 0;
	if (UNLIKELY((m->ol_flags & w->fcs_bad) != 0))
		p->faults |= FAULT_BIT(FAULT_FCS);
	rte_prefetch0(&qps->slot[p->dest_qpn & qps->mask]);
	if (UNLIKELY(kept != i)) {
		b->m[kept] = m;
		b->port[kept] = b->port[i];
	}
	return 1;
}

void
stage_parse(struct worker *w, struct burst *b)
{
	uint32_t n = b->n, kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct wire_port *port = &w->conf.ports[b->port[i]].addr;
		const uint8_t *frame = rte_pktmbuf_mtod(b->m[i], const uint8_t *);
		uint32_t len = b->m[i]->data_len;

		kept += keep(w, b, i, kept,
			wire_is_plain_len(len) && LIKELY(wire_match(port, frame)) &&
				LIKELY(wire_read_plain(frame, len, &b->pkt[kept])));
	}
	b->n = kept;
}
