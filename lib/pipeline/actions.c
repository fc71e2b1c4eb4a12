/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carry a verdict out, in the order that a host and a peer may rely on: memory first, then the
 * completion that tells of it, then the answer (RESP-14).
 */
#include "answers.h"
#include "copy.h"
#include "count.h"
#include "credits.h"
#include "local.h"
#include "report.h"
#include "shared_rq.h"
#include "verdict.h"

/**
 * The head of the receive queue is the active WQE from here on; its copy was made for the facts.
 */
static void
take_wqe(struct qp *qp)
{
	ASSERT(qp->copy != NULL);
	if (UNLIKELY(qp->active != NULL)) { /* of a SEND that was cut off */
		ASSERT(!wire_is_acked(qp->resp.transport));
		return;
	}
	qp->active = qp->copy;
	if (UNLIKELY((qp->flags & (QPF_RECV_FEED | QPF_SRQ)) != 0)) {
		/* An SRQ's was taken with the verdict: pipeline_srq_take(). */
		if ((qp->flags & QPF_SRQ) == 0 && ++qp->feed_next >= qp->feed_buffers)
			qp->feed_next = 0;
		return;
	}
	ring_consume_done(&qp->rq, 1);
}

/**
 * The responder allowed [va, va + len) of the query; the payload goes somewhere into it.
 * The ICRC was verified before, over the frame as it is copied here.
 */
static inline void
place_write(const struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	const uint64_t offset = v->va - c->va;
	struct rte_mbuf *lent;

	if (c->host == NULL || offset > c->len || c->p->payload_len > c->len - offset)
		return;
	lent = local_lent(w, c->p);
	if (UNLIKELY(lent != NULL))
		pipeline_local_deliver(w, lent, c->p, c->host + offset);
	else
		payload_copy(c->host + offset, wire_payload(c->p), c->p->payload_len);
}

/**
 * Ahead of a datagram: the IPv6 header as it came, or 20 bytes of zeros and the IPv4 header (UD-14,
 * UD-15).
 */
static __attribute__((noinline)) void
place_grh(const struct worker *w, const struct context *c, const struct ring_recv_copy *a)
{
	const uint32_t len = (c->p->flags & PKT_IPV6) != 0 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN;
	uint8_t grh[WIRE_GRH_LEN] = { 0 };

	memcpy(grh + sizeof(grh) - len, c->p->frame + c->p->l3_off, len);
	mem_scatter(w->mem, a->sge, a->num_sge, qp_recv_pd(c->qp), 0, grh, sizeof(grh));
}

/** A region that goes away between check and copy takes its bytes with it: nothing is written. */
static void
place_send(const struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	const struct ring_recv_copy *a = c->qp->active;

	if (UNLIKELY(c->qp->resp.head != 0) && a != NULL)
		place_grh(w, c, a);
	if (a != NULL && c->p->payload_len != 0)
		payload_scatter(w, c->p, a->sge, a->num_sge, qp_recv_pd(c->qp), v->offset);
}

/**
 * RESP-07, RESP-18: the operation itself; memory is in host byte order. @return the value before.
 */
