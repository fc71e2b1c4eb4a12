/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_H
#define RESPONDER_H
/**
 * @file responder.h  Responder: (state, packet, facts, now) -> verdict.
 *
 * Owner:   the worker that owns the QP; nothing here is shared.
 * Memory:  the caller's; no allocation. The saved READ/ATOMIC slots are the caller's array.
 * Time:    `now` in nanoseconds, passed in.
 * Depends: base, wire.
 * Spec:    IBTA vol. 1, 9.7.4-9.7.5, 9.8.2 and 9.9.3; rules RESP-*, RX-PREC-*, UC-*.
 *
 * A caller asks responder_query() what has to be looked up for a packet (is a receive WQE there,
 * is this key valid), hands the answers in as facts, and carries the verdict out: place, execute,
 * reply, complete, raise. The verdict has already changed the state.
 *
 * A service without ACKs (UC, UD) is judged by the same checks. Three things differ: a message
 * may begin at any PSN (responder_resync()), what fails is dropped with the rest of its message
 * (failures.def), and nothing is answered.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access.h"
#include "clock.h"
#include "psn.h"
#include "wire.h"

enum responder_open { OPEN_NONE, OPEN_SEND, OPEN_WRITE };

enum {                                       /* struct responder.knobs */
	RESP_KNOB_LEN_PAD_DROP = BIT32(0),   /* rx.len_pad_impact=drop */
	RESP_KNOB_RNR_FIRST = BIT32(1),      /* profile ernic: RNR before the opcode sequence */
	RESP_KNOB_EARLY_DROP = BIT32(2),     /* resp.early_retry=drop */
	RESP_KNOB_HALF_DUP = BIT32(3),       /* resp.half_window=duplicate */
	RESP_KNOB_J_ACK = BIT32(4),          /* resp.class_j_ack=ack */
	RESP_KNOB_IMM_LOC = BIT32(5),        /* resp.imm_access_status=loc_access */
	RESP_KNOB_CREDITS = BIT32(6),        /* resp.credits=on */
	RESP_KNOB_EVENT_WITH_CQE = BIT32(7), /* ae.with_cqe=on */
	RESP_KNOB_RESYNC = BIT32(8),         /* resp.psn_check=resync (benchmarks only) */
	RESP_KNOB_PLACEMENT = BIT32(9),      /* ops.placement=on */
	RESP_KNOB_RQ_LIMIT = BIT32(10),      /* facts.rq_limit is not 0 */
	RESP_KNOB_KEEP = BIT32(11),          /* resp.gap=keep */
};

/** Saved READ or ATOMIC, for duplicates (RESP-DUP-03..07, -11). */
struct responder_saved {
	psn_t first;
	psn_t last;
	uint64_t va;
	uint64_t original; /* ATOMIC: value before the operation; FLUSH: its FETH */
	uint32_t rkey;
	uint32_t len; /* READ: bytes */
	uint8_t kind; /* 0 empty, else the opcode of the request */
	uint8_t reserved[7];
};
_Static_assert(sizeof(struct responder_saved) == 40, "slot layout");

/** writer: worker (control only while the QP is detached). */
struct responder {
	psn_t epsn;
	uint32_t msn;    /* completed messages modulo 2^24 */
	uint16_t pmtu;   /* bytes */
	uint16_t knobs;  /* RESP_KNOB_* */
	uint8_t open;    /* enum responder_open */
	bool latched;    /* a sequence or RNR NAK was sent for ePSN (AMB-06) */
	access_t access; /* qp_access_flags */
	uint8_t max_dest_rd_atomic;
	uint8_t unfinished; /* READs and ATOMICs whose responses are not all sent */
	uint8_t saved_next; /* next slot of `saved` to write */
	bool wqe_active;    /* a receive WQE was taken for the open SEND */
	uint32_t received;  /* payload bytes of the open message so far */
	/* RESPONDER_HOT bytes: a request in order and without an open message looks no further */
	uint32_t dma_len;      /* open WRITE: RETH length */
	uint8_t min_rnr_timer; /* code 0..31 */
	bool starved;          /* the newest answer offered no credit (FLOW-07) */
	uint64_t va;           /* open WRITE: RETH address */
	uint32_t rkey;         /* open WRITE */
	uint8_t saved_n;       /* slots of `saved`, at least max_dest_rd_atomic */
	uint8_t transport;     /* enum wire_transport (constant) */
	uint8_t head;          /* bytes of a receive before the payload (constant) */
	uint8_t at_once;       /* READs of the burst under way that were answered within it */
	ns_t rnr_until;        /* a retry before this is early (RESP-RNR-08) */
	struct responder_saved *saved; /* NULL: none, and max_dest_rd_atomic is 0 */
};
_Static_assert(sizeof(struct responder) == 64, "as large as a cache line");
#define RESPONDER_HOT 24
_Static_assert(offsetof(struct responder, dma_len) == RESPONDER_HOT, "what comes first");

