/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_WORKER_H
#define FUZZ_WORKER_H
/**
 * @file fuzz_worker.h  Two workers under fuzz, with queue pairs of every service of one client.
 *
 * fuzz_worker.c         the program that an input is: steps, built-in programs
 * fuzz_worker_bed.c     EAL, port, workers, and what is looked at after each turn
 * fuzz_worker_make.c    QPs, regions, windows, handles, groups: made anew for each input
 * fuzz_worker_packet.c  frames for the QPs, valid ones and others
 *
 * Owner:   tests only; one thread, a clock that only the program moves.
 * Memory:  static, and what the bed makes.
 * Depends: fuzz.h, pipeline.
 *
 * There is no model of what each packet leads to: fuzz_responder has one, of RC's responder. Here
 * is looked for what may never be: memory changed that no key allows to change, a work request
 * completed twice, a frame or a buffer lost, a turn without an end.
 */
#include <string.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "fuzz.h"
#include "mem_window.h"
#include "pipeline.h"
#include "qp.h"
#include "qp_ah.h"
#include "qp_client.h"
#include "qp_control.h"
#include "qp_mcast.h"
#include "ring_bell.h"
#include "ring_send.h"
#include "ring_srq.h"

enum {
	WORKERS = 2,
	QPS = 14,
	ENTRIES = 16,
	CQES = 256,
	BELLS = 64,
	SGES = 4,
	INLINE = 64,
	CQS = 2,
	SRQS = 3, /* the first one is not of type XRC */
	REGIONS = 5,
	WINDOWS = 3,
	HANDLES = 8,
	GROUPS = 2,
	STEP = 8,
	CLIENT = 5,
	PD = 7,
	OTHER_PD = 8,
	PMTU = 256,
	QKEY = 0x11111111,
	XRCD = 3,
	SERIALS = 8192, /* work requests of an input */
	ARENA = 64 * 1024,
};

struct plan {
	uint8_t type;
	int8_t peer; /* QP of the same dataplane; -1: on the wire */
	uint8_t worker;
	int8_t srq; /* -1: a queue of its own */
	bool ipv6;
};

/** A client's queue as the client has it: it may write to all of it. */
struct queue {
	struct ring ring;
	uint8_t *mem;
	size_t len;
};

struct qp_bed {
	const struct plan *plan;
	struct qp *qp;
	struct queue sq;
	struct queue rq;
};

struct worker_bed {
	struct worker *w;
	struct worker_conf conf;
	struct mbox mbox;
	struct qp_client client;
	struct ring_bells bells; /* the client's */
	uint8_t *bells_mem;
	struct rte_ring *handoff;
};

struct bed {
	struct worker_bed w[WORKERS];
	struct qp_bed q[QPS];
	struct {
		struct qp_cq cq;
		struct ring_cq polled;
	} cq[CQS];
	struct {
		struct qp_srq q;
		struct queue post;
		bool on;
	} srq[SRQS];
	struct qp_srq_table srqs;
	struct qp_table *qps;
	struct mem_table *mem;
	struct qp_ah_table *ahs;
	struct qp_mcast_table *mcasts;
	struct mem_region *mr[REGIONS]; /* NULL: deregistered */
	struct mem_window *mw[WINDOWS];
	uint32_t ah[HANDLES];
	uint16_t port;
	struct rte_ring *to;
	struct rte_ring *from;
	struct rte_mempool *pool;
	ns_t now;
	uint64_t cookie;
	uint32_t serial; /* the next work request's */
	bool scribbled;  /* the client wrote to its areas: it has itself to blame */
	bool stuck;      /* the port takes nothing */
	uint8_t fate[SERIALS];
	uint8_t arena[ARENA] __attribute__((aligned(64)));
};
extern struct bed fw;
extern const struct plan fuzz_plans[QPS];

/* What a work request came to. */
enum { FATE_NONE, FATE_POSTED, FATE_DONE };

/* The regions: where they are in the arena, and which of them nobody may write to. */
struct region_plan {
	uint64_t va;
	uint32_t len;
	uint32_t key;
	uint32_t at;
	uint32_t pd;
	access_t access;
	bool inv;
};
extern const struct region_plan fuzz_regions[REGIONS];

void bed_start(void);
void bed_open(void);
void bed_close(void);
/** A turn of each worker; what they sent and said is taken. */
void bed_turn(void);
/** A message to the QP's worker, or any, and its answer. */
int bed_tell(uint32_t worker, struct mbox_msg *m);
/** Every worker has begun another turn. */
void bed_round_trip(void);
/** Where it is not legal nothing happens. */
void bed_state(uint32_t i, uint8_t to);
void bed_attach(uint32_t i);
void bed_detach(uint32_t i);
void bed_region(uint32_t i, bool on);
void bed_window(uint32_t i, bool on);
/** Kinds of destinations: HANDLES of them, and what becomes of one. */
void bed_handle(uint32_t i, uint8_t what);
void bed_group(uint32_t group, uint32_t i, bool on);
void bed_srq(uint32_t i, bool on);
struct wire_path bed_path(uint32_t i, bool of_peer);
/** The number of QP i, attached or not. */
uint32_t bed_qpn(uint32_t i);
/** A group's address; bit 0 of `group`: IPv6. */
void bed_group_path(uint32_t group, struct wire_path *path);

/** The packet of a step, on its way to the port. */
void packet_step(const uint8_t s[STEP]);

#endif
