/* SPDX-License-Identifier: BSD-3-Clause */
#include "objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "internal.h"
#include "log.h"

uint64_t
object_random(struct control *c)
{
	uint64_t v;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) == (ssize_t)sizeof(v))
		return v;
	/* splitmix64 over the clock: still different each time. */
	c->random_fallback += 0x9e3779b97f4a7c15u + c->env.w.clock();
	v = c->random_fallback;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

static struct named *
find(const struct names *t, const char *kind, const char *name, struct refusal *r)
{
	struct named *o = names_find(t, name);

	if (o == NULL)
		refuse(r, ENOENT, "%s \"%s\" does not exist", kind, name);
	return o;
}

struct object_pd *
object_pd_find(struct control *c, const char *name, struct refusal *r)
{
	return (struct object_pd *)(void *)find(&c->pds, "pd", name, r);
}

struct object_mr *
object_mr_find(struct control *c, const char *name, struct refusal *r)
{
	return (struct object_mr *)(void *)find(&c->mrs, "mr", name, r);
}

struct object_cq *
object_cq_find(struct control *c, const char *name, struct refusal *r)
{
	return (struct object_cq *)(void *)find(&c->cqs, "cq", name, r);
}

struct object_cq *
object_cq_by_id(struct control *c, uint32_t id)
{
	struct named *o;

	TAILQ_FOREACH (o, &c->cqs.all, all) {
		struct object_cq *cq = (struct object_cq *)(void *)o;

		if (cq->q.id == id)
			return cq;
	}
	return NULL;
}

/* Common to all creates: is the name free, and is there room for one more? */
static int
name_check(const struct names *t, const char *kind, const char *name, struct refusal *r)
{
	if (names_find(t, name) != NULL)
		return refuse(r, EEXIST, "%s \"%s\" exists already", kind, name);
	if (t->n >= CONF_MAX_OBJECTS)
		return refuse(
			r, ENOSPC, "there are %u %ss already, and no more are allowed", t->n, kind);
	return 0;
}

static int
no_memory(struct refusal *r)
{
	return refuse(r, ENOMEM, "out of memory");
}

int
object_pd_create(struct control *c, const struct conf_pd *conf, struct refusal *r)
{
	struct object_pd *pd;
	int rc = name_check(&c->pds, "pd", conf->name, r);

	if (rc != 0)
		return rc;
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return no_memory(r);
	pd->id = ++c->next_pd;
	return names_add(&c->pds, &pd->n, conf->name);
}

int
object_pd_destroy(struct control *c, struct object_pd *pd, struct refusal *r)
{
	if (pd->users != 0)
		return refuse(r, EBUSY, "pd \"%s\" is in use by %u objects (MRs, SRQs, QPs)",
			pd->n.name, pd->users);
	names_remove(&c->pds, &pd->n);
	free(pd);
	return 0;
}

int
object_cq_create(struct control *c, const struct conf_cq *conf, struct refusal *r)
{
	struct object_cq *cq;

	return object_cq_create_in(c, conf, NULL, &cq, r);
}

int
object_cq_create_in(struct control *c, const struct conf_cq *conf, void *mem,
	struct object_cq **out, struct refusal *r)
{
	const uint32_t entries = ring_entries(conf->cqe);
	struct object_cq *cq;
	int rc = name_check(&c->cqs, "cq", conf->name, r);

	if (rc != 0)
		return rc;
	if (entries == 0)
		return refuse(r, EINVAL, "cqe %u is above %u", conf->cqe, RING_MAX_ENTRIES);
	cq = aligned_alloc(CACHE_LINE, (sizeof(*cq) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (cq == NULL)
		return no_memory(r);
	memset(cq, 0, sizeof(*cq));
	if (mem == NULL) {
		rc = mem_area_create(&cq->q.area, ring_size(entries, sizeof(struct ring_cqe)),
			c->env.w.numa_node, 0);
		mem = cq->q.area.base;
	}
	if (rc != 0) {
		free(cq);
		return refuse(r, -rc, "no memory for a completion queue of %u entries: %s",
			conf->cqe, strerror(-rc));
	}
	ring_cq_attach(&cq->q.ring, mem, entries, conf->cqe, true);
	cq->q.id = ++c->next_cq;
	cq->cqe = conf->cqe;
	memcpy(cq->q.name, conf->name, sizeof(cq->q.name));
	*out = cq;
	return names_add(&c->cqs, &cq->n, conf->name);
}

static int
claim(struct control *c, struct qp_cq *cq, uint32_t worker)
{
	const uint8_t own = (uint8_t)(worker + 1);
	const uint8_t now = atomic_load_explicit(&cq->producer, memory_order_relaxed);
	int rc;

	if (now == own || now == CQ_PRODUCER_ANY)
		return 0;
	if (now == CQ_PRODUCER_NONE) {
		atomic_store_explicit(&cq->producer, own, memory_order_relaxed);
		return 0;
	}
	/* Relaxed, since the messages behind it carry it. CHANGING: somebody did not answer. */
	atomic_store_explicit(&cq->producer, CQ_PRODUCER_CHANGING, memory_order_relaxed);
	rc = ask_all(&c->env);
	if (rc == 0)
		atomic_store_explicit(&cq->producer, CQ_PRODUCER_ANY, memory_order_relaxed);
	return rc;
}

int
object_cqs_claim(struct control *c, const struct qp *qp, uint32_t worker)
{
	int rc = claim(c, qp->send_cq, worker);

	return rc != 0 ? rc : claim(c, qp->recv_cq, worker);
}

int
object_cq_destroy(struct control *c, struct object_cq *cq, struct refusal *r)
{
	const uint32_t users = atomic_load_explicit(&cq->q.users, memory_order_relaxed);

	if (users != 0)
		return refuse(
			r, EBUSY, "cq \"%s\" is in use by %u queues of QPs", cq->n.name, users);
	/* Its QPs were detached, so nothing behind these messages can name it any more. */
	env_drain(&c->env);
	events_forget(c, EVENT_OF_CQ, cq->q.id);
	notify_forget(c, cq);
	names_remove(&c->cqs, &cq->n);
	mem_area_destroy(&cq->q.area);
	free(cq);
	return 0;
}

void
objects_fini(struct control *c)
{
	struct refusal r;
	struct named *o;

	while ((o = TAILQ_FIRST(&c->srqs.all)) != NULL) {
		if (object_srq_destroy(c, (struct object_srq *)(void *)o, &r) != 0) {
			log_error("%s: left behind", r.text);
			break;
		}
	}
	while ((o = TAILQ_FIRST(&c->mrs.all)) != NULL)
		object_mr_destroy(c, (struct object_mr *)(void *)o, &r);
	while ((o = TAILQ_FIRST(&c->cqs.all)) != NULL) {
		if (object_cq_destroy(c, (struct object_cq *)(void *)o, &r) != 0) {
			log_error("%s: left behind", r.text);
			break;
		}
	}
	while ((o = TAILQ_FIRST(&c->pds.all)) != NULL) {
		if (object_pd_destroy(c, (struct object_pd *)(void *)o, &r) != 0) {
			log_error("%s: left behind", r.text);
			break;
		}
	}
	names_fini(&c->srqs);
	names_fini(&c->mrs);
	names_fini(&c->cqs);
	names_fini(&c->pds);
}
