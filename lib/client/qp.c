/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client_priv.h"
#include "include/rocelane_cm.h"
#include "verbs.h"

#define FLUSH_TRIES  250   /* the dataplane spends up to 20 ms on each */
#define SEND_LOOK_NS 50000 /* between two looks whether requests were sent */
#define SEND_LOOKS   20000 /* with no progress */

static uint32_t
bucket_of(uint32_t qpn)
{
	return qpn % QP_BUCKETS;
}

struct qp *
client_qp_by_number(struct context *ctx, uint32_t qpn)
{
	struct qp *qp;

	TAILQ_FOREACH (qp, &ctx->by_number[bucket_of(qpn)], bucket) {
		if (qp->pub.qp_num == qpn)
			return qp;
	}
	return NULL;
}

void
client_qp_free(struct qp *qp)
{
	free(qp->signaled);
	free(qp);
}

/*
 * A receive brings a completion each; a send completion stands for the unsignalled ones before it.
 * Behind an error every request has one: then this may run ahead, in a QP that sends no more.
 */
void
client_qp_completed(struct qp *qp, bool is_recv, uint32_t n)
{
	_Atomic uint32_t *done = is_recv ? &qp->rq_done : &qp->sq_done;
	const struct ring *r = is_recv ? &qp->rq : &qp->sq;
	uint32_t posted, at;

	if (UNLIKELY(r->sh == NULL)) /* it receives from an SRQ, whose places are free when taken */
		return;
	posted = atomic_load_explicit(&r->sh->prod, memory_order_acquire);
	at = atomic_load_explicit(done, memory_order_relaxed);
	if (is_recv) {
		at += n < posted - at ? n : posted - at;
	} else {
		for (; n != 0 && at != posted; at++)
			n -= qp->signaled[at & r->mask];
	}
	atomic_store_explicit(done, at, memory_order_release);
}

int
client_take_ring(struct context *ctx, const json_t *o, uint32_t least, struct ring *r)
{
	const uint32_t entries = (uint32_t)json_integer_value(json_object_get(o, "entries"));
	const uint32_t stride = (uint32_t)json_integer_value(json_object_get(o, "stride"));
	void *mem = client_place(ctx, o, ring_size(entries, stride));

	if (mem == NULL || stride < least)
		return client_fail(EPROTO, "a work queue lies nowhere");
	ring_attach(r, mem, entries, stride, false);
	return 0;
}

/* Has the type a receive queue, its own or a shared one? */
static bool
receives(enum rl_qp_type type)
{
	return type != RL_QPT_XRC_SEND && type != RL_QPT_XRC_RECV;
}

/* UD-12: the longest datagram. */
static void
take_longest(struct qp *qp, const json_t *o)
{
	const json_t *bytes = json_object_get(o, "path_mtu");

	if (qp->pub.qp_type == RL_QPT_UD && json_integer_value(bytes) != 0)
		atomic_store(&qp->longest, (uint32_t)json_integer_value(bytes));
}

static int
take_qp(struct context *ctx, struct qp *qp, const json_t *o)
{
	const json_t *sq = json_object_get(o, "sq");
	int rc = 0;

	qp->pub.qp_num = (uint32_t)json_integer_value(json_object_get(o, "qp_num"));
	if (qp->pub.srq == NULL && receives(qp->pub.qp_type))
		rc = client_take_ring(ctx, json_object_get(o, "rq"),
			ring_recv_stride(qp->cap.max_recv_sge), &qp->rq);
	if (rc == 0 && json_is_object(sq))
		rc = client_take_ring(ctx, sq,
			ring_send_stride(qp->cap.max_send_sge, qp->cap.max_inline_data), &qp->sq);
	if (rc != 0)
		return rc;
	atomic_store(&qp->worker, (uint32_t)json_integer_value(json_object_get(o, "worker")));
	take_longest(qp, o);
	if (qp->sq.sh != NULL)
		qp->signaled = calloc(1, (size_t)qp->sq.mask + 1);
	if (qp->sq.sh != NULL && qp->signaled == NULL)
		return client_fail(ENOMEM, "out of memory");
	rc = client_cqs_join(qp);
	if (rc != 0)
		return rc;
	TAILQ_INSERT_TAIL(&ctx->qps, qp, all);
	TAILQ_INSERT_TAIL(&ctx->by_number[bucket_of(qp->pub.qp_num)], qp, bucket);
	return 0;
}

