/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PRIV_H
#define REQUESTER_PRIV_H
/**
 * @file requester_priv.h  What the requester's files share; nobody else includes it.
 *
 * requester_step.h  changes of the state that the fast path makes too
 * requester.c     reset, drain, rule texts, credits         QP-09, FLOW-01
 * req_next.c      the next packet                           REQ-01, -07, -12..14, CC-06
 * req_start.c     may a work request start; its opcodes     REQ-02, -10, -11, -18, FLOW-04
 * req_response.c  entry of responses, PSN range             REQ-15, REQ-CLS-E, FLOW-05
 * req_ack.c       what a PSN acknowledges, positive ACKs    REQ-03, REQ-04, REQ-17
 * req_read.c      READ and ATOMIC responses                 REQ-05, REQ-06, REQ-IMPL-09
 * req_gap.c       READ responses behind a missing one       REQ-IMPL-02, REQ-IMPL-04
 * req_nak.c       NAK, RNR NAK, reserved syndromes          REQ-NAK, REQ-RNR
 * req_timer.c     timers, retries, implied NAK              TMR, REQ-RETRY, REQ-IMPL
 * req_pace.c      how much is in flight on a lossy link     TMR-07, REQ-NAK-01
 * req_unacked.c   services without ACKs                     UC-02, UC-15
 * req_fault.c     local faults, classes C and F             REQ-CLS-B-01, -05, REQ-19
 *
 * Going back always means going back to `una`: whatever else a NAK says is either acknowledged by
 * it or lies behind an unanswered READ or ATOMIC, where `una` stands then.
 *
 * Owner:   the QP's worker.
 * Memory:  the caller's.
 * Depends: base, wire.
 */
#include "compiler.h"
#include "requester.h"
#include "requester_step.h"

#define MSN_MASK      0xffffffu
#define PSNS_MAX      REQUESTER_PSNS_MAX
#define NO_FAULT      0xff
#define RNR_FOREVER   7       /* rnr_retry (REQ-RNR-06) */
#define RNR_NS_PER_US 1001ull /* of the peer's clock: as with requester_wait_ns() */

/** Does anything answer its requests? */
static ALWAYS_INLINE bool
is_acked(const struct requester *r)
{
	return wire_is_acked(r->transport);
}

/** Is the work request an RDMA READ? */
static ALWAYS_INLINE bool
is_read(const struct requester_wr *w)
{
	return w->opcode == WR_RDMA_READ;
}

/** Is it answered by a READ response without data? */
static ALWAYS_INLINE bool
is_placement(const struct requester_wr *w)
{
	return verbs_wr_has(w->opcode, WR_HAS_ANSWER);
}

/** A verdict that says nothing yet. */
static ALWAYS_INLINE struct requester_verdict
verdict_blank(const struct requester *r)
{
	return (struct requester_verdict){ .head_was = r->head, .fault = NO_FAULT };
}

/** The packet is dropped by this rule, and counted. */
static inline void
verdict_drop(struct requester_verdict *v, enum requester_rule rule)
{
	/* Something that was acknowledged on the way stays acknowledged, what was kept is kept. */
	if ((v->act & (REQACT_COMPLETE | REQACT_TIMER | REQACT_PLACE)) == 0)
		v->act |= REQACT_DROP;
	v->rule = (uint16_t)rule;
}

/** Was something lost of late? Then silence may be another loss. */
static ALWAYS_INLINE bool
req_is_lossy(const struct requester *r)
{
	return !requester_is_free(r) || r->holes;
}

/** Does silence of some round trips bring a probe? */
static ALWAYS_INLINE bool
req_probes(const struct requester *r)
{
	return req_is_lossy(r) || (r->knobs & REQ_KNOB_PROBE) != 0;
}

/** What holds of a requester between two calls, whatever its peer sent. */
static ALWAYS_INLINE void
req_check_state(const struct requester *r)
{
	ASSERT(r->una.v <= PSN_MASK && r->cur.v <= PSN_MASK && r->next.v <= PSN_MASK);
	ASSERT(psn_distance(r->next, r->una) <= PSNS_MAX);
	ASSERT(psn_distance(r->cur, r->una) <= psn_distance(r->next, r->una));
	ASSERT(r->sending - r->head <= r->fresh - r->head);
	ASSERT(r->dead || r->fresh - r->head <= psn_distance(r->next, r->una) + 1);
	ASSERT(r->dead || r->sending - r->head <= psn_distance(r->cur, r->una));
	ASSERT(r->dead || r->fresh != r->head || psn_eq(r->next, r->una));
	ASSERT(r->reply_psns <= psn_distance(r->cur, r->una));
	ASSERT(r->reads <= r->fresh - r->head);
	ASSERT(!r->dead || (!r->timing && !r->waiting_rnr));
	ASSERT(!r->waiting_rnr || psn_eq(r->cur, r->una));
	ASSERT(!r->waiting_rnr || !r->timing);
	ASSERT(!r->doubting || r->timing || r->dead);
	ASSERT(!r->probing || r->timing || r->dead);
	ASSERT(r->dead || !r->failed || r->failed_at - r->head <= r->fresh - r->head);
	ASSERT(!r->recovering || psn_between(r->recover, r->una, r->next));
	ASSERT(!r->patching || !psn_eq(r->cur, r->una) || r->dead);
	ASSERT(!(r->patching | r->patched) || req_is_lossy(r) || r->dead);
	ASSERT(r->timed_at == 0 || psn_between(r->timed, r->una, r->next));
}

