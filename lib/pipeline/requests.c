/* SPDX-License-Identifier: BSD-3-Clause */
/* One request packet: headers from the QP's template and the work request, payload from memory. */
#include <errno.h>
#include <string.h>

#include "count.h"
#include "local.h"
#include "mcast.h"
#include "mem_reach.h"
#include "qp_ah.h"
#include "sending.h"
#include "tx.h"
#include "wire_ext.h"

#define REQUEST_EXT \
	(OPF_DETH | OPF_XRCETH | OPF_FETH | OPF_RETH | OPF_ATOMICETH | OPF_IMM | OPF_IETH)

static ALWAYS_INLINE void
put_headers(uint8_t *to, const struct qp *qp, const struct requester_packet *p,
	const struct requester_wr *wr)
{
	const bool swaps = wr->opcode == WR_ATOMIC_CMP_AND_SWP;
	const struct wire_fields f = { .deth = { request_qkey(qp, wr), qp->qpn },
		.feth = (uint32_t)wr->swap,
		.reth = { p->va, p->rkey, p->dma_len },
		.atomiceth = { p->va, p->rkey, swaps ? wr->swap : wr->compare_add,
			swaps ? wr->compare_add : 0 },
		.xrc_srqn = be24_load(wr->xrc_srqn),
		.imm = p->imm,
		.ieth = p->imm };

	wire_ext_write(to, wire_ext_only(wire_opcodes[p->opcode].flags, REQUEST_EXT), &f);
}

/** Where its payload is, in one piece. NULL: ask mem_gather(). */
static ALWAYS_INLINE const uint8_t *
fetched(const struct worker *w, const struct requester_packet *p)
{
	const struct request_sources *s = w->source;
	uint32_t i = p->position - s->first;

	/* A packet in between may have revoked the key. */
	if (UNLIKELY(i >= s->n) || UNLIKELY(s->host[i] == NULL) ||
		UNLIKELY(!mem_is_valid(s->region[i])))
		return NULL;
	return s->host[i] + p->offset;
}

/** @return false: ask mem_gather(). */
static ALWAYS_INLINE bool
gather_fetched(const struct worker *w, const struct requester_packet *p, uint8_t *to)
{
	const uint8_t *from = fetched(w, p);

	if (UNLIKELY(from == NULL))
		return false;
	request_copy(to, from, p->len);
	return true;
}

/**
 * Of a local frame the payload stays where it is, if the peer is to acknowledge it.
 * @return false: it does not.
 */
static __attribute__((noinline)) bool
lend(struct worker *w, const struct qp *qp, const struct requester_packet *p, struct rte_mbuf *m,
	uint8_t *frame, uint32_t at)
{
	const uint8_t *from = fetched(w, p);

	if (!local_lends(w, p->len) || !wire_is_acked(qp->req.transport) || from == NULL)
		return false;
	local_lend(w, m, frame, at, from, p->len);
	return true;
}

/**
 * A long payload in one piece, and the frame's ICRC, in one pass.
 * @return false: neither, and of the payload's place nothing is said.
 */
static __attribute__((noinline)) bool
copy_seal(const struct worker *w, const struct wire_template *t, const struct requester_packet *p,
	uint8_t *frame, uint32_t at, uint32_t total)
{
	const struct icrc_frame f = { frame, total, t->l3_off, t->ipv6 != 0 };
	const uint8_t *from = fetched(w, p);

	return from != NULL && icrc_copy_seal(&f, at, from, p->len);
}

/** Payload, or for a READ or ATOMIC: is there a place for what comes back? */
static inline int
gather(const struct worker *w, const struct qp *qp, const struct requester_packet *p,
	const struct requester_wr *wr, uint8_t *to)
{
	const struct ring_sge *sges = request_sges(qp, p->position);
	enum mem_fault fault = MEM_OK;

	if (UNLIKELY(op_has(wire_opcodes[p->opcode].flags, OPF_READ | OPF_ATOMIC)))
		fault = mem_check_sges(w->mem, sges, wr->num_sge, qp->pd, ACCESS_LOCAL_WRITE);
	else if (p->len == 0)
		return 0;
	else if (UNLIKELY((wr->flags & SEND_INLINE) != 0))
		memcpy(to, (const uint8_t *)pipeline_sendq_inline(qp, p->position) + p->offset,
			p->len);
	else if (LIKELY(gather_fetched(w, p, to)))
		return 0;
	else
		fault = mem_gather(w->mem, sges, wr->num_sge, qp->pd, p->offset, to, p->len);
	return LIKELY(fault == MEM_OK) ? 0 : -EFAULT;
}

static void
trace_request(struct worker *w, const struct qp *qp, const struct requester_packet *p,
	enum trace_kind kind)
{
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = qp->qpn,
				    .psn = p->psn.v,
				    .msn = requester_msn(&qp->req, p->position),
				    .len = p->len,
				    .kind = (uint8_t)kind,
				    .opcode = p->opcode,
				    .fault = VERDICT_NO_FAULT,
				    .state = qp_state_of(qp) });
}

/*
 * Frames have just been written in small pieces, and the ICRC reads them in large ones: it comes
 * last, when the pieces have left the store buffer, unless so much would leave the cache meanwhile.
 */
void
pipeline_requests_seal(struct worker *w)
{
	icrc_seal_burst(w->crc, w->unsealed, w->unsealed_n);
	w->unsealed_n = 0;
	w->unsealed_bytes = 0;
}

