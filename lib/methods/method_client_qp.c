/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications (librocelane): completion queues and queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin_open.h"
#include "methods.h"
#include "method_client.h"

json_t *
method_client_ring(const struct owner_place *at, const struct ring *r)
{
	return json_pack("{s:i, s:I, s:I, s:I}", "area", (int)at->area, "offset",
		(json_int_t)owner_place_offset(at), "entries", (json_int_t)r->mask + 1, "stride",
		(json_int_t)r->stride);
}

/* ---- completion queues ----------------------------------------------------------------------- */

struct p_cq {
	uint32_t cqe;
	uint32_t channel; /* 0: none */
};

static const struct conf_field cq_rows[] = {
	P_U32(p_cq, cqe, 1, CONF_MAX_CQE, P_REQUIRED),
	P_U32(p_cq, channel, 0, UINT32_MAX, P_DEFAULT(0)),
};
static const struct conf_table cq_table = P_TABLE(p_cq, cq_rows, "params");

/* The queue itself, in a place of the client's memory. */
static int
cq_make(struct methods *ctx, struct app_cq *q, uint32_t cqe, struct refusal *r)
{
	struct conf_cq conf = { .cqe = cqe };
	void *mem;
	int rc = owner_place_get(ctx->env, &q->app->o,
		ring_size(ring_entries(cqe), sizeof(struct ring_cqe)), &q->place, &mem, r);

	if (rc != 0)
		return rc;
	owner_name(&q->app->o, "cq", conf.name);
	rc = object_cq_create_in(ctx->objects, &conf, mem, &q->cq, r);
	if (rc == 0)
		q->handle = app_table_add(&q->app->cqs, q);
	if (rc == 0 && q->handle == 0) {
		object_cq_destroy(ctx->objects, q->cq, r);
		rc = refuse(r, ENOMEM, "out of memory");
	}
	if (rc != 0) {
		owner_place_put(&q->app->o, &q->place);
		return rc;
	}
	q->cq->app = q;
	q->cq->q.client = q->app->o.id;
	return 0;
}

/* As the client needs it. */
static json_t *
cq_json(struct app_cq *q)
{
	return json_pack("{s:I, s:i, s:I, s:I, s:I}", "handle", (json_int_t)q->handle, "area",
		(int)q->place.area, "offset", (json_int_t)owner_place_offset(&q->place), "entries",
		(json_int_t)qp_cq_ring(&q->cq->q)->mask + 1, "cqe", (json_int_t)q->cq->cqe);
}

static int
cq_create(struct rpc_call *call)
{
	const struct p_cq *p = call->params;
	struct app *app = call->client->app;
	struct app_channel *ch = app_table_get(&app->channels, p->channel);
	struct app_cq *q;
	struct refusal r;

	if (p->channel != 0 && ch == NULL)
		return method_client_refuse(call, ENOENT, "channel", p->channel);
	if (owner_charge(&app->o, OWNER_CQS, 1, &r) != 0)
		return rpc_refused(call, &r);
	q = calloc(1, sizeof(*q));
	if (q != NULL)
		q->app = app;
	if (q == NULL || cq_make(call->m, q, p->cqe, &r) != 0) {
		owner_uncharge(&app->o, OWNER_CQS, 1);
		if (q == NULL)
			return rpc_result(call, NULL);
		free(q);
		return rpc_refused(call, &r);
	}
	q->channel = ch;
	if (ch != NULL) {
		ch->users++;
		TAILQ_INSERT_TAIL(&call->m->apps->watched, q, watched);
	}
	return rpc_result(call, cq_json(q));
}

struct p_resize {
	uint32_t handle;
	uint32_t cqe;
};

static const struct conf_field resize_rows[] = {
	P_U32(p_resize, handle, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_resize, cqe, 1, CONF_MAX_CQE, P_REQUIRED),
};
static const struct conf_table resize_table = P_TABLE(p_resize, resize_rows, "params");

