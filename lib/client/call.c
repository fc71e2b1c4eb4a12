/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to the dataplane, and what happens when the connection is lost. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client_priv.h"
#include "fds.h"

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

/* The connection is out of step, or closed: nothing can be asked any more. */
static int
broken(struct context *ctx, int err, const char *what)
{
	ctx->broken = true;
	return client_fail(err, "the connection to the dataplane is lost: %s", what);
}

/* The same for a failure of jsonrpc.h. */
static int
lost(struct context *ctx, int rc)
{
	switch (-rc) {
	case ETIMEDOUT:
		return broken(ctx, ETIMEDOUT, "no answer in time");
	case EMSGSIZE:
	case ENOMEM:
		return broken(ctx, ENOMEM, "an answer is too long");
	case EPROTO:
		return broken(ctx, EPROTO, "an answer is no JSON object");
	default:
		rc = broken(ctx, EIO, rc == -ECONNRESET ? "it was closed" : strerror(-rc));
		return client_is_gone(ctx) ? client_no_dataplane() : rc;
	}
}

int
client_take_fd(struct context *ctx)
{
	return fds_take(ctx->line.fds, &ctx->line.fds_n);
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

/*
 * One of those to send is not open, or too many of this user are in messages: nothing was sent, and
 * the connection is as it was.
 */
static bool
is_of_fds(const struct context *ctx, int rc)
{
	return rc == -ETOOMANYREFS || (rc == -EBADF && fcntl(ctx->line.fd, F_GETFD) >= 0);
}

/* The answer to a request. @param params taken. */
static int
exchange(struct context *ctx, const char *method, json_t *params, const int *fds, uint32_t fds_n,
	json_t **answer)
{
	const int64_t end = jsonrpc_end(PATIENCE_MS);
	int rc = jsonrpc_send(&ctx->line, method, params, fds, fds_n, end);

	if (rc == -EILSEQ)
		return client_fail(ENOMEM, "out of memory");
	if (fds_n != 0 && is_of_fds(ctx, rc))
		return client_fail(
			-rc, "the dataplane cannot be given a descriptor: %s", strerror(-rc));
	while (rc == 0) {
		rc = jsonrpc_receive(&ctx->line, end, answer);
		if (rc == 0 && jsonrpc_is_answer(&ctx->line, *answer))
			return 0;
		json_decref(*answer);
		*answer = NULL;
	}
	return lost(ctx, rc);
}

/* One request, with areas that come with the answer. @param params ours. */
static int
ask(struct context *ctx, const char *method, json_t *params, const int *fds, uint32_t fds_n,
	json_t **result)
{
	json_t *answer = NULL, *error;
	int rc;

	while (ctx->line.fds_n != 0)
		close(client_take_fd(ctx));
	rc = exchange(ctx, method, json_incref(params), fds, fds_n, &answer);
	if (rc == 0) {
		error = json_object_get(answer, "error");
		rc = error != NULL ? refusal(error) : 0;
	}
	if (rc == 0)
		rc = client_map_areas(ctx, json_object_get(answer, "result"));
	*result = rc == 0 ? json_incref(json_object_get(answer, "result")) : NULL;
	json_decref(answer);
	return rc;
}

/* The dataplane would put more into what could not be mapped. */
static void
tell_lost(struct context *ctx)
{
	char why[sizeof(last_error)];
	json_t *params, *result = NULL;
	uint32_t number;

	memcpy(why, last_error, sizeof(why));
	while (!client_gone(ctx) && !ctx->broken && client_lost_area(ctx, &number)) {
		params = json_pack("{s:I}", "area", (json_int_t)number);
		ask(ctx, "client_area_lost", params, NULL, 0, &result);
		json_decref(params);
		json_decref(result);
	}
	memcpy(last_error, why, sizeof(why));
}

int
client_call(struct context *ctx, const char *method, json_t *params, int fd, json_t **result)
{
	return client_call_fds(ctx, method, params, &fd, fd >= 0 ? 1 : 0, result);
}

int
client_call_fds(struct context *ctx, const char *method, json_t *params, const int *fds,
	uint32_t fds_n, json_t **result)
{
	const int was = errno;
	json_t *got = NULL;
	bool again;
	int rc;

	if (result != NULL)
		*result = NULL;
	if (client_gone(ctx) || ctx->broken) {
		json_decref(params);
		return client_gone(ctx)
			       ? client_no_dataplane()
			       : client_fail(EIO, "the connection to the dataplane is lost");
	}
	/* Areas come before what lies in them: the dataplane uses them once they are mapped. */
	do {
		rc = ask(ctx, method, params, fds, fds_n, &got);
		again = rc == 0 && json_is_true(json_object_get(got, "again"));
		if (again)
			json_decref(got);
	} while (again);
	json_decref(params);
	if (rc != 0)
		tell_lost(ctx);
	if (rc == 0 && result != NULL)
		*result = got;
	else
		json_decref(got);
	if (rc == 0)
		errno = was; /* Jansson sets it to 0; programs look at that of an earlier call */
	return rc;
}

/*
 * As many as come at once: one of an object, and one of an area. Not of the connection: another
 * thread of the program may write by a number that it has closed just now.
 */
static bool
has_room(const struct context *ctx)
{
	const int one = fcntl(ctx->pub.async_fd, F_DUPFD_CLOEXEC, 0);
	const int two = one >= 0 ? fcntl(ctx->pub.async_fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (one >= 0)
		close(one);
	if (two >= 0)
		close(two);
	return two >= 0;
}

int
client_call_for_fds(struct context *ctx, const char *method, json_t *params, json_t **result)
{
	if (!client_gone(ctx) && !ctx->broken && !has_room(ctx)) {
		json_decref(params);
		if (result != NULL)
			*result = NULL;
		return client_fail(EMFILE, "no descriptor is left for what the dataplane gives");
	}
	return client_call(ctx, method, params, -1, result);
}

int
client_take_made_fd(struct context *ctx, const char *unmake, uint32_t handle)
{
	const int fd = client_take_fd(ctx);

	if (fd >= 0)
		return fd;
	client_call(ctx, unmake, json_pack("{s:I}", "handle", (json_int_t)handle), -1, NULL);
	return client_fail(EMFILE, "the channel's descriptor did not arrive");
}

/*
 * The kernel counts the sets that a file is in by way of other sets: of one file, 500 may be in one
 * more set, 100 in two, 50 in three. It refuses what the application adds beyond that.
 */
#define ENDS_WATCHED 48

static int
watch(struct context *ctx, int events)
{
	struct epoll_event event = { .events = EPOLLIN }, end = { .events = EPOLLRDHUP };
	const int fd = client_set_create();

	if (fd >= 0 && client_set_ctl(fd, EPOLL_CTL_ADD, events, &event) == 0 &&
		client_set_ctl(fd, EPOLL_CTL_ADD, ctx->line.fd, &end) == 0) {
		ctx->ends++;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

int
client_take_channel(struct context *ctx, const char *unmake, uint32_t handle, int *event_fd)
{
	const int events = client_take_made_fd(ctx, unmake, handle);
	int fd = events;

	if (events >= 0 && ctx->ends < ENDS_WATCHED)
		fd = watch(ctx, events);
	*event_fd = events;
	if (fd >= 0 || events < 0)
		return fd;
	close(events);
	client_call(ctx, unmake, json_pack("{s:I}", "handle", (json_int_t)handle), -1, NULL);
	return client_fail(EMFILE, "no descriptor for the channel");
}

void
client_close_channel(struct context *ctx, int fd, int event_fd)
{
	if (fd != event_fd) {
		ctx->ends--;
		close(fd);
	}
	close(event_fd);
}

int
client_call_handle(struct context *ctx, const char *method, uint32_t handle)
{
	int rc;

	client_lock(ctx);
	rc = client_call(ctx, method, json_pack("{s:I}", "handle", (json_int_t)handle), -1, NULL);
	client_unlock(ctx);
	return rc;
}
