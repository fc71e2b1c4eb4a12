/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_06_REFUSE_FAST_H
#define STAGE_06_REFUSE_FAST_H
/**
 * @file stage_06_refuse_fast.h  Requests that are not taken; the QP goes on.
 *
 * Owner:   stage_06_respond.c; the worker's lcore.
 * Memory:  none.
 * Depends: acks.h, pipeline_priv.h, responder_fast.h.
 * Spec:    RESP-SEQ-01, RESP-SEQ-02, RESP-RNR-01, RESP-RNR-05, RESP-RNR-08.
 *
 * A peer that is behind sends many of these, and so does one that means harm: they are to cost less
 * than what is taken. Whatever is not plain returns false with nothing done.
 */
#include "acks.h"
#include "pipeline_priv.h"
#include "responder_fast.h"
#include "stage_06_respond_fast.h"

/**
 * What plain packets of a burst are counted as: by QP at once, by worker and port at its end.
 */
struct plain_counts {
	uint32_t writes;
	uint32_t sends;
	uint32_t duplicates;
	uint32_t acks;
	uint32_t ghosts; /* of these */
	uint32_t ahead;
	uint32_t unready;
	uint32_t left_out; /* of those ahead and unready, by the error buffer, and told */
	uint32_t skipped;  /* ... and not told yet */
};

static void
plain_count_in(
	const struct worker *w, struct stats_block *b, const struct plain_counts *n, uint32_t all)
{
	stats_add(b, STAT_rcvd_pkts, all);
	stats_add(b, STAT_rx_write_requests, n->writes);
	stats_add(b, STAT_rx_send_requests, n->sends);
	stats_add(b, STAT_duplicate_request, n->duplicates);
	stats_add(b, STAT_rx_responses, n->acks);
	if (LIKELY(n->ahead + n->unready + n->ghosts == 0))
		return;
	stats_add(b, STAT_rx_responses_unmatched, n->ghosts);
	stats_add(b, STAT_out_of_sequence, n->ahead);
	stats_add(b, (enum stats_counter)w->fault_stat[FAULT_PSN], n->ahead);
	stats_add(b, STAT_out_of_buffer, n->unready);
	stats_add(b, (enum stats_counter)w->fault_stat[FAULT_RQ_EMPTY], n->unready);
	stats_add(b, STAT_error_buffer_lost, n->left_out);
}

static __attribute__((noinline)) void
refused_record(
	struct worker *w, struct burst *b, uint32_t i, struct charge c, struct plain_counts *n)
{
	if (!pipeline_drop_recorded(w, b, i, c))
		n->left_out++;
}

/** A request is refused: count it. @return whether it is to be recorded, too. */
static ALWAYS_INLINE bool
refused(struct worker *w, struct qp *qp, enum wire_fault fault, struct plain_counts *n)
{
	qp_count(w, qp, fault == FAULT_PSN ? STAT_out_of_sequence : STAT_out_of_buffer, 1);
	qp_count(w, qp, (enum stats_counter)w->fault_stat[fault], 1);
	if (fault == FAULT_PSN)
		n->ahead++;
	else
		n->unready++;
	if (UNLIKELY(record_wanted(w)))
		return true;
	n->skipped++;
	return false;
}

/** The burst is over, or the port's part of it. */
static void
plain_end(struct worker *w, uint8_t port, struct plain_counts *n)
{
	uint32_t all = n->writes + n->sends + n->duplicates + n->ahead + n->acks + n->unready;

	if (UNLIKELY(n->skipped != 0) && w->errbuf != NULL) {
		errbuf_leave_out(w->errbuf, n->skipped);
		n->left_out += n->skipped;
	}
	plain_count_in(w, &w->stats, n, all);
	plain_count_in(w, &w->port_stats[port], n, all);
}

/**
 * Ahead of ePSN: the peer is told with a NAK, once. An ACK that is owed would have to leave before
 * the NAK, so such a QP is left to the full path. @return false: nothing was done.
 */
