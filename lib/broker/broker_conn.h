/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BROKER_CONN_H
#define BROKER_CONN_H
/**
 * @file broker_conn.h  What the files of this module know of a connection.
 *
 * Owner:   as each member says; atomics are for both sides.
 * Memory:  one allocation, freed by the control lcore after the thread has ended.
 * Depends: broker.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "broker.h"
#include "log_rate.h"

struct broker_memory {
	struct broker_job job; /* on its way while `puts` is not 0 */
	_Atomic uint32_t puts; /* uses that have ended */
	struct broker_conn *conn;

	/* The thread's; what does not change after the first use is for everybody. */
	TAILQ_ENTRY(broker_memory) all;
	uint32_t users;
	bool once;
	uint32_t id;
	bool whole; /* sealed, and found again by dev and ino */
	dev_t dev;
	ino_t ino;
	pid_t pid;                        /* whose it is; 0: not known */
	TAILQ_ENTRY(broker_memory) taken; /* while it is `whole`; under a lock of broker_memory.c */
	uint64_t from;                    /* offset of the first byte that is of use */
	uint64_t size;                    /* bytes behind it */
	uint64_t head;                    /* where it is in the area */
	struct broker_memory *pieces[BROKER_FDS]; /* that it consists of: it uses each */
	uint32_t pieces_n;
	uint32_t laid_n; /* files that lie in it, one behind the other (broker_lay.c) */
	struct mem_area area;
	uint64_t counted; /* of it in the connection's `mapped`: the area may have ended */
};

TAILQ_HEAD(broker_memories, broker_memory);

struct broker_conn {
	struct broker_job job; /* the helper's: start its thread, join it */
	struct broker *b;
	LIST_ENTRY(broker_conn) all;     /* control's */
	TAILQ_ENTRY(broker_conn) parked; /* the helper's */
	uint32_t refs;                   /* control's */
	bool counted;                    /* control's: among the ending ones */
	void *tag;                       /* control's */
	pthread_t thread;                /* when it is `started` */
	int fd;                          /* the thread's to close */
	pid_t pid; /* who connected; 0: not known, or not to be told from others */
	int wake;  /* eventfd: the thread has something to do */

	struct broker_queue queue;
	struct broker_jobs jobs;
	_Atomic bool started; /* it has a thread */
	_Atomic bool drain;   /* read what has come, and no more */
	_Atomic bool stop;    /* close the socket */
	_Atomic bool finish;  /* give everything back, and end */
	_Atomic bool waits;   /* for room in the queue, or for the answers to all in it */
	_Atomic bool closed;  /* the socket is */
	_Atomic bool ended;
	_Atomic size_t line_max;
	_Atomic uint32_t values_max;
	_Atomic uint32_t may; /* broker_limits.may */
	_Atomic size_t bytes_done;
	_Atomic uint64_t mapped;
	_Atomic uint64_t counted_bytes;
	_Atomic size_t unsaid;   /* bytes on their way to the peer */
	_Atomic bool deaf;       /* it cannot be written to any more */
	struct broker_jobs said; /* to be freed */

	/* The thread's. */
	size_t bytes_put;
	char *in;
	size_t in_at;  /* first byte that was not cut into lines yet */
	size_t in_len; /* bytes behind it */
	size_t in_room;
	size_t scanned;  /* bytes behind in_at known to hold no newline */
	int64_t half_ms; /* when half a line is too old; 0: there is none */
	bool late;
	bool eof;
	bool ended_input; /* BROKER_END is on its way */
	bool discard;     /* a line was too long, or too slow */
	struct broker_request *pending;
	int fds[BROKER_FDS]; /* -1: one that was refused */
	uint32_t fds_n;
	bool shared; /* another process than the one that connected has sent descriptors */
	STAILQ_HEAD(, broker_out) out; /* not written yet */
	struct broker_signal *waker;   /* NULL: none; to be ended by who uses it, or by us */
	struct broker_memories memories;
	uint32_t idle;   /* of them, those without a use */
	uint32_t joined; /* pieces of regions */
	uint32_t last_memory;
	struct broker_memory *laid; /* files are laid into it, or NULL; a use of it is ours */
	uint64_t laid_to;           /* so far */
};

