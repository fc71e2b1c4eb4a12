/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ACKS_H
#define ACKS_H
/**
 * @file acks.h  The ACKs and NAKs that a burst makes QPs owe, on the worker's lists.
 *
 * Owner:   the worker's lcore.
 * Memory:  none.
 * Depends: worker.h.
 */
#include "worker.h"

/**
 * PSN word and AETH as they stand in the frame. It is made before anything else has to be kept: a
 * PSN that is spilled as four bytes and read back as eight stalls store forwarding.
 */
static ALWAYS_INLINE uint64_t
ack_tail(uint8_t syndrome, uint32_t p, uint32_t msn)
{
	return __builtin_bswap64((uint64_t)p << 32 | (uint32_t)syndrome << 24 | (msn & PSN_MASK));
}

/** Owe this ACK at the end of the burst. @return false: nothing was done, the list is full. */
static ALWAYS_INLINE bool
ack_owe(struct worker *w, struct qp *qp, uint64_t tail)
{
	if ((qp->flags & QPF_DIRTY) == 0) {
		if (UNLIKELY(w->dirty_n == PIPELINE_BURST))
			return false;
		qp->flags |= QPF_DIRTY;
		qp->dirty_at = (uint8_t)w->dirty_n;
		w->dirty[w->dirty_n++] = qp;
	}
	ASSERT(qp->dirty_at < w->dirty_n && w->dirty[qp->dirty_at] == qp);
	w->dirty_tail[qp->dirty_at] = tail;
	return true;
}

/** End of a burst: one ACK for each QP that owes one. */
void pipeline_acks_send(struct worker *w);
/** What nak_owe() was told so far. */
void pipeline_flush_naks(struct worker *w);
/** Send the NAKs that wait, if there are any. */
static ALWAYS_INLINE void
naks_send(struct worker *w)
{
	if (UNLIKELY(w->naks_n != 0))
		pipeline_flush_naks(w);
}

/** The QP does not owe it any more. @return it, or 0: there was none. */
static inline uint64_t
ack_take(struct worker *w, struct qp *qp)
{
	if ((qp->flags & QPF_DIRTY) == 0)
		return 0;
	ASSERT(qp->dirty_at < w->dirty_n && w->dirty[qp->dirty_at] == qp);
	qp->flags &= ~(uint32_t)QPF_DIRTY;
	w->dirty[qp->dirty_at] = NULL;
	return w->dirty_tail[qp->dirty_at];
}

/** Send the ACK that the QP owes: something else is to leave behind it (stage_07_answers.c). */
void pipeline_ack_flush(struct worker *w, struct qp *qp);
/** The same, without a call if it owes none. */
static ALWAYS_INLINE void
pipeline_ack_now(struct worker *w, struct qp *qp)
{
	if (UNLIKELY((qp->flags & QPF_DIRTY) != 0))
		pipeline_ack_flush(w, qp);
}

/**
 * Owe a NAK, at the latest when the burst's requests are done, and before any ACK that is owed
 * from here on. What was owed so far is on its way: the QP has no QPF_DIRTY.
 */
static ALWAYS_INLINE void
nak_owe(struct worker *w, struct qp *qp, uint64_t tail)
{
	if (UNLIKELY(w->naks_n == PIPELINE_BURST))
		naks_send(w);
	ASSERT(w->naks_n < PIPELINE_BURST);
	w->nak[w->naks_n] = qp;
	w->nak_tail[w->naks_n++] = tail;
}

#endif
