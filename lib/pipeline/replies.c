/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets made from a QP's template: ACK, NAK, ATOMIC ACK, READ responses, CNP. */
#include <errno.h>

#include "pipeline_priv.h"

#define BTH_CONST 8 /* bytes of the BTH before the PSN word: the same in all ACKs of a QP */

static inline bool
is_reusable(struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m) && m->next == NULL &&
	       m->buf_len >= RTE_PKTMBUF_HEADROOM + REPLY_ROOM;
}

/** A buffer for a small reply: one of this burst's requests is still in the cache. */
static inline struct rte_mbuf *
small_mbuf(struct worker *w, uint8_t port)
{
	while (w->spare_n != 0) {
		struct rte_mbuf *m = w->spare[--w->spare_n];

		if (LIKELY(is_reusable(m))) {
			rte_pktmbuf_reset(m);
			return m;
		}
		rte_pktmbuf_free(m);
	}
	return rte_pktmbuf_alloc(w->conf.ports[port].pool);
}

/** Index of the QP's port; PORT_NONE when it cannot send, which is counted. */
static inline uint8_t
out_port(struct worker *w, struct qp *qp)
{
	uint8_t port = w->port_of[qp->port];

	if (UNLIKELY(port == PORT_NONE)) {
		stats_inc(&w->stats, STAT_tx_error_drop);
		stats_inc(qp->stats, STAT_tx_error_drop);
		return PORT_NONE;
	}
	if (UNLIKELY((qp->flags & QPF_RESOLVED) == 0)) {
		count(w, port, qp, STAT_tx_no_neighbor);
		return PORT_NONE;
	}
	return port;
}

static inline void
send_frame(struct worker *w, uint8_t port, struct qp *qp, struct rte_mbuf *m, uint32_t len)
{
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	count(w, port, qp, STAT_sent_pkts);
	tx_push(w, port, m);
}

/**
 * ICRC state over everything of an ACK that is the same in all of this QP's: dummy bytes, IP, UDP
 * and the first eight bytes of the BTH, masked as ICRC-02 and ICRC-03 say.
 */
static uint32_t
ack_crc(struct worker *w, struct qp *qp, const uint8_t *frame)
{
	const struct wire_template *t = &qp->tmpl;
	uint32_t n = (uint32_t)(t->bth_off - t->l3_off) + BTH_CONST;
	uint8_t b[8 + WIRE_IPV6_LEN + WIRE_UDP_LEN + BTH_CONST];
	uint8_t *ip = b + 8;
	uint8_t *bth;

	memset(b, 0xff, 8);
	memcpy(ip, frame + t->l3_off, n);
	if (t->ipv6 != 0) {
		ip[0] |= 0x0f;
		memset(ip + 1, 0xff, 3);
		ip[7] = 0xff;
	} else {
		ip[1] = 0xff;
		ip[8] = 0xff;
		memset(ip + 10, 0xff, 2);
	}
	bth = ip + n - BTH_CONST;
	memset(bth - 2, 0xff, 2);
	bth[4] = 0xff;
	qp->ack_crc = w->crc->update(UINT32_MAX, b, 8 + n);
	qp->flags |= QPF_ACK_CRC;
	return qp->ack_crc;
}

static void
ack_count(struct worker *w, uint8_t port, struct qp *qp, uint8_t syndrome)
{
	static const uint16_t nak_stat[] = {
		[NAK_PSN_SEQ_ERR] = STAT_resp_nak_sequence_sent,
		[NAK_INV_REQ] = STAT_resp_nak_invalid_sent,
		[NAK_REM_ACCESS] = STAT_resp_remote_access_errors,
		[NAK_REM_OP] = STAT_resp_nak_operation_sent,
	};
	uint8_t code = syndrome & 0x1f;

	switch (syndrome & AETH_KIND_MASK) {
	case AETH_ACK:
		stats_inc(&w->stats, STAT_acks_sent);
		stats_inc(qp->stats, STAT_acks_sent);
		break;
	case AETH_RNR:
		count(w, port, qp, STAT_send_rnr_err);
		break;
	default:
		if (code < ARRAY_LEN(nak_stat))
			count(w, port, qp, (enum stats_counter)nak_stat[code]);
		break;
	}
}

