/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire_parse() over good frames, and over those that end too early. test_faults.c has the others.
 */
#include <stdio.h>

#include "frames.h"
#include "../../vectors/tables.h"

static void
WIRE_01_good_ipv4(void **state)
{
	uint8_t f[FRAME_MAX];
	size_t len = hex_bytes(v4_send, f, sizeof(f));
	struct wire_pkt p;

	(void)state;
	assert_int_equal(len, 62);
	assert_int_equal(wire_parse(&port, f, (uint32_t)len, &p), WIRE_CLASS_ROCE);
	assert_true(p.faults == 0);
	assert_ptr_equal(p.frame, f);
	assert_int_equal(p.frame_len, 62);
	assert_int_equal(p.l3_off, 14);
	assert_int_equal(p.bth_off, 42);
	assert_int_equal(p.payload_off, 54);
	assert_int_equal(p.payload_len, 4);
	assert_int_equal(p.icrc_off, 58);
	assert_int_equal(p.opcode, 0x04);
	assert_int_equal(p.op.v, wire_opcodes[0x04].flags.v);
	assert_int_equal(p.psn.v, 0x100);
	assert_int_equal(p.dest_qpn, 0x11);
	assert_int_equal(p.pkey, 0xffff);
	assert_int_equal(p.flags, PKT_ACKREQ | PKT_MIGREQ);
	assert_int_equal(p.pad, 0);
	assert_int_equal(p.tver, 0);
	assert_memory_equal(wire_src_ip(&p), "\xc0\x00\x02\x02", 4);
	assert_memory_equal(wire_payload(&p), "\x00\x01\x02\x03", 4);
}

static void
WIRE_01_good_ipv6(void **state)
{
	uint8_t f[FRAME_MAX];
	size_t len = hex_bytes(v6_send, f, sizeof(f));
	struct wire_pkt p;

	(void)state;
	assert_int_equal(len, 86);
	assert_int_equal(wire_parse(&port, f, (uint32_t)len, &p), WIRE_CLASS_ROCE);
	assert_true(p.faults == 0);
	assert_int_equal(p.l3_off, 14);
	assert_int_equal(p.bth_off, 62);
	assert_int_equal(p.payload_off, 74);
	assert_int_equal(p.payload_len, 5);
	assert_int_equal(p.pad, 3);
	assert_int_equal(p.icrc_off, 82);
	assert_int_equal(p.flags, PKT_ACKREQ | PKT_SE | PKT_MIGREQ | PKT_IPV6);
	assert_memory_equal(wire_src_ip(&p), "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02", 16);
}

static void
WIRE_01_one_vlan_tag(void **state)
{
	uint8_t f[FRAME_MAX];
	size_t len = hex_bytes(v4_vlan_send, f, sizeof(f));
	struct wire_pkt p;

	(void)state;
	assert_int_equal(wire_parse(&port, f, (uint32_t)len, &p), WIRE_CLASS_ROCE);
	assert_true(p.faults == 0);
	assert_int_equal(p.flags, PKT_ACKREQ | PKT_MIGREQ | PKT_VLAN);
	assert_int_equal(p.l3_off, 18);
	assert_int_equal(p.bth_off, 46);
	assert_int_equal(p.icrc_off, 62);
}

/* WIRE-02: each field alone, at its place. WIRE-03: the reserved bits change nothing. */
static void
WIRE_02_bth_fields(void **state)
{
	uint8_t f[FRAME_MAX];
	size_t len = hex_bytes(v4_send, f, sizeof(f));
	struct wire_pkt p;

	(void)state;
	hex_bytes("04 c0 12 34 ff ab cd ef 7f 65 43 21", f + BTH4, 12);
	assert_int_equal(parse_exact(&port, f, len, &p), WIRE_CLASS_ROCE);
	assert_true(p.faults == 0);
	assert_int_equal(p.pkey, 0x1234);
	assert_int_equal(p.dest_qpn, 0xabcdef);
	assert_int_equal(p.psn.v, 0x654321);
	assert_int_equal(p.flags, PKT_SE | PKT_MIGREQ | PKT_FECN | PKT_BECN);

	hex_bytes("04 00 12 34 80 ab cd ef ff 65 43 21", f + BTH4, 12);
	parse_exact(&port, f, len, &p);
	assert_int_equal(p.flags, PKT_FECN | PKT_ACKREQ);
	hex_bytes("04 80 12 34 40 ab cd ef 00 65 43 21", f + BTH4, 12);
	parse_exact(&port, f, len, &p);
	assert_int_equal(p.flags, PKT_SE | PKT_BECN);
}

