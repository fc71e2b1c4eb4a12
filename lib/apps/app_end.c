/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of an application, in steps: in each turn what can be done without waiting for a worker.
 * Whatever may still be touched by a worker goes first; memory goes last.
 */
#include <stdlib.h>
#include <unistd.h>

#include "admin.h"
#include "admin_ah.h"
#include "admin_open.h"
#include "app.h"
#include "ask.h"
#include "invariant.h"
#include "log.h"

#define QPS_TURN     64  /* QPs freed in a step */
#define REGIONS_TURN 256 /* regions revoked, or freed, in a step */
#define OBJECTS_TURN 64  /* others: events that wait are looked through for each */

/* ---- answers of workers ---------------------------------------------------------------------- */

static void
answered(void *ctx UNUSED, struct ask *a)
{
	struct app *app = a->arg;

	app->ending.asked--;
}

static void
bells_answered(void *ctx UNUSED, struct ask *a)
{
	struct app_bells *b = a->arg;

	b->attached = false;
}

/* Behind all that workers are at now. @return false: not all are asked; the next step goes on. */
static bool
ask_each(struct apps *apps, struct app *app)
{
	while (app->ending.next < apps->env->w.workers_n) {
		const struct ask_request q = { .worker = (uint16_t)app->ending.next,
			.msg.type = MBOX_SYNC };
		struct ask *a = ask_try(apps->env, &q);

		if (a == NULL)
			return false;
		ask_forget(a, answered, apps, app);
		app->ending.asked++;
		app->ending.next++;
	}
	return true;
}

static void
go_on(struct app *app, enum app_step step)
{
	app->ending.step = step;
	app->ending.next = 0;
}

/* ---- steps: each returns true when it has done something ------------------------------------- */

/* To ERR, flushed, detached. */
static bool
detach_qps(struct apps *apps, struct app *app)
{
	bool done = false, left = false;
	struct admin_qp *rec;

	admin_close_all(&app->o);
	TAILQ_FOREACH (rec, &app->o.qps, of_owner) {
		if (rec->attached && !rec->pending) {
			if (!admin_end_begin(apps->admin, rec))
				return done;
			done = true;
		}
		left = left || rec->pending;
	}
	if (!left)
		go_on(app, APP_SYNC_QPS);
	return done || !left;
}

/* Another worker may have looked one up for a packet that it is handing over. */
static bool
sync_qps(struct apps *apps, struct app *app)
{
	const bool several = apps->env->w.workers_n > 1 && app->o.qps_n != 0;
	struct admin_qp *rec;

	if ((several && !ask_each(apps, app)) || app->ending.asked != 0)
		return false;
	TAILQ_FOREACH (rec, &app->o.qps, of_owner)
		rec->held = false;
	go_on(app, APP_FREE_QPS);
	return true;
}

static bool
free_qps(struct apps *apps, struct app *app)
{
	struct admin_qp *rec, *next;
	struct refusal r;
	uint32_t n = 0;

	env_drain(apps->env); /* what they had to say while they were attached */
	for (rec = TAILQ_FIRST(&app->o.qps); rec != NULL && n < QPS_TURN; rec = next, n++) {
		next = TAILQ_NEXT(rec, of_owner);
		/* One that is held goes with the last hold. */
		if (!rec->doomed && admin_destroy(apps->admin, rec, &r) != 0)
			log_rated(&apps->told.left, apps->env->now, LOG_ERROR, "client %u: %s",
				app->o.id, r.text);
	}
	if (app->o.qps_n == 0)
		go_on(app, APP_BELLS);
	return n != 0 || app->o.qps_n == 0;
}

static bool
close_bells(struct apps *apps, struct app *app)
{
	uint32_t attached = 0;

	for (; app->bells != NULL && app->ending.next < apps->env->w.workers_n;
		app->ending.next++) {
		struct app_bells *b = &app->bells[app->ending.next];
		const struct ask_request q = { .worker = (uint16_t)app->ending.next,
			.msg = { .type = MBOX_CLIENT_DETACH, .client.client = &b->worker_side } };
		struct ask *a = b->attached ? ask_try(apps->env, &q) : NULL;

		if (b->attached && a == NULL)
			return false;
		if (a != NULL)
			ask_forget(a, bells_answered, apps, b);
	}
	for (uint32_t w = 0; app->bells != NULL && w < apps->env->w.workers_n; w++)
		attached += app->bells[w].attached;
	if (attached == 0)
		go_on(app, APP_REVOKE);
	return attached == 0;
}

/* Windows, then regions: each takes one more step. */
static void
each_region(struct apps *apps, struct app *app, void (*mw)(struct objects *, struct object_mw *),
	void (*mr)(struct objects *, struct object_mr *), enum app_step then)
{
	const uint32_t windows = app->mws.room, all = windows + app->mrs.room;

	for (uint32_t n = 0; app->ending.next < all && n < REGIONS_TURN; n++) {
		const uint32_t i = app->ending.next++;

		if (i < windows && app->mws.v[i] != NULL)
			mw(apps->objects, app->mws.v[i]);
		else if (i >= windows && app->mrs.v[i - windows] != NULL)
			mr(apps->objects, app->mrs.v[i - windows]);
	}
	if (app->ending.next == all)
		go_on(app, then);
}

/* XRC SRQs may be those of another application's targets, which go on: nobody finds them. */
static void
hide_srqs(struct apps *apps, struct app *app)
{
	for (uint32_t i = 0; i < app->srqs.room; i++) {
		const struct app_srq *srq = app->srqs.v[i];

		if (srq != NULL)
			app->ending.hidden |= object_srq_hide(apps->objects, srq->srq);
	}
}

