/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a client made: mapped once for each memfd, by the connection's thread alone. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker_conn.h"
#include "fds.h"
#include "invariant.h"

#define USUAL_MAPS 65530 /* mappings that Linux allows a process by default */

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

/* @return 0, or -EROFS: no other connection of the process has it; -ERANGE: of another size. */
static int
take_again(struct broker_memory *m, uint64_t size)
{
	const pid_t pid = process_of(m->conn);
	struct broker_memory *other;
	int rc = -EROFS;

	pthread_mutex_lock(&taken_lock);
	TAILQ_FOREACH (other, &taken, taken) {
		if (pid > 0 && other->pid == pid && other->dev == m->dev && other->ino == m->ino) {
			rc = other->size != size ? -ERANGE : mem_area_again(&m->area, &other->area);
			break;
		}
	}
	pthread_mutex_unlock(&taken_lock);
	return rc;
}

/* Pieces of regions, of all connections: those beyond what each has in any case. */
static _Atomic uint32_t beyond;
static uint32_t beyond_max = BROKER_JOINED_ALL;
static pthread_once_t beyond_known = PTHREAD_ONCE_INIT;

static void
learn_beyond(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned int maps;

	if (f == NULL)
		return;
	if (fscanf(f, "%9u", &maps) == 1 && maps > USUAL_MAPS)
		beyond_max += maps - USUAL_MAPS;
	fclose(f);
}

bool
broker_pieces_take(struct broker_conn *c, uint32_t n)
{
	const uint32_t own = c->joined < BROKER_JOINED ? BROKER_JOINED - c->joined : 0;
	const uint32_t more = n > own ? n - own : 0;

	pthread_once(&beyond_known, learn_beyond);
	if (more != 0 && atomic_fetch_add(&beyond, more) + more > beyond_max) {
		atomic_fetch_sub(&beyond, more);
		return false;
	}
	c->joined += n;
	return true;
}

static void
pieces_give(struct broker_conn *c, uint32_t n)
{
	const uint32_t has = c->joined > BROKER_JOINED ? c->joined - BROKER_JOINED : 0;

	c->joined -= n;
	atomic_fetch_sub(&beyond, n < has ? n : has);
}

static void release_all(struct broker_memory *const *pieces, uint32_t n);

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
	c->idle--;
	atomic_fetch_sub_explicit(&c->mapped, m->counted, memory_order_relaxed);
	mem_area_destroy(&m->area);
	pieces_give(c, m->pieces_n + m->laid_n);
	release_all(m->pieces, m->pieces_n);
	free(m);
}

/* Uses by one that consisted of them. A piece consists of none: this goes no deeper. */
static void
release_all(struct broker_memory *const *pieces, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (--pieces[i]->users != 0)
			continue;
		pieces[i]->conn->idle++;
		if (pieces[i]->once)
			unmap(pieces[i]);
	}
}

/* ---- uses ------------------------------------------------------------------------------------ */

/* Those without a use, oldest first, until so many of them are left. */
static void
trim_idle(struct broker_conn *c)
{
	struct broker_memory *m, *next;

	for (m = TAILQ_FIRST(&c->memories); m != NULL && c->idle > BROKER_IDLE; m = next) {
		next = TAILQ_NEXT(m, all);
		if (m->users == 0)
			unmap(m);
	}
}

static void
less(struct broker_memory *m, uint32_t uses)
{
	struct broker_conn *c = m->conn;

	m->users -= uses;
	if (m->users != 0)
		return;
	c->idle++;
	if (m->once)
		unmap(m);
	else
		trim_idle(c);
}

/* In the thread: uses have ended. A put() that finds `puts` at 0 comes back here. */
static void
run_put(struct broker_job *job)
{
	struct broker_memory *m = (struct broker_memory *)(void *)job;

	less(m, atomic_exchange_explicit(&m->puts, 0, memory_order_acq_rel));
}

