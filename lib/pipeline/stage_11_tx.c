/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 11: hand frames to the ports. What a port does not take waits here, in order. Receiving
 * goes on meanwhile and answers pause, so only ACKs pile up, and only so far.
 *
 * A wait that a packet starts counts from when the packet was handed to its port, not from when it
 * was made: in between this lcore may lose its CPU, and the port may be full. So the clock is read
 * when the ports have been given what there is, and waits that began with a frame that has left
 * begin anew (TMR-02, CC-03). They are late by what passes between the port's taking the frame and
 * that reading, never early. Where nothing answers a request, it is done when it has left (UC-02).
 */
#include "acks.h"
#include "count.h"
#include "tx_prio.h"
#include "requester_fast.h"
#include "sending.h"
#include "stage.h"
#include "tx.h"

void
pipeline_tx_push(struct worker *w, uint8_t port, struct rte_mbuf *m)
{
	struct tx_queue *q = &w->tx[port];

	ASSERT(port < w->outs_n);
	ASSERT(q->head <= q->tail && q->tail <= TX_ROOM);
	if (UNLIKELY(q->tail == TX_ROOM)) {
		if (q->head == 0) {
			count(w, port, NULL, STAT_tx_backlog_drop);
			rte_pktmbuf_free(m);
			return;
		}
		memmove(q->m, q->m + q->head, (q->tail - q->head) * sizeof(q->m[0]));
		q->tail -= q->head;
		q->head = 0;
	}
	q->m[q->tail++] = m;
}

static uint64_t
bytes_of(struct rte_mbuf *const *m, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += m[i]->pkt_len;
	return sum;
}

/** The frames of `s` have left by now. */
static ALWAYS_INLINE void
departed(struct worker *w, const struct tx_start *s)
{
	struct qp *qp = s->qp;
	const ns_t now = w->now;

	if (UNLIKELY(qp == NULL))
		return;
	if (LIKELY(tx_start_what(s) == TX_REQUESTS))
		requester_departed(&qp->req, s->made, now);
	else if (tx_start_what(s) == TX_UNACKED)
		pipeline_sends_left(w, qp, psn(s->what >> TX_WHAT_BITS));
	else if (qp->cnp_next == s->made + qp->cnp_interval_ns)
		qp->cnp_next = now + qp->cnp_interval_ns;
}

static ALWAYS_INLINE void
starts_settle(struct worker *w, struct tx_queue *q)
{
	while (q->starts_head != q->starts_tail) {
		const struct tx_start *s = &q->starts[q->starts_head % TX_STARTS];

		/* Frames that were dropped are never counted as gone. */
		if (UNLIKELY((int32_t)(s->upto - q->gone) > 0) && q->head != q->tail)
			return;
		q->starts_head++;
		departed(w, s);
	}
	q->starts_head = q->starts_tail = 0; /* in lines that are in the cache */
}

void
pipeline_tx_departed(struct worker *w)
{
	for (uint32_t i = 0; i < w->outs_n; i++)
		starts_settle(w, &w->tx[i]);
}

/*
 * What has left can be settled now. What waits has room: stage 10 visits no QP while there is none
 * (tx_takes_no_requests()), and CNPs take no more than half of it.
 */
__attribute__((noinline)) bool
pipeline_tx_starts_room(struct worker *w, struct tx_queue *q)
{
	clock_read(w);
	starts_settle(w, q);
	return q->starts_tail - q->starts_head < TX_STARTS;
}

ns_t
pipeline_tx_waits_since(const struct worker *w, const struct qp *qp)
{
	ns_t since = 0;

	/* A QP whose path has changed may have some in another queue than its own. */
	for (uint32_t p = 0; p < w->outs_n; p++) {
		const struct tx_queue *q = &w->tx[p];

		for (uint32_t i = q->starts_head; i != q->starts_tail; i++) {
			const struct tx_start *s = &q->starts[i % TX_STARTS];

			if (s->qp == qp && tx_start_what(s) != TX_CNP &&
				(since == 0 || s->made < since))
				since = s->made;
		}
	}
	return since;
}

void
pipeline_tx_forget(struct worker *w, const struct qp *qp)
{
	for (uint32_t p = 0; p < w->outs_n; p++) {
		struct tx_queue *q = &w->tx[p];

		for (uint32_t i = q->starts_head; i != q->starts_tail; i++) {
			struct tx_start *s = &q->starts[i % TX_STARTS];

			if (s->qp == qp)
				s->qp = NULL;
		}
	}
}

uint32_t
stage_tx(struct worker *w)
{
	uint32_t total = 0;

	naks_send(w);               /* of READs that failed */
	ASSERT(w->unsealed_n == 0); /* a frame without its ICRC must not leave */
	for (uint32_t i = 0; i < w->ports_n; i++) {
		const struct pipeline_port *p = &w->conf.ports[i];
		struct tx_queue *q = &w->tx[i];
		uint32_t n = q->tail - q->head;
		uint64_t bytes;
		uint16_t sent;

		if (UNLIKELY(p->prio != NULL)) {
			total += pipeline_prio_tx(w, i);
			continue;
		}
		if (n == 0)
			continue;
		stats_add(&w->stats, STAT_sent_pkts, q->made);
		stats_add(&w->port_stats[i], STAT_sent_pkts, q->made);
		q->made = 0;
		/* Once taken, a frame is the driver's: its length is read before. */
		bytes = bytes_of(q->m + q->head, n);
		sent = rte_eth_tx_burst(p->id, p->tx_queue, q->m + q->head, (uint16_t)n);
		ASSERT(sent <= n);
		q->head += sent;
		q->gone += sent;
		if (LIKELY(q->head == q->tail))
			q->head = q->tail = 0;
		else
			bytes -= bytes_of(q->m + q->head, q->tail - q->head);
		stats_add(&w->stats, STAT_tx_packets, sent);
		stats_add(&w->stats, STAT_tx_bytes, bytes);
		stats_add(&w->port_stats[i], STAT_tx_packets, sent);
		stats_add(&w->port_stats[i], STAT_tx_bytes, bytes);
		total += sent;
	}
	return total;
}
