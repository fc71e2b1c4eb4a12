/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_H
#define QP_H
/**
 * @file qp.h  The queue pair: a map of cache lines, and the table that finds it by number.
 *
 * Owner:   the worker named in `worker` from attach to detach; before and after, the control lcore.
 *          Fields marked (control) are constant while attached.
 * Memory:  qp_alloc()/qp_free() on the control lcore; the data path never allocates.
 * Depends: base wire wheel ring mem stats trace responder requester; DPDK.
 * Spec:    IBTA vol. 1, 10.3 (states), 10.2.4 (attributes); rules QP-*.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "mem.h"
#include "qp_failure.h"
#include "qp_migration.h"
#include "qp_send.h"
#include "resp_answers.h"
#include "responder.h"
#include "ring.h"
#include "ring_srq.h"
#include "stats.h"
#include "wire_build.h"

enum qp_state { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR, QPS_MAX };
enum qp_type { QPT_RC = 2, QPT_UC = 3, QPT_UD = 4 }; /* ibv_qp_type */

/** Attributes, with the mask bits of enum ibv_qp_attr_mask. */
enum {
	QP_ATTR_STATE = 1 << 0,
	QP_ATTR_CUR_STATE = 1 << 1,
	QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QP_ATTR_ACCESS_FLAGS = 1 << 3,
	QP_ATTR_PKEY_INDEX = 1 << 4,
	QP_ATTR_PORT = 1 << 5,
	QP_ATTR_QKEY = 1 << 6,
	QP_ATTR_AV = 1 << 7,
	QP_ATTR_PATH_MTU = 1 << 8,
	QP_ATTR_TIMEOUT = 1 << 9,
	QP_ATTR_RETRY_CNT = 1 << 10,
	QP_ATTR_RNR_RETRY = 1 << 11,
	QP_ATTR_RQ_PSN = 1 << 12,
	QP_ATTR_MAX_QP_RD_ATOMIC = 1 << 13,
	QP_ATTR_ALT_PATH = 1 << 14,
	QP_ATTR_MIN_RNR_TIMER = 1 << 15,
	QP_ATTR_SQ_PSN = 1 << 16,
	QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	QP_ATTR_PATH_MIG_STATE = 1 << 18,
	QP_ATTR_CAP = 1 << 19,
	QP_ATTR_DEST_QPN = 1 << 20,
	/* the project's own */
	QP_ATTR_NEW_MAC = 1 << 29, /* the MAC of qp_attr.path's destination: of either path to it */
	QP_ATTR_TRACE = 1 << 30,   /* qp_attr.trace, QPF_TRACE */
};

#define QP_ALT_TIMEOUT_SAME 0xff

struct qp_attr {
	uint8_t qp_state;
	uint8_t cur_qp_state;
	uint8_t qp_access_flags;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	bool en_sqd_async_notify;
	uint16_t path_mtu; /* bytes */
	uint16_t pkey;
	uint32_t dest_qp_num;
	uint32_t rq_psn;
	uint32_t sq_psn;
	struct wire_path path; /* AV: dmac all zero until resolved */
	bool path_resolved;
	bool trace; /* record in the flight recorder */
	/* ALT_PATH: all of the alternate path at once */
	bool alt_resolved;
	uint8_t alt_port;       /* DPDK port id */
	uint8_t alt_timeout;    /* QP_ALT_TIMEOUT_SAME: that of the primary path */
	uint8_t path_mig_state; /* enum qp_migration */
	uint16_t alt_pkey;      /* 0: that of the primary path */
	uint32_t migrations;    /* qp.migrations, as the control lcore knows it */
	struct wire_path alt_path;
};

/**
 * Is from -> to a legal transition for this type with these attributes? qp_states.def.
 * @param why out: static text naming the first missing or forbidden attribute, or the pair.
 * @return 0 or -EINVAL.
 */
