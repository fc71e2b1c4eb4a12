/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_RIG_H
#define BENCH_RIG_H
/**
 * @file bench_rig.h  Workers, QPs and prepared packets for bench_pipeline.c.
 *
 * Owner:   bench_pipeline.c; one thread.
 * Memory:  huge pages by advice: no privilege is needed, and the TLB is not what is measured.
 * Depends: lib/pipeline, DPDK.
 */
#include "bench_bare.h"
#include "bench_net.h"
#include "pipeline.h"
#include "qp.h"
#include "qp_client.h"
#include "qp_control.h"

enum {
	RING_QPS = 32, /* QPs with a deep receive queue */
	MAX_QPS = 1048576,
	MAX_PACKETS = 256, /* of one sample */
	MAX_LEN = 4096,
	PARTS = 16,
};

#define REGION_VA  0x10000000u
#define REGION_KEY 0x1001u
#define REGION_LEN (512u * 1024)

enum bench_kind {
	KIND_GOOD,
	KIND_DUPLICATE,
	KIND_BAD_ICRC,
	KIND_AHEAD, /* out of sequence, the latch is set */
	KIND_NO_QP,
	KIND_NOT_ROCE,
	KIND_PARTS, /* of messages of PARTS packets */
};

struct bench_case {
	const char *name;
	uint8_t opcode;
	uint8_t kind;
	uint16_t len;
	uint16_t pmtu;
	uint32_t qps;
	bool random; /* order of the QPs; else packets go round */
	bool trace;  /* flight recorder on */
	bool shared; /* all QPs have one receive queue */
	uint8_t net; /* enum bench_net */
};

struct bench_rig {
	uint16_t port;
	struct rte_ring *to;
	struct rte_ring *from;
	struct rte_mempool *pool;
	struct worker *timed;  /* without laps */
	struct worker *lapped; /* with them */
	struct bare bare;
	struct worker_conf conf;
};

/** Everything that does not depend on a case. @param qps how many are needed. */
void rig_set_up(struct bench_rig *r, uint32_t qps);
void rig_tear_down(struct bench_rig *r);
/**
 * From here on this thread's packets are for QPs from `first` on, and for this half of the region
 * (0 or 1) instead of all of it.
 */
void rig_choose(uint32_t first, uint32_t half);
/** Bring the case's QPs up from RESET; @return packets of a sample: what fits the L2 cache. */
uint32_t rig_begin(struct bench_rig *r, const struct bench_case *c);
/** Put n requests on the wire. @param advance PSNs move on: a worker is going to accept them. */
void rig_prepare(struct bench_rig *r, const struct bench_case *c, uint32_t n, bool advance);
/**
 * Let the worker take one packet whose payload, or what it asks for, is in no other place.
 * @return bytes that were copied for each byte delivered.
 */
double rig_copied(struct bench_rig *r, const struct bench_case *c);
/** Empty the far end and the completion queue. @return frames found. */
uint32_t rig_clear(struct bench_rig *r);
/** Forget receive WQEs that nobody took. */
void rig_unpost(struct bench_rig *r, const struct bench_case *c);
void die(const char *what);

#endif
