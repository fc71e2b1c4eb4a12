/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage 12: carry out messages of the control lcore. No burst is under way here. */
#include <errno.h>

#include "answers.h"
#include "congestion.h"
#include "count.h"
#include "credits.h"
#include "flush.h"
#include "kept.h"
#include "local.h"
#include "migration.h"
#include "report.h"
#include "qp_control.h"
#include "send_feed.h"
#include "sending.h"
#include "shares.h"
#include "stage.h"
#include "tx.h"
#include "tx_prio.h"
#include "verdict.h"

static void
sides_add(struct worker *w, struct qp_side *list)
{
	struct qp_side *last = list;

	if (list == NULL)
		return;
	while (last->next != NULL)
		last = last->next;
	w->sides_short = false;
	last->next = w->sides;
	w->sides = list;
}

bool
pipeline_side_take(struct worker *w, struct qp *qp)
{
	struct qp_side *side = w->sides;

	if (side == NULL) {
		if (!w->sides_short)
			pipeline_report_note(w, qp, AEQ_RESOURCE_EXHAUSTION);
		w->sides_short = true; /* until more come */
		return false;
	}
	w->sides = side->next;
	qp_side_take(qp, side);
	atomic_store_explicit(&w->mbox->sides_taken,
		atomic_load_explicit(&w->mbox->sides_taken, memory_order_relaxed) + 1,
		memory_order_relaxed);
	return true;
}

__attribute__((noinline)) void
pipeline_sendq_carry(struct worker *w, struct qp *qp)
{
	const bool kept = has_side(w, qp);

	for (uint32_t s = STATS_HOT; s < STAT_MAX && !kept; s++)
		stats_add(&w->stats, STAT_qp_counts_lost, qp_sendq_of(qp, (enum stats_counter)s));
	qp_sendq_carry(qp);
}

static int
qp_attach(struct worker *w, const struct mbox_attach *m)
{
	if (m->settings != NULL)
		qp_configure(m->qp, m->settings);
	local_note(w, m->qp->out);
	pipeline_share_join(w, m->qp);
	return qp_table_insert(w->qps, m->qp);
}

static int
qp_detach(struct worker *w, const struct mbox_qp *m)
{
	if (pipeline_is_flushing(m->qp) && !m->drop)
		return -EINPROGRESS;
	qp_table_remove(w->qps, m->qp);
	pipeline_kept_forget(w, m->qp);
	pipeline_answers_drop(w, m->qp);
	pipeline_sends_stop(w, m->qp);
	pipeline_flush_leave(w, m->qp);
	return 0;
}

void
pipeline_sends_found(struct worker *w, struct qp *qp)
{
	const uint32_t both = QPF_RESOLVED | QPF_SENT_NOWHERE;
	uint8_t state = qp_state_of(qp);
	struct requester_verdict v;

	if (state != QPS_RTS && state != QPS_SQD)
		return;
	if ((qp->flags & both) == both) { /* RT-06: not at the next timeout, now */
		qp->flags &= ~(uint32_t)QPF_SENT_NOWHERE;
		requester_found(&qp->req, &v);
		pipeline_act_requester(w, qp, NULL, &v);
	}
	if (qp->req.sending != qp->req.tail || is_fed(qp))
		pipeline_send_wake(w, qp);
}

/** What a new state, path or set of attributes means for the send side. */
static void
sends_modified(struct worker *w, struct qp *qp, uint8_t from, uint32_t mask)
{
	uint8_t to = qp_state_of(qp);

	if (to != QPS_RTS && to != QPS_SQD)
		return;
	if (from == QPS_RTS && to == QPS_SQD) {
		qp->flags &= ~(uint32_t)QPF_SQD_NOTIFY;
		if ((mask & QP_ATTR_EN_SQD_ASYNC_NOTIFY) != 0 && qp->attr.en_sqd_async_notify)
			qp->flags |= QPF_SQD_NOTIFY;
		pipeline_sqd(w, qp, true);
	} else if (from == QPS_SQD && to == QPS_RTS) {
		pipeline_sqd(w, qp, false);
	}
	pipeline_sends_found(w, qp);
	timer_update(w, qp); /* there may be another timeout */
}

