/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions, asynchronous events, and QPs that fail. */
#include <errno.h>

#include "event_codes.h"
#include "complete.h"
#include "failure.h"

void
pipeline_send_up(struct worker *w, struct mbox_msg *msg)
{
	if (w->trace != NULL)
		msg->ev.trace_at = trace_head(w->trace);
	if (w->mbox == NULL || mbox_send_up(w->mbox, msg) != 0)
		stats_inc(&w->stats, STAT_aeq_overflow);
}

/** Filled in place: a copy would read wide what was just written narrow. */
static ALWAYS_INLINE void
message(const struct worker *w, const struct context *c, const struct responder_verdict *v,
	struct mbox_msg *msg)
{
	msg->ev.time_ns = w->now;
	msg->ev.qpn = c->qp->qpn;
	msg->ev.psn = c->p != NULL ? c->p->psn.v : v->reply_psn.v;
	msg->ev.rule = v->rule;
	msg->ev.event = v->event;
	msg->ev.fatal = v->fatal;
	msg->ev.opcode = c->p != NULL ? c->p->opcode : OP_RC_READ_REQUEST;
	msg->ev.state = qp_state_of(c->qp);
	msg->ev.syndrome = v->syndrome;
	msg->ev.fault = v->fault;
	msg->ev.object = c->qp;
}

void
pipeline_event_raise(struct worker *w, const struct context *c, const struct responder_verdict *v,
	enum mbox_source source)
{
	struct mbox_msg msg = { .type = MBOX_EVENT, .ev.source = (uint8_t)source };

	message(w, c, v, &msg);
	msg.ev.code = source != SOURCE_CQ ? pipeline_event_code(v->rule) : 0;
	pipeline_send_up(w, &msg);
	if (traced(w, c->qp))
		trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
					    .qpn = c->qp->qpn,
					    .psn = msg.ev.psn,
					    .rule = v->rule,
					    .kind = TRACE_event,
					    .opcode = msg.ev.opcode,
					    .fault = v->fault,
					    .state = msg.ev.state,
					    .detail = v->event });
}

/**
 * RX-ERR-04: the packet's QPN and FATAL code, before the event or completion that follows. Without
 * a code it only says that the QP failed.
 */
static void
fatal_report(struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	struct mbox_msg msg = { .type = MBOX_FATAL };

	message(w, c, v, &msg);
	pipeline_send_up(w, &msg);
}

void
pipeline_cq_failed(struct worker *w, struct qp_cq *cq)
{
	struct mbox_msg msg = { .type = MBOX_EVENT, .ev.source = SOURCE_CQ };

	stats_inc(&w->stats, STAT_cq_overflow);
	if (atomic_exchange_explicit(&cq->error, true, memory_order_acq_rel))
		return;
	msg.ev.time_ns = w->now;
	msg.ev.qpn = cq->id;
	msg.ev.event = EVENT_CQ_ERR;
	msg.ev.fault = VERDICT_NO_FAULT;
	msg.ev.object = cq;
	pipeline_send_up(w, &msg);
}

int
pipeline_cq_add_to(struct worker *w, struct qp *qp, struct qp_cq *cq, struct ring_cqe *cqe)
{
	struct ring_cqe *slot;
	uint32_t index;

	if (UNLIKELY(cq == NULL))
		return 0;
	slot = cq_take(w, cq, &index);
	if (UNLIKELY(slot == NULL))
		return -ENOSPC;
	cqe->qp_num = qp->qpn;
	cqe->time_ns = w->now;
	memcpy(slot, cqe, offsetof(struct ring_cqe, seq));
	ring_cq_publish(&cq->ring, slot, index);
	cq_end(w, qp, cq, (struct added){ cqe->psn, cqe->status, cqe->solicited != 0 });
	return 0;
}

int
pipeline_cq_add(struct worker *w, struct qp *qp, struct ring_cqe *cqe)
{
	return pipeline_cq_add_to(w, qp, qp->recv_cq, cqe);
}

/** Written where it is to be read: a copy would read wide what was just written narrow. */
static inline int
add_completion(struct worker *w, struct qp *qp, uint64_t wr_id, const struct wire_pkt *p,
	const struct responder_verdict *v)
{
	struct qp_cq *cq = qp->recv_cq;
	struct ring_cqe *slot;
	uint32_t index;

	if (UNLIKELY(cq == NULL))
		return 0;
	slot = cq_take(w, cq, &index);
	if (UNLIKELY(slot == NULL))
		return -ENOSPC;
	slot->wr_id = wr_id;
	slot->qp_num = qp->qpn;
	slot->byte_len = v->byte_len;
	slot->imm_data = v->imm;
	slot->vendor_err = v->fatal;
	slot->src_qp = 0;
	slot->psn = p->psn.v;
	slot->time_ns = w->now;
	slot->cause = v->rule;
	slot->status = v->wc_status;
	slot->opcode = v->wc_opcode;
	slot->wc_flags = v->wc_flags;
	slot->solicited = v->solicited;
	slot->peer_opcode = p->opcode;
	memset(slot->reserved, 0, sizeof(slot->reserved));
	ring_cq_publish(&cq->ring, slot, index);
	cq_end(w, qp, cq, (struct added){ p->psn.v, v->wc_status, v->solicited != 0 });
	return 0;
}

