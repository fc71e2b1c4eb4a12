/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H
/**
 * @file rpc_server.h  The control socket: requests in, lines out, never waiting for a client.
 *
 * Owner:   control lcore. What comes in is received by the connection's thread (broker.h).
 * Memory:  a client has an output buffer of at most RPC_OUT_MAX, behind a line of any length that
 *          comes first (an operator may ask for all there is): one that does not read is
 *          disconnected. Lines of clients are short and have few values, an operator's may be long.
 * Time:    a turn runs requests until it has lasted RPC_TURN_NS, but for RPC_LEAST_NS in any case,
 *          and the one that is under way then, a request of each connection after the other; then
 *          ends of connections until RPC_ENDS_NS, one in any case.
 * Depends: broker.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "broker_out.h"
#include "clock.h"
#include "owner.h"
#include "rpc_admit.h"

#define RPC_LINE_MAX     (1u << 20)  /* bytes of a line without its newline */
#define RPC_APP_LINE_MAX (64u << 10) /* of an application's, or by the clients' socket */
#define RPC_APP_VALUES   4096        /* JSON values in it, about */
#define RPC_OUT_MAX      (8u << 20)
#define RPC_TURN_NS      TIME_NS_PER_MS
#define RPC_LEAST_NS     (250 * TIME_NS_PER_US) /* for requests, in any case */
#define RPC_ENDS_NS      (1500 * TIME_NS_PER_US)
#define RPC_PUT_OFF_NS   (4 * TIME_NS_PER_S) /* a request that waits for something is refused */

#define RPC_FULL_NS (100 * TIME_NS_PER_MS) /* between looks for a descriptor to accept with */

#define RPC_FDS_MAX BROKER_OUT_FDS

struct app;
struct env;
struct methods;

struct rpc_client;

/** What epoll tells of: the connection's socket, or the process at its other end. */
struct rpc_watch {
	struct rpc_client *cl;
	bool process;
};

/** A line under way: one request of it after the other. */
struct rpc_work {
	struct broker_request *from; /* NULL: there is none */
	const json_t *json;
	json_t *replies; /* of a batch */
	size_t next;
	size_t total;  /* bytes of `replies`, about */
	bool lost;     /* no memory for the answer: nothing can be said */
	ns_t since;    /* the request under way was put off then, 0: it was not */
	uint64_t turn; /* of the last try */
};

/** What a connection has asked to be told of as it comes: a bit each. */
enum rpc_notes { RPC_ASYNC_EVENTS = 1, RPC_CM_EVENTS = 2, RPC_CQ_EVENTS = 4 };

struct rpc_client {
	TAILQ_ENTRY(rpc_client) all;
	int fd;      /* read, written and closed by the thread */
	int process; /* pidfd of the peer, -1: it cannot be had */
	struct broker_conn *conn;
	struct rpc_watch on_socket;
	struct rpc_watch on_process;
	struct rpc_work work;
	uint8_t follows; /* bits of enum rpc_notes; with any all notifications go to it */
	bool closing;    /* error sent; input is thrown away until the peer closes */
	bool eof;        /* the peer sends no more; what it sent is still answered */
	bool hup;        /* it reads no more either */
	bool dead;       /* to be freed at the end of the turn */
	ns_t close_by;   /* UINT64_MAX: no need to */
	bool limited;    /* came by the clients' socket: nothing but clients' methods */
	bool operator;   /* rpc_is_operator() */
	struct app *app; /* after client_open */
	struct owner_process peer;
	int out_fds[RPC_FDS_MAX]; /* to go with the next line; closed then */
	uint32_t out_fds_n;
	size_t out_first; /* bytes of the line that was said when all before it was written */
};

struct rpc_listener {
	int fd;
	bool bound;
	dev_t dev; /* of the socket file, to unlink no other */
	ino_t ino;
	char path[108];
};

struct rpc_table;

/** A method whose slow part is done before it is called, in the connection's thread. */
struct rpc_slow {
	const char *name;
	struct broker_slow slow; /* its context is the struct rpc_server; `who`: enum rpc_may */
};

