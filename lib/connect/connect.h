/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONNECT_H
#define CONNECT_H
/**
 * @file connect.h  Connections: the manager of lib/cm with queue pairs, frames and programs.
 *
 * Owner:   control lcore.
 * Memory:  a record for each connection, and for the last CONNECT_ENDED that are over; datagrams
 *          wait in an inbox of constant size until connect_poll().
 * Time:    env->now.
 * Depends: cm, admin, net.
 * Spec:    CM-01..44.
 *
 * What happens while a QP is made (the control lcore waits for workers and hears others meanwhile)
 * is kept in the inbox: the manager is never called from inside of itself.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "admin.h"
#include "admin_ah.h"
#include "cm.h"
#include "env.h"
#include "log_rate.h"
#include "net.h"
#include "refusal.h"

#define CONNECT_INBOX  1024
#define CONNECT_FRAME  384 /* bytes of a frame that is kept; those of MADs have up to 350 */
#define CONNECT_MACS   256 /* places for MACs, shared by those that fall together */
#define CONNECT_EVENTS 4096
#define CONNECT_ENDED  256
#define CONNECT_IDS    1024 /* places for ids, shared by those that fall together */
#define CONNECT_TURN   32   /* messages in a turn */

struct connect_id;
struct connect_client;

struct connect_inbox {
	uint16_t port; /* index */
	uint16_t len;
	uint8_t frame[CONNECT_FRAME];
};

struct connect_listener {
	struct conf_cm_listen conf;
	struct cm_listener *l; /* NULL: free */
	uint32_t qpn;          /* UD: the QP that datagrams go to */
	struct connect_id *of; /* an application that listens; NULL: others */
};

/** One connection, or attempt. */
struct connect_conn {
	TAILQ_ENTRY(connect_conn) all;
	LIST_ENTRY(connect_conn) same; /* of the ids that fall together */
	uint32_t id;
	struct cm_conn *c;            /* NULL: over */
	struct cm_conn last;          /* ... as it was then */
	struct conf_qp qp;            /* what its QP is made from */
	uint32_t qpn;                 /* 0: it has none */
	uint16_t port;                /* index */
	char listener[CONF_NAME_MAX]; /* "": we asked */
	struct admin_ah *ah;          /* we asked: where to */
	ns_t ended;
	uint64_t pkey_drops;   /* of the port, when it began */
	struct connect_id *of; /* an application's, and its QP; NULL: ours */
	bool foreign;          /* the QP is an application's, which moves it */
	bool walks;            /* ... but to RTR and RTS, where we do */
	bool shared;           /* the QP is the listener's, for all who ask it */
	bool orphan;           /* ... which is gone */
	bool held;             /* the RTU waits until the application has done so */
	struct cm_out rtu;
	uint32_t psn;   /* where the peer begins to send; an application hears of it first */
	char note[320]; /* what failed on this side */
};

TAILQ_HEAD(connect_list, connect_conn);

struct connect_event {
	ns_t time_ns;
	uint32_t id;
	uint32_t qpn;
	uint32_t peer_qpn;
	uint16_t status;
	uint16_t peer_port; /* 0: not known */
	uint32_t peer_qkey; /* UD */
	uint8_t event;      /* enum cm_event */
	uint8_t private_len;
	uint8_t peer_gid[16];
	char listener[CONF_NAME_MAX];
	uint8_t private[CM_PRIVATE_MAX];
};

/** Upwards: who follows. */
struct connect_up {
	/** @return how many took it. */
	uint32_t (*event)(void *ctx, const struct connect_event *e);
	void *ctx;
};

struct connect {
	struct env *env;
	struct net *net;
	struct admin *admin;
	struct connect_up up;
	struct cm cm;
	uint32_t next_id;
	uint16_t next_port; /* of ports that are given away */
	uint32_t psn;       /* of the next datagram */
	struct connect_listener listeners[CM_LISTENERS];
	struct connect_list conns, ended;
	LIST_HEAD(, connect_conn) by_id[CONNECT_IDS];
	uint32_t ended_n;
	TAILQ_HEAD(, connect_client) clients;
	TAILQ_HEAD(, connect_id) resolving; /* neighbours that are asked for */
	TAILQ_HEAD(, connect_id) bound;     /* that have a service port of their own */
	uint32_t orphans;                   /* connections whose application is gone */
	struct {
		struct connect_inbox at[CONNECT_INBOX];
		uint16_t of[CONNECT_MACS]; /* that wait, of one MAC */
		uint32_t head, n;
		uint64_t lost;
	} inbox;
	struct {
		uint32_t qpn[CONNECT_INBOX];
		uint32_t n;
	} data; /* QPs that had a packet before their RTU */
	struct {
		struct connect_event at[CONNECT_EVENTS];
		uint32_t head, n;
		uint64_t lost;
	} events;
	uint64_t rx[CM_MESSAGE_LAST + 1], tx[CM_MESSAGE_LAST + 1];
	ns_t talked; /* the last message that went out or came in */
	uint64_t duplicates, tx_lost;
	uint64_t drops[CM_DROPS];
	struct log_rate refused_said, failed_said; /* lines that peers can cause */
};

