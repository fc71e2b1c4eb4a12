/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "plain.h"

#define BATCH_MAX       BROKER_BATCH
#define BATCH_REPLY_MAX (2u << 20)

static const struct rpc_method *
find_method(const struct rpc_server *srv, const char *name, enum rpc_for *who)
{
	for (const struct rpc_table *t = srv->tables; t->methods != NULL; t++) {
		for (const struct rpc_method *m = t->methods; m->name != NULL; m++) {
			*who = t->who;
			if (strcmp(m->name, name) == 0)
				return m;
		}
	}
	return NULL;
}

static int
fail(struct rpc_call *call, int code, const char *fmt, ...)
{
	va_list ap;

	call->code = code;
	va_start(ap, fmt);
	vsnprintf(call->message, sizeof(call->message), fmt, ap);
	va_end(ap);
	return -1;
}

int
rpc_invalid(struct rpc_call *call, const char *fmt, ...)
{
	va_list ap;

	call->code = RPC_INVALID_PARAMS;
	va_start(ap, fmt);
	vsnprintf(call->message, sizeof(call->message), fmt, ap);
	va_end(ap);
	return -1;
}

int
rpc_refused(struct rpc_call *call, const struct refusal *r)
{
	return fail(call, RPC_REFUSED - r->err, "%s", r->text);
}

/* "/cap/max_recv_wr" is "cap/max_recv_wr" for a reader of parameters. */
static const char *
pointer_of(const struct conf_error *e)
{
	return e->pointer[0] == '/' ? e->pointer + 1 : "params";
}

int
rpc_faults(struct rpc_call *call, int code, const struct conf_errors *err)
{
	const int first = conf_errors_first(err);

	if (first < 0)
		return fail(call, RPC_INTERNAL, "out of memory");
	fail(call, code, "%s: %s", pointer_of(&err->v[first]), err->v[first].message);
	call->data = json_array();
	for (uint32_t i = 0; i < err->n; i++) {
		if (!err->v[i].is_warning)
			json_array_append_new(
				call->data, json_pack("{s:s, s:s}", "pointer", err->v[i].pointer,
						    "message", err->v[i].message));
	}
	return -1;
}

int
rpc_result(struct rpc_call *call, json_t *result)
{
	if (result == NULL)
		return fail(call, RPC_INTERNAL, "out of memory");
	call->result = result;
	return 0;
}

/* A client is kept to its own methods, and they make sense for clients only. */
static int
check_who(struct rpc_call *call, const struct rpc_method *m, enum rpc_for who)
{
	const bool for_clients = who == RPC_FOR_APPS;
	const struct rpc_client *from = call->client;
	const bool is_client = from != NULL && from->app != NULL;
	struct refusal r;

	if (who == RPC_FOR_ALL || (for_clients && is_client))
		return 0;
	if (!for_clients && !is_client && (from == NULL || !from->limited))
		return 0;
	if (for_clients)
		refuse(&r, EPERM, "%s: this connection is no client; client_open makes it one",
			m->name);
	else
		refuse(&r, EPERM, "%s: not for clients", m->name);
	return rpc_refused(call, &r);
}

/* Decode parameters by the method's table and run it. */
static int
run(struct rpc_call *call, const struct rpc_method *m)
{
	union {
		uint8_t bytes[RPC_PARAMS_MAX];
		max_align_t align;
	} params;
	struct conf_errors err;
	int rc;

	if (m->params == NULL)
		return m->handler(call);
	conf_errors_init(&err);
	if (m->params->size > sizeof(params))
		rc = fail(call, RPC_INTERNAL, "parameters of %s do not fit", m->name);
	else if (conf_decode(m->params, call->raw, CONF_CREATE, &params, &err) != 0)
		rc = rpc_faults(call, RPC_INVALID_PARAMS, &err);
	else {
		call->params = &params;
		rc = m->handler(call);
		conf_release(m->params, &params);
	}
	conf_errors_free(&err);
	return rc;
}

