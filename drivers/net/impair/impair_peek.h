/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_PEEK_H
#define IMPAIR_PEEK_H
/**
 * @file impair_peek.h  What a rule can ask of a frame: a short look at its BTH.
 *
 * Owner:   any lcore (pure function).
 * Memory:  the caller's; nothing beyond the bytes given is read.
 * Depends: base, wire (opcodes).
 * Spec:    WIRE-01 (UDP port), WIRE-06 (opcodes).
 *
 * Unlike wire_parse() it asks for no address, length or checksum to be right: a damaged packet
 * still belongs to its QP here.
 */
#include <stdint.h>

#include "compiler.h"

/** Longest header that is looked at: Ethernet, a VLAN tag, IPv4 with options, UDP, BTH. */
#define IMPAIR_PEEK_LEN 98

enum {
	IMPAIR_PKT_ROCE = BIT32(0),
	IMPAIR_PKT_REQUEST = BIT32(1),
	IMPAIR_PKT_RESPONSE = BIT32(2),
	IMPAIR_PKT_IPV4 = BIT32(3),
	IMPAIR_PKT_IPV6 = BIT32(4),
};

struct impair_pkt {
	uint32_t len; /* of the frame, bytes */
	uint32_t qpn; /* this and the next two: 0 without IMPAIR_PKT_ROCE */
	uint32_t psn;
	uint16_t l3_off; /* valid with IMPAIR_PKT_IPV4 or _IPV6 */
	uint8_t opcode;
	uint8_t kind; /* IMPAIR_PKT_* */
};

/**
 * @param have bytes that may be read at `frame`: the whole frame or its first IMPAIR_PEEK_LEN.
 * @param len  of the whole frame.
 * Cost: a handful of loads. Cannot fail: what is not understood has no `kind`.
 */
struct impair_pkt impair_peek(const uint8_t *frame, uint32_t have, uint32_t len);

#endif
