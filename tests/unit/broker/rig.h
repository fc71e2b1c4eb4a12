/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BROKER_RIG_H
#define BROKER_RIG_H
/**
 * @file rig.h  One connection, whose other end is the test's.
 *
 * Owner:   unit tests.
 * Memory:  setup() to teardown().
 * Depends: broker, cmocka.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker.h"
#include "compiler.h"

#define PATIENCE_MS 20000
#define PAGE        4096

static struct broker *b;
static struct broker_conn *c;
static int mine; /* our end of the connection */
static int tag;
static unsigned int ended;
static struct broker_terms terms;

static void
prepare(const void *ctx, struct broker_conn *conn, struct broker_gift *gift, const json_t *params)
{
	(void)params;
	gift->rc = broker_memory_get(conn, ctx, gift);
}

static void
prepare_lay(
	const void *ctx, struct broker_conn *conn, struct broker_gift *gift, const json_t *params)
{
	(void)params;
	gift->rc = broker_memory_lay(conn, ctx);
}

static void
prepare_laid(
	const void *ctx, struct broker_conn *conn, struct broker_gift *gift, const json_t *params)
{
	(void)params;
	gift->rc = broker_memory_laid(conn, ctx, gift);
}

/* For whom requests are that say "slow", or "once". */
enum { RIG_MAY = 2, RIG_MAY_NOT = 1 };

static const struct broker_slow *
find(const void *ctx, const json_t *request)
{
	static const struct broker_slow slow = { prepare, RIG_MAY, false };
	static const struct broker_slow once = { prepare, RIG_MAY, true };
	static const struct broker_slow lay = { prepare_lay, RIG_MAY, false };
	static const struct broker_slow laid = { prepare_laid, RIG_MAY, false };

	(void)ctx;
	return json_object_get(request, "slow") != NULL   ? &slow
	       : json_object_get(request, "once") != NULL ? &once
	       : json_object_get(request, "lay") != NULL  ? &lay
	       : json_object_get(request, "laid") != NULL ? &laid
							  : NULL;
}

static void
on_end(void *ctx, void *what)
{
	assert_ptr_equal(ctx, &tag);
	assert_ptr_equal(what, &tag);
	ended++;
}

static UNUSED int
setup(void **state UNUSED)
{
	const struct broker_hooks hooks = {
		.find = find, .ctx = &terms, .ended = on_end, .ended_ctx = &tag
	};
	const struct broker_limits limits = { 4096, 100, RIG_MAY };
	int pair[2];

	terms = (struct broker_terms){ .length = 1, .most = 1 << 20 };
	ended = 0;
	b = broker_new(&hooks);
	assert_non_null(b);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	mine = pair[0];
	c = broker_conn_start(b, pair[1], &limits, &tag);
	assert_non_null(c);
	return 0;
}

static UNUSED int
teardown(void **state UNUSED)
{
	if (c != NULL)
		broker_conn_put(c);
	broker_free(b);
	assert_int_equal(ended, 1);
	close(mine);
	return 0;
}

/* The next request. The test fails when none comes. */
static UNUSED struct broker_request *
next(void)
{
	struct pollfd p = { .fd = broker_fd(b), .events = POLLIN };
	struct broker_request *q;

	while ((q = broker_conn_take(c)) == NULL) {
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		broker_clear(b);
	}
	return q;
}

static UNUSED void
say(const char *text)
{
	assert_int_equal(send(mine, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void
pass_all(const char *text, const int *fds, size_t n)
{
	union {
		uint8_t bytes[CMSG_SPACE(BROKER_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(h), fds, n * sizeof(int));
	assert_int_equal(sendmsg(mine, &msg, MSG_NOSIGNAL), strlen(text));
}

static UNUSED void
pass(const char *text, int fd)
{
	pass_all(text, &fd, 1);
}

static UNUSED int
memfd_of(size_t bytes)
{
	const int fd = memfd_create("test", MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fallocate(fd, 0, 0, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static UNUSED void
wait_for_mapped(uint64_t bytes)
{
	for (int i = 0; i < PATIENCE_MS && broker_conn_mapped(c) != bytes; i++)
		usleep(1000);
	assert_int_equal(broker_conn_mapped(c), bytes);
}

/* Of what came last. @return the memory, which is ours; NULL: refused with rc. */
static UNUSED struct broker_memory *
take(int rc)
{
	struct broker_request *q = next();
	struct broker_gift *g = broker_gift_of(q, q->json);
	struct broker_memory *m;

	assert_non_null(g);
	assert_int_equal(g->rc, rc);
	m = g->memory;
	g->memory = NULL;
	broker_conn_done(q);
	return m;
}

#endif
