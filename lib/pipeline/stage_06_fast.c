/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 6, fast path: WRITE ONLY, duplicates of it and of SEND ONLY, and the loop over a burst that
 * hands the rest to the other files of the fast path, or leaves it to the full path.
 */
#include "acks.h"
#include "complete.h"
#include "count.h"
#include "drops.h"
#include "kept.h"
#include "local.h"
#include "mem_reach.h"
#include "sending.h"
#include "stage_06_fast.h"
#include "verdict.h"

/* ---- requests -------------------------------------------------------------------------------- */

void
pipeline_fast_trace(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, enum responder_rule rule)
{
	const struct responder_verdict v = { .rule = (uint16_t)rule,
		.syndrome = AETH_ACK | AETH_CREDIT_NONE,
		.fault = VERDICT_NO_FAULT };

	pipeline_trace_request(w, &(const struct context){ .qp = qp, .p = p }, &v);
}

/**
 * WRITE ONLYs at ePSN whose place is known, from b->pkt[i] on: those of one service.
 * @param local their payloads may be on loan.
 * @return how many.
 */
static ALWAYS_INLINE uint32_t
fast_writes(struct worker *w, struct burst *b, uint32_t i, struct fast *f, const uint8_t opcode,
	const bool local)
{
	const bool acked = wire_is_acked(wire_transport_of(opcode));
	const bool calm = LIKELY(f->calm) && LIKELY(w->dirty_n + (b->n - i) <= PIPELINE_BURST);
	const struct wire_pkt *p = &b->pkt[i], *const end = &b->pkt[b->n], *const from = p;
	const struct fast_place *at = &f->at[i];
	struct qp *const *qps = &b->qp[i];

	/* Pointers, not i: three strides take an address each, again and again. */
	for (; p != end; p++, at++, qps++) {
		struct qp *qp = *qps;

		if (UNLIKELY(p->opcode != opcode) || UNLIKELY(at->host == NULL) ||
			UNLIKELY(p->psn.v != qp->resp.epsn.v) ||
			(UNLIKELY(!calm) &&
				!place_holds(w, b, (uint32_t)(p - b->pkt), f, ACCESS_REMOTE_WRITE)))
			break;
		if (local)
			pipeline_local_deliver(w, b->m[p - b->pkt], p, at->host);
		else
			payload_copy(at->host, wire_payload(p), p->payload_len);
		responder_take_fast(&qp->resp);
		if (acked && LIKELY((p->flags & PKT_ACKREQ) != 0))
			fast_ack(w, qp, p->psn);
		qp_few_write(qp, p->frame_len);
		if (traced(w, qp))
			pipeline_fast_trace(w, qp, p, RULE_WRITE);
	}
	f->n.writes += (uint32_t)(p - from);
	return (uint32_t)(p - from);
}

/** The same of UC. */
static __attribute__((noinline)) uint32_t
fast_writes_uc(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	return fast_writes(w, b, i, f, OP_UC_WRITE_ONLY, false);
}

/** The same of RC, from an address of this process. */
static __attribute__((noinline)) uint32_t
fast_writes_local(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	return fast_writes(w, b, i, f, OP_RC_WRITE_ONLY, true);
}

/* ---- requests that are not taken ------------------------------------------------------------- */

/*
 * A peer that is behind sends many of these, and so does an attacker: they have to cost less than
 * good requests (RESP-SEQ-01, RESP-SEQ-02, RESP-RNR-01, RESP-RNR-05, RESP-RNR-08).
 */

static __attribute__((noinline)) void
refused_record(struct worker *w, struct burst *b, uint32_t i, struct charge c, struct fast *f)
{
	if (!pipeline_drop_recorded(w, b, i, c))
		f->n.left_out++;
}

