/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures and events: one builder of what the control lcore is told. */
#include "count.h"
#include "failure.h"
#include "local.h"
#include "report.h"
#include "sending.h"
#include "verdict.h"

/** What a report is about: a QP, a CQ or an SRQ. */
struct subject {
	void *object;
	uint32_t id;
	uint32_t client; /* whose; 0: the operator's */
	uint8_t state;   /* of a QP */
};

/** It hears of it with the next one. */
static __attribute__((noinline)) void
lose(struct worker *w, uint32_t client)
{
	struct qp_client *c;

	TAILQ_FOREACH (c, &w->clients, polled) {
		if (c->id == client)
			break;
	}
	if (c != NULL)
		atomic_fetch_add_explicit(&c->events_lost, 1, memory_order_relaxed);
}

/**
 * The one builder. A report that finds no room, or none for its client, is counted, and nobody
 * waits for it (AEQ-14).
 */
static void
tell(struct worker *w, enum mbox_type type, struct subject s, const struct report *r)
{
	struct mbox_msg msg = {
		.type = (uint8_t)type,
	};

	ASSERT(type == MBOX_EVENT || type == MBOX_FATAL);
	ASSERT(s.object != NULL); /* AE-09 */
	/* Member by member: a copy would read wide what was just written narrow. */
	msg.ev.source = r->source;
	msg.ev.time_ns = w->now;
	msg.ev.qpn = s.id;
	msg.ev.psn = r->psn;
	msg.ev.rule = r->rule;
	msg.ev.event = r->event;
	msg.ev.fatal = r->fatal;
	msg.ev.opcode = r->opcode;
	msg.ev.state = s.state;
	msg.ev.syndrome = r->syndrome;
	msg.ev.fault = r->fault;
	msg.ev.code = r->code;
	msg.ev.object = s.object;
	if (w->trace != NULL)
		msg.ev.trace_at = trace_head(w->trace);
	if (LIKELY(w->mbox != NULL) && LIKELY(mbox_send_up_of(w->mbox, &msg, s.client) == 0))
		return;
	stats_inc(&w->stats, STAT_aeq_overflow);
	if (type == MBOX_EVENT && s.client != 0)
		lose(w, s.client);
}

static struct subject
of_qp(struct qp *qp)
{
	return (struct subject){
		.object = qp, .id = qp->qpn, .client = qp->client, .state = qp_state_of(qp)
	};
}

/** A full CQ says nothing of its own: the report is of the QP's event. */
static uint16_t
code_of(uint16_t rule, enum mbox_source source)
{
	return source != SOURCE_CQ ? pipeline_event_code(rule) : 0;
}

struct report
pipeline_report_of_request(
	const struct context *c, const struct responder_verdict *v, enum mbox_source source)
{
	const struct wire_pkt *p = c->p;
	struct report r = { .psn = p != NULL ? p->psn.v : v->reply_psn.v,
		.len = p != NULL ? p->payload_len : 0,
		.rule = v->rule,
		.code = code_of(v->rule, source),
		.event = v->event,
		.fatal = v->fatal,
		.opcode = p != NULL ? p->opcode : OP_RC_READ_REQUEST,
		.syndrome = v->syndrome,
		.fault = v->fault,
		.wc_status = v->wc_status,
		.flags = p != NULL ? QP_ERROR_PACKET : 0,
		.source = (uint8_t)source };

	if ((v->act & ACT_NAK) != 0)
		r.flags |= QP_ERROR_NAK;
	else if ((v->act & ACT_ACK) != 0)
		r.flags |= QP_ERROR_ACK;
	if ((v->act & ACT_COMPLETE) != 0)
		r.flags |= QP_ERROR_COMPLETED;
	if ((v->act & ACT_EVENT) != 0)
		r.flags |= QP_ERROR_EVENT;
	return r;
}