static void
trace_reply(struct worker *w, struct qp *qp, const struct qp_answer *a, enum trace_kind kind,
	uint8_t opcode)
{
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = qp->qpn,
				    .psn = a->psn.v,
				    .msn = a->msn,
				    .kind = (uint8_t)kind,
				    .opcode = opcode,
				    .syndrome = a->syndrome,
				    .fault = VERDICT_NO_FAULT,
				    .state = qp_state_of(qp) });
}

void
reply_ack(struct worker *w, struct qp *qp, uint8_t syndrome, psn_t p, uint32_t msn)
{
	const struct wire_template *t = &qp->tmpl;
	uint8_t port = out_port(w, qp);
	struct rte_mbuf *m;
	uint8_t *frame;
	uint64_t tail;
	uint32_t crc;

	if (UNLIKELY(port == PORT_NONE))
		return;
	m = small_mbuf(w, port);
	if (UNLIKELY(m == NULL)) {
		count(w, port, qp, STAT_tx_no_mbuf);
		return;
	}
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	wire_template_write(t, frame, OP_RC_ACKNOWLEDGE, PKT_MIGREQ, 0, p, WIRE_AETH_LEN);

	/* PSN word and AETH as one register, never read back from the frame. */
	tail = __builtin_bswap64((uint64_t)p.v << 32 | (uint32_t)syndrome << 24 | (msn & PSN_MASK));
	memcpy(frame + t->len, (const uint8_t *)&tail + 4, WIRE_AETH_LEN);
	crc = LIKELY((qp->flags & QPF_ACK_CRC) != 0) ? qp->ack_crc : ack_crc(w, qp, frame);
	icrc_store(frame + t->len + WIRE_AETH_LEN,
		icrc_final(icrc_update8(w->crc, crc, tail)));

	ack_count(w, port, qp, syndrome);
	if (traced(w, qp))
		trace_reply(w, qp,
			&(struct qp_answer){ .psn = p, .msn = msn, .syndrome = syndrome },
			(syndrome & AETH_KIND_MASK) == AETH_ACK ? TRACE_ack : TRACE_nak,
			OP_RC_ACKNOWLEDGE);
	send_frame(w, port, qp, m, (uint32_t)t->len + WIRE_AETH_LEN + WIRE_ICRC_LEN);
}

static inline void
put_aeth(uint8_t *to, uint8_t syndrome, uint32_t msn)
{
	be32_store(to, (uint32_t)syndrome << 24 | (msn & PSN_MASK));
}

int
reply_atomic(struct worker *w, struct qp *qp, const struct qp_answer *a)
{
	const struct wire_template *t = &qp->tmpl;
	const uint32_t after = WIRE_AETH_LEN + WIRE_ATOMICACK_LEN;
	uint8_t port = out_port(w, qp);
	uint32_t len = t->len + after + WIRE_ICRC_LEN;
	struct rte_mbuf *m;
	uint8_t *frame;

	if (UNLIKELY(port == PORT_NONE))
		return 0;
	m = small_mbuf(w, port);
	if (UNLIKELY(m == NULL))
		return -EAGAIN;
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	wire_template_write(
		t, frame, OP_RC_ATOMIC_ACKNOWLEDGE, PKT_MIGREQ, 0, a->psn, (uint16_t)after);
	put_aeth(frame + t->len, a->syndrome, a->msn);
	be64_store(frame + t->len + WIRE_AETH_LEN, a->va);
	icrc_seal(w->crc, frame, t->l3_off, t->ipv6 != 0, len);
	if (traced(w, qp))
		trace_reply(w, qp, a, TRACE_atomic_ack, OP_RC_ATOMIC_ACKNOWLEDGE);
	send_frame(w, port, qp, m, len);
	return 0;
}

