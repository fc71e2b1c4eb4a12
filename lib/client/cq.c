/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "client_priv.h"
#include "fds.h"

#define POLL_BATCH 16
#define IDLE_LOOK  8 /* empty polls for a look at the clock */

/* ---- completion queues ----------------------------------------------------------------------- */

static int
take_cq(struct context *ctx, struct cq *cq, const json_t *o)
{
	const uint32_t entries = (uint32_t)json_integer_value(json_object_get(o, "entries"));
	const uint32_t cqe = (uint32_t)json_integer_value(json_object_get(o, "cqe"));
	void *mem = client_place(ctx, o, ring_size(entries, sizeof(struct ring_cqe)));

	if (mem == NULL || cqe == 0)
		return client_fail(EPROTO, "the completion queue lies nowhere");
	cq->handle = (uint32_t)json_integer_value(json_object_get(o, "handle"));
	cq->pub.cqe = (int)cqe;
	cq->armed_from = ARMED_NEVER;
	ring_cq_attach(&cq->ring, mem, entries, cqe, false);
	return 0;
}

int
rl_create_cq(struct rl_context *pub, int cqe, void *cq_context, struct rl_comp_channel *channel,
	struct rl_cq **out)
{
	struct context *ctx = context_of(pub);
	struct channel *ch = (struct channel *)channel;
	struct cq *cq =
		aligned_alloc(CACHE_LINE, (sizeof(*cq) + CACHE_LINE - 1) & ~(CACHE_LINE - 1ul));
	json_t *params, *result;
	int rc;

	*out = NULL;
	if (cq == NULL)
		return client_fail(ENOMEM, "out of memory");
	memset(cq, 0, sizeof(*cq));
	cq->pub.context = pub;
	cq->pub.channel = channel;
	cq->pub.cq_context = cq_context;
	params = json_pack(
		"{s:i, s:I}", "cqe", cqe, "channel", (json_int_t)(ch != NULL ? ch->handle : 0));
	client_lock(ctx);
	rc = client_call_for_fds(ctx, "client_cq_create", params, &result);
	if (rc == 0) {
		rc = take_cq(ctx, cq, result);
		json_decref(result);
	}
	if (rc == 0) {
		TAILQ_INSERT_TAIL(&ctx->cqs, cq, all);
		if (ch != NULL)
			TAILQ_INSERT_TAIL(&ch->cqs, cq, of_channel);
		*out = &cq->pub;
	} else {
		free(cq);
	}
	client_unlock(ctx);
	return rc;
}

/*
 * The queue's lock is held. No worker writes to the old ring: what stands there comes before all of
 * the new one. What was asked for is asked for anew; with something left, an event is due at once.
 */
static void
switch_ring(struct cq *cq, void *mem, uint32_t entries, uint32_t cqe, struct ring_cqe *left)
{
	const uint32_t fired = atomic_load_explicit(&cq->ring.sh->fired, memory_order_relaxed);
	const bool waiting = cq->armed_from != ARMED_NEVER && cq->armed_at == fired;
	const uint32_t had = cq->left_n - cq->left_at, turn = cq->ring.turn;

	if (had != 0)
		memcpy(left, &cq->left[cq->left_at], had * sizeof(*left));
	free(cq->left);
	cq->left = left;
	cq->left_at = 0;
	cq->left_n = had + ring_cq_poll(&cq->ring, left + had, cq->ring.mask + 1);
	cq->pub.cqe = (int)cqe;
	ring_cq_attach(&cq->ring, mem, entries, cqe, false);
	cq->ring.turn = turn; /* no word is ever like the one that was answered last */
	if (!waiting)
		return;
	cq->armed_next = cq->armed_next || cq->left_n != 0;
	cq->armed_from = cq->ring.cons - (cq->left_n != 0);
	ring_cq_arm_at(&cq->ring, cq->armed_next ? RING_CQ_NEXT : RING_CQ_SOLICITED,
		(uint32_t)cq->armed_from);
}

/* Programs count what they posted among what stands in it: a device is done with it by now. */
static void
let_completions_come(struct context *ctx, const struct cq *cq)
{
	struct qp *qp;

	TAILQ_FOREACH (qp, &ctx->qps, all)
		if (qp->pub.send_cq == &cq->pub)
			client_let_sends_go(ctx, qp);
}

