/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_PARSED_H
#define TEST_PARSED_H
/**
 * @file parsed.h  A packet as the parser would leave it, for logic that wants nothing else.
 *
 * Owner:   tests only.
 * Memory:  the caller's frame.
 * Depends: wire.
 */
#include <string.h>

#include "wire.h"

enum { BTH_OFF = 42, PARSED_FRAME = 128 };

/** An empty frame, and what is known of it. @return its first byte behind the BTH. */
static inline uint8_t *
parsed_pkt(struct wire_pkt *out, uint8_t frame[PARSED_FRAME], uint8_t opcode, uint32_t psn_value,
	uint32_t payload_len)
{
	const struct wire_opcode *op = &wire_opcodes[opcode];

	memset(frame, 0, PARSED_FRAME);
	*out = (struct wire_pkt){ .frame = frame,
		.op = op->flags,
		.psn = psn(psn_value),
		.bth_off = BTH_OFF,
		.payload_off = (uint16_t)(BTH_OFF + op->hdr_len),
		.payload_len = (uint16_t)payload_len,
		.opcode = opcode };
	return frame + BTH_OFF + 12;
}

#endif
