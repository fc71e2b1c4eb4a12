/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ask.h"
#include "log.h"
#include "mem_guard.h"
#include "admin.h"

#define RETRY_NS (500 * TIME_NS_PER_MS)

/* ---- handles and names ----------------------------------------------------------------------- */

uint32_t
client_table_add(struct client_table *t, void *object)
{
	uint32_t i = 0;

	if (t->n == t->room) {
		const uint32_t room = t->room == 0 ? 16 : t->room * 2;
		void **v = realloc(t->v, room * sizeof(*v));

		if (v == NULL)
			return 0;
		memset(v + t->room, 0, (room - t->room) * sizeof(*v));
		t->v = v;
		i = t->room;
		t->room = room;
	}
	while (t->v[i] != NULL)
		i++;
	t->v[i] = object;
	t->n++;
	return i + 1;
}

void *
client_table_get(const struct client_table *t, uint32_t handle)
{
	return handle != 0 && handle <= t->room ? t->v[handle - 1] : NULL;
}

void
client_table_remove(struct client_table *t, uint32_t handle)
{
	t->v[handle - 1] = NULL;
	t->n--;
}

/* ---- doorbells ------------------------------------------------------------------------------- */

/* Two slots for each QP that the client may have, and some to spare. */
static uint32_t
bell_entries(const struct clients *apps)
{
	const uint32_t most = apps->env->w.conf->control.client_limits.qps;
	uint32_t entries = 64;

	while (entries < RING_BELLS_MAX && entries / 3 < most)
		entries <<= 1;
	return entries;
}

static int
bells_open(struct clients *apps, struct client *cl, struct refusal *r)
{
	const uint32_t entries = bell_entries(apps);

	cl->bells = calloc(apps->env->w.workers_n, sizeof(cl->bells[0]));
	if (cl->bells == NULL)
		return refuse(r, ENOMEM, "out of memory");
	for (uint32_t w = 0; w < apps->env->w.workers_n; w++) {
		struct client_bells *b = &cl->bells[w];
		const struct ask_request q = { .worker = (uint16_t)w,
			.msg = { .type = MBOX_CLIENT_ATTACH, .client.client = &b->worker_side } };
		void *mem;
		int rc = owner_place_get(
			apps->env, &cl->o, ring_bells_size(entries), &b->place, &mem, r);

		if (rc != 0)
			return rc;
		b->entries = entries;
		ring_bells_attach(&b->worker_side.bells, mem, entries);
		b->worker_side.id = cl->o.id;
		b->attached = true; /* or about to be: it has to be detached in any case */
		rc = ask_and_wait(apps->env, &q);
		if (rc != 0)
			return ask_refuse(apps->env, (uint16_t)w, rc, r);
	}
	return 0;
}

