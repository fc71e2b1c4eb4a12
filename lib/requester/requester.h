/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_H
#define REQUESTER_H
/**
 * @file requester.h  RC requester: (state, event, now) -> what to send, complete, or give up.
 *
 * Owner:   the worker that owns the QP; nothing here is shared.
 * Memory:  the caller's: the state is one cache line, the work requests are a power-of-two array of
 *          private copies indexed by position. Nothing is allocated.
 * Time:    `now` in nanoseconds, passed in; timers are deadlines that the caller arms in a wheel.
 * Depends: base, wire, ring (the layout of a scatter/gather entry).
 * Spec:    IBTA vol. 1, 9.7.3, 9.7.5-9.7.8, 9.9.2; rules REQ-*, TMR-*, FLOW-*.
 *
 * The caller copies posted work requests into `wr`, asks requester_next() for one packet after
 * another while the port takes them, and hands in responses and expired timers. Each answer is a
 * verdict: data to place, work requests to complete from the head of the queue, a timer to arm.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "psn.h"
#include "ring.h"
#include "verbs.h"
#include "wire.h"

enum requester_fault { /* found by the caller when it checked its copy of the WQE */
	WR_FAULT_NONE,
	WR_FAULT_MALFORMED, /* unknown opcode, too many SGEs: LOC_QP_OP_ERR */
	WR_FAULT_LENGTH,    /* message above 2^31 bytes: LOC_LEN_ERR */
	WR_FAULT_PROT,      /* bad lkey: LOC_PROT_ERR */
	WR_FAULT_BIND,      /* a bind that the window or the region refuses: MW_BIND_ERR */
	WR_FAULT_KEY,       /* LOCAL_INV of a key that is no such one: LOC_PROT_ERR */
};

/** One work request, 64 bytes; its SGEs or inline bytes are kept beside it by the caller. */
struct requester_wr {
	uint64_t wr_id;
	uint64_t remote_addr;
	union {
		struct { /* of an ATOMIC */
			uint64_t compare_add;
			uint64_t swap;
		};
		struct ring_sge sge; /* the caller's, of any other with num_sge 1 */
	};
	uint32_t rkey;
	uint32_t imm; /* immediate (host order), or the key to invalidate; READ: what was kept */
	uint32_t len; /* bytes of the message; 8 for an ATOMIC */
	psn_t first;  /* assigned when it is first sent */
	psn_t last;
	uint8_t opcode;      /* enum wr_opcode */
	uint8_t flags;       /* SEND_* */
	uint8_t fault;       /* enum requester_fault */
	uint8_t resumed;     /* READ: how often its response stream was asked for again part-way;
	                      * SEND, WRITE: 1: `sent_at` is of a copy; of a local one it is the
	                      * caller's, 0 at first */
	uint8_t num_sge;     /* the caller's */
	uint8_t xrc_srqn[3]; /* XRC: the peer's SRQ, big-endian; the caller's */
	uint32_t sent_at;    /* requester_stamp() of when it began to leave, or of when its newest
	                      * packet was sent once more to ask; READ, ATOMIC: when it last left */
};
_Static_assert(sizeof(struct requester_wr) == 64, "one cache line");

enum {                                          /* struct requester.knobs */
	REQ_KNOB_BAD_AETH_DROP = BIT32(0),      /* req.bad_aeth=drop */
	REQ_KNOB_ACK_FOR_READ_FATAL = BIT32(1), /* req.ack_for_read=fatal */
	REQ_KNOB_CREDITS = BIT32(2),            /* req.credits=on */
	REQ_KNOB_LEN_PAD_DROP = BIT32(3), /* rx.len_pad_impact=drop: pad on READ FIRST/MIDDLE */
	REQ_KNOB_PLACEMENT = BIT32(4),    /* ops.placement=on */
	REQ_KNOB_READ_FILL = BIT32(5),    /* req.read_gap=fill */
	REQ_KNOB_REORDER_SHIFT = 6,       /* two bits: req.reorder */
	REQ_KNOB_REORDER_MASK = 3,
	REQ_KNOB_READ_KEEP = BIT32(8), /* req.read_gap=keep; with REQ_KNOB_READ_FILL */
	REQ_KNOB_PATCH = BIT32(9),     /* req.gap=patch */
	REQ_KNOB_PROBE = BIT32(10),    /* req.probe=always */
};

#define REQ_OPEN_ALL UINT32_MAX /* requester.open: as much as `window` allows */

