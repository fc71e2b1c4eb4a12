/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: QPs on any worker take from the ring; posting is in post.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

static uint32_t
number(const json_t *o, const char *key)
{
	return (uint32_t)json_integer_value(json_object_get(o, key));
}

/* What an answer tells: where the ring is now, and how much fits into it. */
static int
take_srq(struct context *ctx, struct srq *srq, const json_t *o)
{
	const uint32_t max_sge = number(o, "max_sge");
	const int rc = client_take_ring(ctx, o, ring_recv_stride(max_sge), &srq->ring);

	if (rc != 0)
		return rc;
	srq->max_wr = number(o, "max_wr");
	srq->max_sge = max_sge;
	return 0;
}

int
rl_create_srq(struct rl_pd *pd, struct rl_srq_init_attr *init, struct rl_srq **out)
{
	const size_t bytes = (sizeof(struct srq) + CACHE_LINE - 1) & ~(CACHE_LINE - 1ul);
	struct context *ctx = context_of(pd->context);
	struct srq *srq = aligned_alloc(CACHE_LINE, bytes);
	json_t *params, *result;
	int rc;

	*out = NULL;
	if (srq == NULL)
		return client_fail(ENOMEM, "out of memory");
	if (init->srq_type != RL_SRQT_BASIC && init->srq_type != RL_SRQT_XRC) {
		free(srq);
		return client_fail(
			EINVAL, "srq_type %u does not exist", (unsigned int)init->srq_type);
	}
	if (init->srq_type == RL_SRQT_XRC && (init->xrcd == NULL || init->cq == NULL)) {
		free(srq);
		return client_fail(EINVAL, "an SRQ of type XRC needs an xrcd and a cq");
	}
	memset(srq, 0, bytes);
	srq->pub = (struct rl_srq){
		.context = pd->context, .pd = pd, .srq_context = init->srq_context
	};
	if (init->srq_type == RL_SRQT_XRC) {
		srq->pub.srq_type = RL_SRQT_XRC;
		srq->pub.xrcd = init->xrcd;
		srq->pub.cq = init->cq;
	}
	/* As with verbs, srq_limit counts in rl_modify_srq() alone. */
	params = json_pack("{s:I, s:I, s:I}", "pd", (json_int_t)((struct pd *)pd)->handle, "max_wr",
		(json_int_t)init->attr.max_wr, "max_sge", (json_int_t)init->attr.max_sge);
	if (init->srq_type == RL_SRQT_XRC) {
		json_object_set_new(
			params, "xrcd", json_integer(((struct xrcd *)init->xrcd)->handle));
		json_object_set_new(params, "cq", json_integer(((struct cq *)init->cq)->handle));
	}
	client_lock(ctx);
	rc = client_call_for_fds(ctx, "client_srq_create", params, &result);
	if (rc == 0) {
		srq->handle = number(result, "handle");
		srq->pub.srq_num = number(result, "srq_num");
		rc = take_srq(ctx, srq, result);
		json_decref(result);
	}
	if (rc == 0) {
		TAILQ_INSERT_TAIL(&ctx->srqs, srq, all);
		init->attr.max_wr = srq->max_wr;
		init->attr.max_sge = srq->max_sge;
		*out = &srq->pub;
	} else {
		free(srq);
	}
	client_unlock(ctx);
	return rc;
}

int
rl_modify_srq(struct rl_srq *pub, const struct rl_srq_attr *attr, int mask)
{
	struct context *ctx = context_of(pub->context);
	struct srq *srq = srq_of(pub);
	json_t *result, *params;
	int rc;

	if ((mask & ~(RL_SRQ_MAX_WR | RL_SRQ_LIMIT)) != 0)
		return client_fail(
			EINVAL, "mask 0x%x is no set of enum rl_srq_attr_mask", (unsigned int)mask);
	params = json_pack("{s:I}", "handle", (json_int_t)srq->handle);
	if ((mask & RL_SRQ_MAX_WR) != 0)
		json_object_set_new(params, "max_wr", json_integer(attr->max_wr));
	if ((mask & RL_SRQ_LIMIT) != 0)
		json_object_set_new(params, "srq_limit", json_integer(attr->srq_limit));
	client_lock(ctx);
	/* The ring may move: nobody posts into the old one meanwhile. */
	spin_lock(&srq->lock);
	rc = client_call(ctx, "client_srq_modify", params, -1, &result);
	if (rc == 0) {
		rc = take_srq(ctx, srq, result);
		json_decref(result);
	}
	spin_unlock(&srq->lock);
	client_unlock(ctx);
	return rc;
}

int
rl_get_srq_num(struct rl_srq *pub, uint32_t *srq_num)
{
	if (pub->srq_type != RL_SRQT_XRC)
		return client_fail(EINVAL, "the SRQ is not of type XRC: it has no number");
	*srq_num = pub->srq_num;
	return 0;
}

int
rl_query_srq(struct rl_srq *pub, struct rl_srq_attr *attr)
{
	struct context *ctx = context_of(pub->context);
	json_t *result;
	int rc;

	client_lock(ctx);
	rc = client_call(ctx, "client_srq_query",
		json_pack("{s:I}", "handle", (json_int_t)srq_of(pub)->handle), -1, &result);
	if (rc == 0) {
		*attr = (struct rl_srq_attr){ .max_wr = number(result, "max_wr"),
			.max_sge = number(result, "max_sge"),
			.srq_limit = number(result, "srq_limit") };
		json_decref(result);
	}
	client_unlock(ctx);
	return rc;
}

int
rl_destroy_srq(struct rl_srq *pub)
{
	struct context *ctx = context_of(pub->context);
	struct srq *srq = srq_of(pub);
	const int rc = client_call_handle(ctx, "client_srq_destroy", srq->handle);

	if (rc != 0)
		return rc;
	client_lock(ctx);
	TAILQ_REMOVE(&ctx->srqs, srq, all);
	client_wait_acks(ctx, &srq->async);
	client_unlock(ctx);
	free(srq);
	return 0;
}
