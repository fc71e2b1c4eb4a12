/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks on the way in, CNPs on the way out, CNPs that arrive (CC-01 .. CC-08), and round trips. */
#include "cc_delay.h"
#include "congestion.h"
#include "tx_prio.h"
#include "count.h"
#include "qp_cc.h"
#include "reply.h"
#include "tx.h"
#include "wire_head.h"

/** CC-08: BECN set, sixteen bytes behind the BTH. */
bool
pipeline_cnp_is_good(const struct wire_pkt *p)
{
	return (p->flags & PKT_BECN) != 0 && p->payload_len == WIRE_CNP_PAYLOAD_LEN && p->pad == 0;
}

/**
 * A CNP of the QP stands in the port's queue: the next one comes an interval after it has left
 * (CC-03). Where half of the port's queue is CNPs the interval counts from here.
 */
static void
cnp_leaves(struct worker *w, uint8_t port, struct qp *qp)
{
	const struct tx_queue *q;

	port = prio_cnp(w, qp, port);
	q = &w->tx[port];
	qp->cnp_next = w->now + qp->cnp_interval_ns;
	if (LIKELY(q->starts_tail - q->starts_head < TX_STARTS / 2))
		tx_departs(w, port, qp, TX_CNP);
}

/**
 * CC-04: the control lcore sends it; marks that come meanwhile are the same CNP's. A request that
 * got lost is made again after a second.
 */
static void
schedule(struct worker *w, struct qp *qp)
{
	struct mbox_msg msg = { .type = MBOX_CNP, .cnp = { .qp = qp, .qpn = qp->qpn } };

	if ((qp->flags & QPF_CNP_SCHEDULED) != 0 && w->now < qp->cnp_next + TIME_NS_PER_S)
		return;
	if (w->mbox == NULL || mbox_send_up(w->mbox, &msg) != 0)
		return;
	qp->flags |= QPF_CNP_SCHEDULED;
	qp->cnp_next = w->now + qp->cnp_interval_ns;
}

/**
 * CC-24: whatever is marked tells of a queue on the peer's way to us, ACKs and NAKs too, but a CNP
 * draws none: it would be answered by the peer in the same way, for ever.
 */
void
pipeline_congestion_mark(struct worker *w, uint8_t port, struct qp *qp, const struct wire_pkt *p)
{
	count(w, port, qp, STAT_np_ecn_marked_roce_packets);
	qp->ce_seen++;
	if ((qp->flags & QPF_CNP) == 0 || w->now < qp->cnp_next || op_has(p->op, OPF_CNP) ||
		!wire_is_connected(qp->resp.transport))
		return;
	if (UNLIKELY((qp->flags & QPF_CNP_CONTROL) != 0)) {
		schedule(w, qp);
		return;
	}
	pipeline_reply_cnp(w, qp);
	cnp_leaves(w, port, qp);
}

/** The control lcore's CNP of this QP stands in its port's queue. */
void
pipeline_congestion_sent(struct worker *w, uint32_t qpn)
{
	struct qp *qp = qp_lookup(w->qps, qpn);
	uint8_t port;

	if (qp == NULL || qp->worker != w->index || qp == w->moving.qp)
		return; /* it was detached meanwhile, or is on its way to another worker */
	port = w->port_of[qp->out];
	qp->flags &= ~(uint32_t)QPF_CNP_SCHEDULED;
	if (port != PORT_NONE) {
		count(w, port, qp, STAT_np_cnp_sent);
		count(w, port, qp, STAT_sent_pkts);
		cnp_leaves(w, port, qp);
	}
}

uint32_t
pipeline_congestion_mbps(const struct worker *w, const struct qp *qp)
{
	const uint8_t port = w->port_of[qp->out];
	const _Atomic uint32_t *mbps = port != PORT_NONE ? w->conf.ports[port].mbps : NULL;

	return mbps != NULL ? atomic_load_explicit(mbps, memory_order_relaxed) : 0;
}

void
pipeline_congestion_line(const struct worker *w, struct qp *qp)
{
	cc_line(&qp_cc(qp)->cc, pipeline_congestion_mbps(w, qp));
	qp_cc_note(qp);
}

/**
 * CC-05, CC-06: the first CNP halves the number of packets in flight, for good; what is in flight
 * drains first. CC-11: it cuts the QP's rate. A QP without an algorithm notices and goes on.
 *
 * Anybody can send one to a QP of datagrams, for it has no peer and a CNP shows no Q_Key; and none
 * can be true: datagrams are Not-ECT, so nobody marks them.
 */
void
pipeline_congestion_notified(struct worker *w, uint8_t port, struct qp *qp)
{
	uint8_t state = qp_state_of(qp);

	if (!wire_is_connected(qp->resp.transport)) {
		count(w, port, qp, STAT_rp_cnp_ignored);
	} else if ((qp->flags & QPF_CC_RATE) != 0 && state >= QPS_RTR && state <= QPS_SQD) {
		count(w, port, qp, STAT_rp_cnp_handled);
		pipeline_congestion_line(w, qp);
		cc_notified(&qp_cc(qp)->cc, w->now);
		qp_cc_note(qp);
	} else if (state == QPS_RTS || state == QPS_SQD) {
		count(w, port, qp, STAT_rp_cnp_handled);
		if ((qp->flags & QPF_CC_WINDOW) != 0)
			qp->req.window = qp->window > 1 ? qp->window / 2 : 1;
	} else {
		count(w, port, qp, STAT_rp_cnp_ignored);
	}
	if (traced(w, qp))
		trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
					    .qpn = qp->qpn,
					    .kind = TRACE_cnp,
					    .opcode = OP_CNP,
					    .fault = VERDICT_NO_FAULT,
					    .state = state });
}

/** What an IP header says that is left of the hop limit. */
static uint8_t
hop_limit(const struct wire_pkt *p)
{
	const uint8_t *ip = p->frame + p->l3_off;

	return ip[0] >> 4 == 6 ? ip[7] : ip[8];
}

void
pipeline_congestion_heard(struct worker *w, struct qp *qp, const struct wire_pkt *p,
	const struct requester_verdict *v)
{
	const bool timeout = v->cause == QC_TIMEOUT;
	struct cc *c;

	if ((qp->flags & QPF_CC_RATE) == 0 || !qp_cc(qp)->cc.p.by_delay)
		return;
	pipeline_congestion_line(w, qp);
	c = &qp_cc(qp)->cc;
	if ((v->act & REQACT_ROUND) != 0)
		cc_delay_round(c,
			&(struct cc_round){ .rtt = qp->req.rtt,
				.hops = p != NULL ? cc_delay_hops(hop_limit(p)) : 0,
				.frame = qp->req.pmtu + WIRE_HEAD_LEN + WIRE_ICRC_LEN },
			w->now);
	if (timeout || v->cause == QC_SEQ_NAK || v->cause == QC_IMPLIED_NAK)
		cc_delay_lost(c, timeout, w->now);
	qp_cc_note(qp);
	qp_cc_window(qp);
}
