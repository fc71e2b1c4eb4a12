/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a client made: mapped once for each memfd, by the connection's thread alone. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker_conn.h"
#include "fds.h"
#include "invariant.h"

/*
 * What all connections have taken: another connection of the same process may have the same memory,
 * which is sealed by then. Nobody else: to have a descriptor is not yet the right to write.
 */
static pthread_mutex_t taken_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, broker_memory) taken = TAILQ_HEAD_INITIALIZER(taken);

/* @return 0: not one process alone. */
static pid_t
process_of(const struct broker_conn *c)
{
	return c->shared ? 0 : c->pid;
}

static void
set_taken(struct broker_memory *m)
{
	m->whole = true;
	m->pid = process_of(m->conn);
	pthread_mutex_lock(&taken_lock);
	TAILQ_INSERT_TAIL(&taken, m, taken);
	pthread_mutex_unlock(&taken_lock);
}

/* @return 0, or -EROFS: no other connection of the process has it. */
static int
take_again(struct broker_memory *m)
{
	const pid_t pid = process_of(m->conn);
	struct broker_memory *other;
	int rc = -EROFS;

	pthread_mutex_lock(&taken_lock);
	TAILQ_FOREACH (other, &taken, taken) {
		if (pid > 0 && other->pid == pid && other->dev == m->dev && other->ino == m->ino) {
			rc = mem_area_again(&m->area, &other->area);
			break;
		}
	}
	pthread_mutex_unlock(&taken_lock);
	return rc;
}

static void
unmap(struct broker_memory *m)
{
	struct broker_conn *c = m->conn;

	if (m->whole) {
		pthread_mutex_lock(&taken_lock);
		TAILQ_REMOVE(&taken, m, taken);
		pthread_mutex_unlock(&taken_lock);
	}
	TAILQ_REMOVE(&c->memories, m, all);
	atomic_fetch_sub_explicit(&c->mapped, m->area.len, memory_order_relaxed);
	mem_area_destroy(&m->area);
	free(m);
}

/* ---- uses ------------------------------------------------------------------------------------ */

/* In the thread: uses have ended. A put() that finds `puts` at 0 comes back here. */
static void
run_put(struct broker_job *job)
{
	struct broker_memory *m = (struct broker_memory *)(void *)job;

	m->users -= atomic_exchange_explicit(&m->puts, 0, memory_order_acq_rel);
	if (m->users == 0 && m->once)
		unmap(m);
}

void
broker_memory_put(struct broker_memory *m)
{
	struct broker_conn *c = m->conn;

	/* Behind this line it may be gone, unless we are the one who tells the thread. */
	if (atomic_fetch_add_explicit(&m->puts, 1, memory_order_acq_rel) == 0)
		broker_conn_run(c, &m->job);
}

struct forget {
	struct broker_job job;
	struct broker_conn *conn;
	uint32_t id;
};

static void
run_forget(struct broker_job *job)
{
	struct forget *f = (struct forget *)(void *)job;
	struct broker_memory *m;

	TAILQ_FOREACH (m, &f->conn->memories, all) {
		if (m->id == f->id)
			break;
	}
	if (m != NULL) {
		m->once = true;
		if (m->users == 0)
			unmap(m);
	}
	free(f);
}

void
broker_memory_forget(struct broker_conn *c, uint32_t id)
{
	struct forget *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return; /* it goes with the connection */
	f->job.run = run_forget;
	f->conn = c;
	f->id = id;
	broker_conn_run(c, &f->job);
}

/* Those without a use, oldest first, until so many bytes are left. */
static void
trim_to(struct broker_conn *c, uint64_t most)
{
	struct broker_memory *m, *next;

	for (m = TAILQ_FIRST(&c->memories); m != NULL; m = next) {
		next = TAILQ_NEXT(m, all);
		if (broker_conn_mapped(c) <= most)
			return;
		if (m->users == 0)
			unmap(m);
	}
}

void
broker_memories_end(struct broker_conn *c)
{
	struct broker_memory *m, *next;

	for (m = TAILQ_FIRST(&c->memories); m != NULL; m = next) {
		next = TAILQ_NEXT(m, all);
		if (m->users == 0)
			unmap(m);
	}
}

/* ---- one more -------------------------------------------------------------------------------- */

static struct broker_memory *
find(struct broker_conn *c, const struct stat *st)
{
	struct broker_memory *m;

	TAILQ_FOREACH (m, &c->memories, all) {
		if (m->whole && m->dev == st->st_dev && m->ino == st->st_ino)
			return m;
	}
	return NULL;
}

/* @return 0 with room for so many bytes more, or -EFBIG. */
static int
room_for(struct broker_conn *c, const struct broker_terms *t, uint64_t bytes)
{
	const uint64_t other = atomic_load_explicit(&c->counted_bytes, memory_order_relaxed);

	if (other > t->most || bytes > t->most - other)
		return -EFBIG;
	trim_to(c, t->most - other - bytes);
	return broker_conn_mapped(c) <= t->most - other - bytes ? 0 : -EFBIG;
}

static int
map(struct broker_memory *m, int fd, const struct stat *st, const struct broker_terms *t)
{
	uint8_t *host;
	int rc;

	m->dev = st->st_dev;
	m->ino = st->st_ino;
	rc = mem_area_take(&m->area, fd);
	if (rc == -EROFS)
		rc = take_again(m);
	if (rc == 0) {
		m->size = (uint64_t)st->st_size;
		set_taken(m);
	} else if (t->any && (rc == -EOPNOTSUPP || rc == -ENODATA || rc == -EROFS)) {
		rc = mem_area_adopt(&m->area, fd, t->offset, t->length, &host);
		m->from = t->offset;
		m->size = t->length;
		m->head = rc == 0 ? (uint64_t)(host - m->area.base) : 0;
		m->once = true;
	}
	return rc;
}