static void
WIRE_03_reserved_bits_are_ignored(void **state)
{
	uint8_t f[FRAME_MAX];
	size_t len = hex_bytes(v4_send, f, sizeof(f));
	struct wire_pkt plain, set;

	(void)state;
	parse_exact(&port, f, len, &plain);
	f[BTH4 + 4] |= 0x3f;
	f[BTH4 + 8] |= 0x7f;
	parse_exact(&port, f, len, &set);
	plain.frame = set.frame;
	assert_true(set.faults == 0);
	assert_memory_equal(&plain, &set, sizeof(set));
}

/* CC-02: the ECN field, in IPv4 and IPv6. */
static void
CC_02_ecn_ce_is_seen(void **state)
{
	uint8_t f[FRAME_MAX];
	struct wire_pkt p;
	size_t len = hex_bytes(v4_send, f, sizeof(f));

	(void)state;
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		f[IP4 + 1] = 0xa4 | ecn;
		ipv4_fix_sum(f + IP4);
		parse_exact(&port, f, len, &p);
		assert_true(p.faults == 0);
		assert_int_equal((p.flags & PKT_CE) != 0, ecn == 3);
	}
	len = hex_bytes(v6_send, f, sizeof(f));
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		f[IP6 + 1] = (uint8_t)(0x4f | ecn << 4);
		parse_exact(&port, f, len, &p);
		assert_true(p.faults == 0);
		assert_int_equal((p.flags & PKT_CE) != 0, ecn == 3);
	}
}

/* WIRE-17: bytes behind the IP length are Ethernet padding. */
static void
WIRE_17_trailer_is_ignored(void **state)
{
	uint8_t f[FRAME_MAX];
	size_t len = hex_bytes(v4_send, f, sizeof(f));
	struct wire_pkt p, q;

	(void)state;
	parse_exact(&port, f, len, &p);
	memset(f + len, 0x5a, 40);
	assert_int_equal(parse_exact(&port, f, len + 40, &q), WIRE_CLASS_ROCE);
	assert_true(q.faults == 0);
	assert_int_equal(q.frame_len, len + 40);
	assert_int_equal(q.icrc_off, 58);
	assert_int_equal(q.payload_len, p.payload_len);

	len = hex_bytes(v6_send, f, sizeof(f));
	memset(f + len, 0x5a, 7);
	assert_int_equal(parse_exact(&port, f, len + 7, &q), WIRE_CLASS_ROCE);
	assert_true(q.faults == 0);
	assert_int_equal(q.icrc_off, 82);
}

/* RX-HDR-03: a frame cut anywhere is never good, and never read behind its end. */
static void
RX_HDR_03_cut_frames(void **state)
{
	static const char *const bases[] = { v4_send, v6_send, v4_vlan_send };

	(void)state;
	for (size_t b = 0; b < ARRAY_LEN(bases); b++) {
		uint8_t f[FRAME_MAX];
		size_t len = hex_bytes(bases[b], f, sizeof(f));
		unsigned int roce = 0;

		for (size_t cut = 0; cut < len; cut++) {
			struct wire_pkt p;
			enum wire_class c = parse_exact(&port, f, cut, &p);

			assert_int_not_equal(c, WIRE_CLASS_CONTROL);
			if (c != WIRE_CLASS_ROCE)
				continue;
			roce++;
			assert_true(p.faults == FAULT_BIT(FAULT_IP_LEN));
			assert_int_equal(p.icrc_off, 0);
			assert_int_equal(p.payload_off, 0);
		}
		/* From the whole UDP header on it is known to be RoCE: BTH, payload, ICRC. */
		assert_int_equal(roce, b == 1 ? 24 : 20);
	}
}

/* Frame of an opcode with `rest` bytes between BTH and ICRC; all lengths agree. */
static size_t
frame_of(uint8_t *f, uint8_t opcode, uint8_t pad, unsigned int rest)
{
	unsigned int udp_len = 8 + 12 + rest + 4;

	hex_bytes(v4_send, f, FRAME_MAX);
	f[BTH4] = opcode;
	f[BTH4 + 1] = (uint8_t)(pad << 4);
	memset(f + BTH4 + 12, 0x77, rest + 4);
	f[IP4 + 3] = (uint8_t)(20 + udp_len);
	f[UDP4 + 5] = (uint8_t)udp_len;
	ipv4_fix_sum(f + IP4);
	return 34u + udp_len;
}

static unsigned int
ext_len(const char *headers)
{
	unsigned int len = 0;

	for (size_t i = 0; i < ARRAY_LEN(vector_headers); i++) {
		char word[32];
		char padded[64];

		snprintf(word, sizeof(word), " %s ", vector_headers[i].name);
		snprintf(padded, sizeof(padded), " %s ", headers);
		if (strstr(padded, word) != NULL)
			len += vector_headers[i].bytes;
	}
	return len - 12;
}

/*
 * RX-HDR-03: the packet ends inside the extension header. WIRE-05: where it does not, the payload
 * starts behind the last header of the opcode's row.
 */
