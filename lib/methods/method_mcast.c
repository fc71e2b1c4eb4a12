/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of multicast groups: the operator's, and those of applications. */
#include "admin_mcast.h"
#include "conf_mcast.h"
#include "method_client.h"
#include "methods.h"

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

static int
client_attach(struct rpc_call *call)
{
	const int rc = method_client_own_qp(call);

	return rc == 0 ? attach(call) : rc;
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
	{ "client_mcast_attach", client_attach, &conf_table_mcast },
	{ "client_mcast_detach", client_detach, &conf_table_mcast },
	{ NULL, NULL, NULL },
};
