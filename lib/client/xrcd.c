/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains: this application's own, or one that it shares with others by a name. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "client_priv.h"

/* @param params taken. */
static int
open_xrcd(struct rl_context *pub, json_t *params, struct rl_xrcd **out)
{
	struct context *ctx = context_of(pub);
	struct xrcd *xrcd = calloc(1, sizeof(*xrcd));
	json_t *result;
	int rc;

	*out = NULL;
	if (xrcd == NULL) {
		json_decref(params);
		return client_fail(ENOMEM, "out of memory");
	}
	client_lock(ctx);
	rc = client_call(ctx, "client_xrcd_open", params, -1, &result);
	if (rc == 0) {
		xrcd->pub.context = pub;
		xrcd->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		TAILQ_INSERT_TAIL(&ctx->xrcds, xrcd, all);
		json_decref(result);
		*out = &xrcd->pub;
	} else {
		free(xrcd);
	}
	client_unlock(ctx);
	return rc;
}

int
rl_create_xrcd(struct rl_context *ctx, struct rl_xrcd **out)
{
	return open_xrcd(ctx, json_object(), out);
}

int
rl_open_xrcd(struct rl_context *ctx, const char *name, int oflags, struct rl_xrcd **out)
{
	return open_xrcd(ctx,
		json_pack("{s:s, s:b, s:b}", "name", name, "create", (oflags & O_CREAT) != 0,
			"exclusive", (oflags & O_CREAT) != 0 && (oflags & O_EXCL) != 0),
		out);
}

int
rl_close_xrcd(struct rl_xrcd *pub)
{
	struct context *ctx = context_of(pub->context);
	struct xrcd *xrcd = (struct xrcd *)pub;
	const int rc = client_call_handle(ctx, "client_xrcd_close", xrcd->handle);

	if (rc != 0)
		return rc;
	client_lock(ctx);
	TAILQ_REMOVE(&ctx->xrcds, xrcd, all);
	client_unlock(ctx);
	free(xrcd);
	return 0;
}
