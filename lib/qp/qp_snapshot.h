/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_SNAPSHOT_H
#define QP_SNAPSHOT_H
/**
 * @file qp_snapshot.h  What a QP looks like at a moment, for qp_query.
 *
 * Owner:   the QP's worker fills it in; whoever asked reads it behind the answer.
 * Memory:  the caller's.
 * Depends: base stats; qp_attr.h, qp_failure.h.
 * Spec:    QP-19.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "qp_attr.h"
#include "qp_failure.h"
#include "stats.h"

struct qp;

/** What a QP waits for, as far as its worker sees it. */
struct qp_waiting {
	uint8_t stop;          /* enum requester_stop: against the next packet */
	uint8_t timeout;       /* exponent in effect; 0: no transport timer */
	uint8_t rnr_code;      /* of the RNR NAK that is waited for the end of */
	bool narrowed;         /* the window is smaller than the QP's: by a CNP, or cc.algo=delay */
	bool established;      /* the peer was heard of in RTR */
	bool starved;          /* the peer was told of no credit (FLOW-07) */
	bool has_oldest;       /* oldest_*: the oldest request not completed */
	bool resends;          /* what leaves next has left before */
	bool tx_full;          /* so many frames wait for the port that requests pause */
	bool tx_paused;        /* its priority is, by the port's neighbour (FLOW-11) */
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
	uint64_t rate;      /* bytes a second that its client may move; 0: any */
	ns_t rate_until;    /* ... and has none left of until then; 0: it has */
	ns_t rest_until;    /* send_feed: the peer was not there; 0: it does not rest */
	ns_t rnr_until;     /* the peer was told not to come before; 0: it was not */
};

/** With cc.algo=dcqcn or delay: kb/s, and what they come from. */
struct qp_rate {
	ns_t waits_until; /* packets wait for their turn at that rate; 0: they do not */
	double alpha;
	uint32_t current;
	uint32_t target;
	uint32_t cnps;
	uint8_t stage; /* enum cc_stage */
	bool has;
	bool by_delay;   /* ... delay: */
	double window;   /* packets */
	uint32_t rtt_ns; /* 0: none was measured */
	uint32_t rtt_target_ns;
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
	bool timing;      /* transport timer runs, until `deadline` */
	bool waiting_rnr; /* RNR wait, until `deadline` */
	bool drained;     /* SQD: nothing is under way */
	uint32_t next_psn;
	uint32_t una_psn;     /* oldest not acknowledged */
	uint32_t nowhere;     /* qp_nowhere() of it, or of the PSN that failed */
	uint32_t outstanding; /* send requests posted and not completed */
	uint32_t window;
	ns_t deadline;
	uint64_t feed_posted;
	uint64_t feed_completed;
	uint32_t migrations;
	uint16_t migration_rule; /* of the newest one */
	ns_t migration_ns;
	struct qp_error error;
	struct qp_rate rate;
	struct qp_waiting waiting;
	struct stats_block stats;
};
/**
 * Fill in a snapshot; the QP stays as it is.
 * Who may call it: the QP's worker; the control lcore while the QP is detached.
 * @param now of the owner's clock, or 0: nobody waits.
 * @param line Mb/s of its port's link; 0: not known.
 */
void qp_snapshot(const struct qp *qp, ns_t now, uint32_t line, struct qp_snapshot *out);

#endif
