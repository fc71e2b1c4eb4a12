/* SPDX-License-Identifier: BSD-3-Clause */
#include "to_control.h"

#include "count.h"
#include "local.h"
#include "spare.h"

enum { PKEY_DEFAULT = 0xffff };

/**
 * The control lcore's queue is for all: one source fills no more than a part of it. A source is a
 * MAC address at a port; those that fall on the same place share it.
 */
static bool
is_over_limit(struct worker *w, uint16_t port, const struct rte_mbuf *m)
{
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;
	const uint32_t hash = (be32_load(mac + 2) ^ port) * 0x9e3779b1u ^ be16_load(mac);
	struct control_source *s = &w->control[hash * 0x9e3779b1u >> 16 & (CONTROL_PLACES - 1)];

	if (w->now >= s->until) {
		s->until = w->now + TIME_NS_PER_MS;
		s->n = 0;
	}
	return s->n++ >= CONTROL_SOURCE;
}

void
pipeline_to_control(struct worker *w, struct burst *b, uint32_t i)
{
	struct mbox_msg msg = { .type = MBOX_PACKET,
		.pkt = { .m = b->m[i], .time_ns = w->now, .port = w->conf.ports[b->port[i]].id } };

	if (UNLIKELY(is_over_limit(w, b->port[i], b->m[i]))) {
		count(w, b->port[i], NULL, STAT_rx_control_limited);
		mbuf_done(w, b->m[i]);
		return;
	}
	if (UNLIKELY(w->local_burst))
		pipeline_local_own(w, b->m[i]);
	if (w->mbox != NULL && mbox_send_up(w->mbox, &msg) == 0) {
		count(w, b->port[i], NULL, STAT_rx_control);
		return;
	}
	count(w, b->port[i], NULL, STAT_rx_control_lost);
	mbuf_done(w, b->m[i]);
}

fault_mask_t
pipeline_management_faults(const struct wire_pkt *p)
{
	/* One of the two is a full member, and the port has the default partition. */
	if (((p->pkey ^ PKEY_DEFAULT) & ~WIRE_PKEY_FULL) != 0)
		return FAULT_BIT(FAULT_PKEY);
	if (wire_deth(p).qkey != MAD_QKEY)
		return FAULT_BIT(FAULT_QKEY);
	return 0;
}
