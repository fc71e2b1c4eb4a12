/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FAIR_RIG_H
#define BENCH_FAIR_RIG_H
/**
 * @file bench_fair_rig.h  A victim with one QP, and others with many, clients or peers of a worker.
 *
 * Clients: both ends of each QP are on the worker, on two ports that face each other. The clients
 * post and poll between two turns; the clock stands meanwhile. Peers: they are on workers of their
 * own that take no time, each with a port to one link. The link gives those that send as many bytes
 * each, as a switch does, up to the measured port's receive queue.
 *
 * Owner:   bench_fair.c; one thread.
 * Memory:  huge pages by advice.
 * Depends: lib/pipeline, DPDK.
 */
#include "pipeline.h"
#include "qp.h"
#include "qp_client.h"
#include "qp_control.h"

enum {
	OTHER_QPS = 256,
	CROWD_APPS = 7,    /* others of a row with several */
	CROWD_QPS = 32,    /* of each of them */
	DEEP_QPS = 16,     /* those with a deep send queue */
	DEEP = 4096,       /* its entries */
	SHALLOW = 64,      /* entries of all other queues */
	SGES = 16,         /* of a request, at most */
	VICTIM_DEPTH = 64, /* WRITEs of the victim that are under way */
	VICTIM_LEN = 64,
	PING_LEN = 8,
};

/** Clients of one user each, peers, or a victim's user and one with all other clients. */
enum fair_world_kind { WORLD_CLIENTS, WORLD_PEERS, WORLD_USERS, WORLDS };

/** What each other one does. */
enum fair_act {
	ACT_NOTHING,
	ACT_POST,     /* keeps its send queues full */
	ACT_FLUSH,    /* the same, with QPs in ERR */
	ACT_BELLS,    /* rings doorbells of queues with nothing in them */
	ACT_GARBAGE,  /* rings doorbells of nothing */
	ACT_MALFORMED /* posts requests that fail their QPs, which it brings up again */
};

struct fair_case {
	const char *name;
	uint8_t act;    /* enum fair_act */
	uint8_t opcode; /* WR_* */
	uint8_t sges;   /* its bytes are in so many pieces */
	uint16_t qps;   /* of each other one */
	uint16_t depth; /* requests of each QP under way */
	uint32_t len;   /* bytes of a request */
	uint8_t others; /* 0: one; or CROWD_APPS */
	uint8_t again;  /* each frame of theirs comes so many times more */
	uint8_t world;  /* enum fair_world_kind */
	bool ping;      /* the victim has one WRITE of PING_LEN bytes under way */
	uint16_t pause; /* ... and so many turns between two of them */
};

/** What the victim had. */
struct fair_sample {
	double rate; /* requests a second of the worker's time */
	double p99;  /* ns from posting to completion */
	double turn; /* ns of the worker's longest turn */
};

/** Once; then set a world up, and take it down before the next one. */
void fair_start(void);
void fair_set_up(enum fair_world_kind world);
void fair_tear_down(void);
/** Let both work for a while, then measure the victim. @param ns of the worker's time. */
struct fair_sample fair_run(const struct fair_case *c, ns_t ns);
void die(const char *what);

#endif
