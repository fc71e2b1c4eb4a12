/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FAIR_WORLD_H
#define BENCH_FAIR_WORLD_H
/**
 * @file bench_fair_world.h  What bench_fair_rig.c and bench_fair_link.c make, and
 * bench_fair_clients.c uses.
 *
 * Owner:   those three; one thread.
 * Memory:  huge pages by advice.
 * Depends: bench_fair_rig.h.
 */
#include "bench_fair_rig.h"

enum {
	CQ_DEPTH = 65536,
	BELLS = 1024,
	MAX_LATENCIES = 1 << 20,
	VICTIM = 0, /* clients, and the first QP of each */
	OTHER = 1,
	CROWD = 2,
	APPS = CROWD + CROWD_APPS,
	CROWD_QP = OTHER + OTHER_QPS, /* the crowd's first QP */
	QPS = CROWD_QP + CROWD_APPS * CROWD_QPS,
	REQUESTER_QPN = 0x400,
	RESPONDER_QPN = 0x800,
	HOSTS = 3, /* of a world with peers: the measured one, the victim's, that of the others */
	MEASURED = 0,
};

#define REGION_VA  0x10000000u
#define REGION_KEY 0x1001u
#define REGION_LEN (64u << 20)

/** A worker with its tables. */
struct host {
	struct worker_conf conf;
	struct worker *w;
	struct mbox mbox;
};

/** One end of a connection, and which of the link's addresses it has. */
struct end {
	struct host *host;
	struct qp *qp;
	uint8_t address;
	struct ring sq; /* the client's view */
	uint32_t under_way;
};

struct app {
	struct qp_client client;
	struct ring_bells bells; /* the client's view */
	struct qp_cq cq;
};

struct fair_world {
	struct host host[HOSTS];
	uint32_t hosts_n; /* 1: both ends of each QP are on the measured worker */
	struct app app[APPS];
	struct end requester[QPS];
	struct end responder[QPS];
	bool one_user;  /* has all clients of the crowd */
	uint32_t again; /* frames of the others reach the measured host so often */
	uint32_t random;
	ns_t now;           /* the measured worker's time: it goes on in its turns alone */
	ns_t lost;          /* of it the time for which the worker had no CPU */
	uint64_t turn_from; /* cycles; 0: between two turns */
	double ns_per_cycle;
	ns_t longest;
	bool working;                   /* a sample is under way */
	const struct fair_case *sample; /* ... of this row */
	uint32_t resting;               /* turns until the victim posts again */
	long switches;                  /* of this thread, against its will */
	ns_t posted[VICTIM_DEPTH];
	uint32_t latencies_n;
	double latencies[MAX_LATENCIES];
};
extern struct fair_world fair;

/** One turn of the measured worker; its clock goes on meanwhile. Peers have several. */
void fair_turn(void);
/** What the measured worker has worked so far. */
static inline ns_t
fair_worked(void)
{
	return fair.now - fair.lost;
}
/** The first QP of an app, and how many there are. */
uint32_t fair_first_qp(uint32_t app, uint32_t *n);
/** Where an app is, and by which of the host's ports its requests leave. */
struct host *fair_host_of(uint32_t app, uint32_t *port);
/** The ports of a world with peers: one of the measured host, one of each peer. */
void fair_link_make(struct rte_mempool *pool);
/** Frames of the measured host: to their peers. */
void fair_link_deliver(void);
/** Frames of the peers: as many bytes of each, up to what the measured port's queue takes. */
void fair_link_collect(void);
/** @return the path from an address of the link to another. */
struct wire_path fair_path(uint8_t from, uint8_t to);
/** Has this thread lost its CPU since it was asked last? */
bool fair_lost_cpu(void);
/** Another number each time. */
uint32_t fair_random(void);
/** A message of the control lcore. */
void fair_modify(struct end *e, struct qp_attr *a, enum qp_state state, uint32_t mask);
/** Bring both ends up anew, with an empty send queue. */
void fair_begin_pair(uint32_t i);
/** Both ends are in RESET from then on. */
void fair_end_pair(uint32_t i);
/** The victim takes its completions and keeps as much under way as it may. */
void fair_victim_acts(void);

#endif
