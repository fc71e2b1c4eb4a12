/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SENDING_H
#define SENDING_H
/**
 * @file sending.h  The send queue of a QP: taken from the ring, sent, completed, flushed.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: count.h, send_feed.h.
 */
#include "be.h"
#include "count.h"
#include "qp_ah.h"
#include "send_feed.h"

/** Rule index of a verdict, as it stands in traces and messages. */
static inline uint16_t
send_rule(const struct requester_verdict *v)
{
	return v->rule != REQRULE_NONE ? v->rule | QP_RULE_REQUESTER : 0;
}

/**
 * Carry a verdict out.
 * @param p the response, or NULL.
 * @param more another response of the QP follows at once: what may be sent is looked for then.
 */
void pipeline_act_response(struct worker *w, struct qp *qp, const struct wire_pkt *p,
	struct requester_verdict *v, bool more);

/** The same where nothing follows. */
static inline void
pipeline_act_requester(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, struct requester_verdict *v)
{
	pipeline_act_response(w, qp, p, v, false);
}

/**
 * Requests from position `first` on have succeeded: completions in posting order (REQ-08). The
 * ring's entries are given back before anybody can hear of it.
 * @return 0, or -ENOSPC: completions are lost, class F; pipeline_sends_overflow() is next.
 */
int pipeline_sends_complete(struct worker *w, struct qp *qp, uint32_t first, uint32_t n);
/** Class F: the CQ was full, so the QP fails. @param p the response that did it, or NULL. */
void pipeline_sends_overflow(struct worker *w, struct qp *qp, const struct wire_pkt *p);
/** The QP is in SQD from now on, or in RTS again (QP-09, QP-10). */
void pipeline_sqd(struct worker *w, struct qp *qp, bool on);

/** Entries of the ring that were not copied yet; a producer's index is not believed blindly. */
static inline uint32_t
sendq_waiting(struct qp_sendq *q)
{
	uint32_t n;

	if (q->ring.sh == NULL)
		return 0;
	n = ring_consume_count(&q->ring);
	return n > q->taken && n <= q->ring.mask + 1 ? n - q->taken : 0;
}

/** The oldest n requests have completed: their ring entries are the host's again. */
void pipeline_sendq_release(struct qp *qp, uint32_t n);
/** Inline bytes of a request that has not completed. */
const void *pipeline_sendq_inline(const struct qp *qp, uint32_t position);
/** Its scatter/gather list: one entry stands in the work request, unless operands do. */
static inline const struct ring_sge *
request_sges(const struct qp *qp, uint32_t position)
{
	const struct requester_wr *wr = &qp->req.wr[position & qp->req.wr_mask];

	if (UNLIKELY(is_fed(qp)))
		return &qp->send_feed->sge;
	if (LIKELY(wr->num_sge == 1) && LIKELY(!verbs_wr_is_atomic(wr->opcode)))
		return &wr->sge;
	return qp_send_sges(qp, position);
}
/** The Q_Key that a datagram shows: with its highest bit set the QP's own is meant (UD-07). */
static ALWAYS_INLINE uint32_t
request_qkey(const struct qp *qp, const struct requester_wr *wr)
{
	const uint32_t qkey = (uint32_t)(wr->remote_addr >> 32);

	return UNLIKELY((qkey & BIT32(31)) != 0) ? qp->qkey : qkey;
}
/** What of a datagram's headers its handle does not know. @param bth of the frame. */
static ALWAYS_INLINE void
request_address(const struct qp *qp, const struct requester_wr *wr, const struct qp_ah_dest *to,
	uint8_t *bth)
{
	const uint32_t mix = qp->qpn * 0x9e3779b1u >> 16;

	be16_store(bth - WIRE_UDP_LEN, (uint16_t)(to->sport ^ (mix & to->by_qp)));
	be16_store(bth + 2, qp->pkey);
	be32_store(bth + 4, (uint32_t)wr->remote_addr & PSN_MASK);
}
/** Of the QP's send queue: the indices, the next entry, and where it is copied. */
static ALWAYS_INLINE void
sendq_fetch(const struct qp *qp)
{
	const struct ring *r = &qp->sq.ring;
	const uint8_t *entry = ring_slot(r, r->cons + qp->sq.taken);

	__builtin_prefetch(&r->sh->prod, 1);
	__builtin_prefetch(entry);
	__builtin_prefetch(entry + CACHE_LINE);
	__builtin_prefetch(&qp->req.wr[qp->req.tail & qp->req.wr_mask], 1);
	if (UNLIKELY(qp->sq.alarm == 0)) /* the timer will be armed */
		__builtin_prefetch(&qp->sq.timer, 1);
}
/** Put the QP on the list of those that are asked for packets, unless it is there. */
void pipeline_send_wake(struct worker *w, struct qp *qp);
/** Take it off that list. */
void pipeline_send_sleep(struct worker *w, struct qp *qp);
/** Lines of a QP that sending looks at: before it is known whether it does. */
static ALWAYS_INLINE void
sender_fetch(const struct qp *qp)
{
	rte_prefetch0(qp);
	rte_prefetch0(&qp->sq);
	rte_prefetch0(&qp->req);
	rte_prefetch0(&qp->req.deadline);
	rte_prefetch0(&qp->tmpl);
}
/** Off the list, timer cancelled. */
void pipeline_sends_stop(struct worker *w, struct qp *qp);
/** The peer's MAC is known now, perhaps: what waited for it goes on. */
void pipeline_sends_found(struct worker *w, struct qp *qp);
/** The host says that it posted: send it, or flush it in ERR (QP-13) and SQE (QP-11). */
void pipeline_sends_posted(struct worker *w, struct qp *qp);
/** Of a service without ACKs: the port has taken all packets up to PSN `end`, which is none. */
void pipeline_sends_left(struct worker *w, struct qp *qp, psn_t end);