static json_int_t
cq_handle(const struct rl_cq *cq)
{
	return cq != NULL ? ((const struct cq *)cq)->handle : 0;
}

/* Which queues its type has the dataplane checks as well; this is what the library reads. */
static int
check_init(const struct rl_qp_init_attr *init)
{
	const bool target = init->qp_type == RL_QPT_XRC_RECV;

	if (target)
		return init->xrcd != NULL && init->send_cq == NULL && init->recv_cq == NULL &&
				       init->srq == NULL
			       ? 0
			       : client_fail(
					 EINVAL, "an XRC_RECV QP has an xrcd, and no CQ or SRQ");
	if (init->xrcd != NULL)
		return client_fail(EINVAL, "an xrcd is for an XRC_RECV QP alone");
	if (init->send_cq == NULL || (init->recv_cq == NULL && init->qp_type != RL_QPT_XRC_SEND))
		return client_fail(EINVAL, "a QP needs a send_cq and a recv_cq");
	return 0;
}

static json_t *
create_params(struct rl_pd *pd, const struct rl_qp_init_attr *init, uint8_t port_num)
{
	const struct srq *srq = srq_of(init->srq);
	const struct xrcd *xrcd = (const struct xrcd *)init->xrcd;

	json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:I, s:I, s:I, s:I, s:I}", "pd",
		(json_int_t)((struct pd *)pd)->handle, "send_cq", cq_handle(init->send_cq),
		"recv_cq", cq_handle(init->recv_cq), "srq",
		(json_int_t)(srq != NULL ? srq->handle : 0), "xrcd",
		(json_int_t)(xrcd != NULL ? xrcd->handle : 0), "qp_type",
		verbs_qp_type_name(init->qp_type), "sq_sig_all", init->sq_sig_all != 0,
		"max_send_wr", (json_int_t)init->cap.max_send_wr, "max_recv_wr",
		(json_int_t)init->cap.max_recv_wr, "max_send_sge",
		(json_int_t)init->cap.max_send_sge, "max_recv_sge",
		(json_int_t)init->cap.max_recv_sge, "max_inline_data",
		(json_int_t)init->cap.max_inline_data);

	if (port_num != 0)
		json_object_set_new(o, "port_num", json_integer(port_num));
	if (port_num != 0 && init->qp_type == RL_QPT_UD)
		json_object_set_new(o, "qkey", json_integer(RL_UDP_QKEY));
	return o;
}

static struct qp *
qp_new(struct rl_pd *pd, struct rl_qp_init_attr *init)
{
	const size_t bytes = (sizeof(struct qp) + CACHE_LINE - 1) & ~(CACHE_LINE - 1ul);
	struct qp *qp = aligned_alloc(CACHE_LINE, bytes);

	if (qp == NULL)
		return NULL;
	memset(qp, 0, bytes);
	qp->pub = (struct rl_qp){ .context = pd->context,
		.qp_context = init->qp_context,
		.pd = pd,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.qp_type = init->qp_type };
	/* As with verbs: the QP has no receive queue of its own. */
	if (init->srq != NULL || !receives(init->qp_type)) {
		init->cap.max_recv_wr = 0;
		init->cap.max_recv_sge = 0;
	}
	qp->cap = init->cap;
	qp->sig_all = init->sq_sig_all != 0;
	atomic_store(&qp->longest, VERBS_MESSAGE_MAX);
	return qp;
}

/*
 * The same request until the flush of the QP has ended: the dataplane does so much of it in a turn,
 * and keeps nobody waiting. @param params taken.
 */
static int
call_flushed(struct context *ctx, const char *method, json_t *params, json_t **result)
{
	uint32_t tries = FLUSH_TRIES;
	int rc;

	do {
		rc = client_call(ctx, method, json_incref(params), -1, result);
	} while (rc == -EINPROGRESS && --tries != 0);
	json_decref(params);
	return rc;
}