int
pipeline_complete(struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	struct qp *qp = c->qp;
	const uint64_t wr_id = qp->active != NULL ? qp->active->wr_id : 0;

	qp->active = NULL;
	if (UNLIKELY(v->wc_status != WC_SUCCESS)) {
		stats_inc(&w->stats, STAT_resp_cqe_error);
		qp_count(w, qp, STAT_resp_cqe_error, 1);
	}
	if (UNLIKELY((qp->flags & QPF_RECV_FEED) != 0))
		return 0;
	return add_completion(w, qp, wr_id, c->p, v);
}

static void
remember(struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	struct qp *qp = c->qp;

	qp->fatal = v->fatal;
	qp->last_error.rule = v->rule;
	qp->last_error.opcode = c->p != NULL ? c->p->opcode : OP_RC_READ_REQUEST;
	qp->last_error.syndrome = v->syndrome;
	qp->last_error.fatal = v->fatal;
	qp->last_error.fault = v->fault;
	qp->last_error.wc_status = v->wc_status;
	qp->last_error.event = v->event;
	qp->last_error.psn = c->p != NULL ? c->p->psn.v : v->reply_psn.v;
	qp->last_error.time_ns = w->now;
	qp->last_error.len = c->p != NULL ? c->p->payload_len : 0;
	qp->last_error.flags = 0;
	if (c->p != NULL)
		qp->last_error.flags |= QP_ERROR_PACKET;
	if ((v->act & ACT_NAK) != 0)
		qp->last_error.flags |= QP_ERROR_NAK;
	else if ((v->act & ACT_ACK) != 0)
		qp->last_error.flags |= QP_ERROR_ACK;
	if ((v->act & ACT_COMPLETE) != 0)
		qp->last_error.flags |= QP_ERROR_COMPLETED;
	if ((v->act & ACT_EVENT) != 0)
		qp->last_error.flags |= QP_ERROR_EVENT;
	qp->last_error.trace_at = w->trace != NULL ? trace_head(w->trace) : 0;
}

void
pipeline_fail(struct worker *w, const struct context *c, const struct responder_verdict *v,
	enum mbox_source source)
{
	struct qp *qp = c->qp;
	bool completes = (v->act & ACT_COMPLETE) != 0;
	bool feed = (qp->flags & QPF_RECV_FEED) != 0;

	/*
	 * QP-16, AE-11: whoever hears of this finds the QP in ERR. The fence orders the state
	 * before the look at the receive queue: a host that posts and then sees a state that is
	 * not ERR has been seen by the flush below.
	 */
	atomic_store_explicit(&qp->state, QPS_ERR, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	remember(w, c, v);

	fatal_report(w, c, v);
	pipeline_failure_trace(w, qp);
	if (completes && pipeline_complete(w, c, v) != 0) {
		struct responder_verdict lost = *v;

		lost.event = EVENT_QP_FATAL;
		pipeline_event_raise(w, c, &lost, SOURCE_CQ);
	}
	/* A feed's completions go nowhere, so its errors are told by event. */
	if ((v->act & ACT_EVENT) != 0 || (completes && feed && v->event != 0))
		pipeline_event_raise(w, c, v, source);
	pipeline_flush_receives(w, qp);
	pipeline_flush_sends(w, qp);
	if ((v->act & ACT_NAK) != 0)
		pipeline_owe_nak(w, qp, v);
	else if ((v->act & ACT_ACK) != 0)
		pipeline_owe_ack(w, qp, v);
}

int
pipeline_fail_abnormal(struct worker *w, const struct mbox_fail *how, bool *carried)
{
	struct responder_verdict v = { .act = ACT_ERR, .fault = VERDICT_NO_FAULT };
	struct qp *qp = how->qp;
	struct context c = { .qp = qp };
	uint8_t state = qp_state_of(qp);

	if (state == QPS_ERR || state == QPS_RESET)
		return -EALREADY;
	w->failing.queue = how->queue;
	w->failing.status = how->status;
	w->failing.index = how->wqe_index;
	w->failing.taken = false;
	pipeline_answers_drop(w, qp);
	v.wc_status = w->failing.status;
	pipeline_fail(w, &c, &v, SOURCE_RQ);
	if (w->failing.taken)
		qp->last_error.flags |= QP_ERROR_COMPLETED;
	w->failing.queue = 0;
	*carried = w->failing.taken;
	return 0;
}