int qp_transition_check(
	enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask, const char **why);
/** Attributes required and optional for a transition; false if the pair is not legal. */
bool qp_transition_attrs(enum qp_type type, enum qp_state from, enum qp_state to,
	uint32_t *required, uint32_t *optional);
const char *qp_state_name(enum qp_state s); /* "RTS" */
const char *qp_attr_name(uint32_t one_bit); /* "TIMEOUT" */

/* ---- completion queue ------------------------------------------------------------------------ */

struct qp_cq {
	struct ring_cq ring; /* producers: workers; consumer: control (or a client) */
	uint32_t id;
	_Atomic bool error; /* overflowed: IBV_EVENT_CQ_ERR was raised, nothing is added any more */
	_Atomic uint8_t notify; /* enum qp_cq_notify */
	_Atomic uint8_t producer; /* 1 + the worker that alone adds to it; or enum (control) */
	_Atomic uint32_t users; /* QPs (control) */
	_Atomic uint32_t solicited; /* ring.tail behind the last solicited one, or error */
	struct mem_area area;
	char name[64];
};

enum { CQ_PRODUCER_NONE = 0, CQ_PRODUCER_CHANGING = 0xfe, CQ_PRODUCER_ANY = 0xff };

/**
 * May this worker use ring_cq_reserve_alone()? The control lcore says so before it attaches the
 * first QP of the queue. Before it attaches one to a second worker it takes the word back, and
 * waits for the first worker to answer a message: in doing so that worker has left the burst in
 * which it may have believed it, and the answer orders its last `tail` before the second worker's
 * first look, which follows a message too.
 */
static inline bool
qp_cq_is_alone(const struct qp_cq *cq, uint16_t worker)
{
	return atomic_load_explicit(&cq->producer, memory_order_relaxed) == worker + 1;
}

/** Completion notification (CQ-06). The control lcore arms; whoever adds a completion fires. */
enum qp_cq_notify { CQ_NOTIFY_NONE, CQ_NOTIFY_SOLICITED, CQ_NOTIFY_NEXT, CQ_NOTIFY_FIRED };

/** Producer: a completion was added. @param solicited it was, or it is an error. */
static inline void
qp_cq_notify(struct qp_cq *cq, bool solicited)
{
	uint8_t armed = atomic_load_explicit(&cq->notify, memory_order_relaxed);

	if (UNLIKELY(solicited))
		atomic_store_explicit(&cq->solicited,
			atomic_load_explicit(&cq->ring.tail, memory_order_relaxed),
			memory_order_relaxed);
	if (LIKELY(armed == CQ_NOTIFY_NONE) || armed == CQ_NOTIFY_FIRED ||
		(armed == CQ_NOTIFY_SOLICITED && !solicited))
		return;
	atomic_store_explicit(&cq->notify, CQ_NOTIFY_FIRED, memory_order_release);
}

/* ---- shared receive queue -------------------------------------------------------------------- */

struct qp_srq {
	struct ring_srq ring;   /* consumers: workers; producer: control */
	_Atomic uint32_t limit; /* armed: event when fewer are posted; 0: not armed (SRQ-02) */
	_Atomic bool error;     /* SRQ_ERR was raised: it gives no more WQEs (RESP-CLS-A-04) */
	uint32_t id;            /* (control) from here on */
	uint32_t pd;
	uint32_t max_sge;
	uint32_t users; /* QPs */
	struct mem_area area;
};

/* ---- why a QP is in ERR ---------------------------------------------------------------------- */

enum { /* struct qp_error.flags */
	QP_ERROR_PACKET = BIT32(0),    /* a packet did it: opcode, psn, len are its own */
	QP_ERROR_NAK = BIT32(1),       /* answered with a NAK: `syndrome`, at `psn` */
	QP_ERROR_ACK = BIT32(2),       /* answered with an ACK */
	QP_ERROR_COMPLETED = BIT32(3), /* a work request completed with wc_status */
	QP_ERROR_EVENT = BIT32(4),     /* `event` was raised */
	QP_ERROR_SEND = BIT32(5),      /* the requester's side */
};