/* The context's lock is held. Also ends a resize that was begun: then with that one's cqe. */
static int
resize(struct context *ctx, struct cq *cq, int cqe)
{
	struct ring_cqe *left;
	uint32_t entries = 0, now = 0;
	json_t *result;
	void *mem = NULL;
	int rc;

	spin_lock(&cq->lock);
	rc = (int)(cq->left_n - cq->left_at);
	spin_unlock(&cq->lock);
	if (cqe < rc)
		return client_fail(EINVAL, "cqe %d: %d completions stand in it", cqe, rc);
	left = aligned_alloc(CACHE_LINE, ((uint32_t)rc + cq->ring.mask + 1) * sizeof(*left));
	if (left == NULL)
		return client_fail(ENOMEM, "out of memory");
	rc = client_call_for_fds(ctx, "client_cq_resize",
		json_pack("{s:I, s:i}", "handle", (json_int_t)cq->handle, "cqe", cqe), &result);
	if (rc == 0) {
		entries = (uint32_t)json_integer_value(json_object_get(result, "entries"));
		now = (uint32_t)json_integer_value(json_object_get(result, "cqe"));
		mem = client_place(ctx, result, ring_size(entries, sizeof(struct ring_cqe)));
		json_decref(result);
		if (mem == NULL || now == 0)
			rc = client_fail(EPROTO, "the completion queue lies nowhere");
	}
	if (rc != 0) {
		free(left);
		return rc;
	}
	spin_lock(&cq->lock);
	switch_ring(cq, mem, entries, now, left);
	spin_unlock(&cq->lock);
	return 0;
}

int
rl_resize_cq(struct rl_cq *pub, int cqe)
{
	struct context *ctx = context_of(pub->context);
	struct cq *cq = (struct cq *)pub;
	int rc;

	client_lock(ctx);
	if (cqe < pub->cqe)
		let_completions_come(ctx, cq);
	rc = resize(ctx, cq, cqe);
	if (rc == 0 && pub->cqe != cqe)
		rc = resize(ctx, cq, cqe);
	client_unlock(ctx);
	return rc;
}

int
rl_destroy_cq(struct rl_cq *pub)
{
	struct context *ctx = context_of(pub->context);
	struct cq *cq = (struct cq *)pub;
	struct channel *ch = (struct channel *)pub->channel;
	json_t *result;
	int rc;

	client_lock(ctx);
	rc = client_call(ctx, "client_cq_destroy",
		json_pack("{s:I}", "handle", (json_int_t)cq->handle), -1, &result);
	if (rc != 0) {
		client_unlock(ctx);
		return rc;
	}
	TAILQ_REMOVE(&ctx->cqs, cq, all);
	if (ch != NULL) {
		TAILQ_REMOVE(&ch->cqs, cq, of_channel);
		fds_uncount(ch->event_fd,
			(uint32_t)json_integer_value(json_object_get(result, "fired")) - cq->fired);
	}
	json_decref(result);
	client_wait_acks(ctx, &cq->completion);
	client_wait_acks(ctx, &cq->async);
	client_unlock(ctx);
	free(cq->left);
	free(cq->users);
	free(cq);
	return 0;
}

static void
fill(struct rl_wc *wc, const struct ring_cqe *e)
{
	*wc = (struct rl_wc){ .wr_id = e->wr_id,
		.status = (enum rl_wc_status)e->status,
		.opcode = (enum rl_wc_opcode)e->opcode,
		.vendor_err = e->vendor_err,
		.byte_len = e->byte_len,
		.qp_num = e->qp_num,
		.src_qp = e->src_qp,
		.wc_flags = e->wc_flags,
		.psn = e->psn,
		.grh_ip = e->grh_ip,
		.timestamp_ns = e->time_ns };
	if ((e->wc_flags & WC_WITH_INV) != 0)
		wc->invalidated_rkey = e->imm_data;
	else
		wc->imm_data = htonl(e->imm_data);
}

/* Are both of the same work queue? */
static bool
is_of_queue(const struct ring_cqe *a, const struct ring_cqe *b)
{
	return a->qp_num == b->qp_num && ((a->opcode ^ b->opcode) & RL_WC_RECV) == 0;
}

/*
 * As with verbs, a place in a work queue is free when its completion was polled: a CQ as large
 * as the queues that use it never overflows.
 */
static void
give_back(const struct cq *cq, const struct ring_cqe *e, uint32_t n)
{
	for (uint32_t i = 0, next; i < n; i = next) {
		struct qp *qp = client_cq_user(cq, e[i].qp_num);

		for (next = i + 1; next < n && is_of_queue(&e[i], &e[next]);)
			next++;
		if (qp != NULL)
			client_qp_completed(qp, (e[i].opcode & RL_WC_RECV) != 0, next - i);
	}
}

/* The queue is empty: is there still anybody to fill it? */
static int
nothing(struct cq *cq)
{
	struct context *ctx = context_of(cq->pub.context);

	if (!client_gone(ctx) && (++cq->idle % IDLE_LOOK != 0 || !client_lost(ctx)))
		return 0;
	return client_no_dataplane();
}

