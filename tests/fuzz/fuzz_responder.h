/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_RESPONDER_H
#define FUZZ_RESPONDER_H
/**
 * @file fuzz_responder.h  The whole responder under fuzz: one worker, eight QPs, eight regions.
 *
 * fuzz_responder.c         the program that an input is: steps, actions
 * fuzz_responder_bed.c     EAL, port, worker, QPs, regions: made anew for each input
 * fuzz_responder_packet.c  the next valid packet of a QP's stream
 * fuzz_responder_mutate.c  what is done to it
 * fuzz_responder_oracle.c  what each packet must lead to, judged again
 * fuzz_responder_model.c   QPs and memory as they must be after a turn
 * fuzz_responder_queue.c   receive WQEs: of a QP's own queue, of a shared one, of a feed
 * fuzz_responder_paths.c   primary and alternate paths
 * fuzz_responder_look.c    completions, events, frames and counters, held against the model
 * fuzz_responder_seeds.c   built-in programs
 *
 * Owner:   tests only; one thread, a clock that only the program moves.
 * Memory:  static, and what the bed makes.
 * Depends: fuzz.h, pipeline.
 *
 * The model says for every packet whether it is accepted; what the worker did is found in ePSN,
 * MSN, memory, completions and frames, and any difference aborts. It starts each turn from the
 * QP's state as it is, so that one mistake is found in the turn that makes it.
 */
#include <string.h>

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_ring.h>

#include "fuzz.h"
#include "pipeline.h"
#include "qp.h"
#include "qp_client.h"
#include "qp_control.h"
#include "qp_parts.h"
#include "qp_rule.h"
#include "qp_snapshot.h"

enum {
	QPS = 8,
	CQS = 2,
	MRS = 8,
	MAX_SGE = 4, /* of a receive WQE */
	RQ_WRS = 16, /* of a receive queue */
	FIFO = 64,   /* power of two: WQEs not completed yet */
	LASTS = 4,
	SRQ_WRS = 8192, /* of the shared queue, in the course of an input */
	RECORDS = 512,  /* READs and ATOMICs of a QP remembered: more than frames can wait */
	BURST_MAX = 32, /* packets of a turn */
	PMTU_MAX = 4096,
	STEP = 8, /* bytes of a program's step */
	FRAME_ROOM = 2048,
	ARENA = 40 * 1024,
	QPN_SLOTS = 64,
	FEED_BUFFERS = 3,
};

struct region {
	uint64_t va;
	uint32_t len;
	uint32_t key;
	uint32_t pd;
	uint32_t at; /* in the arena */
	uint8_t access;
	bool invalidatable;
	bool present; /* in the table */
	bool valid;   /* not invalidated */
	struct mem_region *r;
};

struct wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	struct ring_sge sge[MAX_SGE];
};

/** A READ or ATOMIC that was accepted. */
struct record {
	bool read;
	bool done;     /* its last response was seen */
	bool repeated; /* by a duplicate, perhaps in part */
	uint32_t rkey;
	psn_t first;
	psn_t last;
	uint64_t va;
	uint32_t len;
	uint64_t original;
	/* A READ of one packet may be answered with the burst that it came in: `taken` of this turn
	 * is what memory had when its turn among the burst's packets came.
	 */
	uint64_t turn;
	uint32_t taken;
};

/** What is constant about a QP of the bed. */
struct plan {
	uint32_t qpn;
	uint32_t peer_qpn;
	uint32_t pd;
	uint32_t psn;
	uint16_t pmtu;
	uint16_t pkey;
	uint16_t knobs;
	uint8_t rd;
	uint8_t good_mr;
	uint8_t rq_mr;
	uint8_t start; /* enum qp_state */
	uint8_t cq;
	bool ernic;
	bool ipv6;
	bool vlan;
};

enum { WAY_NONE = 0xff };

struct qp_bed {
	const struct plan *plan;
	struct qp *qp;
	struct ring rq; /* producer */
	struct wqe fifo[FIFO];
	uint32_t head; /* oldest WQE that is not completed */
	uint32_t tail;
	uint64_t serial;
	bool shared; /* takes its WQEs from fb.srq: fifo, head and tail are not used */
	bool fed;    /* the worker makes its WQEs: `head` counts them */
	struct wqe feed[FEED_BUFFERS];
	bool holds; /* has taken `held` */
	struct wqe held;
	uint32_t lasts; /* events LAST_WQE_REACHED in this life */
	uint8_t access;
	/* next packet, as the generator believes */
	psn_t next;
	uint8_t open;
	uint32_t left;                  /* bytes of an open message */
	struct wire_fields last[LASTS]; /* requests, for duplicates */
	uint32_t last_n;
	/* the life since RESET */
	bool vague; /* what was accepted last is not known: its queue ran over */
	bool error_cqe;
	bool flushed;
	bool nak_sent; /* the one that ends the life */
	bool msn_seen;
	uint32_t msn;
	uint32_t ends;  /* events that tell of its end */
	uint64_t stale; /* frames before this one are of an earlier life */
	struct record record[RECORDS];
	uint32_t records; /* since the life began */
	/* events PATH_MIG and PATH_MIG_ERR since it was attached */
	bool learns; /* a MAC from the peer's packets, whatever it is */
	uint32_t moved_due;
	uint32_t moved_seen;
	uint32_t refused_due;
	uint32_t refused_seen;
	/* completions due in this turn */
	uint32_t due_n;
	uint32_t due_seen;
	struct {
		uint64_t wr_id;
		uint32_t bytes;
	} due[BURST_MAX];
};