void
pipeline_sends_posted(struct worker *w, struct qp *qp)
{
	uint8_t state = qp_state_of(qp);

	if (state == QPS_ERR || state == QPS_SQE)
		pipeline_flush_sends(w, qp);
	else if (state == QPS_RTS || state == QPS_SQD)
		pipeline_send_wake(w, qp);
}

/** Is this path_mig_state one that the QP cannot be given, as it stands now? */
static bool
misses_state(const struct qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	const char *why;

	return (mask & QP_ATTR_PATH_MIG_STATE) != 0 &&
	       qp_migration_check((enum mig_state)qp->attr.path_mig_state,
		       (enum mig_state)attr->path_mig_state, true, &why) != 0;
}

static int
qp_modify(struct worker *w, struct qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	const uint32_t paths = QP_ATTR_AV | QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE |
			       QP_ATTR_PORT | QP_ATTR_PKEY_INDEX | QP_ATTR_TIMEOUT;
	bool moves = (mask & QP_ATTR_STATE) != 0;
	uint32_t migrations = atomic_load_explicit(&qp->migrations, memory_order_relaxed);
	uint8_t from = qp_state_of(qp);

	/*
	 * QP-15, QP-17: the QP failed while the message was on its way. Only RESET revives it.
	 */
	if (moves && from == QPS_ERR && attr->qp_state != QPS_ERR && attr->qp_state != QPS_RESET)
		return -EINVAL;
	if (moves && from == QPS_SQE && attr->cur_qp_state != QPS_SQE &&
		attr->qp_state != QPS_ERR && attr->qp_state != QPS_RESET)
		return -EINVAL;
	/* QP-12, QP-17: QP-11: what was posted before has its completion first. */
	if (moves && attr->qp_state != QPS_ERR && pipeline_is_flushing(qp))
		return -EINPROGRESS;

	/* The control lcore had another path, or path state, in mind. */
	if ((mask & paths) != 0 && (attr->migrations != migrations || misses_state(qp, attr, mask)))
		return -EAGAIN;

	/*
	 * By order of the control lcore nothing more is sent, not even what is owed (QP-05, QP-12).
	 */
	if (moves && (attr->qp_state == QPS_ERR || attr->qp_state == QPS_RESET)) {
		pipeline_kept_forget(w, qp);
		pipeline_answers_drop(w, qp);
		pipeline_sends_stop(w, qp);
	}
	qp_apply(qp, attr, mask);
	local_note(w, qp->out);
	if (moves && attr->qp_state == QPS_ERR) {
		atomic_thread_fence(memory_order_seq_cst);
		pipeline_flush_sends(w, qp);
		pipeline_flush_receives(w, qp);
	}
	if (UNLIKELY(migrations != atomic_load_explicit(&qp->migrations, memory_order_relaxed)))
		pipeline_migration_done(w, qp, NULL, RULE_PATH_ORDERED);
	sends_modified(w, qp, from, mask);
	if (moves && traced(w, qp))
		trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
					    .qpn = qp->qpn,
					    .psn = qp->resp.epsn.v,
					    .msn = qp->resp.msn,
					    .kind = TRACE_state,
					    .opcode = TRACE_NO_PACKET,
					    .fault = VERDICT_NO_FAULT,
					    .state = qp_state_of(qp) });
	return 0;
}

/** A frame of the control lcore, behind what waits already. */
static int
transmit(struct worker *w, uint16_t id, struct rte_mbuf *m)
{
	uint8_t port = id < ARRAY_LEN(w->port_of) ? w->port_of[id] : PORT_NONE;

	if (port == PORT_NONE) {
		rte_pktmbuf_free(m);
		return -ENODEV;
	}
	local_note(w, (uint8_t)id);
	pipeline_tx_push(w, port, m);
	return 0;
}

/** The QP, and what it waits for in its worker. */
static void
look_at(struct worker *w, struct qp *qp, struct qp_snapshot *out)
{
	uint8_t port = w->port_of[qp->out];

	qp_snapshot(qp, w->now, pipeline_congestion_mbps(w, qp), out);
	out->waiting.rate = share_of(w, qp)->rate;
	out->waiting.rate_until = pipeline_share_empty_until(w, share_of(w, qp));
	if (port == PORT_NONE)
		return;
	out->waiting.tx_frames = w->tx[port].tail - w->tx[port].head;
	out->waiting.tx_full = tx_is_congested(w, port);
	out->waiting.tx_paused = pipeline_prio_is_paused(w, port);
}

