/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_STEP_H
#define RESPONDER_STEP_H
/**
 * @file responder_step.h  Each change of a responder's state, written once.
 *
 * The fast path, which has no verdict, and responder_receive() both call these.
 *
 * Owner:   the worker that owns the QP.
 * Memory:  the caller's.
 * Depends: responder.h.
 * Spec:    RESP-01..08, RESP-SEQ-01, RESP-SEQ-02, RESP-RNR-01, RESP-RNR-05, RESP-RNR-08,
 *          RESP-DUP-11, FLOW-02, FLOW-07.
 *
 * Whether a packet may be taken is judged elsewhere: in responder_fast.h for the commonest
 * requests, in resp_checks.c for all. What follows is here.
 */
#include <string.h>

#include "compiler.h"
#include "invariant.h"
#include "responder.h"

#define RESP_OPCODES OP_RC_END

/** Is it a request at all? Anything else is dropped without an answer. */
static ALWAYS_INLINE bool
responder_is_request(const struct wire_pkt *p)
{
	return p->opcode < RESP_OPCODES && !op_has(p->op, OPF_RESPONSE);
}

/** Where a PSN lies, seen from ePSN. */
enum responder_region { REGION_EXPECTED, REGION_DUPLICATE, REGION_AHEAD };

/** Duplicates are E-1 .. E-(2^23-1); E+2^23 is ahead unless the knob says otherwise (AMB-05). */
static ALWAYS_INLINE enum responder_region
responder_region(const struct responder *r, psn_t p)
{
	const uint32_t ahead = psn_distance(p, r->epsn);

	if (ahead == 0 || (r->knobs & RESP_KNOB_RESYNC) != 0)
		return REGION_EXPECTED;
	if (ahead > PSN_HALF || (ahead == PSN_HALF && (r->knobs & RESP_KNOB_HALF_DUP) != 0))
		return REGION_DUPLICATE;
	return REGION_AHEAD;
}

_Static_assert(offsetof(struct responder, msn) == offsetof(struct responder, epsn) + 4 &&
		       sizeof(psn_t) == 4 && PSN_MASK == 0xffffff,
	"both move on at once");

/** A request is accepted: ePSN moves by the PSNs it uses, MSN by the messages it completes. */
static ALWAYS_INLINE void
responder_advance(struct responder *r, uint32_t psns, uint32_t messages)
{
	uint64_t both;

	ASSERT(r->epsn.v <= PSN_MASK && r->msn <= PSN_MASK);
	ASSERT(psns != 0 && psns <= PSN_HALF && messages <= 1);
	ASSERT(!r->latched && r->rnr_until == 0);
	memcpy(&both, &r->epsn, sizeof(both));
	both += (uint64_t)messages << 32 | psns;
	both &= (uint64_t)PSN_MASK << 32 | PSN_MASK;
	memcpy(&r->epsn, &both, sizeof(both));
}

/** The newest request that was taken: every positive ACK names it. */
static ALWAYS_INLINE psn_t
responder_newest(const struct responder *r)
{
	return psn_sub(r->epsn, 1);
}

/** Syndrome of an ACK while `free` receive WQEs are left; UINT32_MAX: not told (FLOW-02). */
static ALWAYS_INLINE uint8_t
responder_ack_syndrome(const struct responder *r, uint32_t free)
{
	if (free == UINT32_MAX || LIKELY((r->knobs & RESP_KNOB_CREDITS) == 0))
		return AETH_ACK | AETH_CREDIT_NONE;
	return AETH_ACK | responder_credit_code(free);
}

/** The same of an answer that is sent: the peer may be waiting for receives from here on. */
static ALWAYS_INLINE uint8_t
responder_offer(struct responder *r, uint32_t free)
{
	const uint8_t syndrome = responder_ack_syndrome(r, free);

	if (UNLIKELY((r->knobs & RESP_KNOB_CREDITS) != 0))
		r->starved = syndrome == AETH_ACK;
	return syndrome;
}

