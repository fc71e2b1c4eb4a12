/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions of receives, and QPs that fail by what their responder met. */
#include <errno.h>

#include "answers.h"
#include "complete.h"
#include "count.h"
#include "flush.h"
#include "report.h"
#include "sending.h"
#include "verdict.h"

void
pipeline_cq_failed(struct worker *w, struct qp_cq *cq)
{
	stats_inc(&w->stats, STAT_cq_overflow);
	if (!atomic_exchange_explicit(&cq->error, true, memory_order_acq_rel))
		pipeline_report_cq(w, cq, EVENT_CQ_ERR);
}

struct cq_place
pipeline_cq_moved(struct qp_cq *cq)
{
	struct cq_place to = { .slot = NULL };
	struct ring_cq *last;

	if (atomic_load_explicit(&cq->error, memory_order_relaxed))
		return to;
	/*
	 * Whoever made a ring full has said before where the next one is. This one may be left as
	 * well meanwhile, once: before it is left again, this worker has answered.
	 */
	do {
		last = to.ring;
		atomic_thread_fence(memory_order_acquire);
		to.ring = atomic_load_explicit(&cq->moved, memory_order_acquire);
		if (to.ring == last)
			return to;
		to.slot = ring_cq_reserve(to.ring, &to.index);
	} while (to.slot == NULL);
	return to;
}

__attribute__((noinline)) bool
pipeline_cq_run_begin(const struct worker *w, struct cq_run *run, struct qp_cq *cq)
{
	uint32_t room;

	cq_run_end(run);
	if (atomic_load_explicit(&cq->error, memory_order_relaxed) || !qp_cq_is_alone(cq, w->index))
		return false;
	room = ring_cq_room_alone(&cq->ring, &run->from);
	run->at = run->from;
	if (room == 0) {
		run->end = run->at;
		return false;
	}
	run->cq = cq;
	run->slots = ring_cq_at(&cq->ring, 0);
	run->mask = cq->ring.mask;
	run->bits = ring_turn_bits(&cq->ring);
	run->end = run->at + room;
	run->asks = false;
	return true;
}

__attribute__((noinline)) bool
pipeline_cq_run_fits(struct cq_run *run, struct qp_cq *cq, uint32_t n)
{
	cq_run_end(run);
	return !atomic_load_explicit(&cq->error, memory_order_relaxed) &&
	       ring_cq_fits(qp_cq_ring(cq), n);
}

int
pipeline_cq_add(struct worker *w, struct qp *qp, struct qp_cq *cq, const struct ring_completion *c)
{
	return cq_add(w, qp, cq, c);
}

int
pipeline_complete(struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	struct qp *qp = c->qp;
	const uint64_t wr_id = qp->active != NULL ? qp->active->wr_id : 0;

	ASSERT(c->p != NULL);
	qp->active = NULL;
	if (UNLIKELY(v->wc_status != WC_SUCCESS)) {
		stats_inc(&w->stats, STAT_resp_cqe_error);
		qp_count(w, qp, STAT_resp_cqe_error, 1);
	}
	if (UNLIKELY((qp->flags & QPF_RECV_FEED) != 0))
		return 0;
	return cq_add(w, qp, qp->recv_cq,
		&(const struct ring_completion){ .wr_id = wr_id,
			.byte_len = v->byte_len,
			.imm_data = v->imm,
			.vendor_err = v->fatal,
			.src_qp = op_has(c->p->op, OPF_DETH) ? wire_deth(c->p).src_qpn : 0,
			.psn = c->p->psn.v,
			.cause = v->rule,
			.status = v->wc_status,
			.opcode = v->wc_opcode,
			.wc_flags = v->wc_flags,
			.peer_opcode = c->p->opcode,
			.grh_ip = (v->wc_flags & WC_GRH) != 0 ? wire_ip_version(c->p) : 0,
			.solicited = v->solicited != 0 });
}

void
pipeline_fail(struct worker *w, const struct context *c, const struct responder_verdict *v,
	enum mbox_source source)
{
	struct qp *qp = c->qp;
	const struct report r = pipeline_report_of_request(c, v, source);
	bool completes = (v->act & ACT_COMPLETE) != 0;
	bool feed = (qp->flags & QPF_RECV_FEED) != 0;

	pipeline_report_failure(w, qp, &r, QPS_ERR);
	if (completes && pipeline_complete(w, c, v) != 0)
		pipeline_report_lost(w, qp, &r);
	/* A feed's completions go nowhere, so its errors are told by event. */
	if ((v->act & ACT_EVENT) != 0 || (completes && feed && v->event != 0))
		pipeline_report_event(w, qp, &r);
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
	ASSERT(qp->worker == w->index && w->failing.queue == 0);
	w->failing.queue = how->queue;
	w->failing.status = how->status;
	w->failing.index = how->wqe_index;
	w->failing.taken = false;
	w->flush_left = UINT32_MAX; /* the request that is named may be the last one */
	pipeline_answers_drop(w, qp);
	v.wc_status = w->failing.status;
	pipeline_fail(w, &c, &v, SOURCE_RQ);
	if (w->failing.taken)
		qp->last_error.flags |= QP_ERROR_COMPLETED;
	w->failing.queue = 0;
	w->flush_left = 0;
	*carried = w->failing.taken;
	return 0;
}
