/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_PRIV_H
#define CLIENT_PRIV_H
/**
 * @file client_priv.h  Inside librocelane: what stands behind the structs of rocelane.h.
 *
 * Owner:   the process that opened the connection. ctx->lock is held around calls to the dataplane
 *          and list changes; the data path takes the locks of single queues only.
 * Memory:  each object is one allocation that begins with its public part.
 * Depends: base, jsonrpc, ring, jansson, pthread.
 *
 * open.c     connection, areas, device, ports       call.c   one request, its answer, descriptors
 * presence.c waiting for workers, waking them       users.c  the QPs of a completion queue
 * mw.c       memory windows                         cm.c, cm_event.c  connections
 * memory.c, mr.c  PDs, memory; regions             cq.c, channel.c  completion queues
 * qp.c       queue pairs                            qp_attr.c  attributes to and from JSON
 * srq.c      shared receive queues                  post.c   work requests
 * event.c    asynchronous events                    words.c  names of enumerators
 */
#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cancel.h"
#include "compiler.h"
#include "include/rocelane.h"
#include "jsonrpc.h"
#include "ring.h"
#include "ring_bell.h"
#include "ring_presence.h"
#include "ring_send.h"

#define CLIENT_ABI  1
#define ANSWER_MAX  (2u << 20) /* bytes of an answer */
#define QP_BUCKETS  1024
#define ARMED_NEVER (-1)
#define PATIENCE_MS 30000    /* for an answer */
#define ERROR_CODE  (-32000) /* minus errno: a refusal */

/** Uncontended: one locked operation. Waiters yield, since a holder may have lost its CPU. */
struct spin {
	atomic_flag held;
};

/** Take the lock. Any thread; not from a signal handler. */
static inline void
spin_lock(struct spin *s)
{
	for (uint32_t i = 0;
		UNLIKELY(atomic_flag_test_and_set_explicit(&s->held, memory_order_acquire)); i++) {
		if (i > 100)
			sched_yield();
	}
}

/** Give it back: by the thread that took it. */
static inline void
spin_unlock(struct spin *s)
{
	atomic_flag_clear_explicit(&s->held, memory_order_release);
}

struct area {
	uint8_t *base; /* NULL: it could not be mapped */
	size_t len;
	bool told; /* ... and the dataplane knows it */
};

struct port {
	char name[64];
	uint8_t mac[6];
	uint32_t path_mtu;
	union rl_gid gid[2];
	int gids;
};

/** Memory of rl_mem_alloc(). */
struct memory {
	TAILQ_ENTRY(memory) all;
	uint8_t *base;
	size_t len; /* mapped */
	int fd;
	uint32_t users;
	uint32_t known; /* what the dataplane calls it; 0: it does not know of it */
};

struct pd {
	struct rl_pd pub;
	TAILQ_ENTRY(pd) all;
	uint32_t handle;
};

struct mr {
	struct rl_mr pub;
	TAILQ_ENTRY(mr) all;
	uint32_t handle;
	struct memory *memory; /* or NULL: the application's memfd */
	bool own_memory;       /* goes with the region */
	int access;            /* enum rl_access_flags */
	bool fast;             /* of rl_alloc_mr(): the handle is a window's, there are no bytes */
};

struct mw {
	struct rl_mw pub;
	TAILQ_ENTRY(mw) all;
	uint32_t handle;
};

struct channel {
	struct rl_comp_channel pub;
	int event_fd; /* what pub.fd watches, beside the connection's end */
	TAILQ_ENTRY(channel) all;
	TAILQ_HEAD(, cq) cqs;
	uint32_t handle;
};

/** Events that were handed out, and those that came back. */
struct acks {
	uint32_t given;
	uint32_t acked;
};

/** A QP among those of a completion queue. */
struct cq_user {
	struct cq_user *next;
	struct qp *qp;
};

struct cq {
	struct rl_cq pub;
	TAILQ_ENTRY(cq) all;
	TAILQ_ENTRY(cq) of_channel;
	uint32_t handle;
	uint32_t fired; /* of the ring's counter: events fetched */
	struct acks completion;
	struct acks async;
	struct spin lock;
	struct ring_cq ring;
	struct cq_user **users; /* by QP number, users_mask + 1 lists; NULL: none yet */
	uint32_t users_mask;
	uint32_t users_n;
	struct ring_cqe *left; /* what stood in it when it was resized, or NULL */
	uint32_t left_at;      /* the next of them */
	uint32_t left_n;
	uint32_t idle;           /* polls that found nothing */
	uint32_t vain;           /* ... in a row */
	_Atomic uint32_t looked; /* that, when others were looked for */
	bool armed_next;         /* rl_req_notify_cq(cq, 0) was called when `fired` was armed_at */
	uint32_t armed_at;
	int64_t armed_from; /* index from which on a completion counts, or ARMED_NEVER */
};