void
broker_memory_drop(struct broker_memory *m)
{
	less(m, 1);
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

	broker_laid_end(c);
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

int
broker_memory_room(struct broker_conn *c, const struct broker_terms *t, uint64_t bytes)
{
	const uint64_t other = atomic_load_explicit(&c->counted_bytes, memory_order_relaxed);

	if (other > t->most || bytes > t->most - other)
		return -EFBIG;
	trim_to(c, t->most - other - bytes);
	return broker_conn_mapped(c) <= t->most - other - bytes ? 0 : -EFBIG;
}

/* It lacks F_SEAL_SHRINK, can get no seals, has holes, or has the seals of somebody else. */
static bool
is_unsealed(int rc)
{
	return rc == -EPERM || rc == -EOPNOTSUPP || rc == -ENODATA || rc == -EROFS;
}

static int
map(struct broker_memory *m, int fd, const struct stat *st, const struct broker_terms *t)
{
	const uint64_t size = (uint64_t)st->st_size;
	uint8_t *host;
	int rc;

	m->dev = st->st_dev;
	m->ino = st->st_ino;
	rc = mem_area_take(&m->area, fd, size);
	if (rc == -EROFS)
		rc = take_again(m, size);
	if (rc == 0) {
		m->size = size;
		set_taken(m);
	} else if (t->any && is_unsealed(rc)) {
		rc = mem_area_adopt(&m->area, fd, t->offset, t->length, &host);
		m->from = t->offset;
		m->size = t->length;
		m->head = rc == 0 ? (uint64_t)(host - m->area.base) : 0;
		m->once = true;
	}
	return rc;
}

void
broker_memory_add(struct broker_memory *m)
{
	struct broker_conn *c = m->conn;

	m->job.run = run_put;
	m->id = ++c->last_memory;
	TAILQ_INSERT_TAIL(&c->memories, m, all);
	c->idle += m->users == 0;
	m->counted = m->area.len;
	atomic_fetch_add_explicit(&c->mapped, m->counted, memory_order_relaxed);
}

static int
map_new(struct broker_conn *c, int fd, const struct stat *st, const struct broker_terms *t,
	struct broker_memory **out)
{
	struct broker_memory *m;
	int rc = broker_memory_room(c, t, t->any ? t->length : (uint64_t)st->st_size);

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
	broker_memory_add(m);
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

/* The oldest memfd that came, with one use of it. */
static int
get_next(struct broker_conn *c, const struct broker_terms *t, struct broker_memory **out)
{
	struct broker_memory *m;
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
	if (m->users++ == 0)
		c->idle--;
	*out = m;
	return 0;
}

/* ---- one that consists of pieces ------------------------------------------------------------- */

static int
join(struct broker_memory *m, const struct broker_terms *t)
{
	struct mem_part parts[BROKER_FDS];
	uint64_t bytes = 0;
	int rc;

	for (uint32_t i = 0; i < m->pieces_n; i++) {
		const struct broker_piece *p = &t->pieces[i];

		parts[i] = (struct mem_part){ .area = &m->pieces[i]->area,
			.at = broker_memory_at(m->pieces[i], p->offset),
			.len = p->length };
		bytes += p->length;
	}
	if (t->offset > bytes || t->length > bytes - t->offset)
		return -ERANGE;
	rc = broker_memory_room(m->conn, t, bytes);
	if (rc != 0)
		return rc;
	if (!broker_pieces_take(m->conn, m->pieces_n))
		return -ENFILE;
	m->size = bytes;
	m->once = true;
	m->users = 1;
	rc = mem_area_join(&m->area, parts, m->pieces_n);
	if (rc != 0)
		pieces_give(m->conn, m->pieces_n);
	return rc;
}

static int
get_pieces(struct broker_conn *c, const struct broker_terms *t, struct broker_memory **out)
{
	struct broker_memory *m = calloc(1, sizeof(*m));
	struct broker_terms one = *t;
	int rc = m != NULL ? 0 : -ENOMEM;

	ASSERT(t->pieces_n <= BROKER_FDS);
	for (uint32_t i = 0; rc == 0 && i < t->pieces_n; i++) {
		one.offset = t->pieces[i].offset;
		one.length = t->pieces[i].length;
		rc = get_next(c, &one, &m->pieces[i]);
		if (rc == 0)
			m->pieces_n++;
		else
			broker_fds_drop(c, t->pieces_n - 1 - i);
	}
	if (rc == 0) {
		m->conn = c;
		rc = join(m, t);
	}
	if (rc == 0) {
		broker_memory_add(m);
		*out = m;
		return 0;
	}
	if (m != NULL)
		release_all(m->pieces, m->pieces_n);
	else
		broker_fds_drop(c, t->pieces_n);
	trim_idle(c);
	free(m);
	return rc;
}

int
broker_memory_get(struct broker_conn *c, const struct broker_terms *t, struct broker_gift *gift)
{
	return (t->pieces_n != 0 ? get_pieces : get_next)(c, t, &gift->memory);
}

void
broker_fds_drop(struct broker_conn *c, size_t n)
{
	while (n-- != 0 && c->fds_n != 0) {
		const int fd = fds_take(c->fds, &c->fds_n);

		if (fd >= 0)
			close(fd);
	}
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

struct broker_conn *
broker_memory_home(const struct broker_memory *m)
{
	return m->conn;
}

uint32_t
broker_memory_id(const struct broker_memory *m)
{
	return m->id;
}