/**
 * State. Positions count work requests and run freely, from 0 after a reset; slot = position &
 * wr_mask. head <= sending <= fresh <= tail, and una <= cur <= next. Attributes are set by the
 * caller before requester_reset(), the rest belongs to the functions here.
 */
struct requester {
	/* line 0: where everything stands */
	psn_t next;          /* first PSN never sent */
	psn_t cur;           /* PSN of the next packet to send: behind `next` while resending */
	psn_t una;           /* oldest PSN not acknowledged; inside a READ: the response due */
	uint32_t head;       /* oldest work request not completed */
	uint32_t tail;       /* one behind the newest known */
	uint32_t sending;    /* work request that the next packet belongs to */
	uint32_t fresh;      /* first work request that never was sent */
	uint32_t wr_mask;    /* attribute */
	uint32_t window;     /* attribute: most request packets in flight; may change at any time */
	uint32_t reply_psns; /* PSNs of una..cur that only READ responses use */
	struct requester_wr *wr; /* attribute */
	uint16_t pmtu;           /* attribute, bytes */
	uint8_t since_ackreq;    /* packets sent since one that asks for a response */
	uint8_t ackreq_interval; /* attribute */
	uint8_t reads;           /* READs and ATOMICs started and not completed */
	uint8_t timeout;     /* attribute: exponent, 0: no transport timer; see _timeout_set() */
	uint16_t knobs;      /* attribute: REQ_KNOB_* */
	bool timing;         /* a timer is running, the transport's or `doubting`: see `deadline` */
	bool waiting_rnr;    /* nothing at or behind `cur` leaves before `deadline` */
	bool draining;       /* SQD: no new work request starts */
	bool failed;         /* a local fault stopped sending; the head decides when to report it */
	bool dead;           /* an error or class C event was reported: nothing happens any more */
	bool implied;        /* a response beyond una was looked at, and una has not moved since */
	bool recovering;     /* una is below `recover`: second copies may be in flight */
	bool unmigrated : 1; /* attribute: path_mig_state is not MIGRATED, MigReq is 0 */
	uint8_t timed_out : 2; /* the newest resend is a timeout's: see req_overtook() */
	uint8_t longer : 2;    /* round trips are 2^longer times rtt_min: see patience() */
	/* line 1: timer, counters, resends */
	ns_t deadline;           /* transport timer, or end of the RNR wait */
	uint32_t limit_msn : 24; /* credits: newest MSN allowed */
	uint32_t rnr_code : 5;   /* `waiting_rnr`: of the RNR NAK that began it */
	uint32_t in_vain : 3;    /* how often in a row what was patched has brought no more */
	uint32_t locals : 24;    /* of the work requests before `fresh`: those without a packet */
	uint32_t qp_type : 4;    /* attribute: enum qp_type */
	uint32_t unpatched : 4;  /* so many losses are not patched, see req_patch_request() */
	uint32_t failed_at;      /* `failed`: position of the work request at fault */
	psn_t asked;             /* newest PSN from which a READ was asked for again part-way */
	psn_t heard;             /* `implied`, `holes`: newest PSN of a response beyond una */
	psn_t recover;           /* `next` at the newest resend */
	uint8_t retry_left;
	uint8_t rnr_left;
	uint8_t retry_cnt;     /* attribute, 0..7 */
	uint8_t rnr_retry;     /* attribute, 0..7; 7: for ever */
	uint8_t max_rd_atomic; /* attribute */
	bool doubting : 1;     /* `timing` is for the response at una, of which nothing is heard */
	bool armed : 1;        /* attribute: another path is there for when retries are used up */
	bool overlaps : 1;     /* `recovering`: answers to the pass before may be on their way */
	bool limited : 1;      /* limit_msn is valid */
	bool holes : 1;        /* READ responses up to `heard` were kept (req_gap.c) */
	bool patching : 1;     /* the missing ones at una are asked for by the next packet; or with
	                        * req.gap=patch it is the request at una */
	bool patched : 1;      /* ... have been, and have not come */
	bool anew : 1;         /* what is missing below `recover` has been asked for since */
	uint8_t transport;     /* attribute: enum wire_transport */
	uint8_t probing : 1;   /* `timing` is for a probe, see req_probe_arm() */
	uint8_t rounds : 1;    /* attribute: each round trip is wanted, see REQACT_ROUND */
	uint8_t keeps : 1; /* what was patched has brought more than itself, see req_peer_keeps() */
	uint8_t alone : 2; /* ... so often in a row since it was all that una moved by */
	uint8_t probes : 3; /* sent since una moved */
	uint32_t open;      /* packets in flight that losses leave of `window`, or REQ_OPEN_ALL */
	uint16_t knee;      /* below it `open` doubles in a round trip, then it grows by one */
	uint8_t got;        /* PSNs acknowledged since the last loss, UINT8_MAX and more as that */
	uint8_t falls : 2;  /* how often the window was halved for losses in a row (req_pace.c) */
	uint8_t hard : 4;   /* losses in a row, so far */
	uint8_t eased : 2;  /* losses since of a window that had come through */
	psn_t timed;        /* `timed_at`: the response to this PSN ends a round trip */
	uint32_t timed_at;  /* when it was sent, low bits of ns; 0: no round trip is being timed */
	uint32_t rtt;       /* newest round trip since `open` was reduced, ns; 0: none */
	uint32_t rtt_min;   /* shortest of late, ns; 0: none */
};
_Static_assert(sizeof(struct requester) == 128, "two cache lines");