/** A packet of this turn. */
struct sent {
	int qp;            /* of its destination, or -1 */
	bool good;         /* no fault of the frame itself */
	struct wire_pkt p; /* points into `frame` */
	uint8_t frame[FRAME_ROOM];
};

/** A QP in the course of a turn, as it must be. */
struct model {
	struct responder r;
	uint8_t state;
	uint8_t steered; /* state when the turn began: stage 5 looks before stage 6 acts */
	bool reads;      /* has or had answers waiting */
	uint64_t rcvd;
	/* path migration */
	uint8_t mig; /* enum mig_state */
	uint8_t way;
	uint8_t mig_before; /* the turn */
	uint8_t way_before;
	uint8_t alt; /* or WAY_NONE */
	bool refused;
	uint16_t pkey;
	uint16_t alt_pkey;
	uint32_t moves;
	uint64_t refusals;
};

/** The shared receive queue. */
struct srq_bed {
	bool on;
	struct qp_srq q;
	struct ring rq; /* producer */
	struct wqe fifo[FIFO];
	uint32_t head; /* next to be taken, as the model has it */
	uint32_t tail;
	uint32_t serial;
	bool error;
	uint32_t errors; /* events */
	uint32_t armed;  /* how often a limit was set, and how often it was reached */
	uint32_t reached;
	uint64_t lost; /* events, before this input */
	uint8_t fate[SRQ_WRS];
};

enum { DRAIN_CQ = 1, DRAIN_TX = 2, DRAIN_UP = 4, DRAIN_ERRBUF = 8 };

struct fuzz_bed {
	struct worker *w;
	struct worker_conf conf;
	struct mbox mbox;
	struct qp_cq cq[CQS];
	uint32_t cq_seen[CQS];
	bool cq_bad[CQS]; /* in error when the turn began */
	uint16_t port;
	struct rte_ring *to;
	struct rte_ring *from;
	struct rte_mempool *in;  /* the tester's frames */
	struct rte_mempool *out; /* the worker's */
	ns_t now;
	uint8_t drain;
	bool apm; /* QPs are made with an alternate path */
	bool feeds;
	bool opening;  /* QPs are made ready: no packet, nothing to compare */
	int modifying; /* QP that the control lcore changes in this turn, or -1 */
	uint64_t cookie;
	uint64_t collected; /* frames taken from the port's far end */
	uint64_t made;      /* frames made before this turn */
	uint64_t fcs_flag;
	uint32_t ext_live; /* frames in heap blocks */
	struct qp_bed q[QPS];
	struct srq_bed srq;
	struct region mr[MRS];
	uint64_t turn;
	uint32_t taken_n;
	uint8_t taken[BURST_MAX][PMTU_MAX];
	uint32_t sent_n;
	struct sent sent[BURST_MAX];
	struct model model[QPS];
	uint8_t arena[ARENA] __attribute__((aligned(64)));
	uint8_t shadow[ARENA] __attribute__((aligned(64)));
};
extern struct fuzz_bed fb;
extern const struct plan fuzz_plans[QPS];

/* ---- bed */

void bed_start(void);
/** @param options first bytes of the input. */
void bed_open(uint8_t knobs, uint8_t options);
/** Everything drained and given back; the pools must be full again. */
void bed_close(void);
void bed_qp_make(uint32_t i);
/** To a state, by legal transitions only; a fresh life begins at `psn` where it passes RESET. */
void bed_qp_state(uint32_t i, enum qp_state to, uint32_t psn);
void bed_qp_gone(uint32_t i);
int bed_tell(struct mbox_msg *m);
void bed_mr_add(uint32_t i, uint8_t access, uint64_t va);
void bed_mr_remove(uint32_t i);
struct wire_path bed_path(const struct plan *p, bool of_peer);
/** Is the QP one that the worker knows? */
bool bed_attached(uint32_t i);

/* ---- paths */

