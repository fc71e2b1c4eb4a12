/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of a peer that is mostly honest: requests in order, repeated and lost ones, answers. */
#include <string.h>

#include "ways.h"

static uint8_t payload[4096];

static uint32_t
length(struct world *w)
{
	static const uint16_t lengths[] = { 0, 1, 2, 8, 63, 64, 100, 256, 700, 1023, PMTU };

	if (ways_one_in(w, w->tame))
		return PMTU + 4;
	return lengths[ways_next(w) % 11];
}

/** Bytes of a message's packet of this place in it. */
static uint16_t
part(struct world *w, uint8_t opcode)
{
	const bool whole = opcode == OP_RC_SEND_FIRST || opcode == OP_RC_SEND_MIDDLE ||
			   opcode == OP_RC_WRITE_FIRST || opcode == OP_RC_WRITE_MIDDLE;

	return whole && !ways_one_in(w, w->tame) ? PMTU : (uint16_t)length(w);
}

static bool
waits_for_data(uint8_t opcode)
{
	return opcode == OP_RC_READ_REQUEST || opcode == OP_RC_FETCH_ADD ||
	       opcode == OP_RC_COMPARE_SWAP;
}

static bool
is_send(uint8_t opcode)
{
	return opcode <= OP_RC_SEND_ONLY_IMM || opcode == OP_RC_SEND_ONLY_INV;
}

/** A request that goes on with the open message, or begins one. */
static uint8_t
request_opcode(struct world *w, const struct ways_qp *q)
{
	static const uint8_t often[] = { OP_RC_SEND_ONLY, OP_RC_SEND_ONLY, OP_RC_SEND_ONLY,
		OP_RC_SEND_ONLY, OP_RC_WRITE_ONLY, OP_RC_WRITE_ONLY, OP_RC_WRITE_ONLY,
		OP_RC_SEND_ONLY_IMM, OP_RC_WRITE_ONLY_IMM, OP_RC_READ_REQUEST, OP_RC_READ_REQUEST,
		OP_RC_FETCH_ADD, OP_RC_COMPARE_SWAP, OP_RC_SEND_FIRST, OP_RC_WRITE_FIRST,
		OP_RC_SEND_ONLY_INV };
	static const uint8_t of_send[] = { OP_RC_SEND_MIDDLE, OP_RC_SEND_LAST,
		OP_RC_SEND_LAST_IMM };
	static const uint8_t of_write[] = { OP_RC_WRITE_MIDDLE, OP_RC_WRITE_LAST,
		OP_RC_WRITE_LAST_IMM };
	uint8_t opcode = often[ways_next(w) % 16];

	if (opcode == OP_RC_SEND_ONLY_INV && !ways_one_in(w, w->tame))
		opcode = OP_RC_SEND_ONLY;
	if (w->bare && is_send(opcode))
		opcode = OP_RC_WRITE_ONLY_IMM;
	if (q->open != OPEN_NONE)
		opcode = (q->open == OPEN_SEND ? of_send : of_write)[ways_next(w) % 3];
	if (q->open == OPEN_WRITE && q->left > PMTU && !ways_one_in(w, w->tame))
		opcode = OP_RC_WRITE_MIDDLE;
	else if (opcode == OP_RC_WRITE_MIDDLE)
		opcode = OP_RC_WRITE_LAST_IMM;
	if (ways_one_in(w, w->tame))
		opcode = (uint8_t)(ways_next(w) % 0x18);
	/* No more than what may be unfinished: how long it is depends on when it is answered. */
	if (waits_for_data(opcode) && q->asks >= q->qp->resp.max_dest_rd_atomic)
		return OP_RC_WRITE_ONLY;
	return opcode;
}

static uint8_t
open_after(const struct ways_qp *q, uint8_t opcode)
{
	switch (opcode) {
	case OP_RC_SEND_FIRST:
	case OP_RC_SEND_MIDDLE:
		return OPEN_SEND;
	case OP_RC_WRITE_FIRST:
	case OP_RC_WRITE_MIDDLE:
		return OPEN_WRITE;
	default:
		return waits_for_data(opcode) ? q->open : OPEN_NONE;
	}
}

