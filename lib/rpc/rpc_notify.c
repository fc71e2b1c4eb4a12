/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications to those who follow. */
#include <stdlib.h>
#include <string.h>

#include "rpc.h"

static uint32_t
send_to_followers(struct rpc_server *srv, enum rpc_notes what, const char *line, size_t len)
{
	struct rpc_client *cl;
	uint32_t n = 0;

	if (srv->followers == 0)
		return 0;
	TAILQ_FOREACH (cl, &srv->clients, all) {
		if (cl->follows == 0 || cl->dead)
			continue;
		rpc_server_send(srv, cl, line, len);
		n += !cl->dead && (cl->follows & what) != 0;
	}
	return n;
}

uint32_t
rpc_notify(struct rpc_server *srv, enum rpc_notes what, json_t *params)
{
	const char *method = what == RPC_ASYNC_EVENTS ? "async_event"
			     : what == RPC_CM_EVENTS  ? "cm_event"
						      : "cq_event";
	json_t *msg =
		json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
	char *line = broker_json_text(msg);
	const uint32_t n = line != NULL ? send_to_followers(srv, what, line, strlen(line)) : 0;

	free(line);
	json_decref(msg);
	return n;
}