static void
call_method(struct rpc_call *call, const json_t *request)
{
	const char *version = json_string_value(json_object_get(request, "jsonrpc"));
	const char *name = json_string_value(json_object_get(request, "method"));
	const json_t *id = json_object_get(request, "id");
	const struct rpc_method *m;
	enum rpc_for who;

	call->raw = json_object_get(request, "params");
	if (version == NULL || strcmp(version, "2.0") != 0)
		fail(call, RPC_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
	else if (name == NULL)
		fail(call, RPC_INVALID_REQUEST, "method must be a string");
	else if (id != NULL && !json_is_string(id) && !json_is_number(id) && !json_is_null(id))
		fail(call, RPC_INVALID_REQUEST, "id must be a string, a number or null");
	else if (call->raw != NULL && !json_is_object(call->raw) && !json_is_array(call->raw))
		fail(call, RPC_INVALID_REQUEST, "params must be an object");
	else if ((m = find_method(call->server, name, &who)) == NULL)
		fail(call, RPC_NO_METHOD, "no method \"%s\"; rpc_get_methods lists them",
			strlen(name) <= 64 ? name : "...");
	else if (json_is_array(call->raw) && json_array_size(call->raw) > 0)
		fail(call, RPC_INVALID_PARAMS, "params must be an object: parameters have names");
	else if (check_who(call, m, who) == 0) {
		if (!json_is_object(call->raw))
			call->raw = NULL;
		run(call, m);
		env_turn_piece(&call->server->env->turns, m->name);
	}
}

static json_t *
error_object(struct rpc_call *call)
{
	const uint64_t before = broker_json_failures();
	json_t *error = NULL;

	/* A message that was cut may end inside a character. */
	for (size_t len = strlen(call->message);
		error == NULL && len > 0 && broker_json_failures() == before; len--) {
		call->message[len] = '\0';
		error = json_pack("{s:i, s:s}", "code", call->code, "message", call->message);
	}
	if (call->data != NULL)
		json_object_set_new(error, "data", call->data);
	return error;
}

static bool
is_app(const struct rpc_call *call)
{
	return call->client != NULL && call->client->app != NULL;
}

/* It was refused, but what it lacks is there as soon as the application has done its part. */
static void
ask_for_more(struct rpc_call *call)
{
	json_t *first = call->code != 0 && is_app(call)
				? call->server->up.first(call->server->up.ctx, call->client)
				: NULL;

	if (first == NULL)
		return;
	json_decref(call->data);
	call->data = NULL;
	call->code = 0;
	call->result = first;
}

/* Run it. @return false: it was put off, and nothing has happened. */
static bool
try_call(struct rpc_call *call, struct rpc_work *work)
{
	const struct rpc_up *up = &call->server->up;
	struct env *env = call->server->env;
	struct refusal r;

	env->put_off = false;
	env->may_put_off = call->client != NULL &&
			   (work->since == 0 || env->now - work->since < RPC_PUT_OFF_NS);
	if (!json_is_object(call->request))
		fail(call, RPC_INVALID_REQUEST, "a request must be an object");
	else if (is_app(call) && up->ready(up->ctx, call->client, &r) != 0)
		rpc_refused(call, &r);
	else
		call_method(call, call->request);
	env->may_put_off = false;
	if (!env->put_off || call->code == 0) {
		work->since = 0;
		ask_for_more(call);
		return true;
	}
	json_decref(call->data);
	work->since = work->since != 0 ? work->since : env->now;
	work->turn = env->turns.n;
	return false;
}

/*
 * @param out the reply object, or NULL for a notification.
 * @return false: put off.
 */
static bool
one_request(struct rpc_server *srv, struct rpc_client *client, struct rpc_work *work,
	const json_t *request, json_t **out)
{
	struct rpc_call call = {
		.server = srv, .m = srv->m, .client = client, .from = work->from, .request = request
	};
	const uint64_t before = broker_json_failures();
	const json_t *id = json_object_get(request, "id");
	json_t *reply;

	*out = NULL;
	if (!try_call(&call, work))
		return false;
	if (call.code == 0 && call.result == NULL)
		fail(&call, RPC_INTERNAL, "out of memory");
	/* A notification is a valid request without an id; what is not valid gets an answer. */
	if (id == NULL && call.code != RPC_INVALID_REQUEST) {
		json_decref(call.result);
		json_decref(call.data);
		return true;
	}
	/* What was refused has changed nothing. All else the peer must learn, and in full. */
	if (call.code == 0 || call.code == RPC_INTERNAL)
		work->lost |= broker_json_failures() != before;
	reply = json_object();
	json_object_set_new(reply, "jsonrpc", json_string("2.0"));
	json_object_set_new(reply, "id",
		json_is_string(id) || json_is_number(id) ? json_incref((json_t *)(uintptr_t)id)
							 : json_null());
	if (call.code == 0) {
		json_object_set_new(reply, "result", call.result);
	} else {
		json_object_set_new(reply, "error", error_object(&call));
		json_decref(call.result);
	}
	work->lost |= json_object_size(reply) != 3;
	*out = reply;
	return true;
}

char *
rpc_error_line(int code, const char *message)
{
	json_t *v = json_pack("{s:s, s:n, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", "error", "code",
		code, "message", message);
	char *text = broker_json_text(v);

	json_decref(v);
	return text;
}

struct broker_gift *
rpc_gift(const struct rpc_call *call)
{
	return call->from != NULL ? broker_gift_of(call->from, call->request) : NULL;
}

/* @param reply NULL: nothing to send. */
static char *
text_of(struct rpc_work *work, json_t *reply)
{
	char *text = !work->lost ? broker_json_text(reply) : NULL;

	work->lost |= reply != NULL && text == NULL;
	json_decref(reply);
	return text;
}

/* One request of a batch. @return true: that was the last one. */
static bool
batch_step(struct rpc_server *srv, struct rpc_client *client, struct rpc_work *work, char **text)
{
	json_t *reply;

	if (!one_request(srv, client, work, json_array_get(work->json, work->next), &reply))
		return false;
	work->next++;
	if (work->replies == NULL)
		work->replies = json_array();
	if (reply != NULL) {
		work->total += conf_json_size(reply);
		work->replies = conf_json_append(work->replies, reply);
		work->lost |= work->replies == NULL;
	}
	/* What was not run is not answered: the client sees which. */
	if (work->next < json_array_size(work->json) && work->total <= BATCH_REPLY_MAX &&
		!work->lost)
		return false;
	if (json_array_size(work->replies) != 0)
		*text = text_of(work, json_incref(work->replies));
	json_decref(work->replies);
	work->replies = NULL;
	return true;
}

bool
rpc_work_step(struct rpc_server *srv, struct rpc_client *client, struct rpc_work *work, char **text)
{
	const size_t n = json_array_size(work->json);
	json_t *reply;

	*text = NULL;
	if (!json_is_array(work->json)) {
		if (!one_request(srv, client, work, work->json, &reply))
			return false;
		*text = text_of(work, reply);
		return true;
	}
	if (n != 0 && n <= BATCH_MAX)
		return batch_step(srv, client, work, text);
	*text = rpc_error_line(RPC_INVALID_REQUEST,
		n == 0 ? "a batch must not be empty" : "a batch may have 64 requests");
	work->lost = *text == NULL;
	return true;
}

char *
rpc_line(struct rpc_server *srv, struct rpc_client *client, const char *line, size_t len)
{
	char message[sizeof(((json_error_t *)0)->text) + 64];
	struct rpc_work work = { 0 };
	json_error_t error;
	json_t *request;
	char *text;

	request = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (request == NULL) {
		snprintf(message, sizeof(message), "not JSON: %s at byte %d",
			plain_text(error.text, ""), error.position);
		return rpc_error_line(RPC_PARSE_ERROR, message);
	}
	work.json = request;
	while (!rpc_work_step(srv, client, &work, &text))
		;
	json_decref(request);
	return text;
}