/* With cq->leaving it has begun, also if a worker did not answer. */
static int
cq_move(struct methods *m, struct app_cq *q, uint32_t cqe, struct refusal *r)
{
	struct owner_place place;
	void *mem;
	int rc = owner_place_get(m->env, &q->app->o,
		ring_size(ring_entries(cqe), sizeof(struct ring_cqe)), &place, &mem, r);

	if (rc != 0)
		return rc;
	rc = object_cq_resize(m->objects, q->cq, mem, cqe, r);
	if (rc != 0 && q->cq->leaving == NULL) {
		owner_place_put(&q->app->o, &place);
		return rc;
	}
	q->old = q->place;
	q->place = place;
	return rc;
}

/*
 * The old place is the client's own, and is given out again by its next request at the earliest:
 * it has taken by then what stands there. While a worker does not answer, the client is told of
 * no new place, and whatever it asks for next ends what was begun.
 */
static int
cq_resize(struct rpc_call *call)
{
	const struct p_resize *p = call->params;
	struct app *app = call->client->app;
	struct app_cq *q = app_table_get(&app->cqs, p->handle);
	struct refusal r;
	int rc;

	if (q == NULL)
		return method_client_refuse(call, ENOENT, "cq", p->handle);
	rc = q->cq->leaving != NULL ? object_cq_resize_end(call->m->objects, q->cq, &r)
				    : cq_move(call->m, q, p->cqe, &r);
	if (rc != 0)
		return rpc_refused(call, &r);
	owner_place_put(&app->o, &q->old);
	return rpc_result(call, cq_json(q));
}

