/* SPDX-License-Identifier: BSD-3-Clause */
/* wire_build() and the template against bytes typed by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire_build.h"
#include "wire_head.h"
#include "../../vectors/hex.h"
#include "../../vectors/tables.h"
#include "../guard.h"

static const struct wire_path v4_path = {
	.smac = { 2, 0, 0, 0, 0, 0x22 },
	.dmac = { 2, 0, 0, 0, 0, 0x11 },
	.src_ip = { 192, 0, 2, 2 },
	.dst_ip = { 192, 0, 2, 1 },
	.ttl = 64,
	.sport = 0xc011,
};
static const struct wire_path v6_path = {
	.smac = { 2, 0, 0, 0, 0, 0x22 },
	.dmac = { 2, 0, 0, 0, 0, 0x11 },
	.ipv6 = true,
	.src_ip = { 0x20, 1, 0x0d, 0xb8, [15] = 2 },
	.dst_ip = { 0x20, 1, 0x0d, 0xb8, [15] = 1 },
	.ttl = 64,
	.sport = 0xc011,
};

/** The frame must be what the text says: no more, no less. */
static void
assert_frame(const char *what, const uint8_t *frame, int len, const char *text)
{
	uint8_t want[512];
	size_t n = hex_bytes(text, want, sizeof(want));

	if (len != (int)n)
		fail_msg("%s: %d bytes, not %zu", what, len, n);
	for (size_t i = 0; i < n; i++) {
		if (frame[i] != want[i])
			fail_msg("%s: byte %zu is %02x, not %02x", what, i, frame[i], want[i]);
	}
}

/* WIRE-01, WIRE-02, WIRE-13, WIRE-14: the whole frame, every BTH field another value. */
static void
WIRE_02_every_bth_field(void **state)
{
	struct wire_path path = v4_path;
	const struct wire_fields f = {
		.opcode = 0x04,
		.flags = PKT_SE | PKT_FECN | PKT_ACKREQ,
		.tver = 5,
		.pkey = 0x1234,
		.dest_qpn = 0xabcdef,
		.psn = psn(0x654321),
		.payload = "\x00\x01\x02\x03",
		.payload_len = 4,
	};
	const char *bth = "04 85 12 34 80 ab cd ef 80 65 43 21 00 01 02 03 00 00 00 00";
	uint8_t b[128];
	char text[512];

	(void)state;
	snprintf(text, sizeof(text), "%s%s",
		"02 00 00 00 00 11 02 00 00 00 00 22 08 00 "
		"45 00 00 30 00 00 40 00 40 11 b6 b9 c0 00 02 02 c0 00 02 01 "
		"c0 11 12 b7 00 1c 00 00 ",
		bth);
	assert_frame("IPv4", b, wire_build(&path, &f, 0, b, sizeof(b)), text);

	/* WIRE-14: DF with any identification; TOS as asked for; WIRE-01: a tag. */
	path.tos = 0xaa;
	path.ttl = 17;
	path.vlan = true;
	path.vlan_tci = 0x6005;
	snprintf(text, sizeof(text), "%s%s",
		"02 00 00 00 00 11 02 00 00 00 00 22 81 00 60 05 08 00 "
		"45 aa 00 30 be ef 40 00 11 11 26 20 c0 00 02 02 c0 00 02 01 "
		"c0 11 12 b7 00 1c 00 00 ",
		bth);
	assert_frame("VLAN", b, wire_build(&path, &f, 0xbeef, b, sizeof(b)), text);

	path = v6_path;
	path.tos = 0xaa;
	path.flow_label = 0xf12345;
	snprintf(text, sizeof(text), "%s%s",
		"02 00 00 00 00 11 02 00 00 00 00 22 86 dd "
		"6a a1 23 45 00 1c 11 40 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 02 "
		"20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 c0 11 12 b7 00 1c 00 00 ",
		bth);
	assert_frame("IPv6", b, wire_build(&path, &f, 0xbeef, b, sizeof(b)), text);
}

