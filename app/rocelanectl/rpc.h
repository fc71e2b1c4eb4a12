/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_H
#define RPC_H
/**
 * @file rpc.h  Calls to the dataplane, and the notifications that come in between.
 *
 * Owner:   one thread.
 * Memory:  that of jsonrpc.h, bounded by RPC_LINE_MAX.
 * Time:    every wait has a limit; nothing blocks for ever unless the caller asks for it.
 * Depends: jsonrpc.
 */
#include "jsonrpc.h"

#define RPC_LINE_MAX (64u << 20) /* bytes of an answer */
#define RPC_REFUSED  (-32000)    /* code of a refused operation, less its errno */
#define RPC_USAGE    (-32602)    /* code of wrong parameters */

struct rpc {
	struct jsonrpc line; /* fd -1: not connected */
	int timeout_ms;
	json_t *notes;  /* notifications that came while an answer was awaited */
	char err[1024]; /* why the last call failed, for people */
	int code;       /* the same for programs: JSON-RPC's, or -32000 - errno */
};

void rpc_init(struct rpc *r, int timeout_ms);
/** @return 0 or -errno, with r->err. */
int rpc_connect(struct rpc *r, const char *path);
void rpc_close(struct rpc *r);
/**
 * Call and wait for the answer.
 * @param params  taken; may be NULL.
 * @return 0 with *result (the caller's reference); -EREMOTEIO when the daemon refused; else -errno.
 */
int rpc_call(struct rpc *r, const char *method, json_t *params, json_t **result);
/**
 * Wait for the next notification.
 * @param timeout_ms  -1: no limit.
 * @return 0 with *note, or -errno (-ECONNRESET: the daemon is gone).
 */
int rpc_wait(struct rpc *r, int timeout_ms, json_t **note);

#endif
