/* SPDX-License-Identifier: BSD-3-Clause */
#include "methods.h"

const struct rpc_table rpc_methods_all[] = {
	{ rpc_methods_base, RPC_FOR_OPERATORS },
	{ rpc_methods_net, RPC_FOR_OPERATORS },
	{ rpc_methods_object, RPC_FOR_OPERATORS },
	{ rpc_methods_srq, RPC_FOR_OPERATORS },
	{ rpc_methods_mr, RPC_FOR_OPERATORS },
	{ rpc_methods_qp, RPC_FOR_OPERATORS },
	{ rpc_methods_work, RPC_FOR_OPERATORS },
	{ rpc_methods_send, RPC_FOR_OPERATORS },
	{ rpc_methods_event, RPC_FOR_OPERATORS },
	{ rpc_methods_explain, RPC_FOR_OPERATORS },
	{ rpc_methods_post_mortem, RPC_FOR_OPERATORS },
	{ rpc_methods_save, RPC_FOR_OPERATORS },
	{ rpc_methods_stats, RPC_FOR_OPERATORS },
	{ rpc_methods_trace, RPC_FOR_OPERATORS },
	{ rpc_methods_impair, RPC_FOR_OPERATORS },
	{ rpc_methods_latency, RPC_FOR_OPERATORS },
	{ rpc_methods_client_open, RPC_FOR_ALL },
	{ rpc_methods_client, RPC_FOR_APPS },
	{ rpc_methods_client_qp, RPC_FOR_APPS },
	{ rpc_methods_client_srq, RPC_FOR_APPS },
	{ NULL, RPC_FOR_OPERATORS },
};
