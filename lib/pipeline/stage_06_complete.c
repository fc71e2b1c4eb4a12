/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 6: give every response to its QP's requester. Carrying the verdict out is in
 * send_actions.c.
 */
#include "count.h"
#include "drops.h"
#include "sending.h"
#include "stage.h"

static void
trace_response(struct worker *w, const struct qp *qp, const struct wire_pkt *p,
	const struct requester_verdict *v)
{
	bool aeth = op_has(p->op, OPF_AETH);

	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = qp->qpn,
				    .psn = p->psn.v,
				    .msn = aeth ? wire_aeth(p).msn : 0,
				    .len = p->payload_len,
				    .rule = send_rule(v),
				    .kind = TRACE_rx_resp,
				    .opcode = p->opcode,
				    .syndrome = aeth ? wire_aeth(p).syndrome : 0,
				    .fault = v->fault,
				    .state = qp_state_of(qp) });
}

/** Is it all of the answer to a request? Otherwise part of one, or there already. */
static bool
is_whole(const struct requester *r, const struct requester_verdict *v)
{
	const struct requester_wr *wr;

	if ((v->act & REQACT_COMPLETE) == 0)
		return false;
	wr = &r->wr[v->head_was & r->wr_mask];
	return wr->opcode != WR_RDMA_READ || wr->len <= r->pmtu;
}

/** Is the next packet a part of a READ of the same QP, which comes here, too? */
static inline bool
more_follows(const struct burst *b, uint32_t i)
{
	return i + 1 < b->n && b->qp[i + 1] == b->qp[i] && op_has(b->pkt[i + 1].op, OPF_READ) &&
	       op_has(b->pkt[i + 1].op, OPF_MIDDLE);
}

void
stage_complete(struct worker *w, struct burst *b, uint32_t i)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];
	struct requester_verdict v;
	bool fatal;

	ASSERT(op_has(p->op, OPF_RESPONSE));
	requester_response(&qp->req, p, w->now, &v);
	if (op_has(p->op, OPF_ONLY) && UNLIKELY(!is_whole(&qp->req, &v)))
		b->parts |= BIT32(i);
	count(w, b->port[i], qp, STAT_rx_responses);
	if (UNLIKELY(v.fault != VERDICT_NO_FAULT)) {
		fatal = (v.act & (REQACT_ERROR | REQACT_EVENT)) != 0;
		pipeline_fault_charge(w, b, i,
			(struct charge){ .rule = send_rule(&v),
				.fault = v.fault,
				.impact = fatal ? ERRBUF_FATAL : ERRBUF_DROP });
	}
	pipeline_act_response(w, qp, p, &v, more_follows(b, i));
	if (traced(w, qp))
		trace_response(w, qp, p, &v);
}
