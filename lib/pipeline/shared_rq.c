/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WQEs of a shared receive queue: read for the facts, taken with the verdict. Its QPs may be on any
 * worker. Each event is raised once, by the first worker that finds the reason.
 */
#include "report.h"
#include "shared_rq.h"
#include "verdict.h"

/** SRQ-02: fewer WQEs are left than the limit, which is disarmed by that. */
static void
check_limit(struct worker *w, struct qp_srq *srq, uint32_t left)
{
	uint32_t limit = atomic_load_explicit(&srq->limit, memory_order_relaxed);

	if (LIKELY(left >= limit))
		return;
	if (atomic_compare_exchange_strong_explicit(
		    &srq->limit, &limit, 0, memory_order_acq_rel, memory_order_relaxed))
		pipeline_report_srq(w, srq, EVENT_SRQ_LIMIT_REACHED);
}

void
pipeline_srq_fail(struct worker *w, struct qp_srq *srq)
{
	if (srq == NULL || atomic_exchange_explicit(&srq->error, true, memory_order_acq_rel))
		return;
	ring_srq_fail(&srq->ring); /* before the event: who knows of it cannot post any more */
	pipeline_report_srq(w, srq, EVENT_SRQ_ERR);
}

static void
set_srq(struct qp *qp, struct qp_srq *srq)
{
	qp->srq = srq;
	qp->recv_cq = srq != NULL ? srq->cq : NULL;
	if (srq != NULL)
		qp->max_recv_sge = (uint8_t)srq->max_sge;
}

bool
pipeline_srq_select(const struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	struct qp_srq *srq =
		op_has(p->op, OPF_XRCETH) ? qp_srq_lookup(w->srqs, wire_xrceth(p), qp->xrcd) : NULL;

	if (srq != NULL)
		qp->pd = srq->pd;
	if (UNLIKELY(qp->resp.wqe_active)) {
		pipeline_srq_again(w, qp);
		return srq != NULL && srq == qp->srq;
	}
	set_srq(qp, srq);
	if (srq == NULL)
		return false;
	qp->srq_num = srq->num;
	qp->srq_id = srq->id;
	return true;
}

void
pipeline_srq_again(const struct worker *w, struct qp *qp)
{
	struct qp_srq *srq = qp_srq_lookup(w->srqs, qp->srq_num, qp->xrcd);

	if (srq != NULL && srq->id != qp->srq_id)
		srq = NULL;
	set_srq(qp, srq);
	if (srq == NULL)
		qp->active = NULL;
}

bool
pipeline_srq_head(struct worker *w, struct qp *qp, struct responder_facts *f)
{
	struct qp_srq *srq = qp->srq;
	int got = -1;

	if (LIKELY(!atomic_load_explicit(&srq->error, memory_order_relaxed)))
		got = ring_srq_peek(&srq->ring, srq->max_sge, qp->copy);
	if (LIKELY(got > 0))
		return true;
	if (got == 0) { /* armed below the limit, and nothing left to take that would tell */
		check_limit(w, srq, 0);
		return false;
	}
	pipeline_srq_fail(w, srq);
	f->wqe_fault = WQE_FAULT_QUEUE;
	return false;
}

void
pipeline_srq_taken(struct worker *w, struct qp_srq *srq)
{
	if (UNLIKELY(atomic_load_explicit(&srq->limit, memory_order_relaxed) != 0))
		check_limit(w, srq, ring_srq_count(&srq->ring));
}

bool
pipeline_srq_has_wqe(const struct qp *qp)
{
	return atomic_load_explicit(&qp->srq->error, memory_order_relaxed) ||
	       ring_srq_count(&qp->srq->ring) != 0;
}

bool
pipeline_srq_take(struct worker *w, struct qp *qp, const struct responder_facts *f)
{
	struct qp_srq *srq = qp->srq;

	if (!ring_srq_take(&srq->ring, qp->copy))
		return false;
	if (UNLIKELY(f->wqe_fault == WQE_FAULT_MALFORMED))
		pipeline_srq_fail(w, srq);
	pipeline_srq_taken(w, srq);
	return true;
}

void
pipeline_srq_last_wqe(struct worker *w, struct qp *qp)
{
	const struct responder_verdict v = { .event = EVENT_QP_LAST_WQE_REACHED,
		.fault = VERDICT_NO_FAULT };
	const struct context c = { .qp = qp };
	const struct report r = pipeline_report_of_request(&c, &v, SOURCE_RQ);

	qp->flags |= QPF_LAST_WQE;
	pipeline_report_event(w, qp, &r);
}
