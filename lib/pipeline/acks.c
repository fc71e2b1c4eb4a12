/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ACKs and NAKs. All of a QP's are the same but for the PSN, the syndrome and the MSN, so the
 * template stands as an ACK once the first one was sent, and of the ICRC only the part that changes
 * is computed again. A sender of anything else patches the same fields anyway.
 */
#include "acks.h"
#include "count.h"
#include "migration.h"
#include "reply.h"

static inline uint8_t
ack_opcode(const struct qp *qp)
{
	return wire_opcode_on(qp->resp.transport, OP_RC_ACKNOWLEDGE);
}

/**
 * Make the template an ACK of PSN 0 with an AETH of zeros. A CRC is linear: that of any other ACK
 * is this one's, with what PSN and AETH make of a state of 0 added.
 */
static void
prime(struct worker *w, struct qp *qp)
{
	struct wire_template *t = &qp->tmpl;
	const struct wire_template from = *t;
	uint8_t frame[sizeof(t->bytes) + WIRE_AETH_LEN], *at = t->bytes;

	/* To its place at once: what is written in small pieces is slow to copy in large ones. */
	wire_template_write(
		&from, t->bytes, ack_opcode(qp), migreq_of(qp), 0, psn(0), WIRE_AETH_LEN);
	if (UNLIKELY(t->len + WIRE_AETH_LEN > (int)sizeof(t->bytes))) {
		memcpy(frame, t->bytes, sizeof(t->bytes));
		at = frame;
	}
	memset(at + t->len, 0, WIRE_AETH_LEN);
	qp->ack_crc = ~icrc_compute(w->crc, at + t->l3_off, t->ipv6 != 0,
		(uint32_t)(t->len - t->l3_off) + WIRE_AETH_LEN);
	qp->flags |= QPF_ACK_CRC;
}

static void
nak_count(struct worker *w, uint8_t port, struct qp *qp, uint8_t syndrome)
{
	static const uint16_t nak_stat[] = {
		[NAK_PSN_SEQ_ERR] = STAT_resp_nak_sequence_sent,
		[NAK_INV_REQ] = STAT_resp_nak_invalid_sent,
		[NAK_REM_ACCESS] = STAT_resp_remote_access_errors,
		[NAK_REM_OP] = STAT_resp_nak_operation_sent,
		[NAK_INV_RD_REQ] = STAT_resp_nak_srq_sent,
	};
	uint8_t code = syndrome & AETH_CODE_MASK;

	if ((syndrome & AETH_KIND_MASK) == AETH_RNR)
		count(w, port, qp, STAT_send_rnr_err);
	else if (code < ARRAY_LEN(nak_stat))
		count(w, port, qp, (enum stats_counter)nak_stat[code]);
}

/** Send one: `crc` is the state behind `tail`. @return its port; PORT_NONE: not sent, counted. */
static __attribute__((noinline)) uint8_t
send_ack(struct worker *w, struct qp *qp, uint64_t tail, uint32_t crc)
{
	const struct wire_template *t = &qp->tmpl;
	uint8_t port = out_port(w, qp);
	struct rte_mbuf *m;
	uint8_t *frame;

	if (UNLIKELY(port == PORT_NONE))
		return PORT_NONE;
	m = small_mbuf(w, port);
	if (UNLIKELY(m == NULL)) {
		count(w, port, qp, STAT_tx_no_mbuf);
		return PORT_NONE;
	}
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(frame, t->bytes, sizeof(t->bytes));
	memcpy(frame + t->len - WIRE_AETH_LEN, &tail, sizeof(tail));
	icrc_store(frame + t->len + WIRE_AETH_LEN, icrc_final(crc));
	send_frame(w, port, qp, m, (uint32_t)t->len + WIRE_AETH_LEN + WIRE_ICRC_LEN);
	return port;
}

static void
trace_ack(struct worker *w, struct qp *qp, uint8_t syndrome, psn_t p, uint32_t msn)
{
	const struct resp_answer a = { .psn = p, .msn = msn, .syndrome = syndrome };
	bool nak = (syndrome & AETH_KIND_MASK) != AETH_ACK;

	pipeline_trace_reply(w, qp, &a, nak ? TRACE_nak : TRACE_ack, ack_opcode(qp));
}

/** Of what ack_tail() made. */
static inline uint8_t
tail_syndrome(uint64_t tail)
{
	return (uint8_t)(__builtin_bswap64(tail) >> 24);
}

static void
trace_tail(struct worker *w, struct qp *qp, uint64_t tail)
{
	uint64_t t = __builtin_bswap64(tail);

	trace_ack(w, qp, tail_syndrome(tail), psn((uint32_t)(t >> 32)), t & PSN_MASK);
}

void
pipeline_reply_ack(struct worker *w, struct qp *qp, uint8_t syndrome, psn_t p, uint32_t msn)
{
	uint64_t tail = ack_tail(syndrome, p.v, msn);
	uint8_t port;

	naks_send(w); /* among them may be one of this QP */
	if (UNLIKELY((qp->flags & QPF_ACK_CRC) == 0))
		prime(w, qp);
	port = send_ack(w, qp, tail, icrc_update8(w->crc, 0, tail) ^ qp->ack_crc);
	if (UNLIKELY(port == PORT_NONE))
		return;
	if ((syndrome & AETH_KIND_MASK) == AETH_ACK) {
		stats_inc(&w->stats, STAT_acks_sent);
		qp_count(w, qp, STAT_acks_sent, 1);
	} else {
		nak_count(w, port, qp, syndrome);
		w->hurry |= HURRY_NAK;
	}
	if (traced(w, qp))
		trace_ack(w, qp, syndrome, p, msn);
}