/** The fault that brought the QP to ERR; time_ns 0: none since RESET. */
struct qp_error {
	uint16_t rule;
	uint8_t opcode;
	uint8_t syndrome; /* AETH sent or received */
	uint8_t fatal;
	uint8_t fault;    /* enum wire_fault, 0xff none */
	uint8_t wc_status;
	uint8_t event;
	uint32_t psn;
	uint16_t len;     /* payload bytes */
	uint8_t flags;    /* QP_ERROR_* */
	uint8_t reserved;
	ns_t time_ns;
	uint64_t trace_at; /* entries the worker's flight recorder had taken */
};

/* ---- the queue pair -------------------------------------------------------------------------- */

enum {                       /* struct qp.flags; writer: worker, or control before attach */
	QPF_IPV6 = BIT32(0), /* path's address family */
	QPF_CHECK_SRC_MAC = BIT32(1), /* rx.check_src_mac */
	QPF_REQUIRE_DF = BIT32(2),    /* rx.ip_df */
	QPF_TRACE = BIT32(3),
	QPF_CNP = BIT32(4),         /* cc.cnp=on */
	QPF_CNP_CONTROL = BIT32(5), /* cc.cnp_path=control */
	QPF_DIRTY = BIT32(6),       /* on the worker's list of owed ACKs */
	QPF_ANSWERING = BIT32(7),   /* on the worker's list of answer queues */
	QPF_COMM_EST = BIT32(8),    /* event raised */
	QPF_RESOLVED = BIT32(9),    /* template has a destination MAC */
	QPF_RECV_FEED = BIT32(10),  /* the worker keeps the receive queue filled */
	QPF_EVENT_WITH_CQE = BIT32(11),
	QPF_ACK_CRC = BIT32(12), /* ack_crc is valid: cleared when the template changes */
	QPF_VLAN = BIT32(13), /* the path has a tag: only packets with the same VLAN are the QP's */
	QPF_CNP_SCHEDULED = BIT32(14), /* the control lcore was told to send a CNP (CC-04) */
	QPF_SENDING = BIT32(16),       /* on the worker's list of QPs with something to send */
	QPF_SIG_ALL = BIT32(17),       /* sq_sig_all: every send request is signalled */
	QPF_SEND_FEED = BIT32(18),     /* the worker posts to itself: sq.feed */
	QPF_CC_WINDOW = BIT32(19),     /* cc.algo=ernic_window: a CNP halves the window, once */
	QPF_CC_HALVED = BIT32(20),     /* ... and has */
	QPF_SQD_NOTIFY = BIT32(21),    /* en_sqd_async_notify of the move to SQD */
	QPF_MIGRATION = BIT32(22),     /* path_mig_state is REARM or ARMED: MigReq is 0 */
	QPF_MIG_REFUSED = BIT32(23),   /* PATH_MIG_ERR was raised since ARMED */
	QPF_SRQ = BIT32(24),           /* receives from `srq` */
	QPF_LAST_WQE = BIT32(25),      /* ... and has said that it takes no more (AE-08) */
	QPF_SENT_NOWHERE = BIT32(26),  /* requests were sent while nobody knew where to */
};

/** Rings that have memory areas of their own. */
struct qp_areas {
	struct mem_area rq;
	struct mem_area sq; /* base NULL: none */
};

/**
 * What a WRITE in order and its ACK count, where they look anyway. qp_few_carry() adds it to `hot`
 * before a number becomes too large, and whoever reads counters.
 */
struct qp_few {
	uint32_t writes; /* WRITE ONLY packets, each a message */
	uint32_t bytes;  /* of their frames */
	uint32_t acks;
};

