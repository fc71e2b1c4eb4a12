/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications (librocelane): shared receive queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "methods.h"
#include "method_client.h"

/* As the client needs it: where the ring is, and the attributes in effect. */
static json_t *
srq_json(const struct app_srq *s)
{
	json_t *o = method_client_ring(&s->srq->place, &s->srq->rq);

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "handle", json_integer(s->handle));
	json_object_set_new(o, "max_wr", json_integer(s->srq->conf.max_wr));
	json_object_set_new(o, "max_sge", json_integer(s->srq->conf.max_sge));
	if (s->srq->xrcd != NULL)
		json_object_set_new(o, "srq_num", json_integer(s->srq->q.num));
	json_object_set_new(o, "srq_limit",
		json_integer(atomic_load_explicit(&s->srq->q.limit, memory_order_relaxed)));
	return o;
}

/* Entries count as those of QPs do. @param xrc of type XRC. @return 0 or a refusal. */
static int
charge(struct owner *o, uint32_t entries, bool xrc, struct refusal *r)
{
	if (owner_charge(o, OWNER_SRQS, 1, r) != 0)
		return -r->err;
	if (!xrc || owner_charge(o, OWNER_XRC_SRQS, 1, r) == 0) {
		if (owner_charge(o, OWNER_OUTSTANDING, entries, r) == 0)
			return 0;
		owner_uncharge(o, OWNER_XRC_SRQS, xrc);
	}
	owner_uncharge(o, OWNER_SRQS, 1);
	return -r->err;
}

static void
uncharge(struct owner *o, uint32_t entries, bool xrc)
{
	owner_uncharge(o, OWNER_SRQS, 1);
	owner_uncharge(o, OWNER_XRC_SRQS, xrc);
	owner_uncharge(o, OWNER_OUTSTANDING, entries);
}

/* ---- create ---------------------------------------------------------------------------------- */

struct p_srq {
	uint32_t pd;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
	uint32_t xrcd; /* 0: not of type XRC */
	uint32_t cq;
};

static const struct conf_field srq_rows[] = {
	P_U32(p_srq, pd, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_srq, max_wr, 1, CONF_MAX_WR, P_REQUIRED),
	P_U32(p_srq, max_sge, 1, CONF_MAX_SGE, P_REQUIRED),
	P_U32(p_srq, srq_limit, 0, CONF_MAX_WR, P_DEFAULT(0)),
	P_U32(p_srq, xrcd, 0, UINT32_MAX, P_DEFAULT(0)),
	P_U32(p_srq, cq, 0, UINT32_MAX, P_DEFAULT(0)),
};
static const struct conf_table srq_table = P_TABLE(p_srq, srq_rows, "params");

static int
make(struct rpc_call *call, const struct object_pd *pd, struct app_srq *s, struct refusal *r)
{
	const struct p_srq *p = call->params;
	struct conf_srq conf = {
		.max_wr = p->max_wr, .max_sge = p->max_sge, .srq_limit = p->srq_limit
	};
	const struct object_xrcd *xrcd = app_table_get(&s->app->xrcds, p->xrcd);
	const struct app_cq *cq = app_table_get(&s->app->cqs, p->cq);
	int rc;

	if (p->xrcd != 0 && (xrcd == NULL || cq == NULL))
		return refuse(r, ENOENT, "%s %u does not exist", xrcd == NULL ? "xrcd" : "cq",
			xrcd == NULL ? p->xrcd : p->cq);
	if (p->xrcd != 0) {
		conf.srq_type = CONF_SRQ_XRC;
		conf.given = CONF_SRQ_XRCD | CONF_SRQ_CQ;
		memcpy(conf.xrcd, xrcd->n.name, sizeof(conf.xrcd));
		memcpy(conf.cq, cq->cq->n.name, sizeof(conf.cq));
	}
	memcpy(conf.pd, pd->n.name, sizeof(conf.pd));
	owner_name(&s->app->o, "srq", conf.name);
	rc = object_srq_create_in(call->m->objects, &conf, &s->app->o, &s->srq, r);
	if (rc != 0)
		return rc;
	s->handle = app_table_add(&s->app->srqs, s);
	if (s->handle == 0) {
		object_srq_destroy(call->m->objects, s->srq, r);
		return refuse(r, ENOMEM, "out of memory");
	}
	s->srq->app = s;
	return 0;
}

