/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: peer CHANNEL DEVICE. Reads requests from CHANNEL, answers on it, ends at end of file. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

static const struct {
	const char *name;
	method_fn fn;
} methods[] = {
	{ "version", version },
	{ "mr_register", mr_register },
	{ "mr_deregister", mr_deregister },
	{ "mr_read", mr_read },
	{ "mr_write", mr_write },
	{ "mr_crc", mr_crc },
	{ "cq_create", cq_create },
	{ "cq_destroy", cq_destroy },
	{ "qp_create", qp_create },
	{ "qp_modify", qp_modify },
	{ "qp_query", qp_query },
	{ "qp_destroy", qp_destroy },
	{ "cm_create", cm_create },
	{ "cm_destroy", cm_destroy },
	{ "cm_listen", cm_listen },
	{ "cm_resolve", cm_resolve },
	{ "cm_route", cm_route },
	{ "cm_qp", cm_qp },
	{ "cm_connect", cm_connect },
	{ "cm_accept", cm_accept },
	{ "cm_reject", cm_reject },
	{ "cm_disconnect", cm_disconnect },
	{ "cm_events", cm_events },
	{ "mcast_attach", mcast_attach },
	{ "mcast_detach", mcast_detach },
	{ "post_send", post_send },
	{ "post_recv", post_recv },
	{ "poll_cq", poll_cq },
	{ "async_events", async_events },
	{ "stats", stats },
	{ "run_start", run_start },
	{ "run_wait", run_wait },
};

static struct {
	int err;
	char what[128];
} failure;

json_t *
peer_fail(int err, const char *what)
{
	failure.err = err;
	snprintf(failure.what, sizeof(failure.what), "%s", what);
	return NULL;
}

static json_t *
answer(struct peer *p, const char *line)
{
	json_error_t where;
	json_t *request = json_loads(line, 0, &where);
	const char *name = value_text(request, "method");
	json_t *params = json_object_get(request, "params");
	json_t *result = NULL;
	json_t *reply;

	peer_fail(ENOSYS, "no such method");
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i].name, name) == 0) {
			peer_fail(EINVAL, name);
			result = methods[i].fn(p, params);
		}
	}
	reply = json_object();
	json_object_set(reply, "id", json_object_get(request, "id"));
	if (result != NULL) {
		json_object_set_new(reply, "result", result);
	} else {
		char message[256];

		snprintf(message, sizeof(message), "%s: %s", failure.what, strerror(failure.err));
		json_object_set_new(reply, "error",
			json_pack("{s:i, s:s}", "code", -32000 - failure.err, "message", message));
	}
	json_decref(request);
	return reply;
}

/* The port's far end may not be there yet, and a full port takes what it takes. */
static int
write_all(int fd, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, data, n);

		if (k < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (k > 0) {
			data += k;
			n -= (size_t)k;
		}
	}
	return 0;
}

static int
serve(struct peer *p, int fd)
{
	size_t size = 8 << 20, used = 0;
	char *line = malloc(size);

	if (line == NULL)
		return -ENOMEM;
	for (;;) {
		ssize_t k = read(fd, line + used, size - used - 1);
		char *end;

		if (k == 0 || (k < 0 && errno != EINTR && errno != EAGAIN))
			break;
		used += k > 0 ? (size_t)k : 0;
		line[used] = '\0';
		while ((end = strchr(line, '\n')) != NULL) {
			json_t *reply;
			char *text;

			*end = '\0';
			reply = answer(p, line);
			text = json_dumps(reply, JSON_COMPACT);
			json_decref(reply);
			if (text == NULL || write_all(fd, text, strlen(text)) != 0 ||
				write_all(fd, "\n", 1) != 0)
				return -EIO;
			free(text);
			used -= (size_t)(end + 1 - line);
			memmove(line, end + 1, used + 1);
		}
		if (used == size - 1)
			break;
	}
	free(line);
	return 0;
}

static struct ibv_context *
open_device(const char *name)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx = NULL;

	for (int i = 0; i < n && ctx == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return ctx;
}

int
main(int argc, char **argv)
{
	static struct peer peer;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: peer CHANNEL DEVICE\n");
		return 2;
	}
	peer.device = argv[2];
	peer.ctx = open_device(argv[2]);
	peer.pd = peer.ctx == NULL ? NULL : ibv_alloc_pd(peer.ctx);
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (peer.pd == NULL || fd < 0) {
		fprintf(stderr, "peer: cannot open %s or %s: %s\n", argv[2], argv[1],
			strerror(errno));
		return 1;
	}
	fcntl(peer.ctx->async_fd, F_SETFL, O_NONBLOCK);
	return serve(&peer, fd) == 0 ? 0 : 1;
}
