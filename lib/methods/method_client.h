/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef METHOD_CLIENT_H
#define METHOD_CLIENT_H
/**
 * @file method_client.h  What the methods of applications share.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Depends: rpc, apps.
 */
#include "methods.h"

struct p_handle {
	uint32_t handle;
};
extern const struct conf_table method_handle_table;

/** The thread's: makes the first area of client_open. */
void method_client_open_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params);
/** The connection's thread: what `client_presence` needs. */
void method_client_presence_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params);
/** The thread's: maps the memfd that came with client_mr_register. */
void method_client_mr_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params);
/** The thread's: maps the files that came with client_memory_lay. */
void method_client_memory_lay_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params);
/** The same of a region that moves to it. */
void method_client_mr_rereg_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params);
/** Where a client finds a ring: area, offset, entries, stride. */
json_t *method_client_ring(const struct owner_place *at, const struct ring *r);
/** A copy of an eventfd for the client. @return 0 or -errno. */
int method_client_give_fd(struct rpc_call *call, int fd);
/**
 * Is the QP in the parameters this client's? What is not does not exist for it. @return 0, or that
 * the call was refused.
 */
int method_client_own_qp(struct rpc_call *call);
/** "cq 3 does not exist". */
int method_client_refuse(struct rpc_call *call, int err, const char *what, uint32_t handle);

#endif
