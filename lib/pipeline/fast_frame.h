/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAST_FRAME_H
#define FAST_FRAME_H
/**
 * @file fast_frame.h  Frames of stage 10's fast paths: untagged IPv4, in a buffer of a plain pool.
 *
 * Owner:   the worker.
 * Memory:  the caller's buffers.
 * Depends: requester_fast.h, sending.h, wire_head.h.
 */
#include "count.h"
#include "reply.h"
#include "requester_fast.h"
#include "sending.h"
#include "wire_head.h"

enum {
	/* In a buffer, beside the payload: the pad is written as four bytes. */
	FAST_ROOM = RTE_PKTMBUF_HEADROOM + WIRE_HEAD_LEN + WIRE_RETH_LEN + WIRE_IMM_LEN +
		    2 * WIRE_ICRC_LEN,
};

/** An untagged IPv4 template? */
static ALWAYS_INLINE bool
is_fast_template(const struct wire_template *t)
{
	return t->len == WIRE_HEAD_LEN && t->ipv6 == 0;
}

/**
 * May packets be made in buffers of this pool, with room for the longest? Then no mbuf is read: all
 * of a pool are alike.
 */
static ALWAYS_INLINE bool
is_fast_pool(struct rte_mempool *pool, uint32_t pmtu)
{
	return rte_pktmbuf_priv_flags(pool) == 0 &&
	       rte_pktmbuf_data_room_size(pool) >= (uint32_t)FAST_ROOM + pmtu;
}

/** Where a frame begins, bytes from its mbuf on: the same for all of a pool. */
static ALWAYS_INLINE size_t
frame_at(struct rte_mempool *pool)
{
	return sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(pool) + RTE_PKTMBUF_HEADROOM;
}

/** Make a buffer as good as new. @param at frame_at(). @return its frame. */
static ALWAYS_INLINE uint8_t *
frame_begin(struct rte_mbuf *m, size_t at)
{
	mbuf_renew(m);
	return (uint8_t *)m + at;
}

/** Behind the payload: its pad, and room for the ICRC, which is written later. @return the end. */
static ALWAYS_INLINE uint8_t *
frame_close(struct rte_mbuf *m, const uint8_t *frame, uint8_t *payload, uint32_t len)
{
	memset(payload + len, 0, 4); /* pad */
	payload += len + (-len & 3) + WIRE_ICRC_LEN;
	mbuf_len_set(m, (uint32_t)(payload - frame));
	return payload;
}

/** The same, with the payload. */
static ALWAYS_INLINE uint8_t *
frame_end(struct rte_mbuf *m, const uint8_t *frame, uint8_t *payload, const uint8_t *host,
	uint32_t len)
{
	request_copy(payload, host, len);
	return frame_close(m, frame, payload, len);
}

/** So many frames of the run stand in the queue. */
static ALWAYS_INLINE void
frames_made(struct worker *w, struct qp *qp, struct tx_queue *q, const struct requester_run *run,
	uint32_t n)
{
	if (LIKELY(n != 0))
		requester_run_end(&qp->req, run, w->now);
	q->tail += n;
	q->made += n; /* the port's and the worker's count follow with the burst */
	qp_count_sent(w, qp, n);
}

#endif
