/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOCAL_H
#define LOCAL_H
/**
 * @file local.h  Local destinations: frames for addresses of this process come back without a wire.
 *
 * A QP whose path is local (wire_path.local) has an `out` of its own: the queue behind those of the
 * ports, one for each port. The turn that has made its frames takes them from there as it ends, as
 * a burst of the port that has the address: through all stages, counted as received by it. So it
 * does with what answers them. What is left waits as in any other queue, for the next turn.
 *
 * The worker made these frames itself, so their ICRCs need neither be computed nor
 * judged. They are computed before somebody else sees such a frame: another worker, a port's
 * impairment, the error buffer.
 *
 * A QP of another worker gets its packets as from any port: by that worker's hand-off ring. While
 * such a ring is full, frames stay in their queue, as with a full port.
 *
 * A long payload of a request or of a READ response is on loan: it stays in its sender's memory
 * until the frame is delivered, and goes from there to its place, in one copy. Whoever else looks
 * at the payload has it copied into the frame first, where room for it is kept; so it is done to
 * all that still wait when the turn ends, when a key ends, or when a QP fails: in queues, and in
 * the burst from the packet on by which it fails.
 * So nothing on loan outlives the turn in which its key was looked up, and a request on loan is not
 * completed, for its peer has not acknowledged it.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none; mbufs of the bursts.
 * Depends: worker.h.
 * Spec:    LB-01..06.
 */
#include "worker.h"

#define LOCAL_TURN     128 /* frames of one queue at a look at it: one as a turn begins */
#define LOCAL_ROUNDS   2   /* ... and so many as it ends */
#define LOCAL_LEND_MIN 512 /* bytes: shorter payloads are copied into their frames at once */
#define LOCAL_END      16  /* last bytes of a payload, which are copied behind all others */

_Static_assert(RTE_MAX_ETHPORTS <= QP_OUT_LOCAL, "a DPDK port id leaves that bit of qp.out alone");

/** Frames may go to this `out` from now on: turns look at the queues of local destinations, too. */
static ALWAYS_INLINE void
local_note(struct worker *w, uint8_t out)
{
	if (UNLIKELY((out & QP_OUT_LOCAL) != 0))
		w->outs_n = w->wires_n + w->ports_n;
}

/** Is there a queue of local destinations to be looked at? */
static ALWAYS_INLINE bool
local_is_used(const struct worker *w)
{
	return UNLIKELY(w->outs_n != w->wires_n);
}

/** Is something counted at other queues than those of ports? */
static ALWAYS_INLINE bool
outs_are_settled(const struct worker *w)
{
	return LIKELY(w->outs_n == w->ports_n);
}

/** Frames that a look at this queue takes. */
static inline uint32_t
local_waiting(const struct worker *w, uint32_t out)
{
	return RTE_MIN(w->tx[out].tail - w->tx[out].head, (uint32_t)LOCAL_TURN);
}

/**
 * Take up to so many frames of a queue as a burst of the port that has their address. Until
 * local_over() their ICRCs are not looked at. @return frames taken, of which all, some or none are
 * in the burst; 0: none, as their owners have no room.
 */
uint32_t pipeline_local_receive(struct worker *w, struct burst *b, uint32_t out, uint32_t most);

/** The burst has been served. */
static inline void
local_over(struct worker *w)
{
	w->local_burst = false;
	w->serving = NULL;
}

/** Ahead of a frame, in the headroom of its buffer: where its payload is. */
struct local_loan {
	const uint8_t *from;
	uint16_t at; /* of the frame: where it would stand */
	uint16_t len;
	uint32_t reserved;
};
_Static_assert(sizeof(struct local_loan) <= RTE_PKTMBUF_HEADROOM, "it stands in there");

/** That of a frame. */
static ALWAYS_INLINE struct local_loan *
local_loan(uint8_t *frame)
{
	return (struct local_loan *)(void *)frame - 1;
}

/** Is the frame's payload not in the frame? */
static ALWAYS_INLINE bool
local_is_lent(const struct worker *w, const struct rte_mbuf *m)
{
	return (m->ol_flags & w->lent_flag) != 0;
}

/** Make a frame of a payload that stays where it is. @param at where its place in the frame is. */
static ALWAYS_INLINE void
local_lend(struct worker *w, struct rte_mbuf *m, uint8_t *frame, uint32_t at, const uint8_t *from,
	uint32_t len)
{
	*local_loan(frame) = (struct local_loan){ from, (uint16_t)at, (uint16_t)len, 0 };
	m->ol_flags = w->lent_flag;
	w->lends = true;
}

/** Can a payload of so many bytes stay where it is? */
static ALWAYS_INLINE bool
local_lends(const struct worker *w, uint32_t len)
{
	return len >= LOCAL_LEND_MIN && LIKELY(w->lent_flag != 0);
}

/** The frame's payload is in the frame from now on. */
void pipeline_local_own(const struct worker *w, struct rte_mbuf *m);
/**
 * Packet i of a local burst is the first of those that are served now, or takes the full path:
 * should a QP fail, it and those behind it are made to own their payloads. That of one on the full
 * path may be on loan until it is placed, or kept.
 */
static inline void
local_serve(struct worker *w, const struct burst *b, uint32_t i)
{
	w->serving = b;
	w->serving_at = i;
}

/** The packet's frame, if this is the packet on the full path, and its payload is on loan. */
static ALWAYS_INLINE struct rte_mbuf *
local_lent(const struct worker *w, const struct wire_pkt *p)
{
	const struct burst *b = w->serving;

	if (LIKELY(b == NULL) || p != &b->pkt[w->serving_at] ||
		!local_is_lent(w, b->m[w->serving_at]))
		return NULL;
	return b->m[w->serving_at];
}

/** All frames that wait in queues own their payloads from now on, and those in the burst. */
void pipeline_local_own_all(struct worker *w);
/** Copy the payload of a packet of a local burst to where it goes. */
void pipeline_local_deliver(
	const struct worker *w, struct rte_mbuf *m, const struct wire_pkt *p, uint8_t *to);
/**
 * mem_scatter() of the payload of the packet that takes the full path, which may be on loan.
 * @param pd whose list this is. @return as mem_scatter().
 */
enum mem_fault pipeline_local_scatter(const struct worker *w, const struct wire_pkt *p,
	const struct ring_sge *sge, uint32_t n, uint32_t pd, uint64_t offset);
/** The same, whatever packet it is. */
static ALWAYS_INLINE enum mem_fault
payload_scatter(const struct worker *w, const struct wire_pkt *p, const struct ring_sge *sge,
	uint32_t n, uint32_t pd, uint64_t offset)
{
	if (UNLIKELY(w->serving != NULL))
		return pipeline_local_scatter(w, p, sge, n, pd, offset);
	return mem_scatter(w->mem, sge, n, pd, offset, wire_payload(p), p->payload_len);
}

/** A local frame is going to be looked at by others: write its ICRC, and all that is before it. */
void pipeline_local_seal(struct worker *w, struct rte_mbuf *m);
/**
 * Hand-off: some of the frames are local ones of other workers for impaired ports of this one.
 * Their impairment has its way with them. @return the others, which are first in the burst then.
 */
uint32_t pipeline_local_arrive(struct worker *w, struct burst *b);
/** What was counted at other queues is their ports'. Cost: a block of counters for each. */
void pipeline_local_settle(struct worker *w);

#endif
