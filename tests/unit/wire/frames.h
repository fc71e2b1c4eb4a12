/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRAMES_H
#define FRAMES_H
/**
 * @file frames.h  Two frames typed by hand, and how the parser's tests change and run them.
 *
 * Owner:   tests/unit/wire.
 * Memory:  parse_exact() puts a frame right before a page that cannot be read.
 * Depends: base, wire, cmocka.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire.h"
#include "../../clib/ipv4.h"
#include "../../vectors/hex.h"
#include "../guard.h"

/* Offsets in the two base frames. */
enum {
	IP4 = 14,
	UDP4 = 34,
	BTH4 = 42,
	IP6 = 14,
	UDP6 = 54,
	BTH6 = 62,
	FRAME_MAX = 256,
};

#define V4_ETH "02 00 00 00 00 11  02 00 00 00 00 22  08 00 "
#define V4_IP  "45 00 00 30 00 00 40 00 40 11 b6 b9 c0 00 02 02 c0 00 02 01 "
#define V4_UDP "c0 11 12 b7 00 1c 00 00 "
#define BTH    "04 40 ff ff 00 00 00 11 80 00 01 00 "
/* RC SEND ONLY, PSN 0x100, QP 0x11, AckReq, MigReq, 4 bytes. */
UNUSED static const char v4_send[] = V4_ETH V4_IP V4_UDP BTH "00 01 02 03 2a fe 69 b1";
UNUSED static const char v4_vlan_send[] =
	"02 00 00 00 00 11  02 00 00 00 00 22  81 00 60 05 08 00 " V4_IP V4_UDP BTH
	"00 01 02 03 2a fe 69 b1";
/* The same over IPv6 with SE, 5 bytes and a pad of 3. */
UNUSED static const char v6_send[] =
	"02 00 00 00 00 11  02 00 00 00 00 22  86 dd "
	"60 00 00 00 00 20 11 40 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 02 "
	"20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 "
	"c0 11 12 b7 00 20 00 00 04 f0 ff ff 00 00 00 11 80 00 01 00 "
	"00 01 02 03 04 00 00 00 b7 f3 21 3e";

static const struct wire_port port = {
	.mac = { 0x02, 0, 0, 0, 0, 0x11 },
	.has_ipv4 = true,
	.has_ipv6 = true,
	.ipv4 = { 192, 0, 2, 1 },
	.ipv6 = { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
};

/** Parse a copy of exactly `len` bytes, which is the next one's place, too. */
static inline enum wire_class
parse_exact(const struct wire_port *p, const uint8_t *frame, size_t len, struct wire_pkt *out)
{
	static struct guard g;
	const uint8_t *copy = guard_before_end(&g, frame, len);
	enum wire_class c;
	char line[256];

	memset(out, 0xa5, sizeof(*out));
	c = wire_parse(p, copy, (uint32_t)len, out);
	if (c == WIRE_CLASS_ROCE) {
		/* The printer goes through every accessor that the packet allows. */
		assert_true(wire_print(out, line, sizeof(line)) > 0);
		assert_true(out->faults != 0 || out->icrc_off != 0);
	}
	return c;
}

enum { V4, V6 };

struct change {
	uint8_t at;
	uint8_t value;
};

#endif
