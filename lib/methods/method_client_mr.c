/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications: regions of their own memory. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "method_client.h"

struct p_mr {
	uint32_t pd;
	uint32_t access;
	uint64_t addr;
	uint64_t length;
	uint64_t offset;
	bool remote_invalidate;
	bool once;
	struct broker_piece *pieces; /* none: `offset` is in the memfd that comes */
	uint32_t pieces_n;
	bool laid;       /* it is what client_memory_lay has laid: none comes */
	uint32_t handle; /* of a region that changes, from here on */
	bool memory;     /* it moves to other memory */
};

/* One memfd comes for each. What a piece is alone, mem_area_join() checks. */
static const struct conf_field piece_rows[] = {
	P_U64(broker_piece, offset, P_REQUIRED),
	P_NUMBER(broker_piece, length, CONF_T_U64, 1, UINT64_C(1) << 40, P_REQUIRED),
};
static const struct conf_table piece_table = P_TABLE(broker_piece, piece_rows, "pieces");

/* What a region is, when it is made and when it changes. */
#define REGION_ROWS                                                                              \
	P_U32(p_mr, pd, 1, UINT32_MAX, P_REQUIRED),                                              \
		P_NUMBER(p_mr, length, CONF_T_U64, 1, UINT64_C(1) << 40, P_REQUIRED),            \
		P_U64(p_mr, addr, P_REQUIRED), P_U64(p_mr, offset, P_DEFAULT(0)),                \
		P_U32(p_mr, access, 0, UINT16_MAX, P_REQUIRED),                                  \
		P_BOOL(p_mr, remote_invalidate, P_DEFAULT(0)), P_BOOL(p_mr, once, P_DEFAULT(0)), \
		P_ARRAY(p_mr, pieces, pieces_n, &piece_table, BROKER_FDS)

static const struct conf_field mr_rows[] = {
	REGION_ROWS,
	P_BOOL(p_mr, laid, P_DEFAULT(0)),
};
static const struct conf_table mr_table = P_TABLE(p_mr, mr_rows, "params");

/* Of memory of `length` bytes, from `offset` on. */
static const struct conf_field lay_rows[] = {
	P_NUMBER(p_mr, length, CONF_T_U64, 1, UINT64_C(1) << 40, P_REQUIRED),
	P_U64(p_mr, offset, P_REQUIRED),
	P_ARRAY(p_mr, pieces, pieces_n, &piece_table, BROKER_FDS),
};
static const struct conf_table lay_table = P_TABLE(p_mr, lay_rows, "params");

static const struct conf_field rereg_rows[] = {
	P_U32(p_mr, handle, 1, UINT32_MAX, P_REQUIRED),
	P_BOOL(p_mr, memory, P_DEFAULT(0)),
	REGION_ROWS,
};
static const struct conf_table rereg_table = P_TABLE(p_mr, rereg_rows, "params");

/* ---- the connection's thread ----------------------------------------------------------------- */

static void
take(const struct conf_control *conf, const struct conf_table *table, struct broker_conn *c,
	struct broker_gift *gift, const struct p_mr *p)
{
	const struct broker_terms terms = { .offset = p->offset,
		.length = p->length,
		.pieces = p->pieces,
		.pieces_n = p->pieces_n,
		.most = conf->client_limits.memory,
		.any = conf->client_memory == CONF_CLIENT_MEMORY_ANY,
		.once = p->once };

	gift->rc = table == &lay_table ? broker_memory_lay(c, &terms)
		   : p->laid           ? broker_memory_laid(c, &terms, gift)
				       : broker_memory_get(c, &terms, gift);
}

/* What was sent with parameters that are refused; what was laid for them is refused as well. */
static void
drop(const struct conf_table *table, struct broker_conn *c, const json_t *params)
{
	const json_t *pieces = json_object_get(params, "pieces");
	const bool laid = table == &mr_table && json_is_true(json_object_get(params, "laid"));
	const bool none =
		laid || (table == &rereg_table && !json_is_true(json_object_get(params, "memory")));

	if (laid || table == &lay_table)
		broker_memory_lay(c, &(const struct broker_terms){ 0 });
	if (!none)
		broker_fds_drop(c, json_is_array(pieces) ? json_array_size(pieces) : 1);
}

static void
prepare(const struct rpc_server *srv, const struct conf_table *table, struct broker_conn *c,
	struct broker_gift *gift, const json_t *params)
{
	const struct conf_control *conf = &srv->env->w.conf->control;
	struct conf_errors err;
	struct p_mr p;

	conf_errors_init(&err);
	if (conf_decode(table, json_is_object(params) ? params : NULL, CONF_CREATE, &p, &err) !=
		0) {
		/* The handler says what is wrong. */
		drop(table, c, params);
	} else {
		if (table != &rereg_table || p.memory)
			take(conf, table, c, gift, &p);
		conf_release(table, &p);
	}
	conf_errors_free(&err);
}

