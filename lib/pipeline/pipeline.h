/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_H
#define PIPELINE_H
/**
 * @file pipeline.h  One worker: rx, parse, icrc, steer, respond, complete, request, tx.
 *
 * Owner:   one lcore runs worker_poll(); control reads what worker_stats() and friends give out.
 * Memory:  worker_create() allocates everything; worker_poll() allocates nothing but mbufs.
 * Time:    the caller's `now`, and worker_conf.clock: read when frames were received and when they
 *          were handed to a port, so that no wait begins before what starts it.
 * Depends: all of lib/ except conf and control.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "errbuf.h"
#include "icrc.h"
#include "latency.h"
#include "load.h"
#include "mbox.h"
#include "prio_stats.h"
#include "mem.h"
#include "prio.h"
#include "qp_table.h"
#include "stats.h"
#include "trace.h"
#include "wire.h"

#define PIPELINE_BURST     32
#define PIPELINE_MAX_PORTS 32
/* Ports' wires, their queues for priorities 1 to 7, then local destinations. */
#define PIPELINE_MAX_OUTS    (2 * PIPELINE_MAX_PORTS + PRIO_PORTS_MAX * (PRIO_N - 1))
#define PIPELINE_MAX_WORKERS 64
/** mbuf dynamic flag: the frame's Ethernet FCS was wrong (RX-SYN-31). Drivers set it. */
#define PIPELINE_FCS_FLAG "rocelane_fcs_bad"

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

/** A bad wire in front of a port, as far as frames go that come from no wire. */
struct pipeline_impair {
	/** Any lcore: has the port one? */
	bool (*is_on)(void *ctx);
	/**
	 * The worker that polls the port: n frames are received, as by the port. @return how many
	 * go on, in the same array; at most `max`, and n is at most that.
	 */
	uint16_t (*receive)(void *ctx, struct rte_mbuf **m, uint16_t n, uint16_t max);
	void *ctx;
};

/** A port as a worker sees it. */
struct pipeline_port {
	uint16_t id; /* DPDK port id */
	uint16_t rx_queue;
	uint16_t tx_queue;
	uint16_t rx_worker; /* that polls its first receive queue */
	bool polls_rx;      /* this worker polls the port's receive queue */
	bool check_udp;     /* rx.udp_checksum=check */
	uint16_t max_frame; /* bytes, without FCS; longer ones are dropped; 0: any length */
	struct wire_port addr;
	struct rte_mempool *pool; /* for replies; data room fits the port's longest frame */
	const struct pipeline_impair *impair; /* NULL: it cannot be impaired */
	struct prio_port *prio;       /* the same for all workers; NULL: it has no priorities */
	const _Atomic uint32_t *mbps; /* of its link, now; 0 or NULL: not known */
};

struct worker_conf {
	uint16_t index;
	uint16_t ports_n;
	uint16_t workers_n;
	int socket;
	struct pipeline_port
		ports[PIPELINE_MAX_OUTS]; /* ports_n of them; the rest is the worker's */
	const struct crc_ops *crc;
	struct qp_table *qps;
	struct mem_table *mem;
	const struct qp_ah_table *ahs;
	const struct qp_srq_table *srqs;     /* XRC SRQs; NULL: there never are any */
	const struct qp_mcast_table *mcasts; /* multicast groups; NULL: likewise */
	struct mbox *mbox;
	struct rte_ring *handoff_in; /* packets other workers received for our QPs, or NULL */
	struct rte_ring *handoff[PIPELINE_MAX_WORKERS]; /* by owner */
	uint32_t errbuf_entries;                        /* 0: off */
	uint32_t trace_entries;                         /* power of two, 0: off */
	ns_t (*clock)(void); /* NULL: within a turn no time passes; never goes back */
	bool by_arrival;     /* rx.turns=arrival */
	bool start_paused;   /* leave frames in the ports until worker_receive() */
};

struct worker;

/** Main lcore: a worker that does not run yet. @return NULL: not enough memory. */
struct worker *worker_create(const struct worker_conf *c);
/** Main lcore, after the worker has left its loop. */
void worker_destroy(struct worker *w);

/**
 * One turn of the loop: up to one burst from each port, mailbox every 64 turns or when idle.
 * @param now not after the present, nor before what an earlier turn was told.
 * @return packets received plus packets sent: 0 means that the turn was idle.
 */
uint32_t worker_poll(struct worker *w, ns_t now);
#define WORKER_TELLS 64 /* busy turns */
#define IDLE_MANY    (UINT32_C(1) << 31)
/** Idle turns in a row, with one more. From IDLE_MANY on it goes round, and stays that many. */
static inline uint32_t
worker_idle_more(uint32_t turns)
{
	return turns + 1 != 0 ? turns + 1 : IDLE_MANY;
}
/**
 * Turn until *stop, by worker_conf.clock. `idle` is called after each idle turn, with how many
 * there were in a row (worker_idle_more()), and with 0 after each WORKER_TELLS busy ones; it may be
 * NULL.
 */
void worker_run(struct worker *w, const _Atomic bool *stop, void (*idle)(void *, uint32_t turns),
	void *idle_ctx);

/** Any lcore: a worker made with start_paused takes frames from now on; until then it only serves
 * its mailbox, so that no packet meets a QP that is still being brought up. */
void worker_receive(struct worker *w);

/**
 * The worker, when idle: when it has something to do by itself (0: as soon as a port takes more;
 * UINT64_MAX: never). It may be too early, never too late.
 */
ns_t worker_next(const struct worker *w);
/**
 * The worker, when idle: has a client rung a doorbell, or does it look at a queue whose bell would
 * not ring? Cost: a line for each client.
 */
bool worker_is_rung(const struct worker *w);

/** Any lcore may read: the worker's counters. */
const struct stats_block *worker_stats(const struct worker *w);
/** LATENCY_KINDS histograms: from the posting to the completion of what send_feeds asked for. */
const struct latency *worker_latency(const struct worker *w);
/** The same for one of its ports, by index. */
const struct stats_block *worker_port_stats(const struct worker *w, uint16_t port_index);
/** Of a port that has priorities; NULL: it has none. */
const struct prio_stats *worker_prio_stats(const struct worker *w, uint16_t port_index);
/** The flight recorder, or NULL: off. */
struct trace *worker_trace(struct worker *w);
/** The error buffer, or NULL: off. */
struct errbuf *worker_errbuf(struct worker *w);
/** Busy share and cycles by stage; set its `measure` to have the cycles counted. */
struct stats_load *worker_load(struct worker *w);

#endif
