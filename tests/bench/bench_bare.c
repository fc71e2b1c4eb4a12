/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "bench_bare.h"

enum { BURST = 32, L3 = 14, UDP = 34, BTH = 42, PSN_AT = 50, AETH = 54, RETH = 54, ACK_LEN = 62 };

void
bare_qp_init(const struct bare *b, uint32_t qpn, const struct wire_path *path)
{
	const struct wire_fields f = {
		.opcode = OP_RC_ACKNOWLEDGE, .flags = PKT_MIGREQ, .pkey = 0xffff, .dest_qpn = qpn
	};
	struct bare_qp *qp = &b->qps[qpn & (b->qps_n - 1)];
	uint8_t frame[ACK_LEN], masked[8 + PSN_AT - L3];

	wire_build(path, &f, 0, frame, sizeof(frame));
	memcpy(qp->ack, frame, PSN_AT);
	qp->qpn = qpn;
	qp->msn = 0;
	memset(masked, 0xff, 8);
	memcpy(masked + 8, frame + L3, sizeof(masked) - 8);
	masked[9] = masked[16] = masked[18] = masked[19] = 0xff; /* TOS, TTL, checksum */
	masked[34] = masked[35] = masked[40] = 0xff;             /* UDP checksum, BTH byte 4 */
	qp->crc = b->crc->update(UINT32_MAX, masked, sizeof(masked));
}

static inline bool
place(struct bare *b, const uint8_t *p, uint32_t len)
{
	uint64_t va = be64_load(p + RETH) - b->region_va;
	uint32_t n = be32_load(p + RETH + 12);

	if (va > b->region_len - n || n + RETH + WIRE_RETH_LEN + WIRE_ICRC_LEN != len)
		return false;
	memcpy(b->host + va, p + RETH + WIRE_RETH_LEN, n);
	return true;
}

static inline uint32_t
acknowledge(struct bare *b, struct bare_qp *qp, struct rte_mbuf *m, uint8_t *p)
{
	uint32_t psn_word = be32_load(p + PSN_AT) & PSN_MASK;
	uint64_t tail =
		__builtin_bswap64((uint64_t)psn_word << 32 | 0x1f000000u | (++qp->msn & PSN_MASK));

	memcpy(p, qp->ack, sizeof(qp->ack));
	memcpy(p + PSN_AT, &tail, sizeof(tail));
	icrc_store(p + AETH + WIRE_AETH_LEN, icrc_final(icrc_update8(b->crc, qp->crc, tail)));
	m->data_len = ACK_LEN;
	m->pkt_len = ACK_LEN;
	return ACK_LEN;
}

uint32_t
bare_poll(struct bare *b)
{
	struct rte_mbuf *m[BURST], *out[BURST];
	uint32_t n = rte_eth_rx_burst(b->port, 0, m, BURST), sent = 0;

	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], uint8_t *);

		rte_prefetch0(&b->qps[be32_load(p + BTH + 4) & (b->qps_n - 1)]);
		__builtin_prefetch(b->host + (be64_load(p + RETH) - b->region_va), 1);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *p = rte_pktmbuf_mtod(m[i], uint8_t *);
		uint32_t len = m[i]->data_len, qpn = be32_load(p + BTH + 4) & PSN_MASK, crc;
		struct bare_qp *qp = &b->qps[qpn & (b->qps_n - 1)];

		memcpy(&crc, p + len - WIRE_ICRC_LEN, sizeof(crc));
		if (be16_load(p + 12) == 0x0800 && be16_load(p + UDP + 2) == WIRE_UDP_PORT &&
			p[BTH] == OP_RC_WRITE_ONLY && qp->qpn == qpn &&
			icrc_compute(b->crc, p + L3, false, len - L3 - WIRE_ICRC_LEN) == crc &&
			place(b, p, len)) {
			acknowledge(b, qp, m[i], p);
			out[sent++] = m[i];
		} else {
			rte_pktmbuf_free(m[i]);
		}
	}
	if (sent != 0)
		rte_eth_tx_burst(b->port, 0, out, (uint16_t)sent);
	return n;
}

