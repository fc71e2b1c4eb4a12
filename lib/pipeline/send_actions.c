/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carry a requester's verdict out: data to memory first, then the completions that tell of it, then
 * what follows for the QP.
 */
#include "answers.h"
#include "complete.h"
#include "congestion.h"
#include "count.h"
#include "failure.h"
#include "flush.h"
#include "local.h"
#include "migration.h"
#include "report.h"
#include "send_complete.h"
#include "send_feed.h"
#include "sending.h"
#include "verdict.h"

/** Of a QP and its worker; and of its port, unless that is gone. */
static void
count_qp(struct worker *w, struct qp *qp, enum stats_counter s)
{
	uint8_t port = w->port_of[qp->port];

	if (LIKELY(port != PORT_NONE)) {
		count(w, port, qp, s);
		return;
	}
	stats_inc(&w->stats, s);
	qp_count(w, qp, s, 1);
}

/** What a cause or outcome counts as: mlx5's name and rxe's. */
static void
count_cause(struct worker *w, struct qp *qp, uint8_t cause)
{
	static const uint16_t stat[][2] = {
		[QC_NONE] = { STAT_MAX, STAT_MAX },
		[QC_RNR_NAK] = { STAT_rcvd_rnr_err, STAT_rnr_nak_retry_err },
		[QC_SEQ_NAK] = { STAT_packet_seq_err, STAT_rcvd_seq_err },
		[QC_IMPLIED_NAK] = { STAT_implied_nak_seq_err, STAT_MAX },
		[QC_TIMEOUT] = { STAT_local_ack_timeout_err, STAT_MAX },
		[QC_TIMEOUT_EARLY] = { STAT_local_ack_timeout_early, STAT_MAX },
		[QC_RETRY_EXCEEDED] = { STAT_retry_exceeded_err,
			STAT_req_transport_retries_exceeded },
		[QC_RNR_EXCEEDED] = { STAT_retry_rnr_exceeded_err, STAT_req_rnr_retries_exceeded },
		[QC_REMOTE_INVALID] = { STAT_req_remote_invalid_request, STAT_MAX },
		[QC_REMOTE_ACCESS] = { STAT_req_remote_access_errors, STAT_MAX },
		[QC_REMOTE_OPERATION] = { STAT_req_remote_operation_errors, STAT_MAX },
		[QC_UNMATCHED] = { STAT_rx_responses_unmatched, STAT_MAX },
	};

	if (LIKELY(cause == QC_NONE) || cause >= ARRAY_LEN(stat))
		return;
	for (uint32_t i = 0; i < 2; i++)
		if (stat[cause][i] != STAT_MAX)
			count_qp(w, qp, (enum stats_counter)stat[cause][i]);
}

/* ---- completions ----------------------------------------------------------------------------- */

int
pipeline_sends_complete(struct worker *w, struct qp *qp, uint32_t first, uint32_t n)
{
	struct succeeded all = { 0 };
	const int rc = sends_complete(w, qp, first, n, NULL, false, &all);

	succeeded_count(w, &all);
	return rc;
}

/** The request that failed: its completion has an error, signalled or not. */
static int
complete_error(struct worker *w, struct qp *qp, const struct wire_pkt *p,
	const struct requester_verdict *v)
{
	const struct requester_wr *wr = &qp->req.wr[v->failed & qp->req.wr_mask];

	stats_inc(&w->stats, STAT_req_cqe_error);
	qp_count(w, qp, STAT_req_cqe_error, 1);
	pipeline_sendq_release(qp, 1);
	if (UNLIKELY(is_fed(qp)))
		return 0;
	return pipeline_cq_add(w, qp, qp->send_cq,
		&(const struct ring_completion){ .wr_id = wr->wr_id,
			.vendor_err = v->fatal,
			.psn = p != NULL ? p->psn.v : qp->req.una.v,
			.cause = send_rule(v),
			.status = v->wc_status,
			.opcode = verbs_wc_opcode(wr->opcode),
			.peer_opcode = p != NULL ? p->opcode : 0 });
}

/**
 * The event that irdma raises beside each error completion (AEQ-11); knob ae.with_cqe asks for it.
 */
static uint8_t
event_beside(uint8_t status)
{
	switch (status) {
	case WC_LOC_PROT_ERR:
	case WC_REM_ACCESS_ERR:
		return EVENT_QP_ACCESS_ERR;
	case WC_REM_INV_REQ_ERR:
		return EVENT_QP_REQ_ERR;
	default:
		return EVENT_QP_FATAL;
	}
}

/* ---- failures -------------------------------------------------------------------------------- */

/** A request at fault stops the send queue alone where nothing is owed to the peer (QP-11). */
static enum qp_state
state_after(const struct qp *qp, const struct requester_verdict *v)
{
	const bool alone = (v->act & REQACT_EVENT) == 0 && !wire_is_acked(qp->req.transport);

	return alone ? QPS_SQE : QPS_ERR;
}

/**
 * The QP goes to ERR by what its requester met: state, reports, then both queues are flushed.
 * Nothing is sent any more, not even what is owed (QP-14). In SQE its receive side lives on.
 */
static void
failed(struct worker *w, struct qp *qp, const struct wire_pkt *p, const struct requester_verdict *v,
	enum mbox_source source)
{
	struct report r = pipeline_report_of_send(qp, p, v, source);
	enum qp_state to = state_after(qp, v);