static void
RX_HDR_03_every_opcode_truncated(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vector_opcodes); i++) {
		const struct vector_opcode *v = &vector_opcodes[i];
		unsigned int ext = ext_len(v->headers);
		uint8_t f[FRAME_MAX];
		struct wire_pkt p;
		size_t len;

		for (unsigned int rest = 0; rest < ext; rest++) {
			len = frame_of(f, v->code, 0, rest);
			assert_int_equal(parse_exact(&port, f, len, &p), WIRE_CLASS_ROCE);
			assert_true(p.faults == FAULT_BIT(FAULT_TRUNCATED));
			assert_int_equal(p.icrc_off, 0);
			assert_int_equal(p.payload_off, 0);
			assert_int_equal(p.payload_len, 0);
			assert_int_equal(p.opcode, v->code);
		}
		for (unsigned int payload = 0; payload < 8; payload++) {
			len = frame_of(f, v->code, 0, ext + payload);
			parse_exact(&port, f, len, &p);
			assert_true(p.faults == 0);
			assert_int_equal(p.payload_off, BTH4 + 12 + ext);
			assert_int_equal(p.payload_len, payload);
			assert_int_equal(p.icrc_off, len - 4);
		}
	}
}

/* WIRE-07: pad is taken off the payload. RX-HDR-03: PadCnt larger than the payload. */
static void
WIRE_07_pad(void **state)
{
	(void)state;
	for (uint8_t pad = 0; pad < 4; pad++) {
		for (unsigned int rest = 0; rest < 9; rest++) {
			uint8_t f[FRAME_MAX];
			struct wire_pkt p;
			size_t len = frame_of(f, 0x04, pad, rest);

			assert_int_equal(parse_exact(&port, f, len, &p), WIRE_CLASS_ROCE);
			assert_int_equal(p.pad, pad);
			if (pad > rest) {
				assert_true(p.faults == FAULT_BIT(FAULT_TRUNCATED));
				assert_int_equal(p.icrc_off, 0);
				continue;
			}
			assert_true(p.faults == 0);
			assert_int_equal(p.payload_len, rest - pad);
			assert_int_equal(p.icrc_off, len - 4);
		}
	}
}

/* WIRE-04: the accessors, over bytes that are all different. */
static void
WIRE_04_extension_headers(void **state)
{
	uint8_t f[FRAME_MAX];
	uint8_t *e = f + BTH4 + 12;
	struct wire_pkt p;

	(void)state;
	wire_parse(&port, f, (uint32_t)frame_of(f, 0x0b, 0, 20), &p);
	hex_bytes("0102030405060708 11121314 21222324 31323334", e, 20);
	assert_true(wire_reth(&p).va == UINT64_C(0x0102030405060708));
	assert_int_equal(wire_reth(&p).rkey, 0x11121314);
	assert_int_equal(wire_reth(&p).dma_len, 0x21222324);
	assert_int_equal(wire_imm_or_inv(&p), 0x31323334);

	wire_parse(&port, f, (uint32_t)frame_of(f, 0x13, 0, 28), &p);
	hex_bytes("0102030405060708 11121314 2122232425262728 3132333435363738", e, 28);
	assert_true(wire_atomiceth(&p).va == UINT64_C(0x0102030405060708));
	assert_int_equal(wire_atomiceth(&p).rkey, 0x11121314);
	assert_true(wire_atomiceth(&p).swap_add == UINT64_C(0x2122232425262728));
	assert_true(wire_atomiceth(&p).compare == UINT64_C(0x3132333435363738));

	wire_parse(&port, f, (uint32_t)frame_of(f, 0x12, 0, 12), &p);
	hex_bytes("61 a1a2a3 0102030405060708", e, 12);
	assert_int_equal(wire_aeth(&p).syndrome, 0x61);
	assert_int_equal(wire_aeth(&p).msn, 0xa1a2a3);
	assert_true(wire_atomicack(&p) == UINT64_C(0x0102030405060708));

	wire_parse(&port, f, (uint32_t)frame_of(f, 0x16, 0, 8), &p);
	hex_bytes("91929394", e, 4);
	assert_int_equal(wire_imm_or_inv(&p), 0x91929394);

	wire_parse(&port, f, (uint32_t)frame_of(f, 0x65, 0, 12), &p);
	hex_bytes("11111111 ff 212223 31323334", e, 12);
	assert_int_equal(wire_deth(&p).qkey, 0x11111111);
	assert_int_equal(wire_deth(&p).src_qpn, 0x212223);
	assert_int_equal(wire_imm_or_inv(&p), 0x31323334);
}

