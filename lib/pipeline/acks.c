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

typedef uint64_t line_words __attribute__((vector_size(CACHE_LINE)));

/**
 * Bytes of a template that is IPv4 without a tag: its first line is all that an ACK needs, since
 * the PSN and what follows are new.
 */
#define PLAIN_LEN (WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)

/** ACKs or NAKs of a burst, by the order in which they are owed. */
struct ack_list {
	struct qp *const *qp; /* NULL: not any more */
	const uint64_t *tail; /* ack_tail() */
	uint32_t crc[PIPELINE_BURST];
	uint32_t n;
};

/** What each one's PSN and AETH add to the ICRC is computed for all at once. */
static void
list_begin(const struct worker *w, struct ack_list *l, struct qp *const *qp, const uint64_t *tail,
	uint32_t n)
{
	ASSERT(n <= PIPELINE_BURST);
	l->qp = qp;
	l->tail = tail;
	l->n = n;
	icrc_words8_burst(w->crc, l->crc, tail, n);
}

/**
 * The line of a plain template, from its `bytes` on. The frame has room for all of it: it was a
 * request. @param wide registers may be.
 */
static ALWAYS_INLINE void
plain_copy(uint8_t *frame, const struct wire_template *t, const bool wide)
{
	if (wide) {
		line_words line;

		memcpy(&line, t, sizeof(line));
		line = __builtin_shufflevector(line, line, 1, 2, 3, 4, 5, 6, 7, 0);
		memcpy(frame, &line, sizeof(line));
		return;
	}
	memcpy(frame, t->bytes, CACHE_LINE - offsetof(struct wire_template, bytes));
}
_Static_assert(offsetof(struct wire_template, bytes) == 8 && REPLY_ROOM >= CACHE_LINE,
	"plain_copy() moves the line by a word, and writes all of it");

/** The template as an ACK but for PSN, AETH and ICRC. @return where those go. */
static ALWAYS_INLINE uint8_t *
ack_begin(uint8_t *frame, const struct wire_template *t, const bool wide)
{
	if (LIKELY(t->len == PLAIN_LEN)) {
		plain_copy(frame, t, wide);
		return frame + PLAIN_LEN - WIRE_AETH_LEN;
	}
	memcpy(frame, t->bytes, sizeof(t->bytes));
	return frame + t->len - WIRE_AETH_LEN;
}
_Static_assert(REPLY_ROOM >= WIRE_TEMPLATE_MAX + WIRE_AETH_LEN + WIRE_ICRC_LEN, "any ACK");

/** Can send_run() take the QP's? @param out of the run. */
static ALWAYS_INLINE bool
is_ready(const struct qp *qp, uint8_t out)
{
	const uint32_t want = QPF_ACK_CRC | QPF_RESOLVED;

	return LIKELY((qp->flags & want) == want) && LIKELY(qp->out == out);
}

/**
 * send_ack() for those from i on that go to one port, where nothing is unusual: in buffers of this
 * burst. Frames are counted at their QPs by the caller. @return how many.
 */
static ALWAYS_INLINE uint32_t
send_run(struct worker *w, const struct ack_list *l, const uint32_t i, const bool naks,
	const bool wide)
{
	const uint8_t out = l->qp[i]->out, port = w->port_of[out];
	struct rte_mbuf **spare = w->spare + w->spare_n, **to;
	struct qp *const *qps = l->qp;
	const uint64_t *tails = l->tail;
	struct tx_queue *q;
	uint32_t at = i, end;

	if (UNLIKELY(port == PORT_NONE))
		return 0;
	q = &w->tx[port];
	to = q->m + q->tail;
	ASSERT(q->tail <= TX_ROOM);
	end = i + RTE_MIN(RTE_MIN(l->n - i, w->spare_n), TX_ROOM - q->tail);
	for (; at != end; at++) {
		struct qp *qp = qps[at];
		struct rte_mbuf *m = spare[-1];
		const uint64_t tail = tails[at];
		uint8_t *frame, *at_psn;

		if (UNLIKELY(qp == NULL) || UNLIKELY(!is_ready(qp, out)) ||
			UNLIKELY(!is_reusable(m)))
			break;
		spare--;
		mbuf_renew(m);
		frame = rte_pktmbuf_mtod(m, uint8_t *);
		at_psn = ack_begin(frame, &qp->tmpl, wide);
		memcpy(at_psn, &tail, sizeof(tail));
		icrc_store(at_psn + sizeof(tail), icrc_final(l->crc[at] ^ qp->ack_crc));
		mbuf_len_set(m, (uint32_t)(at_psn - frame) + sizeof(tail) + WIRE_ICRC_LEN);
		*to++ = m;
		if (naks)
			continue;
		qp->flags &= ~(uint32_t)QPF_DIRTY;
		qp_few_ack(qp);
		if (traced(w, qp))
			trace_tail(w, qp, tail);
	}
	w->spare_n -= at - i;
	q->tail += at - i;
	q->made += at - i;
	return at - i;
}