/* ---- requester ------------------------------------------------------------------------------- */

void
bare_sender_init(
	const struct bare_requester *b, uint32_t qpn, const struct wire_path *path, uint16_t len)
{
	static const uint8_t nothing[BARE_LEN_MAX];
	const struct wire_fields f = { .opcode = OP_RC_WRITE_ONLY,
		.flags = PKT_MIGREQ,
		.pkey = 0xffff,
		.dest_qpn = qpn,
		.payload = nothing,
		.payload_len = len };
	struct bare_sender *qp = &b->qps[qpn & (b->qps_n - 1)];
	uint8_t frame[RETH + WIRE_RETH_LEN + BARE_LEN_MAX + WIRE_ICRC_LEN];

	wire_build(path, &f, 0, frame, sizeof(frame));
	memcpy(qp->head, frame, PSN_AT);
	qp->qpn = qpn;
	qp->len = len;
	qp->psn = qp->acked = 0;
}

static inline uint32_t
request(const struct bare_requester *b, const struct bare_work *work, struct rte_mbuf *m)
{
	struct bare_sender *qp = &b->qps[work->qpn & (b->qps_n - 1)];
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	memcpy(p, qp->head, sizeof(qp->head));
	be32_store(p + PSN_AT, (uint32_t)work->asks << 31 | (qp->psn++ & PSN_MASK));
	be64_store(p + RETH, work->remote_addr);
	be64_store(p + RETH + 8, (uint64_t)work->rkey << 32 | work->len);
	if (work->len == 64)
		memcpy(p + RETH + WIRE_RETH_LEN, work->from, 64);
	else
		memcpy(p + RETH + WIRE_RETH_LEN, work->from, work->len);
	m->data_len = (uint16_t)(RETH + WIRE_RETH_LEN + work->len + WIRE_ICRC_LEN);
	m->pkt_len = m->data_len;
	return m->pkt_len;
}

uint32_t
bare_send(struct bare_requester *b, const struct bare_work *work, uint32_t n)
{
	struct icrc_frame frames[BURST];
	struct rte_mbuf *m[BURST];

	n = n < BURST ? n : BURST;
	for (uint32_t i = 0; i < n; i++) {
		rte_prefetch0(&b->qps[work[i].qpn & (b->qps_n - 1)]);
		rte_prefetch0(work[i].from);
	}
	if (rte_pktmbuf_alloc_bulk(b->pool, m, n) != 0)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		frames[i].len = request(b, &work[i], m[i]);
		frames[i].frame = rte_pktmbuf_mtod(m[i], uint8_t *);
		frames[i].l3_off = L3;
		frames[i].ipv6 = false;
	}
	icrc_seal_burst(b->crc, frames, n);
	return rte_eth_tx_burst(b->port, 0, m, (uint16_t)n);
}

uint32_t
bare_acks(struct bare_requester *b)
{
	struct rte_mbuf *m[BURST];
	uint32_t n = rte_eth_rx_burst(b->port, 0, m, BURST);

	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(&b->qps[be32_load(rte_pktmbuf_mtod(m[i], uint8_t *) + BTH + 4) &
				      (b->qps_n - 1)]);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], uint8_t *);
		uint32_t len = m[i]->data_len, qpn = be32_load(p + BTH + 4) & PSN_MASK, crc;
		struct bare_sender *qp = &b->qps[qpn & (b->qps_n - 1)];

		memcpy(&crc, p + len - WIRE_ICRC_LEN, sizeof(crc));
		if (be16_load(p + 12) == 0x0800 && be16_load(p + UDP + 2) == WIRE_UDP_PORT &&
			p[BTH] == OP_RC_ACKNOWLEDGE && qp->qpn == qpn && len == ACK_LEN &&
			icrc_compute(b->crc, p + L3, false, len - L3 - WIRE_ICRC_LEN) == crc)
			qp->acked = (be32_load(p + PSN_AT) + 1) & PSN_MASK;
	}
	if (n != 0)
		rte_pktmbuf_free_bulk(m, n);
	return n;
}
