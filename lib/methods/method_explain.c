/* SPDX-License-Identifier: BSD-3-Clause */
/* The method that tells why. */
#include <errno.h>

#include "methods.h"

static int
qp_explain(struct rpc_call *call)
{
	const struct p_qp *p = call->params;
	struct refusal r;
	struct admin_qp *rec;
	struct qp_snapshot *s = call->m->admin->snapshots;

	env_drain(call->m->env); /* what was raised before is in the answer */
	rec = admin_get(call->m->admin, p->qp_num, &r);
	if (rec == NULL && post_mortem_has(call->m->diagnose, p->qp_num))
		refuse(&r, ENOENT,
			"qp_num %u does not exist any more; it has failed before (qp post-mortem %u)",
			p->qp_num, p->qp_num);
	if (rec == NULL || admin_snapshots(call->m->admin, &rec, 1, s, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, explain_json(call->m->diagnose, rec, s));
}

const struct rpc_method methods_explain[] = {
	{ "qp_explain", qp_explain, &method_qp_table },
	{ NULL, NULL, NULL },
};
