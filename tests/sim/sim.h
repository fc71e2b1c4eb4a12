/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_H
#define SIM_H
/**
 * @file sim.h  Queue pairs in one process, a fake clock, and a link that does its worst.
 *
 * One seed is one run: everything that happens in it follows from the seed. A pair is two ends; an
 * end is a requester and a responder with memory, queues, a timer and an application. What a work
 * request must lead to is known when it is posted; oracle.c compares.
 *
 * main.c         arguments, processes, the report
 * run.c          one seed: the order of events
 * pair.c         connecting a pair of queue pairs, and what is theirs
 * app.c          the applications: receive queues, mishaps, connections that are taken down
 * post.c         random work requests
 * send.c         the requester's surroundings: packets out, responses in, timers
 * respond.c      the responder's surroundings: facts in, verdicts out
 * answer.c       responses that wait for their turn
 * oracle.c       the reference: what memory, completions and timers must be
 * oracle_resp.c  the reference of a responder
 * oracle_retry.c the reference of retries: what they may be for
 * oracle_window.c the reference of windows' keys
 * link.c         frames and the hostile link
 * share.h        a queue that all share, and rates
 * windows.c      memory windows and fast-register regions, requests without a packet
 * windows_peer.c ... as the peer uses them
 * wr.h           kinds of work requests
 *
 * Owner:   one process; no threads.
 * Memory:  allocated once by sim_create(), used again for every seed.
 * Depends: base, wire, icrc, wheel, ring, mem, responder, requester, cc, impair.
 */
#include <stdbool.h>
#include <stdint.h>

#include "../clib/rng.h"
#include "windows.h"
#include "mem.h"
#include "requester.h"
#include "resp_answers.h"
#include "resp_kept.h"
#include "responder.h"
#include "share.h"
#include "wheel.h"
#include "wire_build.h"
#include "wr.h"

enum {
	PAIRS_MAX = 4,
	ENDS_MAX = 2 * PAIRS_MAX,
	SQ_SLOTS = 32,
	RQ_SLOTS = 16,
	RD_MAX = 16, /* max_rd_atomic, max_dest_rd_atomic */
	ANSWERS = 2 * RD_MAX + 2,
	SIM_PD = 1,
	MRS = 4,               /* regions that the peer may reach */
	INVS = 8,              /* regions that the peer may invalidate */
	MESSAGE_TOP = 1 << 17, /* bytes */
	MR_BYTES = 1 << 17,
	GUARD = 64, /* bytes of nobody's between regions */
	TARGET_BYTES = MRS * (MR_BYTES + GUARD) + GUARD,
	POOL_BYTES = 1 << 19, /* where all payload comes from */
	SGES = 3,
	FRAME_ROOM = 4096 + 160,
	FLYING_MAX = 8192,
	LOST_PSNS = SQ_SLOTS * MESSAGE_TOP / 256, /* those that can be outstanding */
	BURST = 32,
};

/* ---- the link ----------------------------------------------------------------------------- */

/** What a packet was made of: a request of itself, a response of the newest request that came. */
struct cause {
	uint32_t pass; /* of the asker: counts its resends */
	psn_t psn;
};

struct packet {
	struct packet *next; /* free list */
	uint32_t len;
	bool corrupt, cnp;
	uint8_t to;    /* end */
	uint8_t asker; /* end whose request it is, or a response to it */
	psn_t psn;
	struct cause cause;
	uint8_t frame[FRAME_ROOM];
};

struct flying {
	ns_t at;
	uint64_t order;
	struct packet *p;
};

/** One direction; all pairs share it. Chances are in a million. */
struct link {
	uint32_t loss;
	uint32_t bad_loss;  /* in a bad stretch */
	uint32_t turns_bad; /* chance per packet */
	uint32_t turns_good;
	uint32_t duplicate;
	uint32_t reorder;
	uint32_t ghost; /* a second copy that comes very late */
	uint32_t corrupt;
	uint32_t latency; /* ns */
	uint32_t jitter;
	uint32_t reorder_ns;
	uint32_t ghost_ns;
	bool bad;
	ns_t down_until;
	ns_t last;
};

