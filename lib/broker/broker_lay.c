/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that consists of many files, one behind the other: a mapping for each, by the connection's
 * thread alone. A program has as many where each of its huge pages is a file, which are more than
 * come with one request. A connection lays one such memory at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "broker_conn.h"
#include "fds.h"
#include "invariant.h"

void
broker_laid_end(struct broker_conn *c)
{
	struct broker_memory *m = c->laid;

	c->laid = NULL;
	if (m != NULL)
		broker_memory_drop(m);
}

static int
begin(struct broker_conn *c, const struct broker_terms *t, int fd)
{
	struct broker_memory *m;
	int rc = broker_memory_room(c, t, t->length);

	if (rc != 0)
		return rc;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	rc = mem_area_reserve(&m->area, t->length, fd);
	if (rc != 0) {
		free(m);
		return rc;
	}
	m->conn = c;
	m->size = t->length;
	m->once = true;
	m->users = 1;
	broker_memory_add(m);
	c->laid = m;
	c->laid_to = 0;
	return 0;
}

static int
lay(struct broker_conn *c, const struct broker_terms *t, const struct broker_piece *p, int fd)
{
	struct broker_memory *m;
	int rc;

	if (c->laid == NULL && (rc = begin(c, t, fd)) != 0)
		return rc;
	m = c->laid;
	if (!broker_pieces_take(c, 1))
		return -ENFILE;
	m->laid_n++;
	rc = mem_area_lay(&m->area, c->laid_to, fd, p->offset, p->length);
	if (rc == 0)
		c->laid_to += p->length;
	return rc;
}

/* Does it go on where the last one ended? The first one begins anew. */
static bool
goes_on(struct broker_conn *c, const struct broker_terms *t)
{
	if (t->offset == 0)
		broker_laid_end(c);
	return t->offset == 0 ||
	       (c->laid != NULL && t->offset == c->laid_to && t->length == c->laid->size);
}

int
broker_memory_lay(struct broker_conn *c, const struct broker_terms *t)
{
	int rc = !goes_on(c, t) ? -ENOENT : t->any ? 0 : -EPERM;
	uint32_t i;

	ASSERT(t->pieces_n <= BROKER_FDS);
	if (t->pieces_n == 0 && t->offset == 0)
		return 0; /* nothing is laid now */
	if (t->pieces_n == 0)
		rc = -ENODEV;
	for (i = 0; rc == 0 && i < t->pieces_n && c->fds_n != 0; i++) {
		const int fd = fds_take(c->fds, &c->fds_n);

		rc = fd >= 0 ? lay(c, t, &t->pieces[i], fd) : -EBADF;
		if (fd >= 0)
			close(fd);
	}
	if (rc == 0 && i < t->pieces_n)
		rc = -ENODEV;
	if (rc == 0)
		return 0;
	broker_fds_drop(c, t->pieces_n - i);
	broker_laid_end(c);
	return rc;
}

int
broker_memory_laid(struct broker_conn *c, const struct broker_terms *t, struct broker_gift *gift)
{
	struct broker_memory *m = c->laid;
	int rc = 0;

	if (m == NULL || c->laid_to != m->size)
		rc = -ENOENT;
	else if (t->offset > m->size || t->length > m->size - t->offset)
		rc = -ERANGE;
	if (rc != 0) {
		broker_laid_end(c);
		return rc;
	}
	c->laid = NULL;
	gift->memory = m;
	return 0;
}