struct qp {
	struct rl_qp pub;
	TAILQ_ENTRY(qp) all;
	TAILQ_ENTRY(qp) bucket;
	struct cq_user of_send; /* of send_cq */
	struct cq_user of_recv; /* of recv_cq, where that is another one */
	struct acks async;
	struct rl_qp_cap cap;
	bool sig_all;
	_Atomic uint32_t longest; /* bytes of a message */
	_Atomic uint32_t worker;
	_Atomic uint32_t state; /* enum rl_qp_state: what pub.state says, for other threads */
	struct spin sq_lock CACHE_ALIGNED;
	struct ring sq;    /* sh NULL: none */
	uint8_t *signaled; /* a byte for each entry of sq: it brings a completion */
	struct spin rq_lock CACHE_ALIGNED;
	struct ring rq; /* sh NULL: it receives from an SRQ */
	/* writer: who polls. Entries whose completions were polled: the others count as posted. */
	_Atomic uint32_t sq_done CACHE_ALIGNED;
	_Atomic uint32_t rq_done;
};

struct ah {
	struct rl_ah pub;
	TAILQ_ENTRY(ah) all;
	uint32_t handle;
	uint32_t key;        /* what work requests name it by */
	struct ah_use *uses; /* ended: who still needs it */
	uint32_t uses_n;
};

struct xrcd {
	struct rl_xrcd pub;
	TAILQ_ENTRY(xrcd) all;
	uint32_t handle;
};

struct srq {
	struct rl_srq pub;
	TAILQ_ENTRY(srq) all;
	uint32_t handle;
	struct acks async;
	uint32_t max_wr;
	uint32_t max_sge;
	struct spin lock CACHE_ALIGNED;
	struct ring ring; /* where it is, and how large, is the lock's, too */
};

struct context {
	struct rl_context pub;
	pthread_mutex_t lock;   /* client_lock() */
	int cancel;             /* of the thread that has it: cancel.h */
	pthread_cond_t acked;   /* an event came back */
	struct jsonrpc line;    /* `fds`: descriptors that nobody asked for yet */
	_Atomic bool broken;    /* the connection is of no use any more */
	_Atomic bool gone;      /* ... because the dataplane has closed it */
	_Atomic int64_t looked; /* ms, client_lost() */
	bool gone_told;
	struct area *areas;
	uint32_t areas_n;
	struct ring_bells *bells; /* one a worker */
	uint32_t workers;
	const struct ring_presence *presence; /* of the workers; NULL: nobody says */
	size_t presence_len;
	bool few_cpus; /* not one for each of a worker and two ends */
	int wake_fd;   /* a write wakes the workers that sleep; -1: nothing does */
	uint32_t ends; /* channels that watch the connection's end */
	struct rl_device_attr limits;
	struct port *ports;
	int event_fd;
	TAILQ_HEAD(, pd) pds;
	TAILQ_HEAD(, mr) mrs;
	TAILQ_HEAD(, mw) mws;
	TAILQ_HEAD(, memory) memories;
	TAILQ_HEAD(, channel) channels;
	TAILQ_HEAD(, cq) cqs;
	TAILQ_HEAD(, xrcd) xrcds;
	TAILQ_HEAD(, srq) srqs;
	TAILQ_HEAD(ahs, ah) ahs;
	struct ahs ended_ahs; /* requests that have not completed name them */
	TAILQ_HEAD(, qp) qps;
	TAILQ_HEAD(, cm_channel) cm_channels;
	TAILQ_HEAD(, cm_id) cm_ids;
	TAILQ_HEAD(, qp) by_number[QP_BUCKETS];
};

/** Take ctx->lock. Its thread cannot be cancelled until it gives it back. */
static inline void
client_lock(struct context *ctx)
{
	const int cancel = cancel_hold();

	pthread_mutex_lock(&ctx->lock);
	ctx->cancel = cancel;
}

/** Give it back. */
static inline void
client_unlock(struct context *ctx)
{
	const int cancel = ctx->cancel;

	pthread_mutex_unlock(&ctx->lock);
	cancel_go_on(cancel);
}

