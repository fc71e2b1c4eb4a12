/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket as a whole: made, opened, closed. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "env.h"
#include "rpc_server.h"

void
rpc_server_init(struct rpc_server *srv, struct env *env, const struct rpc_up *up)
{
	srv->env = env;
	srv->up = *up;
	srv->main.fd = -1;
	srv->clients_only.fd = -1;
	srv->epoll_fd = -1;
	TAILQ_INIT(&srv->clients);
	rpc_admission_init(&srv->admission, &env->w.conf->control);
}

int
rpc_server_open(struct rpc_server *srv)
{
	struct rpc_server *s = srv;
	const struct conf_control *conf = &srv->env->w.conf->control;
	int rc = 0;

	if (srv->env->w.no_socket)
		return 0;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	rc = rpc_listener_open(s, &s->main, conf->socket, conf->mode);
	if (rc == 0 && (conf->given & CONF_CONTROL_CLIENT_SOCKET) != 0)
		rc = rpc_listener_open(s, &s->clients_only, conf->client_socket, conf->client_mode);
	if (rc != 0)
		rpc_server_close(srv);
	return rc;
}

void
rpc_server_close(struct rpc_server *srv)
{
	struct rpc_server *s = srv;

	rpc_server_drop_all(srv);
	rpc_listener_close(&s->main);
	rpc_listener_close(&s->clients_only);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	s->epoll_fd = -1;
}
