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

#define STRANGERS 64u

struct away {
	struct broker_job job; /* the closer's, then the control lcore's */
	struct broker *b;
	int fd; /* -1: closed */
	size_t len;
	char text[];
};

uint32_t
broker_left(const struct broker *b)
{
	return b->left;
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
	int waits = 0;

	(void)!send(a->fd, a->text, a->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* Nothing can come any more, and descriptors come with bytes. */
	shutdown(a->fd, SHUT_RDWR);
	if (ioctl(a->fd, FIONREAD, &waits) == 0 && waits == 0) {
		close(a->fd);
		a->fd = -1;
	}
	broker_jobs_put(&a->b->away, &a->job);
	broker_wake(a->b);
}

void
broker_turn_away(struct broker *b, int fd, const char *text, size_t len)
{
	struct away *a = malloc(sizeof(*a) + len);

	if (a == NULL) {
		b->left++;
		return;
	}
	*a = (struct away){ .job.run = run, .b = b, .fd = fd, .len = len };
	if (len != 0)
		memcpy(a->text, text, len);
	b->leaving++;
	broker_let_help(&b->closer, &a->job);
}

/* Better a descriptor less than a close() that waits. Some may wait for ever (FUSE). */
static void
close_elsewhere(struct broker *b, int fd)
{
	struct broker_conn *c = b->strangers < STRANGERS ? broker_conn_new(b, fd) : NULL;

	if (c == NULL) {
		b->left++;
		return;
	}
	b->strangers++;
	broker_conn_put(c);
	broker_conn_begin(c);
}

void
broker_away_poll(struct broker *b)
{
	struct broker_job *job, *next;

	if (b->leaving == 0)
		return;
	for (job = broker_jobs_take(&b->away); job != NULL; job = next) {
		const int fd = ((struct away *)(void *)job)->fd;

		next = job->next;
		free(job);
		b->leaving--;
		if (fd >= 0)
			close_elsewhere(b, fd);
	}
}