/** A request is refused, and its QP may be latched now: count that, record it where wanted. */
static ALWAYS_INLINE void
refused(struct worker *w, struct burst *b, uint32_t i, struct charge c, struct fast *f)
{
	struct qp *qp = b->qp[i];

	f->calm = false;
	qp_count(w, qp, c.fault == FAULT_PSN ? STAT_out_of_sequence : STAT_out_of_buffer, 1);
	qp_count(w, qp, (enum stats_counter)w->fault_stat[c.fault], 1);
	if (c.fault == FAULT_PSN)
		f->n.ahead++;
	else
		f->n.unready++;
	if (UNLIKELY(record_wanted(w)))
		refused_record(w, b, i, c, f);
	else
		f->n.skipped++;
}

/** Owe a NAK that names ePSN. */
static ALWAYS_INLINE void
nak(struct worker *w, struct qp *qp, uint8_t syndrome)
{
	nak_owe(w, qp, ack_tail(syndrome, qp->resp.epsn.v, qp->resp.msn));
}

/**
 * Ahead of ePSN: the peer is told with a NAK, once. An ACK that is owed would have to leave before
 * the NAK, so a QP that owes one takes the full path. @return false: nothing was done.
 */
static ALWAYS_INLINE bool
gap(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	struct charge c = { .fault = FAULT_PSN, .impact = ERRBUF_DROP };
	struct qp *qp = b->qp[i];
	bool told;

	if (!qp->resp.latched && (qp->flags & QPF_DIRTY) != 0)
		return false;
	c.rule = (uint16_t)responder_gap(&qp->resp, b->pkt[i].psn, &told);
	if (!told) {
		c.impact = ERRBUF_NAK;
		nak(w, qp, AETH_NAK | NAK_PSN_SEQ_ERR);
	}
	refused(w, b, i, c, f);
	return true;
}

/** Has the QP a receive queue of its own, and is that empty? */
static ALWAYS_INLINE bool
has_no_wqe(const struct qp *qp)
{
	return qp->active == NULL && (qp->flags & (QPF_RECV_FEED | QPF_SRQ)) == 0 &&
	       ring_is_empty(&qp->rq);
}

/**
 * A SEND without a receive WQE: the peer is told to come again, but not twice in the same moment.
 * @return false: nothing was done.
 */
static __attribute__((noinline)) bool
not_ready(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	struct charge c = { RULE_RNR_EARLY, FAULT_RQ_EMPTY, ERRBUF_DROP };
	struct qp *qp = b->qp[i];

	if (!responder_is_unready(&qp->resp, &b->pkt[i]) || !has_no_wqe(qp))
		return false;
	if (!responder_is_waiting(&qp->resp, w->now)) {
		if ((qp->flags & QPF_DIRTY) != 0)
			return false;
		c = (struct charge){ RULE_RNR_SEND, FAULT_RQ_EMPTY, ERRBUF_RNR };
		responder_not_ready(&qp->resp, w->now);
		nak(w, qp, AETH_RNR | (qp->resp.min_rnr_timer & 31));
	}
	refused(w, b, i, c, f);
	return true;
}

/**
 * Requests of a latched QP, one behind the other, about which its peer knows: they are counted,
 * nothing else. @return how many.
 */