/** A packet of a message is accepted: `open` behind it, with so many bytes of it taken. */
static ALWAYS_INLINE void
responder_message(struct responder *r, enum responder_open open, uint32_t received)
{
	ASSERT(open <= OPEN_WRITE);
	r->open = (uint8_t)open;
	r->received = open != OPEN_NONE ? received : 0;
	r->wqe_active = open == OPEN_SEND;
}

/** An RDMA WRITE of several packets begins: its RETH is for all of them. */
static ALWAYS_INLINE void
responder_write_begins(struct responder *r, const struct wire_reth *reth)
{
	r->va = reth->va;
	r->rkey = reth->rkey;
	r->dma_len = reth->dma_len;
}

/**
 * A request ahead of ePSN. The first sets the latch and draws the one NAK of the gap; what comes
 * after it, or after an RNR NAK, is dropped. One latch serves both (AMB-06): only a request that is
 * accepted at ePSN clears it.
 * @param told out: the peer knows already, drop it.
 */
static ALWAYS_INLINE enum responder_rule
responder_gap(struct responder *r, psn_t p, bool *told)
{
	ASSERT(responder_region(r, p) == REGION_AHEAD);
	*told = r->latched;
	if (*told)
		return r->rnr_until != 0 ? RULE_GAP_AFTER_RNR : RULE_GAP_AGAIN;
	ASSERT(r->rnr_until == 0);
	r->latched = true;
	return psn_distance(p, r->epsn) == PSN_HALF ? RULE_GAP_HALF : RULE_GAP;
}

/**
 * A READ or ATOMIC at ePSN is kept for duplicates, and is unfinished until it is answered (RESP-06,
 * RESP-07, RESP-DUP-11). Slots are used in turn, all that there are: max_dest_rd_atomic may change
 * while the peer can still repeat what was done before. At most so many requests are unfinished, in
 * order, so the slot written over is always that of a finished one.
 */
static ALWAYS_INLINE struct responder_saved *
responder_save(struct responder *r, uint32_t psns, uint8_t kind)
{
	struct responder_saved *s = &r->saved[r->saved_next];

	ASSERT(r->saved != NULL && r->saved_next < r->saved_n);
	ASSERT(r->unfinished < r->saved_n);
	r->saved_next++;
	if (r->saved_next >= r->saved_n)
		r->saved_next = 0;
	r->unfinished++;
	*s = (struct responder_saved){
		.first = r->epsn, .last = psn_add(r->epsn, psns - 1), .kind = kind
	};
	return s;
}

/** The same of a READ, with what it asks for. */
static ALWAYS_INLINE struct responder_saved *
responder_save_read(struct responder *r, uint32_t psns, const struct wire_reth *reth)
{
	struct responder_saved *s = responder_save(r, psns, OP_RC_READ_REQUEST);

	s->va = reth->va;
	s->len = reth->dma_len;
	s->rkey = reth->rkey;
	return s;
}

/** The end of an RNR wait that begins now. */
static ALWAYS_INLINE ns_t
responder_ready_at(const struct responder *r, ns_t now)
{
	return now + wire_rnr_us(r->min_rnr_timer & 31) * TIME_NS_PER_US;
}

/**
 * Was an RNR NAK sent for the request at ePSN at this very time? Then the peer sent this copy
 * before it can have received the NAK, and needs no second one (RESP-RNR-08).
 */
static ALWAYS_INLINE bool
responder_is_waiting(const struct responder *r, ns_t now)
{
	return r->latched && r->rnr_until == responder_ready_at(r, now);
}

/** The request at ePSN cannot be served yet: an RNR NAK is due. The latch is that of a gap. */
static ALWAYS_INLINE void
responder_not_ready(struct responder *r, ns_t now)
{
	r->latched = true;
	r->rnr_until = responder_ready_at(r, now);
	ASSERT(r->rnr_until > now);
}

/** The request at ePSN is accepted at last: the gap or the RNR wait is over. */
static ALWAYS_INLINE void
responder_unlatch(struct responder *r)
{
	r->latched = false;
	r->rnr_until = 0;
}

#endif
