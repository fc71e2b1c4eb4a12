/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: QPs of any worker take from them, the control lcore posts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf_json.h"
#include "env.h"
#include "log.h"
#include "objects.h"

struct object_srq *
object_srq_find(struct objects *objs, const char *name, struct refusal *r)
{
	return (struct object_srq *)(void *)names_get(&objs->srqs, "srq", name, r);
}

struct object_srq *
object_srq_by_id(struct objects *objs, uint32_t id)
{
	return (struct object_srq *)(void *)names_numbered(&objs->srqs, id);
}

/* Where a ring is: in an area of its own, or in a place of a client's. */
struct memory {
	void *base;
	struct mem_area area;
	struct owner_place place;
};

/* Memory of a ring for max_wr entries. */
static int
memory_get(struct objects *objs, const struct object_srq *srq, uint32_t max_wr, struct memory *m,
	struct refusal *r)
{
	const size_t bytes = ring_size(ring_entries(max_wr), ring_recv_stride(srq->conf.max_sge));
	int rc = -EINVAL;

	memset(m, 0, sizeof(*m));
	if (srq->owner != NULL && bytes != 0)
		return owner_place_get(objs->env, srq->owner, bytes, &m->place, &m->base, r);
	if (bytes != 0)
		rc = mem_area_create(&m->area, bytes, objs->env->w.numa_node, 0);
	m->base = m->area.base;
	if (rc != 0)
		return refuse(r, -rc, "no memory for a shared receive queue of %u entries: %s",
			max_wr, strerror(-rc));
	return 0;
}

static void
memory_put(const struct object_srq *srq, struct memory *m)
{
	if (srq->owner != NULL)
		owner_place_put(srq->owner, &m->place);
	else
		mem_area_destroy(&m->area);
}

/* A worker may be at it. There is one such at most: another move waits for the workers first. */
static void
old_keep(struct object_srq *srq, const struct memory *m)
{
	srq->has_old = true;
	srq->old_area = m->area;
	srq->old_place = m->place;
}

/* No worker is at it any more. */
static void
old_put(struct object_srq *srq)
{
	struct memory m = { .area = srq->old_area, .place = srq->old_place };

	if (srq->has_old)
		memory_put(srq, &m);
	srq->has_old = false;
}

static struct memory
memory_of(const struct object_srq *srq)
{
	struct memory m = { .area = srq->q.area };

	if (srq->owner != NULL)
		m.place = srq->place;
	return m;
}

static void
memory_set(struct object_srq *srq, const struct memory *m)
{
	srq->q.area = m->area;
	if (srq->owner != NULL)
		srq->place = m->place;
}

static struct object_srq *
alloc(void)
{
	const size_t size = (sizeof(struct object_srq) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	struct object_srq *srq = aligned_alloc(CACHE_LINE, size);

	if (srq != NULL)
		memset(srq, 0, size);
	return srq;
}

int
object_srq_create(struct objects *objs, const struct conf_srq *conf, struct refusal *r)
{
	struct object_srq *srq;

	return object_srq_create_in(objs, conf, NULL, &srq, r);
}

/* ---- of type XRC ----------------------------------------------------------------------------- */

_Static_assert(QP_SRQ_TABLE == CONF_SRQ_PLACES, "what the configuration checks");

static struct qp_srq *_Atomic *
slot_of(const struct objects *objs, uint32_t num)
{
	return &objs->env->w.srqs->slot[num % QP_SRQ_TABLE];
}

uint32_t
object_srqs_of_xrc(const struct objects *objs)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < QP_SRQ_TABLE; i++)
		n += atomic_load_explicit(slot_of(objs, i), memory_order_relaxed) != NULL;
	return n;
}

