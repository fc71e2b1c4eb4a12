/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients are told: events of CQs on their channels, asynchronous events on async_fd. */

#include "ask.h"
#include "admin_open.h"
#include "app.h"
#include "conf_json_value.h"
#include "diagnose.h"

/* ---- completion events ----------------------------------------------------------------------- */

uint32_t
app_notify_poll(struct apps *apps)
{
	struct app_cq *cq;
	uint32_t fired = 0;

	apps->waiting = 0;
	TAILQ_FOREACH (cq, &apps->watched, watched) {
		struct qp_cq *q = &cq->cq->q;
		struct ring_cq *ring = qp_cq_ring(q);
		const uint64_t arm = atomic_load_explicit(&ring->sh->arm, memory_order_acquire);

		if (arm == cq->arm_seen)
			continue;
		if (!ring_cq_is_due(
			    ring, arm, atomic_load_explicit(&q->solicited, memory_order_relaxed))) {
			apps->waiting++;
			continue;
		}
		cq->arm_seen = arm;
		ring_cq_answer(ring, arm);
		broker_signal_add(cq->channel->signal);
		cq->fired++;
		fired++;
	}
	return fired;
}

/* ---- asynchronous events --------------------------------------------------------------------- */

/* The one so many behind the oldest. */
static struct event *
event_at(const struct app *app, uint32_t i)
{
	return &app->events[(app->events_head + i) % app->events_room];
}

/*
 * A program may bring all of its QPs to ERR, and only then look for the last event of each.
 * @return false: it has as many as may wait, or there is no memory.
 */
static bool
has_room(struct app *app)
{
	struct event *more;

	if (app->events_n >= APP_EVENTS + app->o.has[OWNER_QPS])
		return false;
	if (app->events_n < app->events_room)
		return true;
	more = calloc(2 * (size_t)app->events_room, sizeof(more[0]));
	if (more == NULL)
		return false;
	for (uint32_t i = 0; i < app->events_n; i++)
		more[i] = *event_at(app, i);
	free(app->events);
	app->events = more;
	app->events_head = 0;
	app->events_room *= 2;
	return true;
}

void
app_event(struct app *app, const struct event *e)
{
	if (app->conn == NULL)
		return;
	if (!has_room(app)) {
		app->events_lost++;
		return;
	}
	*event_at(app, app->events_n++) = *e;
	broker_signal_add(app->async);
}

static bool
watches(const struct app *app, const struct event *e)
{
	return app->watched_port == 0 || app->watched_port == e->number + 1;
}

void
apps_event(struct apps *apps, const struct event *e)
{
	const struct object_cq *cq;
	const struct object_srq *srq;
	const struct admin_qp *rec;
	const struct admin_opener *by;
	struct app *app;

	if (apps->n == 0)
		return;
	switch ((enum object_kind)e->of) {
	case OBJECT_QP:
		rec = admin_find(apps->admin, e->number);
		if (rec == NULL || rec->shared->owner == NULL)
			break;
		app_event(app_of(rec->shared->owner), e);
		TAILQ_FOREACH (by, &rec->openers, of_qp)
			app_event(app_of(by->owner), e);
		break;
	case OBJECT_CQ:
		cq = object_cq_by_id(apps->objects, e->number);
		if (cq != NULL && cq->app != NULL)
			app_event(cq->app->app, e);
		break;
	case OBJECT_PORT:
		TAILQ_FOREACH (app, &apps->all, all) {
			if (watches(app, e))
				app_event(app, e);
		}
		break;
	case OBJECT_SRQ:
		srq = object_srq_by_id(apps->objects, e->number);
		if (srq != NULL && srq->app != NULL)
			app_event(srq->app->app, e);
		break;
	case OBJECT_NONE:
		break;
	}
}

static json_t *
event_json(struct apps *apps, const struct app *app, const struct event *e)
{
	const struct object_cq *cq;
	const struct object_srq *srq;
	const char *key = "port_num";
	uint32_t number = e->number + 1;

	if (e->of == OBJECT_QP) {
		key = "qp_num";
		number = e->number;
	} else if (e->of == OBJECT_CQ) {
		key = "cq";
		cq = object_cq_by_id(apps->objects, e->number);
		number = cq != NULL && cq->app != NULL ? cq->app->handle : 0;
	} else if (e->of == OBJECT_SRQ) {
		key = "srq";
		srq = object_srq_by_id(apps->objects, e->number);
		number = srq != NULL && srq->app != NULL ? srq->app->handle : 0;
	}
	return json_pack("{s:i, s:I, s:i, s:I, s:o, s:o}", "event_type", e->event, key,
		(json_int_t)number, "fatal_code", e->fatal, "psn", (json_int_t)e->psn, "lost",
		conf_json_u64(app->events_lost), "detail",
		events_detail(apps->diagnose, &app->o, e));
}

/* Those that did not come as far as this. */
static void
count_lost(const struct apps *apps, struct app *app)
{
	for (uint32_t w = 0; w < apps->env->w.workers_n; w++) {
		struct app_bells *b = &app->bells[w];
		const uint32_t n =
			atomic_load_explicit(&b->worker_side.events_lost, memory_order_relaxed);

		app->events_lost += n - b->lost_told;
		b->lost_told = n;
	}
}

json_t *
app_event_take(struct apps *apps, struct app *app)
{
	json_t *o;

	if (app->events_n == 0)
		return NULL;
	count_lost(apps, app);
	o = event_json(apps, app, event_at(app, 0));
	if (o != NULL) {
		app->events_head = (app->events_head + 1) % app->events_room;
		app->events_n--;
		app->events_lost = 0;
	}
	return o;
}

static bool
is_of(const struct app *app, uint32_t i, enum object_kind of, uint32_t number)
{
	const struct event *e = event_at(app, i);

	return e->of == of && e->number == number;
}

void
app_event_forget(struct app *app, enum object_kind of, uint32_t number)
{
	const uint32_t had = app->events_n;
	uint32_t kept = 0;

	while (kept < had && !is_of(app, kept, of, number))
		kept++;
	for (uint32_t i = kept; i < had; i++) {
		if (is_of(app, i, of, number))
			continue;
		*event_at(app, kept++) = *event_at(app, i);
	}
	app->events_n = kept;
	broker_signal_drop(app->async, had - kept);
}

void
apps_event_forget(struct apps *apps, enum object_kind of, uint32_t number)
{
	struct app *app;

	TAILQ_FOREACH (app, &apps->all, all)
		app_event_forget(app, of, number);
}

void
app_watch_port(struct app *app, uint32_t port_num, uint32_t ports)
{
	app->watched_port = port_num;
	for (uint32_t i = 0; i < ports; i++) {
		if (i + 1 != port_num)
			app_event_forget(app, OBJECT_PORT, i);
	}
}
