/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_FAST_H
#define RESPONDER_FAST_H
/**
 * @file responder_fast.h  The commonest requests without facts and verdict.
 *
 * Owner:   the worker that owns the QP.
 * Memory:  the caller's.
 * Depends: responder_step.h.
 * Spec:    RESP-01, RESP-02, RESP-05, RESP-06: what responder_receive() does with the same packets.
 *
 * A WRITE ONLY or SEND ONLY at ePSN, between messages, of a QP that owes no explanation: the only
 * open question is where its payload goes. A caller that has found a place for it takes it with
 * responder_take_fast(); one that has not leaves everything to responder_receive(). The same goes
 * for a READ that one packet answers, where the question is what its response is made from. The
 * predicates may be stricter than the rules but never laxer.
 */
#include <string.h>

#include "compiler.h"
#include "resp_kept.h"
#include "responder.h"
#include "responder_step.h"

_Static_assert(
	offsetof(struct responder, knobs) == offsetof(struct responder, pmtu) + 2 &&
		offsetof(struct responder, open) == offsetof(struct responder, pmtu) + 4 &&
		offsetof(struct responder, latched) == offsetof(struct responder, pmtu) + 5 &&
		offsetof(struct responder, access) == offsetof(struct responder, pmtu) + 6,
	"the word that responder_is_fast() looks at (the hosts are little-endian)");

/**
 * Does the QP stand like this, and owe no explanation?
 * @param open of its message. @param access right that it must grant, ACCESS_*; 0: none.
 */
static ALWAYS_INLINE bool
responder_stands(const struct responder *r, enum responder_open open, access_t access)
{
	const uint64_t want = (uint64_t)access << 48 | (uint64_t)open << 32;
	const uint64_t mask = (uint64_t)access << 48 | UINT64_C(0xffff) << 32 | /* open, latched */
			      (uint64_t)(RESP_KNOB_CREDITS | RESP_KNOB_RQ_LIMIT | RESP_KNOB_RESYNC)
				      << 16;
	uint64_t word;

	memcpy(&word, &r->pmtu, sizeof(word));
	return LIKELY(((word ^ want) & mask) == 0);
}

/**
 * responder_is_fast() without the PSN: what no packet of the fast path between messages changes.
 * @param access as above.
 */
static ALWAYS_INLINE bool
responder_fits_fast(const struct responder *r, const struct wire_pkt *p, access_t access)
{
	return responder_stands(r, OPEN_NONE, access) && LIKELY(p->payload_len <= r->pmtu);
}

/** The same, and the PSN is the expected one. */
static ALWAYS_INLINE bool
responder_is_fast(const struct responder *r, const struct wire_pkt *p, access_t access)
{
	return responder_fits_fast(r, p, access) && LIKELY(p->psn.v == r->epsn.v);
}

/**
 * A READ of so many bytes that one packet answers, but for its PSN and key, while nothing else is
 * unfinished. The peer cannot have the responses of this burst: they count against its depth, too
 * (RESP-NAK-INV-10). @param access as above.
 */
static ALWAYS_INLINE bool
responder_fits_fast_read(
	const struct responder *r, const struct wire_pkt *p, uint32_t dma_len, access_t access)
{
	return responder_fits_fast(r, p, access) && LIKELY((p->payload_len | p->pad) == 0) &&
	       LIKELY(dma_len - 1 < r->pmtu) &&
	       LIKELY(r->unfinished == 0 && r->at_once < r->max_dest_rd_atomic);
}

/** Is it a packet of an RDMA WRITE of several, without an immediate? */
static ALWAYS_INLINE bool
responder_is_part(uint8_t opcode)
{
	return (uint8_t)(opcode - OP_RC_WRITE_FIRST) <= OP_RC_WRITE_LAST - OP_RC_WRITE_FIRST;
}
_Static_assert(
	OP_RC_WRITE_MIDDLE == OP_RC_WRITE_FIRST + 1 && OP_RC_WRITE_LAST == OP_RC_WRITE_FIRST + 2,
	"nothing else is between them");

/**
 * Such a packet, but for its PSN and key: it begins a message or goes on with the open one, and has
 * the right length (RESP-05). @param reth of a FIRST. @param access as above.
 */
