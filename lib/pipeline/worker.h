/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WORKER_H
#define WORKER_H
/**
 * @file worker.h  A worker's state, and the burst that its stages hand on.
 *
 * Owner:   the worker's lcore.
 * Memory:  worker_create(); one block a worker.
 * Depends: pipeline.h; DPDK.
 */
#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "compiler.h"
#include "invariant.h"
#include "move.h"
#include "pipeline.h"
#include "qp.h"
#include "qp_client.h"
#include "qp_mcast.h"
#include "qp_parts.h"
#include "qp_rule.h"
#include "qp_share.h"
#include "qp_snapshot.h"
#include "tx_queue.h"
#include "wire_front.h"

#define AHEAD           4    /* packets: prefetch distance */
#define TIMER_TURNS     16   /* timers wait so long for frames received before them */
#define TX_ROOM         2048 /* frames a port's backlog holds at most */
#define TX_HIGH         256  /* frames waiting at which answers pause */
#define ANSWER_TURN     256  /* answers of a worker in one turn, by their weight */
#define ANSWER_LONG     4    /* weight of a READ response of more than ANSWER_SHORT bytes; else 1 */
#define ANSWER_SHORT    512  /* bytes */
#define ANSWER_QP       32   /* ... of one QP before the next one's */
#define ANSWER_VISITS   32   /* QPs looked at in one turn */
#define ANSWER_PEERS    128  /* places for peers; a power of two, at most 256 */
#define CONTROL_PLACES  64   /* for sources of frames for the control lcore; a power of two */
#define CONTROL_SOURCE  64   /* frames of one in a millisecond */
#define REQUEST_TURN    64   /* request packets of a worker in one turn */
#define REQUEST_QP      16   /* ... of one QP before the next one's */
#define TAKE_QP         64   /* entries of its send ring copied at once */
#define REQUEST_ROUNDS  (REQUEST_TURN / REQUEST_QP) /* visits in a turn, at least */
#define REQUEST_BYTES   16384 /* ... and in a turn, where another client could ring meanwhile */
#define REQUEST_LOSSY   4     /* ... whose packets get lost, beside others whose do */
#define REQUEST_VISITS  64    /* QPs looked at in one turn */
#define LOSSY_LONG      8000  /* ns: too long for a turn in which the only sender loses some */
#define LOSSY_SHORT     6000  /* ... and short enough for more of its packets */
#define SEAL_BYTES      8192  /* of request packets, before they are read again for their ICRC */
#define DOORBELL_CLIENT 16    /* doorbells of one client in one turn */
#define MAILBOX_TURNS   4     /* the control lcore waits for the answers */
#define WATCHED_MAX     8u    /* send queues that are looked at without a bell */
#define WATCHED_VAIN    64u   /* turns without a post, until the bell rings again */
#define WATCHED_BELLS   2u    /* of a client in a turn: with more of them none is watched */
#define SETTLE_TURNS    64    /* for counters of local destinations */
#define MAILBOX_BURST   16
#define REPLY_ROOM      160 /* bytes: any packet that is not a READ response */
#define PORT_NONE       0xff
#define LARGE_FRAME     512   /* bytes: bursts of longer frames are delivered in parts */
#define LARGE_BYTES     12288 /* ... of about this many bytes */
#define LARGE_PART      8u    /* ... and at most this many packets */
#define RECORDS_DEPTH   256   /* dropped packets recorded at once */
#define RECORDS_TURNS   8     /* turns of a flood for one more */

enum {                        /* worker.hurry: what goes out before the next burst is looked at */
	HURRY_NAK = BIT32(0), /* a NAK that was made */
	HURRY_REQUESTS = BIT32(1), /* what a response lets out on a link that loses packets */
	HURRY_MCAST = BIT32(2),    /* datagrams to groups have come in */
};

/** The first word of an RC QP of this worker and DPDK port, but for number and state. */
static inline uint64_t
steer_owner(uint16_t worker, uint16_t port)
{
	return (uint64_t)QPT_RC << 40 | (uint64_t)(port & 0xff) << 48 |
	       (uint64_t)(worker & 0xff) << 56;
}

/** The DPDK port in such a word. */
static inline uint8_t
steer_port(uint64_t owner)
{
	return (uint8_t)(owner >> 48);
}

