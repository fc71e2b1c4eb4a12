/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_WORKER_H
#define FUZZ_WORKER_H
/**
 * @file fuzz_worker.h  Two workers under fuzz, with queue pairs of every service.
 *
 * fuzz_worker.c         the program that an input is: steps of the client and of time
 * fuzz_worker_control.c what the control lcore does in it
 * fuzz_worker_seeds.c   built-in programs, and fuzz_worker_more.c
 * fuzz_worker_bed.c     EAL, workers, and what is looked at after each turn
 * fuzz_worker_port.c    two ports; the second one has priorities, and may be impaired
 * fuzz_worker_make.c    QPs, regions, windows, handles, groups: made anew for each input
 * fuzz_worker_client.c  a client that ends, rings of compact QPs, knobs
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
	PORTS = 2,
	QPS = 23,
	ENTRIES = 16,
	CQES = 256,
	CQES_FEW = 16, /* of the last one */
	BELLS = 64,
	SGES = 4,
	INLINE = 64,
	CQS = 3,
	SRQS = 3, /* the first one is not of type XRC */
	REGIONS = 5,
	WINDOWS = 3,
	HANDLES = 12,
	GROUPS = 4, /* bit 0: IPv6, bit 1: the port */
	STEP = 8,
	CLIENT = 5,
	PD = 7,
	OTHER_PD = 8,
	SHORT_MTU = 256, /* messages of several packets */
	LONG_MTU = 1024, /* frames that are delivered in parts */
	QKEY = 0x11111111,
	XRCD = 3,
	SERIALS = 8192, /* work requests of an input */
	ARENA = 64 * 1024,
	MBUFS = 2047,
};

struct plan {
	uint8_t type;
	int8_t peer; /* QP of the same dataplane; -1: on the wire */
	uint8_t worker;
	int8_t srq; /* -1: a queue of its own */
	bool ipv6;
	uint8_t port;
	uint8_t cq; /* number of its CQ, from 1 on; 0: send_cq 0, recv_cq its worker's */
	uint16_t mtu;
	uint16_t how; /* PLAN_* */
};

enum {
	PLAN_OWN = 1,  /* the operator's, not the client's: it may move */
	PLAN_FEED = 2, /* the worker keeps its receive queue filled */
	PLAN_RATE = 4, /* DCQCN */
	PLAN_CREDITS = 8,
	PLAN_DROPS = 16,      /* what comes early, or has another length, is dropped */
	PLAN_LIMIT = 32,      /* few receives raise an event */
	PLAN_MIGRATES = 64,   /* to the other port */
	PLAN_SEND_FEED = 128, /* the worker posts by itself */
	PLAN_COMPACT = 256,   /* some of its parts come when they are needed */
};

/** A client's queue as the client has it: it may write to all of it. */
struct queue {
	struct ring ring;
	uint8_t *mem;
	size_t len;
};

/** Instead of the plan's, from the next attach on. */
struct knobs {
	bool on;
	uint16_t resp, req; /* RESP_KNOB_*, REQ_KNOB_* */
	uint32_t flags;     /* QPF_* */
	uint32_t window;
	uint8_t ackreq_interval;
	uint8_t timeout;
	uint8_t cc; /* with PLAN_RATE: a preset and more, see knobs_rate() */
};