/* ---- an end ------------------------------------------------------------------------------- */

enum end_state { END_RTS, END_ERR };

enum { WANT_SUCCESS = 0, WANT_SILENCE = 0xff }; /* work.want: or an ibv_wc_status */

/** What belongs to a work request beside the requester's copy. */
struct work {
	uint64_t original;                     /* ATOMIC */
	psn_t first;                           /* of its first packet */
	uint32_t source;                       /* offset of its bytes in the pool */
	uint32_t target;                       /* offset in the peer's target memory */
	uint32_t placed;                       /* READ: bytes that have arrived */
	uint64_t have[MESSAGE_TOP / 256 / 64]; /* READ: packets that have arrived */
	uint8_t mr;
	uint8_t want;
	uint8_t inv;
	uint8_t num_sge;
	bool doomed, got; /* its L_Key may go away; ATOMIC: the result has arrived */
	bool revoked;     /* its R_Key was taken back before it was complete */
	uint8_t window;   /* key of the peer that it names, from 1 on */
	uint8_t own;      /* ... of this end, that it changes */
	struct ring_sge sge[SGES];
};

struct receive {
	uint64_t wr_id;
	uint32_t bytes;
	uint32_t num_sge;
	uint8_t fault; /* enum responder_wqe_fault */
	struct ring_sge sge[SGES];
};

struct mr {
	struct mem_region *region;
	uint32_t key;
	bool gone; /* deregistered, or revoked */
	bool used; /* a SEND with Invalidate that is not complete names it */
};

struct end {
	uint8_t index; /* index ^ 1 is the peer */
	uint8_t state; /* enum end_state */
	bool busy;     /* more to send than the last turn allowed */
	struct end_share share;
	uint32_t qpn;
	struct wire_path path;
	struct wire_port port;

	/* requester */
	struct requester req;
	struct requester_wr wr[SQ_SLOTS];
	struct work work[SQ_SLOTS];
	struct wheel_node timer;
	uint32_t depth; /* of the send queue, as the application uses it */

	/* responder */
	struct responder resp;
	struct responder_saved saved[RD_MAX];
	struct resp_answer answer[ANSWERS];
	struct resp_answers answers; /* stand in `answer` */
	struct resp_kept kept;
	bool ack_pending;
	uint8_t ack_syndrome;
	psn_t ack_psn;
	uint32_t ack_msn;
	ns_t ack_at;        /* `ack_pending`: when it leaves at the latest */
	struct cause asked; /* newest request that was dealt with */
	struct receive rq[RQ_SLOTS];
	uint32_t rq_head, rq_tail;
	bool active;
	struct receive active_wqe;
	ns_t hold_receives;
	bool cq_full;

	/* memory */
	struct mem_table *table;
	uint8_t *target; /* the peer writes and reads here */
	uint8_t *shadow; /* what must be there, as far as the peer has seen completions */
	uint8_t *sink;   /* results of READ and ATOMIC, MESSAGE_TOP per slot */
	uint8_t *inbox;  /* receive buffers, MESSAGE_TOP per slot */
	struct mr mr[MRS];
	struct mr inv[INVS];
	struct mr base, base_ro, base_other; /* all of `target`, under windows */
	struct window windows[WINDOWS];
	struct mr pool, doomed_pool, to_sink, doomed_sink, to_inbox;
	uint8_t inv_bytes[INVS][GUARD];

