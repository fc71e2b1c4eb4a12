/* SPDX-License-Identifier: BSD-3-Clause */
/* The control lcore's side: threads are started, asked, ended. */
#include "broker.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "broker_conn.h"
#include "broker_wait.h"
#include "broker_out.h"
#include "invariant.h"
#include "log.h"

/* jansson's parser goes 2,048 levels deep; pages that are not touched cost nothing. */
#define STACK_BYTES ((size_t)1 << 20)
/* A request up to here may wait until the thread has more to do. */
#define SMALL_LINE 4096u
/* How often a thread that has to end is taken out of what it waits in. */
#define NUDGE_MS    20u
#define REAP_TURN   16u /* connections whose thread has ended */
#define PATIENCE_MS 2000u

void
broker_wake_fd(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one)); /* EAGAIN: it is awake */
}

void
broker_wake(struct broker *b)
{
	broker_wake_fd(b->fd);
}

const struct broker_hooks *
broker_hooks_of(const struct broker *b)
{
	return &b->hooks;
}

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int
start_thread(struct broker_conn *c)
{
	const struct broker_hooks *hooks = &c->b->hooks;
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return rc;
	if (STACK_BYTES > (size_t)PTHREAD_STACK_MIN)
		pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (hooks->pinned)
		pthread_attr_setaffinity_np(&attr, sizeof(hooks->cpus), &hooks->cpus);
	rc = pthread_create(&c->thread, &attr, broker_conn_main, c);
	pthread_attr_destroy(&attr);
	return rc;
}

/* In the helper. Without memory or a number for it, again later. */
static void
start(struct broker_conn *c)
{
	struct broker_helper *h = &c->b->helper;
	const int rc = start_thread(c);

	if (rc == 0) {
		atomic_store_explicit(&c->started, true, memory_order_release);
		return;
	}
	log_rated(&h->no_thread, now_ms() * TIME_NS_PER_MS, LOG_WARN,
		"control socket: no thread for a connection, which waits for one: %s (ulimit -u, "
		"TasksMax)",
		strerror(rc));
	TAILQ_INSERT_TAIL(&h->parked, c, parked);
}

static void
run_start(struct broker_job *job)
{
	start((struct broker_conn *)(void *)job);
}

/* In the helper: nothing is left for the thread to do but to return. */
static void
run_join(struct broker_job *job)
{
	struct broker_conn *c = (struct broker_conn *)(void *)job;

	pthread_join(c->thread, NULL);
	close(c->wake);
	broker_out_free(c);
	free(c);
}

void
broker_let_help(struct broker_helper *h, struct broker_job *job)
{
	broker_jobs_put(&h->jobs, job);
	broker_wake_fd(h->wake);
}

static void
let_help(struct broker_conn *c, void (*run)(struct broker_job *job))
{
	c->job.run = run;
	broker_let_help(&c->b->helper, &c->job);
}

static void *
helper_main(void *arg)
{
	struct broker_helper *h = arg;
	struct pollfd p = { .fd = h->wake, .events = POLLIN };
	sigset_t all;

	/* The program's signals are not for us, but those by which it asks each of its threads. */
	sigfillset(&all);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		sigdelset(&all, s);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!atomic_load_explicit(&h->stop, memory_order_acquire)) {
		struct broker_conn *c = TAILQ_FIRST(&h->parked);

		broker_wait(&p, 1, c != NULL ? (int)NUDGE_MS : -1);
		broker_clear_fd(h->wake);
		if (c != NULL) {
			TAILQ_REMOVE(&h->parked, c, parked);
			start(c);
		}
		broker_jobs_run(&h->jobs);
	}
	broker_jobs_run(&h->jobs);
	return NULL;
}

static int
helper_start(struct broker *b, struct broker_helper *h)
{
	pthread_attr_t attr;
	int rc;

	TAILQ_INIT(&h->parked);
	h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->wake < 0)
		return -errno;
	rc = pthread_attr_init(&attr);
	if (rc == 0) {
		if (b->hooks.pinned)
			pthread_attr_setaffinity_np(&attr, sizeof(b->hooks.cpus), &b->hooks.cpus);
		rc = pthread_create(&h->thread, &attr, helper_main, h);
		pthread_attr_destroy(&attr);
	}
	if (rc != 0)
		close(h->wake);
	return -rc;
}

