/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_8_PLAIN_H
#define STAGE_8_PLAIN_H
/**
 * @file stage_8_plain.h  SENDs and RDMA WRITEs of one packet where nothing is unusual.
 *
 * Owner:   stage_8_request.c; the worker's lcore.
 * Memory:  buffers are the caller's, and the port's from then on.
 * Depends: pipeline_priv.h, requester_plain.h.
 *
 * Whatever is not plain is left alone, and goes to requester_next() and request_send(), which would
 * make the same packet of it.
 */
#include "mem_reach.h"
#include "pipeline_priv.h"
#include "reply.h"
#include "requester_plain.h"

enum {
	PLAIN_HEAD = WIRE_PLAIN_BTH + WIRE_BTH_LEN,
	/* In a buffer, beside the payload: the pad is written as four bytes. */
	PLAIN_ROOM = RTE_PKTMBUF_HEADROOM + PLAIN_HEAD + WIRE_RETH_LEN + 2 * WIRE_ICRC_LEN,
	SMALL_FRAME = 3 * CACHE_LINE, /* all of an RDMA WRITE of 64 bytes */
};

_Static_assert(REPLY_ROOM >= sizeof(((struct wire_template *)0)->bytes), "see is_reusable()");

/** May packets be made here? An untagged IPv4 template, and nobody who looks at each of them. */
static ALWAYS_INLINE bool
plain_sender(const struct qp *qp)
{
	return (qp->flags & (QPF_TRACE | QPF_SEND_FEED)) == 0 && qp->tmpl.len == PLAIN_HEAD &&
	       qp->tmpl.ipv6 == 0;
}

/** Headers; the payload is `len` bytes. @return where it goes. */
static ALWAYS_INLINE uint8_t *
plain_headers(const struct qp *qp, const struct requester_wr *wr, const struct requester_start *s,
	uint8_t *frame, uint32_t pad)
{
	bool write = wr->opcode == WR_RDMA_WRITE;
	uint32_t ext = write ? WIRE_RETH_LEN : 0;

	wire_template_write(&qp->tmpl, frame, write ? OP_RC_WRITE_ONLY : OP_RC_SEND_ONLY, s->flags,
		(uint8_t)pad, s->psn, (uint16_t)(ext + wr->len + pad));
	if (write) {
		be64_store(frame + PLAIN_HEAD, wr->remote_addr);
		be64_store(frame + PLAIN_HEAD + 8, (uint64_t)wr->rkey << 32 | wr->len);
	}
	return frame + PLAIN_HEAD + ext;
}

static ALWAYS_INLINE void
plain_payload(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (LIKELY(len == 64))
		memcpy(to, from, 64);
	else
		memcpy(to, from, len);
	memset(to + len, 0, 4); /* pad; the ICRC is written later */
}

/** Requests from r->sending on, into the last `*n` of these buffers. @return how many. */
static ALWAYS_INLINE uint32_t
plain_requests(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	struct requester *r = &qp->req;
	struct tx_queue *q = &w->tx[port];
	const struct request_sources *from = w->source;
	uint32_t sent = 0;

	for (; sent < from->n && *n != 0; sent++) {
		const struct requester_wr *wr = &r->wr[r->sending & r->wr_mask];
		struct rte_mbuf *one = m[*n - 1];
		uint8_t *frame = (uint8_t *)one->buf_addr + RTE_PKTMBUF_HEADROOM, *payload;
		uint32_t len = wr->len, pad = -len & 3;
		struct requester_start s;

		if (UNLIKELY(from->host[sent] == NULL) ||
			UNLIKELY(!mem_is_valid(from->region[sent])) ||
			UNLIKELY(q->tail == TX_ROOM) ||
			UNLIKELY(!is_reusable(one)) || UNLIKELY(one->buf_len < PLAIN_ROOM + len) ||
			UNLIKELY(!requester_start_plain(r, w->now, &s)))
			break;
		mbuf_renew(one);
		payload = plain_headers(qp, wr, &s, frame, pad);
		plain_payload(payload, from->host[sent], len);
		len = (uint32_t)(payload - frame) + len + pad + WIRE_ICRC_LEN;
		one->data_len = (uint16_t)len;
		one->pkt_len = len;
		q->m[q->tail++] = one;
		request_unsealed(w, frame, WIRE_PLAIN_IP, false, len);
		--*n;
	}
	q->made += sent; /* the port's and the worker's count follow with the burst */
	qp_count(w, qp, STAT_sent_pkts, sent);
	return sent;
}

#endif
