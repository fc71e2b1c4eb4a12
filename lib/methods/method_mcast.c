/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of multicast groups: the operator's, and those of applications. */
#include <errno.h>

#include "admin_mcast.h"
#include "conf_mcast.h"
#include "method_client.h"
#include "methods.h"

struct p_attach {
	uint32_t qp_num;
	struct conf_ip group;
	uint32_t port_num; /* of a QP that has no port; 0: it is refused */
};

/* clang-format off */
static const struct conf_field attach_rows[] = {
	P_QPN(p_attach, qp_num, P_REQUIRED),
	{ .name = "group", .type = CONF_T_GROUP, .offset = offsetof(struct p_attach, group),
		P_REQUIRED },
	P_U32(p_attach, port_num, 0, CONF_MAX_PORTS, P_DEFAULT(0)),
};
/* clang-format on */
static const struct conf_table attach_table = P_TABLE(p_attach, attach_rows, "params");

static int
change(struct rpc_call *call,
	int (*how)(struct admin *, struct admin_qp *, const struct conf_ip *, struct refusal *))
{
	const struct conf_mcast *p = call->params;
	struct refusal r;
	struct admin_qp *rec = admin_get(call->m->admin, p->qp_num, &r);

	if (rec == NULL || how(call->m->admin, rec, &p->group, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
attach(struct rpc_call *call)
{
	return change(call, admin_mcast_attach);
}

static int
detach(struct rpc_call *call)
{
	return change(call, admin_mcast_detach);
}

static int
list(struct rpc_call *call)
{
	return rpc_result(call, admin_mcast_json(call->m->admin, 0));
}

/* One that has no port yet may have been made for one. */
static int
client_attach(struct rpc_call *call)
{
	const struct p_attach *p = call->params;
	const int rc = method_client_own_qp(call);
	struct admin_qp *rec;
	struct refusal r;

	if (rc != 0)
		return rc;
	if (p->port_num > call->m->env->w.ports_n)
		return method_client_refuse(call, ENOENT, "port", p->port_num);
	rec = admin_get(call->m->admin, p->qp_num, &r);
	if (rec == NULL || admin_mcast_attach_at(call->m->admin, rec, (int16_t)(p->port_num - 1),
				   &p->group, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
client_detach(struct rpc_call *call)
{
	const int rc = method_client_own_qp(call);

	return rc == 0 ? detach(call) : rc;
}

const struct rpc_method methods_mcast[] = {
	{ "mcast_attach", attach, &conf_table_mcast },
	{ "mcast_detach", detach, &conf_table_mcast },
	{ "mcast_list", list, &method_no_params },
	{ NULL, NULL, NULL },
};

const struct rpc_method methods_client_mcast[] = {
	{ "client_mcast_attach", client_attach, &attach_table },
	{ "client_mcast_detach", client_detach, &conf_table_mcast },
	{ NULL, NULL, NULL },
};
