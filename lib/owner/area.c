/* SPDX-License-Identifier: BSD-3-Clause */
#include "owner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker.h"
#include "env.h"
#include "mem_guard.h"
#include "qp_control.h"

/* A client's areas grow with it: 256 KiB for the first, then each as large as all before. */
#define AREA_FIRST OWNER_AREA_FIRST
#define AREA_MOST  (64u << 20)
#define HUGE_FROM  (2u << 20)

static bool
is_taken(const struct owner_area *a, uint32_t grain)
{
	return (a->map[grain / 64] >> grain % 64 & 1) != 0;
}

static void
mark(struct owner_area *a, uint32_t first, uint32_t n, bool taken)
{
	for (uint32_t i = first; i < first + n; i++) {
		if (taken)
			a->map[i / 64] |= UINT64_C(1) << i % 64;
		else
			a->map[i / 64] &= ~(UINT64_C(1) << i % 64);
	}
	a->taken = taken ? a->taken + n : a->taken - n;
}

/* First fit. @return the first grain, or UINT32_MAX. */
static uint32_t
find(const struct owner_area *a, uint32_t n)
{
	uint32_t run = 0;

	if (a->grains - a->taken < n)
		return UINT32_MAX;
	for (uint32_t i = 0; i < a->grains; i++) {
		if (i % 64 == 0 && a->map[i / 64] == UINT64_MAX) {
			run = 0;
			i += 63;
			continue;
		}
		run = is_taken(a, i) ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return UINT32_MAX;
}

/* ---- made here, or in the application's thread ----------------------------------------------- */

static unsigned int
flags_of(const struct owner *o)
{
	if (o->making_work)
		return MEM_AREA_PRIVATE;
	return (o->making_len >= HUGE_FROM ? MEM_AREA_HUGE : 0u) | MEM_AREA_OPEN;
}

static int
refuse_area(size_t len, int rc, struct refusal *r)
{
	return refuse(r, -rc, "no memory for %zu bytes of rings: %s", len, strerror(-rc));
}

/* It is made, for making_len bytes that were charged; what pages add to that is charged here. */
static int
add_area(struct owner *o, struct mem_area *mem, struct refusal *r)
{
	struct owner_area *a = realloc(o->areas, (o->areas_n + 1) * sizeof(*a));
	int rc = 0;

	if (a != NULL) {
		o->areas = a;
		a = &a[o->areas_n];
		*a = (struct owner_area){
			.mem = *mem, .grains = (uint32_t)(mem->len / OWNER_GRAIN), .open = true
		};
		a->map = calloc(a->grains / 64 + 1, sizeof(a->map[0]));
	}
	if (a == NULL || a->map == NULL || mem_guard_add(&a->mem) != 0)
		rc = refuse(r, ENOMEM, "out of memory");
	else
		rc = owner_charge(o, OWNER_MEMORY, mem->len - o->making_len, r);
	if (rc == 0) {
		o->areas_n++;
		o->open_n++;
		return 0;
	}
	if (a != NULL) {
		free(a->map);
		*mem = a->mem; /* with its guard */
	}
	broker_area_free(o->home, mem);
	return rc;
}

int
owner_area_give(struct owner *o, struct mem_area *mem, struct refusal *r)
{
	const size_t len = mem->len;
	int rc = owner_charge(o, OWNER_MEMORY, len, r);

	if (rc != 0)
		return -r->err;
	o->making_len = len;
	rc = add_area(o, mem, r);
	*mem = (struct mem_area){ .fd = -1, .node = -1 };
	if (rc != 0)
		owner_uncharge(o, OWNER_MEMORY, len);
	return rc;
}

/*
 * One that the application's thread was making, if any. @return 0: it is there, or there was none;
 * or a refusal.
 */
static int
settle(struct env *env, struct owner *o, struct refusal *r)
{
	struct mem_area mem;
	int rc;

	if (o->making == NULL)
		return 0;
	rc = broker_area_made(&o->making, &mem);
	if (rc == -EINPROGRESS) {
		env_put_off(env);
		return refuse(r, EAGAIN, "memory is still being made: ask again");
	}
	if (rc == 0 && o->making_work)
		o->work = mem;
	else if (rc == 0)
		rc = add_area(o, &mem, r);
	else
		rc = refuse_area(o->making_len, rc, r);
	if (rc != 0 && !o->making_work)
		owner_uncharge(o, OWNER_MEMORY, o->making_len);
	return rc;
}

/* Make `len` bytes. @return 0, or a refusal. */
static int
make(struct env *env, struct owner *o, size_t len, bool work, struct refusal *r)
{
	struct mem_area mem;
	int rc;

	ASSERT(o->making == NULL);
	o->making_len = len;
	o->making_work = work;
	if (o->home != NULL && env_put_off(env)) {
		o->making = broker_area_make(o->home, len, env->w.numa_node, flags_of(o));
		return refuse(r, o->making != NULL ? EAGAIN : ENOMEM, "out of memory");
	}
	rc = mem_area_create(&mem, len, env->w.numa_node, flags_of(o));
	if (rc != 0)
		return refuse_area(len, rc, r);
	if (!work)
		return add_area(o, &mem, r);
	o->work = mem;
	return 0;
}

/* One more area with room for `bytes`. */
static int
grow(struct env *env, struct owner *o, size_t bytes, struct refusal *r)
{
	uint64_t total = 0;
	size_t len;
	int rc;

	for (uint32_t i = 0; i < o->areas_n; i++)
		total += o->areas[i].mem.len;
	len = total < AREA_FIRST ? AREA_FIRST : total > AREA_MOST ? AREA_MOST : total;
	if (o->areas_n == OWNER_AREAS)
		return refuse(r, ENOSPC, "there are %u areas already", o->areas_n);
	if (len < bytes || owner_charge(o, OWNER_MEMORY, len, r) != 0) {
		len = bytes;
		if (owner_charge(o, OWNER_MEMORY, len, r) != 0)
			return -r->err;
	}
	rc = make(env, o, len, false, r);
	if (rc != 0 && o->making == NULL)
		owner_uncharge(o, OWNER_MEMORY, len);
	return rc;
}

static void
clear(struct owner_area *a, uint32_t first, uint32_t n)
{
	const size_t left = first < a->fresh ? OWNER_CLEARED : 0, len = (size_t)n * OWNER_GRAIN;

	memset(a->mem.base + (size_t)first * OWNER_GRAIN, 0, left < len ? left : len);
	a->fresh = first + n > a->fresh ? first + n : a->fresh;
}

int
owner_place_get(struct env *env, struct owner *o, size_t bytes, struct owner_place *out, void **mem,
	struct refusal *r)
{
	const uint32_t n = (uint32_t)((bytes + OWNER_GRAIN - 1) / OWNER_GRAIN);
	uint32_t first = UINT32_MAX, i;
	int rc = settle(env, o, r);

	if (rc != 0)
		return rc;
	for (i = 0; i < o->areas_n; i++) {
		first = find(&o->areas[i], n);
		if (first != UINT32_MAX)
			break;
	}
	if (first == UINT32_MAX) {
		rc = grow(env, o, bytes, r);
		if (rc != 0)
			return rc;
		i = o->areas_n - 1;
		first = 0;
	}
	if (o->areas[i].open && !o->opening) {
		o->map_first = true;
		return refuse(r, EAGAIN, "there is a new area: map it, and ask again");
	}
	mark(&o->areas[i], first, n, true);
	clear(&o->areas[i], first, n);
	*out = (struct owner_place){ .area = i, .first = first, .n = n };
	*mem = o->areas[i].mem.base + owner_place_offset(out);
	return 0;
}

void
owner_place_put(struct owner *o, struct owner_place *p)
{
	if (p->n != 0)
		mark(&o->areas[p->area], p->first, p->n, false);
	p->n = 0;
}

int
owner_areas_seal(struct owner *o)
{
	struct mem_area ignored;
	int rc;

	while (o->open_n != 0) {
		struct owner_area *a = &o->areas[o->areas_n - o->open_n];

		if (!a->told) /* the next answer tells of it */
			return 0;
		if (o->sealing == NULL)
			o->sealing = broker_area_seal(o->home, &a->mem);
		if (o->sealing == NULL)
			return -ENOMEM;
		rc = broker_area_made(&o->sealing, &ignored);
		if (rc != 0)
			return rc;
		a->open = false;
		o->open_n--;
	}
	return 0;
}

int
owner_area_lost(struct owner *o, uint32_t number, struct refusal *r)
{
	struct owner_area *a = number < o->areas_n ? &o->areas[number] : NULL;

	if (a == NULL || !a->told || a->open || a->taken != 0 || a->grains == 0)
		return refuse(r, EINVAL, "area %" PRIu32 " is none that is lost", number);
	owner_uncharge(o, OWNER_MEMORY, a->mem.len);
	broker_area_free(o->home, &a->mem);
	a->mem = (struct mem_area){ .fd = -1, .node = -1 };
	a->grains = 0;
	return 0;
}

void
owner_areas_free(struct owner *o)
{
	for (uint32_t i = 0; i < o->areas_n; i++) {
		owner_uncharge(o, OWNER_MEMORY, o->areas[i].mem.len);
		broker_area_free(o->home, &o->areas[i].mem);
		free(o->areas[i].map);
	}
	broker_area_drop(o->making);
	broker_area_drop(o->sealing);
	o->making = o->sealing = NULL;
	broker_area_free(o->home, &o->work);
	free(o->areas);
	o->areas = NULL;
	o->areas_n = 0;
}

/* Each of them, or none. */
static int
charge_qp(struct owner *o, struct owner_rings *rings, struct refusal *r)
{
	if (owner_charge(o, OWNER_QPS, 1, r) != 0)
		return -r->err;
	if (owner_charge(o, OWNER_OUTSTANDING, rings->entries, r) == 0) {
		if (owner_charge(o, OWNER_PRIVATE, rings->private_bytes, r) == 0)
			return 0;
		owner_uncharge(o, OWNER_OUTSTANDING, rings->entries);
	}
	owner_uncharge(o, OWNER_QPS, 1);
	return -r->err;
}

/* A QP's private requests: many of them are not in its block. */
static int
lend_work(struct env *env, struct owner *o, struct qp_alloc_params *p, struct owner_rings *rings,
	struct refusal *r)
{
	const size_t bytes = qp_work_bytes(p);
	int rc;

	if (bytes <= AREA_FIRST)
		return 0;
	rc = settle(env, o, r);
	if (rc == 0 && o->work.len < bytes) {
		broker_area_free(o->home, &o->work);
		rc = make(env, o, bytes, true, r);
	}
	if (rc != 0)
		return rc;
	rings->work = o->work;
	o->work = (struct mem_area){ .fd = -1, .node = -1 };
	p->work_mem = rings->work.base;
	return 0;
}

int
owner_rings_lend(struct env *env, struct owner *o, struct qp_alloc_params *p,
	struct owner_rings *rings, struct refusal *r)
{
	/* Others may have a target longer than its owner does, and nobody posts to it. */
	const bool own_block = p->type == QPT_XRC_RECV;
	struct qp_alloc_params lent = *p;
	size_t rq, sq;
	int rc;

	lent.rq_mem = own_block ? NULL : rings; /* anything: they are not in the QP's own block */
	if (qp_ring_bytes(p, &rq, &sq) != 0 || qp_footprint(&lent, &rings->private_bytes) != 0)
		return refuse(r, EINVAL, "no queues of these capacities");
	rings->entries = p->max_send_wr + p->max_recv_wr;
	rc = charge_qp(o, rings, r);
	if (rc != 0)
		return rc;
	rings->charged = true;
	if (own_block)
		return 0;
	rc = owner_place_get(env, o, rq, &rings->rq, &p->rq_mem, r);
	if (rc == 0 && sq != 0)
		rc = owner_place_get(env, o, sq, &rings->sq, &p->sq_mem, r);
	if (rc == 0)
		rc = lend_work(env, o, p, rings, r);
	if (rc != 0)
		owner_rings_return(o, rings);
	return rc;
}

void
owner_rings_pass(struct owner *from, struct owner *to, const struct owner_rings *rings)
{
	ASSERT(rings->charged && rings->rq.n == 0 && rings->sq.n == 0 && rings->work.base == NULL);
	owner_charge_moved(from, to, OWNER_QPS, 1);
	owner_charge_moved(from, to, OWNER_OUTSTANDING, rings->entries);
	owner_charge_moved(from, to, OWNER_PRIVATE, rings->private_bytes);
}

void
owner_rings_return(struct owner *o, struct owner_rings *rings)
{
	owner_place_put(o, &rings->rq);
	owner_place_put(o, &rings->sq);
	broker_area_free(o->home, &rings->work);
	if (rings->charged) {
		owner_uncharge(o, OWNER_QPS, 1);
		owner_uncharge(o, OWNER_OUTSTANDING, rings->entries);
		owner_uncharge(o, OWNER_PRIVATE, rings->private_bytes);
	}
	rings->charged = false;
}