static uint64_t
atomic_execute(const struct context *c)
{
	struct wire_atomiceth a = wire_atomiceth(c->p);
	uint64_t *target = (uint64_t *)(void *)c->host;
	uint64_t expected = a.compare;

	ASSERT(((uintptr_t)target & 7) == 0); /* else exec_fault, and no ATOMIC */
	if (target == NULL)
		return 0;
	if (wire_operation(c->p->opcode) == OP_RC_FETCH_ADD)
		return __atomic_fetch_add(target, a.swap_add, __ATOMIC_ACQ_REL);
	__atomic_compare_exchange_n(
		target, &expected, a.swap_add, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return expected;
}

/** 8 bytes as they came, in one piece: nobody sees a part of them. */
static void
store_word(const struct context *c)
{
	uint64_t word;

	ASSERT(((uintptr_t)c->host & 7) == 0 && c->p->payload_len == sizeof(word));
	memcpy(&word, wire_payload(c->p), sizeof(word));
	if (c->host != NULL)
		__atomic_store_n((uint64_t *)(void *)c->host, word, __ATOMIC_RELEASE);
}

/**
 * Global visibility: what this worker wrote for the peer's earlier requests is there for every
 * processor and device that can see the memory, before the answer is. No memory is persistent.
 */
static void
flush(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void
event_raise(struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	const struct report r = pipeline_report_of_request(c, v, SOURCE_RQ);

	pipeline_report_event(w, c->qp, &r);
}

/**
 * AE-05: the peer talks to a QP that nobody has moved to RTS yet. A duplicate of what the QP never
 * had is a packet of the number's life before this one.
 */
static void
comm_established(struct worker *w, const struct context *c)
{
	const struct responder_verdict v = { .event = EVENT_COMM_EST, .fault = VERDICT_NO_FAULT };

	c->qp->flags &= ~(uint32_t)QPF_UNHEARD;
	event_raise(w, c, &v);
}

/** Class G: the completion is lost, so the message is not acknowledged either. */
static __attribute__((noinline)) void
cq_is_full(struct worker *w, const struct context *c)
{
	struct responder_verdict lost;

	responder_cq_overflow(&c->qp->resp, &lost);
	if ((c->qp->flags & QPF_XRC) != 0)
		pipeline_srq_fail(w, c->qp->srq); /* class L */
	pipeline_fail(w, c, &lost, SOURCE_CQ);
}

void
pipeline_message_cut(struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	ASSERT(c->qp->active != NULL && v->wc_status != WC_SUCCESS);
	if ((c->qp->flags & QPF_SRQ) != 0 && pipeline_complete(w, c, v) != 0)
		cq_is_full(w, c);
}

static void
act_rare(struct worker *w, const struct context *c, struct responder_verdict *v)
{
	uint32_t a = v->act;

	ASSERT((a & (ACT_ATOMIC | ACT_REPLAY)) == 0 || v->saved != NULL);
	if ((a & ACT_INVALIDATE) != 0) {
		pipeline_local_own_all(w); /* READ responses that the key has allowed */
		mem_invalidate(w->mem, v->rkey);
	}
	if ((a & ACT_STORE) != 0)
		store_word(c);
	if ((a & ACT_FENCE) != 0)
		flush();
	if ((a & ACT_READ) != 0) {
		rte_prefetch0(c->host); /* read when the burst is done */
		v->pd = c->qp->pd;
		pipeline_owe_read(w, c->qp, v);
	}
	if ((a & ACT_ATOMIC) != 0) {
		v->saved->original = atomic_execute(c);
		pipeline_owe_atomic(w, c->qp, v, v->saved->original);
	}
	if ((a & ACT_REPLAY) != 0)
		pipeline_owe_atomic(w, c->qp, v, v->saved->original);
	if ((a & ACT_CUT) != 0)
		pipeline_message_cut(w, c, v);
	if ((a & ACT_LOW) != 0)
		pipeline_receives_low(w, c->qp);
	if ((a & ACT_EVENT) != 0 && (a & ACT_ERR) == 0)
		event_raise(w, c, v);
	if ((a & ACT_NAK) != 0 && (a & ACT_ERR) == 0)
		pipeline_owe_nak(w, c->qp, v);
}

void
pipeline_act_responder(struct worker *w, const struct context *c, struct responder_verdict *v)
{
	const uint32_t rare = ACT_INVALIDATE | ACT_READ | ACT_ATOMIC | ACT_REPLAY | ACT_CUT |
			      ACT_EVENT | ACT_NAK | ACT_LOW;
	const uint32_t no_talk = ACT_DUPLICATE | ACT_DROP | ACT_NAK | ACT_ERR;
	struct qp *qp = c->qp;
	uint32_t a = v->act;

	ASSERT(qp->worker == w->index);
	ASSERT((a & ACT_PLACE_WRITE) == 0 || c->p != NULL);
	if (UNLIKELY((qp->flags & QPF_UNHEARD) != 0) && (a & no_talk) == 0)
		comm_established(w, c);
	if ((a & ACT_TAKE_WQE) != 0)
		take_wqe(qp);
	if ((a & ACT_PLACE_WRITE) != 0)
		place_write(w, c, v);
	if ((a & ACT_PLACE_SEND) != 0 ||
		(UNLIKELY(qp->resp.head != 0) && (a & (ACT_TAKE_WQE | ACT_ERR)) == ACT_TAKE_WQE))
		place_send(w, c, v);
	if (UNLIKELY((a & rare) != 0))
		act_rare(w, c, v);
	if (UNLIKELY((a & ACT_ERR) != 0)) {
		pipeline_fail(w, c, v, SOURCE_RQ);
		return;
	}
	if ((a & ACT_COMPLETE) != 0 && UNLIKELY(pipeline_complete(w, c, v) != 0)) {
		cq_is_full(w, c);
		return;
	}
	if ((a & ACT_ACK) != 0)
		pipeline_owe_ack(w, qp, v);
}
