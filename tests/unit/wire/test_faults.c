/* SPDX-License-Identifier: BSD-3-Clause */
/* Every fault that wire_parse() can find: which bits, and whether the ICRC can still be located. */
#include "frames.h"

enum { SUM = 1, DF = 2, NO_V4 = 4, NO_V6 = 8 };

/* One fault a row, or two where the rule speaks of both; the checksum is right with SUM. */
static const struct row {
	const char *name;
	int base;
	int opts;
	struct change set[6];
	fault_mask_t want;
	bool located; /* the ICRC can be found */
} rows[] = {
	{ "RX-SYN-00 foreign unicast MAC", V4, 0, { { 5, 0x12 } }, FAULT_BIT(0), true },
	{ "RX-SYN-00 first byte", V4, 0, { { 0, 0x06 } }, FAULT_BIT(0), true },
	{ "RX-SYN-00 IPv6", V6, 0, { { 4, 1 } }, FAULT_BIT(0), true },
	{ "RX-SYN-34 another source MAC", V4, 0, { { 11, 0x33 } }, 0, true },
	{ "RX-SYN-02 IPv4 type, nibble 6", V4, SUM, { { IP4, 0x65 } }, FAULT_BIT(2), false },
	{ "RX-SYN-02 IPv4 type, IPv6 packet", V6, 0, { { 12, 0x08 }, { 13, 0 } }, FAULT_BIT(2),
		false },
	{ "RX-SYN-02 IPv6 type, nibble 4", V6, 0, { { IP6, 0x40 } }, FAULT_BIT(2), false },
	{ "RX-SYN-02 IPv6 type, IPv4 packet", V4, 0, { { 12, 0x86 }, { 13, 0xdd } }, FAULT_BIT(2),
		false },
	{ "RX-SYN-02 with RX-SYN-00", V4, 0, { { IP4, 0x65 }, { 5, 9 } },
		FAULT_BIT(0) | FAULT_BIT(2), false },
	{ "RX-SYN-03 IHL below 5", V4, 0, { { IP4, 0x44 }, { IP4 + 10, 0xb7 } }, FAULT_BIT(3),
		false },
	{ "RX-SYN-05 flags 000, DF required", V4, SUM | DF, { { IP4 + 6, 0x00 } }, FAULT_BIT(5),
		true },
	{ "RX-SYN-05 flags 110, DF required", V4, SUM | DF, { { IP4 + 6, 0xc0 } }, FAULT_BIT(5),
		true },
	{ "RX-SYN-05 flags 010", V4, SUM | DF, { { IP4 + 6, 0x40 } }, 0, true },
	{ "RX-SYN-05 MF, DF required", V4, SUM | DF, { { IP4 + 6, 0x60 } }, FAULT_BIT(5), true },
	{ "RX-SYN-33 flags 000, DF ignored", V4, SUM, { { IP4 + 6, 0x00 } }, 0, true },
	{ "RX-SYN-33 MF is always a fault", V4, SUM, { { IP4 + 6, 0x20 } }, FAULT_BIT(5), true },
	{ "RX-SYN-06 fragment offset 8", V4, SUM, { { IP4 + 7, 8 } }, FAULT_BIT(6), true },
	{ "RX-SYN-06 highest offset bit", V4, SUM, { { IP4 + 6, 0x50 } }, FAULT_BIT(6), true },
	{ "RX-SYN-08 IPv4", V4, SUM, { { IP4 + 19, 3 } }, FAULT_BIT(8), true },
	{ "RX-SYN-08 IPv4 multicast", V4, SUM, { { IP4 + 16, 224 } }, FAULT_BIT(8), true },
	{ "RX-SYN-08 IPv6 first byte", V6, 0, { { IP6 + 24, 0xff } }, FAULT_BIT(8), true },
	{ "RX-SYN-08 IPv6 last byte", V6, 0, { { IP6 + 39, 0xff } }, FAULT_BIT(8), true },
	{ "RX-SYN-08 port without IPv4", V4, NO_V4, { { 0, 2 } }, FAULT_BIT(8), true },
	{ "RX-SYN-08 port without IPv6", V6, NO_V6, { { 0, 2 } }, FAULT_BIT(8), true },
	{ "RX-SYN-09 checksum inverted", V4, 0, { { IP4 + 10, 0x49 }, { IP4 + 11, 0x46 } },
		FAULT_BIT(9), true },
	{ "RX-SYN-09 one bit", V4, 0, { { IP4 + 8, 0x41 } }, FAULT_BIT(9), true },
	{ "RX-SYN-10 IPv4 one below the smallest", V4, SUM, { { IP4 + 3, 43 }, { UDP4 + 5, 23 } },
		FAULT_BIT(10), false },
	{ "RX-SYN-10 IPv4 zero", V4, SUM, { { IP4 + 3, 0 } }, FAULT_BIT(10) | FAULT_BIT(12),
		false },
	{ "RX-SYN-10 IPv4 one beyond the frame", V4, SUM, { { IP4 + 3, 49 }, { UDP4 + 5, 29 } },
		FAULT_BIT(10), false },
	{ "RX-SYN-10 IPv4 65535", V4, SUM,
		{ { IP4 + 2, 0xff }, { IP4 + 3, 0xff }, { UDP4 + 4, 0xff }, { UDP4 + 5, 0xeb } },
		FAULT_BIT(10), false },
	{ "RX-SYN-10 IPv6 one below the smallest", V6, 0, { { IP6 + 5, 23 }, { UDP6 + 5, 23 } },
		FAULT_BIT(10), false },
	{ "RX-SYN-10 IPv6 one beyond the frame", V6, 0, { { IP6 + 5, 33 }, { UDP6 + 5, 33 } },
		FAULT_BIT(10), false },
	{ "RX-SYN-10 IPv6 zero", V6, 0, { { IP6 + 5, 0 }, { UDP6 + 5, 0 } }, FAULT_BIT(10), false },
	{ "RX-SYN-12 IPv4 -4", V4, 0, { { UDP4 + 5, 0x18 } }, FAULT_BIT(12), false },
	{ "RX-SYN-12 IPv4 +4", V4, 0, { { UDP4 + 5, 0x20 } }, FAULT_BIT(12), false },
	{ "RX-SYN-12 IPv6 -4", V6, 0, { { UDP6 + 5, 0x1c } }, FAULT_BIT(12), false },
	{ "RX-SYN-12 IPv6 +4", V6, 0, { { UDP6 + 5, 0x24 } }, FAULT_BIT(12), false },
	{ "RX-SYN-13 TVer 1", V4, 0, { { BTH4 + 1, 0x41 } }, FAULT_BIT(13), true },
	{ "RX-SYN-13 TVer 8, IPv6", V6, 0, { { BTH6 + 1, 0xf8 } }, FAULT_BIT(13), true },
	{ "RX-SYN-14 QP 0", V4, 0, { { BTH4 + 7, 0 } }, FAULT_BIT(14), true },
	{ "RX-SYN-14 QP 1", V4, 0, { { BTH4 + 7, 1 } }, FAULT_BIT(14), true },
	{ "RX-SYN-14 QP 2 is the table's matter", V4, 0, { { BTH4 + 7, 2 } }, 0, true },
	{ "RX-SYN-14 QP 0xffffff", V4, 0,
		{ { BTH4 + 5, 0xff }, { BTH4 + 6, 0xff }, { BTH4 + 7, 0xff } }, FAULT_BIT(14),
		true },
	{ "RX-SYN-14 QP 0xfffffe", V4, 0,
		{ { BTH4 + 5, 0xff }, { BTH4 + 6, 0xff }, { BTH4 + 7, 0xfe } }, 0, true },
	{ "RX-SYN-14 QP 0 with reserved bits", V4, 0, { { BTH4 + 4, 0x3f }, { BTH4 + 7, 0 } },
		FAULT_BIT(14), true },
	{ "RX-SYN-17 is not the parser's", V4, 0, { { BTH4, 0x1f } }, 0, true },
	{ "WIRE-15 UDP checksum is not verified", V4, 0, { { UDP4 + 6, 0x12 } }, 0, true },
	{ "RX-PREC-02 offset and destination", V4, SUM, { { IP4 + 7, 8 }, { IP4 + 19, 3 } },
		FAULT_BIT(6) | FAULT_BIT(8), true },
	{ "RX-PREC-01 (8,9)", V4, SUM, { { IP4 + 19, 3 }, { UDP4 + 5, 0x18 } },
		FAULT_BIT(8) | FAULT_BIT(12), false },
	{ "RX-PREC-01 MAC and the BTH", V4, 0, { { 5, 3 }, { BTH4 + 1, 0x41 }, { BTH4 + 7, 0 } },
		FAULT_BIT(0) | FAULT_BIT(13) | FAULT_BIT(14), true },
};

