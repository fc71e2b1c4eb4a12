/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups. */
#include <arpa/inet.h>

#include "client_priv.h"

/* @param port_num 0: nothing is said of it. */
static int
change(struct rl_qp *qp, const union rl_gid *gid, uint8_t port_num, const char *method)
{
	struct context *ctx = context_of(qp->context);
	char ip[INET6_ADDRSTRLEN];
	json_t *result, *params;
	int rc;

	client_ip_of(gid, ip);
	params = json_pack("{s:I, s:s}", "qp_num", (json_int_t)qp->qp_num, "group", ip);
	if (port_num != 0)
		json_object_set_new(params, "port_num", json_integer(port_num));
	client_lock(ctx);
	rc = client_call(ctx, method, params, -1, &result);
	if (rc == 0)
		json_decref(result);
	client_unlock(ctx);
	return rc;
}

int
rl_attach_mcast(struct rl_qp *qp, const union rl_gid *gid, uint16_t lid)
{
	(void)lid;
	return change(qp, gid, 0, "client_mcast_attach");
}

int
rl_attach_mcast_at(struct rl_qp *qp, const union rl_gid *gid, uint8_t port_num)
{
	return change(qp, gid, port_num, "client_mcast_attach");
}

int
rl_detach_mcast(struct rl_qp *qp, const union rl_gid *gid, uint16_t lid)
{
	(void)lid;
	return change(qp, gid, 0, "client_mcast_detach");
}