/* A number whose place in the workers' table is free: the one that is asked for, or any. */
static int
number_pick(struct objects *objs, const struct conf_srq *conf, uint32_t *num, struct refusal *r)
{
	const struct qp_srq *there;

	if ((conf->given & CONF_SRQ_NUM) != 0) {
		there = atomic_load_explicit(slot_of(objs, conf->srq_num), memory_order_relaxed);
		*num = conf->srq_num;
		return there == NULL
			       ? 0
			       : refuse(r, EEXIST,
					 "srq_num %u is taken, or its place is: by SRQ %u (numbers "
					 "that differ by a multiple of %u have one place)",
					 *num, there->num, QP_SRQ_TABLE);
	}
	*num = (uint32_t)object_random(objs) & 0xffffff;
	for (uint32_t i = 0; i < QP_SRQ_TABLE; i++, *num = (*num + 1) & 0xffffff)
		if (*num != 0 &&
			atomic_load_explicit(slot_of(objs, *num), memory_order_relaxed) == NULL)
			return 0;
	return refuse(r, ENOSPC, "there are %u XRC SRQs, and no more are possible", QP_SRQ_TABLE);
}

/* Domain, completion queue and number, of the SRQ's own and found again by its conf. */
static int
take_xrc(struct objects *objs, struct object_srq *srq, struct refusal *r)
{
	int rc;

	if (srq->conf.srq_type != CONF_SRQ_XRC)
		return 0;
	srq->xrcd = object_xrcd_find(objs, srq->conf.xrcd, r);
	if (srq->xrcd == NULL)
		return -ENOENT;
	srq->cq = object_cq_find(objs, srq->conf.cq, r);
	if (srq->cq == NULL)
		return -ENOENT;
	rc = number_pick(objs, &srq->conf, &srq->q.num, r);
	if (rc != 0)
		return rc;
	if (object_cq_share(objs, srq->cq) != 0)
		return refuse(r, EBUSY, "cq \"%s\": a worker does not answer", srq->cq->n.name);
	srq->conf.srq_num = srq->q.num;
	srq->conf.given |= CONF_SRQ_NUM;
	srq->q.xrcd = srq->xrcd->id;
	srq->q.cq = &srq->cq->q;
	return 0;
}

/* From here on requests find it. */
static void
show(struct objects *objs, struct object_srq *srq)
{
	if (srq->xrcd == NULL)
		return;
	srq->xrcd->users++;
	atomic_fetch_add_explicit(&srq->cq->q.users, 1, memory_order_relaxed);
	srq->hidden = false;
	atomic_store_explicit(slot_of(objs, srq->q.num), &srq->q, memory_order_release);
}

bool
object_srq_hide(struct objects *objs, struct object_srq *srq)
{
	if (srq->xrcd == NULL)
		return false;
	atomic_store_explicit(slot_of(objs, srq->q.num), NULL, memory_order_relaxed);
	srq->hidden = true;
	return true;
}

/* ---------------------------------------------------------------------------------------------- */

int
object_srq_create_in(struct objects *objs, const struct conf_srq *conf, struct owner *owner,
	struct object_srq **out, struct refusal *r)
{
	struct object_pd *pd = object_pd_find(objs, conf->pd, r);
	struct object_srq *srq;
	struct memory m;
	int rc;

	if (pd == NULL)
		return -ENOENT;
	rc = names_check(&objs->srqs, "srq", conf->name, r);
	if (rc != 0)
		return rc;
	srq = alloc();
	if (srq == NULL)
		return refuse(r, ENOMEM, "out of memory");
	srq->owner = owner;
	srq->conf = *conf;
	rc = take_xrc(objs, srq, r);
	if (rc == 0)
		rc = memory_get(objs, srq, conf->max_wr, &m, r);
	if (rc != 0) {
		free(srq);
		return rc;
	}
	memory_set(srq, &m);
	ring_srq_attach(
		&srq->q.ring, m.base, ring_entries(conf->max_wr), ring_recv_stride(conf->max_sge));
	ring_srq_producer(&srq->q.ring, &srq->rq);
	atomic_store_explicit(&srq->q.limit, conf->srq_limit, memory_order_relaxed);
	srq->q.id = names_number(&objs->srqs, &srq->n);
	srq->q.client = owner != NULL ? owner->id : 0;
	srq->q.pd = pd->id;
	srq->q.max_sge = conf->max_sge;
	srq->pd = pd;
	pd->users++;
	show(objs, srq);
	*out = srq;
	return names_add(&objs->srqs, &srq->n, conf->name);
}

