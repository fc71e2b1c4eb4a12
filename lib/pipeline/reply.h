/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLY_H
#define REPLY_H
/**
 * @file reply.h  What all packets of the responder have in common: a buffer, a port, counting.
 *
 * Owner:   acks.c and replies.c; the worker's lcore.
 * Memory:  mbufs of this burst's requests, else of the port's pool.
 * Depends: count.h, tx.h.
 */
#include "count.h"
#include "tx.h"

/* data_off, refcnt, nb_segs and port of an mbuf are one word. */
#define MBUF_ALONE      UINT64_C(0x0000000100010000) /* one segment, referred to once */
#define MBUF_ALONE_MASK UINT64_C(0x0000ffffffff0000)
#define MBUF_FRESH      (MBUF_ALONE | RTE_PKTMBUF_HEADROOM | (uint64_t)RTE_MBUF_PORT_INVALID << 48)
_Static_assert(
	offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2 &&
		offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, data_off) + 4 &&
		offsetof(struct rte_mbuf, port) == offsetof(struct rte_mbuf, data_off) + 6,
	"the order of that word");

/** 0: one segment, ours alone, with a buffer of its own. */
static ALWAYS_INLINE uint64_t
mbuf_special(const struct rte_mbuf *m)
{
	uint64_t word;

	memcpy(&word, &m->data_off, sizeof(word));
	return ((word ^ MBUF_ALONE) & MBUF_ALONE_MASK) |
	       (m->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL));
}

/** May the frame's buffer be written, and does a small reply fit? */
static ALWAYS_INLINE bool
is_reusable(const struct rte_mbuf *m)
{
	return mbuf_special(m) == 0 && m->buf_len >= RTE_PKTMBUF_HEADROOM + REPLY_ROOM;
}

/** Make one of those as good as new. Its second line holds what ol_flags says is not there. */
static ALWAYS_INLINE void
mbuf_renew(struct rte_mbuf *m)
{
	const uint64_t fresh = MBUF_FRESH;

	memcpy(&m->data_off, &fresh, sizeof(fresh));
	m->ol_flags = 0;
}

/** Its length is known; the word has the VLAN behind, of which ol_flags says that there is none. */
static ALWAYS_INLINE void
mbuf_len_set(struct rte_mbuf *m, uint32_t len)
{
	const uint64_t both = (uint64_t)len << 32 | len;

	memcpy(&m->pkt_len, &both, sizeof(both));
}
_Static_assert(
	offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4 &&
		offsetof(struct rte_mbuf, vlan_tci) == offsetof(struct rte_mbuf, pkt_len) + 6,
	"the order of that word");

/**
 * A buffer for a small reply: one of this burst's requests is still in the cache.
 */
static ALWAYS_INLINE struct rte_mbuf *
small_mbuf(struct worker *w, uint8_t port)
{
	struct rte_mbuf *m;

	if (LIKELY(w->spare_n != 0) && LIKELY(is_reusable(w->spare[w->spare_n - 1]))) {
		m = w->spare[--w->spare_n];
		mbuf_renew(m);
		return m;
	}
	return rte_pktmbuf_alloc(w->conf.ports[port].pool);
}

/** Why a QP cannot send; counted. @return PORT_NONE. */
uint8_t pipeline_no_port(struct worker *w, struct qp *qp, uint8_t port);

/** Index of the QP's port; PORT_NONE when it cannot send, which is counted. */
static inline uint8_t
out_port(struct worker *w, struct qp *qp)
{
	uint8_t port = w->port_of[qp->out];

	if (UNLIKELY(port == PORT_NONE || (qp->flags & QPF_RESOLVED) == 0))
		return pipeline_no_port(w, qp, port);
	return port;
}

/** Hand the frame on; the port's and the worker's count follow with the burst (stage_tx()). */
static inline void
send_frame(struct worker *w, uint8_t port, struct qp *qp, struct rte_mbuf *m, uint32_t len)
{
	struct tx_queue *q = &w->tx[port];

	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	qp_count(w, qp, STAT_sent_pkts, 1);
	q->made++;
	if (LIKELY(q->tail != TX_ROOM))
		q->m[q->tail++] = m;
	else
		pipeline_tx_push(w, port, m);
}

/** Make and send an ACK or NAK. @param p its PSN. @param msn see AETH. */
void pipeline_reply_ack(struct worker *w, struct qp *qp, uint8_t syndrome, psn_t p, uint32_t msn);
/** Both: 0; -EAGAIN: no mbuf, try again; -EMSGSIZE: the pool's buffers are too small. */
int pipeline_reply_atomic(struct worker *w, struct qp *qp, const struct resp_answer *a);
/** One READ response packet with `len` bytes of `data`; results as above. */
int pipeline_reply_read(struct worker *w, struct qp *qp, const struct resp_answer *a,
	const uint8_t *data, uint32_t len);
/** Send a CNP to the QP's peer. */
void pipeline_reply_cnp(struct worker *w, struct qp *qp);
/** A line in the flight recorder. */
void pipeline_trace_reply(struct worker *w, struct qp *qp, const struct resp_answer *a,
	enum trace_kind kind, uint8_t opcode);

#endif
