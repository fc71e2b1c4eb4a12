/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines to the peer: a job each, then in the thread's list until they are written. */
#include "broker_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "broker_conn.h"

struct broker_out {
	struct broker_job job; /* then on its way back, to be freed */
	STAILQ_ENTRY(broker_out) next;
	struct broker_conn *conn;
	int fds[BROKER_OUT_FDS]; /* go with the first byte */
	uint32_t fds_n;
	size_t len; /* 0: nothing more will be said */
	size_t sent;
	char text[];
};

static size_t
size_of(const struct broker_out *o)
{
	return sizeof(*o) + o->len;
}

/* The thread's: done with it, one way or the other. */
static void
put_back(struct broker_conn *c, struct broker_out *o)
{
	for (uint32_t i = 0; i < o->fds_n; i++)
		close(o->fds[i]);
	atomic_fetch_sub_explicit(&c->unsaid, size_of(o), memory_order_relaxed);
	broker_jobs_put(&c->said, &o->job);
}

static ssize_t
write_some(const struct broker_conn *c, struct broker_out *o)
{
	union {
		uint8_t bytes[CMSG_SPACE(BROKER_OUT_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { o->text + o->sent, o->len - o->sent };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (o->sent == 0 && o->fds_n != 0) {
		const size_t bytes = o->fds_n * sizeof(int);
		struct cmsghdr *h;

		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(bytes);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(h), o->fds, bytes);
	}
	return sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* @return false: it has to wait for room. */
static bool
is_over(struct broker_conn *c, struct broker_out *o)
{
	if (o->len == 0)
		shutdown(c->fd, SHUT_WR);
	while (o->sent < o->len && !broker_conn_is_deaf(c)) {
		const ssize_t n = write_some(c, o);

		if (n >= 0)
			o->sent += (size_t)n;
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return false;
		else if (errno != EINTR)
			atomic_store_explicit(&c->deaf, true, memory_order_relaxed);
	}
	return true;
}

void
broker_out_flush(struct broker_conn *c)
{
	struct broker_out *o;

	while ((o = STAILQ_FIRST(&c->out)) != NULL && is_over(c, o)) {
		STAILQ_REMOVE_HEAD(&c->out, next);
		put_back(c, o);
	}
}

void
broker_out_end(struct broker_conn *c)
{
	struct broker_out *o;

	broker_out_flush(c);
	while ((o = STAILQ_FIRST(&c->out)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->out, next);
		put_back(c, o);
	}
}

static void
run(struct broker_job *job)
{
	struct broker_out *o = (struct broker_out *)(void *)job;
	struct broker_conn *c = o->conn;

	if (atomic_load_explicit(&c->closed, memory_order_relaxed)) {
		put_back(c, o);
		return;
	}
	STAILQ_INSERT_TAIL(&c->out, o, next);
	broker_out_flush(c);
}

void
broker_out_free(struct broker_conn *c)
{
	struct broker_job *job = broker_jobs_take(&c->said), *next;

	for (; job != NULL; job = next) {
		next = job->next;
		free(job);
	}
}

/* @return false: no memory. */
static bool
add(struct broker_conn *c, const char *line, size_t len, const int *fds, uint32_t fds_n)
{
	struct broker_out *o = malloc(sizeof(*o) + len);

	broker_out_free(c);
	if (o == NULL)
		return false;
	*o = (struct broker_out){ .job.run = run, .conn = c, .fds_n = fds_n, .len = len };
	if (len != 0) {
		memcpy(o->text, line, len - 1);
		o->text[len - 1] = '\n';
	}
	if (fds_n != 0)
		memcpy(o->fds, fds, fds_n * sizeof(fds[0]));
	atomic_fetch_add_explicit(&c->unsaid, size_of(o), memory_order_relaxed);
	broker_conn_run(c, &o->job);
	return true;
}

bool
broker_conn_say(struct broker_conn *c, const char *line, size_t len, const int *fds, uint32_t fds_n)
{
	if (add(c, line, len + 1, fds, fds_n))
		return true;
	for (uint32_t i = 0; i < fds_n; i++)
		close(fds[i]);
	return false;
}

void
broker_conn_hush(struct broker_conn *c)
{
	add(c, NULL, 0, NULL, 0);
}

size_t
broker_conn_unsaid(const struct broker_conn *c)
{
	return atomic_load_explicit(&c->unsaid, memory_order_relaxed);
}

bool
broker_conn_is_deaf(const struct broker_conn *c)
{
	return atomic_load_explicit(&c->deaf, memory_order_relaxed);
}