/** The last error of this thread becomes this text. @return -err. */
int client_fail(int err, const char *fmt, ...) PRINTF(2, 3);

/* ---- call.c ---------------------------------------------------------------------------------- */

/**
 * One request and its answer, ctx->lock held. `params` is taken over.
 * @param fd to send along, -1: none. @param result a new reference; NULL: not wanted.
 * @return 0 or -errno: the dataplane's refusal, or -EIO, -ETIMEDOUT of the connection.
 */
int client_call(struct context *ctx, const char *method, json_t *params, int fd, json_t **result);
/** The same with several descriptors, JSONRPC_FDS at most. */
int client_call_fds(struct context *ctx, const char *method, json_t *params, const int *fds,
	uint32_t fds_n, json_t **result);
/**
 * client_call() whose answer may bring descriptors. Nothing is asked where the program has no room
 * for them: they come once. @return also -EMFILE.
 */
int client_call_for_fds(struct context *ctx, const char *method, json_t *params, json_t **result);
/** Next descriptor that came with the last answer, now the caller's; -1: none. */
int client_take_fd(struct context *ctx);
/**
 * client_take_fd() of what was made just now; it cannot be used without.
 * @param unmake the method that takes its handle then. @return the descriptor; or -EMFILE.
 */
int client_take_made_fd(struct context *ctx, const char *unmake, uint32_t handle);
/**
 * The same of a channel's eventfd. @return a descriptor for those who poll: readable when there are
 * events, and for good when the dataplane is gone; of the channels beyond the first 48 it is the
 * eventfd itself, which does not tell of the end. Or -EMFILE.
 */
int client_take_channel(struct context *ctx, const char *unmake, uint32_t handle, int *event_fd);
/** Close both. */
void client_close_channel(struct context *ctx, int fd, int event_fd);
/** The same as client_call() for {"handle": n} and no answer; takes the lock. */
int client_call_handle(struct context *ctx, const char *method, uint32_t handle);

/* ---- memory.c -------------------------------------------------------------------------------- */

/** Memory to be shared, ctx->lock held. @return 0 or -errno. */
int client_memory_new(struct context *ctx, size_t length, struct memory **out);
/** The same's end, lock held. @param dead the connection is over: nobody has to be told. */
void client_memory_free(struct context *ctx, struct memory *m, bool dead);
/** The memory that holds all of [addr, addr + length), or NULL; lock held. */
struct memory *client_memory_of(struct context *ctx, const void *addr, size_t length);

/* ---- open.c ---------------------------------------------------------------------------------- */

/** Map the areas that an answer tells of. @return 0 or -errno. */
int client_map_areas(struct context *ctx, const json_t *result);
/** @return false: each is mapped, or the dataplane was told that it is not. */
bool client_lost_area(struct context *ctx, uint32_t *number);
/** {"area", "offset"} as an address, with `bytes` behind it; NULL: out of bounds. */
void *client_place(struct context *ctx, const json_t *at, size_t bytes);
/** @return 0; -EINVAL: there is no such port. */
int client_check_port(const struct context *ctx, uint8_t port_num);
/** Has the dataplane closed the connection? */
bool client_is_gone(struct context *ctx);
/** The same for the data path: a system call now and then only. */
bool client_lost(struct context *ctx);
/** @return -EIO, and why. */
int client_no_dataplane(void);

/* ---- presence.c ------------------------------------------------------------------------------ */

/**
 * Ask where the workers are. A dataplane that does not say so is as good, but for one core.
 * @return 0; -ETIMEDOUT: a worker has not heard of us; or -errno of a connection that is lost.
 */
int client_presence_open(struct context *ctx);
/** Also of one that was never asked. */
void client_presence_close(struct context *ctx);
/** A doorbell was rung at a worker that sleeps. Cost: a system call. */
void client_wake(struct context *ctx);
/**
 * There is nothing to do but to wait for a worker: if one needs this CPU, it gets it. So does the
 * peer, where a worker and two ends have fewer than three CPUs. Cost: a system call on a worker's
 * CPU, or one in so many where CPUs are few; else a few cycles.
 * @param looked of the completion queue: see crowd.h. @param vain polls of it in a row.
 */
void client_give_way(const struct context *ctx, _Atomic uint32_t *looked, uint32_t vain);

/** As far as is known already. */
static inline bool
client_gone(struct context *ctx)
{
	return UNLIKELY(atomic_load_explicit(&ctx->gone, memory_order_relaxed));
}