/** Packets between two stages: one array for each thing a stage looks at. */
struct burst {
	uint32_t n;
	uint32_t plain; /* those that stage 5 found plain, a bit each: stage_05_plain.h */
	uint32_t parts; /* stage 6: responses that are parts of a READ, a bit each */
	bool one_port;  /* stage 5: all packets came to one port */
	struct rte_mbuf *m[PIPELINE_BURST] CACHE_ALIGNED;
	struct qp *qp[PIPELINE_BURST];
	uint8_t port[PIPELINE_BURST]; /* index into the worker's ports */
	struct wire_pkt pkt[PIPELINE_BURST] CACHE_ALIGNED;
};

/** Peers whose addresses fall on the same place, and the QPs that owe them answers. */
struct answer_peer {
	TAILQ_HEAD(, qp) qps; /* in turn */
	uint16_t idle;        /* turns without any, while it is listed */
	bool listed;          /* on the worker's list */
	uint8_t reserved;
	uint32_t line;         /* worker.line when it was owed answers last */
	int64_t credit;        /* what answers may still cost in this turn; below 0: a debt */
	const struct qp *last; /* that was answered; it may be gone: it is only compared */
	TAILQ_ENTRY(answer_peer) turn;
	struct qp_round_cost served; /* its requests */
};

/** What sources on a link have sent for the control lcore in this millisecond. */
struct control_source {
	ns_t until;
	uint32_t n;
};

/** Payloads of the next requests of a QP. */
struct request_sources {
	const struct qp *qp; /* NULL: of none */
	uint32_t first;      /* position */
	uint32_t n;
	const uint8_t *host[REQUEST_QP]; /* NULL: not known */
	const struct mem_region *region[REQUEST_QP];
};

/** A send queue whose bell goes on ringing: stage 9 looks for posts by itself. */
struct watched {
	const struct qp_client *client;
	uint32_t number; /* of the QP */
	uint32_t prod;   /* the index that was seen last */
	uint32_t vain;   /* looks since it moved */
};

