/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: made and removed by calls, bound by work requests. */
#include <errno.h>
#include <stdlib.h>

#include "client_priv.h"

int
rl_alloc_mw(struct rl_pd *pub, enum rl_mw_type type, struct rl_mw **out)
{
	struct context *ctx = context_of(pub->context);
	struct mw *mw = calloc(1, sizeof(*mw));
	json_t *result;
	int rc;

	*out = NULL;
	if (mw == NULL)
		return client_fail(ENOMEM, "out of memory");
	pthread_mutex_lock(&ctx->lock);
	rc = client_call(ctx, "client_mw_alloc",
		json_pack("{s:I, s:i}", "pd", (json_int_t)((struct pd *)pub)->handle, "type",
			(int)type),
		-1, &result);
	if (rc == 0) {
		mw->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		mw->pub = (struct rl_mw){ .context = pub->context,
			.pd = pub,
			.rkey = (uint32_t)json_integer_value(json_object_get(result, "rkey")),
			.type = type };
		json_decref(result);
		TAILQ_INSERT_TAIL(&ctx->mws, mw, all);
		*out = &mw->pub;
	} else {
		free(mw);
	}
	pthread_mutex_unlock(&ctx->lock);
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
	pthread_mutex_lock(&ctx->lock);
	TAILQ_REMOVE(&ctx->mws, mw, all);
	pthread_mutex_unlock(&ctx->lock);
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
