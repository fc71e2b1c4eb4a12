/* SPDX-License-Identifier: BSD-3-Clause */
/* not hot: a few cache lines for each datagram to a group. */
#include "qp_mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "invariant.h"

struct key {
	uint64_t addr[2];
	uint32_t port;
};

static struct key
key_of(const struct qp_mcast_group *g)
{
	struct key k = { .port = g->port };

	memcpy(k.addr, g->addr, sizeof(k.addr));
	return k;
}

static uint32_t
first_place(const struct key *k)
{
	uint64_t h = (k->addr[0] ^ k->port) * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ (h >> 32) ^ k->addr[1]) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(h >> 40);
}

static inline uint32_t
get32(const _Atomic uint32_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static bool
is_of(const struct qp_mcast_place *p, const struct key *k)
{
	return get32(&p->port) == k->port &&
	       atomic_load_explicit(&p->addr[0], memory_order_relaxed) == k->addr[0] &&
	       atomic_load_explicit(&p->addr[1], memory_order_relaxed) == k->addr[1];
}

struct qp_mcast_table *
qp_mcast_table_create(void)
{
	struct qp_mcast_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	/* Pages that were never used stay the kernel's. */
	t->mem = calloc(QP_MCAST_PLACES + 1, sizeof(struct qp_mcast_place));
	if (t->mem == NULL) {
		free(t);
		return NULL;
	}
	t->place = (struct qp_mcast_place *)(((uintptr_t)t->mem + CACHE_LINE - 1) &
					     ~((uintptr_t)CACHE_LINE - 1));
	return t;
}

void
qp_mcast_table_destroy(struct qp_mcast_table *t)
{
	if (t == NULL)
		return;
	free(t->mem);
	free(t);
}

/* ---- the control lcore ----------------------------------------------------------------------- */

static uint32_t
members_n(const struct qp_mcast_place *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < get32(&p->n); i++)
		n += get32(&p->qpn[i]) != 0;
	return n;
}

/** The group's place. @param room out: the first one that a new group may have; NULL: none. */
static struct qp_mcast_place *
find(struct qp_mcast_table *t, const struct key *k, struct qp_mcast_place **room)
{
	uint32_t at = first_place(k);

	*room = NULL;
	for (uint32_t n = 0; n < QP_MCAST_PLACES; n++, at++) {
		struct qp_mcast_place *p = &t->place[at % QP_MCAST_PLACES];

		if (members_n(p) == 0) {
			*room = *room != NULL ? *room : p;
			if (get32(&p->life) == 0)
				return NULL;
		} else if (is_of(p, k)) {
			return p;
		}
	}
	return NULL;
}

/** Whoever has begun to read the place sees that `life` is another one. */
static void
give(struct qp_mcast_place *p, const struct key *k)
{
	const uint32_t life = get32(&p->life);

	ASSERT((life & 1) == 0);
	atomic_store_explicit(&p->life, life + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&p->port, k->port, memory_order_relaxed);
	atomic_store_explicit(&p->addr[0], k->addr[0], memory_order_relaxed);
	atomic_store_explicit(&p->addr[1], k->addr[1], memory_order_relaxed);
	atomic_store_explicit(&p->n, 0, memory_order_relaxed);
	/* 0 says that nobody ever had it. */
	atomic_store_explicit(&p->life, life + 2 != 0 ? life + 2 : 2, memory_order_release);
}

static int
add_member(struct qp_mcast_place *p, uint32_t qpn)
{
	const uint32_t n = get32(&p->n);
	uint32_t gap = n;

	for (uint32_t i = 0; i < n; i++) {
		if (get32(&p->qpn[i]) == qpn)
			return -EEXIST;
		if (get32(&p->qpn[i]) == 0 && gap == n)
			gap = i;
	}
	if (gap == QP_MCAST_QPS)
		return -ENOSPC;
	atomic_store_explicit(&p->qpn[gap], qpn, memory_order_relaxed);
	if (gap == n)
		atomic_store_explicit(&p->n, n + 1, memory_order_release);
	return 0;
}

int
qp_mcast_add(struct qp_mcast_table *t, const struct qp_mcast_group *g, uint32_t qpn)
{
	const struct key k = key_of(g);
	struct qp_mcast_place *room, *p = find(t, &k, &room);

	ASSERT(qpn != 0);
	if (p != NULL)
		return add_member(p, qpn);
	if (t->groups == QP_MCAST_GROUPS)
		return -ENOMEM;
	ASSERT(room != NULL); /* half of the places at most are in use */
	give(room, &k);
	t->groups++;
	return add_member(room, qpn);
}

int
qp_mcast_remove(struct qp_mcast_table *t, const struct qp_mcast_group *g, uint32_t qpn)
{
	const struct key k = key_of(g);
	struct qp_mcast_place *room, *p = find(t, &k, &room);

	for (uint32_t i = 0; p != NULL && i < get32(&p->n); i++) {
		if (get32(&p->qpn[i]) != qpn)
			continue;
		atomic_store_explicit(&p->qpn[i], 0, memory_order_relaxed);
		t->groups -= members_n(p) == 0;
		return 0;
	}
	return -ENOENT;
}

/* ---- workers --------------------------------------------------------------------------------- */

uint32_t
qp_mcast_members(const struct qp_mcast_table *t, const struct qp_mcast_group *g, uint32_t *qpn)
{
	const struct key k = key_of(g);
	uint32_t at = first_place(&k);

	for (uint32_t i = 0; i < QP_MCAST_PLACES; i++, at++) {
		const struct qp_mcast_place *p = &t->place[at % QP_MCAST_PLACES];
		const uint32_t life = atomic_load_explicit(&p->life, memory_order_acquire);
		uint32_t n = 0, most;

		if (life == 0)
			return 0;
		if ((life & 1) != 0 || !is_of(p, &k))
			continue;
		most = atomic_load_explicit(&p->n, memory_order_acquire);
		for (uint32_t m = 0; m < most; m++) {
			qpn[n] = get32(&p->qpn[m]);
			n += qpn[n] != 0;
		}
		atomic_thread_fence(memory_order_acquire);
		/* A place that the group once had, and has no more, may stand before its own. */
		if (n != 0 && get32(&p->life) == life)
			return n;
	}
	return 0;
}