/* What stood in the queue before it was resized comes first. */
static uint32_t
take(struct cq *cq, struct ring_cqe *e, uint32_t want)
{
	uint32_t n = cq->left_n - cq->left_at;

	if (LIKELY(n == 0))
		return ring_cq_poll(&cq->ring, e, want);
	n = n < want ? n : want;
	memcpy(e, &cq->left[cq->left_at], n * sizeof(*e));
	cq->left_at += n;
	if (cq->left_at == cq->left_n) {
		free(cq->left);
		cq->left = NULL;
		cq->left_at = cq->left_n = 0;
	}
	return n;
}

void
client_cq_forget(struct rl_cq *pub, uint32_t qp_num)
{
	struct cq *cq = (struct cq *)pub;
	uint32_t n = 0;

	if (cq == NULL)
		return;
	spin_lock(&cq->lock);
	for (uint32_t i = cq->left_at; i < cq->left_n; i++)
		if (cq->left[i].qp_num != qp_num)
			cq->left[n++] = cq->left[i];
	cq->left_at = 0;
	cq->left_n = n;
	ring_cq_forget(&cq->ring, qp_num);
	spin_unlock(&cq->lock);
}

int
rl_poll_cq(struct rl_cq *pub, int num_entries, struct rl_wc *wc)
{
	struct cq *cq = (struct cq *)pub;
	struct ring_cqe e[POLL_BATCH];
	uint32_t vain;
	int got = 0;

	spin_lock(&cq->lock);
	while (got < num_entries) {
		const uint32_t want =
			num_entries - got < POLL_BATCH ? (uint32_t)(num_entries - got) : POLL_BATCH;
		const uint32_t n = take(cq, e, want);

		if (n != 0)
			give_back(cq, e, n);
		for (uint32_t i = 0; i < n; i++)
			fill(&wc[got++], &e[i]);
		if (n < want)
			break;
	}
	if (UNLIKELY(got == 0) && num_entries > 0)
		got = nothing(cq);
	cq->vain = got == 0 ? cq->vain + 1 : 0;
	vain = cq->vain;
	spin_unlock(&cq->lock);
	if (vain != 0)
		client_give_way(context_of(pub->context), &cq->looked, vain);
	return got;
}

int
rl_req_notify_cq(struct rl_cq *pub, int solicited_only)
{
	struct cq *cq = (struct cq *)pub;
	uint32_t fired, from;

	if (pub->channel == NULL)
		return client_fail(EINVAL, "the CQ was created without a completion channel");
	spin_lock(&cq->lock);
	/* Armed for any completion, it stays so when solicited ones are asked for as well. */
	fired = atomic_load_explicit(&cq->ring.sh->fired, memory_order_relaxed);
	cq->armed_next =
		(solicited_only & ~RL_NOTIFY_NEW) == 0 || (cq->armed_next && cq->armed_at == fired);
	/* What is left of an older ring was not polled: an event is due. */
	from = cq->ring.cons - (cq->left_n != 0);
	cq->armed_next = cq->armed_next || cq->left_n != 0;
	if ((solicited_only & RL_NOTIFY_NEW) != 0)
		from = ring_cq_untold(&cq->ring, from);
	cq->armed_at = fired;
	cq->armed_from = from;
	ring_cq_arm_at(&cq->ring, cq->armed_next ? RING_CQ_NEXT : RING_CQ_SOLICITED, from);
	spin_unlock(&cq->lock);
	return 0;
}

void
client_free_cqs(struct context *ctx)
{
	struct channel *ch;
	struct xrcd *xrcd;
	struct srq *srq;
	struct cq *cq;
	struct qp *qp;

	while ((qp = TAILQ_FIRST(&ctx->qps)) != NULL) {
		TAILQ_REMOVE(&ctx->qps, qp, all);
		client_qp_free(qp);
	}
	client_free_ahs(ctx);
	while ((srq = TAILQ_FIRST(&ctx->srqs)) != NULL) {
		TAILQ_REMOVE(&ctx->srqs, srq, all);
		free(srq);
	}
	while ((xrcd = TAILQ_FIRST(&ctx->xrcds)) != NULL) {
		TAILQ_REMOVE(&ctx->xrcds, xrcd, all);
		free(xrcd);
	}
	while ((cq = TAILQ_FIRST(&ctx->cqs)) != NULL) {
		TAILQ_REMOVE(&ctx->cqs, cq, all);
		free(cq->left);
		free(cq->users);
		free(cq);
	}
	while ((ch = TAILQ_FIRST(&ctx->channels)) != NULL) {
		TAILQ_REMOVE(&ctx->channels, ch, all);
		client_channel_free(ctx, ch);
	}
}