	pipeline_failure_of_send(w, qp, v);
	pipeline_report_failure(w, qp, &r, to);
	if ((v->act & REQACT_ERROR) != 0 && complete_error(w, qp, p, v) != 0) {
		to = QPS_ERR; /* class F */
		atomic_store_explicit(&qp->state, to, memory_order_release);
		pipeline_report_lost(w, qp, &r);
	}
	if ((v->act & REQACT_EVENT) != 0) {
		pipeline_report_event(w, qp, &r);
	} else if ((qp->flags & QPF_EVENT_WITH_CQE) != 0) {
		r.event = event_beside(v->wc_status);
		pipeline_report_event(w, qp, &r);
	}
	pipeline_answers_drop(w, qp);
	pipeline_flush_sends(w, qp);
	if (to == QPS_ERR)
		pipeline_flush_receives(w, qp);
}

/** Where READ data and ATOMIC results go. @return 0, or -EFAULT: nothing of it was written. */
static int
place(struct worker *w, struct qp *qp, const struct wire_pkt *p, const struct requester_verdict *v)
{
	const struct requester_wr *wr = &qp->req.wr[v->position & qp->req.wr_mask];
	const struct ring_sge *sges = request_sges(qp, v->position);
	enum mem_fault fault;

	if ((v->act & REQACT_PLACE) != 0)
		fault = payload_scatter(w, p, sges, wr->num_sge, qp->pd, v->offset);
	else /* in host byte order (REQ-06) */
		fault = mem_scatter(
			w->mem, sges, wr->num_sge, qp->pd, 0, &v->original, sizeof(v->original));
	return fault == MEM_OK ? 0 : -EFAULT;
}

static void
drained(struct worker *w, struct qp *qp)
{
	const struct requester_verdict v = { .event = EVENT_SQ_DRAINED, .fault = VERDICT_NO_FAULT };

	const struct report r = pipeline_report_of_send(qp, NULL, &v, SOURCE_SQ);

	if ((qp->flags & QPF_SQD_NOTIFY) != 0)
		pipeline_report_event(w, qp, &r);
}

void
pipeline_sends_overflow(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	struct requester_verdict v;

	requester_cq_overflow(&qp->req, &v);
	v.act |= REQACT_EVENT;
	v.event = EVENT_QP_FATAL;
	failed(w, qp, p, &v, SOURCE_CQ);
}

/** What most verdicts have none of. */
static __attribute__((noinline)) void
rare(struct worker *w, struct qp *qp, const struct wire_pkt *p, const struct requester_verdict *v)
{
	if ((v->act & REQACT_MIGRATE) != 0)
		pipeline_migration_exhausted(w, qp, p, send_rule(v));
	else if ((v->act & REQACT_DRAINED) != 0)
		drained(w, qp);
	if ((v->act & (REQACT_ROUND | REQACT_RESEND)) == REQACT_ROUND)
		pipeline_congestion_heard(w, qp, p, v);
}

/** May the QP send now, and has it anything to send? */
static inline void
goes_on(struct worker *w, struct qp *qp, const struct requester_verdict *v)
{
	const struct requester *r = &qp->req;

	/* Nothing is sent any more: it may stand in line for its flush, by the senders' links. */
	if (UNLIKELY(r->dead))
		return;
	if (UNLIKELY((v->act & REQACT_RESEND) != 0) || UNLIKELY(!requester_is_free(r))) {
		if (requester_is_shut(r))
			return;
		w->hurry |= HURRY_REQUESTS;
	}
	if ((v->act & REQACT_RESEND) != 0 || r->sending != r->tail || is_fed(qp))
		pipeline_send_wake(w, qp);
}

void
pipeline_act_response(struct worker *w, struct qp *qp, const struct wire_pkt *p,
	struct requester_verdict *v, bool more)
{
	count_cause(w, qp, v->cause);
	count_cause(w, qp, v->outcome);
	if ((v->act & (REQACT_PLACE | REQACT_ATOMIC)) != 0 && UNLIKELY(place(w, qp, p, v) != 0)) {
		pipeline_failure_of_list(w, qp, v->position);
		requester_local_fault(&qp->req, v->position, WR_FAULT_PROT, v);
	}
	if ((v->act & REQACT_COMPLETE) != 0 &&
		UNLIKELY(pipeline_sends_complete(w, qp, v->head_was, v->completed) != 0)) {
		/* The CQ is full and the QP fails: a fault found above cannot be completed. */
		pipeline_sends_overflow(w, qp, p);
		return;
	}
	if (UNLIKELY((v->act & (REQACT_ERROR | REQACT_EVENT)) != 0)) {
		if (!pipeline_feed_rests(w, qp, v))
			failed(w, qp, p, v, SOURCE_SQ);
		return;
	}
	if (UNLIKELY((v->act & (REQACT_DRAINED | REQACT_MIGRATE | REQACT_ROUND)) != 0))
		rare(w, qp, p, v);
	if ((v->act & REQACT_TIMER) != 0)
		timer_update(w, qp);
	if (UNLIKELY((v->act & REQACT_RESEND) != 0))
		pipeline_congestion_heard(w, qp, p, v);
	else if (more)
		return;
	goes_on(w, qp, v);
}

void
pipeline_sends_left(struct worker *w, struct qp *qp, psn_t end)
{
	struct requester_verdict v;

	requester_left(&qp->req, end, w->now, &v);
	pipeline_act_requester(w, qp, NULL, &v);
}

void
pipeline_sqd(struct worker *w, struct qp *qp, bool on)
{
	if (requester_drain(&qp->req, on) && on)
		drained(w, qp);
	pipeline_send_wake(w, qp);
}
