/* SPDX-License-Identifier: BSD-3-Clause */
/* What who polls or waits hears of the dataplane's end. argv[1] is the socket. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cm_side.h"

#define PATIENCE_MS   60000
#define FDS           1024
#define MANY_CHANNELS 130

static bool
readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static bool
leads_to(int fd, const char *path)
{
	struct sockaddr_un to = { 0 };
	socklen_t len = sizeof(to);

	return getpeername(fd, (struct sockaddr *)&to, &len) == 0 && to.sun_family == AF_UNIX &&
	       strcmp(to.sun_path, path) == 0;
}

/* @return the descriptor of its connection, which ends when the dataplane does. */
static int
open_line(const char *path, struct rl_context **ctx)
{
	bool had[FDS];
	int line = 0;

	for (int fd = 0; fd < FDS; fd++)
		had[fd] = leads_to(fd, path);
	OK(rl_open(path, ctx));
	while (line < FDS - 1 && (had[line] || !leads_to(line, path)))
		line++;
	return line;
}

static void *
next_event(void *ctx)
{
	struct rl_async_event e;
	const int rc = rl_get_async_event(ctx, &e);

	CHECK(rc == -EIO || (rc == 0 && e.event_type == RL_EVENT_DEVICE_FATAL));
	return rc == 0 ? ctx : NULL;
}

/* One hears of it, whoever waits; then nobody who polls is woken for what does not come. */
static void
of_a_dataplane_that_is_gone(const char *path, bool blocks)
{
	struct rl_async_event e;
	struct rl_context *ctx;
	pthread_t waits[3];
	uint32_t told = 0;
	void *got;
	int line;

	line = open_line(path, &ctx);
	if (blocks)
		for (int i = 0; i < 3; i++)
			OK(pthread_create(&waits[i], NULL, next_event, ctx));
	CHECK(!readable(ctx->async_fd, 0));
	OK(shutdown(line, SHUT_RDWR));
	if (blocks)
		for (int i = 0; i < 3; i++) {
			OK(pthread_join(waits[i], &got));
			told += got != NULL;
		}
	else
		CHECK(readable(ctx->async_fd, PATIENCE_MS));
	OK(fcntl(ctx->async_fd, F_SETFL, blocks ? 0 : O_NONBLOCK));
	if (!blocks)
		told += next_event(ctx) != NULL;
	CHECK(told == 1);
	CHECK(!readable(ctx->async_fd, 0));
	CHECK(rl_get_async_event(ctx, &e) == -EIO && !readable(ctx->async_fd, 0));
	OK(rl_close(ctx));
}

/* Programs mostly poll a channel, beside others, and ask for an event when there is one. */
static void
channels_of_a_dataplane_that_is_gone(const char *path, int flags)
{
	struct rl_cm_event_channel *cm;
	struct rl_comp_channel *ch;
	struct rl_context *ctx;
	struct rl_cm_event *e;
	struct rl_cq *cq;
	const int line = open_line(path, &ctx);

	OK(rl_create_comp_channel(ctx, &ch));
	OK(rl_cm_create_event_channel(ctx, &cm));
	OK(fcntl(ch->fd, F_SETFL, flags));
	OK(fcntl(cm->fd, F_SETFL, flags));
	CHECK(!readable(ch->fd, 0) && !readable(cm->fd, 0));
	OK(shutdown(line, SHUT_RDWR));
	for (int i = 0; i < 2; i++) { /* also who comes later */
		CHECK(readable(ch->fd, PATIENCE_MS) && readable(cm->fd, PATIENCE_MS));
		CHECK(rl_get_cq_event(ch, &cq, NULL) == -EIO);
		CHECK(rl_cm_get_event(cm, &e) == -EIO);
	}
	OK(rl_close(ctx));
}

/* Programs have sets of sets, and the kernel allows 100 of those that one file is in. */
static void
many_channels_in_sets(const char *path)
{
	struct rl_comp_channel *ch[MANY_CHANNELS];
	struct epoll_event in = { .events = EPOLLIN };
	const int all = epoll_create1(0);
	int sets[MANY_CHANNELS], line;
	struct rl_context *ctx;

	line = open_line(path, &ctx);
	for (int i = 0; i < MANY_CHANNELS; i++) {
		OK(rl_create_comp_channel(ctx, &ch[i]));
		sets[i] = epoll_create1(0);
		OK(epoll_ctl(sets[i], EPOLL_CTL_ADD, ch[i]->fd, &in));
		OK(epoll_ctl(all, EPOLL_CTL_ADD, sets[i], &in));
	}
	for (int i = 0; i < MANY_CHANNELS; i++) {
		close(sets[i]);
		OK(rl_destroy_comp_channel(ch[i]));
	}
	close(all);
	OK(rl_create_comp_channel(ctx, &ch[0])); /* there is room to watch the end of it */
	OK(shutdown(line, SHUT_RDWR));
	CHECK(readable(ch[0]->fd, PATIENCE_MS));
	OK(rl_close(ctx));
}

int
main(int argc, char **argv)
{
	CHECK(argc >= 2);
	of_a_dataplane_that_is_gone(argv[1], false);
	of_a_dataplane_that_is_gone(argv[1], true);
	channels_of_a_dataplane_that_is_gone(argv[1], 0);
	channels_of_a_dataplane_that_is_gone(argv[1], O_NONBLOCK);
	many_channels_in_sets(argv[1]);
	return 0;
}