/* WIRE-03: what is wider than its field does not spill into reserved bits. */
static void
WIRE_03_reserved_bits_are_zero(void **state)
{
	const struct wire_fields f = {
		.opcode = 0x11,
		.flags = 0xff,
		.dest_qpn = 0xffabcdef,
		.psn = { 0xff654321 },
		.aeth = { 0x1f, 0xff112233 },
	};
	uint8_t b[128];

	(void)state;
	assert_int_equal(wire_build(&v4_path, &f, 0, b, sizeof(b)), 62);
	assert_frame("BTH and AETH", b + 42, 16, "11 c0 00 00 c0 ab cd ef 80 65 43 21 1f 11 22 33");
}

/* WIRE-04, WIRE-05: sizes, layouts and order behind the BTH. */
static void
WIRE_05_extension_headers_in_order(void **state)
{
	static const struct {
		const char *name;
		uint8_t opcode;
		uint16_t payload_len;
		const char *behind_bth; /* up to the ICRC */
	} rows[] = {
		{ "WRITE ONLY IMM: RETH, ImmDt", 0x0b, 1,
			"0102030405060708 11121314 21222324 41424344 aa 00 00 00" },
		{ "READ REQUEST: RETH", 0x0c, 0, "0102030405060708 11121314 21222324" },
		{ "FETCH ADD: AtomicETH", 0x14, 0,
			"5152535455565758 61626364 7172737475767778 8182838485868788" },
		{ "ATOMIC ACK: AETH, AtomicAckETH", 0x12, 0, "63 a1a2a3 9192939495969798" },
		{ "ACK: AETH", 0x11, 0, "63 a1a2a3" },
		{ "SEND ONLY INV: IETH", 0x17, 4, "31323334 aabbccdd" },
		{ "SEND LAST IMM: ImmDt", 0x03, 2, "41424344 aabb0000" },
		{ "UD SEND ONLY IMM: DETH, ImmDt", 0x65, 3,
			"b1b2b3b4 00 c1c2c3 41424344 aabbcc00" },
		{ "XRC SEND MIDDLE: XRCETH", 0xa1, 4, "00 f4f5f6 aabbccdd" }, /* XRC-02 */
		{ "XRC WRITE ONLY IMM: XRCETH, RETH, ImmDt", 0xab, 1,
			"00 f4f5f6 0102030405060708 11121314 21222324 41424344 aa 00 00 00" },
		{ "XRC READ REQUEST: XRCETH, RETH", 0xac, 0,
			"00 f4f5f6 0102030405060708 11121314 21222324" },
		{ "XRC FETCH ADD: XRCETH, AtomicETH", 0xb4, 0,
			"00 f4f5f6 5152535455565758 61626364 7172737475767778 8182838485868788" },
		{ "XRC SEND ONLY INV: XRCETH, IETH", 0xb7, 4, "00 f4f5f6 31323334 aabbccdd" },
		{ "XRC ATOMIC ACK: no XRCETH", 0xb2, 0, "63 a1a2a3 9192939495969798" },
		{ "READ RESPONSE MIDDLE: none", 0x0e, 4, "aabbccdd" },
		{ "FLUSH: FETH, RETH", 0x1c, 0, "0d0e0f13 0102030405060708 11121314 21222324" },
		{ "XRC FLUSH: XRCETH, FETH, RETH", 0xbc, 0,
			"00 f4f5f6 0d0e0f13 0102030405060708 11121314 21222324" },
		{ "reserved opcode: none", 0x1f, 4, "aabbccdd" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct wire_fields f = {
			.opcode = rows[i].opcode,
			.reth = { UINT64_C(0x0102030405060708), 0x11121314, 0x21222324 },
			.feth = 0x0d0e0f13,
			.ieth = 0x31323334,
			.imm = 0x41424344,
			.atomiceth = { UINT64_C(0x5152535455565758), 0x61626364,
				UINT64_C(0x7172737475767778), UINT64_C(0x8182838485868788) },
			.aeth = { 0x63, 0xa1a2a3 },
			.atomicack = UINT64_C(0x9192939495969798),
			.deth = { 0xb1b2b3b4, 0xffc1c2c3 },
			.xrc_srqn = 0xfff4f5f6,
			.payload = "\xaa\xbb\xcc\xdd",
			.payload_len = rows[i].payload_len,
		};
		uint8_t b[256];
		int len = wire_build(&v4_path, &f, 0, b, sizeof(b));

		assert_true(len >= 58);
		assert_frame(rows[i].name, b + 54, len - 54 - 4, rows[i].behind_bth);
		assert_frame("ICRC bytes", b + len - 4, 4, "00 00 00 00");
	}
}

/* WIRE-07: PadCnt 3, 2, 1, 0, 3 for 1..5 bytes, zeros on the wire. WIRE-09: lengths up to a PMTU.
 */
static void
WIRE_07_pad(void **state)
{
	static const struct {
		uint16_t len;
		uint8_t pad;
	} rows[] = { { 0, 0 }, { 1, 3 }, { 2, 2 }, { 3, 1 }, { 4, 0 }, { 5, 3 }, { 1023, 1 },
		{ 1024, 0 } };
	static uint8_t payload[1024];
	const struct wire_port port = {
		.mac = { 2, 0, 0, 0, 0, 0x11 }, .has_ipv4 = true, .ipv4 = { 192, 0, 2, 1 }
	};

	(void)state;
	memset(payload, 0xee, sizeof(payload));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct wire_fields f = { .opcode = 0x04,
			.dest_qpn = 17,
			.payload = payload,
			.payload_len = rows[i].len };
		uint8_t b[1200];
		struct wire_pkt p;
		int len;

		memset(b, 0x99, sizeof(b));
		len = wire_build(&v4_path, &f, 0, b, sizeof(b));
		assert_int_equal(len, 54 + rows[i].len + rows[i].pad + 4);
		assert_int_equal(b[43], rows[i].pad << 4);
		for (int k = 0; k < rows[i].pad + 4; k++)
			assert_int_equal(b[54 + rows[i].len + k], 0);
		/* WIRE-13 */
		assert_int_equal(be16_load(b + 16), len - 14);
		assert_int_equal(be16_load(b + 38), len - 34);
		assert_int_equal(wire_parse(&port, b, (uint32_t)len, &p), WIRE_CLASS_ROCE);
		assert_true(p.faults == 0);
		assert_int_equal(p.payload_len, rows[i].len);
	}
}

