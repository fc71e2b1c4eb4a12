/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "env.h"
#include "object_notify.h"
#include "objects.h"

struct object_cq *
object_cq_find(struct objects *objs, const char *name, struct refusal *r)
{
	return (struct object_cq *)(void *)names_get(&objs->cqs, "cq", name, r);
}

struct object_cq *
object_cq_by_id(struct objects *objs, uint32_t id)
{
	return (struct object_cq *)(void *)names_numbered(&objs->cqs, id);
}

int
object_cq_create(struct objects *objs, const struct conf_cq *conf, struct refusal *r)
{
	struct object_cq *cq;

	return object_cq_create_in(objs, conf, NULL, &cq, r);
}

int
object_cq_create_in(struct objects *objs, const struct conf_cq *conf, void *mem,
	struct object_cq **out, struct refusal *r)
{
	const uint32_t entries = ring_entries(conf->cqe);
	struct object_cq *cq;
	int rc = names_check(&objs->cqs, "cq", conf->name, r);

	if (rc != 0)
		return rc;
	if (entries == 0)
		return refuse(r, EINVAL, "cqe %u is above %u", conf->cqe, RING_MAX_ENTRIES);
	cq = aligned_alloc(CACHE_LINE, (sizeof(*cq) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (cq == NULL)
		return refuse(r, ENOMEM, "out of memory");
	memset(cq, 0, sizeof(*cq));
	if (mem == NULL) {
		rc = mem_area_create(&cq->q.area, ring_size(entries, sizeof(struct ring_cqe)),
			objs->env->w.numa_node, 0);
		mem = cq->q.area.base;
	}
	if (rc != 0) {
		free(cq);
		return refuse(r, -rc, "no memory for a completion queue of %u entries: %s",
			conf->cqe, strerror(-rc));
	}
	ring_cq_attach(&cq->q.ring, mem, entries, conf->cqe, true);
	cq->q.id = names_number(&objs->cqs, &cq->n);
	cq->cqe = conf->cqe;
	memcpy(cq->q.name, conf->name, sizeof(cq->q.name));
	*out = cq;
	return names_add(&objs->cqs, &cq->n, conf->name);
}

/* By the application's index, which it may have written anything to. */
static uint32_t
standing(const struct ring_cq *q, uint32_t cqe)
{
	const uint32_t n = atomic_load_explicit(&q->tail, memory_order_relaxed) -
			   atomic_load_explicit(&q->sh->cons, memory_order_relaxed);

	return n < cqe ? n : cqe;
}

int
object_cq_resize(
	struct objects *objs, struct object_cq *cq, void *mem, uint32_t cqe, struct refusal *r)
{
	const size_t bytes = (sizeof(struct ring_cq) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	struct ring_cq *old = qp_cq_ring(&cq->q), *now;
	uint32_t n;

	ASSERT(cq->leaving == NULL);
	if (atomic_load_explicit(&cq->q.error, memory_order_relaxed))
		return refuse(r, EIO, "cq \"%s\" has overflowed: make another", cq->n.name);
	/* Of a worker that is known not to answer nothing is made to depend. */
	if (ask_all(objs->env) != 0)
		return refuse(r, ETIMEDOUT, "cq \"%s\" is as before: a worker does not answer",
			cq->n.name);
	n = standing(old, cq->cqe); /* with that of what was posted before */
	if (cqe < n)
		return refuse(
			r, EINVAL, "cqe %u: %u completions stand in cq \"%s\"", cqe, n, cq->n.name);
	now = aligned_alloc(CACHE_LINE, bytes);
	if (now == NULL)
		return refuse(r, ENOMEM, "out of memory");
	memset(now, 0, bytes);
	ring_cq_attach(now, mem, ring_entries(cqe), cqe, true);
	ring_cq_follow(now, old);
	atomic_store_explicit(&cq->q.moved, now, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	RING_STORE(uint32_t, &old->limit, 0);
	cq->cqe = cqe;
	cq->leaving = old;
	return object_cq_resize_end(objs, cq, r);
}

int
object_cq_resize_end(struct objects *objs, struct object_cq *cq, struct refusal *r)
{
	if (ask_all(objs->env) != 0)
		return refuse(r, ETIMEDOUT, "cq \"%s\": a worker does not answer: call again",
			cq->n.name);
	if (cq->leaving != &cq->q.ring)
		free(cq->leaving);
	cq->leaving = NULL;
	return 0;
}

static int
share(struct objects *objs, struct qp_cq *cq)
{
	int rc;

	/* Relaxed, since the messages behind it carry it. CHANGING: somebody did not answer. */
	atomic_store_explicit(&cq->producer, CQ_PRODUCER_CHANGING, memory_order_relaxed);
	rc = ask_all(objs->env);
	if (rc == 0)
		atomic_store_explicit(&cq->producer, CQ_PRODUCER_ANY, memory_order_relaxed);
	return rc;
}

static int
claim(struct objects *objs, struct qp_cq *cq, uint32_t worker)
{
	const uint8_t own = (uint8_t)(worker + 1);
	const uint8_t now = atomic_load_explicit(&cq->producer, memory_order_relaxed);

	if (now == own || now == CQ_PRODUCER_ANY)
		return 0;
	if (now == CQ_PRODUCER_NONE) {
		atomic_store_explicit(&cq->producer, own, memory_order_relaxed);
		return 0;
	}
	return share(objs, cq);
}

int
object_cqs_claim(
	struct objects *objs, struct object_cq *send, struct object_cq *recv, uint32_t worker)
{
	int rc = send != NULL ? claim(objs, &send->q, worker) : 0;

	return rc != 0 || recv == NULL ? rc : claim(objs, &recv->q, worker);
}

int
object_cq_share(struct objects *objs, struct object_cq *cq)
{
	if (atomic_load_explicit(&cq->q.producer, memory_order_relaxed) == CQ_PRODUCER_ANY)
		return 0;
	return share(objs, &cq->q);
}

int
object_cq_destroy(struct objects *objs, struct object_cq *cq, struct refusal *r)
{
	const uint32_t users = atomic_load_explicit(&cq->q.users, memory_order_relaxed);

	if (users != 0)
		return refuse(r, EBUSY, "cq \"%s\" is in use by %u queues of QPs, or SRQs",
			cq->n.name, users);
	/* Its QPs were detached, so nothing behind these messages can name it any more. */
	env_drain(objs->env);
	objs->up.gone(objs->up.ctx, OBJECT_CQ, cq->q.id);
	object_notify_forget(objs, cq);
	names_remove(&objs->cqs, &cq->n);
	mem_area_destroy(&cq->q.area);
	if (cq->leaving != &cq->q.ring)
		free(cq->leaving);
	free(atomic_load_explicit(&cq->q.moved, memory_order_relaxed));
	free(cq);
	return 0;
}
