/* SPDX-License-Identifier: BSD-3-Clause */
#include "methods.h"

#include "method_client.h"

const struct rpc_table methods_all[] = {
	{ methods_base, RPC_FOR_OPERATORS },
	{ methods_net, RPC_FOR_OPERATORS },
	{ methods_object, RPC_FOR_OPERATORS },
	{ methods_srq, RPC_FOR_OPERATORS },
	{ methods_mr, RPC_FOR_OPERATORS },
	{ methods_mw, RPC_FOR_OPERATORS },
	{ methods_mcast, RPC_FOR_OPERATORS },
	{ methods_qp, RPC_FOR_OPERATORS },
	{ methods_work, RPC_FOR_OPERATORS },
	{ methods_send, RPC_FOR_OPERATORS },
	{ methods_cm, RPC_FOR_OPERATORS },
	{ methods_event, RPC_FOR_OPERATORS },
	{ methods_explain, RPC_FOR_OPERATORS },
	{ methods_post_mortem, RPC_FOR_OPERATORS },
	{ methods_save, RPC_FOR_OPERATORS },
	{ methods_stats, RPC_FOR_OPERATORS },
	{ methods_trace, RPC_FOR_OPERATORS },
	{ methods_impair, RPC_FOR_OPERATORS },
	{ methods_latency, RPC_FOR_OPERATORS },
	{ methods_client_open, RPC_FOR_ALL },
	{ methods_client, RPC_FOR_APPS },
	{ methods_client_mr, RPC_FOR_APPS },
	{ methods_client_mw, RPC_FOR_APPS },
	{ methods_client_qp, RPC_FOR_APPS },
	{ methods_client_srq, RPC_FOR_APPS },
	{ methods_client_xrcd, RPC_FOR_APPS },
	{ methods_client_ah, RPC_FOR_APPS },
	{ methods_client_cm, RPC_FOR_APPS },
	{ methods_client_cm_channel, RPC_FOR_APPS },
	{ methods_client_way, RPC_FOR_APPS },
	{ methods_client_mcast, RPC_FOR_APPS },
	{ NULL, RPC_FOR_OPERATORS },
};

const struct rpc_slow methods_slow[] = {
	{ "client_open", { method_client_open_prepare, RPC_MAY_OPEN, true } },
	{ "client_presence", { method_client_presence_prepare, RPC_MAY_APP, true } },
	{ "client_mr_register", { method_client_mr_prepare, RPC_MAY_APP, false } },
	{ "client_mr_rereg", { method_client_mr_rereg_prepare, RPC_MAY_APP, false } },
	{ "client_memory_lay", { method_client_memory_lay_prepare, RPC_MAY_APP, false } },
	{ "mr_register", { method_mr_prepare, RPC_MAY_OPERATE, false } },
	{ NULL, { NULL, 0, false } },
};