void
method_client_mr_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params)
{
	prepare(ctx, &mr_table, c, gift, params);
}

void
method_client_memory_lay_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params)
{
	prepare(ctx, &lay_table, c, gift, params);
}

void
method_client_mr_rereg_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params)
{
	prepare(ctx, &rereg_table, c, gift, params);
}

/* ---- the control lcore ----------------------------------------------------------------------- */

static int
refuse_memory(struct rpc_call *call, const struct p_mr *p, int rc)
{
	const uint64_t most = call->m->env->w.conf->control.client_limits.memory;
	struct refusal r;

	switch (rc) {
	case -ENODEV:
		return rpc_invalid(call, "no descriptor came with the request");
	case -ENOENT:
		return rpc_invalid(call, "client_memory_lay has not laid all of it, in a row");
	case -EBADF:
		refuse(&r, EINVAL, "the descriptor is no memfd");
		break;
	case -EPERM:
		refuse(&r, EPERM,
			"the memfd has no F_SEAL_SHRINK: set it with fcntl(fd, F_ADD_SEALS, "
			"F_SEAL_SHRINK); control.client_memory \"any\" does without");
		break;
	case -ERANGE:
		refuse(&r, EINVAL, "the memfd%s before offset %" PRIu64 " plus length %" PRIu64,
			p->pieces_n == 0 ? " ends" : ", or the pieces, end", p->offset, p->length);
		break;
	case -EINVAL:
		refuse(&r, EINVAL,
			"a piece is not of whole pages, of the first one's size, or reaches "
			"behind the end");
		break;
	case -EACCES:
		refuse(&r, EACCES, "the memfd cannot be mapped for reading and writing");
		break;
	case -EFBIG:
		refuse(&r, ENOMEM,
			"a region of %" PRIu64 " bytes: its memfd, all of which is mapped, and the "
			"%" PRIu64
			" bytes that are mapped are over control.client_limits.memory (%" PRIu64
			")",
			p->length, broker_conn_mapped(call->client->conn), most);
		break;
	case -ENFILE:
		refuse(&r, ENOMEM,
			"regions of several pieces: all connections have as many pieces as there "
			"can be, and this one has %d or more (vm.max_map_count allows more)",
			BROKER_JOINED);
		break;
	case -ENODATA:
		refuse(&r, ENODATA,
			"the memfd has holes: write to each of its pages first, or "
			"madvise(MADV_POPULATE_WRITE) them; memory is charged to who touches it "
			"first");
		break;
	case -EROFS:
		refuse(&r, EPERM,
			"the memfd is sealed against writing (F_SEAL_FUTURE_WRITE), perhaps since "
			"another connection registered it: take a new one");
		break;
	case -EOPNOTSUPP:
		refuse(&r, EPERM,
			"the memfd cannot be sealed with F_SEAL_FUTURE_WRITE: leave F_SEAL_SEAL "
			"out (Linux before 5.1 does not have it: control.client_memory \"any\")");
		break;
	default:
		refuse(&r, -rc, "%" PRIu64 " bytes of the memfd cannot be had: %s", p->length,
			strerror(-rc));
	}
	return rpc_refused(call, &r);
}

/* What the client asks for as the configuration would; the decoder's checks are made here. */
static int
mr_conf(struct rpc_call *call, const struct p_mr *p, struct conf_mr *conf)
{
	const char *fault = verbs_region_fault(p->access);
	struct app *app = call->client->app;
	const struct object_pd *pd = app_table_get(&app->pds, p->pd);

	if (pd == NULL)
		return method_client_refuse(call, ENOENT, "pd", p->pd);
	if (fault != NULL)
		return rpc_invalid(call, "access: %s", fault);
	*conf = (struct conf_mr){ .given = CONF_MR_ADDR,
		.length = p->length,
		.addr = p->addr,
		.access = p->access,
		.remote_invalidate = p->remote_invalidate };
	memcpy(conf->pd, pd->n.name, sizeof(conf->pd));
	owner_name(&app->o, "mr", conf->name);
	return 0;
}

