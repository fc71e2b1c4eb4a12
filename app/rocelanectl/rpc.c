/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int __attribute__((format(printf, 3, 4))) fail(struct rpc *r, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->err, sizeof(r->err), fmt, ap);
	va_end(ap);
	r->code = RPC_REFUSED + rc;
	return rc;
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Absolute end of a wait; -1 has none. */
static int64_t
deadline_of(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
}

static int
wait_for(struct rpc *r, short events, int64_t deadline)
{
	for (;;) {
		struct pollfd p = { .fd = r->fd, .events = events };
		int64_t left = deadline < 0 ? -1 : deadline - now_ms();
		int n;

		if (deadline >= 0 && left < 0)
			left = 0;
		n = poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
		if (n > 0)
			return 0;
		if (n == 0)
			return fail(r, -ETIMEDOUT, "no answer from the dataplane in time");
		if (errno != EINTR)
			return fail(r, -errno, "poll: %s", strerror(errno));
	}
}

void
rpc_init(struct rpc *r, int timeout_ms)
{
	memset(r, 0, sizeof(*r));
	r->fd = -1;
	r->timeout_ms = timeout_ms;
}

/* Others may be waiting for it as well: EAGAIN. */
static int
dial(const struct rpc *r, const struct sockaddr_un *sa)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	const int64_t deadline = deadline_of(r->timeout_ms);

	while (connect(r->fd, (const struct sockaddr *)sa, sizeof(*sa)) != 0) {
		if (errno != EAGAIN || (deadline >= 0 && now_ms() > deadline))
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int
rpc_connect(struct rpc *r, const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	int rc;

	if (n == 0 || n >= sizeof(sa.sun_path))
		return fail(r, -ENAMETOOLONG, "socket path '%.200s' must have 1 to %zu characters",
			path, sizeof(sa.sun_path) - 1);
	memcpy(sa.sun_path, path, n + 1);
	r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->fd < 0)
		return fail(r, -errno, "socket: %s", strerror(errno));
	rc = dial(r, &sa);
	if (rc != 0) {
		close(r->fd);
		r->fd = -1;
		return fail(r, rc, "cannot connect to %s: %s", path,
			rc == -EAGAIN ? "it has too many others to answer" : strerror(-rc));
	}
	return 0;
}

void
rpc_close(struct rpc *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	free(r->buf);
	r->buf = NULL;
	r->len = 0;
	r->cap = 0;
	json_decref(r->notes);
	r->notes = NULL;
}

static int
send_all(struct rpc *r, const char *data, size_t len, int64_t deadline)
{
	while (len > 0) {
		ssize_t n = send(r->fd, data, len, MSG_NOSIGNAL);
		int rc;

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EPIPE || errno == ECONNRESET)
			return 0; /* it has said why, perhaps */
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return fail(r, -errno, "the dataplane closed the connection: %s",
				strerror(errno));
		rc = wait_for(r, POLLOUT, deadline);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
grow(struct rpc *r)
{
	size_t cap = r->cap == 0 ? 65536 : r->cap * 2;
	char *p;

	if (r->len < r->cap)
		return 0;
	if (cap > RPC_LINE_MAX)
		return fail(r, -EMSGSIZE, "answer is longer than %u bytes", RPC_LINE_MAX);
	p = realloc(r->buf, cap);
	if (p == NULL)
		return fail(r, -ENOMEM, "out of memory");
	r->buf = p;
	r->cap = cap;
	return 0;
}

/* Next line as an object. */
static int
read_object(struct rpc *r, int64_t deadline, json_t **out)
{
	size_t seen = 0;

	for (;;) {
		char *nl = r->len > seen ? memchr(r->buf + seen, '\n', r->len - seen) : NULL;
		ssize_t n;
		int rc;

		if (nl != NULL) {
			size_t line = (size_t)(nl - r->buf);
			json_t *v = json_loadb(r->buf, line, JSON_REJECT_DUPLICATES, NULL);

			r->len -= line + 1;
			memmove(r->buf, nl + 1, r->len);
			if (!json_is_object(v)) {
				json_decref(v);
				return fail(r, -EPROTO, "answer is not a JSON object");
			}
			*out = v;
			return 0;
		}
		seen = r->len;
		rc = grow(r);
		if (rc == 0)
			rc = wait_for(r, POLLIN, deadline);
		if (rc != 0)
			return rc;
		n = recv(r->fd, r->buf + r->len, r->cap - r->len, 0);
		if (n > 0)
			r->len += (size_t)n;
		else if (n == 0 || errno == ECONNRESET)
			return fail(r, -ECONNRESET, "the dataplane closed the connection");
		else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
			return fail(r, -errno, "receive: %s", strerror(errno));
	}
}

static int
keep_note(struct rpc *r, json_t *note)
{
	if (r->notes == NULL)
		r->notes = json_array();
	if (json_array_append_new(r->notes, note) != 0)
		return fail(r, -ENOMEM, "out of memory");
	return 0;
}

/* The answer's result, or its error as text. */
static int
take_result(struct rpc *r, const json_t *answer, json_t **result)
{
	json_t *error = json_object_get(answer, "error");
	json_t *v = json_object_get(answer, "result");

	if (error != NULL && !json_is_null(error)) {
		const char *text = json_string_value(json_object_get(error, "message"));
		const json_t *code = json_object_get(error, "code");

		fail(r, -EREMOTEIO, "%s", text != NULL ? text : "refused without a reason");
		if (json_is_integer(code))
			r->code = (int)json_integer_value(code);
		return -EREMOTEIO;
	}
	if (v == NULL)
		return fail(r, -EPROTO, "answer has neither a result nor an error");
	*result = json_incref(v);
	return 0;
}

int
rpc_call(struct rpc *r, const char *method, json_t *params, json_t **result)
{
	int64_t deadline = deadline_of(r->timeout_ms);
	json_t *req =
		json_pack("{s:s, s:I, s:s}", "jsonrpc", "2.0", "id", ++r->id, "method", method);
	char *text;
	int rc;

	if (req != NULL && params != NULL)
		json_object_set(req, "params", params);
	json_decref(params);
	text = json_dumps(req, JSON_COMPACT);
	json_decref(req);
	if (text == NULL)
		return fail(r, -EINVAL, "a parameter is not valid UTF-8");
	rc = send_all(r, text, strlen(text), deadline);
	if (rc == 0)
		rc = send_all(r, "\n", 1, deadline);
	free(text);

	while (rc == 0) {
		json_t *answer = NULL;
		json_t *id;

		rc = read_object(r, deadline, &answer);
		if (rc != 0)
			break;
		id = json_object_get(answer, "id");
		if (id == NULL && json_object_get(answer, "method") != NULL) {
			rc = keep_note(r, answer);
			continue;
		}
		/* A line that the daemon could not read is answered with a null id. */
		if (json_is_null(id) || json_integer_value(id) == r->id) {
			rc = take_result(r, answer, result);
			json_decref(answer);
			return rc;
		}
		json_decref(answer);
	}
	return rc;
}

int
rpc_wait(struct rpc *r, int timeout_ms, json_t **note)
{
	int64_t deadline = deadline_of(timeout_ms);
	int rc;

	if (json_array_size(r->notes) > 0) {
		*note = json_incref(json_array_get(r->notes, 0));
		json_array_remove(r->notes, 0);
		return 0;
	}
	for (;;) {
		rc = read_object(r, deadline, note);
		if (rc != 0 || json_object_get(*note, "method") != NULL)
			return rc;
		json_decref(*note);
	}
}
