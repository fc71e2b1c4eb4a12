/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BROKER_H
#define BROKER_H
/**
 * @file broker.h  A thread for each connection of the control socket: whatever a client can make
 *                 slow happens there, and costs that client alone.
 *
 * Owner:   the control lcore, but for what is marked "The thread's".
 * Memory:  a connection has one line of input, a bounded queue of requests, and what the client
 *          gave it: descriptors until they are judged, memory until it is released.
 * Time:    CLOCK_MONOTONIC, for half a line alone.
 * Depends: base, mem, jansson, threads.
 *
 * A descriptor that came over the socket may block whoever closes it (SO_LINGER, FUSE), and so may
 * the socket itself while descriptors wait in it. The thread alone receives and closes; it judges a
 * descriptor at once: a memfd stays, anything else goes. It cuts the lines, parses them and hands
 * them over whole. It maps, seals, checks and unmaps the client's memory. It writes to the client
 * (broker_out.h, broker_signal.h): the kernel looks at each watch that the client has on its end.
 * The control lcore never waits for it: it takes what is in the queue.
 */
#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker_queue.h"
#include "mem.h"

#define BROKER_FDS         8    /* memfds that came and were not used yet */
#define BROKER_LEFT_MAX    1024 /* of broker_left() and broker_leaving(): nobody is accepted then */
#define BROKER_LEAVING_MAX 64

struct broker;
struct broker_conn;
struct broker_memory;
struct broker_making;
struct broker_signal;

#define BROKER_BATCH 64 /* requests of a line; of more nothing is prepared */

/** What a line may be. */
struct broker_limits {
	size_t line;     /* bytes without the newline */
	uint32_t values; /* JSON values, about; 0: any number */
	uint32_t may;    /* bits of broker_slow.who: what is prepared for it */
};

struct broker_slow;

/** What was made in the thread for one request, before it was handed over. */
struct broker_gift {
	struct broker_gift *next;
	const json_t *of; /* the request */
	const struct broker_slow *kind;
	int rc;                       /* 0 or -errno */
	struct broker_memory *memory; /* one use of it; NULL: none, or taken */
	struct mem_area area;         /* base NULL: none, or taken */
	struct broker_signal *waker;  /* NULL: none; the connection has it until it is used */
};

enum broker_kind {
	BROKER_LINE, /* a request, or several */
	BROKER_BAD,  /* a line that is none: code, message */
	BROKER_END,  /* the peer sends no more */
};

struct broker_request {
	struct broker_job job;
	struct broker_conn *conn;
	enum broker_kind kind;
	bool last; /* BROKER_BAD: nothing is read any more */
	size_t len;
	json_t *json;
	int code;
	char message[256];
	struct broker_gift *gifts;
};

/** The thread's: what a request needs that may take long. Sets gift->rc and what it made. */
typedef void (*broker_prepare_fn)(
	const void *ctx, struct broker_conn *c, struct broker_gift *gift, const json_t *params);

/** A kind of requests that need such work. */
struct broker_slow {
	broker_prepare_fn prepare;
	uint32_t who; /* for whose lines: others are refused, and nothing is made for them */
	bool once;    /* for one request of a line at most */
};

/** Set once; used by all threads at a time. */
struct broker_hooks {
	/** @return what is to be done for a request, or NULL. */
	const struct broker_slow *(*find)(const void *ctx, const json_t *request);
	const void *ctx;
	/** The control lcore's: the thread of the connection with this tag has ended. */
	void (*ended)(void *ctx, void *tag);
	void *ended_ctx;
	cpu_set_t cpus; /* where the threads run */
	bool pinned;
};

/* ---- broker_json.c --------------------------------------------------------------------------- */

/** Count from here on how often JSON gets no memory. Once, before there are other threads. */
void broker_json_watch(void);
/** How often this thread got none for JSON. */
uint64_t broker_json_failures(void);
/** The whole value as text, to be freed. @return NULL: no memory, or `v` is NULL. */
char *broker_json_text(const json_t *v);

/* ---- broker.c -------------------------------------------------------------------------------- */

/** @return the broker, or NULL with errno set. */
struct broker *broker_new(const struct broker_hooks *hooks);
/**
 * After each connection was put. Waits a moment for threads to end; one that the kernel holds is
 * left behind, with all that it may touch.
 */
void broker_free(struct broker *b);
/** Readable when a request may have come. */
int broker_fd(const struct broker *b);
/** It is not readable any more. */
void broker_clear(struct broker *b);
/** Threads that have ended are gone. @param now_ms any clock. */
void broker_poll(struct broker *b, uint64_t now_ms);
/** Threads of connections that were put and have not ended yet. */
uint32_t broker_ending(const struct broker *b);
/**
 * Sockets that were turned away and could not be closed yet: they could keep a thread for ever, or
 * there was no memory. It is tried again all the time.
 */
uint32_t broker_left(const struct broker *b);

/**
 * A thread for a connected socket, which is closed by it.
 * @param tag for hooks.ended, if it is not NULL.
 * @return NULL: the socket stays the caller's.
 */
struct broker_conn *broker_conn_start(
	struct broker *b, int fd, const struct broker_limits *limits, void *tag);
/**
 * Say so much, and close a socket that nobody serves, with what waits in it. Never waits. While
 * broker_left() and broker_leaving() have room.
 */