/** A queue that does not take more loses a datagram. @return 0, -EHOSTUNREACH. */
static int
has_room(struct worker *w, struct qp *qp, uint8_t out)
{
	if (LIKELY(!tx_is_congested(w, out)))
		return 0;
	count(w, out, qp, STAT_tx_backlog_drop);
	return -EHOSTUNREACH;
}

/**
 * LB-04: a local datagram has another queue than those of its QP that are not. One that does not
 * take more loses it, so that answers of others have room there. @return 0, -EHOSTUNREACH.
 */
static int
turn_inside(struct worker *w, struct qp *qp, uint8_t *port)
{
	*port = (uint8_t)(w->port_of[qp->port] + w->wires_n);
	local_note(w, QP_OUT_LOCAL);
	return has_room(w, qp, *port);
}

/** The same of one that has another priority than its QP (FLOW-09). */
static int
turn_aside(struct worker *w, struct qp *qp, uint8_t *port, const struct qp_ah_dest *to)
{
	*port = w->port_of[QP_OUT_QUEUE + to->queue];
	return has_room(w, qp, *port);
}

/**
 * Where a datagram goes: what its own request names (UD-05). @param port in: the QP's; out: with
 * whose frames it goes. @return 0, -EBADF, -EHOSTUNREACH.
 */
static __attribute__((noinline)) int
find_dest(struct worker *w, struct qp *qp, uint8_t *port, const struct requester_packet *p,
	struct qp_ah_dest *to)
{
	if (!qp_ah_copy(w->ahs, p->rkey, qp->pd, qp->port, to))
		return -EBADF;
	if (UNLIKELY(!to->known))
		return pipeline_request_lose(w, qp, *port, p) == 0 ? -EHOSTUNREACH : -EFAULT;
	if (UNLIKELY(to->queue != 0))
		return turn_aside(w, qp, port, to);
	return UNLIKELY(to->local) ? turn_inside(w, qp, port) : 0;
}

int
pipeline_request_send(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf *m,
	const struct requester_packet *p)
{
	const struct requester_wr *wr = &qp->req.wr[p->position & qp->req.wr_mask];
	const bool datagram = (qp->flags & QPF_DATAGRAM) != 0;
	const uint32_t ext = (uint32_t)wire_opcodes[p->opcode].hdr_len - WIRE_BTH_LEN;
	const struct wire_template *t = &qp->tmpl;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *payload;
	struct qp_ah_dest to;
	uint32_t total, at;
	bool local, done;

	if (UNLIKELY(datagram)) {
		const int rc = find_dest(w, qp, &port, p, &to);

		if (rc != 0)
			return rc;
		t = &to.tmpl;
	}
	total = t->len + ext + p->len + p->pad + WIRE_ICRC_LEN;
	payload = frame + t->len + ext;

	/* The template writer stores whole vectors. */
	if (UNLIKELY(rte_pktmbuf_tailroom(m) < total || rte_pktmbuf_tailroom(m) < sizeof(t->bytes)))
		return -EMSGSIZE;
	wire_template_write(
		t, frame, p->opcode, p->flags, p->pad, p->psn, (uint16_t)(ext + p->len + p->pad));
	if (UNLIKELY(datagram))
		request_address(qp, wr, &to, frame + t->bth_off);
	put_headers(frame + t->len, qp, p, wr);
	at = (uint32_t)(payload - frame);
	local = UNLIKELY(port >= w->wires_n); /* local.h */
	done = local ? lend(w, qp, p, m, frame, at)
		     : p->len >= COPY_SEAL_MIN && copy_seal(w, t, p, frame, at, total);
	if (!done && UNLIKELY(gather(w, qp, p, wr, payload) != 0))
		return -EFAULT;
	memset(payload + p->len, 0, p->pad);
	if (!local && !done)
		request_unsealed(w, frame, t->l3_off, t->ipv6 != 0, total);
	m->data_len = (uint16_t)total;
	m->pkt_len = total;
	count(w, port, qp, STAT_sent_pkts);
	if (UNLIKELY(p->resend))
		count(w, port, qp, STAT_req_resent_pkts);
	if (traced(w, qp))
		trace_request(w, qp, p, TRACE_tx);
	if (UNLIKELY(datagram) && UNLIKELY((frame[0] & 1) != 0)) /* to a group's MAC */
		pipeline_mcast_loop(w, port, m, t->l3_off);
	pipeline_tx_push(w, port, m);
	return 0;
}

int
pipeline_request_lose(
	struct worker *w, struct qp *qp, uint8_t port, const struct requester_packet *p)
{
	const struct requester_wr *wr = &qp->req.wr[p->position & qp->req.wr_mask];
	const bool stores = op_has(wire_opcodes[p->opcode].flags, OPF_READ | OPF_ATOMIC);

	if (((wr->flags & SEND_INLINE) == 0 || stores) &&
		mem_check_sges(w->mem, request_sges(qp, p->position), wr->num_sge, qp->pd,
			stores ? ACCESS_LOCAL_WRITE : 0) != MEM_OK)
		return -EFAULT;
	if (LIKELY((qp->flags & QPF_DATAGRAM) == 0))
		qp->flags |= QPF_SENT_NOWHERE;
	qp_nowhere_add(qp);
	count(w, port, qp, STAT_tx_no_neighbor);
	if (traced(w, qp))
		trace_request(w, qp, p, TRACE_tx_nowhere);
	return 0;
}