/**
 * Bytes of a template that is IPv4 without a tag: its first line is all that an ACK needs, since
 * the PSN and what follows are new.
 */
#define PLAIN_LEN (WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)

/** ACKs of a burst that go to one port, and buffers for them. */
struct ack_run {
	struct tx_queue *q; /* NULL: of none yet */
	struct rte_mbuf **m;
	struct rte_mbuf *const *spare;
	uint32_t tail;    /* of the queue */
	uint32_t spare_n; /* the worker's */
	uint8_t id;       /* the QPs' `out` */
};

/** Frames of the run are the queue's, and the worker knows what is left. */
static inline void
run_end(struct worker *w, struct ack_run *run)
{
	ASSERT(run->spare_n <= w->spare_n);
	ASSERT(run->q == NULL || run->tail <= TX_ROOM);
	w->spare_n = run->spare_n;
	if (run->q != NULL) {
		run->q->made += run->tail - run->q->tail;
		run->q->tail = run->tail;
	}
	run->q = NULL;
}

/** @return false: the QP has no port. */
static bool
run_begin(struct worker *w, struct ack_run *run, uint8_t id)
{
	uint8_t port = w->port_of[id];

	run_end(w, run);
	if (port == PORT_NONE)
		return false;
	run->q = &w->tx[port];
	run->m = run->q->m;
	run->tail = run->q->tail;
	run->id = id;
	return true;
}

/** send_ack() where nothing is unusual. @return false: nothing was done. */
static ALWAYS_INLINE bool
send_fast(struct worker *w, struct qp *qp, struct ack_run *run, uint64_t tail, uint32_t crc)
{
	const uint32_t want = QPF_ACK_CRC | QPF_RESOLVED;
	struct rte_mbuf *m;
	uint8_t *frame;

	if (UNLIKELY((qp->flags & want) != want) || UNLIKELY(qp->tmpl.len != PLAIN_LEN) ||
		UNLIKELY(run->spare_n == 0))
		return false;
	if ((UNLIKELY(run->q == NULL) || UNLIKELY(run->id != qp->out)) &&
		!run_begin(w, run, qp->out))
		return false;
	m = run->spare[run->spare_n - 1];
	if (UNLIKELY(!is_reusable(m)) || UNLIKELY(run->tail == TX_ROOM))
		return false;
	run->spare_n--;
	mbuf_renew(m);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(frame, qp->tmpl.bytes, CACHE_LINE - offsetof(struct wire_template, bytes));
	memcpy(frame + PLAIN_LEN - WIRE_AETH_LEN, &tail, sizeof(tail));
	icrc_store(frame + PLAIN_LEN + WIRE_AETH_LEN, icrc_final(crc ^ qp->ack_crc));
	m->data_len = PLAIN_LEN + WIRE_AETH_LEN + WIRE_ICRC_LEN;
	m->pkt_len = PLAIN_LEN + WIRE_AETH_LEN + WIRE_ICRC_LEN;
	run->m[run->tail++] = m;
	return true;
}

/** Any of the list. @return false: it was not sent, which is counted. */
static __attribute__((noinline)) bool
send_slow(struct worker *w, struct qp *qp, struct ack_run *run, uint64_t tail, uint32_t crc)
{
	bool sent;

	run_end(w, run);
	if ((qp->flags & QPF_ACK_CRC) == 0)
		prime(w, qp);
	sent = send_ack(w, qp, tail, crc ^ qp->ack_crc) != PORT_NONE;
	run->spare_n = w->spare_n;
	return sent;
}

void
pipeline_acks_send(struct worker *w)
{
	const uint32_t n = w->dirty_n;
	uint32_t crc[PIPELINE_BURST] = { 0 }, sent = 0;
	struct ack_run run = { .spare = w->spare, .spare_n = w->spare_n };

	if (n == 0)
		return;
	ASSERT(n <= PIPELINE_BURST);
	w->dirty_n = 0;
	icrc_update8_burst(w->crc, crc, w->dirty_tail, n);
	for (uint32_t i = 0; i < n; i++) {
		struct qp *qp = w->dirty[i];
		const uint64_t tail = w->dirty_tail[i];

		if (UNLIKELY(qp == NULL))
			continue;
		ASSERT((qp->flags & QPF_DIRTY) != 0 && qp->dirty_at == i);
		qp->flags &= ~(uint32_t)QPF_DIRTY;
		if (LIKELY(send_fast(w, qp, &run, tail, crc[i])))
			qp_few_ack(qp);
		else if (send_slow(w, qp, &run, tail, crc[i]))
			qp_count(w, qp, STAT_acks_sent, 1);
		else
			continue;
		sent++;
		if (traced(w, qp))
			trace_tail(w, qp, tail);
	}
	run_end(w, &run);
	stats_add(&w->stats, STAT_acks_sent, sent);
}

void
pipeline_flush_naks(struct worker *w)
{
	const uint32_t n = w->naks_n;
	uint32_t crc[PIPELINE_BURST] = { 0 };
	struct ack_run run = { .spare = w->spare, .spare_n = w->spare_n };

	ASSERT(n <= PIPELINE_BURST);
	w->naks_n = 0;
	icrc_update8_burst(w->crc, crc, w->nak_tail, n);
	for (uint32_t i = 0; i < n; i++) {
		struct qp *qp = w->nak[i];

		if (LIKELY(send_fast(w, qp, &run, w->nak_tail[i], crc[i])))
			qp_count(w, qp, STAT_sent_pkts, 1);
		else if (!send_slow(w, qp, &run, w->nak_tail[i], crc[i]))
			continue;
		nak_count(w, w->port_of[qp->port], qp, tail_syndrome(w->nak_tail[i]));
		w->hurry |= HURRY_NAK;
	}
	run_end(w, &run);
}