/** What holds of the verdict on a response or a timer. */
static ALWAYS_INLINE void
req_check_verdict(const struct requester *r, const struct requester_verdict *v)
{
	ASSERT(v->rule < REQRULE_MAX);
	ASSERT(((v->act & REQACT_COMPLETE) != 0) == (v->completed != 0));
	ASSERT((v->act & REQACT_COMPLETE) == 0 || r->head == v->head_was + v->completed);
	ASSERT((v->act & REQACT_ERROR) == 0 || v->failed == v->head_was + v->completed);
	ASSERT((v->act & REQACT_ERROR) == 0 || (r->dead && v->wc_status != 0));
	ASSERT((v->act & REQACT_EVENT) == 0 || r->dead);
	ASSERT((v->act & (REQACT_PLACE | REQACT_ATOMIC)) != (REQACT_PLACE | REQACT_ATOMIC));
	ASSERT((v->act & REQACT_PLACE) == 0 || is_read(requester_slot(r, v->position)));
	ASSERT((v->act & REQACT_DROP) == 0 || (v->act & ~(uint32_t)REQACT_DROP) == 0);
	ASSERT((v->act & REQACT_MIGRATE) == 0 || (v->act & REQACT_RESEND) != 0);
	ASSERT((v->act & REQACT_DRAINED) == 0 || r->draining);
}

/** How an error ends: everything but the completion status and FATAL code is the caller's. */
static inline void
fail_head(struct requester *r, struct requester_verdict *v, uint8_t status, uint8_t fatal)
{
	v->act &= ~(uint32_t)(REQACT_RESEND | REQACT_MIGRATE | REQACT_DRAINED | REQACT_DROP);
	v->act |= REQACT_ERROR | REQACT_TIMER;
	v->failed = r->head;
	v->wc_status = status;
	v->fatal = fatal;
	r->dead = true;
	r->timing = false;
	r->waiting_rnr = false;
}

/* ---- req_start.c */

enum segment_kind { SEGMENT_NONE, SEGMENT_DATA, SEGMENT_READ, SEGMENT_ATOMIC, SEGMENT_STORE };
enum { AT_MIDDLE = 0, AT_FIRST = 1, AT_LAST = 2, AT_ONLY = AT_FIRST | AT_LAST };

/** One row of tables/segments.def; all zero for opcodes that are not listed. */
struct segment {
	uint8_t op[4]; /* by AT_* */
	uint8_t kind;  /* enum segment_kind */
	uint8_t se;    /* PKT_SE or 0 */
	uint8_t wqe;
	uint8_t bytes; /* of payload, where it is not SEGMENT_DATA */
};

#define WR_OPCODES 16
extern const struct segment req_segments[WR_OPCODES + 1];

/** How a work request becomes packets; that of an unknown opcode fails it. */
static ALWAYS_INLINE const struct segment *
segment_of(const struct requester_wr *w)
{
	return &req_segments[LIKELY(w->opcode < WR_OPCODES) ? w->opcode : WR_OPCODES];
}

/** May the work request `fresh` start? REQ_SEND, or what it waits for. */
enum requester_stop req_may_start(struct requester *r, struct requester_wr *w);

/* ---- req_ack.c */

/**
 * What lies below PSN `p` is acknowledged, by a response at `p`, or by none. Completes, reloads,
 * restarts the timer.
 */
enum requester_reach req_acknowledge(
	struct requester *r, psn_t p, ns_t now, struct requester_verdict *v);
/** una and head were moved by hand from `from`, by responses: what follows from progress. */
void req_moved(struct requester *r, psn_t from, ns_t now, struct requester_verdict *v);
/** A positive ACK of PSN una + `ahead`. */
void req_ack(struct requester *r, uint32_t ahead, ns_t now, struct requester_verdict *v);

/* ---- req_read.c */

