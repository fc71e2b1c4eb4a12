/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet step's bytes: 1 QP, and of a run how many, 2 opcode, 3 PSN or what is changed, 4 length,
 * 5 key and address, 6 Q_Key, source, SRQ, FETH; a response's syndrome, 7 flags (HOW_). Of a QP
 * that migrates bit 5 of byte 4 says on which path, bit 7 of byte 5 is MigReq. PSNs are those that
 * the QP waits for, unless byte 3 says otherwise: a fuzzer does not find them in 2^24. A flood's
 * are the same, of the QPs of bytes 1 and 3.
 */
#include "fuzz_worker.h"

#include "crc_isal.h"

enum { ETH = 14, PAYLOAD = 1024, BEHIND_IP = 8 + 12 + 4 };
enum { FLOODS = 2, FLOOD_TURNS = 40, FLOOD_FRAMES = 16 };

static uint8_t
opcode_of(const struct plan *p, uint8_t sel)
{
	if (sel >= 0xc0)
		return sel; /* reserved, or of manufacturers */
	if (sel >= 0x80)
		return (uint8_t)((sel & 0x1f) | (sel & 0x60) << 1); /* whatever the QP is */
	if (sel == 0x7f)
		return OP_CNP;
	if (sel >= 0x7d) /* FLUSH, ATOMIC WRITE */
		return (uint8_t)(sel - 0x7d + OP_RC_FLUSH +
				 (p->type == QPT_XRC_SEND || p->type == QPT_XRC_RECV ? 0xa0 : 0));
	sel %= 0x18;
	switch (p->type) {
	case QPT_UC:
		return (uint8_t)(0x20 + sel % 12);
	case QPT_UD:
		return (uint8_t)(0x64 + sel % 2);
	case QPT_XRC_SEND:
	case QPT_XRC_RECV:
		return (uint8_t)(0xa0 + sel);
	default:
		return sel;
	}
}

static uint16_t
length_of(const struct plan *p, uint8_t sel)
{
	static const uint16_t lens[] = { 0, 1, 3, 4, 8, 16, 40, 64, 255, 256, 257, 300, 512, 1000 };

	return sel % 16 < 14 ? lens[sel % 16] : p->mtu;
}

static uint32_t
key_of(uint8_t sel)
{
	const struct mem_window *w;

	if (sel % 8 < REGIONS)
		return fuzz_regions[sel % 8].key;
	w = fw.mw[sel % 8 - REGIONS];
	return w != NULL ? w->r.key : 0x77;
}

static uint64_t
address_of(uint8_t sel)
{
	const struct region_plan *r = &fuzz_regions[sel % 8 < REGIONS ? sel % 8 : 0];

	switch (sel >> 3 & 7) {
	case 7:
		return r->va + r->len - 8;
	case 6:
		return r->va + r->len - 7;
	case 5:
		return UINT64_MAX - 7;
	case 4:
		return (sel & 0x40) != 0 ? 0 : r->va + 4093;
	default:
		return r->va + (sel >> 3 & 7) * 64u;
	}
}

static bool
is_response(uint8_t opcode)
{
	const uint8_t op = opcode & 0x1f;

	return (opcode >> 5 == 0 || opcode >> 5 == 5) && op >= 0x0d && op <= 0x12;
}

