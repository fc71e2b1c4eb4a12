/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 6: give every request to its QP's responder. Here are the facts that the responder asks
 * for; carrying its verdict out is in actions.c.
 */
#include "acks.h"
#include "answers.h"
#include "congestion.h"
#include "count.h"
#include "credits.h"
#include "drops.h"
#include "failure.h"
#include "intake.h"
#include "kept.h"
#include "local.h"
#include "qp_control.h"
#include "shared_rq.h"
#include "spare.h"
#include "stage.h"
#include "stage_06_fast.h"
#include "verdict.h"

/**
 * Read the receive queue's head into the QP's private copy, then check the copy: the host may
 * still be writing. @return false if nothing is posted.
 */
static bool
head_copy(struct qp *qp)
{
	struct ring_recv_copy *c = qp->copy;
	const struct ring_recv_wqe *wqe;
	uint32_t n;

	ASSERT(qp->active == NULL); /* the copy is of no WQE in use */
	if (UNLIKELY((qp->flags & QPF_RECV_FEED) != 0)) {
		c->wr_id = qp->feed_next;
		c->num_sge = 1;
		c->sge[0] = (struct ring_sge){ .addr = qp->feed_va +
						       (uint64_t)qp->feed_next * qp->feed_size,
			.length = qp->feed_size,
			.lkey = qp->feed_lkey };
		return true;
	}
	if (ring_consume_count(&qp->rq) == 0)
		return false;
	ASSERT(c != NULL); /* a compact QP has work before something is posted to it */
	wqe = ring_consume_peek(&qp->rq, 0);
	c->wr_id = wqe->wr_id;
	n = *(const _Atomic uint32_t *)&wqe->num_sge;
	c->num_sge = n;
	if (LIKELY(n <= qp->max_recv_sge && n <= RING_MAX_SGE))
		for (uint32_t i = 0; i < n; i++)
			c->sge[i] = wqe->sge[i];
	return true;
}

/** Is there a WQE besides that of the open SEND? The private copy stays as it is. */
static bool
has_another(struct qp *qp)
{
	if ((qp->flags & QPF_RECV_FEED) != 0)
		return true;
	return (qp->flags & QPF_SRQ) != 0 ? pipeline_srq_has_wqe(qp)
					  : ring_consume_count(&qp->rq) != 0;
}

/**
 * State of the WQE that this packet uses: the open SEND's, or the queue's head. The immediate of a
 * WRITE never goes into the open SEND's (RX-PREC-05), but that of a SEND that was cut off is the
 * head (class D1).
 */
static void
wqe_facts(struct worker *w, struct qp *qp, opflags_t op, struct responder_facts *f)
{
	struct ring_recv_copy *c = qp->copy;

	if (qp->active != NULL)
		f->has_wqe =
			LIKELY(op_has(op, OPF_SEND)) || !qp->resp.wqe_active || has_another(qp);
	else if (UNLIKELY((qp->flags & QPF_SRQ) != 0))
		f->has_wqe = pipeline_srq_head(w, qp, f);
	else
		f->has_wqe = head_copy(qp);
	if (!f->has_wqe)
		return;
	if (UNLIKELY(c->num_sge > qp->max_recv_sge || c->num_sge > RING_MAX_SGE)) {
		c->num_sge = 0;
		f->wqe_fault = WQE_FAULT_MALFORMED;
		return;
	}
	f->wqe_bytes = mem_sge_bytes(c->sge, c->num_sge);
	if (UNLIKELY(mem_check_sges(w->mem, c->sge, c->num_sge, qp_recv_pd(qp),
			     ACCESS_LOCAL_WRITE) != MEM_OK))
		f->wqe_fault = WQE_FAULT_PROT;
}

/** The first byte of what a key names; 0 where it names nothing. */
static __attribute__((noinline)) uint64_t
first_of(const struct mem_table *t, uint32_t key)
{
	const struct mem_region *r = mem_table_find(t, key);

	return r != NULL ? r->va : 0;
}

