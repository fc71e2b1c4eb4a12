/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_H
#define QP_H
/**
 * @file qp.h  The queue pair as its worker knows it: a map of cache lines, and the lookup.
 *
 * Owner:   the worker named in `worker` from attach to detach; before and after, the control lcore.
 *          It has no way to the fields: qp_control.h has what it may do, and which words are
 *          shared. Fields marked (constant) are set by qp_alloc(), those marked (settings) by
 *          qp_configure().
 * Memory:  qp_alloc()/qp_free() on the control lcore (qp_control.h); the data path never allocates.
 * Depends: base wire wheel ring mem stats trace responder requester; DPDK.
 * Spec:    IBTA vol. 1, 10.3; rules QP-*.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "clock.h"
#include "mem.h"
#include "qp_attr.h"
#include "qp_cq.h"
#include "qp_failure.h"
#include "qp_flags.h"
#include "qp_migration.h"
#include "qp_send.h"
#include "qp_table.h"
#include "resp_answers.h"
#include "responder.h"
#include "ring.h"
#include "stats.h"
#include "wire_build.h"

/** Rings that have memory areas of their own. */
struct qp_areas {
	struct mem_area rq;
	struct mem_area sq; /* base NULL: none */
};

/** Where the frames of a path over this DPDK port go, as qp.out has it. */
static inline uint8_t
qp_out_of(uint8_t port, const struct wire_path *path)
{
	if (path->local)
		return port | QP_OUT_LOCAL;
	return path->queue != 0 ? (uint8_t)(QP_OUT_QUEUE + path->queue) : port;
}

/**
 * Counts of WRITEs and SENDs in order and of their ACKs, in lines that they touch anyway. They are
 * part of the counters in `hot`: qp_few_carry() moves them there before they overflow, qp_stat()
 * adds them.
 */
struct qp_few {
	uint32_t writes; /* WRITE ONLY packets, each a message */
	uint32_t bytes;  /* of their frames, and of those of `few_sends` */
	uint32_t acks;
};

struct qp {
	/*
	 * line 0: steering, and where the responder stands. writer: worker. A WRITE in order needs
	 * this line, and the first line of `tmpl`.
	 */
	uint32_t qpn;
	_Atomic uint8_t state; /* enum qp_state */
	uint8_t type;
	uint8_t port;   /* DPDK port id (settings); a migration changes it */
	uint8_t worker; /* (settings); a move changes it */
	uint32_t flags; /* QPF_* */
	uint32_t pd;
	uint16_t pkey;
	uint8_t dirty_at; /* QPF_DIRTY: place in the worker's list of ACKs */
	uint8_t out;      /* where frames go: `port`; with QP_OUT_LOCAL: a local path */
	uint32_t ack_crc; /* state of the ICRC behind an ACK of PSN 0, AETH 0 */
	union {
		uint8_t peer_ipv4[4]; /* where packets come from; IPv6: attr.path.dst_ip */
		uint32_t qkey;        /* QPF_DATAGRAM: what packets have to show */
	};
	struct qp_few few;
	struct responder resp; /* its first RESPONDER_HOT bytes end line 0, the rest is line 1 */
	struct qp_cq *recv_cq;
	struct qp_srq *srq;  /* QPF_SRQ: where its WQEs come from (constant, but with QPF_XRC) */
	uint32_t few_sends;  /* as `few`: SEND ONLY packets in order, which look at line 1 anyway */
	uint16_t max_inline; /* bytes (constant) */
	uint8_t max_send_sge; /* (constant) */

	/* line 2: counters of the good path. writer: worker */
	uint64_t hot[STATS_HOT] CACHE_ALIGNED;

	/* lines 3, 4: packet template. writer: worker */
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
	TAILQ_ENTRY(qp) answering; /* its peer's list, with QPF_ANSWERING */
	ns_t cnp_next;             /* earliest next CNP (CC-03) */
	uint8_t peer_mac[6];
	uint8_t fatal;        /* last FATAL code, 0: none */
	uint8_t max_recv_sge; /* (constant, but with QPF_XRC) */

