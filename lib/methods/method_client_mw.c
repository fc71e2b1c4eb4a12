/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications: memory windows. One counts as a region without bytes. */
#include <errno.h>

#include "mem_window.h"
#include "method_client.h"

struct p_mw {
	uint32_t pd;
	uint32_t type;
};

static const struct conf_field mw_rows[] = {
	P_U32(p_mw, pd, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_mw, type, 1, 3, P_REQUIRED), /* 3: a fast-register region */
};
static const struct conf_table mw_table = P_TABLE(p_mw, mw_rows, "params");

static int
mw_alloc(struct rpc_call *call)
{
	const struct p_mw *p = call->params;
	struct app *app = call->client->app;
	struct object_pd *pd = app_table_get(&app->pds, p->pd);
	char name[CONF_NAME_MAX];
	struct object_mw *mw;
	struct refusal r;
	uint32_t handle;

	if (pd == NULL)
		return method_client_refuse(call, ENOENT, "pd", p->pd);
	if (owner_charge_region(&app->o, 0, &r) != 0)
		return rpc_refused(call, &r);
	owner_name(&app->o, "mw", name);
	if (object_mw_alloc(call->m->objects, pd, p->type, name, &mw, &r) != 0) {
		owner_uncharge_region(&app->o, 0);
		return rpc_refused(call, &r);
	}
	handle = app_table_add(&app->mws, mw);
	if (handle == 0) {
		owner_uncharge_region(&app->o, 0);
		object_mw_dealloc(call->m->objects, mw);
		return rpc_result(call, NULL);
	}
	return rpc_result(call, json_pack("{s:I, s:I}", "handle", (json_int_t)handle, "rkey",
					(json_int_t)mw->window->r.key));
}

static int
mw_dealloc(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct app *app = call->client->app;
	struct object_mw *mw = app_table_get(&app->mws, p->handle);

	if (mw == NULL)
		return method_client_refuse(call, ENOENT, "mw", p->handle);
	object_mw_dealloc(call->m->objects, mw);
	owner_uncharge_region(&app->o, 0);
	app_table_remove(&app->mws, p->handle);
	return rpc_result(call, json_object());
}

const struct rpc_method methods_client_mw[] = {
	{ "client_mw_alloc", mw_alloc, &mw_table },
	{ "client_mw_dealloc", mw_dealloc, &method_handle_table },
	{ NULL, NULL, NULL },
};
