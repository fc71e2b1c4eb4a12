/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 6, fast path: READs at ePSN that one packet answers, of a QP whose answers do not wait. The
 * response is made at once, in the request's own buffer where it fits, and stands behind all that
 * was owed before (RESP-13, RESP-NAK-02). All other READs take the queue of stage 7.
 */
#include "answers.h"
#include "mem_reach.h"
#include "read_response.h"
#include "responder_fast.h"
#include "stage_06_fast.h"

/* RESP-06: neither a CNP's rate nor a peer's turn is to be waited for, and there is a way out. */
#define READ_FLAGS (QPF_RESOLVED | QPF_PACED | QPF_CC_RATE)

/** The buffer of the response; NULL: there is none. */
static ALWAYS_INLINE struct rte_mbuf *
response_mbuf(struct worker *w, const struct burst *b, uint32_t i, struct fast *f, uint8_t port,
	uint32_t total)
{
	struct rte_mbuf *m = b->m[i];

	if (LIKELY(is_reusable(m)) && LIKELY(read_response_fits(m, total))) {
		f->reused |= BIT32(i);
	} else {
		m = rte_mbuf_raw_alloc(w->conf.ports[port].pool);
		if (UNLIKELY(m == NULL))
			return NULL;
		if (UNLIKELY(!read_response_fits(m, total))) {
			rte_mbuf_raw_free(m);
			return NULL;
		}
	}
	mbuf_renew(m);
	return m;
}

/** @return false: nothing was done. */
static ALWAYS_INLINE bool
fast_read(struct worker *w, const struct burst *b, uint32_t i, struct fast *f)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];
	struct responder *r = &qp->resp;
	struct wire_reth reth;
	struct read_response out;
	struct rte_mbuf *m;
	uint32_t total;
	uint8_t port;

	if (UNLIKELY(f->at[i].host == NULL) || UNLIKELY(!psn_eq(p->psn, r->epsn)) ||
		UNLIKELY(!fast_qp(w, qp, p)) ||
		UNLIKELY((qp->flags & READ_FLAGS) != QPF_RESOLVED) ||
		UNLIKELY(!mem_is_valid(f->at[i].region)))
		return false;
	reth = wire_reth_at(wire_ext(p));
	port = w->port_of[qp->out];
	if (UNLIKELY(!responder_fits_fast_read(r, p, reth.dma_len, ACCESS_REMOTE_READ)) ||
		UNLIKELY(qp->stats == NULL) || UNLIKELY(port == PORT_NONE) ||
		UNLIKELY(tx_is_congested(w, port)))
		return false;
	out = (struct read_response){ .psn = p->psn,
		.msn = (r->msn + 1) & PSN_MASK,
		.syndrome = responder_ack_syndrome(r, UINT32_MAX),
		.operation = OP_RC_READ_RESPONSE_ONLY,
		.len = reth.dma_len,
		.data = f->at[i].host };
	total = read_response_total(qp, &out);
	m = response_mbuf(w, b, i, f, port, total);
	if (UNLIKELY(m == NULL))
		return false;
	f->reads |= BIT32(i);
	naks_send(w); /* among them may be one of this QP */
	pipeline_ack_now(w, qp);
	responder_take_fast_read(r, &reth);
	ASSERT(out.msn == r->msn);
	if (traced(w, qp))
		pipeline_fast_trace(w, qp, p, RULE_READ);
	read_response_send(w, qp, port, m, &out, total);
	if (UNLIKELY(w->answering != 0))
		pipeline_answers_one_beside(w, qp, total);
	return true;
}

uint32_t
pipeline_fast_reads(
	struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct fast *f)
{
	uint32_t at = i;

	if (UNLIKELY(w->intake_on))
		return 0;
	for (; at < end && b->pkt[at].opcode == OP_RC_READ_REQUEST; at++) {
		struct qp *qp = b->qp[at];

		if (UNLIKELY(!fast_read(w, b, at, f)))
			break;
		qp_count(w, qp, STAT_rx_read_requests, 1);
		qp_count(w, qp, STAT_rcvd_pkts, 1);
		qp_count(w, qp, STAT_rx_packets, 1);
		qp_count(w, qp, STAT_rx_bytes, b->pkt[at].frame_len);
	}
	f->n.reads += at - i;
	return at - i;
}
