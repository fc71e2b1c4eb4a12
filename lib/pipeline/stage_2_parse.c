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
static bool
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

/**
 * Read the packets that wire_plain.h knows, each to its own place, and fetch what stands at their
 * QP numbers. @return a bit for each of the others, whose places say nothing.
 */
static uint32_t
read_plain(const struct worker *w, struct burst *b)
{
	const struct qp_table *qps = w->qps;
	uint32_t odd = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct wire_port *port = &w->conf.ports[b->port[i]].addr;
		const struct rte_mbuf *m = b->m[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
		struct wire_pkt *p = &b->pkt[i];

		if (LIKELY(m->data_len >= WIRE_PLAIN_MIN) && LIKELY(wire_match(port, frame)) &&
			LIKELY(wire_read_plain(frame, m->data_len, p)) &&
			LIKELY((m->ol_flags & w->fcs_bad) == 0))
			rte_prefetch0(&qps->slot[p->dest_qpn & qps->mask]);
		else
			odd |= BIT32(i);
	}
	return odd;
}

#if WIRE_WIDE
/** The same, faster. */
TARGET_WIRE_WIDE static uint32_t
read_wide(const struct worker *w, struct burst *b)
{
	const struct qp_table *qps = w->qps;
	const uint64_t fcs_bad = w->fcs_bad;
	const uint32_t n = b->n, mask = qps->mask;
	uint32_t odd = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct rte_mbuf *m = b->m[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

		if (LIKELY(m->data_len >= WIRE_PLAIN_MIN) &&
			LIKELY(wire_read_wide(
				&w->front[b->port[i]], frame, m->data_len, &b->pkt[i])) &&
			LIKELY((m->ol_flags & fcs_bad) == 0))
			rte_prefetch0(&qps->slot[be32_load(frame + WIRE_PLAIN_BTH + 4) & mask]);
		else
			odd |= BIT32(i);
	}
	return odd;
}
#endif

/** Read the packets of these bits, and close the gaps of those that leave. */
static __attribute__((noinline)) void
read_odd(struct worker *w, struct burst *b, uint32_t odd)
{
	const struct qp_table *qps = w->qps;
	uint32_t n = b->n, kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct wire_pkt *p = &b->pkt[i];

		if ((odd >> i & 1) != 0) {
			if (!parse_odd(w, b, i, p))
				continue;
			if (UNLIKELY((b->m[i]->ol_flags & w->fcs_bad) != 0))
				p->faults |= FAULT_BIT(FAULT_FCS);
			rte_prefetch0(&qps->slot[p->dest_qpn & qps->mask]);
		}
		burst_keep(b, kept++, i);
	}
	b->n = kept;
}

void
stage_parse(struct worker *w, struct burst *b)
{
	uint32_t odd;

#if WIRE_WIDE
	odd = LIKELY(wire_has_wide()) ? read_wide(w, b) : read_plain(w, b);
#else
	odd = read_plain(w, b);
#endif
	if (UNLIKELY(odd != 0))
		read_odd(w, b, odd);
}
