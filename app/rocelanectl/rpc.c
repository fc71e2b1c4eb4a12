/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int __attribute__((format(printf, 3, 4))) fail(struct rpc *r, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->err, sizeof(r->err), fmt, ap);
	va_end(ap);
	r->code = RPC_REFUSED + rc;
	return rc;
}

/* A failure of the connection. */
static int
lost(struct rpc *r, int rc)
{
	switch (-rc) {
	case ETIMEDOUT:
		return fail(r, rc, "no answer from the dataplane in time");
	case EILSEQ:
		return fail(r, -EINVAL, "a parameter is not valid UTF-8");
	case EMSGSIZE:
		return fail(r, rc, "answer is longer than %u bytes", RPC_LINE_MAX);
	case ENOMEM:
		return fail(r, rc, "out of memory");
	case EPROTO:
		return fail(r, rc, "answer is not a JSON object");
	case EPIPE:
	case ECONNRESET:
		return fail(r, -ECONNRESET, "the dataplane closed the connection");
	default:
		return fail(r, rc, "the connection to the dataplane: %s", strerror(-rc));
	}
}

void
rpc_init(struct rpc *r, int timeout_ms)
{
	memset(r, 0, sizeof(*r));
	r->line = (struct jsonrpc){ .fd = -1, .most = RPC_LINE_MAX };
	r->timeout_ms = timeout_ms;
}

int
rpc_connect(struct rpc *r, const char *path)
{
	const int rc = jsonrpc_connect(&r->line, path, jsonrpc_end(r->timeout_ms));

	if (rc == -ENAMETOOLONG)
		return fail(r, rc, "socket path '%.200s' must have 1 to 107 characters", path);
	if (rc != 0)
		return fail(r, rc, "cannot connect to %s: %s", path,
			rc == -EAGAIN ? "it has too many others to answer" : strerror(-rc));
	return 0;
}

void
rpc_close(struct rpc *r)
{
	jsonrpc_close(&r->line);
	json_decref(r->notes);
	r->notes = NULL;
}

static int
keep_note(struct rpc *r, json_t *note)
{
	if (r->notes == NULL)
		r->notes = json_array();
	if (json_array_append_new(r->notes, note) != 0)
		return fail(r, -ENOMEM, "out of memory");
	return 0;
}

/* The answer's result, or its error as text. */
static int
take_result(struct rpc *r, const json_t *answer, json_t **result)
{
	json_t *error = json_object_get(answer, "error");
	json_t *v = json_object_get(answer, "result");

	if (error != NULL && !json_is_null(error)) {
		const char *text = json_string_value(json_object_get(error, "message"));
		const json_t *code = json_object_get(error, "code");

		fail(r, -EREMOTEIO, "%s", text != NULL ? text : "refused without a reason");
		if (json_is_integer(code))
			r->code = (int)json_integer_value(code);
		return -EREMOTEIO;
	}
	if (v == NULL)
		return fail(r, -EPROTO, "answer has neither a result nor an error");
	*result = json_incref(v);
	return 0;
}

int
rpc_call(struct rpc *r, const char *method, json_t *params, json_t **result)
{
	const int64_t end = jsonrpc_end(r->timeout_ms);
	int rc = jsonrpc_send(&r->line, method, params, NULL, 0, end);

	/* If it has closed the connection, it may have said why before. */
	if (rc != 0 && rc != -EPIPE && rc != -ECONNRESET)
		return lost(r, rc);
	for (;;) {
		json_t *answer = NULL;

		rc = jsonrpc_receive(&r->line, end, &answer);
		if (rc != 0)
			return lost(r, rc);
		if (json_object_get(answer, "id") == NULL &&
			json_object_get(answer, "method") != NULL) {
			rc = keep_note(r, answer);
			if (rc != 0)
				return rc;
			continue;
		}
		if (jsonrpc_is_answer(&r->line, answer)) {
			rc = take_result(r, answer, result);
			json_decref(answer);
			return rc;
		}
		json_decref(answer);
	}
}

int
rpc_wait(struct rpc *r, int timeout_ms, json_t **note)
{
	int64_t deadline = jsonrpc_end(timeout_ms);
	int rc;

	if (json_array_size(r->notes) > 0) {
		*note = json_incref(json_array_get(r->notes, 0));
		json_array_remove(r->notes, 0);
		return 0;
	}
	for (;;) {
		rc = jsonrpc_receive(&r->line, deadline, note);
		if (rc != 0)
			return lost(r, rc);
		if (json_object_get(*note, "method") != NULL)
			return 0;
		json_decref(*note);
	}
}