static inline void
gather_facts(struct worker *w, struct context *c, struct responder_facts *f)
{
	struct qp *qp = c->qp;
	struct responder_query q;

	responder_query(&qp->resp, c->p, &q);
	*f = (struct responder_facts){ 0 };
	if (UNLIKELY((qp->flags & QPF_XRC) != 0) && !pipeline_srq_select(w, qp, c->p)) {
		f->wqe_fault = WQE_FAULT_NO_SRQ;
		return;
	}
	if (UNLIKELY(q.whole))
		q.va = first_of(w->mem, q.rkey);
	c->host = NULL;
	c->va = q.va;
	c->len = q.len;
	if (q.key) {
		f->key_ok = mem_check(w->mem, q.rkey, mem_user(qp->pd, qp->qpn), q.va, q.len,
				    q.access, &c->host) == MEM_OK;
		/* No atomic unit does that; registration keeps such regions away. */
		if (UNLIKELY(op_has(c->p->op, OPF_ATOMIC | OPF_ATOMIC_WRITE)) && f->key_ok &&
			((uintptr_t)c->host & 7) != 0)
			f->exec_fault = true;
	}
	if (q.wqe)
		wqe_facts(w, qp, c->p->op, f);
	if (UNLIKELY(op_has(c->p->op, OPF_READ | OPF_ATOMIC | OPF_PLACEMENT)) && !has_side(w, qp))
		f->short_of_resources = true;
	if (UNLIKELY(q.invalidate))
		f->invalidate_ok = mem_check_invalidate(
					   w->mem, q.inv_key, mem_user(qp->pd, qp->qpn)) == MEM_OK;
	if (UNLIKELY((qp->resp.knobs & RESP_KNOB_KEEP) != 0))
		f->may_keep = responder_region(&qp->resp, c->p->psn) == REGION_AHEAD &&
			      pipeline_kept_room(w, qp);
	if (UNLIKELY((qp->resp.knobs & (RESP_KNOB_CREDITS | RESP_KNOB_RQ_LIMIT)) != 0)) {
		f->free_wqes = pipeline_credits_left(qp);
		f->rq_limit = qp_rq_limit(qp);
	}
}

/**
 * A WQE of an SRQ is taken after the verdict. Where a QP of another worker was faster, the state
 * goes back and the responder decides again, with the WQE that is the head now.
 */
static __attribute__((noinline)) void
receive_shared(
	struct worker *w, struct context *c, struct responder_facts *f, struct responder_verdict *v)
{
	const struct responder before = c->qp->resp;

	responder_receive(&c->qp->resp, c->p, f, w->now, v);
	while ((v->act & ACT_TAKE_WQE) != 0 && UNLIKELY(!pipeline_srq_take(w, c->qp, f))) {
		c->qp->resp = before;
		gather_facts(w, c, f);
		responder_receive(&c->qp->resp, c->p, f, w->now, v);
	}
}

static const uint16_t counter_stat[] = {
	[RC_NONE] = STAT_MAX,
	[RC_SEND] = STAT_rx_send_requests,
	[RC_WRITE] = STAT_rx_write_requests,
	[RC_READ] = STAT_rx_read_requests,
	[RC_ATOMIC] = STAT_rx_atomic_requests,
	[RC_ATOMIC_WRITE] = STAT_rx_atomic_write_requests,
	[RC_FLUSH] = STAT_rx_flush_requests,
	[RC_OUT_OF_SEQUENCE] = STAT_out_of_sequence,
	[RC_DUPLICATE] = STAT_duplicate_request,
	[RC_OUT_OF_BUFFER] = STAT_out_of_buffer,
	/* These are counted when the NAK leaves. */
	[RC_RNR_OTHER] = STAT_MAX,
	[RC_NAK_INVALID] = STAT_MAX,
	[RC_NAK_ACCESS] = STAT_MAX,
	[RC_NAK_OPERATION] = STAT_MAX,
	[RC_NAK_SRQ] = STAT_MAX,
	[RC_LOCAL_LENGTH] = STAT_resp_local_length_error,
	[RC_SILENT] = STAT_resp_silent_drops,
};