/* All keys first. */
static bool
revoke_regions(struct apps *apps, struct app *app)
{
	if (app->ending.next == 0)
		hide_srqs(apps, app);
	each_region(apps, app, object_mw_revoke, object_mr_revoke, APP_SYNC_REGIONS);
	return true;
}

/* Then one round trip for all of them. */
static bool
sync_regions(struct apps *apps, struct app *app)
{
	const bool shared = app->mrs.n + app->mws.n != 0 || app->ending.hidden;

	if ((shared && !ask_each(apps, app)) || app->ending.asked != 0)
		return false;
	go_on(app, APP_FREE_REGIONS);
	return true;
}

static bool
free_regions(struct apps *apps, struct app *app)
{
	each_region(apps, app, object_mw_free_revoked, object_mr_free_revoked, APP_OBJECTS);
	return true;
}

/* What is in use goes after what uses it. */
static struct app_table *
table_of(struct app *app, enum app_table_kind kind)
{
	switch (kind) {
	case APP_SRQS:
		return &app->srqs;
	case APP_XRCDS:
		return &app->xrcds;
	case APP_CQS:
		return &app->cqs;
	case APP_AHS:
		return &app->ahs;
	case APP_PDS:
		return &app->pds;
	case APP_CHANNELS:
		return &app->channels;
	case APP_TABLES:
		break;
	}
	return NULL;
}

static void
end_cq(struct apps *apps, struct app_cq *cq, struct refusal *r)
{
	if (cq->channel != NULL)
		TAILQ_REMOVE(&apps->watched, cq, watched);
	object_cq_destroy(apps->objects, cq->cq, r);
	free(cq);
}

static void
end_ah(struct apps *apps, struct app_ah *h)
{
	admin_ah_destroy(apps->admin, h->ah);
	h->pd->users--;
	free(h);
}

static void
end_object(struct apps *apps, const struct app *app, enum app_table_kind kind, void *object)
{
	struct refusal r = { 0 };

	switch (kind) {
	case APP_SRQS:
		object_srq_destroy(apps->objects, ((struct app_srq *)object)->srq, &r);
		free(object);
		break;
	case APP_XRCDS:
		object_xrcd_close(apps->objects, object, &r);
		break;
	case APP_CQS:
		end_cq(apps, object, &r);
		break;
	case APP_AHS:
		end_ah(apps, object);
		break;
	case APP_PDS:
		object_pd_destroy(apps->objects, object, &r);
		break;
	case APP_CHANNELS:
		broker_signal_free(((struct app_channel *)object)->signal);
		free(object);
		break;
	case APP_TABLES:
		break;
	}
	if (r.err != 0)
		log_rated(&apps->told.left, apps->env->now, LOG_ERROR, "client %u: %s", app->o.id,
			r.text);
}

static bool
end_objects(struct apps *apps, struct app *app)
{
	struct app_ending *e = &app->ending;

	for (uint32_t n = 0; n < OBJECTS_TURN && e->table != APP_TABLES; n++) {
		const struct app_table *t = table_of(app, e->table);

		if (e->next == t->room) {
			e->table++;
			e->next = 0;
		} else if (t->v[e->next++] != NULL) {
			end_object(apps, app, e->table, t->v[e->next - 1]);
		}
	}
	if (e->table == APP_TABLES)
		go_on(app, APP_RELEASE);
	return true;
}

static void
release(struct apps *apps, struct app *app)
{
	TAILQ_REMOVE(&apps->all, app, all);
	apps->n--;
	owner_areas_free(&app->o);
	owner_user_leave(&apps->users, &app->o);
	broker_signal_free(app->wake);
	app->wake = NULL;
	broker_signal_free(app->async);
	broker_conn_put(app->o.home);
	free(app->pds.v);
	free(app->mrs.v);
	free(app->mws.v);
	free(app->cqs.v);
	free(app->srqs.v);
	free(app->xrcds.v);
	free(app->ahs.v);
	free(app->channels.v);
	free(app->bells);
	free(app->events);
	free(app);
}

/* ---- in turns -------------------------------------------------------------------------------- */

bool
app_reap(struct apps *apps, struct app *app)
{
	ASSERT(app->conn == NULL);
	switch (app->ending.step) {
	case APP_DETACH_QPS:
		return detach_qps(apps, app);
	case APP_SYNC_QPS:
		return sync_qps(apps, app);
	case APP_FREE_QPS:
		return free_qps(apps, app);
	case APP_BELLS:
		return close_bells(apps, app);
	case APP_REVOKE:
		return revoke_regions(apps, app);
	case APP_SYNC_REGIONS:
		return sync_regions(apps, app);
	case APP_FREE_REGIONS:
		return free_regions(apps, app);
	case APP_OBJECTS:
		return end_objects(apps, app);
	case APP_RELEASE:
		break;
	}
	log_rated(&apps->told.gone, apps->env->now, LOG_INFO, "client %u: gone", app->o.id);
	release(apps, app);
	return true;
}

void
app_close(struct apps *apps, struct app *app)
{
	if (app->conn != NULL)
		app->conn->app = NULL;
	app->conn = NULL;
	app->o.gone = true;
	app->events_n = 0; /* nobody fetches them */
	app_reap(apps, app);
}

void
app_reap_all(struct apps *apps)
{
	struct ask_patience p = ask_patience(apps->env);
	struct app *app, *next;

	while (!TAILQ_EMPTY(&apps->all) && ask_patience_turn(apps->env, &p)) {
		for (app = TAILQ_FIRST(&apps->all); app != NULL; app = next) {
			next = TAILQ_NEXT(app, all);
			if (app_reap(apps, app))
				p = ask_patience(apps->env);
		}
	}
}