static ALWAYS_INLINE bool
responder_fits_fast_part(const struct responder *r, const struct wire_pkt *p,
	const struct wire_reth *reth, access_t access)
{
	const bool first = p->opcode == OP_RC_WRITE_FIRST;
	const uint32_t dma_len = first ? reth->dma_len : r->dma_len;
	const uint64_t sum = (uint64_t)(first ? 0 : r->received) + p->payload_len;

	if (UNLIKELY(!responder_stands(r, first ? OPEN_NONE : OPEN_WRITE, access)))
		return false;
	if (p->opcode == OP_RC_WRITE_LAST)
		return LIKELY(p->payload_len - 1u < r->pmtu) && LIKELY(sum == dma_len);
	return LIKELY(p->payload_len == r->pmtu) && LIKELY(p->pad == 0) && LIKELY(sum <= dma_len) &&
	       LIKELY(dma_len >> 31 == 0); /* the longest message has a byte more (REQ-18) */
}

/**
 * A MIDDLE of the open SEND, but for its PSN, that goes on with its receive WQE. Whether that has
 * room for it is the caller's to know.
 */
static ALWAYS_INLINE bool
responder_fits_fast_middle(const struct responder *r, const struct wire_pkt *p)
{
	return responder_stands(r, OPEN_SEND, 0) && LIKELY(p->payload_len == r->pmtu) &&
	       LIKELY(p->pad == 0);
}

/** A SEND or WRITE behind ePSN: it changes nothing and is acknowledged again (RESP-DUP-01). */
static ALWAYS_INLINE bool
responder_is_fast_duplicate(const struct responder *r, const struct wire_pkt *p)
{
	return responder_region(r, p->psn) == REGION_DUPLICATE && responder_is_request(p) &&
	       op_has(p->op, OPF_SEND | OPF_WRITE) && (r->knobs & RESP_KNOB_CREDITS) == 0;
}

/** A request ahead of ePSN: responder_gap() says what comes of it. */
static ALWAYS_INLINE bool
responder_is_fast_gap(const struct responder *r, const struct wire_pkt *p)
{
	return responder_region(r, p->psn) == REGION_AHEAD && responder_is_request(p) &&
	       (r->knobs & RESP_KNOB_KEEP) == 0;
}

/** A request ahead of ePSN that waits for its turn; the peer knows of the gap (RESP-SEQ-14). */
static ALWAYS_INLINE bool
responder_keeps(const struct responder *r, const struct wire_pkt *p)
{
	return (r->knobs & RESP_KNOB_KEEP) != 0 && r->latched && r->rnr_until == 0 &&
	       responder_region(r, p->psn) == REGION_AHEAD && resp_kept_fits(r->epsn, p->psn) &&
	       responder_is_request(p);
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
	       (r->knobs & (RESP_KNOB_RESYNC | RESP_KNOB_EARLY_DROP | RESP_KNOB_RQ_LIMIT)) == 0;
}

/** The message of one packet is taken. */
static ALWAYS_INLINE void
responder_take_fast(struct responder *r)
{
	ASSERT(r->open == OPEN_NONE && r->received == 0 && !r->wqe_active);
	responder_advance(r, 1, 1);
}

/** A packet of responder_fits_fast_part() is taken. @param reth of a FIRST. */
static ALWAYS_INLINE void
responder_take_fast_part(
	struct responder *r, const struct wire_pkt *p, const struct wire_reth *reth)
{
	const bool last = p->opcode == OP_RC_WRITE_LAST;

	ASSERT((r->open == OPEN_NONE && r->received == 0) == (p->opcode == OP_RC_WRITE_FIRST));
	if (p->opcode == OP_RC_WRITE_FIRST)
		responder_write_begins(r, reth);
	responder_advance(r, 1, last);
	responder_message(r, last ? OPEN_NONE : OPEN_WRITE, r->received + p->payload_len);
}

/** A packet of responder_fits_fast_middle() is taken. */
static ALWAYS_INLINE void
responder_take_fast_middle(struct responder *r, const struct wire_pkt *p)
{
	ASSERT(r->open == OPEN_SEND && r->wqe_active);
	responder_advance(r, 1, 0);
	responder_message(r, OPEN_SEND, r->received + p->payload_len);
}

/** The READ is taken, and its response made. */
static ALWAYS_INLINE void
responder_take_fast_read(struct responder *r, const struct wire_reth *reth)
{
	responder_save_read(r, 1, reth);
	responder_answered(r);
	r->at_once++;
	responder_take_fast(r);
}

/** The burst is over: its responses are on their way. */
static ALWAYS_INLINE void
responder_burst_done(struct responder *r)
{
	r->at_once = 0;
}

#endif
