/* SPDX-License-Identifier: BSD-3-Clause */
/* Events are counted by the control lcore, and told by the thread: all that have come since. */
#include "broker_signal.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "broker_conn.h"
#include "broker_wait.h"
#include "fds.h"

struct broker_signal {
	struct broker_job job; /* on its way while `asked` */
	struct broker_job end;
	struct broker_conn *conn;
	int fd;
	struct broker_waker *waker; /* or NULL */
	_Atomic uint32_t more;
	_Atomic uint32_t less;
	_Atomic bool asked;
};

/* The epoll sets of those who are woken, and the one between. */
struct broker_waker {
	int own;
	uint32_t sets_n; /* that have `own` */
	int sets[];
};

static struct broker_signal *
of_end(struct broker_job *job)
{
	return (struct broker_signal *)(void *)((char *)job - offsetof(struct broker_signal, end));
}

/* One that is full wakes its reader without us. If it fills up just now, the thread waits: a signal
 * ends that when the connection is over. */
static void
tell(int fd, uint64_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (broker_wait(&p, 1, 0) == 1)
		(void)!write(fd, &n, sizeof(n));
}

static void
run(struct broker_job *job)
{
	struct broker_signal *s = (struct broker_signal *)(void *)job;
	uint32_t more, less;

	/* Who counts from here on asks again. */
	atomic_store_explicit(&s->asked, false, memory_order_seq_cst);
	more = atomic_exchange_explicit(&s->more, 0, memory_order_seq_cst);
	less = atomic_exchange_explicit(&s->less, 0, memory_order_seq_cst);
	if (atomic_load_explicit(&s->conn->stop, memory_order_relaxed))
		return;
	if (more > less)
		tell(s->fd, more - less);
	else
		fds_uncount(s->fd, less - more);
}

/* First out of theirs. The client has the same open file: to close ours takes it out of no set. */
static void
waker_end(struct broker_waker *w, int fd)
{
	for (uint32_t i = 0; i < w->sets_n; i++)
		epoll_ctl(w->sets[i], EPOLL_CTL_DEL, w->own, NULL);
	epoll_ctl(w->own, EPOLL_CTL_DEL, fd, NULL);
	close(w->own);
	free(w);
}

static void
signal_end(struct broker_signal *s)
{
	if (s->waker != NULL) {
		waker_end(s->waker, s->fd);
		s->conn->waker = NULL;
	}
	close(s->fd);
	free(s);
}

static void
run_end(struct broker_job *job)
{
	signal_end(of_end(job));
}

struct broker_signal *
broker_signal_new(struct broker_conn *c, int flags)
{
	struct broker_signal *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->job.run = run;
	s->end.run = run_end;
	s->conn = c;
	s->fd = eventfd(0, EFD_CLOEXEC | flags);
	if (s->fd >= 0)
		return s;
	free(s);
	return NULL;
}

/* Nobody reads the counter: each write is heard because it is one. */
static struct broker_waker *
waker_new(int fd, const int *sets, uint32_t n)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	struct broker_waker *w = malloc(sizeof(*w) + n * sizeof(*sets));
	bool all;

	if (w == NULL)
		return NULL;
	w->sets_n = 0;
	w->own = epoll_create1(EPOLL_CLOEXEC);
	all = w->own >= 0 && epoll_ctl(w->own, EPOLL_CTL_ADD, fd, &e) == 0;
	e.data.fd = w->own;
	while (all && w->sets_n < n) {
		all = epoll_ctl(sets[w->sets_n], EPOLL_CTL_ADD, w->own, &e) == 0;
		if (all) {
			w->sets[w->sets_n] = sets[w->sets_n];
			w->sets_n++;
		}
	}
	if (all)
		return w;
	if (w->own >= 0)
		waker_end(w, fd);
	else
		free(w);
	return NULL;
}

struct broker_signal *
broker_signal_waker(struct broker_conn *c, const int *sets, uint32_t n)
{
	struct broker_signal *s = c->waker;

	if (s != NULL)
		return s;
	s = broker_signal_new(c, EFD_NONBLOCK);
	if (s == NULL)
		return NULL;
	s->waker = waker_new(s->fd, sets, n);
	if (s->waker == NULL) {
		signal_end(s);
		return NULL;
	}
	c->waker = s;
	return s;
}

void
broker_waker_end(struct broker_conn *c)
{
	if (c->waker != NULL)
		signal_end(c->waker);
}

int
broker_signal_fd(const struct broker_signal *s)
{
	return s->fd;
}

static void
count(struct broker_signal *s, _Atomic uint32_t *what, uint32_t n)
{
	atomic_fetch_add_explicit(what, n, memory_order_seq_cst);
	if (!atomic_exchange_explicit(&s->asked, true, memory_order_seq_cst))
		broker_conn_run(s->conn, &s->job);
}

void
broker_signal_add(struct broker_signal *s)
{
	count(s, &s->more, 1);
}

void
broker_signal_drop(struct broker_signal *s, uint32_t n)
{
	if (n != 0)
		count(s, &s->less, n);
}

void
broker_signal_free(struct broker_signal *s)
{
	if (s != NULL)
		broker_conn_run(s->conn, &s->end);
}
