/* SPDX-License-Identifier: BSD-3-Clause */
/* The control lcore's side: threads are started, asked, ended. */
#include "broker.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "broker_conn.h"
#include "invariant.h"
#include "log.h"

/* jansson's parser goes 2,048 levels deep; pages that are not touched cost nothing. */
#define STACK_BYTES ((size_t)1 << 20)
/* A request up to here is freed by whoever is done with it. */
#define SMALL_LINE 4096u
/* How often a thread that has to end is taken out of what it waits in. */
#define NUDGE_MS 20u
#define PATIENCE_MS 2000u

struct broker {
	struct broker_hooks hooks;
	int fd;
	LIST_HEAD(, broker_conn) all;
	uint32_t stopped; /* told to close, and not ended */
	uint32_t ending;
	uint64_t nudged_ms;
};

static void
wake(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one)); /* EAGAIN: it is awake */
}

void
broker_wake(struct broker *b)
{
	wake(b->fd);
}

const struct broker_hooks *
broker_hooks_of(const struct broker *b)
{
	return &b->hooks;
}

struct broker *
broker_new(const struct broker_hooks *hooks)
{
	struct broker *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->hooks = *hooks;
	LIST_INIT(&b->all);
	b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->fd < 0) {
		free(b);
		return NULL;
	}
	return b;
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

static struct broker_conn *
conn_new(struct broker *b, int fd)
{
	struct broker_conn *c = aligned_alloc(
		CACHE_LINE, (sizeof(*c) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	if (c == NULL)
		return NULL;
	*c = (struct broker_conn){ .b = b, .refs = 1, .fd = fd };
	TAILQ_INIT(&c->memories);
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->wake >= 0)
		return c;
	free(c);
	return NULL;
}

struct broker_conn *
broker_conn_start(struct broker *b, int fd, const struct broker_limits *limits, void *tag)
{
	struct broker_conn *c = conn_new(b, fd);

	if (c == NULL)
		return NULL;
	broker_conn_limit(c, limits);
	if (start_thread(c) != 0) {
		close(c->wake);
		free(c);
		return NULL;
	}
	c->tag = tag;
	LIST_INSERT_HEAD(&b->all, c, all);
	return c;
}

void
broker_turn_away(struct broker *b, int fd)
{
	struct broker_conn *c;
	int waits = 0;

	/* Nothing can come any more, and descriptors come with bytes. */
	shutdown(fd, SHUT_RDWR);
	if (ioctl(fd, FIONREAD, &waits) == 0 && waits == 0) {
		close(fd);
		return;
	}
	c = conn_new(b, fd);
	if (c == NULL)
		return; /* without memory: better a descriptor less than a close() that waits */
	LIST_INSERT_HEAD(&b->all, c, all);
	broker_conn_put(c);
	c->parked = start_thread(c) != 0;
}

void
broker_conn_limit(struct broker_conn *c, const struct broker_limits *limits)
{
	atomic_store_explicit(&c->line_max, limits->line, memory_order_relaxed);
	atomic_store_explicit(&c->values_max, limits->values, memory_order_relaxed);
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

	if (q->gifts == NULL && len <= SMALL_LINE) {
		broker_request_free(q);
	} else {
		q->job.run = run_free;
		broker_conn_run(c, &q->job);
	}
	atomic_fetch_add_explicit(&c->bytes_done, len, memory_order_relaxed);
	broker_queue_done(&c->queue);
	if (atomic_exchange_explicit(&c->waits, false, memory_order_seq_cst))
		wake(c->wake);
}

void
broker_conn_run(struct broker_conn *c, struct broker_job *job)
{
	broker_jobs_put(&c->jobs, job);
	wake(c->wake);
}

void
broker_conn_drain(struct broker_conn *c)
{
	shutdown(c->fd, SHUT_RD);
}

void
broker_conn_end(struct broker_conn *c)
{
	if (atomic_load_explicit(&c->stop, memory_order_relaxed))
		return;
	c->b->stopped++;
	shutdown(c->fd, SHUT_RDWR);
	atomic_store_explicit(&c->stop, true, memory_order_release);
	wake(c->wake);
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
	wake(c->wake);
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
	pthread_join(c->thread, NULL); /* nothing is left for it to do but to return */
	if (c->tag != NULL)
		c->b->hooks.ended(c->b->hooks.ended_ctx, c->tag);
	LIST_REMOVE(c, all);
	c->b->stopped--;
	c->b->ending--;
	close(c->wake);
	free(c);
}

void
broker_clear(struct broker *b)
{
	uint64_t n;

	(void)!read(b->fd, &n, sizeof(n));
}

void
broker_poll(struct broker *b, uint64_t now_ms)
{
	const bool nudge = b->stopped != 0 && now_ms - b->nudged_ms >= NUDGE_MS;
	struct broker_conn *c, *next;

	if (b->stopped == 0)
		return;
	if (nudge)
		b->nudged_ms = now_ms;
	for (c = LIST_FIRST(&b->all); c != NULL; c = next) {
		next = LIST_NEXT(c, all);
		if (c->parked)
			c->parked = !nudge || start_thread(c) != 0;
		else if (c->counted && atomic_load_explicit(&c->ended, memory_order_acquire))
			reap(c);
		/* A close() that lingers ends with a signal; its handler does nothing. */
		else if (nudge && atomic_load_explicit(&c->stop, memory_order_relaxed) &&
			 (c->counted || !atomic_load_explicit(&c->closed, memory_order_relaxed)))
			pthread_kill(c->thread, SIGURG);
	}
}

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
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
		if (b->stopped == 0 || now_ms() >= end)
			break;
		nanosleep(&moment, NULL);
	}
	if (b->stopped != 0) {
		log_warn("%u connections are left to the kernel: it does not give back a descriptor "
			 "that their client sent",
			b->stopped);
		left = b;
		(void)left;
		return;
	}
	close(b->fd);
	free(b);
}