static int
srq_create(struct rpc_call *call)
{
	const struct p_srq *p = call->params;
	struct app *app = call->client->app;
	const struct object_pd *pd = app_table_get(&app->pds, p->pd);
	struct app_srq *s;
	struct refusal r;

	if (pd == NULL)
		return method_client_refuse(call, ENOENT, "pd", p->pd);
	if (p->srq_limit > p->max_wr)
		return rpc_invalid(call, "srq_limit: must be a number from 0 to max_wr");
	if (charge(&app->o, p->max_wr, p->xrcd != 0, &r) != 0)
		return rpc_refused(call, &r);
	s = calloc(1, sizeof(*s));
	if (s != NULL)
		s->app = app;
	if (s == NULL || make(call, pd, s, &r) != 0) {
		uncharge(&app->o, p->max_wr, p->xrcd != 0);
		if (s == NULL)
			return rpc_result(call, NULL);
		free(s);
		return rpc_refused(call, &r);
	}
	return rpc_result(call, srq_json(s));
}

/* ---- modify, query, destroy ------------------------------------------------------------------ */

enum { SRQ_MAX_WR = 1, SRQ_LIMIT = 2 };

struct p_srq_modify {
	uint64_t given;
	uint32_t handle;
	uint32_t max_wr;
	uint32_t srq_limit;
};

static const struct conf_field modify_rows[] = {
	P_U32(p_srq_modify, handle, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_srq_modify, max_wr, 1, CONF_MAX_WR, P_OPTIONAL, .given = SRQ_MAX_WR),
	P_U32(p_srq_modify, srq_limit, 0, CONF_MAX_WR, P_OPTIONAL, .given = SRQ_LIMIT),
};
static const struct conf_table modify_table = P_TABLE_GIVEN(p_srq_modify, modify_rows, "params");

static int
srq_modify(struct rpc_call *call)
{
	const struct p_srq_modify *p = call->params;
	struct app *app = call->client->app;
	struct app_srq *s = app_table_get(&app->srqs, p->handle);
	const uint32_t *max_wr = (p->given & SRQ_MAX_WR) != 0 ? &p->max_wr : NULL;
	const uint32_t *limit = (p->given & SRQ_LIMIT) != 0 ? &p->srq_limit : NULL;
	struct refusal r;
	uint32_t charged;

	if (s == NULL)
		return method_client_refuse(call, ENOENT, "srq", p->handle);
	charged = s->srq->conf.max_wr;
	if (max_wr != NULL && *max_wr > charged) {
		if (owner_charge(&app->o, OWNER_OUTSTANDING, *max_wr - charged, &r) != 0)
			return rpc_refused(call, &r);
		charged = *max_wr;
	}
	if (object_srq_modify(call->m->objects, s->srq, max_wr, limit, &r) != 0) {
		owner_uncharge(&app->o, OWNER_OUTSTANDING, charged - s->srq->conf.max_wr);
		return rpc_refused(call, &r);
	}
	owner_uncharge(&app->o, OWNER_OUTSTANDING, charged - s->srq->conf.max_wr);
	return rpc_result(call, srq_json(s));
}

static int
srq_query(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	const struct app_srq *s = app_table_get(&call->client->app->srqs, p->handle);

	if (s == NULL)
		return method_client_refuse(call, ENOENT, "srq", p->handle);
	return rpc_result(call, srq_json(s));
}

static int
srq_destroy(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct app *app = call->client->app;
	struct app_srq *s = app_table_get(&app->srqs, p->handle);
	struct refusal r;
	uint32_t entries;
	bool xrc;

	if (s == NULL)
		return method_client_refuse(call, ENOENT, "srq", p->handle);
	entries = s->srq->conf.max_wr;
	xrc = s->srq->xrcd != NULL;
	if (object_srq_destroy(call->m->objects, s->srq, &r) != 0)
		return rpc_refused(call, &r);
	app_table_remove(&app->srqs, p->handle);
	uncharge(&app->o, entries, xrc);
	free(s);
	return rpc_result(call, json_object());
}

const struct rpc_method methods_client_srq[] = {
	{ "client_srq_create", srq_create, &srq_table },
	{ "client_srq_modify", srq_modify, &modify_table },
	{ "client_srq_query", srq_query, &method_handle_table },
	{ "client_srq_destroy", srq_destroy, &method_handle_table },
	{ NULL, NULL, NULL },
};
