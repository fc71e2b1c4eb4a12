/* SPDX-License-Identifier: BSD-3-Clause */
/* Areas of the dataplane's for a client: made, sealed and given back by the connection's thread. */
#include <errno.h>
#include <stdlib.h>

#include "broker_conn.h"

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
