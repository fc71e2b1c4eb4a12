/* SPDX-License-Identifier: BSD-3-Clause */
#include "jsonrpc.h"
#include "fds.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int64_t
jsonrpc_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
jsonrpc_end(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : jsonrpc_now_ms() + timeout_ms;
}

static int
wait_for(const struct jsonrpc *c, short events, int64_t end)
{
	for (;;) {
		struct pollfd p = { .fd = c->fd, .events = events };
		int64_t left = end < 0 ? -1 : end - jsonrpc_now_ms();
		int n;

		if (end >= 0 && left < 0)
			left = 0;
		n = poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* A full queue of a Unix socket is nothing that poll() tells of. */
#define DIAL_PAUSE_NS 10000000

int
jsonrpc_connect(struct jsonrpc *c, const char *path, int64_t end)
{
	const struct timespec pause = { .tv_nsec = DIAL_PAUSE_NS };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const size_t n = strlen(path);
	int rc = 0;

	if (n == 0 || n >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, n + 1);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return -errno;
	while (connect(c->fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0) {
		rc = -errno;
		if (rc != -EAGAIN || (end >= 0 && jsonrpc_now_ms() >= end))
			break;
		nanosleep(&pause, NULL);
		rc = 0;
	}
	if (rc != 0) {
		close(c->fd);
		c->fd = -1;
	}
	return rc;
}

/* ---- sending --------------------------------------------------------------------------------- */

/** What is left of a line; descriptors go with the first byte. */
struct out {
	struct iovec iov[2];
	struct msghdr msg;
	union {
		uint8_t bytes[CMSG_SPACE(JSONRPC_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
};

static void
out_init(struct out *o, char *text, const int *fds, uint32_t fds_n)
{
	static char newline[] = "\n";
	struct cmsghdr *h;

	*o = (struct out){ .iov = { { text, strlen(text) }, { newline, 1 } } };
	o->msg = (struct msghdr){ .msg_iov = o->iov, .msg_iovlen = 2 };
	if (fds_n == 0)
		return;
	o->msg.msg_control = o->control.bytes;
	o->msg.msg_controllen = CMSG_SPACE(fds_n * sizeof(int));
	h = CMSG_FIRSTHDR(&o->msg);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(fds_n * sizeof(int));
	memcpy(CMSG_DATA(h), fds, fds_n * sizeof(int));
}

static void
out_advance(struct out *o, size_t n)
{
	o->msg.msg_control = NULL;
	o->msg.msg_controllen = 0;
	for (int i = 0; i < 2; i++) {
		const size_t part = n < o->iov[i].iov_len ? n : o->iov[i].iov_len;

		o->iov[i].iov_base = (char *)o->iov[i].iov_base + part;
		o->iov[i].iov_len -= part;
		n -= part;
	}
}

static int
send_line(const struct jsonrpc *c, char *text, const int *fds, uint32_t fds_n, int64_t end)
{
	struct out o;

	out_init(&o, text, fds, fds_n);
	while (o.iov[1].iov_len != 0) {
		const ssize_t n = sendmsg(c->fd, &o.msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		int rc;

		if (n >= 0) {
			out_advance(&o, (size_t)n);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return -errno;
		rc = wait_for(c, POLLOUT, end);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int
jsonrpc_send(struct jsonrpc *c, const char *method, json_t *params, const int *fds, uint32_t fds_n,
	int64_t end)
{
	json_t *request = json_pack("{s:s, s:I, s:s, s:o*}", "jsonrpc", "2.0", "id", ++c->id,
		"method", method, "params", params);
	char *text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
	int rc;

	json_decref(request);
	if (text == NULL)
		return -EILSEQ;
	rc = send_line(c, text, fds, fds_n, end);
	free(text);
	return rc;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static int
grow(struct jsonrpc *c)
{
	const size_t room = c->in_room == 0 ? 16384 : c->in_room * 2;
	char *in;

	if (c->in_len < c->in_room)
		return 0;
	if (room > c->most)
		return -EMSGSIZE;
	in = realloc(c->in, room);
	if (in == NULL)
		return -ENOMEM;
	c->in = in;
	c->in_room = room;
	return 0;
}

static int
receive_more(struct jsonrpc *c, int64_t end)
{
	union {
		uint8_t bytes[CMSG_SPACE(JSONRPC_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	int rc = grow(c);

	if (rc == 0)
		rc = wait_for(c, POLLIN, end);
	if (rc != 0)
		return rc;
	iov.iov_base = c->in + c->in_len;
	iov.iov_len = c->in_room - c->in_len;
	n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n > 0) {
		c->fds_n = fds_keep(&msg, c->fds, c->fds_n, JSONRPC_FDS);
		c->in_len += (size_t)n;
		return 0;
	}
	if (n == 0)
		return -ECONNRESET;
	return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
}

int
jsonrpc_receive(struct jsonrpc *c, int64_t end, json_t **out)
{
	size_t seen = 0;
	char *nl;

	while ((nl = c->in_len > seen ? memchr(c->in + seen, '\n', c->in_len - seen) : NULL) ==
		NULL) {
		int rc;

		seen = c->in_len;
		rc = receive_more(c, end);
		if (rc != 0)
			return rc;
	}
	*out = json_loadb(c->in, (size_t)(nl - c->in), JSON_REJECT_DUPLICATES, NULL);
	c->in_len -= (size_t)(nl + 1 - c->in);
	memmove(c->in, nl + 1, c->in_len);
	if (json_is_object(*out))
		return 0;
	json_decref(*out);
	*out = NULL;
	return -EPROTO;
}

bool
jsonrpc_is_answer(const struct jsonrpc *c, const json_t *object)
{
	const json_t *id = json_object_get(object, "id");

	return json_is_null(id) || (json_is_integer(id) && json_integer_value(id) == c->id);
}

void
jsonrpc_close(struct jsonrpc *c)
{
	int fd;

	while ((fd = fds_take(c->fds, &c->fds_n)) >= 0)
		close(fd);
	if (c->fd >= 0)
		close(c->fd);
	free(c->in);
	*c = (struct jsonrpc){ .fd = -1, .most = c->most };
}