struct qp_bed {
	const struct plan *plan;
	struct qp *qp;
	struct queue sq;
	struct queue rq;
	uint8_t worker;
	struct knobs knobs;
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
		struct ring_cq now; /* resized */
		struct mem_area area;
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
	uint16_t port[PORTS];
	struct rte_ring *to[PORTS];
	struct rte_ring *from[PORTS];
	struct rte_mempool *pool;
	ns_t now;
	uint64_t cookie;
	uint32_t serial;  /* the next work request's */
	bool scribbled;   /* the client wrote to its areas: it has itself to blame */
	bool stuck;       /* the ports take nothing */
	bool away;        /* the client polls no completions */
	bool impaired;    /* the wire of the second port */
	uint8_t floods;   /* so far */
	uint32_t srq_ids; /* so far */
	struct {
		struct qp_bed *q; /* NULL: none */
		uint8_t to;
		bool released;
	} moving;
	uint8_t fate[SERIALS];
	uint8_t arena[ARENA] __attribute__((aligned(64)));
};
extern struct bed fw;
extern const struct plan fuzz_plans[QPS];
extern struct prio_port fuzz_prio;

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
/** Attributes of a control step, with a new state or without. */
void bed_modify(uint32_t i, const uint8_t *s);
void bed_attach(uint32_t i);
void bed_detach(uint32_t i);
/** Like the control lcore's: its QP goes to the other worker, in steps. */
void bed_move(uint32_t i);
/** The move under way ends now, one way or the other. */
void bed_moved(void);
/** The host says that it has posted to a QP of the operator. */
void bed_posted(uint32_t i, bool receives);
void bed_region(uint32_t i, bool on);
void bed_window(uint32_t i, bool on);
/** Kinds of destinations: HANDLES of them, and what becomes of one. */
void bed_handle(uint32_t i, uint8_t what);
void bed_group(uint32_t group, uint32_t i, bool on);
void bed_srq(uint32_t i, bool on);
struct wire_path bed_path(uint32_t i, bool of_peer);
/** The same of the path that it may migrate to. */
struct wire_path bed_alternate(bool of_peer);
void bed_resize(uint32_t i);
/** As the control lcore would move the QP to this state. */
struct qp_attr bed_attributes(uint32_t i, uint8_t to);
/** Its work requests, of a compact QP: something is going to be posted to it. */
void bed_work(uint32_t i);
/** The client ends while its QPs do what they do; then there is another one. */
void bed_death(const uint8_t *s);
/** The client's doorbells; its SRQs, which are empty. */
void bed_bells(uint32_t worker);
void bed_srqs(void);
/** Other knobs; the QP is made anew. */
void bed_knobs(uint32_t i, const uint8_t *s);
/** ... as they are wanted now. */
void bed_knobs_set(struct qp *qp, uint32_t i);
/** The number of QP i, attached or not. */
uint32_t bed_qpn(uint32_t i);
/** A group's address; bit 0 of `group`: IPv6. */
void bed_group_path(uint32_t group, struct wire_path *path);
/** The last byte of an address at this port: the dataplane's, or the peer's. */
uint8_t bed_host(uint32_t port, bool peer);
uint32_t bed_cqes(uint32_t i);

/** Once. */
void ports_start(void);
/** As worker i sees them. */
void ports_conf(struct worker_conf *conf, uint32_t i);
/** Take what they have sent, unless they are stuck. */
void ports_drain(void);
/** The neighbour asks for silence at these priorities, or takes that back. */
void ports_pause(uint8_t prios, uint8_t quanta);
/** Frames that the second port's wire holds are lost, and nobody asks for silence. */
void ports_forget(void);
/** Others have all buffers but so many; 0: none. */
void ports_hoard(uint32_t left);
/** A frame comes to it. */
void port_put(uint32_t port, struct rte_mbuf *m);

/** The packets of a step, on their way to a port. */
void packet_step(const uint8_t s[STEP]);
/** Many packets of two QPs, for so long that their peers take turns. */
void packet_flood(const uint8_t s[STEP]);

/* Kinds of control steps. */
enum {
	C_STATE,
	C_ATTACH,
	C_DETACH,
	C_REGION,
	C_WINDOW,
	C_HANDLE,
	C_GROUP,
	C_SRQ,
	C_QUERY,
	C_CLIENT,
	C_MOVE,
	C_MOVED,
	C_FAIL,
	C_LIMIT,
	C_IMPAIR,
	C_RESIZE,
	C_MODIFY,
	C_WORK,
	C_DEATH,
	C_KNOBS,
	C_N
};
void control_step(const uint8_t s[STEP]);

/* Kinds of steps: fuzz_worker.c. */
enum {
	K_SEND = 0,
	K_RECV = 3,
	K_PACKET = 4,
	K_SCRIBBLE = 6,
	K_CONTROL = 7,
	K_TIME = 8,
	K_PORT = 9,
	K_FLOOD = 10,
	KINDS
};
enum { LATER = 0x80, POST_SRQ = 32 };

/* A packet step's flags. */
enum {
	HOW_ACKREQ = 1,
	HOW_SE = 2,
	HOW_QP1 = 4,
	HOW_CE = 8,
	HOW_GROUP = 0x10,
	HOW_FLIP = 0x20,
	HOW_V6 = 0x40,
	HOW_RUN = 0x80, /* several, one PSN after the other */
};

#endif