struct worker {
	ns_t now;
	const struct crc_ops *crc;
	struct qp_table *qps;
	struct mem_table *mem;
	const struct qp_ah_table *ahs;
	const struct qp_srq_table *srqs;
	struct mbox *mbox;
	struct trace *trace;
	struct errbuf *errbuf;
	uint32_t records_left; /* of the error buffer, before packets are left out; 0: it is off */
	uint64_t fcs_bad;      /* ol_flags of a frame with a wrong FCS */
	uint16_t index, ports_n;
	uint16_t wires_n; /* queues of ports: one, or one for each priority (tx_prio.h) */
	uint16_t outs_n;  /* queues that may hold frames: wires_n, or ports_n more (local.h) */
	bool local_burst; /* this process made the packets: their ICRCs are right, or not there */
	_Atomic bool receiving; /* writer: control lcore, once */
	bool lends;             /* frames with payloads on loan may stand in queues (local.h) */
	uint32_t turns;         /* in a row, that did something */
	uint32_t unsettled;     /* turns since pipeline_local_settle() */
	uint32_t late;          /* turns since timers were looked at */
	uint8_t hurry;          /* HURRY_* */
	bool intake_on;         /* peers take turns (intake.h) */
	uint8_t apart;          /* next bursts whose headers are read one by one: flows are mixed */
	uint8_t early_left;     /* next bursts in which frames for others are looked for first */
	uint32_t full_turns;    /* in a row, in which a port had a full burst */
	struct intake *intake;  /* NULL: frames are served in the order of their arrival */
	struct kept *kept;      /* requests that wait for one below them */
	uint32_t dirty_n;
	uint32_t naks_n;
	uint32_t spare_n;
	uint32_t answering; /* QPs with answers owed */
	uint32_t line;      /* counts how often it rose from 0 */
	ns_t answered;      /* when senders_n fell to 0 */
	uint32_t peers_n;
	uint32_t mixed; /* for so many turns others have waited for theirs lately, too */
	/* What this has cost since the last turn of answers, while they are owed. */
	int64_t served; /* requests that are answered at once: of the peer that has most */
	int64_t made;   /* requests of ours: of the user who has most */
	uint32_t round; /* counts such turns */
	TAILQ_HEAD(, answer_peer) peers; /* to whom answers were owed lately, in turn */
	struct answer_peer peer[ANSWER_PEERS];
	/*
	 * QPs that owe an ACK at the end of the burst (NULL: not any more), and their ack_tail();
	 * they have QPF_DIRTY, and where they stand.
	 */
	struct qp *dirty[PIPELINE_BURST];
	uint64_t dirty_tail[PIPELINE_BURST];
	struct qp *nak[PIPELINE_BURST]; /* the same of nak_owe(), in order */
	uint64_t nak_tail[PIPELINE_BURST];
	struct rte_mbuf *spare[PIPELINE_BURST]; /* done with in this burst: replies re-use them */
	uint32_t senders_n;                     /* QPs with something to send */
	uint32_t unhurt;                        /* visits that are of full length yet */
	ns_t began;                             /* this turn */
	bool lossy;           /* in it the only sender is one that goes back for what it loses */
	uint32_t lossy_made;  /* its packets in this turn */
	uint32_t lossy_fewer; /* than REQUEST_QP of it in a visit: what was made is in vain */
	uint32_t send_line;   /* how often senders_n rose from 0 */
	ns_t sent;            /* when senders_n fell to 0 */
	uint32_t shares_n;
	uint64_t turns_begun; /* of shares, ever */
	uint32_t brief;       /* so many of this worker's turns from now on are short: COST_BRIEF */
	uint8_t heaviest;     /* weight among them */
	uint32_t fewest;      /* of them, of one user */
	bool crowded;         /* a port had more frames than a turn takes */
	struct qp_share *alone;          /* the only one of them, and it has no rate; or NULL */
	TAILQ_HEAD(, qp_share) shares;   /* those that such QPs had lately, in turn */
	struct qp_share own;             /* of QPs of no client */
	uint32_t flush_left;             /* requests that this turn may still flush */
	TAILQ_HEAD(, qp_share) flushing; /* clients whose QPs wait for it, in turn */
	uint32_t clients_n;
	uint32_t watched_n;
	TAILQ_HEAD(, qp_client) clients;       /* whose doorbells are polled */
	struct watched watched[WATCHED_MAX];   /* stage 9 looks at them without a bell */
	struct qp_side *sides;                 /* for compact QPs; mbox.sides_taken */
	bool sides_short;                      /* there were none, which was told */
	struct tx_queue tx[PIPELINE_MAX_OUTS]; /* by port_of[], as port_stats and conf.ports */
	struct prio_tx *prio_tx[PIPELINE_MAX_PORTS]; /* NULL: the port has no priorities */
	const struct qp *coming[DOORBELL_CLIENT]; /* of the next turn's doorbells, to be fetched */
	uint32_t coming_n;                        /* in this turn */
	struct request_sources sources[2]; /* of the sender that is served, and of the next one */
	const struct request_sources *source;     /* the former */
	struct icrc_frame unsealed[REQUEST_TURN]; /* requests whose ICRC is missing */
	uint32_t unsealed_n;
	uint32_t unsealed_bytes;
	struct wheel wheel; /* timers of requesters */
	struct {            /* QP_FAIL: the work request that the flush reports with this status */
		uint8_t queue; /* AEQ_RQ, AEQ_SQ, 0: none */
		uint8_t status;
		uint16_t index; /* AEQ_RQ: of the WQE */
		bool taken;
	} failing;
	struct stats_block stats;
	struct burst burst;
	struct burst few;            /* a part of it */
	uint32_t few_end;            /* one behind its last packet, in `burst` */
	const struct burst *serving; /* local, and served from this packet on; NULL: none */
	uint32_t serving_at;
	struct stats_block port_stats[PIPELINE_MAX_OUTS];
	uint16_t fault_stat[FAULT_MAX]; /* counter of a fault */
	uint8_t port_of[256];           /* DPDK port id, or qp.out -> index, or PORT_NONE */
	struct wire_front front[PIPELINE_MAX_PORTS]; /* of ports' addresses */
	uint64_t steer[PIPELINE_MAX_PORTS];          /* steer_owner() */
	struct control_source control[CONTROL_PLACES];
	struct worker_conf conf;
	bool measuring; /* load.measure, as it was when the turn began */
	struct stats_load load;
	struct latency latency[LATENCY_KINDS];
	struct move moving;
	const struct qp_mcast_table *mcasts;
	struct burst mcast; /* datagrams to groups, for their members: mcast.h */
	uint64_t lent_flag; /* ol_flags of such a frame; 0: there is none */
	uint64_t copy_flag; /* ol_flags of a copy for another worker's members */
};

/** Packet i stays: close the gap that those before it left. */
static inline void
burst_keep(struct burst *b, uint32_t kept, uint32_t i)
{
	ASSERT(kept <= i && i < PIPELINE_BURST);
	if (LIKELY(kept == i))
		return;
	b->m[kept] = b->m[i];
	b->qp[kept] = b->qp[i];
	b->port[kept] = b->port[i];
	b->pkt[kept] = b->pkt[i];
}

/** Time has passed: w->now is the present. Cost: that of the clock. */
static ALWAYS_INLINE void
clock_read(struct worker *w)
{
	if (LIKELY(w->conf.clock != NULL))
		w->now = w->conf.clock();
}

#endif