/** A READ response, of any kind. */
void req_read_response(
	struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v);
/** An ATOMIC ACKNOWLEDGE. */
void req_atomic_response(
	struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v);
/** The response at una is wrong: BAD_RESP_ERR. */
void req_bad_response(
	struct requester *r, enum requester_rule rule, uint8_t fatal, struct requester_verdict *v);

/* ---- req_gap.c */

/** Responses of a READ that came before one below them, by their places, the first one's is 0. */
struct req_piece {
	uint32_t upto; /* all below it, of a READ that is not the oldest */
	uint32_t begin;
	uint32_t end; /* 0: none from `begin` on */
};
#define REQ_PIECE_MAX UINT16_MAX
#define REQ_KEEP_BITS 10 /* of each of the three with req.read_gap=keep */
#define REQ_KEEP_MAX  (BIT32(REQ_KEEP_BITS) - 1)

/** What was kept of a READ that is under way. */
static ALWAYS_INLINE struct req_piece
req_piece(const struct requester *r, const struct requester_wr *w)
{
	if ((r->knobs & REQ_KNOB_READ_KEEP) != 0)
		return (struct req_piece){ w->imm >> 2 * REQ_KEEP_BITS,
			w->imm >> REQ_KEEP_BITS & REQ_KEEP_MAX, w->imm & REQ_KEEP_MAX };
	return (struct req_piece){ 0, w->imm >> 16, w->imm & REQ_PIECE_MAX };
}

/**
 * Packets in flight with the responses that they lead to: beyond una, or beyond what was kept; of
 * the few after a timeout no more, whatever was kept (TMR-07).
 */
static ALWAYS_INLINE uint32_t
req_flying(const struct requester *r)
{
	const uint32_t asked = requester_in_flight(r);
	uint32_t flying = psn_distance(r->cur, r->una);

	if (LIKELY(!r->holes) || psn_cmp(r->heard, r->una) < 0)
		return flying;
	flying = psn_cmp(r->cur, r->heard) > 0 ? psn_distance(r->cur, r->heard) - 1 : 0;
	return r->open < r->knee && flying < asked ? asked : flying;
}

/** The window, as far as losses leave it open. */
static ALWAYS_INLINE uint32_t
req_room(const struct requester *r)
{
	return r->window < r->open ? r->window : r->open;
}

/** Of the READ: is the response at this PSN the last one missing before what was kept? */
static ALWAYS_INLINE bool
req_meets_piece(const struct requester *r, const struct requester_wr *w, psn_t at)
{
	return UNLIKELY(w->imm != 0) && psn_distance(at, w->first) + 1 == req_piece(r, w).begin;
}

enum req_kept {
	KEPT_NOTHING, /* as if nothing could be kept */
	KEPT_BEFORE,  /* it has come before */
	KEPT_FIRST,   /* behind a gap */
	KEPT_MORE,    /* of the same piece */
};
/** A READ response beyond the one due at una: keep it, if it may be kept. */
enum req_kept req_keep(
	struct requester *r, const struct wire_pkt *p, ns_t now, struct requester_verdict *v);
/** The response at `at` is the next one due: how many from there on were kept? No longer is. */
uint32_t req_piece_joins(const struct requester *r, struct requester_wr *w, psn_t at);

/** With req.read_gap=keep: the response at `p` beyond una was kept. */
void req_hole(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v);
/**
 * A retry for this reason: will it do to ask for the responses missing at una, and to go on with
 * the rest? @return true: the next packet does.
 */
bool req_patch(struct requester *r, enum requester_rule rule, struct requester_verdict *v);
/**
 * With req.gap=patch: will it do to send the request at una again, and to go on with the rest,
 * which the peer keeps if it came? @return true: the next packet is that request.
 */
bool req_patch_request(struct requester *r, struct requester_verdict *v);
/** ... or has the peer shown that it does not keep it? */
bool req_peer_keeps(const struct requester *r);
/** A loss is met by going back: how many more are? */
void req_not_patched(struct requester *r);
/** Have patches brought so little that the next loss will be met by going back? */
static ALWAYS_INLINE bool
req_was_in_vain(const struct requester *r)
{
	return r->alone > r->keeps;
}
/** una has moved by so many: what does that say of a peer to which a request was sent alone? */
static ALWAYS_INLINE void
req_patch_brought(struct requester *r, uint32_t psns)
{
	const bool more = psns > 1;

	ASSERT(r->alone <= r->keeps + 1u);
	if (!r->patched || more)
		r->alone = 0;
	else if (requester_outstanding(r)) /* else there was no more */
		r->alone += r->alone <= r->keeps;
	if (UNLIKELY(r->patched) && more) {
		r->keeps = 1;
		r->in_vain = 0;
	}
}
/** una has moved, `joined`: to the end of what was missing there. Is more missing behind it? */
void req_hole_filled(struct requester *r, bool joined, ns_t now, struct requester_verdict *v);
/** The packet at `cur` would ask for what was kept: not any more. @return did anything change? */
bool req_skip(struct requester *r);

