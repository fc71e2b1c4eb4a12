/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAST_FRAME_H
#define FAST_FRAME_H
/**
 * @file fast_frame.h  Frames of stage 10's fast paths, in a buffer of a plain pool.
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
	/* Of a frame, beside the payload and what ends with the BTH: a pad is written as four. */
	FAST_ROOM = WIRE_RETH_LEN + WIRE_IMM_LEN + 2 * WIRE_ICRC_LEN,
};
_Static_assert(WIRE_HEAD_MOST <= WIRE_HEAD_LEN + FAST_ROOM, "so much is written of any head");

/**
 * May packets be made in buffers of this pool, with room for the longest? Then no mbuf is read: all
 * of a pool are alike. @param head bytes up to the end of the BTH.
 */
static ALWAYS_INLINE bool
is_fast_pool(struct rte_mempool *pool, uint32_t head, uint32_t pmtu)
{
	return rte_pktmbuf_priv_flags(pool) == 0 &&
	       rte_pktmbuf_data_room_size(pool) >=
		       (uint32_t)RTE_PKTMBUF_HEADROOM + head + (uint32_t)FAST_ROOM + pmtu;
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

/**
 * Headers up to the BTH. @param h of this template. @param ipv4 wire_head_fits(): a constant, where
 * a loop is of one path. @return the end of the BTH.
 */
static ALWAYS_INLINE uint8_t *
frame_head(struct wire_head *h, const struct wire_template *t, const bool ipv4, uint8_t *frame,
	uint32_t what, const struct requester_start *s)
{
	if (ipv4) {
		wire_head_write(h, t, frame, what, s->ask, s->psn);
		return frame + WIRE_HEAD_LEN;
	}
	wire_head_write_any(h, t, frame, what, s->ask, s->psn);
	return frame + t->len;
}

/** Its ICRC is written later. @param ipv4 as above. @param len of the frame. */
static ALWAYS_INLINE void
frame_unsealed(struct worker *w, const struct wire_template *t, const bool ipv4, uint8_t *frame,
	uint32_t len)
{
	if (ipv4)
		request_unsealed(w, frame, WIRE_PLAIN_IP, false, len);
	else
		request_unsealed(w, frame, t->l3_off, t->ipv6 != 0, len);
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
