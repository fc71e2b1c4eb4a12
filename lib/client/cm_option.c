/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of ids: how they share their service port. */
#include <errno.h>

#include "cm.h"

int
rl_cm_set_afonly(struct rl_cm_id *pub, bool on)
{
	struct cm_id *id = cm_id_of(pub);

	if (id->handle != 0)
		return client_fail(EINVAL, "the id listens, or has a peer");
	id->afonly = on;
	return 0;
}

int
rl_cm_set_reuseaddr(struct rl_cm_id *pub, bool on)
{
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	int rc = 0;

	if (!on && (id->handle != 0 || id->local.ss_family != 0))
		return client_fail(EINVAL, "the id is bound, listens, or has a peer");
	if (id->handle != 0 && id->peer.ss_family == 0)
		return client_fail(EINVAL, "who listens is alone at its port");
	client_lock(ctx);
	if (id->bound != 0)
		rc = client_call(ctx, "client_cm_reuse",
			json_pack("{s:I}", "handle", (json_int_t)id->bound), -1, NULL);
	client_unlock(ctx);
	if (rc == 0)
		id->reuse = on;
	return rc;
}
