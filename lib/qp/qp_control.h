/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_CONTROL_H
#define QP_CONTROL_H
/**
 * @file qp_control.h  What the control lcore does with a QP: makes it, says how it is to be, looks
 *                     at it, frees it.
 *
 * Owner:   control lcore only, unless a function says something else. struct qp is not visible
 *          here: its fields are its worker's, and a store into one does not compile.
 * Memory:  one rte_malloc() block for each QP, with its rings unless they have memory of their own;
 *          a compact QP is a cell of a slab (qp_parts.h).
 * Depends: base wire ring stats; DPDK.
 *
 * Everything that a worker shall know of a QP goes by message (mbox/messages.def): settings with
 * QP_ATTACH, attributes, paths, MACs and the trace switch with QP_MODIFY, rings with QP_WORK, a
 * worker's number with QP_PARK and QP_RELEASE. These words both sides share, because one of them
 * must not wait for the other:
 *
 *   word                        writer             reader
 *   qp.state, .migrations       worker             control: qp_state_now(), qp_migrations()
 *   qp.rq_limit                worker             control: qp_rq_limit()
 *   qp.last_error, *qp.failure  worker, once       control, behind the message that tells of it
 *   counters of qp, worker      worker             any lcore: slightly old is fine (stats.h)
 *   qp.user                     control            control: no worker looks at it
 *   qp_cq.producer              control            worker: may it leave the lock out?
 *   qp_cq.notify                control arms,      both
 *                               worker fires
 *   qp_cq.error, .solicited     worker             control
 *   qp_srq.limit                control arms,      both
 *                               worker disarms
 *   qp_srq.error                worker             both
 *   rings, key table            ring.h, mem.h have their own protocols
 *   mbox.sides_taken, .up_lost  worker             control
 *   stats_load.measure          control            worker
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cc.h"
#include "clock.h"
#include "qp_attr.h"
#include "qp_failure.h"
#include "qp_flags.h"
#include "ring.h"
#include "stats.h"
#include "wire_build.h"

struct qp;
struct qp_cq;
struct qp_side;
struct qp_srq;
struct qp_work;

/* ---- life ------------------------------------------------------------------------------------ */

#define QP_MAX_RD_ATOMIC  128
#define QP_ANSWER_RESERVE 8 /* answer queue entries beyond max_dest_rd_atomic, at least */

/** What stays as it is for the life of a QP. */
struct qp_alloc_params {
	uint32_t qpn;
	uint8_t type; /* enum qp_type; 0: RC */
	uint32_t pd;
	struct qp_cq *send_cq;
	struct qp_cq *recv_cq;
	struct qp_srq *srq; /* NULL: it has a receive queue of its own */
	uint32_t xrcd;      /* of an XRC target: its domain */
	uint32_t client;    /* whose doorbells count; 0: nobody's */
	uint8_t worker;     /* who will have it; the settings say it again */
	uint32_t max_recv_wr;
	uint32_t max_recv_sge;
	uint32_t rq_limit;    /* see qp_rq_limit_set() */
	uint32_t max_send_wr; /* 0: the QP never sends */
	uint32_t max_send_sge;
	uint32_t max_inline;        /* bytes */
	bool send_feed;             /* no send ring; max_send_wr is the feed's depth */
	uint8_t max_dest_rd_atomic; /* most the QP may be configured with, <= QP_MAX_RD_ATOMIC */
	int socket;                 /* NUMA node, or SOCKET_ID_ANY */
	bool own_area;              /* each ring in a mem_area of its own */
	bool compact;               /* nothing but struct qp, until it is needed: qp_parts.h */
	bool has_rate;              /* cc.algo=dcqcn, delay: qp_cc.h */
	void *rq_mem; /* the caller's memory for the rings, of qp_ring_bytes(); NULL: none of it */
	void *sq_mem;
	void *work_mem; /* zeroed, for its private requests, of qp_work_bytes(); NULL: likewise */
};

/**
 * A QP in RESET with its rings, slots and counters.
 * @param out the QP; untouched on a failure.
 * @return 0, -EINVAL (capacities beyond what rings hold) or -ENOMEM.
 */
int qp_alloc(const struct qp_alloc_params *p, struct qp **out);
/** Free a QP that no worker has. NULL does nothing. */
void qp_free(struct qp *qp);

/** Bytes of each ring; *sq is 0 when there is none. @return 0 or -EINVAL. */
int qp_ring_bytes(const struct qp_alloc_params *p, size_t *rq, size_t *sq);

/** Bytes of its private requests and their SGEs. @return 0: it has none. */
size_t qp_work_bytes(const struct qp_alloc_params *p);

/** Bytes of memory one QP of these parameters takes, all rings included. @return 0 or -EINVAL. */
int qp_footprint(const struct qp_alloc_params *p, size_t *bytes);

/** Can a QP of these parameters be compact? */
bool qp_is_compact(const struct qp_alloc_params *p);