static void
request(struct world *w, struct ways_qp *q, struct wire_fields *f)
{
	const uint8_t opcode = request_opcode(w, q);
	uint32_t psns = 1;

	q->asks += waits_for_data(opcode);
	f->opcode = opcode;
	f->flags = (ways_one_in(w, 4) ? 0 : PKT_ACKREQ) | (ways_one_in(w, 8) ? PKT_SE : 0);
	f->payload = payload + ways_next(w) % 1000;
	f->payload_len = part(w, opcode);
	f->imm = ways_next(w);
	f->reth = (struct wire_reth){ MR_VA + ways_next(w) % 40000, MR_KEY, f->payload_len };
	f->atomiceth = (struct wire_atomiceth){ .va = MR_VA + ways_next(w) % 512 * 8,
		.rkey = MR_KEY,
		.swap_add = ways_next(w),
		.compare = ways_one_in(w, 2) ? 0 : ways_next(w) };
	if (opcode == OP_RC_WRITE_FIRST)
		f->reth.dma_len = PMTU * (2 + ways_next(w) % 3);
	if (opcode == OP_RC_READ_REQUEST) {
		f->payload_len = 0;
		f->reth.va = MR_VA + WAYS_STILL + ways_next(w) % 5000;
		f->reth.dma_len = ways_one_in(w, 4) ? ways_next(w) % 9000 : length(w);
		psns = f->reth.dma_len <= PMTU ? 1 : (f->reth.dma_len + PMTU - 1) / PMTU;
	}
	if (waits_for_data(opcode))
		f->payload_len = 0;
	if (opcode == OP_RC_WRITE_LAST || opcode == OP_RC_WRITE_LAST_IMM)
		f->payload_len = (uint16_t)(q->left % (PMTU + 1));
	if (ways_one_in(w, w->tame))
		f->reth.rkey = f->atomiceth.rkey = 0xbad;
	if (ways_one_in(w, w->tame)) /* of a READ nothing there, which others may write meanwhile */
		f->reth.va = MR_VA + MR_LEN - (opcode == OP_RC_READ_REQUEST ? 0 : 4);
	if (ways_one_in(w, w->tame))
		f->reth.dma_len++;
	f->psn = psn(q->next & PSN_MASK);
	if (ways_one_in(w, 8)) { /* again, in part perhaps */
		/*
		 * The fast path has answered a READ of this burst when it comes again; the full
		 * path has its answer still to send, and one is enough.
		 */
		f->psn = opcode == OP_RC_READ_REQUEST ? q->qp->resp.epsn : f->psn;
		f->psn = psn_sub(f->psn, 1 + ways_next(w) % 6);
	} else if (ways_one_in(w, 10)) /* something was lost before it */
		f->psn = psn_add(f->psn, 1 + ways_next(w) % 4);
	else if (!ways_one_in(w, 12)) { /* else it is lost for the peer, too */
		q->next += psns;
		q->open = open_after(q, opcode);
		q->left =
			(opcode == OP_RC_WRITE_FIRST ? f->reth.dma_len : q->left) - f->payload_len;
	}
}