static __attribute__((noinline)) uint32_t
refuse_run(struct worker *w, const struct burst *b, uint32_t i, struct fast_counts *n)
{
	struct qp *qp = b->qp[i];
	const struct responder *r = &qp->resp;
	uint32_t at = i, ahead = 0, unready, bytes = 0;
	bool told;

	ASSERT(r->latched);
	if (record_wanted(w) || traced(w, qp))
		return 0;
	told = responder_is_waiting(r, w->now) && has_no_wqe(qp);
	for (; at < b->n && b->qp[at] == qp && fast_qp(w, qp, &b->pkt[at]); at++) {
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

/** At ePSN, and not taken so far. @return false: nothing was done. */
static ALWAYS_INLINE bool
fast_expected(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	return FAST_OPERATION(b->pkt[i].opcode) == OP_RC_SEND_ONLY && !traced(w, b->qp[i]) &&
	       not_ready(w, b, i, f);
}

/** Behind ePSN. @return false: nothing was done. */
static ALWAYS_INLINE bool
fast_duplicate(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	const struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];

	if (!responder_is_fast_duplicate(&qp->resp, p))
		return false;
	fast_ack(w, qp, responder_newest(&qp->resp));
	qp_count(w, qp, STAT_duplicate_request, 1);
	f->n.duplicates++;
	if (traced(w, qp))
		pipeline_fast_trace(
			w, qp, p, op_has(p->op, OPF_SEND) ? RULE_DUP_SEND : RULE_DUP_WRITE);
	return true;
}

/** Ahead of ePSN, where requests are kept. @return false: nothing was done. */
static __attribute__((noinline)) bool
keep(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	struct qp *qp = b->qp[i];

	if (!responder_keeps(&qp->resp, &b->pkt[i]) || traced(w, qp) || !pipeline_kept_room(w, qp))
		return false;
	if (UNLIKELY(w->local_burst))
		pipeline_local_own(w, b->m[i]);
	qp_count(w, qp, STAT_out_of_sequence, 1);
	qp_count(w, qp, STAT_kept_requests, 1);
	pipeline_kept_put(w, b, i);
	f->reused |= BIT32(i);
	f->n.kept++;
	return true;
}

/** What its PSN makes of it. @return false: nothing was done. */
static ALWAYS_INLINE bool
fast_by_psn(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	struct qp *qp = b->qp[i];

	switch (responder_region(&qp->resp, b->pkt[i].psn)) {
	case REGION_EXPECTED:
		return fast_expected(w, b, i, f);
	case REGION_DUPLICATE:
		return fast_duplicate(w, b, i, f);
	default:
		if (UNLIKELY((qp->resp.knobs & RESP_KNOB_KEEP) != 0))
			return keep(w, b, i, f);
		return LIKELY(responder_is_fast_gap(&qp->resp, &b->pkt[i])) && !traced(w, qp) &&
		       gap(w, b, i, f);
	}
}

/** One request that no run has taken. @return false: nothing was done. */
static ALWAYS_INLINE bool
fast_request(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	struct qp *qp = b->qp[i];

	if (UNLIKELY(!fast_qp(w, qp, &b->pkt[i])) || UNLIKELY(!fast_by_psn(w, b, i, f)))
		return false;
	count_taken(w, qp, &b->pkt[i]);
	return true;
}

/* ---- the burst ------------------------------------------------------------------------------- */

#define NOT_SPECIAL UINT32_MAX

/**
 * What has a way of its own, of that which is neither a SEND nor a WRITE of RC. @return how many,
 * from b->pkt[i] on, were taken; 0: the full path takes that one; NOT_SPECIAL: judge by its PSN.
 */
static ALWAYS_INLINE uint32_t
fast_special(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	const uint32_t end = f->one_port ? b->n : i + 1;
	struct qp *qp = b->qp[i];
	uint32_t n;

	switch (b->pkt[i].opcode) {
	case OP_RC_ACKNOWLEDGE:
		n = pipeline_fast_acks(w, b, i, end, &f->n);
		/* The queue for completions may have been full. */
		if (LIKELY(n != 0))
			f->calm &= qp_state_of(b->qp[i + n - 1]) == QPS_RTS;
		return n;
	case OP_RC_READ_REQUEST:
		n = pipeline_fast_reads(w, b, i, end, f);
		return LIKELY(n != 0) ? n : NOT_SPECIAL;
	case OP_RC_READ_RESPONSE_FIRST:
	case OP_RC_READ_RESPONSE_MIDDLE:
	case OP_RC_READ_RESPONSE_LAST:
	case OP_RC_READ_RESPONSE_ONLY:
		n = pipeline_fast_data(w, b, i, f);
		f->calm &= qp_state_of(qp) == QPS_RTS;
		return n;
	case OP_RC_WRITE_FIRST:
	case OP_RC_WRITE_MIDDLE:
	case OP_RC_WRITE_LAST:
		n = pipeline_fast_parts(w, b, i, end, f);
		return LIKELY(n != 0) ? n : NOT_SPECIAL;
	case OP_RC_SEND_MIDDLE:
		n = pipeline_fast_middles(w, b, i, end, f);
		return LIKELY(n != 0) ? n : NOT_SPECIAL;
	case OP_UC_WRITE_ONLY:
		return fast_writes_uc(w, b, i, f);
	case OP_RC_SEND_ONLY_IMM:
	case OP_RC_WRITE_ONLY_IMM:
	case OP_UC_SEND_ONLY:
		n = pipeline_fast_sends(w, b, i, f);
		return n != 0 ? n : NOT_SPECIAL;
	case OP_UD_SEND_ONLY:
		return pipeline_fast_sends(w, b, i, f);
	default:
		return NOT_SPECIAL;
	}
}

/** @return how many packets, from b->pkt[i] on, were taken; 0: the full path takes that one. */
static ALWAYS_INLINE uint32_t
fast_others(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	struct qp *qp = b->qp[i];
	uint32_t n;

	if (UNLIKELY(!f->one_port) && b->port[i] != b->port[0])
		return 0;
	if (b->pkt[i].opcode != OP_RC_WRITE_ONLY && b->pkt[i].opcode != OP_RC_SEND_ONLY &&
		LIKELY((n = fast_special(w, b, i, f)) != NOT_SPECIAL))
		return n;
	if (UNLIKELY(qp->resp.latched) && f->one_port && i + 1 < b->n && qp == b->qp[i + 1]) {
		n = refuse_run(w, b, i, &f->n);
		if (n != 0) {
			f->calm = false;
			return n;
		}
	}
	return fast_request(w, b, i, f);
}

uint32_t
pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	while (i < b->n) {
		uint32_t n = 0;

		if (b->pkt[i].opcode == OP_RC_WRITE_ONLY)
			n = LIKELY(!w->local_burst)
				    ? fast_writes(w, b, i, f, OP_RC_WRITE_ONLY, false)
				    : fast_writes_local(w, b, i, f);
		else if (b->pkt[i].opcode == OP_RC_SEND_ONLY)
			n = pipeline_fast_sends(w, b, i, f);
		if (n == 0)
			n = fast_others(w, b, i, f);
		if (UNLIKELY(n == 0))
			break;
		i += n;
	}
	return i;
}