struct qp {
	/*
	 * line 0: steering, and where the responder stands. writer: control before attach, worker
	 * afterwards. A WRITE in order needs this line, and the first line of `tmpl`.
	 */
	uint32_t qpn;
	_Atomic uint8_t state; /* enum qp_state */
	uint8_t type;
	uint8_t port;   /* DPDK port id (control; a migration changes it) */
	uint8_t worker; /* (control) */
	uint32_t flags; /* QPF_* */
	uint32_t pd;
	uint16_t pkey;
	uint8_t dirty_at; /* QPF_DIRTY: place in the worker's list of ACKs */
	uint8_t reserved;
	uint32_t ack_crc; /* state of the ICRC behind an ACK of PSN 0, AETH 0 */
	uint8_t peer_ipv4[4];  /* where an IPv4 QP's packets come from; others: attr.path.dst_ip */
	struct qp_few few;
	struct responder resp; /* what comes first in it is in line 0, the rest in line 1 */
	struct qp_cq *recv_cq;
	struct qp_srq *srq; /* QPF_SRQ: where its WQEs come from (control) */

	/* line 2: counters of the good path. writer: worker */
	uint64_t hot[STATS_HOT] CACHE_ALIGNED;

	/* lines 3, 4: packet template. writer: control before RTR, worker on path changes */
	struct wire_template tmpl;

	/* line 4, 5: receive queue. writer: worker */
	struct ring rq;                /* consumer view */
	struct ring_recv_copy *active; /* copy of the WQE of the open SEND */
	uint32_t feed_next;            /* recv_feed: next buffer */
	uint32_t feed_buffers;
	uint32_t feed_size;
	uint32_t feed_lkey;
	uint64_t feed_va;

	/* line 5: what is owed to the peer. writer: worker */
	struct resp_answers answers;
	struct qp *next_answering; /* worker's round-robin list */
	ns_t cnp_next;             /* earliest next CNP (CC-03) */
	uint8_t peer_mac[6];
	uint8_t fatal;        /* last FATAL code, 0: none */
	uint8_t max_recv_sge; /* (control) */

	/*
	 * lines 6, 7: requester state; 8, 9: send queue, and what an ACK looks for. writer: worker
	 */
	struct requester req CACHE_ALIGNED;
	struct qp_sendq sq CACHE_ALIGNED;
	struct qp_cq *send_cq;
	struct stats_block *stats; /* qp_stat(); NULL: a compact QP that has no side yet */

	/* cold. writer: worker unless said otherwise */
	struct qp_attr attr CACHE_ALIGNED; /* as last applied */
	ns_t cnp_interval_ns; /* cc.cnp_interval (control) */
	uint32_t ce_seen;
	_Atomic uint32_t migrations; /* since attach; goes up when the path in `attr` has changed */
	uint16_t migration_rule;     /* of the newest one */
	ns_t migration_ns;
	struct qp_error last_error;
	struct ring_recv_copy *copy;   /* of the receive queue's head; NULL: it is empty */
	struct responder_saved *saved; /* resp.saved points here (control) */
	uint32_t max_recv_wr;          /* (control) */
	uint32_t max_send_wr;          /* (control) */
	uint8_t max_dest_alloc;        /* slots of `saved` (control) */
	bool compact;                  /* (control) qp_parts.h */
	struct wire_cnp cnp;           /* cc.cnp_dscp, cc.cnp_802p_prio (control) */
	struct qp_side *side;          /* of a compact QP, once it has one */
	struct qp_work *work;          /* likewise (control) */
	struct qp_areas *areas;        /* own_area: memory of the rings (control) */
	struct qp_failure *failure;    /* NULL: a compact QP that has no side yet */
	void *user;                    /* control lcore's record */
};
_Static_assert(offsetof(struct qp, resp) + RESPONDER_HOT == 64, "line 0: steering, responder");
_Static_assert(offsetof(struct qp, hot) == 128, "line 2: counters");
_Static_assert(offsetof(struct qp, tmpl) == 192, "line 3: template");
_Static_assert(offsetof(struct qp, req) == 384, "line 6: requester");
_Static_assert(offsetof(struct qp, sq) == 512, "line 8: send queue");
_Static_assert(offsetof(struct qp, attr) == 640, "line 9: the rest of it, send_cq, stats");