/** What the oldest requests wait for, as an honest peer would say it. */
static void
answer(struct world *w, struct ways_qp *q, struct wire_fields *f)
{
	const uint16_t pmtu = q->qp->req.pmtu;
	const struct requester *r = &q->qp->req;
	const struct requester_wr *wr = &r->wr[r->head & r->wr_mask];
	const uint32_t flying = psn_distance(r->next, r->una);
	uint32_t ahead = flying == 0 ? 0 : (q->responses + ways_next(w) % 2) % flying;

	f->psn = psn_add(r->una, ahead);
	f->aeth = (struct wire_aeth){ 0x1f, ways_next(w) & 0xff };
	f->opcode = OP_RC_ACKNOWLEDGE;
	q->responses = ahead + 1;
	if (r->head == r->fresh)
		return;
	for (uint32_t at = r->head; at != r->fresh; at++) {
		wr = &r->wr[at & r->wr_mask];
		if (psn_distance(f->psn, wr->first) <= psn_distance(wr->last, wr->first))
			break;
	}
	if (wr->opcode == WR_ATOMIC_CMP_AND_SWP || wr->opcode == WR_ATOMIC_FETCH_AND_ADD) {
		f->opcode = OP_RC_ATOMIC_ACKNOWLEDGE;
		f->atomicack = ways_next(w);
	} else if (wr->opcode == WR_RDMA_READ) {
		const bool first = psn_eq(f->psn, wr->first), last = psn_eq(f->psn, wr->last);

		f->opcode = first && last ? OP_RC_READ_RESPONSE_ONLY
			    : first       ? OP_RC_READ_RESPONSE_FIRST
			    : last        ? OP_RC_READ_RESPONSE_LAST
					  : OP_RC_READ_RESPONSE_MIDDLE;
		f->payload = payload + ways_next(w) % 1000;
		f->payload_len =
			!last ? pmtu
			      : (uint16_t)(wr->len - psn_distance(wr->last, wr->first) * pmtu);
	}
}

/** ... and as a peer in trouble would. */
static void
odd_answer(struct world *w, const struct ways_qp *q, struct wire_fields *f)
{
	static const uint8_t syndromes[] = { 0x1f, 0x1f, 0x1f, 0x00, 0x03, 0x0a, 0x20, 0x21, 0x2c,
		0x3f, 0x60, 0x60, 0x1f, 0x1f, 0x60, 0x2c };
	static const uint8_t fatal[] = { 0x61, 0x62, 0x63, 0x64, 0x65, 0x40, 0x80, 0xff };
	static const uint8_t opcodes[] = { OP_RC_ACKNOWLEDGE, OP_RC_ACKNOWLEDGE, OP_RC_ACKNOWLEDGE,
		OP_RC_READ_RESPONSE_ONLY, OP_RC_READ_RESPONSE_FIRST, OP_RC_READ_RESPONSE_MIDDLE,
		OP_RC_READ_RESPONSE_LAST, OP_RC_ATOMIC_ACKNOWLEDGE };
	const struct requester *r = &q->qp->req;

	f->psn = psn_add(psn_sub(r->una, 2), ways_next(w) % (psn_distance(r->next, r->una) + 5));
	f->aeth = (struct wire_aeth){ syndromes[ways_next(w) % 16], ways_next(w) & 0xff };
	if (ways_one_in(w, w->tame))
		f->aeth.syndrome = fatal[ways_next(w) % 8];
	f->opcode = ways_one_in(w, w->tame) ? opcodes[ways_next(w) % 8] : OP_RC_ACKNOWLEDGE;
	if (f->opcode == OP_RC_ACKNOWLEDGE)
		return;
	f->payload = payload;
	f->payload_len = f->opcode == OP_RC_ATOMIC_ACKNOWLEDGE ? 0 : part(w, OP_RC_SEND_FIRST);
}

static void
of_uc(struct world *w, struct ways_qp *q, struct wire_fields *f)
{
	static const uint8_t opcodes[] = { OP_UC_SEND_ONLY, OP_UC_SEND_ONLY, OP_UC_WRITE_ONLY,
		OP_UC_WRITE_ONLY, OP_UC_SEND_ONLY_IMM, OP_UC_WRITE_ONLY_IMM, OP_UC_SEND_FIRST,
		OP_UC_SEND_LAST };

	f->opcode = opcodes[ways_next(w) % 8];
	f->flags = ways_one_in(w, 8) ? PKT_SE : 0;
	f->payload = payload + ways_next(w) % 1000;
	f->payload_len = f->opcode == OP_UC_SEND_FIRST ? PMTU : (uint16_t)length(w);
	f->imm = ways_next(w);
	f->reth = (struct wire_reth){ MR_VA + ways_next(w) % 40000, MR_KEY, f->payload_len };
	if (ways_one_in(w, 30))
		f->reth.rkey = 0xbad;
	q->next += ways_one_in(w, 10);
	f->psn = psn(q->next++ & PSN_MASK);
}