/* RX-SYN-00 .. RX-SYN-14, RX-SYN-33, RX-SYN-34, RX-PREC-01, RX-PREC-02: exactly these bits. */
static void
RX_SYN_header_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct wire_port prt = port;
		uint8_t f[FRAME_MAX];
		size_t len = hex_bytes(r->base == V4 ? v4_send : v6_send, f, sizeof(f));
		struct wire_pkt p;

		for (size_t k = 0; k < ARRAY_LEN(r->set); k++) {
			if (k == 0 || r->set[k].at != 0)
				f[r->set[k].at] = r->set[k].value;
		}
		if ((r->opts & SUM) != 0) {
			uint8_t first = f[IP4];

			f[IP4] = 0x45; /* the length is part of what the rows change */
			ipv4_fix_sum(f + IP4);
			f[IP4] = first;
		}
		prt.require_df = (r->opts & DF) != 0;
		prt.has_ipv4 = (r->opts & NO_V4) == 0;
		prt.has_ipv6 = (r->opts & NO_V6) == 0;
		if (parse_exact(&prt, f, len, &p) != WIRE_CLASS_ROCE || p.faults != r->want ||
			(p.icrc_off != 0) != r->located)
			fail_msg("%s: faults 0x%llx, ICRC at %u", r->name,
				(unsigned long long)p.faults, p.icrc_off);
		if (r->want == 0 || r->located)
			assert_int_equal(p.icrc_off, r->base == V4 ? 58 : 82);
	}
}