/* ---- req_nak.c */

enum syndrome_kind { SYNDROME_ACK, SYNDROME_RNR, SYNDROME_NAK, SYNDROME_RESERVED };
/** What the syndrome of an AETH means. */
enum syndrome_kind req_syndrome_kind(const struct requester *r, uint8_t syndrome);
/** An ACKNOWLEDGE at PSN `p` with any other than an ACK syndrome. */
void req_nak(struct requester *r, psn_t p, uint8_t syndrome, ns_t now, struct requester_verdict *v);

/* ---- req_timer.c */

/** One of the retries that retry_cnt counts: go back to una, or give up. */
void req_retry(struct requester *r, enum requester_counter cause, enum requester_rule rule,
	struct requester_verdict *v);
/** What was acknowledged is beyond `cur`: a copy of an earlier pass was answered. */
void req_overtook(struct requester *r, struct requester_verdict *v);
/** Go back to una. */
void req_rewind(struct requester *r, struct requester_verdict *v);
#define REQ_PROBES_MOST 3
#define REQ_PROBE_GRACE (20 * TIME_NS_PER_US) /* until a peer that is not idle answers */
/**
 * The timer runs: where req_probes(), let it end after some round trips of silence. In place, for
 * on a link that loses packets each response does it.
 */
static ALWAYS_INLINE void
req_probe_arm(struct requester *r, ns_t now)
{
	const ns_t round = r->rtt > r->rtt_min ? r->rtt : 2 * (ns_t)r->rtt_min;
	const ns_t most = requester_wait_ns(r->timeout) / 4 * 3;
	const ns_t wait = (2 * round + REQ_PROBE_GRACE) << r->probes;

	if (!r->timing || r->rtt_min == 0 || r->probes == REQ_PROBES_MOST)
		return;
	/* One too many would send all of it again. */
	if (UNLIKELY((ns_t)r->rtt_min + r->rtt_min / 4 > most) && !req_peer_keeps(r))
		return;
	r->probing = 1;
	r->deadline = now + (wait < most ? wait : most);
}
enum beyond { BEYOND_ACK, BEYOND_NAK, BEYOND_DATA };
/** A positive ACK, any other, or data at PSN `p` beyond the READ or ATOMIC response due at una. */
void req_implied_nak(struct requester *r, psn_t p, enum beyond kind, enum requester_rule rule,
	ns_t now, struct requester_verdict *v);
/** One at `p` may have overtaken the response at una: it is missed when it does not come soon. */
void req_overtaken(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v);

/* ---- req_pace.c */

enum req_lost { REQ_LOST_TOLD, REQ_LOST_PROBE, REQ_LOST_TIMEOUT };

/** A resend begins, of everything that is in flight now: fewer packets from here on. */
void req_pace_lost(struct requester *r, enum req_lost how);
/** As if nothing had been lost: the whole window. */
void req_pace_forget(struct requester *r);
/** Neither these nor the round trips of the path are known any more. */
void req_path_forget(struct requester *r);
/** What a response at PSN `p` answers, which is sent and not acknowledged, or was just before. */
const struct requester_wr *req_answered(const struct requester *r, psn_t p);
/** Is `sent_at` of a SEND or WRITE that of a copy which asks (REQ-07)? */
static ALWAYS_INLINE bool
req_is_copied(const struct requester_wr *w)
{
	return w->resumed != 0 && !requester_is_read_or_atomic(w);
}
/** With the response at PSN `p` that to `timed` is here: a round trip has ended. */
void req_pace_round(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v);
/** `psns` more are acknowledged while `open` limits. */
static ALWAYS_INLINE void
req_pace_progress(struct requester *r, uint32_t psns)
{
	r->got = psns < (uint32_t)(UINT8_MAX - r->got) ? (uint8_t)(r->got + psns) : UINT8_MAX;
	if (r->open < r->knee)
		r->open = r->knee - r->open < psns ? r->knee : r->open + psns;
}

/* ---- req_fault.c */

/** The head is the work request with the local fault: report it. */
void req_report_fault(struct requester *r, struct requester_verdict *v);

/** Has the work request with a local fault become the oldest one, so that it is reported now? */
static ALWAYS_INLINE bool
fault_is_due(const struct requester *r)
{
	return r->failed && !r->dead && r->head == r->failed_at;
}

#endif
