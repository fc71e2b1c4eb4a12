/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications (librocelane): address handles. */
#include <errno.h>
#include <stdlib.h>

#include "admin_ah.h"
#include "methods.h"
#include "method_client.h"

struct p_ah {
	uint32_t pd;
	char port[CONF_NAME_MAX];
	struct conf_ah ah_attr;
};

static const struct conf_field ah_rows[] = {
	P_U32(p_ah, pd, 1, UINT32_MAX, P_REQUIRED),
	P_NAME(p_ah, port, P_REQUIRED),
	{ .name = "ah_attr",
		.type = CONF_T_OBJECT,
		.offset = offsetof(struct p_ah, ah_attr),
		.sub = &conf_table_ah,
		P_REQUIRED },
};
static const struct conf_table ah_table = P_TABLE(p_ah, ah_rows, "params");

static int
make(struct rpc_call *call, struct app_ah *h, struct refusal *r)
{
	const struct p_ah *p = call->params;
	struct app *app = call->client->app;
	const int port = env_port_named(call->m->env, p->port);
	const struct admin_ah_for who = {
		.owner = &app->o, .pd = h->pd->id, .port = (int16_t)port, .key = "ah_attr"
	};
	int rc;

	if (port < 0)
		return refuse(r, ENOENT, "port \"%s\" does not exist", p->port);
	rc = admin_ah_create(call->m->admin, &who, &p->ah_attr, &h->ah, r);
	if (rc != 0)
		return rc;
	h->handle = app_table_add(&app->ahs, h);
	if (h->handle != 0)
		return 0;
	admin_ah_destroy(call->m->admin, h->ah);
	return refuse(r, ENOMEM, "out of memory");
}

static int
ah_create(struct rpc_call *call)
{
	const struct p_ah *p = call->params;
	struct app *app = call->client->app;
	struct object_pd *pd = app_table_get(&app->pds, p->pd);
	struct app_ah *h;
	struct refusal r;

	if (pd == NULL)
		return method_client_refuse(call, ENOENT, "pd", p->pd);
	if (owner_charge(&app->o, OWNER_AHS, 1, &r) != 0)
		return rpc_refused(call, &r);
	h = calloc(1, sizeof(*h));
	if (h != NULL)
		h->pd = pd;
	if (h == NULL || make(call, h, &r) != 0) {
		owner_uncharge(&app->o, OWNER_AHS, 1);
		if (h == NULL)
			return rpc_result(call, NULL);
		free(h);
		return rpc_refused(call, &r);
	}
	pd->users++;
	return rpc_result(call, json_pack("{s:I, s:I}", "handle", (json_int_t)h->handle, "key",
					(json_int_t)h->ah->handle));
}

/* Is there a MAC to send to? Else what is known of the neighbour. */
static int
ah_query(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	const struct app_ah *h = app_table_get(&call->client->app->ahs, p->handle);
	char text[256];

	if (h == NULL)
		return method_client_refuse(call, ENOENT, "ah", p->handle);
	if (!neigh_text(call->m->net, &h->ah->link, text, sizeof(text)))
		text[0] = '\0';
	return rpc_result(call, json_pack("{s:b, s:s}", "known", h->ah->known, "neighbor", text));
}

static int
ah_destroy(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct app *app = call->client->app;
	struct app_ah *h = app_table_get(&app->ahs, p->handle);

	if (h == NULL)
		return method_client_refuse(call, ENOENT, "ah", p->handle);
	app_table_remove(&app->ahs, p->handle);
	owner_uncharge(&app->o, OWNER_AHS, 1);
	admin_ah_destroy(call->m->admin, h->ah);
	h->pd->users--;
	free(h);
	return rpc_result(call, json_object());
}

const struct rpc_method methods_client_ah[] = {
	{ "client_ah_create", ah_create, &ah_table },
	{ "client_ah_query", ah_query, &method_handle_table },
	{ "client_ah_destroy", ah_destroy, &method_handle_table },
	{ NULL, NULL, NULL },
};
