/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONNECT_CLIENT_H
#define CONNECT_CLIENT_H
/**
 * @file connect_client.h  Connections of applications: ids, the channels that tell of them.
 *
 * Owner:   control lcore.
 * Memory:  a record for each channel, id and event, charged to the application (OWNER_CM_*). An id
 *          has few events in its life, so they need no bound of their own.
 * Time:    env->now.
 * Depends: connect, owner.
 * Spec:    CM-11..13, CM-33, CM-40.
 *
 * As with librdmacm, the queue pair is the application's own. It walks it through its states, and
 * an event says by which attributes: then its RTU waits for connect_client_establish(). Or it has
 * it walked to RTR and RTS here, before the REP or the RTU goes, as the kernel does with an id's.
 * An id that the application has ended stays, and stays charged, until its connection is over.
 */
#include <jansson.h>

#include "broker_signal.h"
#include "connect.h"

struct connect_notice {
	TAILQ_ENTRY(connect_notice) next;
	struct connect_id *id;
	uint32_t listener; /* handle; 0: none */
	uint8_t event;     /* enum connect_told */
	int32_t status;    /* of a REJ: its reason; of a SIDR_REP; else 0 or -errno */
	json_t *more;      /* the peer, the QP's attributes, private data; or NULL */
};

/** enum rdma_cm_event_type's values. */
enum connect_told {
	CONNECT_ADDR_RESOLVED = 0,
	CONNECT_ADDR_ERROR = 1,
	CONNECT_CONNECT_REQUEST = 4,
	CONNECT_CONNECT_RESPONSE = 5,
	CONNECT_CONNECT_ERROR = 6,
	CONNECT_UNREACHABLE = 7,
	CONNECT_REJECTED = 8,
	CONNECT_ESTABLISHED = 9,
	CONNECT_DISCONNECTED = 10,
	CONNECT_TIMEWAIT_EXIT = 15,
};

struct connect_channel {
	TAILQ_ENTRY(connect_channel) all;
	uint32_t handle;
	struct broker_signal *signal;
	uint32_t ids;
	bool accepted_only; /* of who asks, nothing more is told before it is accepted */
	TAILQ_HEAD(connect_notices, connect_notice) notices;
};

/** What an id is bound to: no other one is, for as long as it lives. */
struct connect_bound {
	bool is;
	bool reuse; /* but one of those that may share it, until it listens */
	uint64_t service_id;
	struct cm_reach reach;
};

struct connect_id {
	TAILQ_ENTRY(connect_id) all;
	TAILQ_ENTRY(connect_id) resolving;
	STAILQ_ENTRY(connect_id) ending;
	TAILQ_ENTRY(connect_id) beside;  /* of connect.bound */
	struct connect_client *client;   /* NULL: gone */
	struct connect_channel *channel; /* NULL: ended by its application */
	uint32_t handle;
	uint32_t notices;               /* that wait */
	struct connect_notice *request; /* ... one that a peer asks, or NULL */
	uint32_t listeners;             /* of connect.listeners, charged */
	struct connect_bound bound;     /* its service port, from before it listens */
	bool asks;                      /* it is a peer's, who was not accepted */
	bool pending;                   /* a peer waits for an answer: charged */
	bool is_resolving;
	ns_t resolve_by;
	int16_t port;            /* index, once it is resolved */
	struct conf_ah way;      /* to the peer */
	struct admin_ah *ah;     /* ... NULL: not resolved, or with the connection */
	struct connect_conn *cc; /* or NULL */
};

/** What an application has of connections. */
struct connect_client {
	TAILQ_ENTRY(connect_client) all;
	struct owner *owner;
	uint32_t last; /* handle; none is used twice */
	TAILQ_HEAD(, connect_channel) channels;
	TAILQ_HEAD(connect_ids, connect_id) ids;
};

/** Of this application; made if it has none yet. @return NULL: no memory. */
struct connect_client *connect_client_of(struct connect *cx, struct owner *o);
/** The application ends: nothing points to it any more. Peers are told. */
void connect_client_gone(struct connect *cx, const struct owner *o);

/** The same for all of them. */
void connect_client_all_gone(struct connect *cx);

/** @return 0 or a refusal. */
int connect_channel_create(
	struct connect_client *cl, struct connect_channel **out, struct refusal *r);
/** @return 0 or a refusal: EBUSY: ids are on it. */
int connect_channel_destroy(struct connect_client *cl, uint32_t handle, struct refusal *r);
/** @return NULL and ENOENT. */
struct connect_channel *connect_channel_find(
	struct connect_client *cl, uint32_t handle, struct refusal *r);
/** @return NULL and ENOENT. */
struct connect_id *connect_id_find(struct connect_client *cl, uint32_t handle, struct refusal *r);
/** Ended: what it was is undone, its connection too, and its events that wait. */
void connect_id_destroy(struct connect *cx, struct connect_id *id);
/** Its events come on another channel from now on, also those that wait. */
void connect_id_migrate(struct connect_id *id, struct connect_channel *to);
/** The oldest event, taken out; NULL: none. */
json_t *connect_notice_take(struct connect_channel *ch);

struct connect_resolve {
	struct conf_ip dest;
	struct conf_ip source; /* family 0: any */
	uint8_t traffic_class;
	ns_t time;
};

