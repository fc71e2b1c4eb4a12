/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two devices; the link of "right" changes twice. Each change is an event of that device, and
 * nothing at the other's async_fd, on which its program would sleep for ever. It says when it
 * looks.
 */
#include <fcntl.h>
#include <poll.h>

#include "ends.h"

#define PATIENCE_MS 100000

static struct ibv_context *
opened(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	CHECK(list != NULL);
	for (int i = 0; list[i] != NULL && ctx == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			ctx = ibv_open_device(list[i]);
	}
	CHECK(ctx != NULL);
	ibv_free_device_list(list);
	CHECK(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
	return ctx;
}

static void
expect(struct ibv_context *of, struct ibv_context *other, enum ibv_event_type type)
{
	struct pollfd hears = { .fd = of->async_fd, .events = POLLIN };
	struct pollfd silent = { .fd = other->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	CHECK(poll(&hears, 1, PATIENCE_MS) == 1);
	CHECK(ibv_get_async_event(of, &e) == 0);
	CHECK(e.event_type == type && e.element.port_num == 1);
	ibv_ack_async_event(&e);
	CHECK(ibv_get_async_event(of, &e) == -1 && errno == EAGAIN);
	/* Both were told in one turn of the dataplane. */
	CHECK(poll(&silent, 1, 0) == 0);
	CHECK(ibv_get_async_event(other, &e) == -1 && errno == EAGAIN);
}

int
main(void)
{
	struct ibv_context *left = opened("left"), *right = opened("right");

	puts("looks");
	fflush(stdout);
	expect(right, left, IBV_EVENT_PORT_ACTIVE);
	puts("active");
	fflush(stdout);
	expect(right, left, IBV_EVENT_PORT_ERR);
	CHECK(ibv_close_device(left) == 0 && ibv_close_device(right) == 0);
	return 0;
}