/**
 * Is the QP this worker's, so that it may stand on its lists? The control lcore may not have heard
 * yet that it was detached or released: then it waits for an answer, and others' requests go on.
 */
static bool
has(const struct worker *w, const struct qp *qp)
{
	return qp->worker == w->index && qp != w->moving.qp && qp_lookup(w->qps, qp->qpn) == qp;
}

/** What may put a QP on lists of this worker. @return -ENOENT: it is not, or no longer, here. */
static int
execute_here(struct worker *w, const struct mbox_msg *m, struct qp *qp, struct mbox_done *out)
{
	if (UNLIKELY(!has(w, qp)))
		return -ENOENT;
	switch (m->type) {
	case MBOX_QP_MODIFY:
		return qp_modify(w, qp, m->modify.attr, m->modify.mask);
	case MBOX_QP_RECEIVES:
		pipeline_receives_posted(w, qp);
		return 0;
	case MBOX_QP_POSTED:
		pipeline_sends_posted(w, qp);
		return 0;
	default:
		return pipeline_fail_abnormal(w, &m->fail, &out->carried);
	}
}

static int
execute(struct worker *w, const struct mbox_msg *m, struct mbox_done *out)
{
	int rc;

	switch (m->type) {
	case MBOX_QP_ATTACH:
		return qp_attach(w, &m->attach);
	case MBOX_QP_DETACH:
		return qp_detach(w, &m->qp);
	case MBOX_QP_MODIFY:
		return execute_here(w, m, m->modify.qp, out);
	case MBOX_QP_QUERY:
		look_at(w, m->query.qp, m->query.snapshot);
		return 0;
	case MBOX_QP_RECEIVES:
	case MBOX_QP_POSTED:
		return execute_here(w, m, m->qp.qp, out);
	case MBOX_QP_FAIL:
		return execute_here(w, m, m->fail.qp, out);
	case MBOX_QP_PARK:
		return pipeline_move_park(w, m->move.qp, m->move.to);
	case MBOX_QP_RELEASE:
		return pipeline_move_release(w, m->move.qp, m->move.to);
	case MBOX_QP_ADOPT:
		return pipeline_move_adopt(w, m->qp.qp);
	case MBOX_QP_UNPARK:
		pipeline_move_unpark(w, m->qp.qp);
		return 0;
	case MBOX_QP_RQ_LIMIT:
		qp_rq_limit_set(m->limit.qp, m->limit.limit);
		return 0;
	case MBOX_QP_WORK:
		qp_work_take(m->work.qp, m->work.work);
		return 0;
	case MBOX_SIDES:
		sides_add(w, m->sides.list);
		return 0;
	case MBOX_CLIENT_ATTACH:
		pipeline_client_attach(w, m->client.client);
		return 0;
	case MBOX_CLIENT_SET:
		pipeline_share_set(w, m->client.client, m->client.weight, m->client.rate);
		return 0;
	case MBOX_CLIENT_DETACH:
		pipeline_client_detach(w, m->client.client);
		return 0;
	case MBOX_TX:
		rc = transmit(w, m->tx.port, m->tx.m);
		if (m->tx.cnp_of != 0)
			pipeline_congestion_sent(w, m->tx.cnp_of);
		return rc;
	case MBOX_SYNC:
		return 0;
	default:
		return -EINVAL;
	}
}

static __attribute__((noinline)) uint32_t
carry_out(struct worker *w)
{
	struct mbox_msg in[MAILBOX_BURST];
	uint32_t n;

	/* Answers are never lost: no more is taken than can be answered. */
	n = mbox_done_room(w->mbox);
	if (n > MAILBOX_BURST)
		n = MAILBOX_BURST;
	n = mbox_recv_down(w->mbox, in, n);
	for (uint32_t i = 0; i < n; i++) {
		struct mbox_msg done = { .type = MBOX_DONE, .cookie = in[i].cookie };

		done.done.rc = execute(w, &in[i], &done.done);
		if (in[i].type != MBOX_TX || in[i].cookie != 0)
			mbox_send_done(w->mbox, &done);
	}
	pipeline_local_own_all(w); /* a message may have released bursts, behind all else */
	return n;
}

uint32_t
stage_mailbox(struct worker *w)
{
	if (w->mbox == NULL || LIKELY(mbox_is_empty(w->mbox)))
		return 0;
	return carry_out(w);
}