/* RX-SYN-03: IHL 6 with a good checksum over 24 bytes. RX-PREC-01 (6,7): with a bad one. */
static void
RX_SYN_03_option(void **state)
{
	uint8_t f[FRAME_MAX];
	size_t len = hex_bytes(v4_send, f, sizeof(f));
	struct wire_pkt p;

	(void)state;
	memmove(f + IP4 + 24, f + IP4 + 20, len - IP4 - 20);
	memcpy(f + IP4 + 20, "\x01\x01\x01\x00", 4);
	len += 4;
	f[IP4] = 0x46;
	f[IP4 + 3] += 4;
	ipv4_fix_sum(f + IP4);
	assert_int_equal(parse_exact(&port, f, len, &p), WIRE_CLASS_ROCE);
	assert_true(p.faults == FAULT_BIT(3));
	assert_int_equal(p.icrc_off, 0);
	assert_int_equal(p.psn.v, 0x100);
	assert_int_equal(p.bth_off, BTH4 + 4);

	f[IP4 + 20] ^= 1; /* in the option: the sum covers it */
	parse_exact(&port, f, len, &p);
	assert_true(p.faults == (FAULT_BIT(3) | FAULT_BIT(9)));
	assert_int_equal(wire_fault_winner(p.faults), FAULT_IP_CHECKSUM);

	f[IP4] = 0x4f; /* a header that ends behind the frame */
	assert_int_equal(parse_exact(&port, f, 60, &p), WIRE_CLASS_OTHER);
}

