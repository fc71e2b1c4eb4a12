/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_H
#define CLIENT_H
/**
 * @file client.h  Applications on this machine: what each owns, may have, and leaves behind.
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

#include "clock.h"
#include "env.h"
#include "events.h"
#include "objects.h"
#include "owner.h"
#include "qp_client.h"
#include "rpc_server.h"

#define CLIENT_ABI    1   /* of the rings and the client_* methods */
#define CLIENT_EVENTS 256 /* asynchronous events that wait for a client */

struct admin_qp;

/** Handles: 1 .. room; an entry that is NULL is free. */
struct client_table {
	void **v;
	uint32_t room;
	uint32_t n;
};

/** Completion channel. */
struct client_channel {
	int fd; /* eventfd, semaphore */
	uint32_t users;
};

struct client_cq {
	struct client *client;
	struct object_cq *cq;
	struct client_channel *channel; /* or NULL */
	struct owner_place place;
	uint32_t handle;
	uint64_t arm_seen;              /* arm word that was answered with an event */
	TAILQ_ENTRY(client_cq) watched; /* with a channel */
};

struct client_srq {
	struct client *client;
	struct object_srq *srq;
	uint32_t handle;
};

/** A client's doorbells, at one worker. */
struct client_bells {
	struct qp_client worker_side; /* the worker's from attach to detach */
	struct owner_place place;
	uint32_t entries;
	bool attached;
};

struct client {
	struct owner o; /* first: client_of() casts to it */
	TAILQ_ENTRY(client) all;
	struct rpc_client *conn; /* NULL: gone */
	struct client_table pds;
	struct client_table mrs;
	struct client_table cqs;
	struct client_table srqs;
	struct client_table channels;
	struct client_bells *bells; /* one a worker */
	int async_fd;               /* eventfd, semaphore */
	struct event *events;       /* CLIENT_EVENTS */
	uint32_t events_head;
	uint32_t events_n;
	uint64_t events_lost;
	ns_t retry_at; /* gone: when to try again */
};

/** The application that is this owner; NULL of NULL. */
static inline struct client *
client_of(struct owner *o)
{
	return (struct client *)(void *)o;
}

struct clients {
	struct env *env;
	struct objects *objects;
	struct admin *admin;
	struct diagnose *diagnose;
	TAILQ_HEAD(, client) all;
	TAILQ_HEAD(, client_cq) watched;
	uint32_t n;
	uint32_t last_id;
	uint32_t waiting;         /* CQs that were armed when we looked last */
	unsigned int faults_seen; /* mem_guard_faults() */
	uint64_t aio;             /* kernel's handle, 0: none */
	int null_fd;              /* what is read to signal */
};

/* ---- client.c -------------------------------------------------------------------------------- */

/** No application yet. @param apps all zero but for the modules below it. */
void clients_init(struct clients *apps);
/** At the end, before anything else goes. */
void clients_fini(struct clients *apps);
/** One turn: events of CQs, clients that are gone. @return pieces of work. */
uint32_t clients_poll(struct clients *apps);
/** @return 0 with the connection's client made, or a refusal. */
int client_open(struct clients *apps, struct rpc_client *conn, const char *name, struct refusal *r);
/** The connection is gone: end what was the client's. */
void client_close(struct clients *apps, struct client *cl);
/** It has done what it must not: disconnect it. */
void client_end(struct client *cl, const char *why);

/** @return the handle, or 0: no memory. */
uint32_t client_table_add(struct client_table *t, void *object);
/** What the handle stands for, or NULL. */
void *client_table_get(const struct client_table *t, uint32_t handle);
/** The handle, which is in use, is free again. */
void client_table_remove(struct client_table *t, uint32_t handle);

/* ---- client_notify.c ------------------------------------------------------------------------- */

/** Ready to signal? @return 0 or -errno. */
int client_signal_init(struct clients *cs);
/** Also of one that was never ready. */
void client_signal_fini(struct clients *cs);
/**
 * Add one to an eventfd that the client has, too. Never waits, whatever flags the client set.
 * Cost: two system calls.
 */
void client_signal(struct clients *cs, int fd);
/** Fire what is due. @return how many. */
uint32_t client_notify_poll(struct clients *apps);
/** An event of one of the client's objects, or of a port: queued, and signalled. */
void client_event(struct clients *apps, struct client *cl, const struct event *e);
/** To the client that it concerns, if any. */
void clients_event(struct clients *apps, const struct event *e);
/** Oldest event as JSON, taken out; NULL: none. */
json_t *client_event_take(struct clients *apps, struct client *cl);
/** The object is destroyed: nothing is told of it any more. */
void clients_event_forget(struct clients *apps, enum object_kind of, uint32_t number);

#endif
