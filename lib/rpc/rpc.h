/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_H
#define RPC_H
/**
 * @file rpc.h  JSON-RPC 2.0: methods as rows of tables, one decoder for all parameters.
 *
 * Owner:   control lcore.
 * Memory:  a call's result is handed over to the reply; decoded parameters live during the call.
 * Depends: conf, jansson.
 *
 * Add a method: write its parameters as a conf_table, its handler, and a row in the table of the
 * file it belongs to.
 */
#include <jansson.h>

#include "conf_json.h"
#include "conf_json_value.h"
#include "refusal.h"
#include "rpc_server.h"

enum {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_REFUSED = -32000, /* minus errno */
};

#define RPC_PARAMS_MAX 1024 /* bytes of the largest decoded parameter struct */

struct rpc_call {
	struct rpc_server *server;
	struct methods *m;           /* what methods work on: methods.h */
	struct rpc_client *client;   /* NULL: control_rpc() */
	struct broker_request *from; /* what it came with, or NULL */
	const json_t *request;
	const json_t *raw; /* params, or NULL */
	void *params;      /* decoded by the method's table */
	json_t *result;
	int code;     /* of the error, 0: none */
	json_t *data; /* of the error, or NULL */
	char message[1024];
};

/** @return 0 with call->result set, or a negative number with the error filled in. */
typedef int (*rpc_handler)(struct rpc_call *call);

struct rpc_method {
	const char *name; /* NULL ends a table */
	rpc_handler handler;
	const struct conf_table *params; /* NULL: the handler decodes call->raw */
};

/** Who may call a method. */
enum rpc_for { RPC_FOR_OPERATORS, RPC_FOR_APPS, RPC_FOR_ALL };

/** Methods of one kind; `methods` NULL ends a list of tables. */
struct rpc_table {
	const struct rpc_method *methods;
	enum rpc_for who;
};

/** -32602 with a message. @return -1. */
int rpc_invalid(struct rpc_call *call, const char *fmt, ...) PRINTF(2, 3);
/** -32602 (or `code`) with the decoder's first fault; all of them as data. @return -1. */
int rpc_faults(struct rpc_call *call, int code, const struct conf_errors *err);
/** -32000 - errno. @return -1. */
int rpc_refused(struct rpc_call *call, const struct refusal *r);
/** Hand over the result; NULL is "no memory". @return 0 or -1. */
int rpc_result(struct rpc_call *call, json_t *result);

/** What was prepared for this request, or NULL. */
struct broker_gift *rpc_gift(const struct rpc_call *call);
/**
 * One request of a line. One that is put off is tried again by the next call: work->since says so.
 * @param reply out, at the end: the reply (free() it) or NULL: nothing to send, or work->lost.
 * @return true: that was the last one.
 */
bool rpc_work_step(
	struct rpc_server *srv, struct rpc_client *client, struct rpc_work *work, char **reply);
/** One line, all of it. @return the reply (free() it) or NULL: nothing to send. */
char *rpc_line(struct rpc_server *srv, struct rpc_client *client, const char *line, size_t len);
/**
 * A notification to everybody who follows, whatever. Takes `params` over; NULL: no memory, nobody
 * hears. @return how many got it who had asked for it: to them it is delivered.
 */
uint32_t rpc_notify(struct rpc_server *srv, enum rpc_notes what, json_t *params);
/** An error reply with id null. */
char *rpc_error_line(int code, const char *message);

#endif
