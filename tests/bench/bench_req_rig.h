/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_REQ_RIG_H
#define BENCH_REQ_RIG_H
/**
 * @file bench_req_rig.h  A worker whose QPs send what a client posts, and the peer that answers.
 *
 * Owner:   bench_requests.c; one thread.
 * Memory:  huge pages by advice, as bench_rig.h.
 * Depends: bench_rig.h (port, pool, memory region), lib/pipeline, DPDK.
 */
#include "bench_rig.h"
#include "qp_ah.h"

enum {
	SENDERS = 32,                    /* QPs of most rows */
	SHALLOW = MAX_PACKETS / SENDERS, /* send queue of each but the first */
	DEPTH = MAX_PACKETS,             /* of that */
	TIMERS = 1000000,
	TIMEOUT = 20, /* of the timers: 4.3 s */
};

struct request_case {
	const char *name;
	uint8_t opcode; /* WR_* */
	uint8_t part;   /* enum request_part */
	uint32_t len;
	uint16_t pmtu;
	uint32_t qps;
	uint32_t signal_every; /* so many requests of a QP have one signalled */
	uint32_t ack_every;    /* frames that one ACK of a QP is for, at most; 1: each */
	bool random;           /* order of the QPs */
	uint8_t service;       /* QPT_* */
	uint8_t sges;          /* of a request, 1 or 2: a short header, and the rest */
	uint8_t net;           /* enum bench_net */
};

/** Packets of a request, or of a READ's answer. */
static inline uint32_t
case_parts(const struct request_case *c)
{
	return (c->len + c->pmtu - 1) / c->pmtu;
}

/** Of n packets, how many the worker sends; what it sends for a READ is one. */
static inline uint32_t
case_requests(const struct request_case *c, uint32_t n)
{
	return c->opcode == WR_RDMA_READ ? n / case_parts(c) : n;
}

/** Bytes of a packet. */
static inline uint32_t
case_bytes(const struct request_case *c)
{
	return c->len < c->pmtu ? c->len : c->pmtu;
}

/** What a row's time is. */
enum request_part {
	PART_BOTH,      /* sending and what comes back */
	PART_RESPONSES, /* the latter */
	PART_TIMERS,    /* PART_BOTH on a worker with TIMERS armed, next to one without */
	PART_RATED,     /* PART_BOTH with cc.algo=dcqcn and no CNP, next to none (CC-28) */
	PART_IDLE,      /* a turn that finds nothing, next to that of a worker with one QP */
	PART_LOCAL,     /* both ends of a local destination, next to the same over two ports */
};

struct req_rig {
	struct bench_rig *r;
	struct worker *worker;
	struct qp **qp;
	struct ring *sq; /* the client's view */
	uint32_t *posted;
	uint32_t qps_n;
	uint32_t first_qpn;
	bool rated; /* QPs have cc.algo=dcqcn */
	struct qp_client client;
	struct qp_ah_table *ahs;
	uint32_t ah;             /* of the peer */
	struct ring_bells bells; /* the client's view */
	struct qp_cq cq;
	struct mbox mbox;
	struct worker_conf conf;
	struct bare_requester bare;
	struct bare_work work[MAX_PACKETS]; /* for it */
	uint64_t cycles;                    /* of its spans so far: the clock stands in between */
};

/** @param id of this rig: 0 .. 3. @param qps how many. @param rated with cc.algo=dcqcn. */
void req_set_up(struct req_rig *q, struct bench_rig *r, unsigned int id, uint32_t qps, bool rated);
void req_tear_down(struct req_rig *q);
/** Timers of TIMERS QPs that are under way; they are looked at in turn, once in a timeout. */
void req_arm_timers(struct req_rig *q);
/** Bring the case's QPs up from RESET; @return packets of a sample, a multiple of case_parts(). */
uint32_t req_begin(struct req_rig *q, const struct request_case *c);
/** Post requests of n packets. */
void req_post(struct req_rig *q, const struct request_case *c, uint32_t n);
/** The bare loop is going to make such packets. */
void req_bare_begin(struct req_rig *q, const struct request_case *c);
/** Make n descriptors of them for it. */
void req_bare_post(struct req_rig *q, const struct request_case *c, uint32_t n);
/** Take what was sent and put what the peer would answer on the wire. @return frames. */
uint32_t req_answer(struct req_rig *q, const struct request_case *c, uint32_t *sent);
/**
 * One request, whose data is in no other place, and what comes back.
 * @return bytes that were copied for each byte delivered.
 */
double req_copied(struct req_rig *q, const struct request_case *c);
/** Empty the completion queue. @return completions. */
uint32_t req_completions(struct req_rig *q);
/** One turn. @param since where the span began. */
void req_turn(struct req_rig *q, uint64_t since);

#endif