#if WIRE_WIDE
TARGET_WIRE_WIDE static __attribute__((noinline)) uint32_t
acks_run_wide(struct worker *w, const struct ack_list *l, uint32_t i)
{
	return send_run(w, l, i, false, true);
}
#endif

static ALWAYS_INLINE uint32_t
acks_run(struct worker *w, const struct ack_list *l, uint32_t i)
{
#if WIRE_WIDE
	if (LIKELY(wire_has_wide()))
		return acks_run_wide(w, l, i);
#endif
	return send_run(w, l, i, false, false);
}

/** Any of the list. @return false: it was not sent, which is counted. */
static __attribute__((noinline)) bool
send_slow(struct worker *w, const struct ack_list *l, uint32_t i)
{
	struct qp *qp = l->qp[i];

	if ((qp->flags & QPF_ACK_CRC) == 0)
		prime(w, qp);
	return send_ack(w, qp, l->tail[i], l->crc[i] ^ qp->ack_crc) != PORT_NONE;
}

/** An ACK that no run has taken. @return false: it was not sent. */
static bool
ack_slow(struct worker *w, const struct ack_list *l, uint32_t i)
{
	struct qp *qp = l->qp[i];

	ASSERT((qp->flags & QPF_DIRTY) != 0 && qp->dirty_at == i);
	qp->flags &= ~(uint32_t)QPF_DIRTY;
	if (!send_slow(w, l, i))
		return false;
	qp_count(w, qp, STAT_acks_sent, 1);
	if (traced(w, qp))
		trace_tail(w, qp, l->tail[i]);
	return true;
}

void
pipeline_acks_send(struct worker *w)
{
	uint32_t sent = 0, n;
	struct ack_list l;

	if (w->dirty_n == 0)
		return;
	list_begin(w, &l, w->dirty, w->dirty_tail, w->dirty_n);
	w->dirty_n = 0;
	for (uint32_t i = 0; i < l.n; i += n) {
		n = 1;
		if (UNLIKELY(l.qp[i] == NULL))
			continue;
		n = acks_run(w, &l, i);
		sent += n;
		if (UNLIKELY(n == 0)) {
			sent += ack_slow(w, &l, i);
			n = 1;
		}
	}
	stats_add(&w->stats, STAT_acks_sent, sent);
}

void
pipeline_flush_naks(struct worker *w)
{
	struct ack_list l;
	uint32_t n;

	list_begin(w, &l, w->nak, w->nak_tail, w->naks_n);
	w->naks_n = 0;
	for (uint32_t i = 0; i < l.n; i += n) {
		n = send_run(w, &l, i, true, false);
		for (uint32_t k = i; k < i + n; k++)
			qp_count(w, l.qp[k], STAT_sent_pkts, 1);
		if (n == 0) {
			n = 1;
			if (!send_slow(w, &l, i))
				continue;
		}
		for (uint32_t k = i; k < i + n; k++)
			nak_count(w, w->port_of[l.qp[k]->port], l.qp[k], tail_syndrome(l.tail[k]));
		w->hurry |= HURRY_NAK;
	}
}
