/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications (librocelane): the way to a peer that was found. */
#include <errno.h>

#include "connect_client.h"
#include "method_client_cm.h"

struct p_class {
	uint32_t handle;
	uint32_t traffic_class;
};

static const struct conf_field class_rows[] = {
	P_U32(p_class, handle, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_class, traffic_class, 0, UINT8_MAX, P_REQUIRED),
};
static const struct conf_table class_table = P_TABLE(p_class, class_rows, "params");

static int
id_class(struct rpc_call *call)
{
	const struct p_class *p = call->params;
	struct refusal r;
	struct connect_id *id = method_cm_id(call, p->handle, &r);

	if (id == NULL ||
		connect_client_class(call->m->connect, id, (uint8_t)p->traffic_class, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

const struct rpc_method methods_client_way[] = {
	{ "client_cm_class", id_class, &class_table },
	{ NULL, NULL, NULL },
};
