/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_PRIV_H
#define PIPELINE_PRIV_H
/**
 * @file pipeline_priv.h  What the stages of a worker share; nobody else includes it.
 *
 * stage_01_rx.c .. stage_12_mailbox.c: a turn of worker_poll(), in order (pipeline.c)
 *
 * acks.c        ACKs and NAKs                        acks.h      the list of ACKs of a burst
 * actions.c     carry a responder's verdict out      complete.c  completions, events, QP failures
 * congestion.c  ECN marks and CNPs                   drops.c     packets that leave early
 * failure.h     what a failure was about             flush.c     work of a QP in ERR
 * handoff.c     packets of another worker's QP       migration.c the alternate path
 * move.c        a QP goes to another worker          replies.c   packets from the QP's template
 * requests.c    request packets                      send_actions.c  a requester's verdict
 * send_feed.c   requests made by the worker          send_queue.c    the send ring, the senders
 * send_take.c   posted work requests                 shared_rq.c WQEs of a shared receive queue
 * worker.c      create, destroy, getters
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
#include "move.h"
#include "pipeline.h"
#include "qp.h"
#include "qp_client.h"
#include "qp_parts.h"
#include "qp_rule.h"
#include "qp_snapshot.h"
#include "tx_queue.h"
#include "wire_wide.h"

#define AHEAD           4    /* packets: prefetch distance */
#define TIMER_TURNS     16   /* timers wait so long for frames received before them */
#define TX_ROOM         2048 /* frames a port's backlog holds at most */
#define TX_HIGH         256  /* frames waiting at which answers pause */
#define ANSWER_TURN     64   /* answer packets of a worker in one turn */
#define ANSWER_QP       8    /* ... of one QP before the next one's */
#define ANSWER_VISITS   32   /* QPs looked at in one turn */
#define REQUEST_TURN    64   /* request packets of a worker in one turn */
#define REQUEST_QP      16   /* ... of one QP before the next one's */
#define REQUEST_LOSSY   4    /* ... whose packets get lost, beside others */
#define REQUEST_VISITS  64   /* QPs looked at in one turn */
#define SEAL_BYTES      8192 /* of request packets, before they are read again for their ICRC */
#define DOORBELL_CLIENT 16   /* doorbells of one client in one turn */
#define MAILBOX_TURNS   64
#define MAILBOX_BURST   16
#define REPLY_ROOM      160 /* bytes: any packet that is not a READ response */
#define PORT_NONE       0xff
#define LARGE_FRAME     512   /* bytes: bursts of longer frames are judged in parts */
#define LARGE_BYTES     12288 /* ... of about this many bytes */
#define LARGE_PART      8u    /* ... and at most this many packets */
#define RECORDS_DEPTH   256   /* dropped packets recorded at once */
#define RECORDS_TURNS   8     /* turns of a flood for one more */

enum {                        /* worker.hurry: what goes out before the next burst is looked at */
	HURRY_NAK = BIT32(0), /* a NAK that was made */
	HURRY_REQUESTS = BIT32(1), /* what a response lets out on a link that loses packets */
};

/** The first word of an RC QP of this worker and DPDK port, but for number and state. */
static inline uint64_t
steer_owner(uint16_t worker, uint16_t port)
{
	return (uint64_t)QPT_RC << 40 | (uint64_t)(port & 0xff) << 48 |
	       (uint64_t)(worker & 0xff) << 56;
}

static inline uint8_t
steer_port(uint64_t owner)
{
	return (uint8_t)(owner >> 48);
}

/** Packets between two stages: one array for each thing a stage looks at. */
struct burst {
	uint32_t n;
	struct rte_mbuf *m[PIPELINE_BURST] CACHE_ALIGNED;
	struct qp *qp[PIPELINE_BURST];
	uint8_t port[PIPELINE_BURST]; /* index into the worker's ports */
	struct wire_pkt pkt[PIPELINE_BURST] CACHE_ALIGNED;
};

/** Payloads of the next requests of a QP. */
struct request_sources {
	const struct qp *qp; /* NULL: of none */
	uint32_t first;      /* position */
	uint32_t n;
	const uint8_t *host[REQUEST_QP]; /* NULL: not known */
	const struct mem_region *region[REQUEST_QP];
};

