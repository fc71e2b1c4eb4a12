/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One CPU for all: a worker that sleeps is woken by the doorbell, and a client that waits leaves
 * its CPU to the worker that is there. What the dataplane says is compared, and is never an index.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client_priv.h"
#include "crowd.h"

#define CPUS_ENOUGH 3        /* for a worker and both ends, each of which may spin */
#define VAIN_LOOK   16       /* polls in a row for a look whether somebody else wants the CPU */
#define AGAIN_NS    50000000 /* a worker that is late is waited for in steps of this */

/* Nobody can make the file shorter while we read it: that would be a SIGBUS. */
static bool
is_whole(int fd, size_t len)
{
	struct stat st;

	return (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) != 0 && fstat(fd, &st) == 0 &&
	       st.st_size >= 0 && (uint64_t)st.st_size >= len;
}

/* Workers hear of us with this request. While one of them is late, it is refused with ETIMEDOUT. */
static int
ask(struct context *ctx, json_t **result)
{
	const struct timespec moment = { 0, AGAIN_NS };
	const int64_t end = jsonrpc_end(PATIENCE_MS);
	int rc;

	while ((rc = client_call(ctx, "client_presence", NULL, -1, result)) == -ETIMEDOUT &&
		!ctx->broken && jsonrpc_now_ms() < end)
		nanosleep(&moment, NULL);
	return rc;
}

/* CPUs that we may use, and those of workers that have others. */
static bool
are_few(const struct ring_presence *p)
{
	cpu_set_t cpus;
	int n;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return false;
	n = CPU_COUNT(&cpus);
	for (uint32_t i = 0; i < RING_PRESENCE_CPUS && n < CPUS_ENOUGH; i++)
		n += ring_presence_is_on(p, i) && !CPU_ISSET(i, &cpus);
	return n < CPUS_ENOUGH;
}

int
client_presence_open(struct context *ctx)
{
	const size_t len = ring_presence_size(ctx->workers);
	void *at = MAP_FAILED;
	json_t *result;
	int fd, rc = ask(ctx, &result);

	if (rc != 0) /* without it, unless nothing can be asked */
		return rc == -ETIMEDOUT || ctx->broken ? rc : 0;
	fd = client_take_fd(ctx);
	if (fd >= 0 && is_whole(fd, len) &&
		(size_t)json_integer_value(json_object_get(result, "bytes")) >= len)
		at = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at != MAP_FAILED) {
		ctx->few_cpus = are_few(at);
		ctx->presence = at;
		ctx->presence_len = len;
	}
	ctx->wake_fd = client_take_fd(ctx);
	json_decref(result);
	return 0;
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
	CANCEL_HELD;

	/* A counter that is full has woken it. */
	(void)!write(ctx->wake_fd, &one, sizeof(one));
}

static ns_t
ns_of(const struct timespec *t)
{
	return (ns_t)t->tv_sec * TIME_NS_PER_S + (ns_t)t->tv_nsec;
}

static ns_t
ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ns_of(&t);
}

/* What the kernel does not tell is not known, as after a sleep. */
static void
ask_kernel(struct crowd *crowd, ns_t now)
{
	struct timespec ran = { 0 };
	struct rusage used = { 0 };

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran) != 0 ||
		getrusage(RUSAGE_THREAD, &used) != 0)
		crowd_slept(crowd);
	crowd_ran(crowd, now, ns_of(&ran), (uint64_t)used.ru_nvcsw);
}

/* Nobody says where the peer is, which may spin as we do. */
static void
look_for_others(_Atomic uint32_t *looked, uint32_t vain)
{
	static _Thread_local struct crowd crowd;
	ns_t before;

	if (crowd.turns == 0 && vain % VAIN_LOOK != 0)
		return;
	before = ns_now();
	if (crowd_asks(&crowd, before))
		ask_kernel(&crowd, before);
	if (!crowd_may_yield(&crowd, looked, before, vain))
		return;
	sched_yield();
	crowd_yielded(&crowd, looked, before, ns_now());
}

void
client_give_way(const struct context *ctx, _Atomic uint32_t *looked, uint32_t vain)
{
	if (ctx->presence == NULL)
		return;
	if (UNLIKELY(ring_presence_is_on(ctx->presence, (uint32_t)sched_getcpu())))
		sched_yield();
	else if (UNLIKELY(ctx->few_cpus))
		look_for_others(looked, vain);
}
