/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that leave early, and faults in general: a counter, a record, a line in the recorder. */
#include "count.h"
#include "drops.h"
#include "failure.h"
#include "local.h"
#include "reply.h"
#include "spare.h"

/** The memory that the packet which killed the QP asked for. @return false: it was not that. */
static bool
record_memory(const struct qp *qp, uint16_t rule, struct mem_refusal *to)
{
	const struct qp_failure *f = qp != NULL ? qp->failure : NULL;

	if (f == NULL || f->rule != rule || f->mem.why == MEM_WHY_NONE)
		return false;
	*to = f->mem;
	return true;
}

/** RX-ERR-01: syndrome and headers, where the error buffer has room. @return false: it had none. */
static __attribute__((noinline)) bool
record(struct worker *w, const struct burst *b, uint32_t i, struct charge c)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct errbuf_record *r = trace_errbuf_slot(w->errbuf);
	uint32_t len;

	ASSERT(w->records_left != 0);
	if (r == NULL)
		return false;
	w->records_left--;
	len = p->frame_len < ERRBUF_HEADER_BYTES ? p->frame_len : ERRBUF_HEADER_BYTES;
	/* Field by field: clearing the record first would write its header twice. */
	r->time_ns = w->now;
	r->faults = p->faults | (c.fault < FAULT_MAX ? FAULT_BIT(c.fault) : 0);
	r->qpn = p->dest_qpn;
	r->psn = p->psn.v;
	r->frame_len = p->frame_len;
	r->header_len = (uint16_t)len;
	r->port = w->conf.ports[b->port[i]].id;
	r->rule = c.rule;
	r->opcode = p->opcode;
	r->charged = c.fault;
	r->impact = c.impact;
	r->memory = c.impact == ERRBUF_FATAL && record_memory(b->qp[i], c.rule, &r->refusal);
	if (UNLIKELY(w->local_burst))
		pipeline_local_seal(w, b->m[i]);
	memcpy(r->header, p->frame, len);
	trace_errbuf_commit(w->errbuf);
	return true;
}

bool
pipeline_drop_recorded(struct worker *w, const struct burst *b, uint32_t i, struct charge c)
{
	if (record_wanted(w))
		return record(w, b, i, c);
	errbuf_leave_out(w->errbuf, 1);
	return false;
}

static __attribute__((noinline)) void
trace_drop(struct worker *w, const struct qp *qp, const struct wire_pkt *p, enum wire_fault f)
{
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = p->dest_qpn,
				    .psn = p->psn.v,
				    .len = p->payload_len,
				    .kind = TRACE_drop,
				    .opcode = p->opcode,
				    .fault = (uint8_t)f,
				    .state = qp_state_of(qp) });
}

/** wire_fault_winner(), of which most packets have one only. */
static inline enum wire_fault
winner(fault_mask_t m)
{
	enum wire_fault f;

	if (LIKELY(m != 0 && (m & (m - 1)) == 0))
		return (enum wire_fault)__builtin_ctzll(m);
	f = wire_fault_winner(m);
	return f != FAULT_MAX ? f : FAULT_TRUNCATED; /* cannot be: every fault bit is listed */
}

/** What else a fault is counted as, or STAT_MAX. */
static inline enum stats_counter
also_counted(uint8_t fault)
{
	return fault == FAULT_ICRC  ? STAT_rx_icrc_encapsulated
	       : fault == FAULT_CNP ? STAT_rp_cnp_ignored
				    : STAT_MAX;
}

static inline void
count_in(struct stats_block *b, const struct drop_run *run)
{
	stats_add(b, (enum stats_counter)run->stat, run->n);
	if (run->also != STAT_MAX)
		stats_add(b, (enum stats_counter)run->also, run->n);
}

void
pipeline_drop_flush(struct worker *w, struct drop_run *run)
{
	drop_next_qp(w, run, NULL);
	if (run->n == 0)
		return;
	ASSERT(run->fault < FAULT_MAX);
	ASSERT(run->recorded + run->left_out <= run->n);
	count_in(&w->stats, run);
	count_in(&w->port_stats[run->port], run);
	if (w->errbuf != NULL) {
		uint32_t skipped = run->n - run->recorded - run->left_out;

		errbuf_leave_out(w->errbuf, skipped);
		stats_add(&w->stats, STAT_error_buffer_lost, skipped + run->left_out);
		stats_add(
			&w->port_stats[run->port], STAT_error_buffer_lost, skipped + run->left_out);
	}
	*run = (struct drop_run){ .n = 0 };
}

void
pipeline_drop_add(struct worker *w, struct drop_run *run, struct burst *b, uint32_t i)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];
	enum wire_fault f = winner(p->faults);

	if (f != run->fault || b->port[i] != run->port)
		pipeline_drop_flush(w, run);
	if (qp != run->qp)
		drop_next_qp(w, run, qp);
	run->faults = p->faults;
	run->fault = (uint8_t)f;
	run->stat = w->fault_stat[f];
	run->also = (uint16_t)also_counted(run->fault);
	run->port = b->port[i];
	run->qp_n++;
	if (record_wanted(w)) {
		if (record(w, b, i, (struct charge){ .fault = (uint8_t)f }))
			run->recorded++;
		else
			run->left_out++;
	}
	run->silent = !record_wanted(w) && (qp == NULL || !traced(w, qp));
	if (qp != NULL && traced(w, qp))
		trace_drop(w, qp, p, f);
}

void
pipeline_drop_faulty(struct worker *w, struct burst *b, uint32_t i)
{
	struct drop_run run = { .n = 0 };

	pipeline_drop_add(w, &run, b, i);
	pipeline_drop_flush(w, &run);
}

void
pipeline_fault_charge(struct worker *w, struct burst *b, uint32_t i, struct charge c)
{
	c.fault %= FAULT_MAX;
	count(w, b->port[i], b->qp[i], (enum stats_counter)w->fault_stat[c.fault]);
	pipeline_refusal_record(w, b, i, c);
}

void
pipeline_refusal_record(struct worker *w, struct burst *b, uint32_t i, struct charge c)
{
	if (w->errbuf != NULL && !pipeline_drop_recorded(w, b, i, c))
		count(w, b->port[i], NULL, STAT_error_buffer_lost);
}

/** All of one pool, and nothing to undo about any of them? Then they go back as they are. */
static bool
are_raw(struct rte_mbuf *const *m, uint32_t n)
{
	const uint64_t pool = (uintptr_t)m[0]->pool;
	uint64_t special = 0;

	for (uint32_t i = 0; i < n; i++)
		special |= (pool ^ (uintptr_t)m[i]->pool) | mbuf_special(m[i]);
	return special == 0;
}

void
pipeline_mbufs_free_spare(struct worker *w)
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
