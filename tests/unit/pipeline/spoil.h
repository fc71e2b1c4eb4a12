/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_PIPELINE_SPOIL_H
#define TEST_PIPELINE_SPOIL_H
/**
 * @file spoil.h  Good frames with one byte changed, and what each of them is charged to.
 *
 * Owner:   the pipeline's unit tests.
 * Memory:  mbufs of the bed.
 * Depends: bed.h.
 */
#include "../../clib/ipv4.h"
#include "bed.h"

/** A change to a good SEND ONLY at ePSN. */
struct change {
	const char *name;
	uint32_t flags; /* of the QP */
	uint16_t off;
	uint8_t value;
	enum stats_counter counter;
	bool keep_icrc; /* the change is outside what the ICRC covers, or is to be wrong */
};

enum { ETH = 0, IP = 14, UDP = 34, BTH = 42 };

static const struct change changes[] = {
	{ "RX-SYN-00 destination MAC", 0, ETH + 5, 0x77, STAT_rx_syndrome_0, true },
	{ "RX-SYN-27 source address", 0, IP + 15, 99, STAT_rx_syndrome_27, false },
	{ "RX-SYN-28 source MAC", QPF_CHECK_SRC_MAC, ETH + 11, 0x77, STAT_rx_syndrome_28, true },
	{ "RX-SYN-05 DF required", QPF_REQUIRE_DF, IP + 6, 0x00, STAT_rx_syndrome_5, false },
	{ "RX-SYN-15 no such QP", 0, BTH + 7, 0x99, STAT_rx_syndrome_15, false },
	{ "RX-SYN-15 other generation (QP-20)", 0, BTH + 7, QPN + 64, STAT_rx_syndrome_15, false },
	{ "RX-SYN-13 version", 0, BTH + 1, 0x01, STAT_rx_syndrome_13, false },
	{ "RX-SYN-14 QP 0", 0, BTH + 7, 0, STAT_rx_syndrome_14, false },
	{ "RX-SYN-30 ICRC", 0, BTH + 12, 0xee, STAT_rx_syndrome_30, true },
	{ "RX-HDR-01 P_Key", 0, BTH + 2, 0x12, STAT_rx_pkey_violation, false },
	{ "RX-HDR-02 UC opcode", 0, BTH, 0x24, STAT_rx_qp_type_mismatch, false },
	{ "RX-HDR-02 UD opcode", 0, BTH, 0x64, STAT_rx_qp_type_mismatch, false },
	{ "RX-HDR-03 pad", 0, BTH + 1, 0x30, STAT_rx_truncated, false },
	{ "RX-HDR-06 UDP port", 0, UDP + 3, 0xb6, STAT_rx_not_roce, true },
};

/** Such a frame, with a right IPv4 checksum, and a right ICRC unless `keep_icrc`. */
static inline struct rte_mbuf *
changed(const struct change *c)
{
	struct wire_fields f = send_only(E, c->counter == STAT_rx_truncated ? 0 : 8);
	struct rte_mbuf *m = bed_frame(&f);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	frame[c->off] = c->value;
	ipv4_fix_sum(frame + IP);
	if (!c->keep_icrc)
		bed_reseal(m);
	return m;
}

#endif
