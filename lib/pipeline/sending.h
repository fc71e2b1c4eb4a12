/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SENDING_H
#define SENDING_H
/**
 * @file sending.h  The requester's part of pipeline_priv.h, which includes it.
 *
 * Owner:   the worker's lcore.
 * Memory:  none.
 * Depends: pipeline_priv.h.
 */
#include "pipeline_priv.h"

/* ---- send_actions.c, send_queue.c, send_take.c, requests.c, stage_08_timers.c ---------------- */

/** Rule index of a verdict, as it stands in traces and messages. */
static inline uint16_t
send_rule(const struct requester_verdict *v)
{
	return v->rule != REQRULE_NONE ? v->rule | QP_RULE_REQUESTER : 0;
}

/** Does the worker post to the QP itself? Then sq.feed is there. */
static inline bool
is_fed(const struct qp *qp)
{
	return (qp->flags & QPF_SEND_FEED) != 0;
}

/** Carry a verdict out. @param p the response, or NULL. */
void pipeline_act_requester(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, struct requester_verdict *v);
/**
 * Requests from position `first` on have succeeded: completions in posting order (REQ-08). The
 * ring's entries are given back before anybody can hear of it.
 * @return 0, or -ENOSPC: completions are lost, class F; pipeline_sends_overflow() is next.
 */
int pipeline_sends_complete(struct worker *w, struct qp *qp, uint32_t first, uint32_t n);
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
		return &qp->sq.feed->sge;
	if (LIKELY(wr->num_sge == 1) && LIKELY(!verbs_wr_is_atomic(wr->opcode)))
		return &wr->sge;
	return qp->sq.sges + (size_t)(position & qp->req.wr_mask) * qp->sq.max_sge;
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
}
/** On, or off, the list of QPs that are asked for packets. */
void pipeline_send_wake(struct worker *w, struct qp *qp);
void pipeline_send_sleep(struct worker *w, struct qp *qp);
/** Lines of a QP that sending looks at: before it is known whether it does. */
static ALWAYS_INLINE void
sender_fetch(const struct qp *qp)
{
	rte_prefetch0(qp);
	rte_prefetch0(&qp->sq);
	rte_prefetch0(&qp->sq.client);
	rte_prefetch0(&qp->req);
	rte_prefetch0(&qp->req.deadline);
	rte_prefetch0(&qp->tmpl);
	rte_prefetch0(qp->hot);
}
/** Off the list, timer cancelled. */
void pipeline_sends_stop(struct worker *w, struct qp *qp);
/** The peer's MAC is known now, perhaps: what waited for it goes on. */
void pipeline_sends_found(struct worker *w, struct qp *qp);
/** The host says that it posted: send it, or flush it in ERR (QP-13). */
void pipeline_sends_posted(struct worker *w, struct qp *qp);
/** Complete everything posted with WR_FLUSH_ERR, oldest first; nothing is ever sent again. */
void pipeline_flush_sends(struct worker *w, struct qp *qp);

/**
 * Make one packet in `m` and hand it to the port.
 * @return 0; -EFAULT: a buffer of the request is not accessible; -EMSGSIZE: `m` is too small.
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
/** Write the ICRC of the frames of pipeline_request_send() and pipeline_reply_read(). */
void pipeline_requests_seal(struct worker *w);
static ALWAYS_INLINE void
request_unsealed(struct worker *w, uint8_t *frame, uint16_t l3_off, bool ipv6, uint32_t len)
{
	w->unsealed[w->unsealed_n++] = (struct icrc_frame){ frame, len, l3_off, ipv6 };
	w->unsealed_bytes += len;
	if (UNLIKELY(w->unsealed_n == REQUEST_TURN) || UNLIKELY(w->unsealed_bytes > SEAL_BYTES))
		pipeline_requests_seal(w);
}
/**
 * The requester's deadline may have changed. A timer that fires before it is armed again then:
 * progress does not touch it.
 */
static ALWAYS_INLINE void
timer_update(struct worker *w, struct qp *qp)
{
	const struct requester *r = &qp->req;

	if (!(r->timing | r->waiting_rnr))
		return;
	if (LIKELY(qp->sq.alarm - 1 < r->deadline)) /* not armed: 0 */
		return;
	qp->sq.alarm = r->deadline;
	wheel_arm(&w->wheel, &qp->sq.timer, tick_after(r->deadline));
}

/* ---- stage_11_tx.c --------------------------------------------------------------------------- */

/** The ports were given what there is, and the clock was read: waits begin. */
void pipeline_tx_departed(struct worker *w);
/** Has a frame been made for which a wait begins when it leaves? */
static ALWAYS_INLINE bool
tx_has_starts(const struct worker *w)
{
	for (uint32_t i = 0; i < w->ports_n; i++)
		if (w->tx[i].starts_head != w->tx[i].starts_tail)
			return true;
	return false;
}
/** There is no room in q->starts. @return false: nor can any be made. */
bool pipeline_tx_starts_room(struct worker *w, struct tx_queue *q);
/**
 * Frames of the QP stand at the end of the port's queue. What they start began with w->now, and
 * begins anew when they have left.
 */
static ALWAYS_INLINE void
tx_departs(struct worker *w, uint8_t port, struct qp *qp, enum tx_what what)
{
	struct tx_queue *q = &w->tx[port];
	const uint32_t upto = q->gone + (q->tail - q->head);
	struct tx_start *s;

	if (UNLIKELY(q->starts_tail - q->starts_head == TX_STARTS) &&
		!pipeline_tx_starts_room(w, q))
		return; /* cannot be: see there */
	s = &q->starts[q->starts_tail++ % TX_STARTS];
	*s = (struct tx_start){ qp, w->now, upto, (uint8_t)what };
}
/** When the oldest request of the QP was made that still waits for its port. 0: none waits. */
ns_t pipeline_tx_waits_since(const struct worker *w, const struct qp *qp);
/** The QP stops: nothing begins for it any more. */
void pipeline_tx_forget(struct worker *w, const struct qp *qp);

/* ---- send_feed.c ----------------------------------------------------------------------------- */

void pipeline_feed_take(struct qp *qp, ns_t now);
/** `n` requests from position `first` on have completed. */
void pipeline_feed_completed(struct worker *w, const struct qp *qp, uint32_t first, uint32_t n);
bool pipeline_feed_rests(struct worker *w, struct qp *qp, const struct requester_verdict *v);
bool pipeline_feed_timer(struct worker *w, struct qp *qp);

#endif