	/*
	 * lines 6, 7: requester state; 8: send queue; 9: timer, and what an ACK looks for.
	 * writer: worker
	 */
	struct requester req CACHE_ALIGNED;
	struct qp_sendq sq CACHE_ALIGNED;
	struct qp_cq *send_cq;
	struct stats_block *stats; /* qp_stat(); NULL: a compact QP that has no side yet */

	/* cold. writer: worker unless said otherwise */
	struct qp_attr attr CACHE_ALIGNED; /* as last applied */
	uint32_t ce_seen;
	ns_t cnp_interval_ns;        /* cc.cnp_interval (settings) */
	_Atomic uint32_t migrations; /* since attach; goes up when the path in `attr` has changed */
	uint16_t migration_rule;     /* of the newest one */
	struct wire_cnp cnp;         /* cc.cnp_dscp, cc.cnp_802p_prio (settings) */
	ns_t migration_ns;
	struct qp_error last_error;
	struct ring_recv_copy *copy;   /* of the receive queue's head; NULL: it is empty */
	struct responder_saved *saved; /* resp.saved points here (constant) */
	uint32_t max_recv_wr;          /* (constant) */
	uint32_t max_send_wr;          /* (constant) */
	uint8_t max_dest_alloc;        /* slots of `saved` (constant) */
	bool compact;                  /* (constant) qp_parts.h */
	uint8_t min_timeout;           /* tmr.min_timeout (settings) */
	uint8_t kept;                  /* place of requests that are ahead, from 1 on; 0: none */
	uint32_t nowhere;              /* qp_nowhere(): that number, times 2^24, and una */
	struct qp_feed *send_feed;     /* with QPF_SEND_FEED (constant) */
	struct qp_side *side;          /* of a compact QP, once it has one */
	struct qp_work *work;          /* likewise */
	struct qp_areas *areas;        /* own_area: memory of the rings (constant) */
	struct qp_failure *failure;    /* NULL: a compact QP that has no side yet */
	uint32_t client;               /* whose doorbells count; 0: nobody's (constant) */
	uint32_t whose;                /* whose turns it takes: a user or client; 0: nobody */
	uint32_t window;               /* request packets in flight before any CNP (settings) */
	uint32_t xrcd;                 /* XRC target: its domain; 0: none (constant) */
	union {
		uint32_t srq_num; /* ... what `srq` was when a request named it last */
		/* With a receive queue of its own: fewer than this raise an event; 0: none. */
		_Atomic uint32_t rq_limit;
	};
	uint32_t srq_id; /* of an XRC target: between two packets its SRQ may go away */
	void *user;      /* the control lcore's own: no worker looks at it */
};
_Static_assert(offsetof(struct qp, resp) + RESPONDER_HOT == 64, "line 0: steering, responder");
_Static_assert(offsetof(struct qp, hot) == 128, "line 2: counters");
_Static_assert(offsetof(struct qp, tmpl) == 192, "line 3: template");
_Static_assert(offsetof(struct qp, req) == 384, "line 6: requester");
_Static_assert(offsetof(struct qp, sq) == 512, "line 8: send queue");
_Static_assert(offsetof(struct qp, sq.timer) == 576, "line 9: timer, counts");
_Static_assert(offsetof(struct qp, attr) == 640, "line 9: the rest of it, send_cq, stats");

/** The scatter/gather list of a work request: they stand behind all work requests. */
static inline struct ring_sge *
qp_send_sges(const struct qp *qp, uint32_t position)
{
	const struct requester *r = &qp->req;
	struct ring_sge *sges = (struct ring_sge *)(void *)(r->wr + r->wr_mask + 1);

	return sges + (size_t)(position & r->wr_mask) * qp->max_send_sge;
}

/** The QP is one of this service. @param transport WIRE_RC .. WIRE_XRC. */
static inline void
qp_service_set(struct qp *qp, uint8_t transport)
{
	qp->req.transport = qp->resp.transport = transport;
	qp->flags = (qp->flags & ~(uint32_t)QPF_SERVICE) | wire_opcode_on(transport, 0);
}

