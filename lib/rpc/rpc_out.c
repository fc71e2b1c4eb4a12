/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes out on the control socket: never waits for room. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "env.h"
#include "rpc_server.h"

bool
rpc_server_watch(struct rpc_server *srv, struct rpc_client *cl, int op, bool wants_out)
{
	/* What comes in is the thread's; the peer's end is told in any case. */
	struct epoll_event e = { .events = (uint32_t)EPOLLET | (wants_out ? (uint32_t)EPOLLOUT : 0),
		.data.ptr = &cl->on_socket };

	cl->wants_out = wants_out;
	return epoll_ctl(srv->epoll_fd, op, cl->fd, &e) == 0;
}

void
rpc_server_drop_fds(struct rpc_client *cl)
{
	for (uint32_t i = 0; i < cl->out_fds_n; i++)
		close(cl->out_fds[i]);
	cl->out_fds_n = 0;
}

/* As much as goes in one call: no further than to where descriptors are due, or with them. */
static ssize_t
send_some(struct rpc_client *cl)
{
	union {
		uint8_t bytes[CMSG_SPACE(RPC_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	const bool pending = cl->out_fds_n != 0 && cl->out_len > cl->out_fds_at;
	const bool due = pending && cl->out_sent == cl->out_fds_at;
	const size_t end = pending && !due ? cl->out_fds_at : cl->out_len;
	struct iovec iov = { cl->out + cl->out_sent, end - cl->out_sent };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (due) {
		const size_t bytes = cl->out_fds_n * sizeof(int);
		struct cmsghdr *h;

		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(bytes);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(h), cl->out_fds, bytes);
	}
	n = sendmsg(cl->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0 && due)
		rpc_server_drop_fds(cl);
	return n;
}

void
rpc_server_flush(struct rpc_server *srv, struct rpc_client *cl)
{
	while (cl->out_sent < cl->out_len) {
		ssize_t n = send_some(cl);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
			cl->dead = true;
		if (n <= 0)
			break;
		cl->out_sent += (size_t)n;
	}
	if (cl->out_sent == cl->out_len) {
		cl->out_sent = 0;
		cl->out_len = 0;
	}
	if (cl->wants_out != (cl->out_len > 0) &&
		!rpc_server_watch(srv, cl, EPOLL_CTL_MOD, cl->out_len > 0))
		cl->dead = true;
}

/* Room for `more` bytes behind the pending ones. @return false: too much, or no memory. */
static bool
make_room(struct rpc_client *cl, size_t more)
{
	size_t room = cl->out_room != 0 ? cl->out_room : 4096;
	char *out;

	if (cl->out_sent > 0) {
		memmove(cl->out, cl->out + cl->out_sent, cl->out_len - cl->out_sent);
		cl->out_len -= cl->out_sent;
		if (cl->out_fds_at != SIZE_MAX)
			cl->out_fds_at -=
				cl->out_fds_at < cl->out_sent ? cl->out_fds_at : cl->out_sent;
		cl->out_sent = 0;
	}
	if (cl->out_len + more > RPC_OUT_MAX)
		return false;
	while (room < cl->out_len + more)
		room *= 2;
	if (room == cl->out_room)
		return true;
	out = realloc(cl->out, room);
	if (out == NULL)
		return false;
	cl->out = out;
	cl->out_room = room;
	return true;
}

void
rpc_server_send(struct rpc_server *srv, struct rpc_client *cl, const char *line, size_t len)
{
	if (cl->dead)
		return;
	if (!make_room(cl, len + 1)) {
		log_rated(&srv->told_slow, srv->env->now, LOG_WARN,
			"control socket: a client does not read; disconnected");
		cl->dead = true;
		return;
	}
	if (cl->out_fds_at == SIZE_MAX)
		cl->out_fds_at = cl->out_len;
	memcpy(cl->out + cl->out_len, line, len);
	cl->out[cl->out_len + len] = '\n';
	cl->out_len += len + 1;
	rpc_server_flush(srv, cl);
}

void
rpc_server_follow(struct rpc_server *srv, struct rpc_client *cl)
{
	if (!cl->follow)
		srv->followers++;
	cl->follow = true;
}

int
rpc_server_attach_fd(struct rpc_client *cl, int fd)
{
	/* A client that waits for each answer never has two lines with descriptors under way. */
	if ((cl->out_fds_n != 0 && cl->out_fds_at != SIZE_MAX) || cl->out_fds_n == RPC_FDS_MAX) {
		close(fd);
		cl->dead = true;
		return -ENOSPC;
	}
	cl->out_fds[cl->out_fds_n++] = fd;
	cl->out_fds_at = SIZE_MAX; /* of the next line */
	return 0;
}
