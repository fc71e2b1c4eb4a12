/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 10, fast path: SENDs and RDMA WRITEs of one packet that are sent for the first time while
 * nothing holds them up. What it leaves goes to requester_next() and pipeline_request_send(), which
 * would make the same packets.
 */
#include "count.h"
#include "mem_reach.h"
#include "reply.h"
#include "requester_fast.h"
#include "sending.h"
#include "wire_ext.h"
#include "wire_head.h"

enum {
	FAST_HEAD = WIRE_HEAD_LEN,
	/* In a buffer, beside the payload: the pad is written as four bytes. */
	FAST_ROOM = RTE_PKTMBUF_HEADROOM + FAST_HEAD + WIRE_RETH_LEN + 2 * WIRE_ICRC_LEN,
};

/**
 * May packets be made here, in buffers of this pool? An untagged IPv4 template, and room for the
 * longest. Then no mbuf is read: all of a pool are alike.
 */
static ALWAYS_INLINE bool
is_fast_sender(const struct qp *qp, struct rte_mempool *pool)
{
	return qp->tmpl.len == FAST_HEAD && qp->tmpl.ipv6 == 0 &&
	       rte_pktmbuf_priv_flags(pool) == 0 &&
	       rte_pktmbuf_data_room_size(pool) >= (uint32_t)FAST_ROOM + qp->req.pmtu;
}

/** Make a buffer as good as new, with a frame of so many bytes. @return the frame. */
static ALWAYS_INLINE uint8_t *
frame_begin(struct rte_mempool *pool, struct rte_mbuf *m)
{
	mbuf_renew(m);
	return (uint8_t *)rte_mbuf_buf_addr(m, pool) + RTE_PKTMBUF_HEADROOM;
}

/** Its length is known; the word has the VLAN behind, of which ol_flags says that there is none. */
static ALWAYS_INLINE void
frame_len_set(struct rte_mbuf *m, uint32_t len)
{
	const uint64_t both = (uint64_t)len << 32 | len;

	memcpy(&m->pkt_len, &both, sizeof(both));
}
_Static_assert(
	offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4 &&
		offsetof(struct rte_mbuf, vlan_tci) == offsetof(struct rte_mbuf, pkt_len) + 6,
	"the order of that word");

/** Headers. @param service the high bits of the QP's opcodes. @return where the payload goes. */
static ALWAYS_INLINE uint8_t *
headers_write(const struct qp *qp, uint8_t service, struct wire_head *head,
	const struct requester_wr *wr, const struct requester_start *s, uint8_t *frame)
{
	const bool write = wr->opcode == WR_RDMA_WRITE;
	const uint32_t ext = write ? WIRE_RETH_LEN : 0, pad = -wr->len & 3;

	wire_head_write(head, &qp->tmpl, frame,
		wire_head_what(service | (write ? OP_RC_WRITE_ONLY : OP_RC_SEND_ONLY), s->flags,
			(uint8_t)pad, (uint16_t)(ext + wr->len + pad)),
		s->ask, s->psn);
	if (write)
		wire_reth_write(frame + FAST_HEAD, wr->remote_addr, wr->rkey, wr->len);
	return frame + FAST_HEAD + ext;
}

/** @param plain an RC QP whose path is not local. */
static ALWAYS_INLINE uint32_t
requests_make(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n,
	const bool plain)
{
	struct rte_mempool *pool = w->conf.ports[port].pool;
	struct requester *r = &qp->req;
	struct tx_queue *q = &w->tx[port];
	const struct request_sources *from = w->source;
	struct rte_mbuf **out = q->m + q->tail, **in = m + *n;
	const uint8_t service = plain ? 0 : wire_opcode_on(r->transport, 0);
	const bool seals = plain || (qp->flags & QPF_LOCAL) == 0; /* else local.h */
	uint32_t most = RTE_MIN(RTE_MIN(from->n, *n), TX_ROOM - q->tail), sent;
	struct requester_run run;
	struct wire_head head;

	if (UNLIKELY(!is_fast_sender(qp, pool)))
		return 0;
	most = RTE_MIN(most, requester_run_begin(r, &run));
	if (plain)
		run.acked = true;
	wire_head_init(&head);
	for (sent = 0; sent < most; sent++) {
		struct requester_wr *wr = &r->wr[run.at & r->wr_mask];
		const uint32_t len = wr->len, pad = -len & 3;
		struct rte_mbuf *one = *--in;
		struct requester_start s;
		uint8_t *frame, *payload;

		if (UNLIKELY(from->host[sent] == NULL) ||
			UNLIKELY(!mem_is_valid(from->region[sent])) ||
			UNLIKELY(!requester_run_next(&run, wr, &s)))
			break;
		frame = frame_begin(pool, one);
		payload = headers_write(qp, service, &head, wr, &s, frame);
		request_copy(payload, from->host[sent], len);
		memset(payload + len, 0, 4); /* pad; the ICRC is written later */
		payload += len + pad + WIRE_ICRC_LEN;
		frame_len_set(one, (uint32_t)(payload - frame));
		out[sent] = one;
		if (seals)
			request_unsealed(
				w, frame, WIRE_PLAIN_IP, false, (uint32_t)(payload - frame));
	}
	if (LIKELY(sent != 0))
		requester_run_end(r, &run, w->now);
	*n -= sent;
	q->tail += sent;
	q->made += sent; /* the port's and the worker's count follow with the burst */
	qp_count(w, qp, STAT_sent_pkts, sent);
	return sent;
}

static __attribute__((noinline)) uint32_t
requests_make_other(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	if ((qp->flags & (QPF_TRACE | QPF_SEND_FEED | QPF_XRC)) != 0)
		return 0;
	return requests_make(w, qp, port, m, n, false);
}

uint32_t
pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	if (UNLIKELY((qp->flags & (QPF_TRACE | QPF_SEND_FEED | QPF_SERVICE | QPF_LOCAL)) != 0))
		return requests_make_other(w, qp, port, m, n);
	return requests_make(w, qp, port, m, n, true);
}
