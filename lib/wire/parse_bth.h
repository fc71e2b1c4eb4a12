/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PARSE_BTH_H
#define PARSE_BTH_H
/**
 * @file parse_bth.h  The parser's part that IPv4 and IPv6 share: BTH to ICRC.
 *
 * Owner:   parse.c alone; inlined there into each of its paths.
 * Memory:  the caller's frame.
 * Depends: base.
 * Spec:    RX-SYN-00, RX-SYN-13, RX-SYN-14, RX-HDR-03.
 */
#include "invariant.h"
#include "wire_plain.h"

/** A fault bit, if `cond` holds; no branch. */
static ALWAYS_INLINE fault_mask_t
fault_if(bool cond, enum wire_fault f)
{
	return (fault_mask_t)cond << f;
}

/** 0 where the frame's destination MAC is the port's. */
static ALWAYS_INLINE uint32_t
mac_diff(const struct wire_port *port, const uint8_t *frame)
{
	return (wire_load32(frame) ^ wire_load32(port->mac)) |
	       (uint32_t)(wire_load16(frame + 4) ^ wire_load16(port->mac + 4));
}

/** FAULT_DST_MAC, if the frame's destination MAC is not the port's. */
static ALWAYS_INLINE fault_mask_t
mac_faults(const struct wire_port *port, const uint8_t *frame)
{
	return fault_if(mac_diff(port, frame) != 0, FAULT_DST_MAC);
}

/** What is known of a packet before its BTH. */
struct lower {
	fault_mask_t faults;
	uint32_t l3_off;
	uint32_t bth_off;
	uint32_t udp_len; /* UDP header .. ICRC */
	uint32_t flags;
};

/** Do the offsets and lengths of the result lie in the frame, one behind the other? */
static inline bool
lies_in_frame(const struct wire_pkt *p)
{
	if (p->icrc_off != 0 && p->icrc_off + WIRE_ICRC_LEN > p->frame_len)
		return false;
	if (p->payload_off == 0)
		return p->payload_len == 0;
	return p->bth_off > p->l3_off && p->payload_off >= p->bth_off + WIRE_BTH_LEN &&
	       p->payload_off + p->payload_len + p->pad + WIRE_ICRC_LEN <= p->frame_len;
}

/**
 * Fill `out` from the BTH on. With a fault that leaves the position of the BTH or of the packet's
 * end open, everything behind stays 0.
 */
static ALWAYS_INLINE void
parse_bth(const uint8_t *frame, uint32_t len, struct lower lo, struct wire_pkt *out)
{
	const fault_mask_t unusable =
		FAULT_BIT(FAULT_IP_VERSION) | FAULT_BIT(FAULT_IP_LEN) | FAULT_BIT(FAULT_UDP_LEN);
	const struct wire_opcode *op;
	uint32_t psn_word, payload_off, end, pad;
	uint64_t bth;

	if (UNLIKELY((lo.faults & unusable) != 0)) {
		*out = (struct wire_pkt){ .frame = frame,
			.faults = lo.faults,
			.frame_len = (uint16_t)len,
			.l3_off = (uint16_t)lo.l3_off,
			.flags = (uint8_t)lo.flags };
		return;
	}

	bth = be64_load(frame + lo.bth_off); /* opcode, bits, P_Key, FECN, BECN and QPN */
	psn_word = be32_load(frame + lo.bth_off + 8);
	op = &wire_opcodes[bth >> 56];
	pad = bth >> 52 & 3;
	payload_off = lo.bth_off + op->hdr_len;
	end = lo.bth_off - WIRE_UDP_LEN + lo.udp_len - WIRE_ICRC_LEN; /* of the pad */

	/* Of the lengths and offsets only those that agree with each other get here. */
	ASSERT(lo.bth_off + WIRE_BTH_LEN <= end && end + WIRE_ICRC_LEN <= len);

	/* 0, 1 and 0xffffff: subnet management, CM, multicast; the rest is the QP table's matter.
	 */
	if (UNLIKELY((((uint32_t)bth + 1) & PSN_MASK) <= 2))
		lo.faults |= FAULT_BIT(FAULT_DST_QP);
	if (UNLIKELY((bth >> 48 & 0xf) != 0))
		lo.faults |= FAULT_BIT(FAULT_TVER);

	out->frame = frame;
	out->op = op->flags;
	out->psn = psn(psn_word);
	out->dest_qpn = (uint32_t)bth & PSN_MASK;
	out->frame_len = (uint16_t)len;
	out->l3_off = (uint16_t)lo.l3_off;
	out->bth_off = (uint16_t)lo.bth_off;
	out->payload_off = (uint16_t)payload_off;
	out->payload_len = (uint16_t)(end - pad - payload_off);
	out->icrc_off = (uint16_t)end;
	out->pkey = (uint16_t)(bth >> 32);
	out->opcode = (uint8_t)(bth >> 56);
	out->flags = (uint8_t)(lo.flags | psn_word >> 31 | (bth >> 48 & (PKT_SE | PKT_MIGREQ)) |
			       (bth >> 28 & PKT_FECN) | (bth >> 26 & PKT_BECN));
	out->pad = (uint8_t)pad;
	out->tver = bth >> 48 & 0xf;

	if (UNLIKELY(payload_off + pad > end)) {
		lo.faults |= FAULT_BIT(FAULT_TRUNCATED);
		out->payload_off = 0;
		out->payload_len = 0;
		out->icrc_off = 0;
	}
	/* An ICRC over a header with options is defined nowhere: do not look for one. */
	if (UNLIKELY((lo.faults & FAULT_BIT(FAULT_IP_HDR_LEN)) != 0))
		out->icrc_off = 0;
	out->faults = lo.faults;
	ASSERT(lies_in_frame(out));
}

_Static_assert(
	PKT_ACKREQ == 1 && PKT_FECN == 8 && PKT_BECN == 16 && PKT_MIGREQ == 64 && PKT_SE == 128,
	"parse_bth() shifts the bits there");

#endif