void
pipeline_trace_request(struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = c->qp->qpn,
				    .psn = c->p->psn.v,
				    .msn = c->qp->resp.msn,
				    .len = c->p->payload_len,
				    .rule = v->rule,
				    .kind = TRACE_rx,
				    .opcode = c->p->opcode,
				    .syndrome = v->syndrome,
				    .fault = v->fault,
				    .state = qp_state_of(c->qp) });
}

/** A sequence NAK or RNR NAK is sent once; what comes after it is dropped. */
static uint8_t
impact_of(const struct responder_verdict *v)
{
	if ((v->act & ACT_ERR) != 0)
		return ERRBUF_FATAL;
	if ((v->act & ACT_NAK) == 0)
		return ERRBUF_DROP;
	return (v->syndrome & AETH_KIND_MASK) == AETH_RNR ? ERRBUF_RNR : ERRBUF_NAK;
}

/** It is not taken: why, a count if it has one, a record. */
static __attribute__((noinline)) void
refused_request(struct worker *w, struct burst *b, uint32_t i, const struct context *c,
	const struct responder_verdict *v)
{
	const struct charge charge = { .rule = v->rule, .fault = v->fault, .impact = impact_of(v) };

	if ((v->act & ACT_ERR) != 0)
		pipeline_failure_of_request(w, c, v);
	if (v->fault != VERDICT_NO_FAULT)
		pipeline_fault_charge(w, b, i, charge);
	else
		pipeline_refusal_record(w, b, i, charge);
}

/** @return false: the QP failed meanwhile, by a full completion queue. */
static __attribute__((noinline)) bool
resync(struct worker *w, struct burst *b, uint32_t i)
{
	const struct context c = { .qp = b->qp[i], .p = &b->pkt[i] };
	const struct responder_verdict cut = { .wc_status = WC_REM_INV_REQ_ERR,
		.wc_opcode = WC_RECV,
		.fault = VERDICT_NO_FAULT,
		.solicited = 1,
		.rule = RULE_CUT_OFF };
	const uint32_t what = responder_resync(&c.qp->resp, c.p);

	if ((what & RESYNC_GAP) != 0)
		count(w, b->port[i], c.qp, STAT_out_of_sequence);
	if ((what & RESYNC_CUT) == 0)
		return true;
	if (traced(w, c.qp))
		pipeline_trace_request(w, &c, &cut);
	pipeline_message_cut(w, &c, &cut);
	return qp_receives(qp_state_of(c.qp));
}

static inline void
request(struct worker *w, struct burst *b, uint32_t i)
{
	struct context c = { .qp = b->qp[i], .p = &b->pkt[i] };
	struct responder_facts f;
	struct responder_verdict v;
	uint16_t stat;

	ASSERT(!op_has(c.p->op, OPF_RESPONSE | OPF_CNP));
	if (UNLIKELY(!wire_is_acked(c.qp->resp.transport)) && !resync(w, b, i))
		return;
	gather_facts(w, &c, &f);
	if (UNLIKELY((c.qp->flags & QPF_SRQ) != 0))
		receive_shared(w, &c, &f, &v);
	else
		responder_receive(&c.qp->resp, c.p, &f, w->now, &v);

	ASSERT(v.counter < ARRAY_LEN(counter_stat));
	stat = counter_stat[v.counter];
	if (stat != STAT_MAX)
		count(w, b->port[i], c.qp, (enum stats_counter)stat);
	if (UNLIKELY(v.fault != VERDICT_NO_FAULT) ||
		UNLIKELY((v.act & (ACT_DROP | ACT_NAK | ACT_ERR)) != 0))
		refused_request(w, b, i, &c, &v);
	pipeline_act_responder(w, &c, &v);
	if (traced(w, c.qp))
		pipeline_trace_request(w, &c, &v);
	if (UNLIKELY((v.act & ACT_KEEP) != 0)) {
		count(w, b->port[i], c.qp, STAT_kept_requests);
		if (UNLIKELY(w->local_burst))
			pipeline_local_own(w, b->m[i]);
		pipeline_kept_put(w, b, i);
	}
}

