/* SPDX-License-Identifier: BSD-3-Clause */
#include "app.h"

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

/* ---- handles and names ----------------------------------------------------------------------- */

uint32_t
app_table_add(struct app_table *t, void *object)
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
app_table_get(const struct app_table *t, uint32_t handle)
{
	return handle != 0 && handle <= t->room ? t->v[handle - 1] : NULL;
}

void
app_table_remove(struct app_table *t, uint32_t handle)
{
	t->v[handle - 1] = NULL;
	t->n--;
}

/* ---- doorbells ------------------------------------------------------------------------------- */

/* Two slots for each QP that the client may have, and some to spare. */
static uint32_t
bell_entries(const struct conf *conf)
{
	const uint32_t most = conf->control.client_limits.qps;
	uint32_t entries = 64;

	while (entries < RING_BELLS_MAX && entries / 3 < most)
		entries <<= 1;
	return entries;
}

size_t
app_first_area(const struct conf *conf)
{
	const size_t bells = conf->lcores.n_workers * ring_bells_size(bell_entries(conf));

	return bells > OWNER_AREA_FIRST ? bells : OWNER_AREA_FIRST;
}

static int
bells_open(struct apps *apps, struct app *app, struct refusal *r)
{
	const uint32_t entries = bell_entries(apps->env->w.conf);

	app->bells = calloc(apps->env->w.workers_n, sizeof(app->bells[0]));
	if (app->bells == NULL)
		return refuse(r, ENOMEM, "out of memory");
	for (uint32_t w = 0; w < apps->env->w.workers_n; w++) {
		struct app_bells *b = &app->bells[w];
		void *mem;
		int rc = owner_place_get(
			apps->env, &app->o, ring_bells_size(entries), &b->place, &mem, r);

		if (rc != 0)
			return rc;
		b->entries = entries;
		ring_bells_attach(&b->worker_side.bells, mem, entries);
		b->worker_side.id = app->o.id;
		b->worker_side.weight = app->weight;
		b->worker_side.rate = app->rate;
		b->worker_side.user = (uint64_t)app->o.process.uid + 1;
	}
	return 0;
}

static void
bells_heard(void *ctx UNUSED, struct ask *a)
{
	struct app_bells *b = a->arg;

	b->asking = NULL;
	b->heard = a->done.rc == 0;
}

/* A worker is asked once, and waited for with each request: questions have few places. */
static int
bells_tell(struct env *env, uint16_t w, struct app_bells *b)
{
	const struct ask_request q = { .worker = w,
		.msg = { .type = MBOX_CLIENT_ATTACH, .client.client = &b->worker_side } };
	struct ask *a = b->asking;
	int rc;

	b->attached = true;
	if (a == NULL) {
		a = ask_send(env, &q);
		if (a == NULL) /* it has not come to what it was asked before */
			return -ETIMEDOUT;
		rc = ask_wait(env, a);
	} else {
		rc = ask_wait_again(env, a);
	}
	if (a->state == ASK_FORGOTTEN) {
		ask_forget(a, bells_heard, NULL, b);
		b->asking = a;
		return rc;
	}
	ask_release(env, a);
	b->asking = NULL;
	b->heard = rc == 0;
	return rc;
}

/*
 * Workers hear them from now on: nobody can take their pages away any more. One that is late is
 * waited for once more with the next request.
 */
static int
bells_attach(struct apps *apps, struct app *app, struct refusal *r)
{
	for (uint32_t w = 0; w < apps->env->w.workers_n; w++) {
		struct app_bells *b = &app->bells[w];
		const int rc = b->heard ? 0 : bells_tell(apps->env, (uint16_t)w, b);

		if (rc != 0)
			return ask_refuse(apps->env, (uint16_t)w, rc, r);
	}
	app->heard = true;
	return 0;
}

int
app_share_told(struct apps *apps, struct app *app, struct refusal *r)
{
	int rc = 0;

	for (uint32_t w = 0; rc == 0 && w < apps->env->w.workers_n; w++) {
		struct app_bells *b = &app->bells[w];
		const struct ask_request q = { .worker = (uint16_t)w,
			.msg = { .type = MBOX_CLIENT_SET,
				.client = { &b->worker_side, app->rate, app->weight } } };

		if (!b->attached) { /* it is told so with what it gets then */
			b->worker_side.weight = app->weight;
			b->worker_side.rate = app->rate;
			continue;
		}
		rc = ask_and_wait(apps->env, &q);
		if (rc != 0)
			ask_refuse(apps->env, (uint16_t)w, rc, r);
	}
	return rc;
}

int
app_ready(struct apps *apps, struct app *app, struct refusal *r)
{
	const int rc = owner_areas_seal(&app->o);

	app->o.map_first = false;
	if (rc == -EINPROGRESS) {
		env_put_off(apps->env);
		return refuse(r, ETIMEDOUT, "the rings of client %u are not sealed yet", app->o.id);
	}
	if (rc != 0) {
		app_end(apps, app, "its rings cannot be sealed");
		return refuse(r, -rc, "the rings of client %u cannot be sealed", app->o.id);
	}
	return app->heard ? 0 : bells_attach(apps, app, r);
}

