/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef METHODS_H
#define METHODS_H
/**
 * @file methods.h  Every method of the control socket: what they work on, and their tables.
 *
 * Owner:   control lcore.
 * Memory:  none of its own.
 * Depends: rpc, apps, diagnose, admin, net, objects.
 *
 * Add a method: write its parameters as a conf_table, its handler, and a row in the table of the
 * file it belongs to.
 */
#include "app.h"
#include "connect.h"
#include "diagnose.h"
#include "net.h"
#include "objects.h"
#include "admin.h"
#include "rpc.h"
#include "rpc_params.h"

/** What the methods work on: all modules of the control lcore. */
struct methods {
	struct env *env;
	struct objects *objects;
	struct net *net;
	struct admin *admin;
	struct connect *connect;
	struct diagnose *diagnose;
	struct apps *apps;
	struct rpc_server *rpc;
};

/** All of them, with who may call which. */
extern const struct rpc_table methods_all[];
/** Those that take long. */
extern const struct rpc_slow methods_slow[];

extern const struct rpc_method methods_base[];
extern const struct rpc_method methods_net[];
extern const struct rpc_method methods_object[];
extern const struct rpc_method methods_srq[];
extern const struct rpc_method methods_mr[];
extern const struct rpc_method methods_mw[];
extern const struct rpc_method methods_client_mw[];
extern const struct rpc_method methods_qp[];
extern const struct rpc_method methods_work[];
extern const struct rpc_method methods_send[];
extern const struct rpc_method methods_cm[];
extern const struct rpc_method methods_event[];
extern const struct rpc_method methods_explain[];
extern const struct rpc_method methods_post_mortem[];
extern const struct rpc_method methods_save[];
extern const struct rpc_method methods_stats[];
extern const struct rpc_method methods_trace[];
extern const struct rpc_method methods_impair[];
extern const struct rpc_method methods_latency[];
extern const struct rpc_method methods_client_open[];
extern const struct rpc_method methods_client[];
extern const struct rpc_method methods_client_mr[];
extern const struct rpc_method methods_client_qp[];
extern const struct rpc_method methods_client_srq[];
extern const struct rpc_method methods_client_xrcd[];
extern const struct rpc_method methods_client_ah[];
extern const struct rpc_method methods_client_cm[];
extern const struct rpc_method methods_client_cm_channel[];
extern const struct rpc_method methods_client_way[];
extern const struct rpc_method methods_mcast[];
extern const struct rpc_method methods_client_mcast[];

/** The thread's: makes and fills the memory of mr_register. */
void method_mr_prepare(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params);
/** Handlers that operators' and applications' methods share. */
int method_qp_modify(struct rpc_call *call);
/** Answers with the QP's attributes and live state. */
int method_qp_query(struct rpc_call *call);
/** Answers with {} once the QP is gone. */
int method_qp_destroy(struct rpc_call *call);

extern const struct conf_table method_no_params;
struct p_name {
	char name[CONF_NAME_MAX];
};
extern const struct conf_table method_name_table;

struct p_qp {
	uint32_t qp_num;
};
extern const struct conf_table method_qp_table;

/** The areas that the application has to map before its request can be done; or NULL. */
json_t *method_client_map_first(struct rpc_client *cl);

#endif
