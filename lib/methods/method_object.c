/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of protection domains and completion queues. */
#include <errno.h>

#include "methods.h"

static int
pd_create(struct rpc_call *call)
{
	struct conf_pd *conf = call->params;
	struct refusal r;

	if (object_pd_create(call->m->objects, conf, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, conf_encode_pd(conf));
}

static int
pd_dealloc(struct rpc_call *call)
{
	const struct p_name *p = call->params;
	struct refusal r;
	struct object_pd *pd = object_pd_find(call->m->objects, p->name, &r);

	if (pd == NULL || object_pd_destroy(call->m->objects, pd, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
pd_list(struct rpc_call *call)
{
	json_t *list = json_array();
	struct named *o;

	TAILQ_FOREACH (o, &call->m->objects->pds.all, all) {
		const struct object_pd *pd = (const struct object_pd *)(const void *)o;

		list = conf_json_append(list,
			json_pack("{s:s, s:I}", "name", o->name, "users", (json_int_t)pd->users));
	}
	return rpc_result(call, list);
}

static int
xrcd_create(struct rpc_call *call)
{
	struct conf_xrcd *conf = call->params;
	struct refusal r;

	if (object_xrcd_create(call->m->objects, conf, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, conf_encode_xrcd(conf));
}

static int
xrcd_dealloc(struct rpc_call *call)
{
	const struct p_name *p = call->params;
	struct refusal r;
	struct object_xrcd *xrcd = object_xrcd_find(call->m->objects, p->name, &r);

	if (xrcd == NULL || object_xrcd_close(call->m->objects, xrcd, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
xrcd_list(struct rpc_call *call)
{
	json_t *list = json_array();
	struct named *o;

	TAILQ_FOREACH (o, &call->m->objects->xrcds.all, all) {
		const struct object_xrcd *x = (const struct object_xrcd *)(const void *)o;

		list = conf_json_append(
			list, json_pack("{s:s, s:I, s:I}", "name", o->name, "users",
				      (json_int_t)x->users, "opened", (json_int_t)x->opened));
	}
	return rpc_result(call, list);
}

static int
cq_create(struct rpc_call *call)
{
	struct conf_cq *conf = call->params;
	struct refusal r;

	if (object_cq_create(call->m->objects, conf, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, conf_encode_cq(conf));
}

static int
cq_destroy(struct rpc_call *call)
{
	const struct p_name *p = call->params;
	struct refusal r;
	struct object_cq *cq = object_cq_find(call->m->objects, p->name, &r);

	if (cq == NULL || object_cq_destroy(call->m->objects, cq, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
cq_list(struct rpc_call *call)
{
	json_t *list = json_array();
	struct named *o;

	TAILQ_FOREACH (o, &call->m->objects->cqs.all, all) {
		struct object_cq *cq = (struct object_cq *)(void *)o;
		const uint32_t users = atomic_load_explicit(&cq->q.users, memory_order_relaxed);
		const bool error = atomic_load_explicit(&cq->q.error, memory_order_relaxed);

		list = conf_json_append(list,
			json_pack("{s:s, s:I, s:I, s:b}", "name", o->name, "cqe",
				(json_int_t)cq->cqe, "users", (json_int_t)users, "error", error));
	}
	return rpc_result(call, list);
}

static int
list_clients(struct rpc_call *call)
{
	json_t *list = json_array();
	const struct app *app;

	TAILQ_FOREACH (app, &call->m->apps->all, all)
		list = conf_json_append(list,
			json_pack(
				"{s:I, s:s, s:i, s:I, s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o, "
				"s:o, s:o, s:o, s:I, s:o}",
				"client", (json_int_t)app->o.id, "name", app->o.name, "pid",
				app->o.process.pid, "uid", (json_int_t)app->o.process.uid, "gid",
				(json_int_t)app->o.process.gid, "gone", app->conn == NULL, "pds",
				(json_int_t)app->pds.n, "mrs", (json_int_t)app->mrs.n, "cqs",
				(json_int_t)app->cqs.n, "srqs", (json_int_t)app->srqs.n, "qps",
				(json_int_t)app->o.qps_n, "channels", (json_int_t)app->channels.n,
				"memory", conf_json_u64(app->o.has[OWNER_MEMORY]), "mapped",
				conf_json_u64(broker_conn_mapped(app->o.home)), "private_memory",
				conf_json_u64(app->o.has[OWNER_PRIVATE]), "outstanding",
				conf_json_u64(app->o.has[OWNER_OUTSTANDING]), "weight",
				(json_int_t)app->weight, "rate", conf_json_u64(app->rate)));
	return rpc_result(call, list);
}

/* What all applications of a user hold together. */
static int
list_users(struct rpc_call *call)
{
	const struct owner_users *users = &call->m->apps->users;
	const struct owner_user *u;
	json_t *list = json_array();

	TAILQ_FOREACH (u, &users->all, all) {
		json_t *o = json_pack("{s:I, s:b, s:I}", "uid", (json_int_t)u->uid, "operator",
			u->operator, "connections",
			(json_int_t)(u->operator? 0
						: rpc_admitted(&call->m->rpc->admission, u->uid)));

		for (uint32_t k = 0; k < OWNER_KEYS && o != NULL; k++)
			json_object_set_new(
				o, owner_kind_key((enum owner_kind)k), conf_json_u64(u->has[k]));
		list = conf_json_append(list, o);
	}
	return rpc_result(call, list);
}

struct p_client {
	uint32_t id;
};

static const struct conf_field client_rows[] = {
	P_U32(p_client, id, 1, UINT32_MAX, P_REQUIRED),
};
static const struct conf_table client_table = P_TABLE(p_client, client_rows, "params");

/* The application with this number, which is not on its way out. */
static struct app *
find_client(const struct rpc_call *call, uint32_t id, struct refusal *r)
{
	struct app *app;

	TAILQ_FOREACH (app, &call->m->apps->all, all)
		if (app->o.id == id && app->conn != NULL && !app->conn->dead)
			return app;
	refuse(r, ENOENT, "client %u is not here", id);
	return NULL;
}

enum { GIVEN_WEIGHT = 1, GIVEN_RATE = 2, GIVEN_MOST = 4 }; /* of each kind: shifted by it */

struct p_set {
	uint64_t given;
	uint64_t rate;
	uint32_t id;
	uint32_t weight;
#define MEMBER(name, key, err, what) uint64_t key;
	OWNER_CLIENT_CHARGES(MEMBER)
#undef MEMBER
};

static const struct conf_field set_rows[] = { P_U32(p_set, id, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_set, weight, 1, 100, P_OPTIONAL, .given = GIVEN_WEIGHT),
	P_SIZE64(p_set, rate, P_OPTIONAL, .given = GIVEN_RATE),
#define FIELD(name, key, err, what) \
	P_SIZE64(p_set, key, P_OPTIONAL, .given = (uint64_t)GIVEN_MOST << OWNER_##name),
	OWNER_CLIENT_CHARGES(FIELD)
#undef FIELD
};
static const struct conf_table set_table = P_TABLE_GIVEN(p_set, set_rows, "params");

/*
 * Other limits for an application that is here, until it goes. What it has beyond a new limit it
 * keeps, and gets no more.
 */
static int
set_client(struct rpc_call *call)
{
	const struct p_set *p = call->params;
	struct refusal r;
	struct app *app = find_client(call, p->id, &r);
	int rc = 0;

	if (app == NULL)
		return rpc_refused(call, &r);
#define LIMIT(name, key, err, what)                                            \
	if (rc == 0 && (p->given & (uint64_t)GIVEN_MOST << OWNER_##name) != 0) \
		rc = owner_limit(&app->o, OWNER_##name, p->key, &r);
	OWNER_CLIENT_CHARGES(LIMIT)
#undef LIMIT
	if (rc != 0)
		return rpc_refused(call, &r);
	if ((p->given & GIVEN_WEIGHT) != 0)
		app->weight = p->weight;
	if ((p->given & GIVEN_RATE) != 0)
		app->rate = p->rate;
	rc = app_share_told(call->m->apps, app, &r);
	return rc == 0 ? rpc_result(call, json_object()) : rpc_refused(call, &r);
}

/* Its connection ends, and all that is its own. */
static int
end_client(struct rpc_call *call)
{
	const struct p_client *p = call->params;
	struct refusal r;
	struct app *app = find_client(call, p->id, &r);

	if (app == NULL)
		return rpc_refused(call, &r);
	app_end(call->m->apps, app, "ended by the operator");
	return rpc_result(call, json_object());
}

const struct rpc_method methods_object[] = {
	{ "client_list", list_clients, &method_no_params },
	{ "client_users", list_users, &method_no_params },
	{ "client_end", end_client, &client_table },
	{ "client_set", set_client, &set_table },
	{ "pd_create", pd_create, &conf_table_pd },
	{ "pd_dealloc", pd_dealloc, &method_name_table },
	{ "pd_list", pd_list, &method_no_params },
	{ "xrcd_create", xrcd_create, &conf_table_xrcd },
	{ "xrcd_dealloc", xrcd_dealloc, &method_name_table },
	{ "xrcd_list", xrcd_list, &method_no_params },
	{ "cq_create", cq_create, &conf_table_cq },
	{ "cq_destroy", cq_destroy, &method_name_table },
	{ "cq_list", cq_list, &method_no_params },
	{ NULL, NULL, NULL },
};