static int
mr_register(struct rpc_call *call)
{
	const struct p_mr *p = call->params;
	struct app *app = call->client->app;
	struct broker_gift *gift = rpc_gift(call);
	struct object_memory from = { .offset = p->offset };
	struct object_mr *mr;
	struct conf_mr conf;
	struct refusal r;
	uint32_t handle;
	int rc = mr_conf(call, p, &conf);

	if (rc != 0)
		return rc;
	if (gift == NULL || gift->rc != 0)
		return refuse_memory(call, p, gift != NULL ? gift->rc : -ENOMEM);
	from.host = broker_memory_at(gift->memory, p->offset);
	if (owner_charge_region(&app->o, p->length, &r) != 0)
		return rpc_refused(call, &r);
	if (object_mr_create_in(call->m->objects, &conf, &from, &mr, &r) != 0) {
		owner_uncharge_region(&app->o, p->length);
		return rpc_refused(call, &r);
	}
	mr->memory = gift->memory;
	gift->memory = NULL;
	handle = app_table_add(&app->mrs, mr);
	if (handle == 0) {
		owner_uncharge_region(&app->o, p->length);
		object_mr_destroy(call->m->objects, mr, call->client->conn, &r);
		return rpc_result(call, NULL);
	}
	return rpc_result(call, json_pack("{s:I, s:I, s:I}", "handle", (json_int_t)handle, "key",
					(json_int_t)mr->region->key, "memory",
					(json_int_t)broker_memory_id(mr->memory)));
}

/* Files of memory that comes in parts: there are more than one message takes. None: it ends. */
static int
memory_lay(struct rpc_call *call)
{
	const struct broker_gift *gift = rpc_gift(call);
	const int rc = gift != NULL ? gift->rc : -ENOMEM;
	struct refusal r;

	if (rc == -EPERM) {
		refuse(&r, EPERM,
			"memory of many files is not sealed: only control.client_memory \"any\" "
			"takes it");
		return rpc_refused(call, &r);
	}
	return rc != 0 ? refuse_memory(call, call->params, rc) : rpc_result(call, json_object());
}

/* What is given back is charged last: the client may be at its limit with either. */
static int
recharge(struct owner *o, uint64_t before, uint64_t after, struct refusal *r)
{
	return after > before ? owner_charge(o, OWNER_MEMORY, after - before, r) : 0;
}

static int
mr_rereg(struct rpc_call *call)
{
	const struct p_mr *p = call->params;
	struct app *app = call->client->app;
	struct object_mr *mr = app_table_get(&app->mrs, p->handle);
	struct broker_gift *gift = rpc_gift(call);
	struct object_memory from = { .offset = p->offset };
	struct broker_memory *was;
	struct conf_mr conf;
	struct refusal r;
	uint64_t before;
	int rc;

	if (mr == NULL)
		return method_client_refuse(call, ENOENT, "mr", p->handle);
	rc = mr_conf(call, p, &conf);
	if (rc != 0)
		return rc;
	if (p->memory && (gift == NULL || gift->rc != 0))
		return refuse_memory(call, p, gift != NULL ? gift->rc : -ENOMEM);
	before = mr->region->length;
	if (p->memory && recharge(&app->o, before, p->length, &r) != 0)
		return rpc_refused(call, &r);
	if (p->memory)
		from.host = broker_memory_at(gift->memory, p->offset);
	rc = object_mr_rereg(call->m->objects, mr, &conf, p->memory ? &from : NULL, &r);
	if (p->memory && rc != 0 && p->length > before)
		owner_uncharge(&app->o, OWNER_MEMORY, p->length - before);
	if (rc != 0)
		return rpc_refused(call, &r);
	if (p->memory) {
		if (before > p->length)
			owner_uncharge(&app->o, OWNER_MEMORY, before - p->length);
		was = mr->memory;
		mr->memory = gift->memory;
		gift->memory = NULL;
		broker_memory_put(was);
	}
	return rpc_result(call, json_pack("{s:I, s:I}", "key", (json_int_t)mr->region->key,
					"memory", (json_int_t)broker_memory_id(mr->memory)));
}

static int
mr_deregister(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct app *app = call->client->app;
	struct object_mr *mr = app_table_get(&app->mrs, p->handle);
	struct refusal r;
	uint64_t bytes;

	if (mr == NULL)
		return method_client_refuse(call, ENOENT, "mr", p->handle);
	bytes = mr->region->length;
	if (object_mr_destroy(call->m->objects, mr, call->client->conn, &r) != 0)
		return rpc_refused(call, &r);
	owner_uncharge_region(&app->o, bytes);
	app_table_remove(&app->mrs, p->handle);
	return rpc_result(call, json_object());
}

/* No further region of this memory: it is given back with the last one. */
static int
memory_forget(struct rpc_call *call)
{
	const struct p_handle *p = call->params;

	broker_memory_forget(call->client->conn, p->handle);
	return rpc_result(call, json_object());
}

const struct rpc_method methods_client_mr[] = {
	{ "client_mr_register", mr_register, &mr_table },
	{ "client_mr_rereg", mr_rereg, &rereg_table },
	{ "client_mr_deregister", mr_deregister, &method_handle_table },
	{ "client_memory_lay", memory_lay, &lay_table },
	{ "client_memory_forget", memory_forget, &method_handle_table },
	{ NULL, NULL, NULL },
};