struct worker {
	ns_t now;
	const struct crc_ops *crc;
	struct qp_table *qps;
	struct mem_table *mem;
	struct mbox *mbox;
	struct trace *trace;
	struct errbuf *errbuf;
	uint32_t records_left; /* of the error buffer, before packets are left out; 0: it is off */
	uint64_t fcs_bad;      /* ol_flags of a frame with a wrong FCS */
	uint16_t index, ports_n;
	_Atomic bool receiving; /* writer: control lcore, once */
	uint32_t turns;
	uint32_t late; /* turns since timers were looked at */
	uint8_t hurry; /* HURRY_* */
	uint32_t dirty_n;
	uint32_t naks_n;
	uint32_t spare_n;
	uint32_t answering;     /* QPs in the circle */
	struct qp *answer_tail; /* circle of QPs with answers owed; the next one is its successor */
	/*
	 * QPs that owe an ACK at the end of the burst (NULL: not any more), and their ack_tail();
	 * they have QPF_DIRTY, and where they stand.
	 */
	struct qp *dirty[PIPELINE_BURST];
	uint64_t dirty_tail[PIPELINE_BURST];
	struct qp *nak[PIPELINE_BURST]; /* the same of nak_owe(), in order */
	uint64_t nak_tail[PIPELINE_BURST];
	struct rte_mbuf *spare[PIPELINE_BURST]; /* done with in this burst: replies re-use them */
	uint32_t senders_n;
	TAILQ_HEAD(, qp) senders; /* QPs with something to send, in turn */
	uint32_t clients_n;
	TAILQ_HEAD(, qp_client) clients; /* whose doorbells are polled */
	struct qp_side *sides;           /* for compact QPs; mbox.sides_taken */
	bool sides_short;                /* there were none, which was told */
	struct tx_queue tx[PIPELINE_MAX_PORTS];
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
	struct burst few; /* a part of it */
	struct stats_block port_stats[PIPELINE_MAX_PORTS];
	uint16_t fault_stat[FAULT_MAX];              /* counter of a fault */
	uint8_t port_of[256];                        /* DPDK port id -> index, or PORT_NONE */
	struct wire_front front[PIPELINE_MAX_PORTS]; /* of ports' addresses */
	uint64_t steer[PIPELINE_MAX_PORTS];          /* steer_owner() */
	struct worker_conf conf;
	bool measuring; /* load.measure, as it was when the turn began */
	struct stats_load load;
	struct latency latency[LATENCY_KINDS];
	struct move moving;
};

/* ---- stages ---------------------------------------------------------------------------------- */
/** Take a burst from the port with this index. */
void stage_rx(struct worker *w, struct burst *b, uint32_t port);
void stage_parse(struct worker *w, struct burst *b);
void stage_icrc(struct worker *w, struct burst *b);
/**
 * Fetch what stands at each packet's QP number, unseen: stage_steer() looks at it. Packets of other
 * workers' QPs leave.
 */
void stage_lookup(struct worker *w, struct burst *b);
void stage_steer(struct worker *w, struct burst *b);
/** ACKs wait until pipeline_acks_send(). */
void stage_respond(struct worker *w, struct burst *b);
/** Of stage 6: one response. */
void stage_complete(struct worker *w, struct burst *b, uint32_t i);
/** A turn's share of the answer queues. */
void stage_answers(struct worker *w);
/** @return timers that fired. */
uint32_t stage_timers(struct worker *w);
/** Look at each client's doorbell ring. @return numbers taken. Cost: a line for each client. */
uint32_t stage_doorbells(struct worker *w);
/** @return request packets made. */
uint32_t stage_request(struct worker *w);
/** @return frames that ports took. */
uint32_t stage_tx(struct worker *w);
/** @return messages carried out. */
uint32_t stage_mailbox(struct worker *w);

/** Packet i stays: close the gap that those before it left. */
static inline void
burst_keep(struct burst *b, uint32_t kept, uint32_t i)
{
	if (LIKELY(kept == i))
		return;
	b->m[kept] = b->m[i];
	b->qp[kept] = b->qp[i];
	b->port[kept] = b->port[i];
	b->pkt[kept] = b->pkt[i];
}