/** Place of the packet in its READ's response stream. */
static uint8_t
read_opcode(const struct qp_answer *a, bool is_last)
{
	bool is_first = a->restarted || psn_eq(a->psn, a->first);

	if (is_first)
		return is_last ? OP_RC_READ_RESPONSE_ONLY : OP_RC_READ_RESPONSE_FIRST;
	return is_last ? OP_RC_READ_RESPONSE_LAST : OP_RC_READ_RESPONSE_MIDDLE;
}

int
reply_read(struct worker *w, struct qp *qp, const struct qp_answer *a, const uint8_t *data,
	uint32_t len)
{
	const struct wire_template *t = &qp->tmpl;
	uint8_t opcode = read_opcode(a, len == a->len_left);
	uint32_t aeth = opcode != OP_RC_READ_RESPONSE_MIDDLE ? WIRE_AETH_LEN : 0;
	uint32_t pad = -len & 3;
	uint32_t total = t->len + aeth + len + pad + WIRE_ICRC_LEN;
	uint8_t port = out_port(w, qp);
	struct rte_mbuf *m;
	uint8_t *frame, *payload;

	if (UNLIKELY(port == PORT_NONE))
		return -ENETUNREACH;
	m = rte_pktmbuf_alloc(w->conf.ports[port].pool);
	if (UNLIKELY(m == NULL))
		return -EAGAIN;
	/* The template writer stores whole vectors. */
	if (UNLIKELY(rte_pktmbuf_tailroom(m) < total ||
		     rte_pktmbuf_tailroom(m) < sizeof(t->bytes))) {
		rte_pktmbuf_free(m);
		count(w, port, qp, STAT_tx_error_drop);
		return -EMSGSIZE;
	}
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	wire_template_write(
		t, frame, opcode, PKT_MIGREQ, (uint8_t)pad, a->psn, (uint16_t)(aeth + len + pad));
	if (aeth != 0)
		put_aeth(frame + t->len, a->syndrome, a->msn);
	payload = frame + t->len + aeth;
	memset(payload + len, 0, pad);
	if (len != 0)
		memcpy(payload, data, len);
	icrc_seal(w->crc, frame, t->l3_off, t->ipv6 != 0, total);
	count(w, port, qp, STAT_read_responses_sent);
	if (traced(w, qp))
		trace_reply(w, qp, a, TRACE_read_resp, opcode);
	send_frame(w, port, qp, m, total);
	return 0;
}

/** CC-01: BECN, PSN 0, sixteen zero bytes. */
void
reply_cnp(struct worker *w, struct qp *qp)
{
	const struct wire_template *t = &qp->tmpl;
	uint8_t port = out_port(w, qp);
	uint32_t len = (uint32_t)t->len + WIRE_CNP_PAYLOAD_LEN + WIRE_ICRC_LEN;
	struct rte_mbuf *m;
	uint8_t *frame;

	if (UNLIKELY(port == PORT_NONE))
		return;
	m = small_mbuf(w, port);
	if (UNLIKELY(m == NULL)) {
		count(w, port, qp, STAT_tx_no_mbuf);
		return;
	}
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	wire_template_write(t, frame, OP_CNP, 0, 0, psn(0), WIRE_CNP_PAYLOAD_LEN);
	frame[t->bth_off + 4] = 0x40;
	memset(frame + t->len, 0, WIRE_CNP_PAYLOAD_LEN);
	icrc_seal(w->crc, frame, t->l3_off, t->ipv6 != 0, len);
	count(w, port, qp, STAT_np_cnp_sent);
	if (traced(w, qp))
		trace_reply(w, qp, &(struct qp_answer){ 0 }, TRACE_cnp, OP_CNP);
	send_frame(w, port, qp, m, len);
}