static int
cq_destroy(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct app *app = call->client->app;
	struct app_cq *q = app_table_get(&app->cqs, p->handle);
	struct refusal r;
	uint32_t fired;

	if (q == NULL)
		return method_client_refuse(call, ENOENT, "cq", p->handle);
	if (object_cq_destroy(call->m->objects, q->cq, &r) != 0)
		return rpc_refused(call, &r);
	if (q->channel != NULL) {
		q->channel->users--;
		TAILQ_REMOVE(&call->m->apps->watched, q, watched);
	}
	owner_uncharge(&app->o, OWNER_CQS, 1);
	app_table_remove(&app->cqs, p->handle);
	owner_place_put(&app->o, &q->old);
	owner_place_put(&app->o, &q->place);
	fired = q->fired;
	free(q);
	/* Its client knows how many of these it has fetched. */
	return rpc_result(call, json_pack("{s:I}", "fired", (json_int_t)fired));
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

struct p_create {
	uint32_t pd;
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t srq;  /* 0: none */
	uint32_t xrcd; /* 0: none */
	uint32_t qp_type;
	bool sq_sig_all;
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
	uint32_t port_num; /* a connection's: then it is made in INIT, of type UD in RTS; 0: no */
	uint32_t qkey;     /* ... UD */
};

static const struct conf_field create_rows[] = {
	P_U32(p_create, pd, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_create, send_cq, 0, UINT32_MAX, P_DEFAULT(0)),
	P_U32(p_create, recv_cq, 0, UINT32_MAX, P_DEFAULT(0)),
	P_U32(p_create, srq, 0, UINT32_MAX, P_DEFAULT(0)),
	P_U32(p_create, xrcd, 0, UINT32_MAX, P_DEFAULT(0)),
	P_ENUM(p_create, qp_type, conf_names_qp_type, P_REQUIRED),
	P_BOOL(p_create, sq_sig_all, P_DEFAULT(0)),
	P_U32(p_create, max_send_wr, 0, CONF_MAX_WR, P_REQUIRED),
	P_U32(p_create, max_recv_wr, 0, CONF_MAX_WR, P_REQUIRED),
	P_U32(p_create, max_send_sge, 0, CONF_MAX_SGE, P_REQUIRED),
	P_U32(p_create, max_recv_sge, 0, CONF_MAX_SGE, P_REQUIRED),
	P_U32(p_create, max_inline_data, 0, CONF_MAX_INLINE, P_REQUIRED),
	P_U32(p_create, port_num, 0, CONF_MAX_PORTS, P_DEFAULT(0)),
	P_U32(p_create, qkey, 0, UINT32_MAX, P_DEFAULT(0)),
};
static const struct conf_table create_table = P_TABLE(p_create, create_rows, "params");

/* A QP as the configuration would have it, with the defaults of its decoder. */
static int
make_conf(struct rpc_call *call, struct conf_qp *conf)
{
	const struct p_create *p = call->params;
	struct app *app = call->client->app;
	const struct object_pd *pd = app_table_get(&app->pds, p->pd);
	const struct app_cq *scq = app_table_get(&app->cqs, p->send_cq);
	const struct app_cq *rcq = app_table_get(&app->cqs, p->recv_cq);
	const struct app_srq *srq = app_table_get(&app->srqs, p->srq);
	const struct object_xrcd *xrcd = app_table_get(&app->xrcds, p->xrcd);
	json_t *bare;
	struct conf_errors err;
	int rc;

	if (pd == NULL)
		return method_client_refuse(call, ENOENT, "pd", p->pd);
	/* What its type needs, and does not have, the decoder says. */
	if (p->send_cq != 0 && scq == NULL)
		return method_client_refuse(call, ENOENT, "cq", p->send_cq);
	if (p->recv_cq != 0 && rcq == NULL)
		return method_client_refuse(call, ENOENT, "cq", p->recv_cq);
	if (p->xrcd != 0 && xrcd == NULL)
		return method_client_refuse(call, ENOENT, "xrcd", p->xrcd);
	if (p->srq != 0 && srq == NULL)
		return method_client_refuse(call, ENOENT, "srq", p->srq);
	bare = json_pack("{s:s, s:s, s:s*, s:s*, s:s*, s:s*}", "qp_type",
		conf_name_of(conf_names_qp_type, p->qp_type), "pd", "-", "send_cq",
		scq != NULL ? "-" : NULL, "recv_cq", rcq != NULL ? "-" : NULL, "srq",
		srq != NULL ? "-" : NULL, "xrcd", xrcd != NULL ? "-" : NULL);
	conf_errors_init(&err);
	rc = conf_decode_qp(bare, conf, &err);
	if (rc != 0)
		rc = rpc_faults(call, RPC_INVALID_PARAMS, &err);
	conf_errors_free(&err);
	json_decref(bare);
	if (rc != 0)
		return rc;
	memcpy(conf->pd, pd->n.name, sizeof(conf->pd));
	if (scq != NULL)
		memcpy(conf->send_cq, scq->cq->n.name, sizeof(conf->send_cq));
	if (rcq != NULL)
		memcpy(conf->recv_cq, rcq->cq->n.name, sizeof(conf->recv_cq));
	if (xrcd != NULL)
		memcpy(conf->xrcd, xrcd->n.name, sizeof(conf->xrcd));
	if (srq != NULL)
		memcpy(conf->srq, srq->srq->n.name, sizeof(conf->srq));
	conf->sq_sig_all = p->sq_sig_all;
	conf->cap = (struct conf_cap){ .max_send_wr = p->max_send_wr,
		.max_recv_wr = p->max_recv_wr,
		.max_send_sge = p->max_send_sge,
		.max_recv_sge = p->max_recv_sge,
		.max_inline_data = p->max_inline_data };
	return 0;
}

/* What librdmacm moves the queue pair of an id to as soon as it is there. */
static int
make_ready(struct rpc_call *call, struct conf_qp *conf)
{
	const struct p_create *p = call->params;
	const struct env_wiring *w = &call->m->env->w;

	if (p->port_num == 0)
		return 0;
	if (p->port_num > w->ports_n)
		return method_client_refuse(call, ENOENT, "port", p->port_num);
	memcpy(conf->port, w->conf->ports[p->port_num - 1].name, sizeof(conf->port));
	conf->given |= QP_ATTR_PORT | QP_ATTR_STATE;
	if (conf->qp_type == QPT_UD) {
		conf->qp_state = QPS_RTS;
		conf->qkey = p->qkey;
		conf->given |= QP_ATTR_QKEY | QP_ATTR_SQ_PSN;
		return 0;
	}
	conf->qp_state = QPS_INIT;
	conf->qp_access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
	conf->given |= QP_ATTR_ACCESS_FLAGS;
	return 0;
}

/* As the client needs it. */
static json_t *
qp_json(const struct admin_qp *rec)
{
	const enum qp_type type = admin_qp_type(rec);
	const bool receives = rec->srq == NULL && type != QPT_XRC_SEND && type != QPT_XRC_RECV;

	return json_pack("{s:I, s:i, s:o, s:o, s:i}", "qp_num", (json_int_t)rec->qpn, "worker",
		rec->worker, "rq",
		receives ? method_client_ring(&rec->rings.rq, &rec->rq) : json_null(), "sq",
		rec->sq.sh != NULL ? method_client_ring(&rec->rings.sq, &rec->sq) : json_null(),
		"path_mtu", (int)rec->attr.path_mtu);
}

static int
qp_create(struct rpc_call *call)
{
	struct app *app = call->client->app;
	struct conf_qp conf;
	struct admin_qp *rec;
	struct refusal r;
	int rc = make_conf(call, &conf);

	if (rc == 0)
		rc = make_ready(call, &conf);
	if (rc != 0)
		return rc;
	if (admin_create_for(call->m->admin, &app->o, &conf, &rec, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, qp_json(rec));
}

int
method_client_own_qp(struct rpc_call *call)
{
	const json_t *number = json_object_get(call->raw, "qp_num");
	const json_int_t qpn = json_integer_value(number);
	struct admin_qp *rec;

	if (!json_is_integer(number) || qpn < 0 || qpn > CONF_QPN_MAX)
		return rpc_invalid(call, "qp_num: must be a number");
	rec = admin_find(call->m->admin, (uint32_t)qpn);
	if (rec == NULL || (rec->shared->owner != &call->client->app->o &&
				   !admin_has_open(&call->client->app->o, rec)))
		return method_client_refuse(call, ENOENT, "qp_num", (uint32_t)qpn);
	return 0;
}

static int
qp_modify(struct rpc_call *call)
{
	const int rc = method_client_own_qp(call);

	return rc == 0 ? method_qp_modify(call) : rc;
}

static int
qp_query(struct rpc_call *call)
{
	const int rc = method_client_own_qp(call);

	return rc == 0 ? method_qp_query(call) : rc;
}

/* What others have, too, goes on without this application. */
static int
qp_destroy(struct rpc_call *call)
{
	const struct p_qp *p = call->params;
	const int rc = method_client_own_qp(call);
	struct admin_qp *rec;
	struct refusal r;

	if (rc != 0)
		return rc;
	rec = admin_find(call->m->admin, p->qp_num);
	if (rec->mcasts_n != 0) {
		refuse(&r, EBUSY, "QP %u is a member of %u multicast groups", p->qp_num,
			rec->mcasts_n);
		return rpc_refused(call, &r);
	}
	if (admin_close(&call->client->app->o, rec)) {
		app_event_forget(call->client->app, OBJECT_QP, p->qp_num);
		return rpc_result(call, json_object());
	}
	return method_qp_destroy(call);
}

const struct rpc_method methods_client_qp[] = {
	{ "client_cq_create", cq_create, &cq_table },
	{ "client_cq_resize", cq_resize, &resize_table },
	{ "client_cq_destroy", cq_destroy, &method_handle_table },
	{ "client_qp_create", qp_create, &create_table },
	{ "client_qp_modify", qp_modify, NULL },
	{ "client_qp_query", qp_query, &method_qp_table },
	{ "client_qp_destroy", qp_destroy, &method_qp_table },
	{ NULL, NULL, NULL },
};