/* ---- time ------------------------------------------------------------------------------------ */
/** Time has passed: w->now is the present. Cost: that of the clock. */
static ALWAYS_INLINE void
clock_read(struct worker *w)
{
	if (LIKELY(w->conf.clock != NULL))
		w->now = w->conf.clock();
}

/* ---- mbufs ----------------------------------------------------------------------------------- */
/** Nobody needs this mbuf any more; it becomes a reply or is freed at the end of the burst. */
static inline void
mbuf_done(struct worker *w, struct rte_mbuf *m)
{
	if (LIKELY(w->spare_n < PIPELINE_BURST))
		w->spare[w->spare_n++] = m;
	else
		rte_pktmbuf_free(m);
}

/** The same of packets from .. to - 1. */
static inline void
mbufs_done(struct worker *w, const struct burst *b, uint32_t from, uint32_t to)
{
	if (LIKELY(w->spare_n + (to - from) <= PIPELINE_BURST)) {
		memcpy(w->spare + w->spare_n, b->m + from, (to - from) * sizeof(b->m[0]));
		w->spare_n += to - from;
		return;
	}
	for (; from < to; from++)
		mbuf_done(w, b->m[from]);
}

void pipeline_mbufs_free_spare(struct worker *w);

/* ---- counting (drops.c) ---------------------------------------------------------------------- */
/** A compact QP needs its side. @return false: the worker's stock is empty. */
bool pipeline_side_take(struct worker *w, struct qp *qp);

static ALWAYS_INLINE bool
has_side(struct worker *w, struct qp *qp)
{
	return LIKELY(qp->stats != NULL) || pipeline_side_take(w, qp);
}

/** Count at the QP. Cost: a line of the QP that is hot, or one of its side. */
static ALWAYS_INLINE void
qp_count(struct worker *w, struct qp *qp, enum stats_counter s, uint64_t n)
{
	if (s < STATS_HOT)
		qp->hot[s] += n;
	else if (LIKELY(has_side(w, qp)))
		stats_add(qp->stats, s, n);
	else
		stats_add(&w->stats, STAT_qp_counts_lost, n);
}

static inline void
count(struct worker *w, uint8_t port, struct qp *qp, enum stats_counter s)
{
	stats_inc(&w->stats, s);
	stats_inc(&w->port_stats[port], s);
	if (qp != NULL)
		qp_count(w, qp, s, 1);
}

static inline bool
traced(const struct worker *w, const struct qp *qp)
{
	return UNLIKELY((qp->flags & QPF_TRACE) != 0) && w->trace != NULL;
}

