/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that leave early, and faults in general: a counter, a record, a line in the recorder. */
#include "pipeline_priv.h"

/** RX-ERR-01: syndrome and headers, where the error buffer is on and has room. */
static void
record(struct worker *w, const struct burst *b, uint32_t i, struct charge c)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct errbuf_record *r;
	uint32_t len;

	if (w->errbuf == NULL)
		return;
	r = errbuf_slot(w->errbuf);
	if (r == NULL) {
		count(w, b->port[i], NULL, STAT_error_buffer_lost);
		return;
	}
	len = p->frame_len < ERRBUF_HEADER_BYTES ? p->frame_len : ERRBUF_HEADER_BYTES;
	/* Field by field: clearing the record first would write its header twice. */
	r->time_ns = w->now;
	r->faults = p->faults | FAULT_BIT(c.fault);
	r->qpn = p->dest_qpn;
	r->psn = p->psn.v;
	r->frame_len = p->frame_len;
	r->header_len = (uint16_t)len;
	r->port = w->conf.ports[b->port[i]].id;
	r->rule = c.rule;
	r->opcode = p->opcode;
	r->charged = c.fault;
	r->impact = c.impact;
	memcpy(r->header, p->frame, len);
	errbuf_commit(w->errbuf);
}

void
drop_faulty(struct worker *w, struct burst *b, uint32_t i)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];
	enum wire_fault f = wire_fault_winner(p->faults);

	if (UNLIKELY(f == FAULT_MAX))
		f = FAULT_TRUNCATED; /* cannot be: every fault bit is listed */
	count(w, b->port[i], qp, (enum stats_counter)w->fault_stat[f]);
	if (f == FAULT_ICRC)
		count(w, b->port[i], qp, STAT_rx_icrc_encapsulated);
	if (f == FAULT_CNP)
		count(w, b->port[i], qp, STAT_rp_cnp_ignored);
	record(w, b, i, (struct charge){ .fault = (uint8_t)f });
	if (qp != NULL && traced(w, qp))
		trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
					    .qpn = p->dest_qpn,
					    .psn = p->psn.v,
					    .len = p->payload_len,
					    .kind = TRACE_drop,
					    .opcode = p->opcode,
					    .fault = (uint8_t)f,
					    .state = qp_state_of(qp) });
}

void
fault_charge(struct worker *w, struct burst *b, uint32_t i, struct charge c)
{
	c.fault %= FAULT_MAX;
	count(w, b->port[i], b->qp[i], (enum stats_counter)w->fault_stat[c.fault]);
	record(w, b, i, c);
}

/** All of one pool, and nothing to undo about any of them? Then they go back as they are. */
static bool
are_raw(struct rte_mbuf *const *m, uint32_t n)
{
	uint32_t odd = 0;

	for (uint32_t i = 0; i < n; i++)
		odd |= (m[i]->pool != m[0]->pool) | (rte_mbuf_refcnt_read(m[i]) != 1) |
		       (m[i]->nb_segs != 1) | !RTE_MBUF_DIRECT(m[i]);
	return odd == 0;
}

void
mbufs_free_spare(struct worker *w)
{
	uint32_t n = w->spare_n;

	w->spare_n = 0;
	if (n == 0)
		return;
	if (LIKELY(are_raw(w->spare, n)))
		rte_mempool_put_bulk(w->spare[0]->pool, (void *const *)w->spare, n);
	else
		rte_pktmbuf_free_bulk(w->spare, n);
}
