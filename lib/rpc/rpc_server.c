/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "env.h"
#include "fds.h"
#include "log.h"
#include "rpc.h"

/* The share of one client in one turn. */
#define READ_SHARE   (64u << 10)
#define LINES_SHARE  8
#define EVENTS       32
#define ACCEPT_SHARE 8
#define CLOSING_NS   ((ns_t)2 * TIME_NS_PER_S)

static void
set_events(struct rpc_server *srv, struct rpc_client *cl, bool wants_out)
{
	struct epoll_event e = { .events = (cl->eof ? 0 : (uint32_t)EPOLLIN) |
					   (wants_out ? (uint32_t)EPOLLOUT : 0),
		.data.ptr = cl };

	cl->wants_out = wants_out;
	if (epoll_ctl(srv->epoll_fd, EPOLL_CTL_MOD, cl->fd, &e) != 0)
		cl->dead = true;
}

static void
close_fds(int *fds, uint32_t *n)
{
	for (uint32_t i = 0; i < *n; i++)
		close(fds[i]);
	*n = 0;
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
		close_fds(cl->out_fds, &cl->out_fds_n);
	return n;
}

/* Write what the peer takes. */
static void
flush(struct rpc_server *srv, struct rpc_client *cl)
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
	if (cl->wants_out != (cl->out_len > 0))
		set_events(srv, cl, cl->out_len > 0);
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
	flush(srv, cl);
}

void
rpc_server_follow(struct rpc_server *srv, struct rpc_client *cl)
{
	if (!cl->follow)
		srv->followers++;
	cl->follow = true;
}

int
rpc_server_take_fd(struct rpc_client *cl)
{
	return fds_take(cl->in_fds, &cl->in_fds_n);
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

static void
free_client(struct rpc_server *srv, struct rpc_client *cl)
{
	struct rpc_server *s = srv;

	if (cl->app != NULL)
		srv->up.closed(srv->up.ctx, cl);
	rpc_admit_end(&s->admission, cl->peer.uid, cl->operator);
	close_fds(cl->in_fds, &cl->in_fds_n);
	close_fds(cl->out_fds, &cl->out_fds_n);

	TAILQ_REMOVE(&s->clients, cl, all);
	if (cl->follow)
		s->followers--;
	close(cl->fd);
	free(cl->in);
	free(cl->out);
	free(cl);
}

/* The line is too long: say so, then read and forget until the peer closes or time is up. */
static void
refuse_line(struct rpc_server *srv, struct rpc_client *cl)
{
	char *reply = rpc_error_line(
		RPC_INVALID_REQUEST, "line longer than 1048576 bytes; the connection is closed");

	if (reply != NULL)
		rpc_server_send(srv, cl, reply, strlen(reply));
	free(reply);
	shutdown(cl->fd, SHUT_WR);
	cl->closing = true;
	cl->close_by = srv->env->now + CLOSING_NS;
	free(cl->in);
	cl->in = NULL;
	cl->in_len = cl->in_room = cl->scanned = 0;
}

static void
run_line(struct rpc_server *srv, struct rpc_client *cl, const char *line, size_t len)
{
	char *reply;

	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len == 0)
		return;
	reply = rpc_line(srv, cl, line, len);
	if (reply != NULL)
		rpc_server_send(srv, cl, reply, strlen(reply));
	free(reply);
}

/* Whole lines in the input buffer. @return how many were run. */
static uint32_t
run_lines(struct rpc_server *srv, struct rpc_client *cl)
{
	size_t start = 0;
	uint32_t n = 0;

	while (n < LINES_SHARE && !cl->dead && cl->in_len > start + cl->scanned) {
		const char *line = cl->in + start;
		const char *nl = memchr(line + cl->scanned, '\n', cl->in_len - start - cl->scanned);
		const size_t len = nl != NULL ? (size_t)(nl - line) : cl->in_len - start;

		if (len > RPC_LINE_MAX) {
			refuse_line(srv, cl);
			return n;
		}
		if (nl == NULL) {
			cl->scanned = len;
			break;
		}
		cl->scanned = 0;
		run_line(srv, cl, line, len);
		start += len + 1;
		n++;
	}
	if (start > 0) {
		memmove(cl->in, cl->in + start, cl->in_len - start);
		cl->in_len -= start;
		/* What no request took was sent with one that needs none, or was refused. */
		if (cl->in_len == 0)
			close_fds(cl->in_fds, &cl->in_fds_n);
	}
	return n;
}

static bool
grow_input(struct rpc_client *cl)
{
	size_t room = cl->in_room == 0 ? 4096 : cl->in_room * 2;
	char *in;

	if (cl->in_len < cl->in_room)
		return true;
	if (room > RPC_LINE_MAX + 4096)
		room = RPC_LINE_MAX + 4096;
	in = room > cl->in_room ? realloc(cl->in, room) : NULL;
	if (in == NULL)
		return false;
	cl->in = in;
	cl->in_room = room;
	return true;
}

