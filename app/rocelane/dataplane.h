/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DATAPLANE_H
#define DATAPLANE_H
/**
 * @file dataplane.h  The wiring: ports, pools, tables, workers and control made from a config.
 *
 * Owner:   the main lcore. Workers are made here and run elsewhere.
 * Memory:  dataplane_create() allocates, dataplane_destroy() gives back in reverse order; packet
 *          buffers stay to the end of the process.
 * Depends: everything below app/.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "conf.h"
#include "control.h"
#include "impair_ops.h"
#include "mem_guard.h"
#include "pipeline.h"
#include "prio.h"
#include "ring_presence.h"

struct impair;
struct record;
struct rte_ring;

struct dataplane_port {
	uint16_t id;        /* DPDK port id */
	uint16_t rx_worker; /* of receive queue 0; the others' follow */
	uint16_t rx_queues;
	uint16_t tx_queues;
	struct wire_port addr;
	struct rte_mempool *pool;
	uint32_t max_frame;
	ns_t (*clock)(void);
	struct impair *_Atomic impair;     /* control makes it, the worker that polls looks at it */
	struct pipeline_impair local;      /* the same for frames that come from no wire */
	struct bottleneck_conf bottleneck; /* its own, of the configuration; rate 0: none */
	struct record *record;             /* NULL, or of all that comes, before it is impaired */
	uint32_t index;                    /* in the configuration */
	bool started;
	bool paired; /* in-memory, made here: `id` is valid already */
	bool has_prio;
	_Atomic uint32_t mbps; /* of its link; 0: not known */
	struct prio_port prio; /* with has_prio: what its workers and the control lcore share */
};

struct dataplane {
	const struct conf *conf;
	char *const *eal; /* the arguments that EAL was started with */
	uint32_t eal_n;
	const struct crc_ops *crc;
	ns_t (*clock)(void);
	struct dataplane_port ports[CONF_MAX_PORTS];
	struct qp_table *qps;
	struct mem_table *mem;
	struct qp_ah_table *ahs;
	struct qp_srq_table *srqs;
	struct qp_mcast_table *mcasts;
	struct mbox mbox[CONF_MAX_WORKERS];
	bool mbox_made[CONF_MAX_WORKERS];
	struct rte_ring *handoff[CONF_MAX_WORKERS];
	struct worker *workers[CONF_MAX_WORKERS];
	struct env_wiring env;
	struct mem_area presence; /* env.presence, or nothing */
	struct control *control;
	_Atomic bool stop; /* asked to end: by a signal, --duration or the method "shutdown" */
	_Atomic bool workers_stop; /* workers leave their loops; set after control is gone */
};

struct eal_args;

/** How the program around it keeps time and waits. */
struct dataplane_hooks {
	ns_t (*clock)(void);
	void (*pump)(void *ctx);
	void *pump_ctx;
	void (*rest)(void);         /* or NULL: env.h */
	struct record *record;      /* NULL: nothing is recorded */
	const struct eal_args *eal; /* what EAL was started with; NULL: with the configuration's */
	bool no_socket;
};

/**
 * Make ports, tables and workers. The control is made later, by dataplane_start(), because it
 * needs workers that answer.
 * @param dp  all zeros, but for `stop`: a signal may have set it already, and it stays set.
 * @return 0 or -errno with the reason logged.
 */
int dataplane_create(
	struct dataplane *dp, const struct conf *conf, const struct dataplane_hooks *hooks);
/** Open the control socket and bring configured objects up. The workers must be running. */
int dataplane_start(struct dataplane *dp);
/** Control goes first (QPs to ERR), while the workers still answer. */
void dataplane_stop_control(struct dataplane *dp);
/** The workers must have left their loops. */
void dataplane_destroy(struct dataplane *dp);

/* presence.c */
/** Workers can be woken by clients from now on. A failure is logged, and no more than a pity. */
void presence_open(struct dataplane *dp);
/** After the control and the workers; also where it was never opened. */
void presence_close(struct dataplane *dp);

/* ports.c */
int ports_open(struct dataplane *dp);
/** Before its pool: the port's "priorities". @return 0 or -errno. */
int priorities_open(struct dataplane *dp, uint32_t i);
/** env_wiring.port_groups. @param ctx the dataplane. */
int ports_groups(void *ctx, uint32_t port, uint8_t (*macs)[6], uint32_t n);
/** The device of port i is one end of an in-memory pair: make both. @return 0, -ENODEV: it is not.
 */
int pair_open(struct dataplane *dp, uint32_t i);
void ports_close(struct dataplane *dp);

/* impairs.c */
/** How control reaches a port's impairment; the context is the struct dataplane_port. */
extern const struct impair_ops impairs_ops;
/** Attach what the configuration asks for; the port is configured. @return 0 or -errno, logged. */
int impairs_open(struct dataplane_port *p, const struct conf_port *cp);
/** Before the port is closed, when nobody polls it. */
void impairs_close(struct dataplane_port *p);
/**
 * The worker that polls: when one of its ports has a packet to hand on that was held back (0: now;
 * UINT64_MAX: none has). Cost: a load a port.
 */
ns_t impairs_next(const struct dataplane *dp, uint32_t worker);

/** CRC backend that the build chose. */
const struct crc_ops *dataplane_crc(void);

#endif
