/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's thread: what it waits for, and its end. */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "broker_conn.h"
#include "broker_wait.h"
#include "broker_out.h"

#define SCRAP_ROOM 4096u

void
broker_jobs_run(struct broker_jobs *jobs)
{
	struct broker_job *job = broker_jobs_take(jobs), *next;

	for (; job != NULL; job = next) {
		next = job->next;
		job->run(job);
	}
}

void
broker_clear_fd(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
}

static int
patience(const struct broker_conn *c, bool blocked)
{
	int64_t left;

	if (blocked || c->eof || c->half_ms == 0 || c->late)
		return -1;
	left = c->half_ms - broker_now_ms();
	return left > 0 ? (int)left : 0;
}

/* Until the peer sends or takes something, or the control lcore wants something. */
static void
wait_for(struct broker_conn *c, bool blocked)
{
	const bool reads = !blocked && !c->eof, writes = !STAILQ_EMPTY(&c->out);
	struct pollfd p[2] = { { .fd = c->wake, .events = POLLIN },
		{ .fd = reads || writes ? c->fd : -1,
			.events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)) } };
	int n;

	atomic_store_explicit(&c->waits, blocked, memory_order_seq_cst);
	if (blocked && broker_may_go(c))
		return;
	n = broker_wait(p, 2, patience(c, blocked));
	if (n == 0)
		c->late = true;
	if (blocked)
		broker_half_again(c);
	if (n <= 0)
		return;
	if (p[0].revents != 0)
		broker_clear_fd(c->wake);
	if (writes && p[1].revents != 0)
		broker_out_flush(c);
	if (reads && (p[1].revents & ~POLLOUT) != 0)
		broker_receive(c);
}

static bool
is_set(const _Atomic bool *flag)
{
	return atomic_load_explicit(flag, memory_order_acquire);
}

/* The socket, with all that waits in it: as long as it takes, but for a signal. */
static void
hang_up(struct broker_conn *c)
{
	char scrap[SCRAP_ROOM];

	broker_out_end(c);
	shutdown(c->fd, SHUT_RDWR);
	broker_fds_end(c);
	/* The peer loses what was said to it last if something of its own was not read. After
	 * shutdown() there is no more than fits the socket. Without room for them, the kernel
	 * closes descriptors here. */
	while (recv(c->fd, scrap, sizeof(scrap), MSG_DONTWAIT) > 0)
		;
	close(c->fd);
	atomic_store_explicit(&c->closed, true, memory_order_release);
}

static void
give_back(struct broker_conn *c)
{
	struct broker_request *q;

	while ((q = broker_queue_take(&c->queue)) != NULL)
		broker_request_free(q);
	if (c->pending != NULL)
		broker_request_free(c->pending);
	c->pending = NULL;
	broker_jobs_run(&c->jobs);
	broker_memories_end(c);
	broker_waker_end(c);
	free(c->in);
}

void *
broker_conn_main(void *arg)
{
	struct broker_conn *c = arg;
	struct broker *b = c->b;
	sigset_t all;

	/* The program's signals are not for us; one of them takes us out of a close(). */
	sigfillset(&all);
	sigdelset(&all, SIGURG);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!is_set(&c->stop)) {
		wait_for(c, !broker_advance(c));
		if (atomic_exchange_explicit(&c->drain, false, memory_order_acquire))
			shutdown(c->fd, SHUT_RD);
		broker_jobs_run(&c->jobs);
	}
	broker_jobs_run(&c->jobs); /* what was said last */
	hang_up(c);
	while (!is_set(&c->finish)) {
		struct pollfd p = { .fd = c->wake, .events = POLLIN };

		broker_wait(&p, 1, -1);
		broker_clear_fd(c->wake);
		broker_jobs_run(&c->jobs);
	}
	give_back(c);
	atomic_store_explicit(&c->ended, true, memory_order_release);
	broker_wake(b);
	return NULL;
}
