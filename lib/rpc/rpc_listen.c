/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "env.h"
#include "log.h"
#include "rpc_server.h"

static int
unix_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/*
 * Whose is the file that stands at the path? @return 0: nobody's (any more), it is gone now;
 * -EADDRINUSE: somebody listens there; -EEXIST: it is no socket, and not ours to remove.
 */
static int
clear_path(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, rc;

	if (lstat(addr->sun_path, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		log_error("control socket %s: a file is there that is no socket", addr->sun_path);
		return -EEXIST;
	}
	fd = unix_socket();
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 0 : errno;
	close(fd);
	/* EAGAIN: somebody listens whose queue is full. */
	if (rc == 0 || rc == EAGAIN) {
		log_error("another rocelane is listening on %s", addr->sun_path);
		return -EADDRINUSE;
	}
	if (rc != ECONNREFUSED && rc != ENOENT) {
		log_error("control socket %s: %s", addr->sun_path, strerror(rc));
		return -rc;
	}
	if (unlink(addr->sun_path) != 0 && errno != ENOENT) {
		rc = -errno;
		log_error("control socket %s: cannot remove the stale one: %s", addr->sun_path,
			strerror(-rc));
		return rc;
	}
	return 0;
}

/* Bind so that the file never has more permission than asked for. */
static int
bind_path(struct rpc_listener *s, const struct sockaddr_un *addr, uint32_t mode)
{
	struct stat st;

	if (fchmod(s->fd, mode) != 0 ||
		bind(s->fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0)
		return -errno;
	if (chmod(addr->sun_path, mode) != 0 || stat(addr->sun_path, &st) != 0)
		return -errno;
	s->bound = true;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

void
rpc_listener_close(struct rpc_listener *l)
{
	struct stat st;

	if (l->bound && stat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino &&
		unlink(l->path) != 0)
		log_warn("control socket %s stays: %s", l->path, strerror(errno));
	if (l->fd >= 0)
		close(l->fd);
	l->bound = false;
	l->fd = -1;
}

#define LOCK_TRIES    500
#define LOCK_PAUSE_NS 10000000

/*
 * Two that start at once: who looks between the other's bind() and listen(), or between its look
 * and its unlink(), takes the other's socket for a stale one, and the other runs on without anybody
 * who could reach it. A folder that cannot be opened or locked, or that somebody keeps locked for
 * 5 s, is no reason not to start. @return a descriptor to be closed, or -1.
 */
static int
lock_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	char dir[CONF_SOCKET_MAX] = ".";
	int fd;

	if (slash != NULL) /* "/" for one in the root */
		snprintf(dir, sizeof(dir), "%.*s", slash > path ? (int)(slash - path) : 1, path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		nanosleep(&pause, NULL);
	}
	return fd;
}

static int
open_at(struct rpc_server *s, struct rpc_listener *l, const struct sockaddr_un *addr, uint32_t mode)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = l };
	int rc = clear_path(addr);

	if (rc != 0)
		return rc;
	l->fd = unix_socket();
	if (l->fd < 0)
		rc = -errno;
	if (rc == 0)
		rc = bind_path(l, addr, mode);
	if (rc == 0 &&
		(listen(l->fd, 64) != 0 || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, l->fd, &e) != 0))
		rc = -errno;
	if (rc != 0)
		log_error("control socket %s: %s%s", addr->sun_path, strerror(-rc),
			rc == -ENOENT || rc == -EACCES || rc == -EROFS
				? ": its folder must be there and writable; \"control\" in the "
				  "configuration may name another (\"socket\", \"client_socket\")"
				: "");
	return rc;
}

int
rpc_listener_open(struct rpc_server *s, struct rpc_listener *l, const char *path, uint32_t mode)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const int lock = lock_folder(path);
	int rc;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	memcpy(l->path, addr.sun_path, sizeof(l->path));
	rc = open_at(s, l, &addr, mode);
	if (lock >= 0)
		close(lock);
	return rc;
}