/* Go on in memory for more entries; workers go on taking meanwhile. */
static int
grow(struct objects *objs, struct object_srq *srq, uint32_t max_wr, struct refusal *r)
{
	struct memory m, old = memory_of(srq);
	int rc = memory_get(objs, srq, max_wr, &m, r);

	if (rc != 0)
		return rc;
	/* A worker that has not left the ring before would be lost by a second move. */
	if (ask_all(objs->env) != 0) {
		memory_put(srq, &m);
		return refuse(r, EBUSY, "srq \"%s\": a worker does not answer", srq->n.name);
	}
	old_put(srq);
	ring_srq_move(&srq->q.ring, m.base, ring_entries(max_wr));
	if (atomic_load(&srq->q.error))
		ring_srq_fail(&srq->q.ring);
	ring_srq_producer(&srq->q.ring, &srq->rq);
	memory_set(srq, &m);
	old_keep(srq, &old);
	if (ask_all(objs->env) == 0)
		old_put(srq);
	return 0;
}

int
object_srq_modify(struct objects *objs, struct object_srq *srq, const uint32_t *max_wr,
	const uint32_t *limit, struct refusal *r)
{
	const uint32_t most = max_wr != NULL ? *max_wr : srq->conf.max_wr;
	const uint32_t posted = ring_srq_count(&srq->q.ring);
	uint32_t now =
		limit != NULL ? *limit : atomic_load_explicit(&srq->q.limit, memory_order_relaxed);
	int rc = 0;

	if (now > most)
		return refuse(r, EINVAL, "srq_limit must be a number from 0 to max_wr (%u), not %u",
			most, now);
	if (most < posted)
		return refuse(r, EINVAL, "max_wr must be at least %u, which are posted, not %u",
			posted, most);
	if (most > srq->rq.mask + 1)
		rc = grow(objs, srq, most, r);
	if (rc != 0)
		return rc;
	srq->conf.max_wr = most;
	if (limit != NULL || srq->conf.srq_limit > most)
		srq->conf.srq_limit = now;
	if (limit != NULL)
		atomic_store_explicit(&srq->q.limit, now, memory_order_release);
	return 0;
}

json_t *
object_srq_json(struct object_srq *srq)
{
	struct conf_srq now = srq->conf;
	json_t *o;

	now.srq_limit = atomic_load_explicit(&srq->q.limit, memory_order_relaxed);
	o = conf_encode_srq(&now);
	if (o == NULL)
		return NULL;
	json_object_set_new(o, "posted", json_integer(ring_srq_count(&srq->q.ring)));
	json_object_set_new(o, "users", json_integer(srq->q.users));
	json_object_set_new(o, "error",
		json_boolean(atomic_load_explicit(&srq->q.error, memory_order_relaxed)));
	return o;
}

int
object_srq_destroy(struct objects *objs, struct object_srq *srq, struct refusal *r)
{
	struct memory m = memory_of(srq);

	if (srq->q.users != 0)
		return refuse(
			r, EBUSY, "srq \"%s\" is in use by %u QPs", srq->n.name, srq->q.users);
	/* Targets do not count: what comes next names no SRQ. */
	if (!srq->hidden && object_srq_hide(objs, srq) && ask_all(objs->env) != 0) {
		srq->hidden = false;
		atomic_store_explicit(slot_of(objs, srq->q.num), &srq->q, memory_order_release);
		return refuse(r, EBUSY, "srq \"%s\": a worker does not answer", srq->n.name);
	}
	/* Its QPs were detached: no worker has it, and no later message can name it. */
	env_drain(objs->env);
	objs->up.gone(objs->up.ctx, OBJECT_SRQ, srq->q.id);
	srq->pd->users--;
	if (srq->xrcd != NULL) {
		srq->xrcd->users--;
		atomic_fetch_sub_explicit(&srq->cq->q.users, 1, memory_order_relaxed);
	}
	names_remove(&objs->srqs, &srq->n);
	old_put(srq);
	memory_put(srq, &m);
	free(srq);
	return 0;
}