/** Whose requests are prepared: those that check_who() lets through. */
enum rpc_may {
	RPC_MAY_OPEN = 1,    /* a connection that is no client yet */
	RPC_MAY_APP = 2,     /* a client */
	RPC_MAY_OPERATE = 4, /* not a client, and not by the clients' socket */
};

/** Upwards: what others have to hear. Set once, by the owner of the loop. */
struct rpc_up {
	/** The connection ends; its `app` ends with it. */
	void (*closed)(void *ctx, struct rpc_client *cl);
	/** May a request of this application run? Else it is put off, or refused. @return 0. */
	int (*ready)(void *ctx, struct rpc_client *cl, struct refusal *r);
	/** The answer instead of a refusal: what the application has to do first. Or NULL. */
	json_t *(*first)(void *ctx, struct rpc_client *cl);
	void *ctx;
};

struct rpc_server {
	struct env *env;
	struct rpc_up up;
	const struct rpc_table *tables; /* one without methods ends the list */
	struct methods *m;              /* what the methods work on; rpc hands it over, no more */
	const struct rpc_slow *slow;    /* of them, what takes long; one without a name ends it */
	struct broker *broker;          /* NULL: not open */
	TAILQ_HEAD(rpc_clients, rpc_client) clients; /* the next to be served is the first */
	uint32_t n;                                  /* of them */
	struct rpc_admission admission;
	struct log_rate told_slow;
	struct log_rate told_lost;
	struct log_rate told_full;
	uint32_t followers;
	int epoll_fd;
	struct rpc_listener main;
	struct rpc_listener clients_only; /* control.client_socket */
	ns_t accept_at;                   /* nobody is accepted before; 0: at any time */
	bool crowded;                     /* ... or before the broker has room */
};

/** @param srv all zero. */
void rpc_server_init(struct rpc_server *srv, struct env *env, const struct rpc_up *up);
/** @return 0 or -errno with the reason logged; -EADDRINUSE: somebody is listening there. */
int rpc_server_open(struct rpc_server *srv);
/** For hooks.ended: the connection's place is free. */
void rpc_server_ended(void *ctx, void *tag);
/** Every connection ends, the socket's file is taken away. */
void rpc_server_close(struct rpc_server *srv);
/** Every connection: what can be written is, then it ends. */
void rpc_server_drop_all(struct rpc_server *srv);
/** Listen at a path. @return 0 or -errno, with the reason logged. */
int rpc_listener_open(
	struct rpc_server *s, struct rpc_listener *l, const char *path, uint32_t mode);
/** Take the file away, too. */
void rpc_listener_close(struct rpc_listener *l);
/** Accept, read, run, write: a bounded share for each client. @return pieces of work. */
uint32_t rpc_server_poll(struct rpc_server *srv);
/** Queue a line (newline is added) for one client. */
void rpc_server_send(struct rpc_server *srv, struct rpc_client *cl, const char *line, size_t len);
/** A descriptor to go with the next line, and to be closed then. @return 0 or -ENOSPC: closed. */
int rpc_server_attach_fd(struct rpc_client *cl, int fd);
/** It is an application from now on. */
void rpc_server_is_app(struct rpc_client *cl, struct app *app);
/** Close descriptors of the dataplane's own that were to go to the peer. */
void rpc_server_drop_fds(struct rpc_client *cl);
/** Process, user and group at the other end of a socket. */
struct owner_process rpc_peer(int fd);
/** A pidfd of that process. @return -1: none can be had; -ESRCH: it is gone. */
int rpc_peer_process(int fd, const struct owner_process *peer);
/** Notifications go to this connection, too, from now on. `what` is delivered by them. */
void rpc_server_follow(struct rpc_server *srv, struct rpc_client *cl, enum rpc_notes what);
/** No more, of any kind. */
void rpc_server_unfollow(struct rpc_server *srv, struct rpc_client *cl);

#endif
