/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_FAST_H
#define RESPONDER_FAST_H
/**
 * @file responder_fast.h  The commonest requests without facts and verdict.
 *
 * Owner:   the worker that owns the QP.
 * Memory:  the caller's.
 * Depends: responder.h.
 * Spec:    RESP-01, RESP-02, RESP-05: what responder_receive() does with the same packets.
 *
 * A WRITE ONLY or SEND ONLY at ePSN, between messages, of a QP that owes no explanation: the only
 * open question is where its payload goes. A caller that has found a place for it takes it with
 * responder_take_fast(); one that has not leaves everything to responder_receive(). The predicate
 * may be stricter than the rules but never laxer.
 */
#include <string.h>

#include "compiler.h"
#include "responder.h"

_Static_assert(
	offsetof(struct responder, knobs) == offsetof(struct responder, pmtu) + 2 &&
		offsetof(struct responder, open) == offsetof(struct responder, pmtu) + 4 &&
		offsetof(struct responder, latched) == offsetof(struct responder, pmtu) + 5 &&
		offsetof(struct responder, access) == offsetof(struct responder, pmtu) + 6,
	"the word that responder_is_fast() looks at (the hosts are little-endian)");

/**
 * responder_is_fast() but for the PSN: what no plain packet changes.
 * @param access right that the QP must grant, value of ibv_access_flags; 0: none.
 */
static ALWAYS_INLINE bool
responder_fits_fast(const struct responder *r, const struct wire_pkt *p, uint8_t access)
{
	const uint64_t want = (uint64_t)access << 48;
	const uint64_t mask = want | UINT64_C(0xffff) << 32 | /* open, latched */
			      (uint64_t)(RESP_KNOB_CREDITS | RESP_KNOB_RESYNC) << 16;
	uint64_t word;

	memcpy(&word, &r->pmtu, sizeof(word));
	return LIKELY(((word ^ want) & mask) == 0) && LIKELY(p->payload_len <= r->pmtu);
}

static ALWAYS_INLINE bool
responder_is_fast(const struct responder *r, const struct wire_pkt *p, uint8_t access)
{
	return responder_fits_fast(r, p, access) && LIKELY(p->psn.v == r->epsn.v);
}

/** A SEND or WRITE behind ePSN: it changes nothing and is acknowledged again (RESP-DUP-01). */
static ALWAYS_INLINE bool
responder_is_fast_duplicate(const struct responder *r, const struct wire_pkt *p)
{
	return psn_distance(p->psn, r->epsn) > PSN_HALF && op_has(p->op, OPF_REQUEST) &&
	       op_has(p->op, OPF_SEND | OPF_WRITE) && p->opcode < 0x20 &&
	       (r->knobs & (RESP_KNOB_CREDITS | RESP_KNOB_RESYNC)) == 0;
}

/**
 * A request ahead of ePSN when the gap was told already: nothing happens (RESP-SEQ-02,
 * RESP-RNR-05). The PSN half way round is left to whoever knows the knobs.
 */
static ALWAYS_INLINE bool
responder_is_fast_ahead(const struct responder *r, const struct wire_pkt *p)
{
	uint32_t ahead = psn_distance(p->psn, r->epsn);

	return r->latched && ahead - 1 < PSN_HALF - 1 && p->opcode < 0x20 &&
	       !op_has(p->op, OPF_RESPONSE) && (r->knobs & RESP_KNOB_RESYNC) == 0;
}

/** The first request ahead of ePSN, which draws the NAK (RESP-SEQ-01): see above. */
static ALWAYS_INLINE bool
responder_is_fast_gap(const struct responder *r, const struct wire_pkt *p)
{
	uint32_t ahead = psn_distance(p->psn, r->epsn);

	return !r->latched && ahead - 1 < PSN_HALF - 1 && p->opcode < 0x20 &&
	       !op_has(p->op, OPF_RESPONSE) && (r->knobs & RESP_KNOB_RESYNC) == 0;
}

/**
 * A SEND ONLY at ePSN that asks for a receive WQE and is well formed: without one it gets an RNR
 * NAK (RESP-RNR-01). Whether there is one is the caller's to know.
 */
static ALWAYS_INLINE bool
responder_is_unready(const struct responder *r, const struct wire_pkt *p)
{
	return psn_eq(p->psn, r->epsn) && p->opcode == OP_RC_SEND_ONLY &&
	       p->payload_len <= r->pmtu && r->open == OPEN_NONE &&
	       (r->knobs & (RESP_KNOB_RESYNC | RESP_KNOB_EARLY_DROP)) == 0;
}

static ALWAYS_INLINE ns_t
responder_ready_at(const struct responder *r, ns_t now)
{
	return now + wire_rnr_us(r->min_rnr_timer & 31) * TIME_NS_PER_US;
}

/**
 * Did an RNR NAK answer the same SEND in this very moment? Then it was sent before its peer can
 * have heard the NAK, which tells it all (RESP-RNR-08).
 */
static ALWAYS_INLINE bool
responder_is_unready_again(const struct responder *r, ns_t now)
{
	return r->latched && r->rnr_until == responder_ready_at(r, now);
}

/** The RNR NAK is on its way. */
static ALWAYS_INLINE void
responder_not_ready(struct responder *r, ns_t now)
{
	r->latched = true;
	r->rnr_until = responder_ready_at(r, now);
}

/** Which rule keeps silent then. */
static ALWAYS_INLINE enum responder_rule
responder_ahead_rule(const struct responder *r)
{
	return r->rnr_until != 0 ? RULE_GAP_AFTER_RNR : RULE_GAP_AGAIN;
}

_Static_assert(offsetof(struct responder, msn) == offsetof(struct responder, epsn) + 4 &&
		       sizeof(psn_t) == 4 && PSN_MASK == 0xffffff,
	"both move on at once");

/** The message is accepted: ePSN and MSN move on. */
static ALWAYS_INLINE void
responder_take_fast(struct responder *r)
{
	uint64_t both;

	memcpy(&both, &r->epsn, sizeof(both));
	both = (both + UINT64_C(0x100000001)) & UINT64_C(0xffffff00ffffff);
	memcpy(&r->epsn, &both, sizeof(both));
}

#endif