/* @param params taken. @param qp the same. */
static int
obtain(struct context *ctx, struct qp *qp, const char *method, json_t *params, struct rl_qp **out)
{
	json_t *result;
	int rc;

	client_lock(ctx);
	rc = client_call_for_fds(ctx, method, params, &result);
	if (rc == 0) {
		rc = take_qp(ctx, qp, result);
		json_decref(result);
		if (rc != 0) /* nobody could destroy it, nor what it uses */
			call_flushed(ctx, "client_qp_destroy",
				json_pack("{s:I}", "qp_num", (json_int_t)qp->pub.qp_num), NULL);
	}
	client_unlock(ctx);
	if (rc != 0)
		client_qp_free(qp);
	else
		*out = &qp->pub;
	return rc;
}

int
rl_create_qp(struct rl_pd *pd, struct rl_qp_init_attr *init, struct rl_qp **out)
{
	return client_create_qp(pd, init, 0, out);
}

int
client_create_qp(
	struct rl_pd *pd, struct rl_qp_init_attr *init, uint8_t port_num, struct rl_qp **out)
{
	struct context *ctx = context_of(pd->context);
	struct qp *qp;
	int rc;

	*out = NULL;
	rc = check_init(init);
	if (rc != 0)
		return rc;
	qp = qp_new(pd, init);
	if (qp == NULL)
		return client_fail(ENOMEM, "out of memory");
	rc = obtain(ctx, qp, "client_qp_create", create_params(pd, init, port_num), out);
	if (rc == 0 && port_num != 0)
		client_qp_is(qp, init->qp_type == RL_QPT_UD ? RL_QPS_RTS : RL_QPS_INIT);
	return rc;
}

int
rl_open_qp(struct rl_pd *pd, const struct rl_qp_open_attr *attr, struct rl_qp **out)
{
	struct context *ctx = context_of(pd->context);
	struct rl_qp_init_attr init = { .qp_context = attr->qp_context,
		.qp_type = RL_QPT_XRC_RECV };
	struct qp *qp = qp_new(pd, &init);
	struct rl_qp_attr now;
	int rc;

	*out = NULL;
	if (qp == NULL)
		return client_fail(ENOMEM, "out of memory");
	rc = obtain(ctx, qp, "client_qp_open",
		json_pack("{s:I, s:I, s:I}", "pd", (json_int_t)((struct pd *)pd)->handle, "xrcd",
			(json_int_t)((struct xrcd *)attr->xrcd)->handle, "qp_num",
			(json_int_t)attr->qp_num),
		out);
	if (rc == 0)
		rl_query_qp(*out, &now, 0, NULL); /* its state */
	return rc;
}

static void
rewind_ring(struct spin *lock, struct ring *r, _Atomic uint32_t *done)
{
	if (r->sh == NULL)
		return;
	spin_lock(lock);
	ring_attach(r, r->sh, r->mask + 1, r->stride, false);
	atomic_store(done, r->prod);
	spin_unlock(lock);
}

/* RESET: the dataplane has forgotten what was posted. */
static void
rewind_rings(struct qp *qp)
{
	rewind_ring(&qp->rq_lock, &qp->rq, &qp->rq_done);
	rewind_ring(&qp->sq_lock, &qp->sq, &qp->sq_done);
}

/* As verbs' drivers have it: completions of a QP that is reset or destroyed go with it. */
static void
forget_completions(const struct rl_qp *qp)
{
	client_cq_forget(qp->send_cq, qp->qp_num);
	if (qp->recv_cq != qp->send_cq)
		client_cq_forget(qp->recv_cq, qp->qp_num);
}

void
client_qp_is(struct qp *qp, enum rl_qp_state state)
{
	qp->pub.state = state;
	atomic_store_explicit(&qp->state, (uint32_t)state, memory_order_release);
}