/**
 * Carry out the request whose turn it is: a bind or an invalidate (local_work.c). Where another
 * worker may still use the key, it goes on in a later turn.
 */
void pipeline_local_work(struct worker *w, struct qp *qp);
/**
 * Make one packet in `m` and hand it to the port.
 * @return 0; -EFAULT: a buffer of the request is not accessible; -EBADF: it names no address handle
 * of the QP's; -EHOSTUNREACH: nobody knows the MAC, which was counted; -EMSGSIZE: `m` is too small.
 * Unless 0, `m` stays the caller's.
 */
int pipeline_request_send(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf *m,
	const struct requester_packet *p);
/**
 * The same for a QP whose neighbour nobody knows: the packet counts as sent and lost, so that the
 * transport timer decides (RT-05). @return 0; -EFAULT as above.
 */
int pipeline_request_lose(
	struct worker *w, struct qp *qp, uint8_t port, const struct requester_packet *p);
/**
 * Copy what was posted into the requester's array; look up and fetch the payloads of the QP's next
 * requests: memory that an application has written is in no cache of this lcore.
 */
void pipeline_requests_take(const struct worker *w, struct qp *qp, struct request_sources *out);
/** Payload, where short lengths need no call. */
static ALWAYS_INLINE void
request_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (LIKELY(len == 64))
		memcpy(to, from, 64);
	else
		memcpy(to, from, len);
}

/**
 * Stage 10, fast path (stage_10_fast.c): make requests from r->sending on, in the last of the `*n`
 * buffers `m`. @param n in: buffers; out: those that are left. @return how many were made; the full
 * path goes on from there.
 */
uint32_t pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n);
/** The same for a QPF_DATAGRAM QP (stage_10_fast_ud.c). */
uint32_t pipeline_fast_datagrams(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n);
/** Write the ICRC of the frames of pipeline_request_send() and pipeline_reply_read(). */
void pipeline_requests_seal(struct worker *w);
/** Payloads from so many bytes on are copied by icrc_copy_seal(): their lines are read once. */
#define COPY_SEAL_MIN 768
/** Note a frame whose ICRC pipeline_requests_seal() is to write. @param len bytes up to it. */
static ALWAYS_INLINE void
request_unsealed(struct worker *w, uint8_t *frame, uint16_t l3_off, bool ipv6, uint32_t len)
{
	ASSERT(w->unsealed_n < REQUEST_TURN);
	w->unsealed[w->unsealed_n++] = (struct icrc_frame){ frame, len, l3_off, ipv6 };
	w->unsealed_bytes += len;
	if (UNLIKELY(w->unsealed_n == REQUEST_TURN) || UNLIKELY(w->unsealed_bytes > SEAL_BYTES))
		pipeline_requests_seal(w);
}
/** The QP's timer fires by `at`; it may be there for something that comes before. */
static ALWAYS_INLINE void
timer_by(struct worker *w, struct qp *qp, ns_t at)
{
	if (LIKELY(qp->sq.alarm - 1 < at)) /* not armed: 0 */
		return;
	ASSERT(qp->worker == w->index);
	qp->sq.alarm = at;
	wheel_arm(&w->wheel, &qp->sq.timer, tick_after(at));
}

/**
 * The requester's deadline may have changed. A timer that fires before it is armed again then:
 * progress does not touch it.
 */
static ALWAYS_INLINE void
timer_update(struct worker *w, struct qp *qp)
{
	const struct requester *r = &qp->req;

	if (r->timing | r->waiting_rnr)
		timer_by(w, qp, r->deadline);
}

#endif
