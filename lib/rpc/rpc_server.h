/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H
/**
 * @file rpc_server.h  The control socket: lines in, lines out, never waiting for a client.
 *
 * Owner:   control lcore.
 * Memory:  a client has an input buffer of at most RPC_LINE_MAX and an output buffer of at most
 *          RPC_OUT_MAX: one that does not read is disconnected.
 * Depends: libc.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "clock.h"
#include "owner.h"
#include "rpc_admit.h"

#define RPC_LINE_MAX    (1u << 20) /* bytes of a line without its newline */
#define RPC_OUT_MAX     (8u << 20)

#define RPC_FDS_MAX 8 /* descriptors that came and were not used yet, or go with one line */

struct app;
struct env;
struct methods;

struct rpc_client {
	TAILQ_ENTRY(rpc_client) all;
	int fd;
	bool follow;  /* carries async_event notifications */
	bool closing; /* error sent; input is thrown away until the peer closes */
	bool eof;     /* the peer sends no more; what it sent is still answered */
	bool dead;    /* to be freed at the end of the turn */
	ns_t close_by;
	char *in;
	size_t in_len;
	size_t in_room;
	size_t scanned; /* bytes of `in` known to hold no newline */
	char *out;
	size_t out_len;
	size_t out_sent;
	size_t out_room;
	bool wants_out;  /* EPOLLOUT is armed */
	bool readable;   /* level seen by epoll and not yet exhausted */
	bool limited;    /* came by the clients' socket: nothing but clients' methods */
	bool operator;   /* rpc_is_operator() */
	struct app *app; /* after client_open */
	struct owner_process peer;
	int in_fds[RPC_FDS_MAX]; /* in the order in which they came */
	uint32_t in_fds_n;
	int out_fds[RPC_FDS_MAX]; /* to go with the byte out_fds_at of `out`; closed then */
	uint32_t out_fds_n;
	size_t out_fds_at;
};

struct rpc_listener {
	int fd;
	bool bound;
	dev_t dev; /* of the socket file, to unlink no other */
	ino_t ino;
	char path[108];
};

struct rpc_table;

/** Upwards: what others have to hear. Set once, by the owner of the loop. */
struct rpc_up {
	/** The connection ends; its `app` ends with it. */
	void (*closed)(void *ctx, struct rpc_client *cl);
	void *ctx;
};

struct rpc_server {
	struct env *env;
	struct rpc_up up;
	const struct rpc_table *tables; /* one without methods ends the list */
	struct methods *m;              /* what the methods work on; rpc hands it over, no more */
	TAILQ_HEAD(rpc_clients, rpc_client) clients;
	struct rpc_admission admission;
	struct log_rate told_slow;
	uint32_t followers;
	int epoll_fd;
	struct rpc_listener main;
	struct rpc_listener clients_only; /* control.client_socket */
};

/** @param srv all zero. */
void rpc_server_init(struct rpc_server *srv, struct env *env, const struct rpc_up *up);
/** @return 0 or -errno with the reason logged; -EADDRINUSE: somebody is listening there. */
int rpc_server_open(struct rpc_server *srv);
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
/** Oldest descriptor that came with the connection's lines, now the caller's; -1: there is none. */
int rpc_server_take_fd(struct rpc_client *cl);
/** A descriptor to send with the next line, and to close then. @return 0 or -ENOSPC: closed. */
int rpc_server_attach_fd(struct rpc_client *cl, int fd);
/** Notifications go to this connection, too, from now on. */
void rpc_server_follow(struct rpc_server *srv, struct rpc_client *cl);

#endif