int
rl_modify_qp(struct rl_qp *pub, const struct rl_qp_attr *attr, int mask)
{
	struct context *ctx = context_of(pub->context);
	struct qp *qp = qp_of(pub);
	json_t *result, *params = client_attr_encode(ctx, qp, attr, mask);
	int rc;

	if (params == NULL)
		return (mask & RL_QP_CAP) != 0 ? -ENOTSUP : -EINVAL;
	client_lock(ctx);
	rc = call_flushed(ctx, "client_qp_modify", params, &result);
	if (rc == 0) {
		atomic_store(&qp->worker,
			(uint32_t)json_integer_value(json_object_get(result, "worker")));
		take_longest(qp, result);
		json_decref(result);
		if ((mask & RL_QP_STATE) != 0 && attr->qp_state == RL_QPS_RESET) {
			forget_completions(pub);
			rewind_rings(qp);
			client_ahs_left(ctx, qp);
		}
		if ((mask & RL_QP_STATE) != 0)
			client_qp_is(qp, attr->qp_state);
	}
	client_unlock(ctx);
	return rc;
}

int
rl_query_qp(
	struct rl_qp *pub, struct rl_qp_attr *attr, int mask UNUSED, struct rl_qp_init_attr *init)
{
	struct context *ctx = context_of(pub->context);
	struct qp *qp = qp_of(pub);
	json_t *result;
	int rc;

	client_lock(ctx);
	rc = client_call(ctx, "client_qp_query",
		json_pack("{s:I}", "qp_num", (json_int_t)pub->qp_num), -1, &result);
	if (rc == 0) {
		client_attr_decode(ctx, result, attr);
		attr->cap = qp->cap;
		client_qp_is(qp, attr->qp_state);
		json_decref(result);
	}
	client_unlock(ctx);
	if (rc == 0 && init != NULL)
		*init = (struct rl_qp_init_attr){ .qp_context = pub->qp_context,
			.send_cq = pub->send_cq,
			.recv_cq = pub->recv_cq,
			.srq = pub->srq,
			.cap = qp->cap,
			.qp_type = pub->qp_type,
			.sq_sig_all = qp->sig_all };
	return rc;
}

/** Is something of the first `posted` left that a device would have sent by now? */
static bool
has_sends(struct qp *qp, uint32_t posted, uint32_t completed)
{
	const bool needs_peer = qp->pub.qp_type != RL_QPT_UD && qp->pub.qp_type != RL_QPT_UC;

	/* What waits for a peer was heard of at least: the worker sends as much as it may. */
	return (int32_t)(posted - completed) > 0 &&
	       (!needs_peer || atomic_load_explicit(&qp->sq.sh->bell, memory_order_acquire) != 0);
}

void
client_let_sends_go(struct context *ctx, struct qp *qp)
{
	uint32_t looks = 0, last = 0, now, posted;
	CANCEL_HELD;

	if (qp->sq.sh == NULL || atomic_load(&qp->state) != RL_QPS_RTS)
		return;
	spin_lock(&qp->sq_lock);
	posted = qp->sq.prod;
	spin_unlock(&qp->sq_lock);
	for (; looks < SEND_LOOKS && !client_gone(ctx); looks++, last = now) {
		now = atomic_load_explicit(&qp->sq.sh->cons, memory_order_acquire);
		if (!has_sends(qp, posted, now))
			return;
		if (now != last)
			looks = 0;
		nanosleep(&(struct timespec){ .tv_nsec = SEND_LOOK_NS }, NULL);
	}
}

int
rl_destroy_qp(struct rl_qp *pub)
{
	struct context *ctx = context_of(pub->context);
	struct qp *qp = qp_of(pub);
	int rc;

	client_let_sends_go(ctx, qp);
	client_lock(ctx);
	rc = call_flushed(ctx, "client_qp_destroy",
		json_pack("{s:I}", "qp_num", (json_int_t)pub->qp_num), NULL);
	if (rc == 0) {
		TAILQ_REMOVE(&ctx->qps, qp, all);
		TAILQ_REMOVE(&ctx->by_number[bucket_of(pub->qp_num)], qp, bucket);
		forget_completions(pub);
		client_cqs_leave(qp);
		client_ahs_left(ctx, qp);
		client_wait_acks(ctx, &qp->async);
	}
	client_unlock(ctx);
	if (rc == 0)
		client_qp_free(qp);
	return rc;
}