void
app_end(struct apps *apps, struct app *app, const char *why)
{
	if (app->conn == NULL || app->conn->dead)
		return;
	log_rated(&apps->told.ended, apps->env->now, LOG_WARN,
		"client %u (pid %d): %s; disconnected", app->o.id, app->o.process.pid, why);
	app->conn->dead = true;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* What is left when everything of the configuration has been made. */
static void
count_supply(struct apps *apps)
{
	const struct env_wiring *w = &apps->env->w;
	struct owner_supply s;

	owner_supply_look(&s);
	s.keys = mem_table_room(w->mem);
	s.cm_ids = w->conf->cm.connections;
	s.cm_listeners = CONF_CM_LISTENERS;
	s.cm_pending = w->conf->cm.half_open;
	s.qps = w->qps->entries;
	for (uint32_t i = 0; i < w->workers_n; i++)
		s.qps -= apps->admin->worker_qps[i];
	s.xrc_srqs = QP_SRQ_TABLE - object_srqs_of_xrc(apps->objects);
	owner_users_supply(&apps->users, &s);
}

int
app_open(struct apps *apps, struct rpc_client *conn, const char *name, struct mem_area *first,
	struct refusal *r)
{
	struct app *app;
	int rc;

	if (conn->app != NULL)
		return refuse(r, EEXIST, "this connection is client %u already", conn->app->o.id);
	if (!apps->users.counted)
		count_supply(apps);
	app = calloc(1, sizeof(*app));
	if (app == NULL)
		return refuse(r, ENOMEM, "out of memory");
	app->o.process = conn->peer;
	rc = owner_user_join(&apps->users, &app->o, conn->operator, r);
	if (rc != 0) {
		owner_user_leave(&apps->users, &app->o);
		free(app);
		return rc;
	}
	app->o.id = ++apps->last_id;
	app->conn = conn;
	app->weight = apps->env->w.conf->control.client_limits.weight;
	app->rate = apps->env->w.conf->control.client_limits.rate;
	app->o.home = broker_conn_hold(conn->conn);
	snprintf(app->o.name, sizeof(app->o.name), "%s", name);
	TAILQ_INIT(&app->o.qps);
	TAILQ_INIT(&app->o.opened);
	TAILQ_INSERT_TAIL(&apps->all, app, all);
	apps->n++;
	app->async = broker_signal_new(app->o.home, EFD_SEMAPHORE);
	app->events = calloc(APP_EVENTS, sizeof(app->events[0]));
	app->events_room = APP_EVENTS;
	rc = app->async == NULL || app->events == NULL
		     ? refuse(r, ENOMEM, "no memory, or no descriptor")
		     : 0;
	app->o.opening = true;
	if (rc == 0 && first->base != NULL)
		rc = owner_area_give(&app->o, first, r);
	if (rc == 0)
		rc = bells_open(apps, app, r);
	app->o.opening = false;
	if (rc != 0) {
		app_close(apps, app);
		return rc;
	}
	rpc_server_is_app(conn, app);
	log_rated(&apps->told.come, apps->env->now, LOG_INFO, "client %u: pid %d, uid %u%s%s",
		app->o.id, app->o.process.pid, app->o.process.uid, name[0] != '\0' ? ", " : "",
		name);
	return 0;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Whose memory failed under a worker? Of those that end already regions may be freed. */
static void
end_faulty(struct apps *apps)
{
	struct app *app;

	TAILQ_FOREACH (app, &apps->all, all) {
		bool hit = false;

		if (app->conn == NULL)
			continue;
		for (uint32_t i = 0; i < app->o.areas_n; i++)
			hit = hit || mem_guard_is_hit(&app->o.areas[i].mem);
		for (uint32_t i = 0; i < app->mrs.room; i++) {
			const struct object_mr *mr = app->mrs.v[i];

			hit = hit || (mr != NULL && mr->memory != NULL &&
					     mem_guard_is_hit(broker_memory_area(mr->memory)));
		}
		if (hit)
			app_end(apps, app, "its memory went away");
	}
}

uint32_t
apps_poll(struct apps *apps)
{
	const unsigned int faults = mem_guard_faults();
	struct app *app, *next;
	uint32_t work = 0;
	ns_t end;

	if (apps->n == 0)
		return 0;
	end = apps->env->turns.began + APP_TURN_NS;
	if (faults != apps->faults_seen) {
		apps->faults_seen = faults;
		end_faulty(apps);
		work++;
	}
	for (app = TAILQ_FIRST(&apps->all); app != NULL; app = next) {
		next = TAILQ_NEXT(app, all);
		if (app->conn != NULL || !app_reap(apps, app))
			continue;
		work++;
		if (apps->env->w.clock() >= end)
			break; /* the others in the next turn: the first ones come to their end */
	}
	return work + app_notify_poll(apps);
}

void
apps_init(struct apps *apps)
{
	TAILQ_INIT(&apps->all);
	owner_users_init(&apps->users, &apps->env->w.conf->control.client_limits);
	TAILQ_INIT(&apps->watched);
	apps->faults_seen = mem_guard_faults();
}

void
apps_fini(struct apps *apps)
{
	struct app *app, *next;

	for (app = TAILQ_FIRST(&apps->all); app != NULL; app = next) {
		next = TAILQ_NEXT(app, all);
		app_close(apps, app);
	}
	app_reap_all(apps);
}