/** What `few` adds to a counter. */
static inline uint32_t
qp_few_of(const struct qp *qp, enum stats_counter s)
{
	switch (s) {
	case STAT_rx_packets:
	case STAT_rcvd_pkts:
	case STAT_rx_write_requests:
		return qp->few.writes;
	case STAT_rx_bytes:
		return qp->few.bytes;
	case STAT_sent_pkts:
	case STAT_acks_sent:
		return qp->few.acks;
	default:
		return 0;
	}
}

/** Owner worker: add `few` to the counters that it stands for. */
void qp_few_carry(struct qp *qp);

static ALWAYS_INLINE void
qp_few_write(struct qp *qp, uint16_t frame_len)
{
	qp->few.writes++;
	qp->few.bytes += frame_len;
	if (UNLIKELY(((qp->few.writes | qp->few.bytes) & BIT32(31)) != 0))
		qp_few_carry(qp);
}

static ALWAYS_INLINE void
qp_few_ack(struct qp *qp)
{
	if (UNLIKELY((++qp->few.acks & BIT32(31)) != 0))
		qp_few_carry(qp);
}

static inline uint64_t
qp_stat(const struct qp *qp, enum stats_counter s)
{
	if (s < STATS_HOT)
		return qp->hot[s] + qp_few_of(qp, s);
	return qp->stats != NULL ? qp->stats->c[s] : 0;
}

/** Protection domain that receive WQEs are checked against. */
static inline uint32_t
qp_recv_pd(const struct qp *qp)
{
	return LIKELY((qp->flags & QPF_SRQ) == 0) ? qp->pd : qp->srq->pd;
}

struct qp_alloc_params {
	uint32_t max_recv_wr;
	uint32_t max_recv_sge;
	uint32_t max_send_wr;  /* 0: the QP never sends */
	uint32_t max_send_sge;
	uint32_t max_inline;   /* bytes */
	bool send_feed;        /* no send ring; max_send_wr is the feed's depth */
	uint8_t max_dest_rd_atomic; /* most the QP may be configured with, <= QP_MAX_RD_ATOMIC */
	int socket;
	bool own_area; /* each ring in a mem_area of its own */
	bool compact;  /* nothing but struct qp, until it is needed: qp_parts.h */
	void *rq_mem; /* the caller's memory for the rings, of qp_ring_bytes(); NULL: none of it */
	void *sq_mem;
};
#define QP_MAX_RD_ATOMIC  128
#define QP_ANSWER_RESERVE 8 /* answer queue entries beyond max_dest_rd_atomic, at least */

/**
 * Control lcore. @return zeroed QP in RESET with its rings, slots and statistics, or NULL.
 */
struct qp *qp_alloc(const struct qp_alloc_params *p);
void qp_free(struct qp *qp);

/** Bytes of each ring; *sq is 0 when there is none. @return 0 or -EINVAL. */
int qp_ring_bytes(const struct qp_alloc_params *p, size_t *rq, size_t *sq);

/** Bytes of memory one QP of these parameters takes, all rings included. */
size_t qp_footprint(const struct qp_alloc_params *p);

/* ---- table ----------------------------------------------------------------------------------- */

/**
 * QPN -> QP by direct index: low bits of the QPN are the slot, the rest is the generation, which
 * tells a QP from the one that had its slot before (QP-20).
 */
struct qp_table {
	uint32_t mask;
	uint32_t entries;
	struct qp *_Atomic slot[];
};