static void
fill(const struct qp_bed *q, const uint8_t *s, struct wire_fields *f)
{
	static uint8_t bytes[PAYLOAD];
	const bool response = is_response(f->opcode);
	const struct requester *req = &q->qp->req;

	for (uint32_t i = 0; bytes[1] == 0 && i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
	f->psn = response ? req->una : q->qp->resp.epsn;
	if (response && (s[3] & 0xf0) == 0x70) /* the last one that was sent */
		f->psn = psn_add(req->next, PSN_MASK);
	else if (s[3] >= 0x80 || response)
		f->psn = psn_add(f->psn, (uint32_t)(int32_t)(int8_t)s[3]);
	f->payload = bytes;
	f->payload_len = length_of(q->plan, s[4]);
	f->reth = (struct wire_reth){ address_of(s[5]), key_of(s[5]),
		s[4] < 0x80 ? f->payload_len : (uint32_t)s[4] << (s[6] & 31) };
	/* Without this few READs and ATOMICs would be served, and no CNP. */
	if ((s[7] & HOW_FLIP) == 0 && !op_has(wire_opcodes[f->opcode].flags, OPF_PAYLOAD))
		f->payload_len = f->opcode == OP_CNP ? WIRE_CNP_PAYLOAD_LEN : 0;
	f->atomiceth = (struct wire_atomiceth){
		.va = address_of(s[5]) & ~UINT64_C(7), .rkey = key_of(s[5]), .swap_add = s[6]
	};
	f->feth = s[6];
	f->ieth = key_of(s[5]);
	f->imm = s[6];
	f->aeth = (struct wire_aeth){ .syndrome = s[6], .msn = s[5] };
	f->atomicack = s[6];
	f->deth = (struct wire_deth){ .qkey = s[6] < 0xf0 ? QKEY : s[6], .src_qpn = s[6] };
	f->xrc_srqn = s[6] % 4;
}

/** A byte of the headers, behind Ethernet: the ICRC is right all the same. */
static void
flip(uint8_t *frame, int *len, const uint8_t *s, bool ipv6)
{
	const uint32_t behind = (ipv6 ? 40 : 20) + 8;
	const uint32_t at = ETH + behind + s[3] % 28u;

	if (at < (uint32_t)*len)
		frame[at] ^= s[6];
	if (s[3] >= 0xf0)
		*len -= s[3] & 15;
}

/** One, so many PSNs behind what the step says. */
static void
packet(const struct qp_bed *q, const uint8_t *s, uint32_t behind)
{
	const uint32_t i = (uint32_t)(q - fw.q);
	const bool migrates = (q->plan->how & PLAN_MIGRATES) != 0,
		   other = migrates && (s[4] & 0x20);
	struct wire_path path = other ? bed_alternate(true) : bed_path(i, true);
	struct wire_fields f = {
		.opcode = opcode_of(q->plan, s[2]), .pkey = 0xffff, .dest_qpn = bed_qpn(i)
	};
	struct rte_mbuf *m;
	uint8_t *frame;
	int len;

	fill(q, s, &f);
	f.psn = psn_add(f.psn, behind);
	f.flags = (uint8_t)(((s[7] & HOW_ACKREQ) != 0 ? PKT_ACKREQ : 0) |
			    ((s[7] & HOW_SE) != 0 ? PKT_SE : 0));
	f.flags |= migrates && (s[5] & 0x80) != 0 ? PKT_MIGREQ : 0;
	f.flags |= f.opcode == OP_CNP ? PKT_BECN : 0;
	if ((s[7] & HOW_CE) != 0)
		path.tos |= 3;
	if ((s[7] & HOW_GROUP) != 0) {
		bed_group_path((s[7] & HOW_V6) != 0, &path);
		f.dest_qpn = QP_MCAST_QPN;
	}
	if ((s[7] & HOW_QP1) != 0)
		f.dest_qpn = 1;
	m = rte_pktmbuf_alloc(fw.pool);
	if (m == NULL)
		return;
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	len = wire_build(&path, &f, 1, frame, rte_pktmbuf_tailroom(m));
	FUZZ_CHECK(len > 0);
	if ((s[7] & HOW_FLIP) != 0)
		flip(frame, &len, s, path.ipv6);
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	if (len >= ETH + (path.ipv6 ? 40 : 20) + BEHIND_IP)
		icrc_seal(crc_isal(), frame, ETH, path.ipv6, (uint32_t)len);
	port_put(other ? 1 : q->plan->port, m);
}

void
packet_step(const uint8_t s[STEP])
{
	const struct qp_bed *q = &fw.q[s[1] % QPS];
	const uint32_t n = (s[7] & HOW_RUN) != 0 ? 1 + 3u * (s[1] / QPS) : 1;

	for (uint32_t k = 0; q->qp != NULL && k < n; k++)
		packet(q, s, k);
}

void
packet_flood(const uint8_t s[STEP])
{
	const struct qp_bed *a = &fw.q[s[1] % QPS], *b = &fw.q[s[3] % QPS];
	uint8_t step[STEP];

	if (a->qp == NULL || b->qp == NULL || fw.floods == FLOODS)
		return;
	fw.floods++;
	memcpy(step, s, STEP);
	step[3] = 0;
	for (uint32_t t = 0; t < FLOOD_TURNS; t++) {
		for (uint32_t k = 0; k < FLOOD_FRAMES; k++) {
			packet(a, step, k);
			packet(b, step, k);
		}
		bed_turn();
	}
}
