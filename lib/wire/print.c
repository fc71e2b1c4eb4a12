/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of text for a packet, in Wireshark's terms. */
#include <stdarg.h>
#include <stdio.h>

#include "wire.h"

struct line {
	char *buf;
	size_t room;
	size_t len;
};

static void PRINTF(2, 3) add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (l->len + 1 >= l->room)
		return;
	va_start(ap, fmt);
	n = vsnprintf(l->buf + l->len, l->room - l->len, fmt, ap);
	va_end(ap);
	if (n > 0) {
		size_t left = l->room - l->len - 1;

		l->len += (size_t)n < left ? (size_t)n : left;
	}
}

static void
add_aeth(struct line *l, uint8_t transport, struct wire_aeth a)
{
	uint8_t value = a.syndrome & 0x1f;
	const char *nak = wire_nak_text(transport, value);

	add(l, " Syndrome=0x%02x", a.syndrome);
	switch (a.syndrome & AETH_KIND_MASK) {
	case AETH_ACK:
		add(l, " (ACK)");
		break;
	case AETH_RNR:
		add(l, " (RNR NAK %u us)", wire_rnr_us(value));
		break;
	case AETH_NAK:
		add(l, " (NAK %s)", nak != NULL ? nak : "reserved");
		break;
	default:
		add(l, " (reserved)");
		break;
	}
	add(l, " MSN=%u", a.msn);
}

static void
add_ext(struct line *l, const struct wire_pkt *p)
{
	if (op_has(p->op, OPF_DETH)) {
		struct wire_deth d = wire_deth(p);

		add(l, " QKey=0x%08x SrcQP=0x%06x", d.qkey, d.src_qpn);
	}
	if (op_has(p->op, OPF_XRCETH))
		add(l, " SRQ=0x%06x", wire_xrceth(p));
	if (op_has(p->op, OPF_RETH)) {
		struct wire_reth r = wire_reth_any(p);

		if (op_has(p->op, OPF_FETH))
			add(l, " FETH=0x%08x", wire_feth(p));
		add(l, " VA=0x%016llx RKey=0x%08x DMALen=%u", (unsigned long long)r.va, r.rkey,
			r.dma_len);
	}
	if (op_has(p->op, OPF_ATOMICETH)) {
		struct wire_atomiceth a = wire_atomiceth(p);

		add(l, " VA=0x%016llx RKey=0x%08x Swap/Add=0x%016llx Compare=0x%016llx",
			(unsigned long long)a.va, a.rkey, (unsigned long long)a.swap_add,
			(unsigned long long)a.compare);
	}
	if (op_has(p->op, OPF_AETH))
		add_aeth(l, wire_transport_of(p->opcode), wire_aeth(p));
	if (op_has(p->op, OPF_ATOMICACKETH))
		add(l, " Original=0x%016llx", (unsigned long long)wire_atomicack(p));
	if (op_has(p->op, OPF_IMM))
		add(l, " Imm=0x%08x", wire_imm_or_inv(p));
	if (op_has(p->op, OPF_IETH))
		add(l, " IETH=0x%08x", wire_imm_or_inv(p));
}

static void
add_flags(struct line *l, uint8_t flags)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} names[] = {
		{ PKT_ACKREQ, "AckReq" },
		{ PKT_SE, "SE" },
		{ PKT_MIGREQ, "MigReq" },
		{ PKT_FECN, "FECN" },
		{ PKT_BECN, "BECN" },
		{ PKT_CE, "CE" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if ((flags & names[i].bit) != 0)
			add(l, " %s", names[i].name);
	}
}

int
wire_print(const struct wire_pkt *p, char *buf, size_t room)
{
	const struct wire_opcode *op = &wire_opcodes[p->opcode];
	struct line l = { .buf = buf, .room = room };

	if (room == 0)
		return 0;
	buf[0] = '\0';
	if (p->bth_off == 0) {
		add(&l, "RoCE without BTH Len=%u", p->frame_len);
	} else {
		if (op->wireshark != NULL)
			add(&l, "%s", op->wireshark);
		else
			add(&l, "Reserved opcode 0x%02x", p->opcode);
		add(&l, " PSN=%u QP=0x%06x P_Key=0x%04x", p->psn.v, p->dest_qpn, p->pkey);
		add_flags(&l, p->flags);
		if (p->payload_off != 0) {
			add_ext(&l, p);
			add(&l, " Payload=%u PadCnt=%u", p->payload_len, p->pad);
		}
	}
	for (fault_mask_t m = p->faults; m != 0; m &= m - 1) {
		const char *name = wire_faults[__builtin_ctzll(m)].name;

		add(&l, "%s%s", m == p->faults ? " Faults=" : ",", name != NULL ? name : "?");
	}
	return (int)l.len;
}
