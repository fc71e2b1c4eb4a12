/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket as a whole: made, opened, closed. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "env.h"
#include "log.h"
#include "rpc_server.h"

/* ---- threads of connections ------------------------------------------------------------------ */

static void *
where_am_i(void *arg)
{
	cpu_set_t *cpus = arg;

	if (pthread_getaffinity_np(pthread_self(), sizeof(*cpus), cpus) != 0)
		CPU_ZERO(cpus);
	return NULL;
}

/* Where EAL puts threads that are no lcores: away from lcores if there is another CPU for us. */
static bool
find_cpus(cpu_set_t *cpus)
{
	pthread_t t;

	CPU_ZERO(cpus);
	if (rte_ctrl_thread_create(&t, "rpc-cpus", NULL, where_am_i, cpus) != 0)
		return false;
	pthread_join(t, NULL);
	return CPU_COUNT(cpus) != 0;
}

/* What takes long of a request; the tables never change. */
static const struct broker_slow *
find_slow(const void *ctx, const json_t *request)
{
	const struct rpc_server *s = ctx;
	const char *name = json_string_value(json_object_get(request, "method"));
	const struct rpc_slow *m = s->slow;

	while (name != NULL && m != NULL && m->name != NULL) {
		if (strcmp(m->name, name) == 0)
			return &m->slow;
		m++;
	}
	return NULL;
}

static int
start_broker(struct rpc_server *s)
{
	struct broker_hooks hooks = {
		.find = find_slow, .ctx = s, .ended = rpc_server_ended, .ended_ctx = s
	};
	struct epoll_event e = { .events = EPOLLIN };

	hooks.pinned = find_cpus(&hooks.cpus);
	s->broker = broker_new(&hooks);
	if (s->broker == NULL)
		return -errno;
	e.data.ptr = s->broker;
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, broker_fd(s->broker), &e) == 0 ? 0 : -errno;
}

/* ---- the socket as a whole ------------------------------------------------------------------- */

void
rpc_server_init(struct rpc_server *srv, struct env *env, const struct rpc_up *up)
{
	broker_json_watch();
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
	rc = s->epoll_fd < 0 ? -errno : start_broker(s);
	if (rc != 0)
		log_error("control socket: %s", strerror(-rc));
	if (rc == 0)
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
	broker_free(s->broker);
	s->broker = NULL;
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	s->epoll_fd = -1;
}