static int
map_new(struct broker_conn *c, int fd, const struct stat *st, const struct broker_terms *t,
	struct broker_memory **out)
{
	struct broker_memory *m;
	int rc = room_for(c, t, t->any ? t->length : (uint64_t)st->st_size);

	if (rc != 0)
		return rc;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	m->conn = c;
	rc = map(m, fd, st, t);
	if (rc != 0) {
		free(m);
		return rc;
	}
	m->job.run = run_put;
	m->id = ++c->last_memory;
	TAILQ_INSERT_TAIL(&c->memories, m, all);
	atomic_fetch_add_explicit(&c->mapped, m->area.len, memory_order_relaxed);
	*out = m;
	return 0;
}

static int
get(struct broker_conn *c, int fd, const struct broker_terms *t, struct broker_memory **out)
{
	struct stat st;
	uint64_t size;

	if (fstat(fd, &st) != 0)
		return -EBADF;
	size = (uint64_t)st.st_size;
	if (t->length == 0 || t->offset > size || t->length > size - t->offset)
		return -ERANGE;
	*out = find(c, &st);
	if (*out == NULL)
		return map_new(c, fd, &st, t, out);
	return t->offset + t->length <= (*out)->size ? 0 : -ERANGE;
}

int
broker_memory_get(struct broker_conn *c, const struct broker_terms *t, struct broker_gift *gift)
{
	struct broker_memory *m = NULL;
	int fd, rc;

	if (c->fds_n == 0)
		return -ENODEV;
	fd = fds_take(c->fds, &c->fds_n);
	if (fd < 0)
		return -EBADF;
	rc = get(c, fd, t, &m);
	close(fd);
	if (rc != 0)
		return rc;
	m->once = m->once || t->once;
	m->users++;
	gift->memory = m;
	return 0;
}

void
broker_fd_drop(struct broker_conn *c)
{
	const int fd = fds_take(c->fds, &c->fds_n);

	if (fd >= 0)
		close(fd);
}

/* ---- areas of the dataplane's ---------------------------------------------------------------- */

struct area_end {
	struct broker_job job;
	struct mem_area area;
};

static void
run_area_end(struct broker_job *job)
{
	struct area_end *e = (struct area_end *)(void *)job;

	mem_area_destroy(&e->area);
	free(e);
}

void
broker_area_free(struct broker_conn *c, struct mem_area *a)
{
	struct area_end *e = c != NULL && a->base != NULL ? malloc(sizeof(*e)) : NULL;

	if (e == NULL) {
		mem_area_destroy(a);
		return;
	}
	e->job.run = run_area_end;
	e->area = *a;
	*a = (struct mem_area){ .fd = -1, .node = -1 };
	broker_conn_run(c, &e->job);
}

enum { MAKING, MADE, DROPPED };

struct broker_making {
	struct broker_job job;
	struct broker_conn *conn;
	size_t len;
	int node;
	unsigned int flags;
	int seal; /* descriptor of `area`, to be sealed; -1: it is made */
	int rc;
	struct mem_area area;
	_Atomic int state; /* who comes second frees it */
};

static void
run_make(struct broker_job *job)
{
	struct broker_making *m = (struct broker_making *)(void *)job;
	struct broker *b = m->conn->b;

	if (m->seal >= 0)
		m->rc = mem_area_seal(&m->area, m->seal);
	else
		m->rc = mem_area_create(&m->area, m->len, m->node, m->flags);
	if (atomic_exchange_explicit(&m->state, MADE, memory_order_acq_rel) == DROPPED) {
		if (m->seal < 0)
			mem_area_destroy(&m->area);
		free(m);
	}
	broker_wake(b);
}

static struct broker_making *
making(struct broker_conn *c, const struct broker_making *what)
{
	struct broker_making *m = malloc(sizeof(*m));

	if (m == NULL)
		return NULL;
	*m = *what;
	m->job.run = run_make;
	m->conn = c;
	broker_conn_run(c, &m->job);
	return m;
}

struct broker_making *
broker_area_make(struct broker_conn *c, size_t len, int node, unsigned int flags)
{
	return making(c, &(struct broker_making){ .len = len,
				 .node = node,
				 .flags = flags,
				 .seal = -1,
				 .area = { .fd = -1, .node = -1 } });
}

struct broker_making *
broker_area_seal(struct broker_conn *c, struct mem_area *a)
{
	struct broker_making *m = making(c, &(struct broker_making){ .seal = a->fd, .area = *a });

	if (m != NULL)
		a->fd = -1;
	return m;
}

int
broker_area_made(struct broker_making **m, struct mem_area *out)
{
	struct broker_making *done = *m;
	int rc;

	if (atomic_load_explicit(&done->state, memory_order_acquire) == MAKING)
		return -EINPROGRESS;
	rc = done->rc;
	*out = done->area;
	*m = NULL;
	free(done);
	return rc;
}

void
broker_area_drop(struct broker_making *m)
{
	if (m == NULL)
		return;
	if (atomic_exchange_explicit(&m->state, DROPPED, memory_order_acq_rel) == MAKING)
		return;
	if (m->seal < 0)
		broker_area_free(m->conn, &m->area);
	free(m);
}

/* ---- looked at ------------------------------------------------------------------------------- */

uint8_t *
broker_memory_at(const struct broker_memory *m, uint64_t offset)
{
	ASSERT(offset >= m->from && offset - m->from <= m->size);
	return m->area.base + m->head + (offset - m->from);
}

const struct mem_area *
broker_memory_area(const struct broker_memory *m)
{
	return &m->area;
}

uint32_t
broker_memory_id(const struct broker_memory *m)
{
	return m->id;
}