	/* oracle: as requester */
	uint32_t done, started; /* work requests: succeeded; have sent something */
	uint32_t reads_out;
	psn_t next_new, seen_una;
	ns_t asked_at;    /* since when a response has been owed; 0: none is */
	psn_t asked_last; /* newest PSN that one is owed for */
	ns_t rnr_until;
	uint32_t tries, rnr_tries;
	uint32_t probes; /* packets that may leave before a response is progress; 0: no limit */
	bool paths; /* there is always another path: software arms it when the last one works */
	ns_t progress_at;
	bool recovering; /* what was resent is not all acknowledged: una is below `recovered` */
	psn_t recovered;
	psn_t next_out;          /* leaves next, for the first time or again */
	bool out_asked;          /* the one before asked for a response */
	bool patching;           /* what is missing at una leaves before it */
	uint32_t pass;           /* resends so far */
	struct cause answers_to; /* of the response that is looked at */
	ns_t pass_at;            /* when the newest resend began */
	ns_t told_at; /* when a response to this pass has shown that the one at una is lost */
	bool armed, draining, drained, doomed_gone;
	bool silent;      /* when the last timer ended, nothing that it sent was on its way */
	bool limited;     /* credits were offered: */
	uint32_t offered; /* newest MSN that they allow */

	/* oracle: as responder */
	uint32_t executed; /* messages, and requests of the peer that have no packet */
	uint32_t locals;   /* the latter */
	uint32_t partial;  /* bytes of the next one in memory */
	uint32_t received; /* receive completions */
	bool nakked;       /* a sequence or RNR NAK was sent for this ePSN */
	bool refused, exec_fault;
	uint8_t refused_status;
	uint32_t refused_position;

	uint8_t lost[LOST_PSNS]; /* as requester: how often something of this PSN was lost */
};

struct pair {
	uint16_t pmtu;
	uint32_t message_max;
	uint32_t mr_bytes;
	uint32_t generation;
	ns_t reset_at;      /* 0: both ends are well */
	bool patient, over; /* patient: both ends shall find out by themselves */
};

struct totals {
	uint64_t seeds, packets, lost, corrupt, duplicates, ghosts, strays;
	uint64_t completed, flushed, resent, timeouts, nak_seq, implied, rnr, resets, drained,
		migrations, needless, kept, unheard, stores, flushes, registered, bound,
		invalidated, marked, overflowed, cnps, paced, rounds, probes, ahead, early;
	uint64_t status[32];
};

struct sim {
	struct rng g;
	uint64_t seed;
	bool verbose, all_timeless;
	ns_t now;
	uint64_t order;
	uint32_t packets, target_packets;
	uint32_t turns;
	bool closing;
	uint32_t pairs;
	struct pair pair[PAIRS_MAX];
	struct end end[ENDS_MAX];
	struct link link[2];
	struct share share;
	struct wheel wheel;
	uint32_t flying_n;
	struct flying flying[FLYING_MAX];
	struct packet *free;
	uint8_t *pool;
	uint32_t next_key;
	uint64_t next_wr_id;
	uint8_t payload[4096];

	/* what this seed is like */
	uint32_t faults;   /* one work request in so many is bad; 0: none */
	uint32_t chaos;    /* one application step in so many does harm */
	uint32_t shortage; /* ppm: no resources for a request */
	uint32_t starve;   /* one step in so many stops the posting of receives for a while */
	uint32_t size;     /* 0: small messages ... 3: long ones */
	uint32_t pace;     /* ns between application steps */
	uint32_t answers_turn;
	uint32_t send_turn;
	uint32_t coalesce; /* one packet in so many ends a burst */
	uint32_t lazy;     /* ns that an ACK waits for a later one; 0: it leaves with its burst */
	bool hostile;      /* packets may be lost */
	bool timeless;     /* most queue pairs have no transport timer */
	bool fifo;         /* nothing is copied, and nothing overtakes */
	bool perfect;      /* no packet is late, even: nothing may need a retry */
	ns_t app_at;
	ns_t app_gap;
	/* Where nothing overtakes: retries, of NAKs and implied ones; timeouts. */
	uint32_t needed, needless, timeouts, unheard;
	struct totals t;
};

static inline struct end *
peer_of(struct sim *s, const struct end *e)
{
	return &s->end[e->index ^ 1];
}

static inline struct pair *
pair_of(struct sim *s, const struct end *e)
{
	return &s->pair[e->index / 2];
}

/** XRC: what names the receive queue of this end. */
static inline uint32_t
end_srqn(const struct end *e)
{
	return 0x700000u | e->qpn;
}