static void
count_in(const struct worker *w, struct stats_block *b, const struct fast_counts *n, uint32_t all)
{
	stats_add(b, STAT_rcvd_pkts, all);
	stats_add(b, STAT_rx_write_requests, n->writes);
	stats_add(b, STAT_rx_send_requests, n->sends);
	stats_add(b, STAT_rx_read_requests, n->reads);
	stats_add(b, STAT_duplicate_request, n->duplicates);
	stats_add(b, STAT_rx_responses, n->acks);
	if (LIKELY(n->ahead + n->kept + n->unready + n->unmatched == 0))
		return;
	stats_add(b, STAT_rx_responses_unmatched, n->unmatched);
	stats_add(b, STAT_out_of_sequence, n->ahead + n->kept);
	stats_add(b, STAT_kept_requests, n->kept);
	stats_add(b, (enum stats_counter)w->fault_stat[FAULT_PSN], n->ahead);
	stats_add(b, STAT_out_of_buffer, n->unready);
	stats_add(b, (enum stats_counter)w->fault_stat[FAULT_RQ_EMPTY], n->unready);
	stats_add(b, STAT_error_buffer_lost, n->left_out);
}

void
pipeline_fast_end(struct worker *w, const struct burst *b, struct fast *f)
{
	struct fast_counts *n = &f->n;
	uint32_t all = n->writes + n->parts + n->sends + n->reads + n->duplicates + n->ahead +
		       n->kept + n->acks + n->unready;

	if (UNLIKELY(n->skipped != 0) && w->errbuf != NULL) {
		errbuf_leave_out(w->errbuf, n->skipped);
		n->left_out += n->skipped;
	}
	for (uint32_t left = f->reads; left != 0; left &= left - 1)
		responder_burst_done(&b->qp[__builtin_ctz(left)]->resp);
	count_in(w, &w->stats, n, all);
	count_in(w, &w->port_stats[b->port[0]], n, all);
	if (w->unsealed_n != 0)
		pipeline_requests_seal(w);
}