/** What must be looked up before responder_receive(). */
struct responder_query {
	bool wqe;   /* state of the receive queue's head (or the active WQE when one is open) */
	bool key;   /* may [va, va + len) be reached through rkey with `access`? */
	bool whole; /* ... of all that rkey names: `va` is its first byte, `len` is 0 */
	bool invalidate; /* may inv_key be invalidated by the peer? */
	access_t access; /* of the operation */
	uint32_t rkey;
	uint32_t inv_key;
	uint32_t len;
	uint64_t va;
};

enum responder_wqe_fault {
	WQE_FAULT_NONE,
	WQE_FAULT_MALFORMED,
	WQE_FAULT_PROT,
	WQE_FAULT_QUEUE,  /* no WQE: the shared receive queue is in error */
	WQE_FAULT_NO_SRQ, /* XRC: the number is of no SRQ of the QP's domain, or of another one
			   * than that of the open SEND; has_wqe is false then */
};

struct responder_facts {
	bool has_wqe; /* a receive WQE is posted, besides the active one */
	bool key_ok;
	bool invalidate_ok;
	bool short_of_resources; /* no mbuf or response slot: RNR-11 */
	bool may_keep;           /* there is room for a request that is ahead (resp_kept.h) */
	bool exec_fault;         /* fault injection: ATOMIC or READ unit failed (RESP-NAK-ROE-02) */
	uint8_t wqe_fault;       /* enum responder_wqe_fault of the head or active WQE */
	uint32_t free_wqes;      /* with credits or a limit */
	uint32_t rq_limit;       /* with RESP_KNOB_RQ_LIMIT: fewer than this are few */
	uint64_t wqe_bytes;      /* size of the head (FIRST, ONLY) or active WQE */
};

enum {                              /* verdict.act */
	ACT_TAKE_WQE = BIT32(0),    /* take the receive queue's head; it is the active WQE now */
	ACT_PLACE_SEND = BIT32(1),  /* copy the payload into the active WQE at `offset` */
	ACT_PLACE_WRITE = BIT32(2), /* copy the payload to `va` */
	ACT_READ = BIT32(3),        /* answer [va, va+len) from PSN `first` on */
	ACT_ATOMIC = BIT32(4),      /* execute, store the original into *saved, answer */
	ACT_REPLAY = BIT32(5),      /* answer a duplicate ATOMIC from *saved */
	ACT_ACK = BIT32(6),         /* positive ACK asked for; may be coalesced with later ones */
	ACT_NAK = BIT32(7),      /* NAK or RNR NAK: behind everything owed so far, never merged */
	ACT_COMPLETE = BIT32(8), /* receive completion on the active WQE */
	ACT_EVENT = BIT32(9),    /* asynchronous event */
	ACT_ERR = BIT32(10),     /* QP to ERR; flush both queues after ACT_COMPLETE */
	ACT_INVALIDATE = BIT32(11), /* revoke inv_key (SEND with Invalidate succeeded) */
	ACT_DROP = BIT32(12),      /* packet had no effect; `counter`, `fault` and `rule` say why */
	ACT_DUPLICATE = BIT32(13), /* packet was a duplicate */
	ACT_CUT = BIT32(14),       /* with DROP: the message of the active WQE ends here; the WQE is
				    * for the next one, or completes with wc_status (D1, E) */
	ACT_STORE = BIT32(15),     /* with READ of no bytes: store the 8 of the payload to `va` */
	ACT_FENCE = BIT32(16),     /* the same: everybody sees what came before */
	ACT_LOW = BIT32(17),       /* fewer receives than rq_limit are left */
	ACT_KEEP = BIT32(18),      /* ahead of ePSN: resp_kept_put(), whatever else is to be done */
};

/** Every decision names its rule: rows of tables/responder_rules.def. */
enum responder_rule {
	RULE_NONE,
#define RULE(name, id, text) RULE_##name,
#include "tables/responder_rules.def"
#undef RULE
	RULE_MAX
};
/** "RESP-SEQ-01", or "" for RULE_NONE. */
const char *responder_rule_id(enum responder_rule r);
/** What the rule says, in a few words. */
const char *responder_rule_text(enum responder_rule r);