/** One of four, as this end or the peer has it. */
struct wire_path bed_way(const struct plan *p, uint8_t way, bool of_peer);
/** Where the QP stands. */
uint8_t paths_way(uint32_t i);
uint8_t paths_alternate(uint32_t i);
uint16_t paths_pkey(uint32_t i, uint8_t way);
/** The alternate path's attributes. */
void paths_load(uint32_t i, uint8_t way, bool resolved, struct qp_attr *a);
/** An order of software: load a path (bit 0), another state (bits 1 and 2). */
void paths_step(uint32_t i, uint8_t what, uint8_t way);
void paths_begin(uint32_t i, struct model *m);
/** Has it come on the path that it must have come on, with that one's key? */
bool paths_allow(const struct qp_bed *q, const struct model *m, const struct wire_pkt *p);
void paths_refuse(struct qp_bed *q, struct model *m, const struct wire_pkt *p);
void paths_accept(struct qp_bed *q, struct model *m, const struct wire_pkt *p);
void paths_compare(uint32_t i);
void paths_event(struct qp_bed *q, const struct ring_aeq_event *e);
/** Last byte of the address that a frame of ours goes to. */
uint8_t paths_peer(const uint8_t *frame);
void paths_frame(const struct qp_bed *q, const struct wire_pkt *p, bool now);

/* ---- packets */

enum { MUTATE = 0x80, PAYLOAD_MAX = 1600 };

/** A packet under construction. */
struct making {
	uint32_t qp;
	struct wire_path path;
	struct wire_fields f;
	uint8_t frame[FRAME_ROOM];
	uint32_t len;
	uint32_t cut; /* second segment begins here; 0: one segment */
	uint32_t copies;
	bool bad_fcs;
};

/** Before the frame is built. @return false: this kind works on the frame. */
bool mutate_fields(struct making *k, const uint8_t *step);
/** After it is built. */
void mutate_frame(struct making *k, const uint8_t *step);
/** Make the ICRC right, wherever the frame now ends. */
void packet_seal(struct making *k);

/** Make the packet of a step and put it on the wire, once or several times. */
void packet_step(const uint8_t step[STEP]);
/** Anything that is not RoCE, or hardly. */
void packet_noise(const uint8_t step[STEP]);

/* ---- opcodes, as the oracle and the model see them */

static inline bool
is_send(uint8_t op)
{
	return op <= 0x05 || op == 0x16 || op == 0x17;
}

static inline bool
is_write(uint8_t op)
{
	return op >= 0x06 && op <= 0x0b;
}

static inline bool
is_write_imm(uint8_t op)
{
	return op == OP_RC_WRITE_LAST_IMM || op == OP_RC_WRITE_ONLY_IMM;
}

static inline bool
is_atomic(uint8_t op)
{
	return op == OP_RC_COMPARE_SWAP || op == OP_RC_FETCH_ADD;
}

/** FIRST or MIDDLE: exactly a path MTU. */
static inline bool
is_part(uint8_t op)
{
	return op == 0x00 || op == 0x01 || op == 0x06 || op == 0x07;
}

static inline bool
has_reth(uint8_t op)
{
	return op == 0x06 || op == 0x0a || op == 0x0b || op == 0x0c;
}

/* ---- model and looks */

/** FATAL_TAKES: the WQE that it would have used reports it. */
enum verdict { ACCEPT, NOTHING, REFUSE_RNR, REFUSE_NAK, FATAL, FATAL_TAKES };

/** Would header validation let it through to this QP? Path migration is done with it. */
bool for_this_qp(struct qp_bed *q, struct model *m, const struct wire_pkt *p);
/** A packet that is for this QP. */
enum verdict oracle(struct qp_bed *q, const struct model *m, const struct wire_pkt *p);

/* ---- receive WQEs */

void queue_open(bool shared);
void queue_close(void);
bool queue_is_shared(uint32_t i);
void queue_attach(uint32_t i, struct qp *qp);
/** Where to put a WQE, with its wr_id; NULL: full. queue_commit() posts it. */
struct ring_recv_wqe *queue_slot(struct qp_bed *q);
void queue_commit(struct qp_bed *q, const struct ring_recv_wqe *w);
/** What would be taken next, besides the one that is in use; NULL: nothing. */
const struct wqe *queue_next(const struct qp_bed *q, bool active);
bool queue_in_error(const struct qp_bed *q);
const struct wqe *queue_active(const struct qp_bed *q);
void queue_take(struct qp_bed *q);
/** The WQE in use is completed. @return its wr_id. */
uint64_t queue_complete(struct qp_bed *q);
/** Nothing is left to complete. */
bool queue_is_done(const struct qp_bed *q);
void queue_forget(struct qp_bed *q);
void queue_resync(void);
void queue_compare(void);
void queue_arm(uint32_t limit);
void queue_event(const struct ring_aeq_event *e);

void turn(void);
/** Region of a key that `pd` may use so, or NULL. */
const struct region *granted(uint32_t key, uint32_t pd, uint64_t va, uint64_t len, uint8_t access);
void model_begin(void);
/** Judge the packets of the turn in order, and change the shadow as they do. */
void model_run(void);
void model_compare(void);
void look_begin(void);
void look_completions(void);
void look_events(void);
void look_frames(void);
void look_accounts(void);
/** A life of the QP ends: nothing of it is checked any more. */
void look_new_life(uint32_t i);

static inline uint8_t
state_of(uint32_t i)
{
	return atomic_load(&fb.q[i].qp->state);
}

#endif