/*
 * What the control lcore never does itself: to map or unmap anything, it would have to wait for a
 * connection's thread that does so, and that may wait for a CPU. A thread's stack is mapped, so a
 * thread of its own starts the others, and joins them.
 */
struct broker_helper {
	pthread_t thread;
	struct broker_jobs jobs;
	int wake;
	_Atomic bool stop;
	TAILQ_HEAD(, broker_conn) parked; /* the thread's: to be started later */
	struct log_rate no_thread;        /* the thread's */
};

/** A socket that is to be closed some time. */
struct broker_stray {
	int fd;
	bool told; /* and shut down */
};

struct broker {
	struct broker_hooks hooks;
	int fd;
	struct broker_helper helper;
	LIST_HEAD(, broker_conn) all;
	uint32_t stopped; /* told to close, and not ended */
	uint32_t ending;
	/* Those that are turned away, broker_away.c. */
	struct broker_helper closer;
	struct broker_jobs away; /* seen off, or not to be closed there */
	uint32_t leaving;        /* asked for, and not seen off */
	uint32_t strangers;      /* threads that close what was turned away */
	/* That none was there for, in turn. */
	struct broker_stray left[BROKER_LEFT_MAX + BROKER_LEAVING_MAX];
	uint32_t left_n;
	uint64_t tried_ms; /* when some of them had their turn */
	uint64_t nudged_ms;
};

/* ---- broker_memory.c: the thread's ------------------------------------------------------- */

/** @return 0 with room for so many bytes more, or -EFBIG. */
int broker_memory_room(struct broker_conn *c, const struct broker_terms *t, uint64_t bytes);
/** Pieces are mappings: take room for so many. @return false: there is none. */
bool broker_pieces_take(struct broker_conn *c, uint32_t n);
/** It is mapped: from now on the connection has it. */
void broker_memory_add(struct broker_memory *m);
/** A use of it ends. */
void broker_memory_drop(struct broker_memory *m);

/* ---- broker_lay.c ---------------------------------------------------------------------------- */

/** What is laid and not taken goes. */
void broker_laid_end(struct broker_conn *c);

/* ---- broker.c -------------------------------------------------------------------------------- */

/** Add one to an eventfd of ours. */
void broker_wake_fd(int fd);
/** One more thing for it to do. Never waits. */
void broker_let_help(struct broker_helper *h, struct broker_job *job);
/** Not begun yet. @return NULL: no memory, or no descriptor. */
struct broker_conn *broker_conn_new(struct broker *b, int fd);
/** It gets its thread. */
void broker_conn_begin(struct broker_conn *c);
/** What was turned away is seen off. @param now_ms as broker_poll(). */
void broker_away_poll(struct broker *b, uint64_t now_ms);
/** The thread's life. @param arg the connection. */
void *broker_conn_main(void *arg);
/** The thread's: that which nobody used. */
void broker_waker_end(struct broker_conn *c);
/** Tell the control lcore to look. Any thread. */
void broker_wake(struct broker *b);
/** An eventfd is not readable any more. */
void broker_clear_fd(int fd);
/** Run all of them. The thread's that they are for. */
void broker_jobs_run(struct broker_jobs *jobs);
/** The thread's: milliseconds of its clock. */
int64_t broker_now_ms(void);
/** The thread's: take what the peer has sent. */
void broker_receive(struct broker_conn *c);
/** The thread's: nothing was read for a while, so that the rest of half a line has time anew. */
void broker_half_again(struct broker_conn *c);
/** The thread's: is there room for the next request? */
bool broker_may_go(const struct broker_conn *c);
/** The thread's: hand over what there is. @return false: control has to take something first. */
bool broker_advance(struct broker_conn *c);
/** The thread's: close descriptors that nobody took. */
void broker_fds_end(struct broker_conn *c);
/** What all connections share. */
const struct broker_hooks *broker_hooks_of(const struct broker *b);
/** The thread's: free a request with what nobody took of it. */
void broker_request_free(struct broker_request *q);
/** The thread's, at its end: unmap what is not in use. */
void broker_memories_end(struct broker_conn *c);

#endif