static inline uint8_t
qp_state_of(const struct qp *qp)
{
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/** May packets go to the QP's logic? */
static inline bool
qp_receives(uint8_t state)
{
	return state >= QPS_RTR && state <= QPS_SQE;
}

/**
 * Is a packet that is dropped now recorded? A worker records RECORDS_DEPTH of them as they come,
 * and one more every RECORDS_TURNS turns: a few bad packets are all seen, and what a flood costs is
 * not its records.
 */
static inline bool
record_wanted(const struct worker *w)
{
	return w->records_left != 0;
}

/** A turn begins. */
static inline void
records_allow(struct worker *w)
{
	if (w->errbuf != NULL && w->records_left < RECORDS_DEPTH && w->turns % RECORDS_TURNS == 0)
		w->records_left++;
}

/** Dropped packets in a row of one port and fault: they are counted together. */
struct drop_run {
	struct qp *qp;       /* of the last one; NULL, or of this worker */
	fault_mask_t faults; /* of that one */
	uint32_t qp_n;       /* in a row of that QP */
	uint32_t n;          /* before them */
	uint32_t recorded;
	uint32_t left_out; /* by the error buffer, which had no room */
	uint8_t fault;     /* what they are charged to */
	uint8_t port;
	bool silent; /* those that follow are neither recorded nor traced */
};

/** Those of the QP are counted at it; from here on the run is about this one. */
void pipeline_drop_next_qp(struct worker *w, struct drop_run *run, struct qp *qp);

/** One more with the same faults that nothing is to be said about. @return false: it is not. */
static ALWAYS_INLINE bool
drop_again(struct worker *w, struct drop_run *run, struct qp *qp, fault_mask_t faults, uint8_t port)
{
	if (UNLIKELY(!run->silent) || run->faults != faults || UNLIKELY(run->port != port))
		return false;
	if (run->qp != qp) {
		if (qp != NULL && traced(w, qp))
			return false;
		pipeline_drop_next_qp(w, run, qp);
	}
	run->qp_n++;
	return true;
}

/**
 * Header validation failed: charge the packet to the first of its faults, record it.
 * b->qp[i] is NULL or a QP of this worker.
 */
void pipeline_drop_add(struct worker *w, struct drop_run *run, struct burst *b, uint32_t i);
/** Count them. */
void pipeline_drop_flush(struct worker *w, struct drop_run *run);
/** One of them. */
void pipeline_drop_faulty(struct worker *w, struct burst *b, uint32_t i);
/** A fault of an accepted packet, and what it led to. */
struct charge {
	uint16_t rule;
	uint8_t fault;  /* enum wire_fault */
	uint8_t impact; /* enum errbuf_impact */
};

/** Where the error buffer is on: write a record. @return false: the packet was left out. */
bool pipeline_drop_recorded(struct worker *w, const struct burst *b, uint32_t i, struct charge c);
/** The responder or the requester found a fault: count and record that. */
void pipeline_fault_charge(struct worker *w, struct burst *b, uint32_t i, struct charge c);

/* ---- carrying a verdict out (actions.c, complete.c, flush.c) --------------------------------- */
/** A packet, its QP, and where the region of its key is. */
struct context {
	struct qp *qp;
	const struct wire_pkt *p; /* NULL: no packet of this turn */
	uint8_t *host;            /* of query.va */
	uint64_t va;              /* query.va, query.len */
	uint32_t len;
	uint32_t key; /* without a packet: of the READ that is answered */
};

void pipeline_act_responder(struct worker *w, const struct context *c, struct responder_verdict *v);
/** The QP goes to ERR: state, report, flush, NAK. */
void pipeline_fail(struct worker *w, const struct context *c, const struct responder_verdict *v,
	enum mbox_source source);
/** @return 0, or -ENOSPC: the completion queue is in error. */
int pipeline_complete(struct worker *w, const struct context *c, const struct responder_verdict *v);
/**
 * Add a completion, off the good path: cq_add() of complete.h. @param cq NULL: nobody wants it.
 * @return 0, or -ENOSPC: the queue is in error, which was reported.
 */
int pipeline_cq_add(
	struct worker *w, struct qp *qp, struct qp_cq *cq, const struct ring_completion *c);
/** Status that a request gets from a flush: WR_FLUSH_ERR, or that of an abnormal event. */
uint8_t pipeline_flush_status(struct worker *w, uint8_t queue, uint16_t index);
/** To ERR as an abnormal event asks: 0 or -EALREADY. @param carried out: a completion has it. */
int pipeline_fail_abnormal(struct worker *w, const struct mbox_fail *how, bool *carried);
/** Complete everything that is posted with WR_FLUSH_ERR, oldest first. */
void pipeline_flush_receives(struct worker *w, struct qp *qp);

/* ---- shared receive queue (shared_rq.c) ------------------------------------------------------ */
/** The head of the QP's SRQ into its private copy. @return false: there is none. */
bool pipeline_srq_head(struct worker *w, struct qp *qp, struct responder_facts *f);
/** Is a WQE posted, or must this be told otherwise? */
bool pipeline_srq_has_wqe(const struct qp *qp);
/** Take what pipeline_srq_head() copied. @return false: another QP has it. */
bool pipeline_srq_take(struct worker *w, struct qp *qp, const struct responder_facts *f);
/** The QP is in ERR, and its last WQE has completed (AE-08). */
void pipeline_srq_last_wqe(struct worker *w, struct qp *qp);

/* ---- what is owed to peers (stage_07_answers.c) ---------------------------------------------- */
void pipeline_owe_ack(struct worker *w, struct qp *qp, const struct responder_verdict *v);
void pipeline_owe_nak(struct worker *w, struct qp *qp, const struct responder_verdict *v);
void pipeline_owe_read(struct worker *w, struct qp *qp, const struct responder_verdict *v);
void pipeline_owe_atomic(
	struct worker *w, struct qp *qp, const struct responder_verdict *v, uint64_t original);
/** Forget everything owed: RESET, ERR by the control lcore, detach. */
void pipeline_answers_drop(struct worker *w, struct qp *qp);
/** Off the circle with everything owed, and on to that of the next worker. */
void pipeline_answers_leave(struct worker *w, struct qp *qp);
void pipeline_answers_join(struct worker *w, struct qp *qp);

/* ---- path migration (migration.c) ------------------------------------------------------------ */
/** MigReq of the QP's packets: PKT_MIGREQ or 0 (WIRE-18). */
static inline uint8_t
migreq_of(const struct qp *qp)
{
	return LIKELY((qp->flags & QPF_MIGRATION) == 0) ? PKT_MIGREQ : 0;
}

/** The peer's MAC is not known, and this packet of its has passed all checks: it tells. */
void pipeline_path_learn(struct worker *w, struct qp *qp, const struct wire_pkt *p);
/** QPF_MIGRATION is set, and a packet that may move the state has passed all checks. */
void pipeline_migration_receive(struct worker *w, struct qp *qp, const struct wire_pkt *p);
/** A packet that asks for a migration did not come on the alternate path, and is dropped. */
void pipeline_migration_refuse(struct worker *w, struct qp *qp, const struct wire_pkt *p);
/** REQACT_MIGRATE. */
void pipeline_migration_exhausted(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, uint16_t rule);
/** The QP is on its alternate path now: count, record, PATH_MIG. @param p what did it, or NULL. */
void pipeline_migration_done(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, uint16_t rule);

/* ---- packets (acks.c, replies.c, congestion.c, stage_11_tx.c) -------------------------------- */
void pipeline_reply_ack(struct worker *w, struct qp *qp, uint8_t syndrome, psn_t p, uint32_t msn);
/** End of a burst: one ACK for each QP that owes one. */
void pipeline_acks_send(struct worker *w);
/** What nak_owe() was told so far. */
void pipeline_flush_naks(struct worker *w);
static ALWAYS_INLINE void
naks_send(struct worker *w)
{
	if (UNLIKELY(w->naks_n != 0))
		pipeline_flush_naks(w);
}
/** Both: 0; -EAGAIN: no mbuf, try again; -EMSGSIZE: the pool's buffers are too small. */
int pipeline_reply_atomic(struct worker *w, struct qp *qp, const struct resp_answer *a);
int pipeline_reply_read(struct worker *w, struct qp *qp, const struct resp_answer *a,
	const uint8_t *data, uint32_t len);
void pipeline_reply_cnp(struct worker *w, struct qp *qp);
/** An accepted packet had the IP CE mark. */
void pipeline_congestion_mark(
	struct worker *w, uint8_t port, struct qp *qp, const struct wire_pkt *p);
void pipeline_congestion_notified(struct worker *w, uint8_t port, struct qp *qp);
/** The control lcore has sent the QP's CNP (CC-04): it stands in a queue. */
void pipeline_congestion_sent(struct worker *w, uint32_t qpn);
/** Is a CNP formed as it must be? (CC-01, CC-08) */
bool pipeline_cnp_is_good(const struct wire_pkt *p);

/** Ownership of `m` moves; a full backlog drops it and counts. */
void pipeline_tx_push(struct worker *w, uint8_t port, struct rte_mbuf *m);
static inline bool
tx_is_congested(const struct worker *w, uint8_t port)
{
	return w->tx[port].tail - w->tx[port].head > TX_HIGH;
}

/* ---- other lcores (handoff.c, stage_12_mailbox.c) -------------------------------------------- */
/** With several workers: packets of another's QP leave the burst. */
void pipeline_handoff_sort(struct worker *w, struct burst *b);
/** The same for one of them, found later. */
void pipeline_handoff_send(struct worker *w, struct burst *b, uint32_t i);
void pipeline_handoff_receive(struct worker *w, struct burst *b);
/** These frames, each with its `port`, become a burst. */
void pipeline_handoff_take(
	struct worker *w, struct burst *b, struct rte_mbuf *const *m, uint32_t n);
/** All stages of a burst up to what it makes the worker owe. */
void pipeline_burst_run(struct worker *w, struct burst *b);
void pipeline_client_attach(struct worker *w, struct qp_client *c);
void pipeline_client_detach(struct worker *w, struct qp_client *c);

#include "sending.h"

#endif
