/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: made and removed by calls, bound by work requests. */
#include <errno.h>
#include <stdlib.h>

#include "client_priv.h"

#define FAST 3 /* type of a window that is a fast-register region */

/* The context's lock is held. @param type enum rl_mw_type, or FAST. */
static int
alloc(struct context *ctx, struct rl_pd *pd, int type, uint32_t *handle, uint32_t *rkey)
{
	json_t *result;
	const int rc = client_call(ctx, "client_mw_alloc",
		json_pack("{s:I, s:i}", "pd", (json_int_t)((struct pd *)pd)->handle, "type", type),
		-1, &result);

	if (rc != 0)
		return rc;
	*handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
	*rkey = (uint32_t)json_integer_value(json_object_get(result, "rkey"));
	json_decref(result);
	return 0;
}

int
rl_alloc_mw(struct rl_pd *pub, enum rl_mw_type type, struct rl_mw **out)
{
	struct context *ctx = context_of(pub->context);
	struct mw *mw = calloc(1, sizeof(*mw));
	int rc;

	*out = NULL;
	if (mw == NULL)
		return client_fail(ENOMEM, "out of memory");
	mw->pub = (struct rl_mw){ .context = pub->context, .pd = pub, .type = type };
	if (type != RL_MW_TYPE_1 && type != RL_MW_TYPE_2) {
		free(mw);
		return client_fail(EINVAL, "a window is of type 1 or 2");
	}
	client_lock(ctx);
	rc = alloc(ctx, pub, (int)type, &mw->handle, &mw->pub.rkey);
	if (rc == 0)
		TAILQ_INSERT_TAIL(&ctx->mws, mw, all);
	client_unlock(ctx);
	if (rc == 0)
		*out = &mw->pub;
	else
		free(mw);
	return rc;
}

int
rl_alloc_mr(struct rl_pd *pub, struct rl_mr **out)
{
	struct context *ctx = context_of(pub->context);
	struct mr *mr = calloc(1, sizeof(*mr));
	int rc;

	*out = NULL;
	if (mr == NULL)
		return client_fail(ENOMEM, "out of memory");
	mr->pub = (struct rl_mr){ .context = pub->context, .pd = pub };
	mr->fast = true;
	client_lock(ctx);
	rc = alloc(ctx, pub, FAST, &mr->handle, &mr->pub.rkey);
	if (rc == 0)
		TAILQ_INSERT_TAIL(&ctx->mrs, mr, all);
	client_unlock(ctx);
	mr->pub.lkey = mr->pub.rkey;
	if (rc == 0)
		*out = &mr->pub;
	else
		free(mr);
	return rc;
}

int
rl_dealloc_mw(struct rl_mw *pub)
{
	struct context *ctx = context_of(pub->context);
	struct mw *mw = (struct mw *)pub;
	const int rc = client_call_handle(ctx, "client_mw_dealloc", mw->handle);

	if (rc != 0)
		return rc;
	client_lock(ctx);
	TAILQ_REMOVE(&ctx->mws, mw, all);
	client_unlock(ctx);
	free(mw);
	return 0;
}

int
rl_bind_mw(struct rl_qp *qp, struct rl_mw *mw, const struct rl_mw_bind *bind)
{
	struct rl_send_wr wr = { .wr_id = bind->wr_id,
		.opcode = RL_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { mw, (mw->rkey & ~UINT32_C(0xff)) | ((mw->rkey + 1) & 0xff),
			bind->bind_info } };
	int rc;

	if (mw->type != RL_MW_TYPE_1)
		return client_fail(EINVAL, "a window of type 2 is bound by RL_WR_BIND_MW");
	rc = rl_post_send(qp, &wr, NULL);
	if (rc == 0)
		mw->rkey = wr.bind_mw.rkey;
	return rc;
}

void
client_free_mws(struct context *ctx)
{
	struct mw *mw;

	while ((mw = TAILQ_FIRST(&ctx->mws)) != NULL) {
		TAILQ_REMOVE(&ctx->mws, mw, all);
		free(mw);
	}
}
