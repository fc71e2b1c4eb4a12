/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications (librocelane): XRC domains. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admin_open.h"
#include "methods.h"
#include "method_client.h"

#define XRCD_NAME_MAX 40

struct p_open {
	char name[XRCD_NAME_MAX + 1]; /* "": one that nobody else opens */
	bool create;
	bool exclusive;
};

static const struct conf_field open_rows[] = {
	P_NUMBER(p_open, name, CONF_T_STR, 1, XRCD_NAME_MAX, P_OPTIONAL),
	P_BOOL(p_open, create, P_DEFAULT(1)),
	P_BOOL(p_open, exclusive, P_DEFAULT(0)),
};
static const struct conf_table open_table = P_TABLE(p_open, open_rows, "params");

/*
 * Who may share is decided here: applications of one user, by a name. Nobody else's has such a
 * name, for the user's number is a part of it.
 */
static int
open_xrcd(struct rpc_call *call, struct object_xrcd **out, struct refusal *r)
{
	struct objects *objects = call->m->objects;
	const struct p_open *p = call->params;
	struct owner *o = &call->client->app->o;
	struct conf_xrcd conf;
	struct named *there = NULL;
	int rc;

	if (p->name[0] == '\0')
		owner_name(o, "xrcd", conf.name);
	else
		snprintf(conf.name, sizeof(conf.name), "user %u %s", o->process.uid, p->name);
	there = names_find(&objects->xrcds, conf.name);
	if (there != NULL && p->exclusive)
		return refuse(r, EEXIST, "xrcd \"%s\" exists already", p->name);
	if (there == NULL && !p->create)
		return refuse(r, ENOENT, "xrcd \"%s\" does not exist", p->name);
	if (there != NULL) {
		*out = (struct object_xrcd *)(void *)there;
		(*out)->opened++;
		return 0;
	}
	rc = object_xrcd_create(objects, &conf, r);
	if (rc == 0)
		*out = object_xrcd_find(objects, conf.name, r);
	return rc;
}

static int
xrcd_open(struct rpc_call *call)
{
	struct app *app = call->client->app;
	struct object_xrcd *xrcd = NULL;
	struct refusal r;
	uint32_t handle;

	if (owner_charge(&app->o, OWNER_PDS, 1, &r) != 0)
		return rpc_refused(call, &r);
	if (open_xrcd(call, &xrcd, &r) != 0) {
		owner_uncharge(&app->o, OWNER_PDS, 1);
		return rpc_refused(call, &r);
	}
	handle = app_table_add(&app->xrcds, xrcd);
	if (handle == 0) {
		object_xrcd_close(call->m->objects, xrcd, &r);
		owner_uncharge(&app->o, OWNER_PDS, 1);
		return rpc_result(call, NULL);
	}
	return rpc_result(call, json_pack("{s:I}", "handle", (json_int_t)handle));
}

/* Has the application something in it? Then it cannot go yet, whoever else has it open. */
static bool
is_used(const struct app *app, const struct object_xrcd *xrcd)
{
	const struct admin_qp *rec;

	for (uint32_t i = 0; i < app->srqs.room; i++) {
		const struct app_srq *s = app->srqs.v[i];

		if (s != NULL && s->srq->xrcd == xrcd)
			return true;
	}
	TAILQ_FOREACH (rec, &app->o.qps, of_owner)
		if (rec->xrcd == xrcd)
			return true;
	return admin_has_open_in(&app->o, xrcd);
}

static int
xrcd_close(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct app *app = call->client->app;
	struct object_xrcd *xrcd = app_table_get(&app->xrcds, p->handle);
	struct refusal r;

	if (xrcd == NULL)
		return method_client_refuse(call, ENOENT, "xrcd", p->handle);
	if (is_used(app, xrcd)) {
		refuse(&r, EBUSY, "xrcd %u is in use by an SRQ or a QP", p->handle);
		return rpc_refused(call, &r);
	}
	if (object_xrcd_close(call->m->objects, xrcd, &r) != 0)
		return rpc_refused(call, &r);
	owner_uncharge(&app->o, OWNER_PDS, 1);
	app_table_remove(&app->xrcds, p->handle);
	return rpc_result(call, json_object());
}

struct p_qp_open {
	uint32_t pd;
	uint32_t xrcd;
	uint32_t qp_num;
};

static const struct conf_field qp_open_rows[] = {
	P_U32(p_qp_open, pd, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_qp_open, xrcd, 1, UINT32_MAX, P_REQUIRED),
	P_QPN(p_qp_open, qp_num, P_REQUIRED),
};
static const struct conf_table qp_open_table = P_TABLE(p_qp_open, qp_open_rows, "params");

/* A target of a domain that the application has: whoever made it. */
static int
qp_open(struct rpc_call *call)
{
	const struct p_qp_open *p = call->params;
	struct app *app = call->client->app;
	struct object_pd *pd = app_table_get(&app->pds, p->pd);
	const struct object_xrcd *xrcd = app_table_get(&app->xrcds, p->xrcd);
	struct admin_qp *rec = admin_find(call->m->admin, p->qp_num);
	struct refusal r;

	if (pd == NULL)
		return method_client_refuse(call, ENOENT, "pd", p->pd);
	if (xrcd == NULL)
		return method_client_refuse(call, ENOENT, "xrcd", p->xrcd);
	if (rec == NULL || rec->xrcd != xrcd || rec->shared->owner == NULL)
		return method_client_refuse(call, ENOENT, "qp_num", p->qp_num);
	if (admin_open(&app->o, rec, pd, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call,
		json_pack("{s:I, s:i}", "qp_num", (json_int_t)rec->qpn, "worker", rec->worker));
}

const struct rpc_method methods_client_xrcd[] = {
	{ "client_xrcd_open", xrcd_open, &open_table },
	{ "client_qp_open", qp_open, &qp_open_table },
	{ "client_xrcd_close", xrcd_close, &method_handle_table },
	{ NULL, NULL, NULL },
};
