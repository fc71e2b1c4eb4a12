/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One CPU for all: a worker that sleeps is woken by the doorbell, and a client that waits leaves
 * its CPU to the worker that is there. What the dataplane says is compared, and is never an index.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client_priv.h"

/* Nobody can make the file shorter while we read it: that would be a SIGBUS. */
static bool
is_whole(int fd, size_t len)
{
	struct stat st;

	return (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) != 0 && fstat(fd, &st) == 0 &&
	       st.st_size >= 0 && (uint64_t)st.st_size >= len;
}

void
client_presence_open(struct context *ctx)
{
	const size_t len = ring_presence_size(ctx->workers);
	void *at = MAP_FAILED;
	json_t *result;
	int fd;

	if (client_call(ctx, "client_presence", NULL, -1, &result) != 0)
		return;
	fd = client_take_fd(ctx);
	if (fd >= 0 && is_whole(fd, len) &&
		(size_t)json_integer_value(json_object_get(result, "bytes")) >= len)
		at = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at != MAP_FAILED) {
		ctx->presence = at;
		ctx->presence_len = len;
	}
	ctx->wake_fd = client_take_fd(ctx);
	json_decref(result);
}

void
client_presence_close(struct context *ctx)
{
	if (ctx->presence != NULL)
		munmap((void *)(uintptr_t)ctx->presence, ctx->presence_len);
	if (ctx->wake_fd >= 0)
		close(ctx->wake_fd);
	ctx->presence = NULL;
	ctx->wake_fd = -1;
}

void
client_wake(struct context *ctx)
{
	const uint64_t one = 1;

	/* A counter that is full has woken it. */
	(void)!write(ctx->wake_fd, &one, sizeof(one));
}

void
client_give_way(const struct context *ctx)
{
	if (ctx->presence == NULL)
		return;
	if (UNLIKELY(ring_presence_is_on(ctx->presence, (uint32_t)sched_getcpu())))
		sched_yield();
}