enum requester_rule {
	REQRULE_NONE,
#define RULE(name, id, text) REQRULE_##name,
#include "tables/requester_rules.def"
#undef RULE
	REQRULE_MAX
};
/** "REQ-NAK-05"; "" for REQRULE_NONE. */
const char *requester_rule_id(enum requester_rule r);
/** What the rule says, in a few words. */
const char *requester_rule_text(enum requester_rule r);

/**
 * Back to the start: no work requests, positions from 0, counters full, first PSN sq_psn.
 * Attributes stay.
 */
void requester_reset(struct requester *r, psn_t sq_psn);

/**
 * The attribute `timeout` is another one, at any time. A transport timer that runs counts from when
 * it began; where there was none, and something in flight owes a response, it began with that or
 * with the newest one. Either may be over by now: look at r->deadline and r->timing.
 */
void requester_timeout_set(struct requester *r, uint8_t timeout);

/**
 * SQD entered (on) or left. What was started goes on to its end, resends included.
 * @return true if nothing was under way: the queue is drained already, and REQACT_DRAINED will not
 * come.
 */
bool requester_drain(struct requester *r, bool on);

/** Work requests up to (not including) position `tail` are in `wr`. */
static inline void
requester_posted(struct requester *r, uint32_t tail)
{
	r->tail = tail;
}

/**
 * MSN of a work request that is under way or the next to start, as the peer counts it when it has
 * done it: what has no packet, a bind for example, it never sees.
 */
static inline uint32_t
requester_msn(const struct requester *r, uint32_t position)
{
	return (position + 1 - r->locals) & PSN_MASK;
}

/** Time in few bits: in 64 ns, comes round after 275 s. */
static inline uint32_t
requester_stamp(ns_t now)
{
	return (uint32_t)(now >> 6);
}

/** Nanoseconds since a requester_stamp(). */
static inline uint32_t
requester_age(uint32_t stamp, ns_t now)
{
	uint32_t units = requester_stamp(now) - stamp;

	return units < UINT32_MAX >> 6 ? units << 6 : UINT32_MAX;
}

/** Is all of the window open? Otherwise packets were lost of late. */
static inline bool
requester_is_free(const struct requester *r)
{
	return r->open == REQ_OPEN_ALL;
}

/** Does a loss cost what was sent behind it, since the peer keeps nothing of that? */
bool requester_goes_back(const struct requester *r);

/** Is anything sent and not acknowledged? */
static inline bool
requester_outstanding(const struct requester *r)
{
	return !psn_eq(r->una, r->next);
}

/* ---- sending -------------------------------------------------------------------------------- */

/** One request packet. */
struct requester_packet {
	uint32_t position; /* work request */
	uint32_t offset;   /* of the payload in the message, bytes */
	uint16_t len;      /* payload, bytes */
	uint8_t opcode;    /* BTH */
	uint8_t flags;     /* PKT_ACKREQ, PKT_SE, PKT_MIGREQ */
	uint8_t pad;
	bool resend;
	psn_t psn;
	/* RETH or AtomicETH, where the opcode has one */
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len;
	uint32_t imm; /* or the key to invalidate */
};