struct report
pipeline_report_of_send(const struct qp *qp, const struct wire_pkt *p,
	const struct requester_verdict *v, enum mbox_source source)
{
	const uint16_t rule = send_rule(v);
	struct report r = { .psn = p != NULL ? p->psn.v : qp->req.una.v,
		.len = p != NULL ? p->payload_len : 0,
		.rule = rule,
		.code = code_of(rule, source),
		.event = v->event,
		.fatal = v->fatal,
		.opcode = p != NULL ? p->opcode : 0,
		.fault = v->fault,
		.wc_status = v->wc_status,
		.flags = QP_ERROR_SEND | (p != NULL ? QP_ERROR_PACKET : 0),
		.source = (uint8_t)source };

	if (p != NULL && op_has(p->op, OPF_AETH))
		r.syndrome = wire_aeth(p).syndrome;
	if ((v->act & REQACT_ERROR) != 0)
		r.flags |= QP_ERROR_COMPLETED;
	if ((v->act & REQACT_EVENT) != 0)
		r.flags |= QP_ERROR_EVENT;
	return r;
}

void
pipeline_report_event_only(struct worker *w, struct qp *qp, const struct report *r)
{
	tell(w, MBOX_EVENT, of_qp(qp), r);
}

void
pipeline_report_event(struct worker *w, struct qp *qp, const struct report *r)
{
	tell(w, MBOX_EVENT, of_qp(qp), r);
	if (traced(w, qp))
		trace_put(w->trace,
			&(struct trace_entry){ .time_ns = w->now,
				.qpn = qp->qpn,
				.psn = r->psn,
				.rule = r->rule,
				.kind = TRACE_event,
				.opcode = (r->flags & QP_ERROR_PACKET) != 0 || r->opcode != 0
						  ? r->opcode
						  : TRACE_NO_PACKET,
				.fault = r->fault,
				.state = qp_state_of(qp),
				.detail = r->event });
}

static void
remember(const struct worker *w, struct qp *qp, const struct report *r)
{
	qp->fatal = r->fatal;
	qp->last_error.rule = r->rule;
	qp->last_error.opcode = r->opcode;
	qp->last_error.syndrome = r->syndrome;
	qp->last_error.fatal = r->fatal;
	qp->last_error.fault = r->fault;
	qp->last_error.wc_status = r->wc_status;
	qp->last_error.event = r->event;
	qp->last_error.psn = r->psn;
	qp->last_error.time_ns = w->now;
	qp->last_error.len = r->len;
	qp->last_error.flags = r->flags;
	qp->last_error.trace_at = w->trace != NULL ? trace_head(w->trace) : 0;
}

void
pipeline_report_failure(struct worker *w, struct qp *qp, const struct report *r, enum qp_state to)
{
	struct report fatal = *r;

	ASSERT(qp->worker == w->index && (to == QPS_ERR || to == QPS_SQE));
	/*
	 * QP-16, AE-11: the QP is in this state before anybody hears of it. The fence orders the
	 * state before the flush reads the queues: if a host posts and still sees an older state,
	 * the flush has seen what it posted.
	 */
	atomic_store_explicit(&qp->state, to, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	pipeline_local_own_all(w); /* its requests are going to be flushed */
	remember(w, qp, r);
	/*
	 * RX-ERR-04: the packet's QPN and FATAL code, before the event or completion that follows.
	 * Without a code it only says that the QP failed.
	 */
	fatal.source = SOURCE_RQ;
	fatal.code = 0;
	tell(w, MBOX_FATAL, of_qp(qp), &fatal);
	pipeline_failure_trace(w, qp);
}

void
pipeline_report_lost(struct worker *w, struct qp *qp, const struct report *r)
{
	struct report lost = *r;

	lost.event = EVENT_QP_FATAL;
	lost.source = SOURCE_CQ;
	lost.code = 0;
	pipeline_report_event(w, qp, &lost);
}

void
pipeline_report_note(struct worker *w, struct qp *qp, enum aeq_code code)
{
	tell(w, MBOX_EVENT, of_qp(qp),
		&(const struct report){
			.code = (uint16_t)code, .fault = VERDICT_NO_FAULT, .source = SOURCE_SQ });
}

void
pipeline_report_cq(struct worker *w, struct qp_cq *cq, uint8_t event)
{
	tell(w, MBOX_EVENT, (struct subject){ .object = cq, .id = cq->id, .client = cq->client },
		&(const struct report){
			.event = event, .fault = VERDICT_NO_FAULT, .source = SOURCE_CQ });
}

void
pipeline_report_srq(struct worker *w, struct qp_srq *srq, uint8_t event)
{
	tell(w, MBOX_EVENT, (struct subject){ .object = srq, .id = srq->id, .client = srq->client },
		&(const struct report){
			.event = event, .fault = VERDICT_NO_FAULT, .source = SOURCE_RQ });
}
