/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control lcore may see of a QP, and what a worker takes over from it. */
#include "qp_control.h"

#include "be.h"
#include "invariant.h"
#include "qp.h"
#include "qp_cc.h"

void
qp_configure(struct qp *qp, const struct qp_settings *s)
{
	struct qp_feed *f = qp->send_feed;

	ASSERT(qp_state_now(qp) <= QPS_INIT);
	ASSERT((s->flags & ~(uint32_t)QPF_SETTINGS) == 0);
	ASSERT(((s->flags & QPF_SRQ) != 0) == (qp->srq != NULL || qp->type == QPT_XRC_RECV));
	ASSERT(((s->flags & QPF_SEND_FEED) != 0) == (f != NULL));
	ASSERT(f == NULL || s->send_feed.depth <= qp->max_send_wr);
	ASSERT((s->flags & QPF_RECV_FEED) == 0 || s->recv_feed.buffers <= qp->rq.mask + 1);
	qp->worker = s->worker;
	qp->port = s->port;
	qp->out = qp_out_of(s->port, &qp->attr.path);
	qp->flags = (qp->flags & (QPF_IPV6 | QPF_RESOLVED | QPF_SERVICE | QPF_LOCAL)) | s->flags;
	qp->resp.knobs = s->resp_knobs;
	qp_rq_limit_set(qp, qp_rq_limit(qp));
	qp->cnp_interval_ns = s->cnp_interval;
	qp->cnp = s->cnp;
	qp->window = s->window;
	qp->min_timeout = s->min_timeout;
	qp->req.window = s->window;
	qp->req.knobs = s->req_knobs;
	qp->req.ackreq_interval = s->ackreq_interval;
	if ((s->flags & QPF_CC_RATE) != 0)
		qp_cc_start(qp, &s->cc);
	if (f != NULL) {
		f->count = s->send_feed.count;
		f->remote_addr = s->send_feed.remote_addr;
		f->sge = s->send_feed.sge;
		f->rkey = s->send_feed.rkey;
		f->depth = s->send_feed.depth;
		be24_store(f->xrc_srqn, s->send_feed.xrc_srqn);
		f->opcode = s->send_feed.opcode;
	}
	if ((s->flags & QPF_RECV_FEED) == 0)
		return;
	qp->feed_next = 0;
	qp->feed_buffers = s->recv_feed.buffers;
	qp->feed_size = s->recv_feed.size;
	qp->feed_lkey = s->recv_feed.lkey;
	qp->feed_va = s->recv_feed.va;
}

void
qp_rq_limit_set(struct qp *qp, uint32_t limit)
{
	ASSERT(limit == 0 || (qp->flags & (QPF_SRQ | QPF_RECV_FEED)) == 0);
	if (qp->type == QPT_XRC_RECV)
		return;
	atomic_store_explicit(&qp->rq_limit, limit, memory_order_relaxed);
	qp->resp.knobs &= (uint16_t)~RESP_KNOB_RQ_LIMIT;
	if (limit != 0)
		qp->resp.knobs |= RESP_KNOB_RQ_LIMIT;
}

uint32_t
qp_rq_limit(const struct qp *qp)
{
	if (qp->type == QPT_XRC_RECV)
		return 0; /* the word is its srq_num */
	return atomic_load_explicit(&qp->rq_limit, memory_order_relaxed);
}

struct qp_limits
qp_limits(const struct qp *qp)
{
	return (struct qp_limits){ .max_send_wr = qp->max_send_wr,
		.max_inline = qp->max_inline,
		.max_send_sge = qp->max_send_sge,
		.max_dest_rd_atomic = qp->max_dest_alloc,
		.compact = qp->compact,
		.send_feed = qp->send_feed != NULL };
}

uint32_t
qp_number(const struct qp *qp)
{
	return qp->qpn;
}

enum qp_state
qp_state_now(const struct qp *qp)
{
	return atomic_load_explicit(&qp->state, memory_order_acquire);
}

uint32_t
qp_migrations(const struct qp *qp)
{
	return atomic_load_explicit(&qp->migrations, memory_order_acquire);
}

uint8_t
qp_worker(const struct qp *qp)
{
	return qp->worker;
}

uint64_t
qp_counter(const struct qp *qp, enum stats_counter s)
{
	ASSERT(s < STAT_MAX);
	return qp_stat(qp, s);
}

uint32_t
qp_nowhere(const struct qp *qp, uint32_t una)
{
	return qp_nowhere_count(qp, una);
}

const struct qp_error *
qp_last_error(const struct qp *qp)
{
	return &qp->last_error;
}

const struct qp_failure *
qp_failure(const struct qp *qp)
{
	return qp->failure;
}

void
qp_rings(const struct qp *qp, struct ring *rq, struct ring *sq)
{
	const struct ring *r = &qp->rq, *s = &qp->sq.ring;

	ASSERT(r->sh != NULL);
	ring_attach(rq, r->sh, r->mask + 1, r->stride, false);
	if (s->sh != NULL)
		ring_attach(sq, s->sh, s->mask + 1, s->stride, false);
}

void *
qp_user(const struct qp *qp)
{
	return qp->user;
}

void
qp_user_set(struct qp *qp, void *user)
{
	qp->user = user;
}