static void
helper_stop(struct broker_helper *h)
{
	atomic_store_explicit(&h->stop, true, memory_order_release);
	broker_wake_fd(h->wake);
	pthread_join(h->thread, NULL);
	close(h->wake);
}

struct broker *
broker_new(const struct broker_hooks *hooks)
{
	struct broker *b =
		aligned_alloc(CACHE_LINE, (sizeof(*b) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	int rc;

	if (b == NULL)
		return NULL;
	memset(b, 0, sizeof(*b));
	b->hooks = *hooks;
	LIST_INIT(&b->all);
	b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = b->fd < 0 ? -errno : helper_start(b, &b->helper);
	if (rc == 0) {
		rc = helper_start(b, &b->closer);
		if (rc == 0)
			return b;
		helper_stop(&b->helper);
	}
	if (b->fd >= 0)
		close(b->fd);
	free(b);
	errno = -rc;
	return NULL;
}

int
broker_fd(const struct broker *b)
{
	return b->fd;
}

uint32_t
broker_ending(const struct broker *b)
{
	return b->ending;
}

/* ---- a connection ---------------------------------------------------------------------------- */

/* Who connected. Each message is to say who sent it: a socket can be inherited or passed. */
static pid_t
peer_of(int fd)
{
	const int on = 1;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
		setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
		return 0;
	return peer.pid;
}

struct broker_conn *
broker_conn_new(struct broker *b, int fd)
{
	struct broker_conn *c =
		aligned_alloc(CACHE_LINE, (sizeof(*c) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	if (c == NULL)
		return NULL;
	*c = (struct broker_conn){ .b = b, .refs = 1, .fd = fd, .pid = peer_of(fd) };
	TAILQ_INIT(&c->memories);
	STAILQ_INIT(&c->out);
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->wake >= 0)
		return c;
	free(c);
	return NULL;
}

void
broker_conn_begin(struct broker_conn *c)
{
	LIST_INSERT_HEAD(&c->b->all, c, all);
	let_help(c, run_start);
}

struct broker_conn *
broker_conn_start(struct broker *b, int fd, const struct broker_limits *limits, void *tag)
{
	struct broker_conn *c = broker_conn_new(b, fd);

	if (c == NULL)
		return NULL;
	broker_conn_limit(c, limits);
	c->tag = tag;
	broker_conn_begin(c);
	return c;
}

void
broker_conn_limit(struct broker_conn *c, const struct broker_limits *limits)
{
	atomic_store_explicit(&c->line_max, limits->line, memory_order_relaxed);
	atomic_store_explicit(&c->values_max, limits->values, memory_order_relaxed);
	atomic_store_explicit(&c->may, limits->may, memory_order_relaxed);
}

bool
broker_conn_has(const struct broker_conn *c)
{
	return broker_queue_has(&c->queue);
}

struct broker_request *
broker_conn_take(struct broker_conn *c)
{
	return broker_queue_take(&c->queue);
}

struct broker_gift *
broker_gift_of(const struct broker_request *q, const json_t *one)
{
	struct broker_gift *g = q->gifts;

	while (g != NULL && g->of != one)
		g = g->next;
	return g;
}

static void
run_free(struct broker_job *job)
{
	broker_request_free((struct broker_request *)(void *)job);
}

void
broker_conn_done(struct broker_request *q)
{
	struct broker_conn *c = q->conn;
	const size_t len = q->len;

	/* Always in the thread, whose memory it is: malloc() has a lock for each. */
	q->job.run = run_free;
	if (q->gifts == NULL && len <= SMALL_LINE)
		broker_jobs_put(&c->jobs, &q->job); /* when it wakes up */
	else
		broker_conn_run(c, &q->job);
	atomic_fetch_add_explicit(&c->bytes_done, len, memory_order_relaxed);
	broker_queue_done(&c->queue);
	if (atomic_exchange_explicit(&c->waits, false, memory_order_seq_cst))
		broker_wake_fd(c->wake);
}

void
broker_conn_run(struct broker_conn *c, struct broker_job *job)
{
	broker_jobs_put(&c->jobs, job);
	broker_wake_fd(c->wake);
}

void
broker_conn_drain(struct broker_conn *c)
{
	atomic_store_explicit(&c->drain, true, memory_order_release);
	broker_wake_fd(c->wake);
}

void
broker_conn_end(struct broker_conn *c)
{
	if (atomic_load_explicit(&c->stop, memory_order_relaxed))
		return;
	c->b->stopped++;
	atomic_store_explicit(&c->stop, true, memory_order_release);
	broker_wake_fd(c->wake);
}

struct broker_conn *
broker_conn_hold(struct broker_conn *c)
{
	c->refs++;
	return c;
}

void
broker_conn_put(struct broker_conn *c)
{
	ASSERT(c->refs != 0);
	if (--c->refs != 0)
		return;
	broker_conn_end(c);
	c->counted = true;
	c->b->ending++;
	atomic_store_explicit(&c->finish, true, memory_order_release);
	broker_wake_fd(c->wake);
}

uint64_t
broker_conn_mapped(const struct broker_conn *c)
{
	return atomic_load_explicit(&c->mapped, memory_order_relaxed);
}

void
broker_conn_count(struct broker_conn *c, uint64_t bytes)
{
	atomic_store_explicit(&c->counted_bytes, bytes, memory_order_relaxed);
}

/* ---- turns, the end -------------------------------------------------------------------------- */

static void
reap(struct broker_conn *c)
{
	if (c->tag != NULL)
		c->b->hooks.ended(c->b->hooks.ended_ctx, c->tag);
	LIST_REMOVE(c, all);
	c->b->stopped--;
	c->b->ending--;
	c->b->strangers -= c->tag == NULL;
	let_help(c, run_join);
}

void
broker_clear(struct broker *b)
{
	broker_clear_fd(b->fd);
}

void
broker_poll(struct broker *b, uint64_t now_ms)
{
	const bool nudge = b->stopped != 0 && now_ms - b->nudged_ms >= NUDGE_MS;
	struct broker_conn *c, *next;
	uint32_t reaped = 0;
	bool over;

	broker_away_poll(b, now_ms);
	if (b->stopped == 0)
		return;
	if (nudge)
		b->nudged_ms = now_ms;
	for (c = LIST_FIRST(&b->all); c != NULL; c = next) {
		next = LIST_NEXT(c, all);
		if (!atomic_load_explicit(&c->started, memory_order_acquire))
			continue;
		over = c->counted && atomic_load_explicit(&c->ended, memory_order_acquire);
		/* A close() that lingers ends with a signal; its handler does nothing. */
		if (over && reaped++ < REAP_TURN)
			reap(c);
		else if (!over && nudge && atomic_load_explicit(&c->stop, memory_order_relaxed) &&
			 (c->counted || !atomic_load_explicit(&c->closed, memory_order_relaxed)))
			pthread_kill(c->thread, SIGURG);
	}
}

void
broker_free(struct broker *b)
{
	const struct timespec moment = { 0, 1000000 };
	static struct broker *left; /* what a thread in the kernel may come back to */
	uint64_t end;

	if (b == NULL)
		return;
	end = now_ms() + PATIENCE_MS;
	b->nudged_ms = 0;
	for (;;) {
		broker_poll(b, now_ms());
		if ((b->stopped == 0 && b->leaving == 0) || now_ms() >= end)
			break;
		nanosleep(&moment, NULL);
	}
	if (b->stopped != 0) {
		log_warn(
			"%u connections are left to the kernel: it gives no thread for them, or does "
			"not give back a descriptor that was sent",
			b->stopped);
		left = b;
		(void)left;
		return;
	}
	helper_stop(&b->closer);
	broker_away_poll(b, b->tried_ms);
	helper_stop(&b->helper);
	close(b->fd);
	free(b);
}