/* WIRE-10: nothing between the last extension header and the ICRC; WIRE-13 over IPv6 too. */
static void
WIRE_10_packets_without_payload(void **state)
{
	static const struct {
		uint8_t opcode;
		int headers;
	} rows[] = { { 0x0c, 28 }, { 0x13, 40 }, { 0x14, 40 }, { 0x11, 16 }, { 0x12, 24 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct wire_fields f = { .opcode = rows[i].opcode };
		uint8_t b[128];

		assert_int_equal(
			wire_build(&v4_path, &f, 0, b, sizeof(b)), 42 + rows[i].headers + 4);
		assert_int_equal(b[43] & 0x30, 0);
		assert_int_equal(be16_load(b + 16), 28 + rows[i].headers + 4);
		assert_int_equal(be16_load(b + 38), 8 + rows[i].headers + 4);
		assert_int_equal(
			wire_build(&v6_path, &f, 0, b, sizeof(b)), 62 + rows[i].headers + 4);
		assert_int_equal(be16_load(b + 18), 8 + rows[i].headers + 4);
		assert_int_equal(be16_load(b + 58), 8 + rows[i].headers + 4);
	}
}

static void
WIRE_13_room_is_respected(void **state)
{
	const struct wire_fields f = { .opcode = 0x04, .payload = "abcd", .payload_len = 4 };
	uint8_t *payload = calloc(1, 65535);
	uint8_t *big = malloc(70000);
	struct wire_fields huge = f;
	struct guard g = { NULL };

	(void)state;
	assert_non_null(payload);
	assert_non_null(big);
	for (size_t room = 0; room < 62; room++)
		assert_int_equal(
			wire_build(&v4_path, &f, 0, guard_tail(&g, room), room), -EMSGSIZE);
	assert_int_equal(wire_build(&v4_path, &f, 0, guard_tail(&g, 62), 62), 62);

	/* Beyond what the IP length can say. */
	huge.payload = payload;
	huge.payload_len = 65535;
	assert_int_equal(wire_build(&v4_path, &huge, 0, big, 70000), -EMSGSIZE);
	assert_int_equal(wire_build(&v6_path, &huge, 0, big, 70000), -EMSGSIZE);
	huge.payload_len = 65535 - 3 - 44;
	assert_int_equal(wire_build(&v4_path, &huge, 0, big, 70000), 14 + 65532);
	huge.payload_len += 1;
	assert_int_equal(wire_build(&v4_path, &huge, 0, big, 70000), -EMSGSIZE);
	free(big);
	free(payload);
}

/*
 * WIRE-13, WIRE-14, WIRE-16: a template writes what the general builder builds, checksum and
 * lengths included, for all paths and any size.
 */
static void
WIRE_14_template(void **state)
{
	static const uint8_t flag_sets[] = { 0, PKT_ACKREQ, PKT_SE, PKT_MIGREQ,
		PKT_ACKREQ | PKT_SE | PKT_MIGREQ };
	static uint8_t payload[4096];
	struct guard g = { NULL };

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct wire_path path = (kind & 1) != 0 ? v6_path : v4_path;
		struct wire_template t;

		path.vlan = kind >= 2;
		path.vlan_tci = 0xa123;
		path.tos = 0x6a;
		path.flow_label = 0x54321;
		wire_template_init(&t, &path, 0x8001, 0x123456);
		assert_int_equal(t.l3_off, kind >= 2 ? 18 : 14);
		assert_int_equal(t.len, t.l3_off + ((kind & 1) != 0 ? 60 : 40));
		assert_int_equal(t.bth_off, t.len - 12);
		for (unsigned int len = 0; len <= sizeof(payload); len += len < 16 ? 1 : 255) {
			const uint8_t flags = flag_sets[len % ARRAY_LEN(flag_sets)];
			const struct wire_fields f = {
				.opcode = 0x04,
				.flags = flags,
				.pkey = 0x8001,
				.dest_qpn = 0x123456,
				.psn = psn(0xfffff0 + len),
				.payload = payload,
				.payload_len = (uint16_t)len,
			};
			unsigned int pad = -len & 3;
			uint8_t want[4300], *got = guard_tail(&g, sizeof(t.bytes));
			int n = wire_build(&path, &f, 0, want, sizeof(want));

			assert_int_equal(n, t.len + len + pad + 4);
			memset(got, 0x99, sizeof(t.bytes));
			wire_template_write(&t, got, f.opcode, flags, (uint8_t)pad, f.psn,
				(uint16_t)(len + pad));
			assert_memory_equal(got, want, t.len);
		}
	}
}

