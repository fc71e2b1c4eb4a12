/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENV_H
#define ENV_H
/**
 * @file env.h  What the control lcore stands on: the wiring that the app made, its time, and its
 *              questions to workers.
 *
 * Owner:   the control lcore; no function here is safe from another one.
 * Memory:  part of struct control; what the wiring points to outlives it.
 * Time:    control_poll() sets `now` once per turn.
 * Depends: conf impair qp mbox stats trace mem icrc wire; DPDK (mbufs only).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ask.h"
#include "clock.h"
#include "conf.h"
#include "errbuf.h"
#include "icrc.h"
#include "impair_ops.h"
#include "latency.h"
#include "load.h"
#include "mbox.h"
#include "mem.h"
#include "prio.h"
#include "prio_stats.h"
#include "qp_ah.h"
#include "qp_mcast.h"
#include "qp_table.h"
#include "stats.h"
#include "trace.h"
#include "turn.h"
#include "wire.h"

#define ENV_MAX_WORKERS 64
#define ENV_MAX_PORTS   32

struct rte_mempool;

/** One worker, as far as control may see it. */
struct env_worker {
	uint32_t lcore;
	struct mbox *mbox;
	const struct stats_block *stats;
	struct stats_load *load;                             /* or NULL */
	const struct latency *latency;                       /* LATENCY_KINDS of them, or NULL */
	const struct stats_block *port_stats[ENV_MAX_PORTS]; /* by index in conf->ports */
	const struct prio_stats *prio_stats[ENV_MAX_PORTS];  /* NULL: it has no priorities */
	struct trace *trace;                                 /* or NULL */
	struct errbuf *errbuf;                               /* or NULL */
	int wake_set; /* epoll: what wakes it when it sleeps; with env_wiring.presence */
};

/** One port, in the order of conf->ports. */
struct env_port {
	uint16_t id;            /* DPDK port id */
	uint16_t worker;        /* worker that sends control's frames */
	uint16_t tx_queues;     /* see env_can_send(); 0: only `worker` can */
	struct wire_port *addr; /* what the workers' parsers use */
	struct rte_mempool *pool;
	uint32_t max_frame;              /* bytes without FCS */
	const struct impair_ops *impair; /* NULL: it cannot be impaired */
	void *impair_ctx;
	struct prio_port *prio; /* NULL: it has no priorities. Control sets pause.mbps alone */
	_Atomic uint32_t *mbps; /* of its link, for the workers; control sets it. Or NULL */
};

/**
 * Has the worker a transmit queue of a port to itself? `owner` has queue owner % queues, any other
 * worker that can send has the queue of its own number: no queue has two workers.
 */
static inline bool
env_can_send(uint32_t owner, uint32_t queues, uint32_t worker)
{
	return worker == owner || (worker < queues && worker != owner % queues);
}

/** The wiring that the app made. Everything pointed to outlives the control. */
struct env_wiring {
	const struct conf *conf;
	const struct crc_ops *crc;
	struct qp_table *qps;
	struct mem_table *mem;
	struct qp_ah_table *ahs;
	struct qp_srq_table *srqs;
	struct qp_mcast_table *mcasts; /* multicast groups */
	struct env_worker workers[ENV_MAX_WORKERS];
	struct env_port ports[ENV_MAX_PORTS];
	uint32_t workers_n;
	uint32_t ports_n;
	int numa_node;                   /* for regions; -1: any */
	const struct mem_area *presence; /* ring_presence.h, sealed; NULL: clients wake nobody */
	/* Called again and again while control waits for a worker: a pause, or (in a program with
	 * one thread) a turn of the workers. */
	void (*pump)(void *ctx);
	void *pump_ctx;
	/* Instead of it where the wait has become long: sleep a moment. NULL: `pump` is called. */
	void (*rest)(void);
	/**
	 * These multicast MACs are all that the port is to receive, those of its own groups among
	 * them; NULL: it receives any.
	 * @return 0 or -errno.
	 */
	int (*port_groups)(void *ctx, uint32_t port, uint8_t (*macs)[6], uint32_t n);
	void *port_groups_ctx;
	ns_t (*clock)(void); /* the dataplane's clock, for waits outside control_poll() */
	_Atomic bool *stop;  /* set by the method "shutdown" */
	bool no_socket;      /* tests: control_rpc() only */
};

/** What every part of the control lcore gets. */
struct env {
	struct env_wiring w;
	ns_t now;            /* of this turn */
	int64_t wall_offset; /* wall.c */
	struct asks asks;
	struct turns turns;
	bool may_put_off; /* env_put_off(): set by rpc around a request */
	bool put_off;
	/* Upwards: carries out what workers have said. Set once, by the owner of the loop. */
	uint32_t (*drain)(void *ctx);
	void *drain_ctx;
};

/**
 * Carry out what the workers have said until now: messages and events. Whoever destroys an object
 * calls it first, so that no message behind it names the object.
 * @return how many.
 */
static inline uint32_t
env_drain(struct env *env)
{
	return env->drain(env->drain_ctx);
}

/**
 * What the request needs is not there yet, and nobody is to wait for it here. A request that
 * changed nothing is refused now and tried again in a later turn, without an answer until then.
 * @return false: it has been put off for long, or cannot be: refuse it for good, or wait.
 */
static inline bool
env_put_off(struct env *env)
{
	if (env->may_put_off)
		env->put_off = true;
	return env->may_put_off;
}

/** Index of the port with this DPDK id, or -1. */
int env_port_index(const struct env *env, uint16_t dpdk_port);
/** Index of the port with this name, or -1. */
int16_t env_port_named(const struct env *env, const char *name);
/**
 * Index of the port with this address; `first` itself where it has it, as two networks may use the
 * same ones. -1: none. @param ip 4 or 16 bytes.
 */
int env_port_with(const struct env *env, uint32_t first, bool ipv6, const uint8_t *ip);
/**
 * LB-01, LB-06: index of the port that a path from `port` to this address leads to inside the
 * process. -1: none. @param wire path.local: the wire leads to other ports; none leads to its own.
 */
int env_port_inside(const struct env *env, uint32_t port, bool wire, bool ipv6, const uint8_t *ip);
/** Does this worker take what the port has received? */
bool env_worker_polls(const struct env *env, uint16_t port, uint32_t worker);
/** May this worker send on the port? One without a queue of its own there may not; -1: any may. */
bool env_worker_sends(const struct env *env, int port, uint32_t worker);

#endif