/** Listeners of the configuration. @return 0, -ENOMEM, or another -errno with the refusal. */
int connect_init(struct connect *cx, struct refusal *r);
/** All records go; their QPs are the caller's to end. Right also where connect_init() failed. */
void connect_fini(struct connect *cx);
/** One turn: messages, timers. @return how many. */
uint32_t connect_poll(struct connect *cx);

/** Did a message go or come a moment ago, so that the next may be near? */
bool connect_is_talking(const struct connect *cx);

/** A datagram for QP 1; the frame is copied. */
void connect_frame(struct connect *cx, uint16_t port, const uint8_t *frame, uint32_t len);
/** A packet has come to a QP that is not in RTS (COMM_EST). */
void connect_data(struct connect *cx, uint32_t qpn);

/* connect_listen.c */
/** @return 0 or a refusal: EEXIST, EADDRINUSE, ENOSPC, ENOENT. */
int connect_listen(struct connect *cx, const struct conf_cm_listen *conf, struct refusal *r);
/** The queue pair of a UD listener, to which datagrams go; 0: it has none. */
uint32_t connect_listener_qpn(struct connect *cx, const char *name);
/** Its connections live on. @return 0 or -ENOENT. */
int connect_unlisten(struct connect *cx, const char *name, struct refusal *r);

/** Is this the queue pair of a connection, or of a listener? Such are not saved. */
bool connect_has_qp(struct connect *cx, uint32_t qpn);
/**
 * An operator's listeners as they are now, but for those whose objects are gone.
 * @param out room for CM_LISTENERS. @return how many.
 */
uint32_t connect_save(struct connect *cx, struct conf_cm_listen *out);

struct connect_request {
	int16_t port; /* index */
	struct conf_ah ah;
	uint32_t ps;
	uint16_t service_port;
	struct conf_qp qp;
	const uint8_t *private;
	uint32_t private_len;
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
	ns_t time;
	uint16_t source_port;  /* 0: any */
	uint32_t qpn;          /* of an application's QP; 0: made from `qp` */
	bool srq;              /* that one has an SRQ */
	bool no_credits;       /* ... and the peer is told that it counts none */
	bool walks;            /* that one is walked here, when the REP comes */
	struct connect_id *of; /* ... of its connection, with the way to the peer */
};

/** Ask a peer. @return 0 with the connection, or a refusal. */
int connect_ask(struct connect *cx, const struct connect_request *q, struct connect_conn **out,
	struct refusal *r);
/** Say yes to a REQ. @param qp NULL: as the listener's. @return 0 or a refusal. */
int connect_accept(struct connect *cx, struct connect_conn *cc, const struct conf_qp *qp,
	const uint8_t *private, uint32_t private_len, struct refusal *r);
/** Say no. @return 0 or a refusal. */
int connect_reject(struct connect *cx, struct connect_conn *cc, uint16_t reason,
	const uint8_t *private, uint32_t private_len, struct refusal *r);
/** End it. @return 0 or a refusal. */
int connect_disconnect(struct connect *cx, struct connect_conn *cc, struct refusal *r);
/** May a QP of this type be the answer, with so much private data? @return 0 or a refusal. */
int connect_may_say_yes(
	const struct connect_conn *cc, uint32_t qp_type, uint32_t private_len, struct refusal *r);
/** Answer a REQ with these terms, by a QP that is there. @return 0 or a refusal. */
int connect_say_yes(struct connect *cx, struct connect_conn *cc, struct cm_terms *own,
	const uint8_t *private, uint32_t private_len, struct refusal *r);
/** With this id, over or not. @return NULL and ENOENT. */
struct connect_conn *connect_find(struct connect *cx, uint32_t id, struct refusal *r);

/* connect_tell.c */
/** One connection: states, ids, proposed, taken. */
json_t *connect_json(struct connect *cx, const struct connect_conn *cc);
/** All that there are, then those that are over. */
json_t *connect_list_json(struct connect *cx);
/** What became of it, and why: sentences. */
json_t *connect_explain(struct connect *cx, const struct connect_conn *cc);
/** Counters: cm_rx_req ... */
void connect_counters(const struct connect *cx, json_t *to);

/* connect_events.c */
/** As it is told. */
json_t *connect_event_json(struct connect *cx, const struct connect_event *e);
/** The oldest, taken out; NULL: none. */
json_t *connect_event_take(struct connect *cx);
/** An address as a GID. */
void connect_gid(const struct conf_ip *ip, uint8_t gid[16]);
/** "192.0.2.1" of a GID. */
void connect_gid_text(const uint8_t gid[16], char *buf, size_t room);

#endif