static ALWAYS_INLINE bool
fast_gap(struct worker *w, struct burst *b, uint32_t i, struct plain_counts *n)
{
	struct charge c = { .fault = FAULT_PSN, .impact = ERRBUF_DROP };
	struct qp *qp = b->qp[i];
	bool told = qp->resp.latched;

	if (!told && (qp->flags & QPF_DIRTY) != 0)
		return false;
	c.rule = (uint16_t)responder_gap(&qp->resp, b->pkt[i].psn, &told);
	if (!told) {
		c.impact = ERRBUF_NAK;
		nak_owe(w, qp, ack_tail(AETH_NAK | NAK_PSN_SEQ_ERR, qp->resp.epsn.v, qp->resp.msn));
	}
	if (UNLIKELY(refused(w, qp, FAULT_PSN, n)))
		refused_record(w, b, i, c, n);
	return true;
}

/**
 * A SEND, and there is no receive WQE: the peer is told to come again, but one that did before it
 * can have heard of that is not told twice.
 */
static __attribute__((noinline)) bool
plain_unready(struct worker *w, struct burst *b, uint32_t i, struct plain_counts *n)
{
	struct charge c = { RULE_RNR_EARLY, FAULT_RQ_EMPTY, ERRBUF_DROP };
	struct qp *qp = b->qp[i];
	bool again;

	if (!responder_is_unready(&qp->resp, &b->pkt[i]) || qp->active != NULL ||
		(qp->flags & (QPF_RECV_FEED | QPF_SRQ)) != 0 || !ring_is_empty(&qp->rq))
		return false;
	again = responder_is_waiting(&qp->resp, w->now);
	if (!again) {
		if ((qp->flags & QPF_DIRTY) != 0)
			return false;
		c = (struct charge){ RULE_RNR_SEND, FAULT_RQ_EMPTY, ERRBUF_RNR };
		responder_not_ready(&qp->resp, w->now);
		nak_owe(w, qp,
			ack_tail(AETH_RNR | (qp->resp.min_rnr_timer & 31), qp->resp.epsn.v,
				qp->resp.msn));
	}
	if (UNLIKELY(refused(w, qp, FAULT_RQ_EMPTY, n)))
		refused_record(w, b, i, c, n);
	return true;
}

/** What is none of those that a QP takes. @return false: nothing was done. */
static ALWAYS_INLINE bool
plain_refused(struct worker *w, struct burst *b, uint32_t i, struct plain_counts *n)
{
	const struct responder *r = &b->qp[i]->resp;

	if (responder_is_fast_gap(r, &b->pkt[i]))
		return fast_gap(w, b, i, n);
	return plain_unready(w, b, i, n);
}

/**
 * Requests of a latched QP, one behind the other, about which its peer knows: they are counted, and
 * that is all. @param end one behind the last packet that may be looked at. @return how many.
 */
static __attribute__((noinline)) uint32_t
refused_run(
	struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct plain_counts *n)
{
	struct qp *qp = b->qp[i];
	const struct responder *r = &qp->resp;
	uint32_t at = i, ahead = 0, unready, bytes = 0;
	bool told;

	if (record_wanted(w) || traced(w, qp))
		return 0;
	told = responder_is_waiting(r, w->now) && qp->active == NULL &&
	       (qp->flags & (QPF_RECV_FEED | QPF_SRQ)) == 0 && ring_is_empty(&qp->rq);
	for (; at < end && b->qp[at] == qp && plain_qp(w, qp, &b->pkt[at]); at++) {
		const struct wire_pkt *p = &b->pkt[at];

		if (responder_is_fast_gap(r, p))
			ahead++;
		else if (!told || !responder_is_unready(r, p))
			break;
		bytes += p->frame_len;
	}
	if (at == i)
		return 0;
	unready = at - i - ahead;
	qp_count(w, qp, STAT_out_of_sequence, ahead);
	qp_count(w, qp, (enum stats_counter)w->fault_stat[FAULT_PSN], ahead);
	qp_count(w, qp, STAT_out_of_buffer, unready);
	qp_count(w, qp, (enum stats_counter)w->fault_stat[FAULT_RQ_EMPTY], unready);
	qp_count(w, qp, STAT_rcvd_pkts, at - i);
	qp_count(w, qp, STAT_rx_packets, at - i);
	qp_count(w, qp, STAT_rx_bytes, bytes);
	n->ahead += ahead;
	n->unready += unready;
	n->skipped += at - i;
	return at - i;
}

#endif