/* ---- what a worker is told ------------------------------------------------------------------- */

/** Knobs and places, constant while the QP is attached. QP_ATTACH brings them. */
struct qp_settings {
	uint32_t flags;      /* QPF_SETTINGS */
	uint32_t window;     /* request packets in flight before any CNP */
	struct cc_params cc; /* with QPF_CC_RATE, of a QP that was made with has_rate */
	ns_t cnp_interval;   /* cc.cnp_interval */
	struct wire_cnp cnp; /* cc.cnp_dscp, cc.cnp_802p_prio */
	uint16_t resp_knobs; /* RESP_KNOB_* */
	uint16_t req_knobs;  /* REQ_KNOB_* */
	uint8_t min_timeout; /* tmr.min_timeout: exponent */
	uint8_t ackreq_interval;
	uint8_t port;           /* DPDK port id */
	uint8_t worker;         /* who gets it */
	struct {                /* QPF_SEND_FEED: what the worker posts to itself */
		uint64_t count; /* requests in all, 0: no end */
		uint64_t remote_addr;
		struct ring_sge sge; /* source, or where READ data goes */
		uint32_t rkey;
		uint32_t depth;
		uint32_t xrc_srqn;
		uint8_t opcode; /* ibv_wr_opcode */
	} send_feed;
	struct { /* QPF_RECV_FEED: the buffers that it keeps posted */
		uint64_t va;
		uint32_t buffers;
		uint32_t size; /* bytes of each */
		uint32_t lkey;
	} recv_feed;
};

/**
 * Raise one event when fewer receives than this are left in the QP's own queue, as a packet finds
 * it; 0: none. Who may call it: the QP's worker; the control lcore while the QP is detached.
 */
void qp_rq_limit_set(struct qp *qp, uint32_t limit);
/** Any lcore: that limit; 0 once the event was raised. */
uint32_t qp_rq_limit(const struct qp *qp);

/** Take over settings. Who may call it: the worker that attaches the QP, before others find it. */
void qp_configure(struct qp *qp, const struct qp_settings *s);

/**
 * Sides for a worker's stock, in a list (SIDES).
 * @param n how many; out: how many there was memory for.
 * @return 0, or -ENOMEM: not one.
 */
int qp_sides_alloc(uint32_t *n, int socket, struct qp_side **list);
/** Free a list of sides that no worker and no QP has. NULL does nothing. */
void qp_sides_free(struct qp_side *list);

/** What a compact QP posts with (QP_WORK). @return 0 or -ENOMEM. */
int qp_work_alloc(const struct qp *qp, int socket, struct qp_work **out);
/**
 * The QP has it from now on; qp_free() frees it. A second call does nothing.
 * Who may call it: the QP's worker; the control lcore while the QP is detached.
 */
void qp_work_take(struct qp *qp, struct qp_work *work);
/** Bytes of the slabs of compact QPs. */
size_t qp_cells_bytes(void);

/* ---- a look ---------------------------------------------------------------------------------- */

/** What qp_alloc() was asked for; constant. */
struct qp_limits {
	uint32_t max_send_wr;
	uint16_t max_inline; /* bytes */
	uint8_t max_send_sge;
	uint8_t max_dest_rd_atomic;
	bool compact;
	bool send_feed;
};
/** A copy of the limits. Any lcore. */
struct qp_limits qp_limits(const struct qp *qp);
/** Its QPN. Any lcore. */
uint32_t qp_number(const struct qp *qp);

/** Present state: the worker may have moved the QP to ERR by itself. Any lcore. */
enum qp_state qp_state_now(const struct qp *qp);
/** How often the path has changed since the QP was made. Any lcore. */
uint32_t qp_migrations(const struct qp *qp);
/** Who has the QP, or had it last. Not while it moves. */
uint8_t qp_worker(const struct qp *qp);
/** A counter that is not of the good path; 0: a compact QP that has counted nothing. */
uint64_t qp_counter(const struct qp *qp, enum stats_counter s);
/**
 * Request packets that had nowhere to go (RT-05) while this PSN was the oldest one that was not
 * acknowledged; QP_NOWHERE_MANY: so many or more. Read it as qp_last_error().
 */
uint32_t qp_nowhere(const struct qp *qp, uint32_t una);
/** Why it failed; time_ns 0: it has not, since RESET. Read it behind the worker's message. */
const struct qp_error *qp_last_error(const struct qp *qp);
/** The work request and the memory of that; NULL: a compact QP that has never failed. */
const struct qp_failure *qp_failure(const struct qp *qp);

/** The posting side's views of the rings, as they are now; *sq stays as it is if there is none. */
void qp_rings(const struct qp *qp, struct ring *rq, struct ring *sq);

/** A pointer of the control lcore's own, as qp_user_set() left it; NULL at first. */
void *qp_user(const struct qp *qp);
/** Keep a pointer with the QP, attached or not. */
void qp_user_set(struct qp *qp, void *user);

#endif