enum requester_stop {
	REQ_SEND,       /* *out is the packet; state has moved on */
	REQ_IDLE,       /* nothing to send */
	REQ_WINDOW,     /* PSN window or cc window full */
	REQ_READ_LIMIT, /* max_rd_atomic */
	REQ_FENCED,
	REQ_ORDERED, /* a bind or invalidate: what is older has to complete first */
	REQ_LOCAL,   /* it is the turn of one: see requester_local_done() */
	REQ_RNR_WAIT,
	REQ_DRAINED, /* SQD */
	REQ_NO_CREDIT,
	REQ_FAULT, /* the next work request is at fault: sending stops (class B) */
};

/**
 * Next packet in PSN order, new or resent. May arm the transport timer (r->timing, r->deadline).
 * A stop may be preceded by a second copy of the newest packet, with AckReq set, when what is in
 * flight would otherwise never be acknowledged.
 * After REQ_FAULT call requester_check_fault(); after REQ_RNR_WAIT wait for requester_timer().
 * After REQ_LOCAL carry the work request at `head` out, now or later, and say so.
 * Any other stop can end with any response, so ask again after each.
 * @param out filled for REQ_SEND only. An ATOMIC's operands are in the work request.
 * Cost: the state's lines and the work request's.
 */
enum requester_stop requester_next(struct requester *r, ns_t now, struct requester_packet *out);
/**
 * What would requester_next() answer now? Nothing changes. REQ_SEND: there is a packet that may go.
 * Cost: a copy of the state and of two work requests.
 */
enum requester_stop requester_waits(const struct requester *r, ns_t now);
/**
 * Have losses left so little of the window that requester_next() has nothing to send before a
 * response moves una, or a timer ends? Both are told. false: not known.
 */
bool requester_is_shut(const struct requester *r);
/**
 * When the RNR wait began; else when the peer was heard of last, or what asks it for a response was
 * sent, also where no timer runs. 0: not known.
 */
ns_t requester_waits_since(const struct requester *r);

/* ---- what happens --------------------------------------------------------------------------- */

enum {                              /* verdict.act */
	REQACT_COMPLETE = BIT32(0), /* `completed` work requests from `head_was` on succeeded */
	REQACT_PLACE = BIT32(1),    /* READ data: payload to `offset` of work request `position` */
	REQACT_ATOMIC = BIT32(2),   /* store `original` to work request `position` */
	REQACT_ERROR = BIT32(3),    /* work request `failed`, right behind those completed, fails
	                              * with wc_status; QP to ERR, everything later is flushed */
	REQACT_RESEND = BIT32(4),   /* `cur` was moved back: packets will be sent again */
	REQACT_TIMER = BIT32(5),    /* r->deadline or r->timing changed: look at them */
	REQACT_DROP = BIT32(6),     /* no effect; `rule` says why */
	REQACT_EVENT = BIT32(7),    /* asynchronous event (class C) */
	REQACT_DRAINED = BIT32(8),  /* SQD: everything started is finished */
	REQACT_MIGRATE = BIT32(9),  /* with RESEND: go on over the alternate path from now on */
	REQACT_ROUND = BIT32(10),   /* r->rounds: a round trip has ended, r->rtt */
};

enum requester_counter {
	QC_NONE,
	QC_RNR_NAK,        /* rcvd_rnr_err, rnr_nak_retry_err */
	QC_SEQ_NAK,        /* packet_seq_err, rcvd_seq_err */
	QC_IMPLIED_NAK,    /* implied_nak_seq_err */
	QC_TIMEOUT,        /* local_ack_timeout_err */
	QC_TIMEOUT_EARLY,  /* local_ack_timeout_early */
	QC_RETRY_EXCEEDED, /* retry_exceeded_err, req_transport_retries_exceeded */
	QC_RNR_EXCEEDED,   /* retry_rnr_exceeded_err, req_rnr_retries_exceeded */
	QC_REMOTE_INVALID, /* req_remote_invalid_request */
	QC_REMOTE_ACCESS,  /* req_remote_access_errors */
	QC_REMOTE_OPERATION,
	QC_UNMATCHED, /* dropped: outside the unacknowledged range, or duplicate */
};

