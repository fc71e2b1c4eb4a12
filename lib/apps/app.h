/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_H
#define APP_H
/**
 * @file app.h  Applications on this machine: what each owns, may have, and leaves behind.
 *
 * Owner:   control lcore; a client begins with client_open on its connection and ends with it.
 * Memory:  what a client made is freed when it ends, after its QPs are detached, its doorbells are
 *          off the workers, and every worker has left the burst before (for its regions). When a
 *          worker does not answer, the client waits in the list and is tried again.
 * Depends: objects, admin, events.
 *
 * Objects go by handles, which are numbers of one client: another client's cannot be named. Their
 * names in the dataplane's tables have blanks ("client 3 pd 1"), which no user's name can have.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker_signal.h"
#include "clock.h"
#include "env.h"
#include "events.h"
#include "log_rate.h"
#include "objects.h"
#include "owner.h"
#include "qp_client.h"
#include "rpc_server.h"

#define APP_ABI     1                    /* of the rings and the client_* methods */
#define APP_TURN_NS (2 * TIME_NS_PER_MS) /* a turn may last, for ends; and the step under way */
#define APP_EVENTS  256 /* asynchronous events that wait for a client, and one of each QP */

struct admin_ah;
struct admin_qp;

/** Handles: 1 .. room; an entry that is NULL is free. */
struct app_table {
	void **v;
	uint32_t room;
	uint32_t n;
};

/** Completion channel. */
struct app_channel {
	struct broker_signal *signal;
	uint32_t users;
};

struct app_cq {
	struct app *app;
	struct object_cq *cq;
	struct app_channel *channel; /* or NULL */
	struct owner_place place;
	struct owner_place old; /* with cq->leaving: of that one */
	uint32_t handle;
	uint64_t arm_seen;           /* arm word that was answered with an event */
	uint32_t fired;              /* events */
	TAILQ_ENTRY(app_cq) watched; /* with a channel */
};

struct app_srq {
	struct app *app;
	struct object_srq *srq;
	uint32_t handle;
};

struct app_ah {
	struct admin_ah *ah;
	struct object_pd *pd;
	uint32_t handle;
};

/** A client's doorbells, at one worker. */
struct app_bells {
	struct qp_client worker_side; /* the worker's from attach to detach */
	struct owner_place place;
	uint32_t entries;
	bool attached;      /* or about to be: it has to be detached in any case */
	bool heard;         /* it is */
	struct ask *asking; /* the worker is late with its answer; or NULL */
	uint32_t lost_told; /* of worker_side.events_lost */
};

/** The end of an application, in this order: app_end.c. */
enum app_step {
	APP_DETACH_QPS,
	APP_SYNC_QPS,
	APP_FREE_QPS,
	APP_BELLS,
	APP_REVOKE,
	APP_SYNC_REGIONS,
	APP_FREE_REGIONS,
	APP_OBJECTS,
	APP_RELEASE,
};

/** The order in which objects go. */
enum app_table_kind {
	APP_SRQS,
	APP_XRCDS,
	APP_CQS,
	APP_AHS,
	APP_PDS,
	APP_CHANNELS,
	APP_TABLES,
};

struct app_ending {
	enum app_step step;
	uint32_t next;             /* worker to ask, or region or object to look at, in this step */
	enum app_table_kind table; /* with APP_OBJECTS */
	uint32_t asked;            /* workers that have not answered */
	bool hidden;               /* XRC SRQs of it were in use, perhaps by others' targets */
};

struct app {
	struct owner o; /* first: app_of() casts to it */
	TAILQ_ENTRY(app) all;
	struct rpc_client *conn; /* NULL: gone */
	struct app_table pds;
	struct app_table mrs;
	struct app_table mws;
	struct app_table cqs;
	struct app_table xrcds; /* struct object_xrcd: what it has opened */
	struct app_table srqs;
	struct app_table ahs;
	struct app_table channels;
	struct app_bells *bells; /* one a worker */
	uint32_t weight;         /* of its share of each worker */
	uint64_t rate;           /* bytes a second that each lets it move; 0: any */
	bool heard;              /* by the workers */
	struct broker_signal *async;
	uint32_t watched_port;      /* from 1: the only one whose events it is told of; 0: all */
	struct broker_signal *wake; /* of workers, by the client; NULL: it did not ask for it */
	struct event *events;       /* events_room */
	uint32_t events_room;       /* a power of two */
	uint32_t events_head;
	uint32_t events_n;
	uint64_t events_lost;
	struct app_ending ending;
};