struct qp_table *qp_table_create(uint32_t entries, int socket);
void qp_table_destroy(struct qp_table *t);
/** Any lcore: QP of exactly this number, or NULL. Cost: one table line, one QP line. */
static inline struct qp *
qp_lookup(const struct qp_table *t, uint32_t qpn)
{
	struct qp *qp = atomic_load_explicit(&t->slot[qpn & t->mask], memory_order_acquire);

	return qp != NULL && qp->qpn == qpn ? qp : NULL;
}
/** Owner worker: publish. @return 0 or -EEXIST when the slot is taken. */
int qp_table_insert(struct qp_table *t, struct qp *qp);
void qp_table_remove(struct qp_table *t, struct qp *qp);

/* ---- live state for qp_query ----------------------------------------------------------------- */

/** What a QP waits for, as far as its worker sees it. */
struct qp_waiting {
	uint8_t stop;      /* enum requester_stop: against the next packet */
	uint8_t timeout;   /* exponent in effect; 0: no transport timer */
	uint8_t rnr_code;  /* of the RNR NAK that is waited for the end of */
	bool halved;       /* a CNP has halved the window */
	bool established;  /* the peer was heard of in RTR */
	bool has_oldest;   /* oldest_*: the oldest request not completed */
	bool tx_full;      /* so many frames wait for the port that requests pause */
	uint8_t oldest_opcode; /* ibv_wr_opcode */
	uint64_t oldest_id;
	uint32_t started;   /* requests started and not completed */
	uint32_t unstarted; /* posted, and not started; those that the worker has not seen, too */
	uint32_t flying;    /* request packets in flight */
	uint32_t open;      /* how many may be, after losses; UINT32_MAX: as many as `window` */
	uint32_t reads;     /* READs and ATOMICs among those started; the oldest of them: */
	uint32_t read_psn;
	uint64_t read_id;
	uint32_t tx_frames; /* that wait for the port */
	ns_t since;         /* requester_waits_since() */
	ns_t rest_until;    /* send_feed: the peer was not there; 0: it does not rest */
	ns_t rnr_until;     /* the peer was told not to come before; 0: it was not */
};

struct qp_snapshot {
	struct qp_attr attr;
	uint8_t state;
	bool latched;
	uint8_t open; /* enum responder_open */
	uint8_t unfinished;
	uint8_t fatal;
	uint32_t epsn;
	uint32_t msn;
	uint32_t rq_posted; /* receive WQEs waiting */
	uint32_t answers;
	bool resolved;
	/* requester */
	uint8_t retry_left;
	uint8_t rnr_left;
	bool timing;          /* transport timer runs, until `deadline` */
	bool waiting_rnr;     /* RNR wait, until `deadline` */
	bool drained;         /* SQD: nothing is under way */
	uint32_t next_psn;
	uint32_t una_psn;     /* oldest not acknowledged */
	uint32_t outstanding; /* send requests posted and not completed */
	uint32_t window;
	ns_t deadline;
	uint64_t feed_posted;
	uint64_t feed_completed;
	uint32_t migrations;
	uint16_t migration_rule; /* of the newest one */
	ns_t migration_ns;
	struct qp_error error;
	struct qp_waiting waiting;
	struct stats_block stats;
};
/** @param now of the owner's clock, or 0: nobody waits. */
void qp_snapshot(struct qp *qp, ns_t now, struct qp_snapshot *out);

/**
 * Owner worker: apply attributes that qp_transition_check() allowed, the state with QP_ATTR_STATE.
 * RESET clears everything and forgets posted WQEs (QP-05). Flushing on ERR is the pipeline's.
 */
void qp_apply(struct qp *qp, const struct qp_attr *attr, uint32_t mask);
/** The alternate path takes the place of the primary one. */
void qp_attr_migrate(struct qp_attr *a);
/** attr.path, .path_resolved or .pkey is another one: addresses, flags, template. */
void qp_path_changed(struct qp *qp);

#endif