/* What a QP may send one after another. */
static const struct {
	uint8_t opcode, flags;
	uint16_t len; /* of SENDs: nothing stands between BTH and payload */
	uint32_t psn;
} in_a_row[] = {
	{ 0x04, PKT_ACKREQ | PKT_MIGREQ, 64, 0xfffffe },
	{ 0x04, PKT_MIGREQ, 64, 0xffffff },
	{ 0x04, PKT_ACKREQ | PKT_MIGREQ, 64, 0 },
	{ 0x04, PKT_ACKREQ, 64, 1 },
	{ 0x04, PKT_ACKREQ | PKT_SE, 64, 2 },
	{ 0x00, PKT_SE, 1024, 3 },
	{ 0x02, PKT_ACKREQ, 4095, 0x800000 },
	{ 0x04, 0, 1, 0x7fffff },
	{ 0x24, 0, 3, 0x7fffff },
	{ 0x04, PKT_ACKREQ | PKT_SE | PKT_MIGREQ, 0, 0x123456 },
	{ 0x04, PKT_ACKREQ | PKT_SE | PKT_MIGREQ, 2, 0x123457 },
};

/** @param fits by wire_head_write(), else by wire_head_write_any(). */
static void
expect_heads(const struct wire_path *path, bool fits)
{
	static uint8_t payload[4096];
	const uint32_t room = fits ? 56 : WIRE_HEAD_MOST;
	struct guard g = { NULL };
	struct wire_template t, from;
	struct wire_head head;

	wire_template_init(&t, path, 0x8001, 0x123456);
	from = t;
	wire_template_write(
		&from, t.bytes, 0x11, PKT_ACKREQ | PKT_SE | PKT_MIGREQ, 3, psn(0xabcdef), 4);
	wire_head_init(&head);
	for (size_t i = 0; i < ARRAY_LEN(in_a_row); i++) {
		const uint8_t flags = in_a_row[i].flags, pad = -in_a_row[i].len & 3;
		const struct wire_fields f = { .opcode = in_a_row[i].opcode,
			.flags = flags,
			.pkey = 0x8001,
			.dest_qpn = 0x123456,
			.psn = psn(in_a_row[i].psn),
			.payload = payload,
			.payload_len = in_a_row[i].len };
		const uint32_t what =
			wire_head_what(f.opcode, flags, pad, (uint16_t)(in_a_row[i].len + pad));
		const bool ask = (flags & PKT_ACKREQ) != 0;
		uint8_t want[4300], *got = guard_tail(&g, room);

		assert_true(wire_build(path, &f, 0, want, sizeof(want)) > 0);
		memset(got, 0x99, room);
		if (fits)
			wire_head_write(&head, &t, got, what, ask, f.psn);
		else
			wire_head_write_any(&head, &t, got, what, ask, f.psn);
		assert_memory_equal(got, want, t.len);
		for (uint32_t k = t.len; k < room; k++)
			assert_int_equal(got[k], 0);
	}
}