/** To be carried out in the order place (store), complete, error. */
struct requester_verdict {
	uint32_t act;
	uint32_t head_was;  /* position of the first work request completed */
	uint32_t completed; /* how many succeeded */
	uint32_t position;  /* REQACT_PLACE, REQACT_ATOMIC */
	uint32_t failed;    /* REQACT_ERROR: position; always head_was + completed */
	uint32_t offset;    /* REQACT_PLACE, bytes */
	uint64_t original;  /* REQACT_ATOMIC */
	uint8_t wc_status;  /* REQACT_ERROR: ibv_wc_status */
	uint8_t fatal;      /* FATAL code, 0: none */
	uint8_t fault;      /* enum wire_fault to charge, 0xff none */
	uint8_t event;      /* ibv_event_type */
	uint8_t cause;      /* enum requester_counter: what began it (QC_SEQ_NAK ...) */
	uint8_t outcome;    /* enum requester_counter: what it ended in (QC_RETRY_EXCEEDED ...) */
	uint16_t rule;      /* enum requester_rule */
};

/**
 * A response packet (op has OPF_RESPONSE) that passed header validation.
 * READ data must be placed by the caller before it completes anything of the same verdict; if that
 * fails it hands the verdict to requester_local_fault() first. Whatever came, more may be sent now.
 */
void requester_response(
	struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v);

/**
 * Is it a positive ACK of nothing that is outstanding? Then all that comes of it is a count
 * (QC_UNMATCHED, REQ-CLS-E-01), and requester_response() need not be asked.
 */
static inline bool
requester_is_unmatched_ack(const struct requester *r, const struct wire_pkt *p)
{
	return p->opcode == OP_RC_ACKNOWLEDGE && !r->dead &&
	       psn_distance(p->psn, r->una) >= psn_distance(r->next, r->una) &&
	       (r->knobs & REQ_KNOB_CREDITS) == 0 && (wire_ext(p)[0] & AETH_KIND_MASK) == AETH_ACK;
}

/**
 * Of a service without ACKs: the packets up to `end`, which is not one of them, were handed to the
 * port. For the work requests that end there this is all that ever happens (UC-02).
 */
void requester_left(struct requester *r, psn_t end, ns_t now, struct requester_verdict *v);

/**
 * SQE is left for RTS: everything posted before was completed. The next packet has the next PSN
 * (UC-15).
 */
void requester_resume(struct requester *r);

/** r->deadline has passed: transport timeout, or the end of an RNR wait. */
void requester_timer(struct requester *r, ns_t now, struct requester_verdict *v);
/** With req.probe=always: the transport timer has begun, anew if there was progress. */
void requester_probe_anew(struct requester *r, bool progress, ns_t now);

/**
 * What was sent of late had nowhere to go, and now it has: everything is sent again. That is no
 * retry: there was no loss, and nothing is known of the path.
 */
void requester_found(struct requester *r, struct requester_verdict *v);
/**
 * The QP has migrated, and some of what it sent has not left on the path before: everything is sent
 * again. That is no retry; what has left may be answered.
 */
void requester_stranded(struct requester *r, struct requester_verdict *v);

/**
 * The caller could not place a response or read a source buffer of work request `position`:
 * LOC_PROT_ERR (class B), once everything older has completed; nothing of it or later is sent.
 * @param v the verdict whose data could not be placed: `position` and later are taken out of its
 * completions and REQACT_ERROR is added. Or a verdict with act 0: REQACT_ERROR is there if the
 * fault's turn has come, else a later verdict brings it.
 */
void requester_local_fault(struct requester *r, uint32_t position, enum requester_fault fault,
	struct requester_verdict *v);

/**
 * After REQ_FAULT: report the local fault if its turn has come; else the verdict that completes
 * the last older work request reports it. May be called at any time. @param v filled completely.
 */
void requester_check_fault(struct requester *r, struct requester_verdict *v);

/**
 * The work request of REQ_LOCAL is carried out: it completes (MW-12: nothing older is left). One
 * that cannot be is a local fault.
 */
void requester_local_done(struct requester *r, struct requester_verdict *v);

/** The send context is corrupt (class C): QP to ERR, everything flushed, IBV_EVENT_QP_FATAL. */
void requester_context_fault(struct requester *r, struct requester_verdict *v);

/** A completion queue was full when a send completion was due (class F). */
void requester_cq_overflow(struct requester *r, struct requester_verdict *v);

/** Transport timeout of an exponent 1..31, in nanoseconds: 4.096 us * 2^n (TMR-01). */
ns_t requester_timeout_ns(uint8_t exponent);

/** Credits of a code 0..30 of an ACK syndrome; UINT32_MAX for 31, no information (FLOW-01). */
uint32_t requester_credits(uint8_t code);

#endif
