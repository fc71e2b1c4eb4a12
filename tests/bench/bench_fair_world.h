/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FAIR_WORLD_H
#define BENCH_FAIR_WORLD_H
/**
 * @file bench_fair_world.h  What bench_fair_rig.c makes and bench_fair_clients.c uses.
 *
 * Owner:   those two; one thread.
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
	QPS = OTHER + OTHER_QPS,
	REQUESTER_QPN = 0x400,
	RESPONDER_QPN = 0x800,
};

#define REGION_VA  0x10000000u
#define REGION_KEY 0x1001u
#define REGION_LEN (64u << 20)

struct end {
	struct qp *qp;
	struct ring sq; /* the client's view */
	uint32_t under_way;
};

struct app {
	struct qp_client client;
	struct ring_bells bells; /* the client's view */
	struct qp_cq cq;
};

struct fair_world {
	struct worker_conf conf;
	struct worker *w;
	struct mbox mbox;
	uint16_t port[2];
	struct app app[2];
	struct end requester[QPS];
	struct qp *responder[QPS];
	uint32_t random;
	ns_t now;           /* the worker's time: it goes on in turns alone */
	uint64_t turn_from; /* cycles; 0: between two turns */
	double ns_per_cycle;
	ns_t longest;
	bool working;  /* a sample is under way */
	long switches; /* of this thread, against its will */
	ns_t posted[VICTIM_DEPTH];
	uint32_t latencies_n;
	double latencies[MAX_LATENCIES];
};
extern struct fair_world fair;

/** One turn of the worker; its clock goes on meanwhile. */
void fair_turn(void);
/** Has this thread lost its CPU since it was asked last? */
bool fair_lost_cpu(void);
/** Another number each time. */
uint32_t fair_random(void);
/** A message of the control lcore. */
void fair_modify(struct qp *qp, struct qp_attr *a, enum qp_state state, uint32_t mask);
/** Bring both ends up anew, with an empty send queue. */
void fair_begin_pair(uint32_t i);
/** Both ends are in RESET from then on. */
void fair_end_pair(uint32_t i);
/** The victim takes its completions and keeps as much under way as it may. */
void fair_victim_acts(void);

#endif
