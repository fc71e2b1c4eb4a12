/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups. */
#include <arpa/inet.h>

#include "client_priv.h"

static int
change(struct rl_qp *qp, const union rl_gid *gid, const char *method)
{
	struct context *ctx = context_of(qp->context);
	char ip[INET6_ADDRSTRLEN];
	json_t *result;
	int rc;

	client_ip_of(gid, ip);
	client_lock(ctx);
	rc = client_call(ctx, method,
		json_pack("{s:I, s:s}", "qp_num", (json_int_t)qp->qp_num, "group", ip), -1,
		&result);
	if (rc == 0)
		json_decref(result);
	client_unlock(ctx);
	return rc;
}

int
rl_attach_mcast(struct rl_qp *qp, const union rl_gid *gid, uint16_t lid)
{
	(void)lid;
	return change(qp, gid, "client_mcast_attach");
}

int
rl_detach_mcast(struct rl_qp *qp, const union rl_gid *gid, uint16_t lid)
{
	(void)lid;
	return change(qp, gid, "client_mcast_detach");
}