static void
of_ud(struct world *w, struct ways_qp *q, struct wire_fields *f)
{
	f->opcode = ways_one_in(w, 6) ? OP_UD_SEND_ONLY_IMM : OP_UD_SEND_ONLY;
	f->flags = ways_one_in(w, 8) ? PKT_SE : 0;
	f->payload = payload + ways_next(w) % 1000;
	f->payload_len = (uint16_t)length(w);
	f->imm = ways_next(w);
	f->deth.qkey = ways_one_in(w, 20) ? 0x22222222 : WAYS_QKEY;
	f->deth.src_qpn = PEER_QPN;
	f->psn = ways_one_in(w, 6) ? psn(ways_next(w) & PSN_MASK) : psn(q->next++ & PSN_MASK);
}

/** The frame's bytes from the n-th on are those of a second segment. */
static void
cut(struct rte_mbuf *m, uint32_t n)
{
	struct rte_mbuf *rest = bed_frame(&(struct wire_fields){ .opcode = OP_RC_ACKNOWLEDGE });

	rest->data_len = (uint16_t)(m->data_len - n);
	memcpy(rte_pktmbuf_mtod(rest, uint8_t *), rte_pktmbuf_mtod(m, uint8_t *) + n,
		rest->data_len);
	m->data_len = (uint16_t)n;
	m->next = rest;
	m->nb_segs = 2;
}

/** What a wire, a switch or a driver makes of a frame. @param how 0: nothing. */
static void
mangle(struct rte_mbuf *m, uint32_t how)
{
	enum { HEADERS = 80, PAD = 40 };
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const uint32_t number = how >> 3, len = m->data_len, at = number % HEADERS;

	switch (how % 8) {
	case 1: /* cut off */
		m->data_len = (uint16_t)(1 + number % len);
		m->pkt_len = m->data_len;
		break;
	case 2: /* padded */
		memset(frame + len, 0xee, number % PAD);
		m->data_len = (uint16_t)(len + number % PAD);
		m->pkt_len = m->data_len;
		break;
	case 3:
		cut(m, number % 2 != 0 ? len : 1 + number % len);
		break;
	case 4: /* one bit is another one; if the frame has no tag its ICRC knows */
	case 5: /* or does not */
		if (at >= len)
			break;
		frame[at] ^= (uint8_t)BIT32(number / HEADERS % 8);
		if (how % 8 == 4)
			bed_reseal(m);
		break;
	default:
		break;
	}
}

uint32_t
ways_packet(struct world *w)
{
	const uint32_t i = w->at = ways_one_in(w, 4) ? ways_next(w) % WAYS_QPS : w->at;
	uint32_t copies = ways_one_in(w, 8) ? 1 + ways_next(w) % 3 : 1;
	struct ways_qp *q = &w->q[i];
	struct wire_fields f = { .opcode = 0 };
	struct wire_path path = q->path;
	uint32_t how;
	bool bad;

	for (size_t k = 0; k < sizeof(payload) && payload[1] == 0; k++)
		payload[k] = (uint8_t)(k * 7 + 3);
	payload[1] = 10;
	f.dest_qpn = q->qp->qpn;
	if (i == OF_UC)
		of_uc(w, q, &f);
	else if (i == OF_UD)
		of_ud(w, q, &f);
	else if (!ways_one_in(w, 3))
		request(w, q, &f);
	else if (!ways_one_in(w, 4))
		answer(w, q, &f);
	else
		odd_answer(w, q, &f);
	path.tos = ways_one_in(w, 20) ? 3 : 2; /* CE */
	bad = ways_one_in(w, 40);
	how = ways_one_in(w, 20) ? ways_next(w) : 0;
	copies = f.opcode == OP_RC_READ_REQUEST ? 1 : copies;
	for (uint32_t k = 0; k < copies; k++) {
		struct rte_mbuf *m = bed_frame_on(&path, &f);

		if (bad)
			rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 1] ^= 1;
		mangle(m, how);
		bed_put(w->b, m);
	}
	return copies;
}