static inline const struct requester_wr *
wr_at(const struct end *e, uint32_t position)
{
	return &e->wr[position % SQ_SLOTS];
}

/** A key that it names does not lead to memory any more. */
static inline bool
is_gone(const struct end *e, const struct work *k)
{
	return k->window != 0 ? k->revoked : e->mr[k->mr].gone;
}

/** Messages that the responder has taken, as it counts them. */
static inline uint32_t
msn_of(const struct end *e)
{
	return (e->executed - e->locals) & PSN_MASK;
}

/** PSNs that it uses. */
static inline uint32_t
wr_psns(const struct end *e, const struct requester_wr *w)
{
	uint32_t pmtu = e->req.pmtu;

	return (wr_is_answered(w) && !wr_is_read(w)) || w->len == 0 ? 1
								    : (w->len + pmtu - 1) / pmtu;
}

/* ---- main.c, run.c */

/** Print the line that replays this seed and what broke, and end the process. */
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
void sim_trace(struct sim *s, const struct end *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define CHECK(s, cond, ...)                         \
	do {                                        \
		if (UNLIKELY(!(cond)))              \
			sim_fail((s), __VA_ARGS__); \
	} while (0)
#define TRACE(s, e, ...)                                  \
	do {                                              \
		if (UNLIKELY((s)->verbose))               \
			sim_trace((s), (e), __VA_ARGS__); \
	} while (0)

struct sim *sim_create(void);
/** Play one seed to its end. */
void sim_run(struct sim *s, uint64_t seed);
void sim_arrive(struct sim *s, struct packet *p);
void sim_timers(struct sim *s); /* those that are due */

/* ---- pair.c */

/** RESET and up to RTS on both ends, with new PSNs, keys and attributes. */
void pair_connect(struct sim *s, uint32_t pair);
/** Memory of both ends against the reference; the connection is history after this. */
void pair_settle(struct sim *s, uint32_t pair);
void pair_release(struct sim *s, uint32_t pair);
/** New key for what stands at `host`. */
void mr_add(struct sim *s, struct end *e, struct mr *m, uint8_t *host, uint64_t bytes);
/** ... that is not for peers. */
void mr_add_local(struct sim *s, struct end *e, struct mr *m, uint8_t *host, uint64_t bytes);
void mr_remove(struct end *e, struct mr *m);

/* ---- app.c, post.c */

void app_step(struct sim *s);
void app_post(struct sim *s, struct end *e, uint32_t n);
void app_receives(struct sim *s, struct end *e, uint32_t n);
/** QP to ERR: everything not complete is flushed. */
void end_error(struct sim *s, struct end *e, bool keep_answers);

/* ---- send.c */

/** Up to `turn` packets. */
void send_some(struct sim *s, struct end *e, uint32_t turn);
void send_response(struct sim *s, struct end *e, const struct wire_pkt *p);
void send_timer(struct sim *s, struct end *e);
void send_timer_update(struct sim *s, struct end *e);
void send_drain(struct sim *s, struct end *e, bool on);

/* ---- respond.c, answer.c */

void respond(struct sim *s, struct end *e, const struct wire_pkt *p, const struct packet *from);
void respond_forget(struct sim *s, struct end *e);
void owe_ack(struct sim *s, struct end *e, const struct responder_verdict *v);
void owe_nak(struct sim *s, struct end *e, const struct responder_verdict *v);
void owe_read(struct sim *s, struct end *e, const struct responder_verdict *v);
void owe_atomic(struct sim *s, struct end *e, const struct responder_verdict *v, uint64_t original);
void ack_flush(struct sim *s, struct end *e);
void answers_run(struct sim *s, struct end *e, uint32_t turn);
/** The READ at the head of the answers lost its region. @return false: it was a duplicate. */
bool respond_read_lost(struct sim *s, struct end *e);

/* ---- oracle.c, oracle_resp.c */

enum { /* values of ibv_wc_status */
	STATUS_LOC_LEN = 1,
	STATUS_LOC_QP_OP = 2,
	STATUS_LOC_PROT = 4,
	STATUS_MW_BIND = 6,
	STATUS_REM_INV_REQ = 9,
	STATUS_REM_ACCESS = 10,
	STATUS_REM_OP = 11,
	STATUS_RETRY_EXC = 12,
	STATUS_RNR_RETRY_EXC = 13,
};

/** Where the reference says that the response leads; taken before the requester sees it. */
struct expected {
	bool implied; /* beyond a READ or ATOMIC that has not been answered */
	bool recovering;
	psn_t due;          /* the oldest response missing */
	uint32_t completed; /* work requests that it acknowledges at most */
};

struct expected oracle_expect(const struct end *e, const struct wire_pkt *p);
void oracle_response(
	struct sim *s, struct end *e, const struct expected *x, const struct requester_verdict *v);
/** What the responder answers to a packet that came while ePSN was `before`. */
void oracle_judged(struct sim *s, struct end *e, psn_t before, const struct wire_pkt *p,
	const struct responder_verdict *v);
/** PSN and MSN of what a responder answers; who asks for an ACK gets one. */
void oracle_acknowledged(struct sim *s, const struct end *e, const struct wire_pkt *p,
	const struct responder_verdict *v);
/** A duplicate READ or ATOMIC is dropped although nothing was short. */
void oracle_duplicate_dropped(struct sim *s, const struct end *e, const struct wire_pkt *p);
void oracle_sent(struct sim *s, struct end *e, const struct requester_packet *p);
/** A response: credits that it offers. */
void oracle_offered(struct end *e, const struct wire_pkt *p);
/** The next work request is held for want of credits. */
void oracle_held(struct sim *s, const struct end *e);
void oracle_completed(struct sim *s, struct end *e, uint32_t position);
void oracle_error(struct sim *s, struct end *e, const struct requester_verdict *v);
/** The responder took a whole message. */
void oracle_executed(struct sim *s, struct end *e, const struct wire_pkt *p);
/** READ data comes to this place. */
void oracle_placed(struct sim *s, struct end *e, struct work *k, uint32_t offset);
void oracle_placed_write(
	struct sim *s, struct end *e, const struct wire_pkt *p, const struct responder_verdict *v);
void oracle_received(
	struct sim *s, struct end *e, const struct wire_pkt *p, const struct responder_verdict *v);
void oracle_refused(struct sim *s, struct end *e, const struct responder_verdict *v);
/** Bring the shadow of `e`'s target up to what its responder has executed, and compare. */
void oracle_settle(struct sim *s, struct end *e);
/** Both ends are idle and well: PSN, MSN, timers. */
void oracle_idle(struct sim *s, struct end *e);
bool oracle_has(const struct end *e, psn_t p); /* of a READ: this packet has come */

/* ---- oracle_retry.c */

/** Something that `e` asked, or was answered, at this PSN comes to nothing. */
void oracle_lost(struct sim *s, struct end *e, psn_t p);
void oracle_progress(struct sim *s, struct end *e);
/** A response was looked at that lies beyond an unanswered READ or ATOMIC at una. */
void oracle_told(struct sim *s, struct end *e);
/** It waits, and nothing will end that: was that so from the beginning? */
void oracle_stuck(struct sim *s, struct end *e);
void oracle_retry(struct sim *s, struct end *e, const struct requester_verdict *v);

/* ---- link.c */

struct packet *packet_new(struct sim *s);
void packet_free(struct sim *s, struct packet *p);
struct packet *packet_copy(struct sim *s, const struct packet *p);
/** Build, seal and send a frame of `e` to its peer. @return its length. */
uint32_t link_send(struct sim *s, struct end *e, const struct wire_fields *f);
/** Next packet that arrives not after `now`, or NULL. */
struct packet *link_receive(struct sim *s);
ns_t link_next(const struct sim *s);
void link_clear(struct sim *s);
/** A link of random character. */
void link_random(struct sim *s, struct link *l);
/** Parse and verify; false: it is to be dropped. */
bool link_parse(struct sim *s, const struct packet *p, struct wire_pkt *out);

#endif
