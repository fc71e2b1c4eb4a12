/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes out on the control socket: handed to the connection's thread. */
#include <errno.h>
#include <unistd.h>

#include "broker_out.h"
#include "env.h"
#include "rpc_server.h"

void
rpc_server_drop_fds(struct rpc_client *cl)
{
	for (uint32_t i = 0; i < cl->out_fds_n; i++)
		close(cl->out_fds[i]);
	cl->out_fds_n = 0;
}

void
rpc_server_send(struct rpc_server *srv, struct rpc_client *cl, const char *line, size_t len)
{
	const uint32_t fds_n = cl->out_fds_n;
	size_t unsaid;

	if (cl->dead)
		return;
	unsaid = broker_conn_unsaid(cl->conn);
	if (unsaid == 0)
		cl->out_first = len;
	if (unsaid + len > RPC_OUT_MAX + cl->out_first) {
		log_rated(&srv->told_slow, srv->env->now, LOG_WARN,
			"control socket: a client does not read; disconnected");
		cl->dead = true;
		return;
	}
	cl->out_fds_n = 0;
	if (!broker_conn_say(cl->conn, line, len, cl->out_fds, fds_n))
		cl->dead = true;
}

void
rpc_server_follow(struct rpc_server *srv, struct rpc_client *cl, enum rpc_notes what)
{
	if (cl->follows == 0)
		srv->followers++;
	cl->follows |= (uint8_t)what;
}

void
rpc_server_unfollow(struct rpc_server *srv, struct rpc_client *cl)
{
	if (cl->follows != 0)
		srv->followers--;
	cl->follows = 0;
}

int
rpc_server_attach_fd(struct rpc_client *cl, int fd)
{
	if (cl->out_fds_n == RPC_FDS_MAX) {
		close(fd);
		cl->dead = true;
		return -ENOSPC;
	}
	cl->out_fds[cl->out_fds_n++] = fd;
	return 0;
}