void broker_turn_away(struct broker *b, int fd, const char *text, size_t len);
/** Such that have not been seen off yet. */
uint32_t broker_leaving(const struct broker *b);
/** From the next line on. */
void broker_conn_limit(struct broker_conn *c, const struct broker_limits *limits);
/** Is there a next request? */
bool broker_conn_has(const struct broker_conn *c);
/** Next request, or NULL. It is given back by broker_conn_done() before the next is taken. */
struct broker_request *broker_conn_take(struct broker_conn *c);
/** It is answered: gifts that were not taken go back, too. */
void broker_conn_done(struct broker_request *q);
/** Its gift for one request of it, or NULL. */
struct broker_gift *broker_gift_of(const struct broker_request *q, const json_t *one);
/** The peer is gone: read what it has sent, and no more. */
void broker_conn_drain(struct broker_conn *c);
/** The socket is closed, soon: nothing may be done with it any more. */
void broker_conn_end(struct broker_conn *c);
/** One more who needs the connection's thread. */
struct broker_conn *broker_conn_hold(struct broker_conn *c);
/** One less. After the last one the thread ends, when it has given back all that it has. */
void broker_conn_put(struct broker_conn *c);
/** Run it in the connection's thread: slow ends of things. Never waits. */
void broker_conn_run(struct broker_conn *c, struct broker_job *job);
/** Give an area back, in the thread. Never waits then. @param c NULL: here. */
void broker_area_free(struct broker_conn *c, struct mem_area *a);
/**
 * Make an area in the thread: mem_area_create(). Never waits.
 * @return what broker_area_made() is asked with, or NULL: no memory.
 */
struct broker_making *broker_area_make(
	struct broker_conn *c, size_t len, int node, unsigned int flags);
/** Seal an area in the thread: mem_area_seal(), which takes its descriptor. Never waits. */
struct broker_making *broker_area_seal(struct broker_conn *c, struct mem_area *a);
/** @return -EINPROGRESS; or what mem_area_create() or mem_area_seal() returned, and *m is NULL. */
int broker_area_made(struct broker_making **m, struct mem_area *out);
/** Nobody wants it any more. @param m NULL: nothing. */
void broker_area_drop(struct broker_making *m);
/** Bytes of the client's memory that are mapped. */
uint64_t broker_conn_mapped(const struct broker_conn *c);
/** Bytes that count against the same limit, and are not mapped by the thread. */
void broker_conn_count(struct broker_conn *c, uint64_t bytes);

/* ---- broker_memory.c ------------------------------------------------------------------------- */

/**
 * Mappings of a connection that are in no use, kept for the next region. The kernel gives a process
 * 65,530, of which regions may have half, by their number: 128 connections have a third of them.
 */
enum { BROKER_IDLE = 160 };

/**
 * Each piece of a region is a mapping, beside the one that it is a piece of, and so is each file
 * that is laid. A connection has so many in any case, and all together so many beyond that, and as
 * many more as vm.max_map_count is above 65,530.
 */
enum { BROKER_JOINED = 16, BROKER_JOINED_ALL = 6144 };

/** A piece of a region, of a memfd of its own: whole pages. */
struct broker_piece {
	uint64_t offset;
	uint64_t length;
};

/** How a memfd is taken. */
struct broker_terms {
	uint64_t offset; /* in the memfd; with pieces: from the first one's first byte */
	uint64_t length;
	const struct broker_piece *pieces;
	uint32_t pieces_n; /* BROKER_FDS at most; 0: one memfd */
	uint64_t most;     /* bytes that the connection may have mapped, with what is counted */
	bool any;          /* control.client_memory: also one that cannot be sealed */
	bool once;         /* no further region will be made of it */
};

/**
 * The thread's. The oldest memfd that came: map all of it, seal it, see that all is there; or find
 * it mapped already. @return 0 with gift->memory; -ENODEV: no descriptor came; -EBADF: it was no
 * memfd; -EFBIG: over `most`; -ERANGE: it ends before; and what mem_area_take() returns.
 * With pieces: as many memfds, in their order; what they are together counts once more; -ENFILE:
 * there are too many pieces already.
 */
int broker_memory_get(
	struct broker_conn *c, const struct broker_terms *t, struct broker_gift *gift);
/** The thread's: throw the oldest descriptors away, so many or all that came. */
void broker_fds_drop(struct broker_conn *c, size_t n);
/** Where byte `offset` of the memfd is. */
uint8_t *broker_memory_at(const struct broker_memory *m, uint64_t offset);
/** The mapping, for mem_guard.h. */
const struct mem_area *broker_memory_area(const struct broker_memory *m);
/** Whose it is; hold it for as long as uses may end. */
struct broker_conn *broker_memory_home(const struct broker_memory *m);
/** A number that stands for it in the connection. */
uint32_t broker_memory_id(const struct broker_memory *m);
/** One use less. No worker may touch it any more. Never waits. */
void broker_memory_put(struct broker_memory *m);
/** No further region will be made of this one: unmap it with its last use. Never waits. */
void broker_memory_forget(struct broker_conn *c, uint32_t id);

/* ---- broker_lay.c ---------------------------------------------------------------------------- */

/**
 * The thread's. Lay files into memory of terms.length bytes, from terms.offset on, each behind the
 * one before; 0: begin anew, or without files: end what was begun. They are not sealed: terms.any
 * is a must. @return 0; -ENODEV: fewer came; -ENOENT: that is not where the last one ended;
 * -ENFILE: there are too many pieces already; -EINVAL: not of whole pages, or more than there is
 * room for; as broker_memory_get(). All is gone if it fails.
 */
int broker_memory_lay(struct broker_conn *c, const struct broker_terms *t);
/**
 * The thread's. All of that, and no further file. @return 0 with gift->memory; -ENOENT: nothing was
 * laid, or not all of it; -ERANGE.
 */
int broker_memory_laid(
	struct broker_conn *c, const struct broker_terms *t, struct broker_gift *gift);

#endif