/* @return 0, or -EAGAIN: a worker has not answered. */
static int
bells_close(struct clients *apps, struct client *cl)
{
	int rc = 0;

	for (uint32_t w = 0; cl->bells != NULL && w < apps->env->w.workers_n; w++) {
		struct client_bells *b = &cl->bells[w];
		const struct ask_request q = { .worker = (uint16_t)w,
			.msg = { .type = MBOX_CLIENT_DETACH, .client.client = &b->worker_side } };

		if (b->attached && ask_and_wait(apps->env, &q) == 0)
			b->attached = false;
		if (b->attached)
			rc = -EAGAIN;
	}
	return rc;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* To ERR, flushed, detached, freed. @return 0, or -EAGAIN: a worker has not answered. */
static int
end_qps(struct clients *apps, struct client *cl)
{
	struct admin_qp *recs[ADMIN_WINDOW], *rec;
	uint32_t n, before;

	do {
		before = cl->o.qps_n;
		n = 0;
		TAILQ_FOREACH (rec, &cl->o.qps, of_owner) {
			if (n < ADMIN_WINDOW && !rec->pending)
				recs[n++] = rec;
		}
		admin_many_end(apps->admin, recs, n);
	} while (n != 0 && cl->o.qps_n < before);
	return cl->o.qps_n == 0 ? 0 : -EAGAIN;
}

/* All keys first, then one round trip for all of them. */
static int
end_regions(struct clients *apps, struct client *cl)
{
	for (uint32_t i = 0; i < cl->mrs.room; i++) {
		if (cl->mrs.v[i] != NULL)
			object_mr_revoke(apps->objects, cl->mrs.v[i]);
	}
	if (cl->mrs.n != 0 && ask_all(apps->env) != 0)
		return -EAGAIN;
	for (uint32_t i = 0; i < cl->mrs.room; i++) {
		if (cl->mrs.v[i] != NULL)
			object_mr_free_revoked(apps->objects, cl->mrs.v[i]);
	}
	return 0;
}

static void
end_objects(struct clients *apps, struct client *cl)
{
	struct refusal r;

	for (uint32_t i = 0; i < cl->cqs.room; i++) {
		struct client_cq *cq = cl->cqs.v[i];

		if (cq == NULL)
			continue;
		if (cq->channel != NULL)
			TAILQ_REMOVE(&apps->watched, cq, watched);
		if (object_cq_destroy(apps->objects, cq->cq, &r) != 0)
			log_error("client %u: %s", cl->o.id, r.text);
		free(cq);
	}
	for (uint32_t i = 0; i < cl->srqs.room; i++) {
		struct client_srq *srq = cl->srqs.v[i];

		if (srq != NULL && object_srq_destroy(apps->objects, srq->srq, &r) != 0)
			log_error("client %u: %s", cl->o.id, r.text);
		free(srq);
	}
	for (uint32_t i = 0; i < cl->pds.room; i++) {
		if (cl->pds.v[i] != NULL && object_pd_destroy(apps->objects, cl->pds.v[i], &r) != 0)
			log_error("client %u: %s", cl->o.id, r.text);
	}
	for (uint32_t i = 0; i < cl->channels.room; i++) {
		struct client_channel *ch = cl->channels.v[i];

		if (ch != NULL)
			close(ch->fd);
		free(ch);
	}
}

static void
release(struct clients *apps, struct client *cl)
{
	TAILQ_REMOVE(&apps->all, cl, all);
	apps->n--;
	owner_areas_free(&cl->o);
	if (cl->async_fd >= 0)
		close(cl->async_fd);
	free(cl->pds.v);
	free(cl->mrs.v);
	free(cl->cqs.v);
	free(cl->srqs.v);
	free(cl->channels.v);
	free(cl->bells);
	free(cl->events);
	free(cl);
}

/* Whatever may still be touched by a worker goes first; memory goes last. */
static void
reap(struct clients *apps, struct client *cl)
{
	if (end_qps(apps, cl) != 0 || bells_close(apps, cl) != 0 || end_regions(apps, cl) != 0) {
		cl->retry_at = apps->env->now + RETRY_NS;
		return;
	}
	end_objects(apps, cl);
	log_info("client %u: gone", cl->o.id);
	release(apps, cl);
}

void
client_close(struct clients *apps, struct client *cl)
{
	if (cl->conn != NULL)
		cl->conn->app = NULL;
	cl->conn = NULL;
	cl->o.gone = true;
	reap(apps, cl);
}

void
client_end(struct client *cl, const char *why)
{
	if (cl->conn == NULL || cl->conn->dead)
		return;
	log_warn("client %u (pid %d): %s; disconnected", cl->o.id, cl->o.process.pid, why);
	cl->conn->dead = true;
}

/* ---- the beginning --------------------------------------------------------------------------- */

int
client_open(struct clients *apps, struct rpc_client *conn, const char *name, struct refusal *r)
{
	const uint32_t most = apps->env->w.conf->control.client_limits.clients;
	struct client *cl;
	int rc;

	if (conn->app != NULL)
		return refuse(r, EEXIST, "this connection is client %u already", conn->app->o.id);
	if (apps->n >= most)
		return refuse(r, ENOSPC,
			"there are %u clients, and control.client_limits.clients "
			"is %u",
			apps->n, most);
	rc = client_signal_init(apps);
	if (rc != 0)
		return refuse(
			r, -rc, "this kernel cannot signal clients (io_setup: %s)", strerror(-rc));
	cl = calloc(1, sizeof(*cl));
	if (cl == NULL)
		return refuse(r, ENOMEM, "out of memory");
	cl->o.id = ++apps->last_id;
	cl->conn = conn;
	cl->o.process = conn->peer;
	snprintf(cl->o.name, sizeof(cl->o.name), "%s", name);
	TAILQ_INIT(&cl->o.qps);
	TAILQ_INSERT_TAIL(&apps->all, cl, all);
	apps->n++;
	cl->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	cl->events = calloc(CLIENT_EVENTS, sizeof(cl->events[0]));
	rc = cl->async_fd < 0 || cl->events == NULL
		     ? refuse(r, ENOMEM, "no memory, or no descriptor")
		     : bells_open(apps, cl, r);
	if (rc != 0) {
		client_close(apps, cl);
		return rc;
	}
	conn->app = cl;
	log_info("client %u: pid %d, uid %u%s%s", cl->o.id, cl->o.process.pid, cl->o.process.uid,
		name[0] != '\0' ? ", " : "", name);
	return 0;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Whose memory failed under a worker? */
static void
end_faulty(struct clients *apps)
{
	struct client *cl;

	TAILQ_FOREACH (cl, &apps->all, all) {
		bool hit = false;

		for (uint32_t i = 0; i < cl->o.areas_n; i++)
			hit = hit || mem_guard_is_hit(&cl->o.areas[i].mem);
		for (uint32_t i = 0; i < cl->mrs.room; i++) {
			const struct object_mr *mr = cl->mrs.v[i];

			hit = hit || (mr != NULL && mem_guard_is_hit(&mr->region->area));
		}
		if (hit)
			client_end(cl, "its memory went away");
	}
}

uint32_t
clients_poll(struct clients *apps)
{
	struct clients *cs = apps;
	const unsigned int faults = mem_guard_faults();
	struct client *cl, *next;
	uint32_t work = 0;

	if (cs->n == 0)
		return 0;
	if (faults != cs->faults_seen) {
		cs->faults_seen = faults;
		end_faulty(apps);
		work++;
	}
	for (cl = TAILQ_FIRST(&cs->all); cl != NULL; cl = next) {
		next = TAILQ_NEXT(cl, all);
		if (cl->conn == NULL && apps->env->now >= cl->retry_at) {
			reap(apps, cl);
			work++;
		}
	}
	return work + client_notify_poll(apps);
}

void
clients_init(struct clients *apps)
{
	TAILQ_INIT(&apps->all);
	TAILQ_INIT(&apps->watched);
	apps->null_fd = -1;
	apps->faults_seen = mem_guard_faults();
}

void
clients_fini(struct clients *apps)
{
	struct client *cl, *next;

	for (cl = TAILQ_FIRST(&apps->all); cl != NULL; cl = next) {
		next = TAILQ_NEXT(cl, all);
		client_close(apps, cl);
	}
	client_signal_fini(apps);
}