/* XRC-02: behind an XRCETH stands what RC has; responses have none. */
static void
XRC_02_extension_headers(void **state)
{
	uint8_t f[FRAME_MAX];
	uint8_t *e = f + BTH4 + 12;
	struct wire_pkt p;

	(void)state;
	wire_parse(&port, f, (uint32_t)frame_of(f, 0xab, 0, 24), &p);
	hex_bytes("ff 000123 0102030405060708 11121314 21222324 31323334", e, 24);
	assert_int_equal(p.payload_off, BTH4 + 12 + 24);
	assert_int_equal(wire_xrceth(&p), 0x123);
	assert_true(wire_reth(&p).va == UINT64_C(0x0102030405060708));
	assert_int_equal(wire_reth(&p).rkey, 0x11121314);
	assert_int_equal(wire_reth(&p).dma_len, 0x21222324);
	assert_int_equal(wire_imm_or_inv(&p), 0x31323334);

	wire_parse(&port, f, (uint32_t)frame_of(f, 0xb3, 0, 32), &p);
	hex_bytes("00 fffffe 0102030405060708 11121314 2122232425262728 3132333435363738", e, 32);
	assert_int_equal(wire_xrceth(&p), 0xfffffe);
	assert_true(wire_atomiceth(&p).va == UINT64_C(0x0102030405060708));
	assert_int_equal(wire_atomiceth(&p).rkey, 0x11121314);
	assert_true(wire_atomiceth(&p).compare == UINT64_C(0x3132333435363738));

	wire_parse(&port, f, (uint32_t)frame_of(f, 0xb2, 0, 12), &p);
	hex_bytes("61 a1a2a3 0102030405060708", e, 12);
	assert_int_equal(wire_aeth(&p).syndrome, 0x61);
	assert_true(wire_atomicack(&p) == UINT64_C(0x0102030405060708));
}

/* XRC-12: a packet that ends inside its XRCETH. */
static void
XRC_12_cut_inside_the_xrceth(void **state)
{
	uint8_t f[FRAME_MAX];
	struct wire_pkt p;

	(void)state;
	for (uint32_t n = 0; n < 4; n++) {
		assert_int_equal(wire_parse(&port, f, (uint32_t)frame_of(f, 0xa4, 0, n), &p),
			WIRE_CLASS_ROCE);
		assert_true((p.faults & FAULT_BIT(FAULT_TRUNCATED)) != 0);
	}
}

static void
print_says_what_wireshark_says(void **state)
{
	uint8_t f[FRAME_MAX];
	struct wire_pkt p;
	char line[256], small[8];
	int n;

	(void)state;
	wire_parse(&port, f, (uint32_t)hex_bytes(v4_send, f, sizeof(f)), &p);
	n = wire_print(&p, line, sizeof(line));
	assert_int_equal(n, (int)strlen(line));
	assert_string_equal(line,
		"RC Send Only PSN=256 QP=0x000011 P_Key=0xffff AckReq MigReq Payload=4 PadCnt=0");
	wire_parse(&port, f, (uint32_t)frame_of(f, 0x11, 0, 4), &p);
	hex_bytes("60 00 00 03", f + BTH4 + 12, 4);
	wire_print(&p, line, sizeof(line));
	assert_string_equal(line,
		"RC Acknowledge PSN=256 QP=0x000011 P_Key=0xffff AckReq Syndrome=0x60 (NAK PSN "
		"sequence error) MSN=3 Payload=0 PadCnt=0");
	f[BTH4 + 12] = 0x2c;
	wire_print(&p, line, sizeof(line));
	assert_non_null(strstr(line, "(RNR NAK 640 us)"));
	f[5] = 1;
	f[BTH4 + 1] = 1;
	wire_parse(&port, f, 62, &p);
	wire_print(&p, line, sizeof(line));
	assert_non_null(strstr(line, " Faults=DST_MAC,TVER"));
	assert_int_equal(wire_print(&p, small, sizeof(small)), 7);
	assert_string_equal(small, "RC Ackn");
	assert_int_equal(wire_print(&p, small, 1), 0);
	assert_int_equal(wire_print(&p, small, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(WIRE_01_good_ipv4),
		cmocka_unit_test(WIRE_01_good_ipv6),
		cmocka_unit_test(WIRE_01_one_vlan_tag),
		cmocka_unit_test(WIRE_02_bth_fields),
		cmocka_unit_test(WIRE_03_reserved_bits_are_ignored),
		cmocka_unit_test(CC_02_ecn_ce_is_seen),
		cmocka_unit_test(WIRE_17_trailer_is_ignored),
		cmocka_unit_test(RX_HDR_03_cut_frames),
		cmocka_unit_test(RX_HDR_03_every_opcode_truncated),
		cmocka_unit_test(WIRE_07_pad),
		cmocka_unit_test(WIRE_04_extension_headers),
		cmocka_unit_test(XRC_02_extension_headers),
		cmocka_unit_test(XRC_12_cut_inside_the_xrceth),
		cmocka_unit_test(print_says_what_wireshark_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