/* ---- qp_attr.c ------------------------------------------------------------------------------- */

/** Parameters of a modify, or NULL with the error filled in. */
json_t *client_attr_encode(
	struct context *ctx, const struct qp *qp, const struct rl_qp_attr *attr, int mask);
/** An address vector as the dataplane reads it. */
json_t *client_path_encode(const struct rl_ah_attr *ah);
/** An address as text. @param text INET6_ADDRSTRLEN bytes. */
void client_ip_of(const union rl_gid *gid, char *text);
/** What a reply says of a QP, as attributes; keys that are not there leave theirs alone. */
void client_attr_decode(struct context *ctx, const json_t *o, struct rl_qp_attr *attr);

/* ---- others ---------------------------------------------------------------------------------- */

/** Wait until all events of an object came back; lock held. */
void client_wait_acks(struct context *ctx, const struct acks *a);
/** A queue's ring, as the dataplane laid it out, with entries of at least `least` bytes. */
int client_take_ring(struct context *ctx, const json_t *o, uint32_t least, struct ring *r);
/** ctx->lock held. */
struct qp *client_qp_by_number(struct context *ctx, uint32_t qpn);
/** `n` completions of one of its queues were polled. */
void client_qp_completed(struct qp *qp, bool is_recv, uint32_t n);
/** Its completions come to these queues from now on. @return 0 or -ENOMEM. */
int client_cqs_join(struct qp *qp);
/** They do not any more: no poll looks at the QP behind this. */
void client_cqs_leave(struct qp *qp);
/** The QP of this number whose completions come to the queue, or NULL; cq->lock held. */
struct qp *client_cq_user(const struct cq *cq, uint32_t qpn);
/** The QP is in RESET, or gone: nobody polls what it completed. `cq` may be NULL. */
void client_cq_forget(struct rl_cq *cq, uint32_t qp_num);
/** The QP has forgotten its requests: give back the handles that only they named. */
void client_ahs_left(struct context *ctx, const struct qp *qp);
/** Free what is left of them; the connection is closed. */
void client_free_ahs(struct context *ctx);
/**
 * A device knows of what was posted at once, a worker only when its turn comes: wait until the
 * worker has heard of what was posted, or, of UC and UD, until that is sent, but not longer than
 * about a second in which nothing was.
 */
void client_let_sends_go(struct context *ctx, struct qp *qp);
/** rl_create_qp(). @param port_num a connection's: made in INIT, UD in RTS; 0: in RESET. */
int client_create_qp(
	struct rl_pd *pd, struct rl_qp_init_attr *init, uint8_t port_num, struct rl_qp **out);
/** The dataplane has moved it. */
void client_qp_is(struct qp *qp, enum rl_qp_state state);
/** Free a QP of the library, once the dataplane has none of it any more. */
void client_qp_free(struct qp *qp);
/**
 * Until it is readable, one is taken off. @param shown the program's, whose O_NONBLOCK counts.
 * @return 0, -EAGAIN, or -EIO: the dataplane is gone.
 */
int client_fd_wait(struct context *ctx, int fd, int shown);
/** It is on no list any more. Under the lock. */
void client_channel_free(struct context *ctx, struct channel *ch);
/** Free what is left; the connection is closed. */
void client_free_cqs(struct context *ctx);
/** The same of connections. */
void client_free_cm(struct context *ctx);
/** The same of memory windows. */
void client_free_mws(struct context *ctx);
/** The same of the memory that was mapped. */
void client_free_memory(struct context *ctx);

/**
 * epoll_create1() of the kernel, whoever else has calls of this name. librspreload has, for
 * rsockets: a program cannot sleep on its sets, and it makes them under the lock under which it
 * opens devices.
 */
static inline int
client_set_create(void)
{
	return (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
}

/** The same of epoll_ctl(). */
static inline int
client_set_ctl(int set, int op, int fd, struct epoll_event *event)
{
	return (int)syscall(SYS_epoll_ctl, set, op, fd, event);
}

/** The library's struct behind the one that the application has: its first member. */
static inline struct context *
context_of(struct rl_context *ctx)
{
	return (void *)ctx;
}

/** The same of a queue pair. */
static inline struct qp *
qp_of(struct rl_qp *qp)
{
	return (void *)qp;
}

/** The same of a shared receive queue. */
static inline struct srq *
srq_of(struct rl_srq *srq)
{
	return (void *)srq;
}

#endif
