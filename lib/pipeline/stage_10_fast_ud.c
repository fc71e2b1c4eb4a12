/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 10, fast path of datagrams: SENDs that nothing holds up, to handles whose neighbour is
 * known and is no group, outside. The template is the handle's, which is copied for all that follow
 * one another with the same handle.
 */
#include "be.h"
#include "fast_frame.h"
#include "mem_reach.h"
#include "qp_ah.h"
#include "reply.h"
#include "sending.h"
#include "wire_ext.h"
#include "wire_head.h"

/** What the handle of the newest datagram says. */
struct destination {
	struct qp_ah_dest to;
	struct wire_head head;
	uint32_t handle; /* 0: there was none */
	bool ipv4;       /* see frame_head() */
};

/** @return may frames go there from here? Else the full path says what becomes of them. */
static ALWAYS_INLINE bool
look_up(const struct worker *w, const struct qp *qp, uint32_t handle, struct destination *d)
{
	if (LIKELY(handle == d->handle) && LIKELY(handle != 0))
		return true;
	d->handle = 0;
	if (UNLIKELY(!qp_ah_copy(w->ahs, handle, qp->pd, qp->port, &d->to)) ||
		UNLIKELY(!d->to.known) || UNLIKELY(d->to.local || d->to.queue != 0) ||
		UNLIKELY((d->to.tmpl.bytes[0] & 1) != 0))
		return false;
	d->ipv4 = wire_head_fits(&d->to.tmpl);
	wire_head_init(&d->head);
	d->handle = handle;
	return true;
}

/** @return where the payload goes. */
static ALWAYS_INLINE uint8_t *
headers_write(const struct qp *qp, struct destination *d, const struct requester_wr *wr,
	const struct requester_start *s, uint8_t *frame)
{
	const uint32_t pad = -wr->len & 3;
	const uint32_t what = wire_head_what(
		OP_UD_SEND_ONLY, s->flags, (uint8_t)pad, (uint16_t)(WIRE_DETH_LEN + wr->len + pad));
	uint8_t *deth = frame_head(&d->head, &d->to.tmpl, d->ipv4, frame, what, s);

	request_address(qp, wr, &d->to, deth - WIRE_BTH_LEN);
	wire_deth_write(deth, request_qkey(qp, wr), qp->qpn);
	return deth + WIRE_DETH_LEN;
}

uint32_t
pipeline_fast_datagrams(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	struct rte_mempool *pool = w->conf.ports[port].pool;
	struct requester *r = &qp->req;
	struct tx_queue *q = &w->tx[port];
	const struct request_sources *from = w->source;
	struct rte_mbuf **out = q->m + q->tail, **in = m + *n;
	uint32_t most = RTE_MIN(RTE_MIN(from->n, *n), TX_ROOM - q->tail), sent;
	const size_t begins = frame_at(pool);
	struct requester_run run;
	struct destination d;

	if (UNLIKELY(!is_fast_pool(pool, WIRE_TEMPLATE_MAX, r->pmtu)))
		return 0;
	d.handle = 0;
	most = RTE_MIN(most, requester_run_begin(r, &run, w->now));
	for (sent = 0; sent < most; sent++) {
		struct requester_wr *wr = &r->wr[run.at & r->wr_mask];
		struct rte_mbuf *one = in[-1];
		struct requester_start s;
		uint8_t *frame, *payload;

		if (UNLIKELY(from->host[sent] == NULL) ||
			UNLIKELY(!mem_is_valid(from->region[sent])) ||
			UNLIKELY((requester_what(wr) & UINT8_MAX) != WR_SEND) ||
			UNLIKELY(!look_up(w, qp, wr->rkey, &d)) ||
			UNLIKELY(!requester_run_next(&run, wr, false, &s)))
			break;
		in--;
		frame = frame_begin(one, begins);
		payload = headers_write(qp, &d, wr, &s, frame);
		payload = frame_end(one, frame, payload, from->host[sent], wr->len);
		out[sent] = one;
		frame_unsealed(w, &d.to.tmpl, false, frame, (uint32_t)(payload - frame));
	}
	*n -= sent;
	frames_made(w, qp, q, &run, sent);
	return sent;
}
