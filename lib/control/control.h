/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_H
#define CONTROL_H
/**
 * @file control.h  The control lcore: objects, state transitions, events, neighbours, JSON-RPC.
 *
 * Owner:   the control lcore; no function here is safe from another one.
 * Memory:  control_create() allocates; everything is given back by control_destroy().
 * Time:    control_poll() gets `now` once per turn.
 * Depends: conf impair qp mbox stats trace mem icrc wire; DPDK (mbufs only). Never lib/pipeline.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "conf.h"
#include "errbuf.h"
#include "icrc.h"
#include "impair_ops.h"
#include "latency.h"
#include "load.h"
#include "mbox.h"
#include "mem.h"
#include "qp.h"
#include "stats.h"
#include "trace.h"
#include "wire.h"

#define CONTROL_MAX_WORKERS 64
#define CONTROL_MAX_PORTS   32

struct rte_mempool;

/** One worker, as far as control may see it. */
struct control_worker {
	uint32_t lcore;
	struct mbox *mbox;
	const struct stats_block *stats;
	struct stats_load *load; /* or NULL */
	const struct latency *latency; /* LATENCY_KINDS of them, or NULL */
	const struct stats_block *port_stats[CONTROL_MAX_PORTS]; /* by index in conf->ports */
	struct trace *trace;   /* or NULL */
	struct errbuf *errbuf; /* or NULL */
};

/** One port, in the order of conf->ports. */
struct control_port {
	uint16_t id;            /* DPDK port id */
	uint16_t worker;        /* worker that sends control's frames */
	uint16_t tx_queues;     /* see control_can_send(); 0: only `worker` can */
	struct wire_port *addr; /* what the workers' parsers use */
	struct rte_mempool *pool;
	uint32_t max_frame;     /* bytes without FCS */
	const struct impair_ops *impair; /* NULL: it cannot be impaired */
	void *impair_ctx;
};

/**
 * Has the worker a transmit queue of a port to itself? `owner` has queue owner % queues, whoever
 * else can send has the queue of his number: no queue has two workers.
 */
static inline bool
control_can_send(uint32_t owner, uint32_t queues, uint32_t worker)
{
	return worker == owner || (worker < queues && worker != owner % queues);
}

/** The wiring that the app made. Everything pointed to outlives the control. */
struct control_env {
	const struct conf *conf;
	const struct crc_ops *crc;
	struct qp_table *qps;
	struct mem_table *mem;
	struct control_worker workers[CONTROL_MAX_WORKERS];
	struct control_port ports[CONTROL_MAX_PORTS];
	uint32_t workers_n;
	uint32_t ports_n;
	int numa_node;          /* for regions; -1: any */
	/* Called again and again while control waits for a worker: a pause, or (in a program with
	 * one thread) a turn of the workers. */
	void (*pump)(void *ctx);
	void *pump_ctx;
	ns_t (*clock)(void);    /* the dataplane's clock, for waits outside control_poll() */
	_Atomic bool *stop;     /* set by the method "shutdown" */
	bool no_socket;         /* tests: control_rpc() only */
};

struct control;

/**
 * Open the socket and create every configured object; QPs are walked to their states.
 * @return 0 or -errno, with the reason logged.
 */
int control_create(const struct control_env *env, struct control **out);
/** All QPs to ERR, then everything is freed. The workers must still be polled by `pump`. */
void control_destroy(struct control *c);
/** One turn: messages from workers, socket, timers. @return pieces of work done; 0: idle. */
uint32_t control_poll(struct control *c, ns_t now);
/** How long it may sleep when a turn was idle; shorter while an application waits for an event. */
uint32_t control_wait_us(const struct control *c);
/** A descriptor that becomes readable when the socket has work, for an idle wait; -1: none. */
int control_wait_fd(const struct control *c);
/**
 * One JSON-RPC request line, as from the socket.
 * @return the reply line without newline (free() it), or NULL for a notification.
 */
char *control_rpc(struct control *c, const char *line, size_t len);
/** Print the total counters that are not zero, one a line, through `out`. */
void control_print_counters(const struct control *c, void (*out)(void *ctx, const char *line),
	void *ctx);

#endif