/** What `few` adds to a counter. */
static inline uint32_t
qp_few_of(const struct qp *qp, enum stats_counter s)
{
	switch (s) {
	case STAT_rx_packets:
	case STAT_rcvd_pkts:
		return qp->few.writes + qp->few_sends;
	case STAT_rx_write_requests:
		return qp->few.writes;
	case STAT_rx_send_requests:
		return qp->few_sends;
	case STAT_rx_bytes:
		return qp->few.bytes;
	case STAT_sent_pkts:
	case STAT_acks_sent:
		return qp->few.acks;
	default:
		return 0;
	}
}

/** What the send queue's counts add to a counter. */
static inline uint32_t
qp_sendq_of(const struct qp *qp, enum stats_counter s)
{
	switch (s) {
	case STAT_rx_packets:
	case STAT_rcvd_pkts:
	case STAT_rx_responses:
		return qp->sq.responses;
	case STAT_rx_bytes:
		return qp->sq.response_bytes;
	case STAT_sent_pkts:
		return qp->sq.sent;
	case STAT_req_messages:
		return qp->sq.messages;
	case STAT_req_message_bytes:
		return qp->sq.message_bytes;
	default:
		return 0;
	}
}

/** Owner worker: add `few` to the counters that it stands for. */
void qp_few_carry(struct qp *qp);
/** The same of the send queue's. Those that are not of the good path are lost without a side. */
void qp_sendq_carry(struct qp *qp);

/** Owner worker: count a WRITE of one packet. @param frame_len bytes of its frame. */
static ALWAYS_INLINE void
qp_few_write(struct qp *qp, uint16_t frame_len)
{
	qp->few.writes++;
	qp->few.bytes += frame_len;
	if (UNLIKELY(((qp->few.writes | qp->few.bytes) & BIT32(31)) != 0))
		qp_few_carry(qp);
}

/** Owner worker: count a SEND of one packet. */
static ALWAYS_INLINE void
qp_few_send(struct qp *qp, uint16_t frame_len)
{
	qp->few_sends++;
	qp->few.bytes += frame_len;
	if (UNLIKELY(((qp->few_sends | qp->few.bytes) & BIT32(31)) != 0))
		qp_few_carry(qp);
}

/** Owner worker: count an ACK. */
static ALWAYS_INLINE void
qp_few_ack(struct qp *qp)
{
	if (UNLIKELY((++qp->few.acks & BIT32(31)) != 0))
		qp_few_carry(qp);
}

/** Any lcore: the value of a counter of the QP. It may be older than the worker's by one packet. */
static inline uint64_t
qp_stat(const struct qp *qp, enum stats_counter s)
{
	const uint64_t few = qp_sendq_of(qp, s);

	if (s < STATS_HOT)
		return qp->hot[s] + qp_few_of(qp, s) + few;
	return (qp->stats != NULL ? qp->stats->c[s] : 0) + few;
}

/** Protection domain that receive WQEs are checked against. */
static inline uint32_t
qp_recv_pd(const struct qp *qp)
{
	return LIKELY((qp->flags & QPF_SRQ) == 0) ? qp->pd : qp->srq->pd;
}

/** Any lcore: QP of exactly this number, or NULL. Cost: one table line, one QP line. */
static inline struct qp *
qp_lookup(const struct qp_table *t, uint32_t qpn)
{
	struct qp *qp = qp_of_slot(qp_table_at(t, qpn));

	return qp != NULL && qp->qpn == qpn ? qp : NULL;
}

/** As qp_nowhere(). */
static inline uint32_t
qp_nowhere_count(const struct qp *qp, uint32_t una)
{
	return (qp->nowhere & PSN_MASK) == una ? qp->nowhere >> 24 : 0;
}

/** Owner worker: a request packet had nowhere to go. */
static inline void
qp_nowhere_add(struct qp *qp)
{
	const uint32_t n = qp_nowhere_count(qp, qp->req.una.v);

	qp->nowhere = qp->req.una.v | (n < QP_NOWHERE_MANY ? n + 1 : n) << 24;
}

/** Owner worker: attr.path, .path_resolved or .pkey has changed; make flags and template anew. */
void qp_path_changed(struct qp *qp);

#endif