/* RX-HDR-06: neither another port nor another EtherType is RoCE. */
static void
RX_HDR_06_what_is_not_roce(void **state)
{
	static const struct {
		const char *name;
		int base;
		struct change set[2];
		enum wire_class want;
	} cases[] = {
		{ "UDP port 4790", V4, { { UDP4 + 3, 0xb6 } }, WIRE_CLASS_OTHER },
		{ "UDP port 4790 v6", V6, { { UDP6 + 3, 0xb6 } }, WIRE_CLASS_OTHER },
		{ "EtherType 0x8915", V4, { { 12, 0x89 }, { 13, 0x15 } }, WIRE_CLASS_OTHER },
		{ "ARP", V4, { { 12, 0x08 }, { 13, 0x06 } }, WIRE_CLASS_CONTROL },
		{ "TCP", V4, { { IP4 + 9, 6 } }, WIRE_CLASS_OTHER },
		{ "ICMP", V4, { { IP4 + 9, 1 } }, WIRE_CLASS_CONTROL },
		{ "IGMP", V4, { { IP4 + 9, 2 } }, WIRE_CLASS_CONTROL },
		{ "ICMPv6", V6, { { IP6 + 6, 58 } }, WIRE_CLASS_CONTROL },
		{ "ICMPv6 behind options", V6, { { IP6 + 6, 0 }, { IP6 + 40, 58 } },
			WIRE_CLASS_CONTROL },
		{ "UDP behind options", V6, { { IP6 + 6, 0 }, { IP6 + 40, 17 } },
			WIRE_CLASS_OTHER },
		{ "IPv6 TCP", V6, { { IP6 + 6, 6 } }, WIRE_CLASS_OTHER },
		{ "IPv6 fragment header", V6, { { IP6 + 6, 44 } }, WIRE_CLASS_OTHER },
		{ "wrong version, other port", V4, { { IP4, 0x65 }, { UDP4 + 3, 0xb6 } },
			WIRE_CLASS_OTHER },
		{ "two VLAN tags", V4, { { 12, 0x81 }, { 13, 0x00 } }, WIRE_CLASS_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t f[FRAME_MAX];
		size_t len = hex_bytes(cases[i].base == V4 ? v4_send : v6_send, f, sizeof(f));
		struct wire_pkt p;

		for (size_t k = 0; k < 2; k++) {
			if (cases[i].set[k].at != 0)
				f[cases[i].set[k].at] = cases[i].set[k].value;
		}
		if (parse_exact(&port, f, len, &p) != cases[i].want)
			fail_msg("%s", cases[i].name);
	}
}

/* Frames beyond what 16-bit offsets hold. */
static void
RX_SYN_10_huge_frame(void **state)
{
	const uint32_t room = 70000;
	uint8_t *f = calloc(1, room);
	struct wire_pkt p;

	(void)state;
	assert_non_null(f);
	hex_bytes(v4_send, f, room);
	assert_int_equal(wire_parse(&port, f, room, &p), WIRE_CLASS_ROCE);
	assert_true(p.faults == 0);
	assert_int_equal(p.frame_len, 65535);
	assert_int_equal(p.icrc_off, 58);

	/* An IP length of 65535 ends behind the last offset. */
	memcpy(f + IP4 + 2, "\xff\xff", 2);
	memcpy(f + UDP4 + 4, "\xff\xeb", 2);
	ipv4_fix_sum(f + IP4);
	wire_parse(&port, f, room, &p);
	assert_true(p.faults == FAULT_BIT(FAULT_IP_LEN));

	/* The longest that fits. */
	memcpy(f + IP4 + 2, "\xff\xf1", 2);
	memcpy(f + UDP4 + 4, "\xff\xdd", 2);
	ipv4_fix_sum(f + IP4);
	wire_parse(&port, f, room, &p);
	assert_true(p.faults == 0);
	assert_int_equal(p.icrc_off, 65531);
	free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RX_SYN_header_faults),
		cmocka_unit_test(RX_SYN_03_option),
		cmocka_unit_test(RX_HDR_06_what_is_not_roce),
		cmocka_unit_test(RX_SYN_10_huge_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
