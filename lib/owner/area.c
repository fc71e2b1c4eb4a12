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
#define AREA_FIRST (256u << 10)
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

/* `len` bytes, which were charged; what pages add to that is charged here. */
static int
make(struct env *env, struct owner *o, struct owner_area *a, size_t len, struct refusal *r)
{
	int rc;

	memset(a, 0, sizeof(*a));
	rc = mem_area_create(&a->mem, len, env->w.numa_node, len >= HUGE_FROM ? MEM_AREA_HUGE : 0);
	if (rc != 0)
		return refuse(r, -rc, "no memory for %zu bytes of rings: %s", len, strerror(-rc));
	a->grains = (uint32_t)(a->mem.len / OWNER_GRAIN);
	a->map = calloc(a->grains / 64 + 1, sizeof(a->map[0]));
	if (a->map == NULL || mem_guard_add(&a->mem) != 0)
		rc = refuse(r, ENOMEM, "out of memory");
	else
		rc = owner_charge(o, OWNER_MEMORY, a->mem.len - len, r);
	if (rc != 0) {
		free(a->map);
		mem_area_destroy(&a->mem);
	}
	return rc;
}

/* One more area with room for `bytes`. */
static int
grow(struct env *env, struct owner *o, size_t bytes, struct refusal *r)
{
	uint64_t total = 0;
	struct owner_area *areas;
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
	areas = realloc(o->areas, (o->areas_n + 1) * sizeof(*areas));
	if (areas != NULL)
		o->areas = areas;
	rc = areas == NULL ? refuse(r, ENOMEM, "out of memory")
			   : make(env, o, &areas[o->areas_n], len, r);
	if (rc != 0) {
		owner_uncharge(o, OWNER_MEMORY, len);
		return rc;
	}
	o->areas_n++;
	return 0;
}

int
owner_place_get(struct env *env, struct owner *o, size_t bytes, struct owner_place *out, void **mem,
	struct refusal *r)
{
	const uint32_t n = (uint32_t)((bytes + OWNER_GRAIN - 1) / OWNER_GRAIN);
	uint32_t first = UINT32_MAX, i;
	int rc;

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
	mark(&o->areas[i], first, n, true);
	*out = (struct owner_place){ .area = i, .first = first, .n = n };
	*mem = o->areas[i].mem.base + owner_place_offset(out);
	memset(*mem, 0, (size_t)n * OWNER_GRAIN);
	return 0;
}

void
owner_place_put(struct owner *o, struct owner_place *p)
{
	if (p->n != 0)
		mark(&o->areas[p->area], p->first, p->n, false);
	p->n = 0;
}

void
owner_areas_free(struct owner *o)
{
	for (uint32_t i = 0; i < o->areas_n; i++) {
		owner_uncharge(o, OWNER_MEMORY, o->areas[i].mem.len);
		broker_area_free(o->home, &o->areas[i].mem);
		free(o->areas[i].map);
	}
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

int
owner_rings_lend(struct env *env, struct owner *o, struct qp_alloc_params *p,
	struct owner_rings *rings, struct refusal *r)
{
	struct qp_alloc_params lent = *p;
	size_t rq, sq;
	int rc;

	lent.rq_mem = rings; /* anything: the rings are not in the QP's own block */
	if (qp_ring_bytes(p, &rq, &sq) != 0 || qp_footprint(&lent, &rings->private_bytes) != 0)
		return refuse(r, EINVAL, "no queues of these capacities");
	rings->entries = p->max_send_wr + p->max_recv_wr;
	rc = charge_qp(o, rings, r);
	if (rc != 0)
		return rc;
	rings->charged = true;
	rc = owner_place_get(env, o, rq, &rings->rq, &p->rq_mem, r);
	if (rc == 0 && sq != 0)
		rc = owner_place_get(env, o, sq, &rings->sq, &p->sq_mem, r);
	if (rc != 0)
		owner_rings_return(o, rings);
	return rc;
}

void
owner_rings_return(struct owner *o, struct owner_rings *rings)
{
	owner_place_put(o, &rings->rq);
	owner_place_put(o, &rings->sq);
	if (rings->charged) {
		owner_uncharge(o, OWNER_QPS, 1);
		owner_uncharge(o, OWNER_OUTSTANDING, rings->entries);
		owner_uncharge(o, OWNER_PRIVATE, rings->private_bytes);
	}
	rings->charged = false;
}