/** RESP-SEQ-14, RESP-SEQ-15: what was kept is next, or something before it is still missing. */
static __attribute__((noinline)) void
request_kept(struct worker *w, struct qp *qp)
{
	struct responder_verdict v;
	struct burst *b, *some = NULL;
	uint32_t n = 0;

	while ((b = pipeline_kept_next(w, qp, n)) != NULL) {
		if (!pipeline_fast_kept(w, b, n))
			request(w, b, n);
		some = b;
		if (++n == PIPELINE_BURST) {
			rte_pktmbuf_free_bulk(b->m, n); /* not those that are kept once more */
			n = 0;
		}
	}
	if (n != 0)
		rte_pktmbuf_free_bulk(some->m, n);
	if (!pipeline_kept_any(w, qp) || !responder_still_missing(&qp->resp, &v))
		return;
	pipeline_act_responder(w, &(const struct context){ .qp = qp }, &v);
}

/** What is no request: CNPs, and responses, which are stage 6's. */
static void
other(struct worker *w, struct burst *b, uint32_t i)
{
	struct qp *qp = b->qp[i];

	if (op_has(b->pkt[i].op, OPF_CNP)) {
		pipeline_congestion_notified(w, b->port[i], qp);
		return;
	}
	stage_complete(w, b, i);
}

/** Full path: any packet. */
static __attribute__((noinline)) void
respond(struct worker *w, struct burst *b, uint32_t i)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];

	ASSERT(qp != NULL && qp->worker == w->index && qp->qpn == p->dest_qpn);
	ASSERT(p->faults == 0); /* stage 5 has dropped the others */
	if (UNLIKELY(w->local_burst))
		local_serve(w, b, i);
	/* A packet before this one may have been the QP's last (QP-14). */
	if (UNLIKELY(!qp_receives(qp_state_of(qp)))) {
		b->pkt[i].faults = FAULT_BIT(FAULT_QP_STATE);
		pipeline_drop_faulty(w, b, i);
		return;
	}
	count(w, b->port[i], qp, STAT_rcvd_pkts);
	qp_count(w, qp, STAT_rx_packets, 1);
	qp_count(w, qp, STAT_rx_bytes, p->frame_len);
	if (UNLIKELY((p->flags & PKT_CE) != 0))
		pipeline_congestion_mark(w, b->port[i], qp, p);
	if (UNLIKELY(op_has(p->op, OPF_RESPONSE | OPF_CNP))) {
		other(w, b, i);
		return;
	}
	request(w, b, i);
	if (UNLIKELY((qp->resp.knobs & RESP_KNOB_KEEP) != 0) && qp->kept != 0)
		request_kept(w, qp);
}

void
stage_respond(struct worker *w, struct burst *b)
{
	uint32_t done = 0;
	struct fast f;

	if (b->n == 0)
		return;
	b->parts = 0;
	if (UNLIKELY(w->local_burst))
		local_serve(w, b, 0); /* a QP can fail by what the fast path takes, too */
	pipeline_fast_begin(w, b, &f);
	for (uint32_t i = 0; (i = pipeline_fast_run(w, b, i, &f)) < b->n; i++) {
		f.calm = false;
		/* The full path may answer in the buffer of a packet before this one. */
		mbufs_done(w, b, done, i, f.reused);
		if (UNLIKELY(w->intake_on))
			pipeline_intake_charge(w, b, i);
		respond(w, b, i);
		if (LIKELY(b->m[i] != NULL)) /* kept */
			mbuf_done(w, b->m[i]);
		done = i + 1;
	}
	mbufs_done(w, b, done, b->n, f.reused);
	naks_send(w);
	pipeline_fast_end(w, b, &f);
	if (UNLIKELY(w->answering != 0))
		pipeline_answers_beside(w, b);
}
