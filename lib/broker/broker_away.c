/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets that nobody serves. A thread says why, shuts down and closes: each looks at every watch
 * that the peer has hung on its end. What has descriptors in it gets a thread of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker_conn.h"
#include "compiler.h"
#include "invariant.h"

#define STRANGERS 64u
#define AGAIN_MS  20u /* those that are left are tried again so often */
#define AGAIN     16u /* ... so many of them */

struct away {
	struct broker_job job; /* the closer's, then the control lcore's */
	struct broker *b;
	int fd;    /* -1: closed */
	bool told; /* it was shut down before */
	size_t len;
	char text[];
};

uint32_t
broker_left(const struct broker *b)
{
	return b->left_n;
}

uint32_t
broker_leaving(const struct broker *b)
{
	return b->leaving;
}

static void
run(struct broker_job *job)
{
	struct away *a = (struct away *)(void *)job;
	struct broker *b = a->b;
	int waits = 0;

	if (!a->told) {
		(void)!send(a->fd, a->text, a->len, MSG_DONTWAIT | MSG_NOSIGNAL);
		/* Nothing can come any more, and descriptors come with bytes. */
		shutdown(a->fd, SHUT_RDWR);
	}
	if (ioctl(a->fd, FIONREAD, &waits) == 0 && waits == 0) {
		close(a->fd);
		a->fd = -1;
	}
	broker_jobs_put(&b->away, &a->job); /* from here on it may be gone */
	broker_wake(b);
}

static void
leave(struct broker *b, int fd, bool told)
{
	ASSERT(b->left_n < ARRAY_LEN(b->left));
	b->left[b->left_n++] = (struct broker_stray){ fd, told };
}

static void
see_off(struct broker *b, int fd, bool told, const char *text, size_t len)
{
	struct away *a = malloc(sizeof(*a) + len);

	if (a == NULL) {
		leave(b, fd, told);
		return;
	}
	*a = (struct away){ .job.run = run, .b = b, .fd = fd, .told = told, .len = len };
	if (len != 0)
		memcpy(a->text, text, len);
	b->leaving++;
	broker_let_help(&b->closer, &a->job);
}

void
broker_turn_away(struct broker *b, int fd, const char *text, size_t len)
{
	see_off(b, fd, false, text, len);
}

/* Those that are left take turns. */
static void
try_again(struct broker *b, uint64_t now_ms)
{
	struct broker_stray some[AGAIN];
	uint32_t n = b->left_n < AGAIN ? b->left_n : AGAIN;

	if (now_ms - b->tried_ms < AGAIN_MS)
		return;
	b->tried_ms = now_ms;
	memcpy(some, b->left, n * sizeof(some[0]));
	b->left_n -= n;
	memmove(b->left, b->left + n, b->left_n * sizeof(b->left[0]));
	for (uint32_t i = 0; i < n; i++)
		see_off(b, some[i].fd, some[i].told, NULL, 0);
}

/* Better a descriptor less than a close() that waits. Some may wait for ever (FUSE). */
static void
close_elsewhere(struct broker *b, int fd)
{
	struct broker_conn *c = b->strangers < STRANGERS ? broker_conn_new(b, fd) : NULL;

	if (c == NULL) {
		leave(b, fd, true);
		return;
	}
	b->strangers++;
	broker_conn_put(c);
	broker_conn_begin(c);
}

void
broker_away_poll(struct broker *b, uint64_t now_ms)
{
	struct broker_job *job = b->leaving != 0 ? broker_jobs_take(&b->away) : NULL, *next;

	for (; job != NULL; job = next) {
		const int fd = ((struct away *)(void *)job)->fd;

		next = job->next;
		free(job);
		b->leaving--;
		if (fd >= 0)
			close_elsewhere(b, fd);
	}
	if (b->left_n != 0 && b->leaving < BROKER_LEAVING_MAX)
		try_again(b, now_ms);
}