struct responder_verdict {
	uint32_t act;
	psn_t reply_psn; /* ACT_ACK, ACT_NAK */
	uint32_t reply_msn;
	psn_t first;  /* ACT_READ, ACT_ATOMIC, ACT_REPLAY */
	uint32_t len; /* ACT_READ: bytes */
	uint64_t va;
	uint32_t rkey;     /* or the key to invalidate */
	uint32_t pd;       /* ACT_READ: the caller's, for the answer */
	uint32_t offset;   /* ACT_PLACE_SEND; ACT_ERR: bytes of the open message before */
	uint32_t byte_len; /* ACT_COMPLETE */
	uint32_t imm;      /* immediate, or invalidated R_Key */
	uint8_t syndrome;  /* AETH */
	uint8_t wc_status; /* ibv_wc_status */
	uint8_t wc_opcode; /* ibv_wc_opcode */
	uint8_t wc_flags;
	uint8_t event;     /* ibv_event_type */
	uint8_t fatal;     /* FATAL code, 0: none */
	uint8_t fault;     /* enum wire_fault to charge, 0xff: none */
	uint8_t solicited; /* SE bit of the packet that completes */
	uint16_t rule;     /* enum responder_rule */
	uint16_t counter;  /* enum responder_counter */
	struct responder_saved *saved;
};
#define VERDICT_NO_FAULT 0xff

/** What the verdict counts besides the fault; the pipeline maps these to lib/stats' counters. */
enum responder_counter {
	RC_NONE,
	RC_SEND, /* request accepted, by kind: one count per message start */
	RC_WRITE,
	RC_READ,
	RC_ATOMIC,
	RC_ATOMIC_WRITE,
	RC_FLUSH,
	RC_OUT_OF_SEQUENCE,
	RC_DUPLICATE,
	RC_OUT_OF_BUFFER, /* RNR NAK */
	RC_RNR_OTHER,     /* RNR NAK for another shortage */
	RC_NAK_INVALID,
	RC_NAK_ACCESS,
	RC_NAK_OPERATION,
	RC_NAK_SRQ,
	RC_LOCAL_LENGTH, /* SEND longer than the WQE: NAK-INV too */
	RC_SILENT,       /* dropped without an answer */
};

/** Back to the start: all latches, messages and slots cleared; ePSN = rq_psn, MSN 0. */
void responder_reset(struct responder *r, psn_t rq_psn);

enum {                         /* responder_resync() */
	RESYNC_GAP = BIT32(0), /* PSNs are missing */
	RESYNC_CUT = BIT32(1), /* the open SEND ends here: its WQE is as with ACT_CUT */
};

/**
 * Of a service without ACKs, before responder_query(): a packet that begins a message begins it at
 * any PSN, and one that does not go on with the open message ends that (UC-05, UC-07, UC-09).
 * @return RESYNC_*.
 */
uint32_t responder_resync(struct responder *r, const struct wire_pkt *p);

/** Which facts does this packet need? Cost: a few cycles; touches the state's line only. */
void responder_query(
	const struct responder *r, const struct wire_pkt *p, struct responder_query *q);

/**
 * Judge one request packet (op has OPF_REQUEST or is not OPF_KNOWN) that passed header validation.
 * @param v filled completely.
 * Cost: one cache line of state; no loop for packets at ePSN; slots only for duplicates.
 */
void responder_receive(struct responder *r, const struct wire_pkt *p,
	const struct responder_facts *f, ns_t now, struct responder_verdict *v);

/**
 * Requests that were kept are left behind one that is missing (RESP-SEQ-15).
 * @return false: the peer knows.
 */
bool responder_still_missing(struct responder *r, struct responder_verdict *v);

/** All responses of one READ or ATOMIC have been handed to the port. */
static inline void
responder_answered(struct responder *r)
{
	if (r->unfinished > 0)
		r->unfinished--;
}

/**
 * A READ response could not be made: its region was lost after `sent` responses, or the unit
 * failed. Fatal NAK at the PSN of the response replaced (RESP-NAK-03, RESP-NAK-ROE-02).
 */
void responder_read_failed(struct responder *r, psn_t at, bool access, struct responder_verdict *v);

/** A completion queue was full when a receive completion was due (class G). */
void responder_cq_overflow(struct responder *r, struct responder_verdict *v);

/**
 * Receives were posted, and the caller was waiting for that: `free` are there now.
 * @param v filled if the peer has to hear of them by an ACK that nothing asked for (FLOW-07).
 * @return false: nothing is due.
 */
bool responder_posted(struct responder *r, uint32_t free, struct responder_verdict *v);

/** Credit code (0..30) of the largest encodable count not above n; 31 stands for "no information".
 */
uint8_t responder_credit_code(uint32_t n);

#endif