/**
 * Which port leads there; an event tells of the neighbour, unless it is known already
 * (out->ah->known). @return 0 or a refusal.
 */
int connect_client_resolve(struct connect *cx, struct connect_channel *ch,
	struct connect_client *cl, const struct connect_resolve *q, struct connect_id **out,
	struct refusal *r);

/**
 * Another traffic class on the way to its peer, for when that is asked. An id that has asked, or
 * was never resolved, stays as it is. @return 0 or a refusal: EPERM.
 */
int connect_client_class(
	struct connect *cx, struct connect_id *id, uint8_t traffic_class, struct refusal *r);

struct connect_listen_for {
	struct conf_ip ip;  /* family 0: of all ports */
	uint8_t ip_version; /* then 4 or 6: asked by such addresses alone; 0: by both */
	uint32_t ps;
	uint16_t service_port; /* 0: any, given back */
	uint32_t backlog;
	uint32_t qp_type;
	bool reuse; /* the port may be that of others who say the same */
};

/** @param out in: an id that is bound there, or NULL: a new one. @return 0 or a refusal. */
int connect_client_listen(struct connect *cx, struct connect_channel *ch, struct connect_client *cl,
	struct connect_listen_for *q, struct connect_id **out, struct refusal *r);
/**
 * An id that has its port before it listens. A service port of 0 becomes one that nobody has,
 * another one each time. @return 0 or a refusal: EADDRNOTAVAIL, EADDRINUSE.
 */
int connect_client_bind(struct connect *cx, struct connect_channel *ch, struct connect_client *cl,
	struct connect_listen_for *q, struct connect_id **out, struct refusal *r);
/** One that is bound may have others beside it, who say the same. @return 0 or a refusal. */
int connect_client_reuse(struct connect *cx, struct connect_id *id, struct refusal *r);
/** Ask the peer that the id is resolved to; port, way and `of` are set here. */
int connect_client_ask(
	struct connect *cx, struct connect_id *id, struct connect_request *q, struct refusal *r);
/** What an application says yes with. */
struct connect_answer {
	struct cm_terms own; /* the QP's number and what it offers; UD: its key */
	const uint8_t *private;
	uint32_t private_len;
	bool walk; /* the QP goes to RTR and RTS before the peer hears of it */
	uint8_t min_rnr_timer;
};

/** Say yes. @return 0 or a refusal. */
int connect_client_accept(struct connect *cx, struct connect_id *id, const struct connect_answer *a,
	struct refusal *r);
/** The QP is ready: the RTU may go. @return 0 or a refusal. */
int connect_client_establish(struct connect *cx, struct connect_id *id, struct refusal *r);
/** Say no, also to a REP. @return 0 or a refusal. */
int connect_client_reject(struct connect *cx, struct connect_id *id, uint16_t reason,
	const uint8_t *private, uint32_t private_len, struct refusal *r);
/**
 * Nothing is refused: the peer may have been faster. @param qpn a QP of the application that goes
 * to ERR first; 0: none. @return 0 or a refusal: no connection.
 */
int connect_client_disconnect(
	struct connect *cx, struct connect_id *id, uint32_t qpn, struct refusal *r);
/** May the application name this QP? @param walk and have it walked? @return 0 or a refusal. */
int connect_client_qp(const struct connect *cx, const struct connect_client *cl, uint32_t qpn,
	bool walk, struct refusal *r);
/** Is it this client's, and no other's of the same user? */
bool connect_owns(const struct connect_client *cl, const struct admin_qp *rec);

/* For connect.c. */
/** A peer asks a listener of an application. @return false: it cannot be told. */
bool connect_client_asked(struct connect *cx, struct connect_id *listener, struct connect_conn *cc);
/** An event of an application's connection. */
void connect_client_event(struct connect *cx, struct connect_conn *cc, const struct cm_verdict *v);
/** Its connection is over and forgotten; private data of its end may be told still. */
void connect_client_over(struct connect *cx, struct connect_conn *cc);
/** The record goes: nothing may point to it. */
void connect_client_forget(struct connect_conn *cc);
/** Neighbours that have answered, or had their time. @return how many. */
uint32_t connect_client_poll(struct connect *cx);

/* Between the files of this. */
/** One more, on this channel. @return 0 or a refusal. */
int connect_id_new(struct connect_client *cl, struct connect_channel *ch, struct connect_id **out,
	struct refusal *r);
/**
 * Unfinished connections that a listener of the application may have. With fewer places than
 * BACKLOG_LEAST it is crowded before a limit below that is reached, and peers would hear nothing
 * instead of a REJ. Its backlog bounds those of them that the application has not heard of.
 */
uint32_t connect_client_backlog(const struct owner *o);
/** No peer waits for the application any more. */
void connect_id_answered(struct connect_id *id);
/** It does not listen any more. */
void connect_id_deaf(struct connect *cx, struct connect_id *id);
/** Its service port is free. */
void connect_id_unbound(struct connect *cx, struct connect_id *id);
/** Its neighbour is not asked for any more. */
void connect_id_resolved(struct connect *cx, struct connect_id *id);
/** The application has not heard that this peer asks, and it never will: that is over. */
void connect_id_withdraw(struct connect_id *id);
/** Tell it. @param n taken. @return -ENOENT: the application has ended the id. */
int connect_tell_id(struct connect_id *id, struct connect_notice *n);

#endif
