/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to the dataplane: JSON-RPC, one object a line, with descriptors either way. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client_priv.h"
#include "fds.h"

#define ANSWER_MAX  (1u << 20) /* bytes of a line */
#define PATIENCE_MS 30000

static _Thread_local char last_error[1024];

const char *
rl_last_error(void)
{
	return last_error;
}

int
client_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	return -err;
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The connection is out of step, or closed: nothing can be asked any more. */
static int
broken(struct context *ctx, int err, const char *what)
{
	ctx->broken = true;
	return client_fail(err, "the connection to the dataplane is lost: %s", what);
}

static int
wait_for(struct context *ctx, short events, int64_t end)
{
	struct pollfd p = { .fd = ctx->fd, .events = events };
	int64_t left;
	int n;

	do {
		left = end - now_ms();
		n = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return 0;
	return broken(
		ctx, n == 0 ? ETIMEDOUT : EIO, n == 0 ? "no answer in time" : strerror(errno));
}

/* The descriptor goes with the first byte. */
static int
send_line(struct context *ctx, const char *text, size_t len, int fd, int64_t end)
{
	union {
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov[2] = { { (void *)(uintptr_t)text, len }, { (void *)(uintptr_t) "\n", 1 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	size_t left = len + 1;

	if (fd >= 0) {
		struct cmsghdr *h;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	}
	while (left > 0) {
		ssize_t n = sendmsg(ctx->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
			const int rc = broken(ctx, EIO, strerror(errno));

			return client_is_gone(ctx) ? client_no_dataplane() : rc;
		}
		if (n < 0) {
			const int rc = wait_for(ctx, POLLOUT, end);

			if (rc != 0)
				return rc;
			continue;
		}
		left -= (size_t)n;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
		for (int i = 0; i < 2 && n > 0; i++) {
			size_t part = (size_t)n < iov[i].iov_len ? (size_t)n : iov[i].iov_len;

			iov[i].iov_base = (char *)iov[i].iov_base + part;
			iov[i].iov_len -= part;
			n -= (ssize_t)part;
		}
	}
	return 0;
}

int
client_take_fd(struct context *ctx)
{
	return fds_take(ctx->fds, &ctx->fds_n);
}

static int
receive_more(struct context *ctx, int64_t end)
{
	union {
		uint8_t bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	int rc;

	if (ctx->in_len == ctx->in_room) {
		const size_t room = ctx->in_room == 0 ? 16384 : ctx->in_room * 2;
		char *in = room <= ANSWER_MAX * 2 ? realloc(ctx->in, room) : NULL;

		if (in == NULL)
			return broken(ctx, ENOMEM, "an answer is too long");
		ctx->in = in;
		ctx->in_room = room;
	}
	rc = wait_for(ctx, POLLIN, end);
	if (rc != 0)
		return rc;
	iov.iov_base = ctx->in + ctx->in_len;
	iov.iov_len = ctx->in_room - ctx->in_len;
	n = recvmsg(ctx->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n > 0) {
		ctx->fds_n = fds_keep(&msg, ctx->fds, ctx->fds_n, FDS_MAX);
		ctx->in_len += (size_t)n;
		return 0;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	rc = broken(ctx, EIO, n == 0 ? "it was closed" : strerror(errno));
	return client_is_gone(ctx) ? client_no_dataplane() : rc;
}

/* The next line as JSON. */
static int
next_answer(struct context *ctx, int64_t end, json_t **out)
{
	size_t seen = 0;
	char *nl;
	int rc;

	while ((nl = ctx->in_len > seen ? memchr(ctx->in + seen, '\n', ctx->in_len - seen)
					: NULL) == NULL) {
		seen = ctx->in_len;
		rc = receive_more(ctx, end);
		if (rc != 0)
			return rc;
	}
	*out = json_loadb(ctx->in, (size_t)(nl - ctx->in), 0, NULL);
	ctx->in_len -= (size_t)(nl + 1 - ctx->in);
	memmove(ctx->in, nl + 1, ctx->in_len);
	return json_is_object(*out) ? 0 : broken(ctx, EPROTO, "an answer is no JSON object");
}

static int
refusal(const json_t *error)
{
	const char *text = json_string_value(json_object_get(error, "message"));
	const json_int_t code = json_integer_value(json_object_get(error, "code"));
	int err = EINVAL;

	if (code < ERROR_CODE && code > ERROR_CODE - 4096 && code > -32600)
		err = (int)(ERROR_CODE - code);
	else if (code == -32601)
		err = EPROTO;
	else if (code == -32603)
		err = ENOMEM;
	return client_fail(err, "%s", text != NULL ? text : "refused");
}

static int
exchange(struct context *ctx, const char *text, int fd, json_t **answer)
{
	const int64_t end = now_ms() + PATIENCE_MS;
	int rc = send_line(ctx, text, strlen(text), fd, end);
	const json_t *id;

	*answer = NULL;
	while (rc == 0) {
		rc = next_answer(ctx, end, answer);
		id = rc == 0 ? json_object_get(*answer, "id") : NULL;
		/* What it could not read, or would not, is answered with a null id. */
		if (rc == 0 &&
			(json_is_null(id) || (uint64_t)json_integer_value(id) == ctx->last_id))
			return 0;
		json_decref(*answer);
		*answer = NULL;
	}
	return rc;
}

int
client_call(struct context *ctx, const char *method, json_t *params, int fd, json_t **result)
{
	json_t *request, *answer = NULL, *error;
	char *text;
	int rc;

	if (result != NULL)
		*result = NULL;
	if (client_gone(ctx) || ctx->broken) {
		json_decref(params);
		return client_gone(ctx)
			       ? client_no_dataplane()
			       : client_fail(EIO, "the connection to the dataplane is lost");
	}
	while (ctx->fds_n != 0)
		close(client_take_fd(ctx));
	request = json_pack("{s:s, s:I, s:s, s:o*}", "jsonrpc", "2.0", "id",
		(json_int_t)++ctx->last_id, "method", method, "params", params);
	text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
	json_decref(request);
	if (text == NULL)
		return client_fail(ENOMEM, "out of memory");
	rc = exchange(ctx, text, fd, &answer);
	free(text);
	if (rc == 0) {
		error = json_object_get(answer, "error");
		rc = error != NULL ? refusal(error) : 0;
	}
	if (rc == 0)
		rc = client_map_areas(ctx, json_object_get(answer, "result"));
	if (rc == 0 && result != NULL)
		*result = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	return rc;
}

int
client_call_handle(struct context *ctx, const char *method, uint32_t handle)
{
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = client_call(ctx, method, json_pack("{s:I}", "handle", (json_int_t)handle), -1, NULL);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}
