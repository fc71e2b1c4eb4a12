/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLY_H
#define REPLY_H
/**
 * @file reply.h  What all packets of the responder have in common: a buffer, a port, counting.
 *
 * Owner:   acks.c and replies.c; the worker's lcore.
 * Memory:  mbufs of this burst's requests, else of the port's pool.
 * Depends: pipeline_priv.h.
 */
#include "pipeline_priv.h"

/** May the frame's buffer be written, and does a small reply fit? One segment, ours alone. */
static inline bool
is_reusable(struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m) && m->nb_segs == 1 &&
	       m->buf_len >= RTE_PKTMBUF_HEADROOM + REPLY_ROOM;
}

/**
 * A buffer for a small reply: one of this burst's requests is still in the cache. Only its first
 * line is reset; the second one holds what ol_flags says is not there.
 */
static ALWAYS_INLINE struct rte_mbuf *
small_mbuf(struct worker *w, uint8_t port)
{
	struct rte_mbuf *m;

	if (LIKELY(w->spare_n != 0) && LIKELY(is_reusable(w->spare[w->spare_n - 1]))) {
		m = w->spare[--w->spare_n];
		m->data_off = RTE_PKTMBUF_HEADROOM;
		m->port = RTE_MBUF_PORT_INVALID;
		m->ol_flags = 0;
		return m;
	}
	return rte_pktmbuf_alloc(w->conf.ports[port].pool);
}

/** Why a QP cannot send; counted. @return PORT_NONE. */
uint8_t no_port(struct worker *w, struct qp *qp, uint8_t port);

/** Index of the QP's port; PORT_NONE when it cannot send, which is counted. */
static inline uint8_t
out_port(struct worker *w, struct qp *qp)
{
	uint8_t port = w->port_of[qp->port];

	if (UNLIKELY(port == PORT_NONE || (qp->flags & QPF_RESOLVED) == 0))
		return no_port(w, qp, port);
	return port;
}

/** Hand the frame on; the port's and the worker's count follow with the burst (stage_tx()). */
static inline void
send_frame(struct worker *w, uint8_t port, struct qp *qp, struct rte_mbuf *m, uint32_t len)
{
	struct tx_queue *q = &w->tx[port];

	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	stats_inc(qp->stats, STAT_sent_pkts);
	q->made++;
	if (LIKELY(q->tail != TX_ROOM))
		q->m[q->tail++] = m;
	else
		tx_push(w, port, m);
}

/** A line in the flight recorder. */
void trace_reply(struct worker *w, struct qp *qp, const struct qp_answer *a, enum trace_kind kind,
	uint8_t opcode);

#endif