/*
 * WIRE-13, WIRE-14, WIRE-15, WIRE-16: the headers that stay between packets are those of the
 * general builder, whatever the packet before was, and whatever the template stood for; without a
 * tag, with one, and with one that has no VLAN.
 */
static void
WIRE_14_head_of_many_packets(void **state)
{
	static const uint16_t tci[] = { 0x4abc, 0xa000 };
	uint32_t fit = 0;

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		struct wire_path path = i % 2 != 0 ? v6_path : v4_path;
		struct wire_template t;

		path.tos = 0x6a;
		path.flow_label = 0x54321;
		path.vlan = i > 1;
		path.vlan_tci = tci[i > 3];
		wire_template_init(&t, &path, 0x8001, 0x123456);
		if (wire_head_fits(&t))
			expect_heads(&path, true);
		fit += wire_head_fits(&t);
		expect_heads(&path, false);
	}
	assert_int_equal(fit, 1);
}

/* CC-01: a CNP is that of the general builder, with a class and a priority of its own. */
static void
CC_01_cnp(void **state)
{
	static const uint8_t zeros[16];
	static const struct wire_cnp classes[] = { { 0xc0, 6 }, { 0, 0 }, { 0xfc, 7 } };
	const struct wire_fields f = { .opcode = 0x81,
		.flags = PKT_BECN,
		.pkey = 0x8001,
		.dest_qpn = 0x123456,
		.payload = zeros,
		.payload_len = sizeof(zeros) };
	struct guard g = { NULL };

	(void)state;
	for (uint32_t i = 0; i < 4 * ARRAY_LEN(classes); i++) {
		struct wire_path path = i % 2 != 0 ? v6_path : v4_path;
		const struct wire_cnp *c = &classes[i / 4];
		struct wire_template t;
		uint8_t want[128], *got = guard_tail(&g, 128);
		int len;

		path.tos = 0x6a; /* of the QP's other packets, ECT(0) */
		path.flow_label = 0x54321;
		path.vlan = i % 4 > 1;
		path.vlan_tci = 0x4abc;
		wire_template_init(&t, &path, 0x8001, 0x123456);
		path.tos = c->tos;
		path.vlan_tci = (uint16_t)(c->prio << 13 | 0xabc);
		len = wire_build(&path, &f, 0, want, sizeof(want));
		memset(got, 0x99, 128);
		assert_int_equal(wire_cnp_write(&t, got, c), len);
		assert_memory_equal(got, want, (size_t)len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(WIRE_02_every_bth_field),
		cmocka_unit_test(WIRE_03_reserved_bits_are_zero),
		cmocka_unit_test(WIRE_05_extension_headers_in_order),
		cmocka_unit_test(WIRE_07_pad),
		cmocka_unit_test(WIRE_10_packets_without_payload),
		cmocka_unit_test(WIRE_13_room_is_respected),
		cmocka_unit_test(WIRE_14_template),
		cmocka_unit_test(WIRE_14_head_of_many_packets),
		cmocka_unit_test(CC_01_cnp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