/** The application that is this owner; NULL of NULL. */
static inline struct app *
app_of(struct owner *o)
{
	return (struct app *)(void *)o;
}

struct apps {
	struct env *env;
	struct objects *objects;
	struct admin *admin;
	struct diagnose *diagnose;
	TAILQ_HEAD(, app) all;
	TAILQ_HEAD(, app_cq) watched;
	struct owner_users users;
	struct {
		struct log_rate come, gone, ended, left;
	} told; /* lines that applications can cause */
	uint32_t n;
	uint32_t last_id;
	uint32_t waiting;         /* CQs that were armed when we looked last */
	unsigned int faults_seen; /* mem_guard_faults() */
};

/* ---- app.c ----------------------------------------------------------------------------------- */

/** No application yet. @param apps all zero but for the modules below it. */
void apps_init(struct apps *apps);
/** At the end, before anything else goes. */
void apps_fini(struct apps *apps);
/** One turn: events of CQs, clients that are gone. @return pieces of work. */
uint32_t apps_poll(struct apps *apps);
/** Bytes of an application's first area, where its doorbells have room. Any thread. */
size_t app_first_area(const struct conf *conf);
/**
 * @param first an area for it, taken over unless its base is NULL: then it is made here.
 * @return 0 with the connection's client made, or a refusal.
 */
int app_open(struct apps *apps, struct rpc_client *conn, const char *name, struct mem_area *first,
	struct refusal *r);
/** The connection is gone: what was the client's ends, in this turn and the next ones. */
void app_close(struct apps *apps, struct app *app);
/**
 * It asks for something: it has mapped what it was told of, so that this can be sealed and used.
 * @return 0; or a refusal: who is to do it is late (ETIMEDOUT; it may ask again), or the
 * application is at its end. It counts for nothing where the request is put off.
 */
int app_ready(struct apps *apps, struct app *app, struct refusal *r);
/** Its weight or rate is another one: tell the workers. @return 0 or a refusal. */
int app_share_told(struct apps *apps, struct app *app, struct refusal *r);
/** It has done what it must not: disconnect it. */
void app_end(struct apps *apps, struct app *app, const char *why);

/** @return the handle, or 0: no memory. */
uint32_t app_table_add(struct app_table *t, void *object);
/** What the handle stands for, or NULL. */
void *app_table_get(const struct app_table *t, uint32_t handle);
/** The handle, which is in use, is free again. */
void app_table_remove(struct app_table *t, uint32_t handle);

/* ---- app_end.c ------------------------------------------------------------------------------- */

/** The next step of one whose connection is gone; never waits. @return was something done? */
bool app_reap(struct apps *apps, struct app *app);
/** All of them to the end, unless a worker does not answer. */
void app_reap_all(struct apps *apps);

/* ---- app_notify.c ---------------------------------------------------------------------------- */

/** Fire what is due. @return how many. */
uint32_t app_notify_poll(struct apps *apps);
/** An event of one of the client's objects, or of a port: queued, and signalled. */
void app_event(struct app *app, const struct event *e);
/** To the client that it concerns, if any. */
void apps_event(struct apps *apps, const struct event *e);
/** Oldest event as JSON, taken out; NULL: none. */
json_t *app_event_take(struct apps *apps, struct app *app);
/** The client has it no more, others may: it is told nothing of it any more. */
void app_event_forget(struct app *app, enum object_kind of, uint32_t number);
/** The object is destroyed: nothing is told of it any more. */
void apps_event_forget(struct apps *apps, enum object_kind of, uint32_t number);
/** It is told of this port's events, from 1, and of no other one's of these. */
void app_watch_port(struct app *app, uint32_t port_num, uint32_t ports);

#endif