static ssize_t
receive(struct rpc_client *cl, char *to, size_t room)
{
	union {
		uint8_t bytes[CMSG_SPACE(RPC_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { to, room };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	const ssize_t n = recvmsg(cl->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n > 0)
		cl->in_fds_n =
			fds_keep(&msg, cl->in_fds, cl->in_fds_n, cl->closing ? 0 : RPC_FDS_MAX);
	return n;
}

/* @return bytes read; 0: nothing more now. */
static size_t
read_some(struct rpc_client *cl)
{
	char scrap[4096];
	ssize_t n;

	if (!cl->closing && !grow_input(cl))
		return 0; /* full of whole lines that wait for their turn */
	do {
		n = receive(cl, cl->closing ? scrap : cl->in + cl->in_len,
			cl->closing ? sizeof(scrap) : cl->in_room - cl->in_len);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		cl->in_len += cl->closing ? 0 : (size_t)n;
		return (size_t)n;
	}
	cl->readable = false;
	if (n == 0)
		cl->eof = true;
	else if (errno != EAGAIN && errno != EWOULDBLOCK)
		cl->dead = true;
	return 0;
}

static uint32_t
serve(struct rpc_server *srv, struct rpc_client *cl)
{
	const bool was_eof = cl->eof;
	uint32_t work = run_lines(srv, cl);
	size_t got = 0, n;

	while (cl->readable && !cl->dead && got < READ_SHARE && work < LINES_SHARE) {
		n = read_some(cl);
		if (n == 0)
			break;
		got += n;
		if (!cl->closing)
			work += run_lines(srv, cl);
	}
	if (cl->eof && !was_eof)
		set_events(srv, cl, cl->wants_out);
	return work + (got > 0);
}

/* Has the peer closed its side, and all been said? Half a line is nothing. */
static bool
is_finished(const struct rpc_client *cl)
{
	return cl->eof && cl->in_len == cl->scanned && cl->out_len == 0 &&
	       (cl->closing || !cl->follow);
}

static struct owner_process
peer_of(int fd)
{
	struct owner_process p = { .pid = 0, .uid = UINT32_MAX, .gid = UINT32_MAX };
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
		p = (struct owner_process){ .pid = cred.pid, .uid = cred.uid, .gid = cred.gid };
	return p;
}

/* With the reason: what was sent already is taken, or the kernel would throw our line away. */
static void
turn_away(struct rpc_server *s, int fd, const struct refusal *r)
{
	char *line = rpc_error_line(RPC_REFUSED - r->err, r->text);
	char scrap[4096];

	log_rated(&s->admission.told, s->env->now, LOG_WARN, "control socket: %s", r->text);
	if (line != NULL) {
		struct iovec iov[2] = { { line, strlen(line) }, { (void *)(uintptr_t) "\n", 1 } };
		const struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

		(void)!sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	free(line);
	shutdown(fd, SHUT_RDWR);
	while (recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT) > 0)
		; /* no more than a socket's buffer: nothing can be sent after shutdown() */
	close(fd);
}

/* One that is admitted. */
static int
take_in(struct rpc_server *s, int fd, const struct rpc_client *as, struct refusal *r)
{
	struct rpc_client *cl = calloc(1, sizeof(*cl));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = cl };

	if (cl == NULL || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) != 0) {
		free(cl);
		return refuse(r, ENOMEM, "no memory for another connection");
	}
	*cl = *as;
	cl->fd = fd;
	TAILQ_INSERT_TAIL(&s->clients, cl, all);
	return 0;
}

static uint32_t
accept_some(struct rpc_server *s, const struct rpc_listener *from)
{
	uint32_t n;

	for (n = 0; n < ACCEPT_SHARE; n++) {
		const int fd = accept4(from->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct rpc_client as = { .limited = from == &s->clients_only };
		struct refusal r;

		if (fd < 0)
			break;
		as.peer = peer_of(fd);
		as.operator= rpc_is_operator(&as.peer, as.limited);
		if (rpc_admit(&s->admission, as.peer.uid, as.operator, & r) != 0) {
			turn_away(s, fd, &r);
			continue;
		}
		if (take_in(s, fd, &as, &r) != 0) {
			rpc_admit_end(&s->admission, as.peer.uid, as.operator);
			turn_away(s, fd, &r);
		}
	}
	return n;
}

uint32_t
rpc_server_poll(struct rpc_server *srv)
{
	struct rpc_server *s = srv;
	struct epoll_event events[EVENTS];
	struct rpc_client *cl, *next;
	uint32_t work = 0;
	int n;

	if (s->epoll_fd < 0)
		return 0;
	n = epoll_wait(s->epoll_fd, events, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		const struct rpc_listener *from = events[i].data.ptr;

		if (from == &s->main || from == &s->clients_only) {
			work += accept_some(srv, from);
			continue;
		}
		cl = events[i].data.ptr;
		if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
			cl->readable = true;
		if ((events[i].events & (EPOLLOUT | EPOLLHUP)) != 0)
			flush(srv, cl);
		if (cl->eof && (events[i].events & (EPOLLHUP | EPOLLERR)) != 0)
			cl->dead = true;
	}
	for (cl = TAILQ_FIRST(&s->clients); cl != NULL; cl = next) {
		next = TAILQ_NEXT(cl, all);
		if (cl->readable || cl->in_len > cl->scanned)
			work += serve(srv, cl);
		if (is_finished(cl) || (cl->closing && srv->env->now >= cl->close_by))
			cl->dead = true;
		if (cl->dead)
			free_client(srv, cl);
	}
	return work;
}

void
rpc_server_drop_all(struct rpc_server *srv)
{
	struct rpc_client *cl;

	while ((cl = TAILQ_FIRST(&srv->clients)) != NULL) {
		flush(srv, cl);
		free_client(srv, cl);
	}
}
