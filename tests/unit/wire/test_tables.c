/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of lib/wire/tables against tests/vectors, which was typed independently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ack_timeout.h"
#include "wire.h"
#include "../../vectors/tables.h"

static const struct vector_opcode *
vector_of(unsigned int code)
{
	for (size_t i = 0; i < ARRAY_LEN(vector_opcodes); i++) {
		if (vector_opcodes[i].code == code)
			return &vector_opcodes[i];
	}
	return NULL;
}

static unsigned int
header_bytes(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(vector_headers); i++) {
		if (strcmp(vector_headers[i].name, name) == 0)
			return vector_headers[i].bytes;
	}
	fail_msg("no header %s", name);
	return 0;
}

static uint32_t
header_bit(const char *name)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} rows[] = {
		{ "BTH", 0 },
		{ "FETH", OPF_FETH },
		{ "RETH", OPF_RETH },
		{ "AtomicETH", OPF_ATOMICETH },
		{ "AETH", OPF_AETH },
		{ "AtomicAckETH", OPF_ATOMICACKETH },
		{ "ImmDt", OPF_IMM },
		{ "IETH", OPF_IETH },
		{ "DETH", OPF_DETH },
		{ "XRCETH", OPF_XRCETH },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].bit;
	}
	fail_msg("no flag for %s", name);
	return 0;
}

static uint32_t
role_bit(const char *role)
{
	return strcmp(role, "first") == 0    ? OPF_FIRST
	       : strcmp(role, "middle") == 0 ? OPF_MIDDLE
	       : strcmp(role, "last") == 0   ? OPF_LAST
	       : strcmp(role, "only") == 0   ? OPF_ONLY
					     : 0;
}

static uint32_t
operation_bit(const char *name)
{
	return strstr(name, "ATOMIC_WRITE") != NULL ? OPF_ATOMIC_WRITE
	       : strstr(name, "FLUSH") != NULL      ? OPF_FLUSH
	       : strstr(name, "SEND") != NULL       ? OPF_SEND
	       : strstr(name, "WRITE") != NULL      ? OPF_WRITE
	       : strstr(name, "READ") != NULL       ? OPF_READ
	       : strstr(name, "CNP") != NULL        ? OPF_CNP
	       : strstr(name, "C_ACKNOWLEDGE") != NULL && strstr(name, "ATOMIC") == NULL
		       ? OPF_ACK
		       : OPF_ATOMIC;
}

/* Every flag of a row, from the words of the vector. */
static uint32_t
flags_of(const struct vector_opcode *v, unsigned int *hdr_len)
{
	char headers[64];
	uint32_t want = OPF_KNOWN | role_bit(v->role) | operation_bit(v->name);

	*hdr_len = 0;
	snprintf(headers, sizeof(headers), "%s", v->headers);
	for (char *h = strtok(headers, " "); h != NULL; h = strtok(NULL, " ")) {
		want |= header_bit(h);
		*hdr_len += header_bytes(h);
	}
	want |= strcmp(v->kind, "request") == 0 ? OPF_REQUEST : 0;
	want |= strcmp(v->kind, "response") == 0 ? OPF_RESPONSE : 0;
	want |= strcmp(v->payload, "0") != 0 ? OPF_PAYLOAD : 0;
	want |= v->takes_wqe ? OPF_TAKES_WQE : 0;
	want |= v->recv_cqe ? OPF_RECV_CQE : 0;
	return want;
}

/* WIRE-06 over all 256 values; UC, UD, CNP and XRC (XRC-02) come along. */
static void
WIRE_06_all_256_opcodes(void **state)
{
	unsigned int listed = 0;

	(void)state;
	for (unsigned int c = 0; c < 256; c++) {
		const struct vector_opcode *v = vector_of(c);
		const struct wire_opcode *o = &wire_opcodes[c];
		unsigned int hdr_len;

		if (v == NULL) {
			if (o->name != NULL || o->flags.v != 0 || o->hdr_len != 12)
				fail_msg("opcode 0x%02x is not reserved", c);
			continue;
		}
		listed++;
		assert_non_null(o->name);
		assert_string_equal(o->name, v->name);
		if (o->flags.v != flags_of(v, &hdr_len))
			fail_msg("%s: flags 0x%x", v->name, o->flags.v);
		assert_int_equal(o->hdr_len, hdr_len);
		assert_non_null(o->wireshark);
		assert_memory_equal(o->wireshark, v->name, 2);
		assert_true(o->clause != NULL && o->clause[0] != '\0');
	}
	assert_int_equal(listed, 65);
}

/* WIRE-06: 0x15, 0x18..0x1F are reserved, but for FLUSH and ATOMIC WRITE, 0x1C and 0x1D. */
static void
WIRE_06_reserved_rc_values(void **state)
{
	static const uint8_t reserved[] = { 0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		assert_false(op_has(wire_opcodes[reserved[i]].flags, OPF_KNOWN));
	assert_int_equal(OP_RC_SEND_ONLY_INV, 0x17);
	assert_int_equal(OP_CNP, 0x81);
	assert_int_equal(OP_CNP >> 5, WIRE_CNP);
	assert_int_equal(OP_UD_SEND_ONLY >> 5, WIRE_UD);
}

/* RESP-RNR-03: all 32 codes, 61,440 us (not 61,410) among them. */
static void
RESP_RNR_03_timer_codes(void **state)
{
	(void)state;
	for (uint8_t c = 0; c < 32; c++)
		assert_int_equal(wire_rnr_us(c), vector_rnr_us[c]);
	assert_int_equal(wire_rnr_us(0), 655360);
	assert_int_equal(wire_rnr_us(25), 61440);
	/* The upper bits of a syndrome byte are not part of the code. */
	assert_int_equal(wire_rnr_us(AETH_RNR | 12), 640);
}

static const struct vector_nak *
vector_nak_of(uint8_t transport, uint8_t code)
{
	if (transport == WIRE_XRC && code == vector_nak_xrc.code)
		return &vector_nak_xrc;
	for (size_t i = 0; i < ARRAY_LEN(vector_naks); i++) {
		if (vector_naks[i].code == code)
			return &vector_naks[i];
	}
	return NULL;
}

static unsigned int
naks_of(uint8_t transport)
{
	unsigned int listed = 0;

	for (uint8_t c = 0; c < 32; c++) {
		const struct vector_nak *v = vector_nak_of(transport, c);

		assert_int_equal(wire_nak_text(transport, c) != NULL, v != NULL);
		if (v == NULL) {
			assert_null(wire_nak_status(transport, c));
			continue;
		}
		listed++;
		assert_int_equal(AETH_NAK | c, v->syndrome);
		if (v->retry)
			assert_null(wire_nak_status(transport, c));
		else
			assert_string_equal(
				wire_nak_status(transport, c), v->status + strlen("IBV_WC_"));
	}
	return listed;
}

/* RESP-NAK-01: codes 0..3 exist on RC, the other 28 are reserved. XRC-05: 4 exists on XRC. */
static void
RESP_NAK_01_codes(void **state)
{
	(void)state;
	assert_int_equal(naks_of(WIRE_RC), 4);
	assert_int_equal(naks_of(WIRE_XRC), 5);
	assert_int_equal(NAK_INV_RD_REQ, 4);
	assert_int_equal(NAK_PSN_SEQ_ERR, 0);
	assert_int_equal(NAK_INV_REQ, 1);
	assert_int_equal(NAK_REM_ACCESS, 2);
	assert_int_equal(NAK_REM_OP, 3);
}

/* RX-SYN-00 .. RX-SYN-31: precedence, impact, rule and counter of each bit; RX-SYN-32: no others.
 */
static void
RX_SYN_32_syndrome_bits(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_LEN(vector_syndromes), 32);
	for (size_t i = 0; i < ARRAY_LEN(vector_syndromes); i++) {
		const struct vector_syndrome *v = &vector_syndromes[i];
		const struct wire_fault_info *f = &wire_faults[v->bit];
		char counter[32];

		if (v->reserved) {
			assert_null(f->name);
			continue;
		}
		assert_non_null(f->name);
		assert_int_equal(f->precedence, v->precedence);
		assert_string_equal(f->impact, v->impact);
		assert_string_equal(f->clause, v->rule);
		snprintf(counter, sizeof(counter), "rx_syndrome_%u", v->bit);
		assert_string_equal(f->counter, counter);
		assert_true(f->text != NULL && f->text[0] != '\0');
	}
}

/* RX-HDR-01, RX-HDR-02, RX-HDR-03, RX-HDR-05, CC-08: reasons without a syndrome bit come last. */
static void
RX_HDR_03_reasons_without_syndrome(void **state)
{
	static const struct {
		enum wire_fault f;
		unsigned int bit;
		const char *counter, *rule;
	} rows[] = {
		{ FAULT_TRUNCATED, 32, "rx_truncated", "RX-HDR-03" },
		{ FAULT_PKEY, 33, "rx_pkey_violation", "RX-HDR-01" },
		{ FAULT_QP_TYPE, 34, "rx_qp_type_mismatch", "RX-HDR-02" },
		{ FAULT_RESPONSE_STATE, 35, "rx_response_state", "RX-HDR-05" },
		{ FAULT_CNP, 36, "rx_bad_cnp", "CC-08" },
		{ FAULT_VLAN, 37, "rx_vlan_mismatch", "WIRE-01" },
		{ FAULT_PORT, 38, "rx_wrong_port", "RX-SYN-08" },
		{ FAULT_UDP_CHECKSUM, 39, "rx_udp_checksum", "WIRE-15" },
		{ FAULT_QKEY, 40, "rx_qkey_violation", "UD-02" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct wire_fault_info *f = &wire_faults[rows[i].f];

		assert_int_equal(rows[i].f, rows[i].bit);
		assert_string_equal(f->counter, rows[i].counter);
		assert_string_equal(f->clause, rows[i].rule);
		assert_string_equal(f->impact, "drop");
		assert_true(f->precedence > 14);
	}
	for (unsigned int bit = 41; bit < FAULT_MAX; bit++)
		assert_null(wire_faults[bit].name);
}

/* RX-PREC-01: each pair of adjacent precedence numbers; RX-PREC-02: equal numbers, lowest bit. */
static void
RX_PREC_01_the_smaller_number_is_charged(void **state)
{
	static const struct {
		unsigned int winner, loser;
	} rows[] = {
		{ 31, 30 },            /* 1, 2 */
		{ 30, 0 },             /* 2, 4: ICRC and destination MAC */
		{ 0, 27 },             /* 4, 5: MAC and source IP */
		{ 0, 2 }, { 27, 9 },   /* 5, 6 */
		{ 9, 3 },              /* 6, 7: checksum and IHL */
		{ 3, 5 },              /* 7, 8 */
		{ 3, 10 }, { 10, 12 }, /* 8, 9 */
		{ 12, 13 },            /* 9, 10 */
		{ 14, 15 },            /* 10, 11 */
		{ 15, 21 },            /* 11, 12 */
		{ 21, 20 },            /* 12, 13 */
		{ 20, 16 },            /* 13, 14 */
		{ 23, 32 },            /* a syndrome before any reason without one */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(
			wire_fault_winner(FAULT_BIT(rows[i].winner) | FAULT_BIT(rows[i].loser)),
			rows[i].winner);
}

static void
RX_PREC_02_the_lowest_of_equal_bits_is_charged(void **state)
{
	(void)state;
	/* Fragment offset and destination IP, both 8. */
	assert_int_equal(wire_fault_winner(FAULT_BIT(6) | FAULT_BIT(8)), 6);
	assert_int_equal(wire_fault_winner(FAULT_BIT(5) | FAULT_BIT(6) | FAULT_BIT(10)), 5);
	assert_int_equal(wire_fault_winner(FAULT_BIT(0) | FAULT_BIT(28)), 0);
	assert_int_equal(wire_fault_winner(FAULT_BIT(2) | FAULT_BIT(27)), 2);
	assert_int_equal(wire_fault_winner(FAULT_BIT(13) | FAULT_BIT(14) | FAULT_BIT(17)), 13);
	for (unsigned int bit = 0; bit < FAULT_MAX; bit++) {
		if (wire_faults[bit].name != NULL)
			assert_int_equal(wire_fault_winner(FAULT_BIT(bit)), bit);
	}
	assert_int_equal(wire_fault_winner(0), FAULT_MAX);
}

/* RX-FATAL-01 .. RX-FATAL-28; RX-FATAL-13: 01101 is never produced. */
static void
RX_FATAL_13_codes(void **state)
{
	unsigned int listed = 0;

	(void)state;
	for (unsigned int c = 0; c < 256; c++) {
		bool is = false;

		for (size_t i = 0; i < ARRAY_LEN(vector_fatals); i++)
			is |= vector_fatals[i].code == c;
		assert_int_equal(wire_fatal_text((uint8_t)c) != NULL, is);
		listed += is;
	}
	assert_int_equal(listed, 22);
	assert_null(wire_fatal_text(13));
}

static void
RX_FATAL_01_names_have_their_codes(void **state)
{
	static const struct {
		enum fatal_code code;
		const char *bits;
	} rows[] = {
		{ FATAL_OPCODE_SEQ, "00001" },
		{ FATAL_SEND_LENGTH, "00010" },
		{ FATAL_OPCODE_SEQ_LENGTH, "00011" },
		{ FATAL_OPCODE, "00100" },
		{ FATAL_WQE, "00101" },
		{ FATAL_RESPONSE_HANDLER, "00110" },
		{ FATAL_RNR_EXHAUSTED, "01001" },
		{ FATAL_NAK_RECEIVED, "01010" },
		{ FATAL_RESPONSE_OPCODE, "01100" },
		{ FATAL_READ_RESOURCES, "10000" },
		{ FATAL_WRITE_SEQ, "10001" },
		{ FATAL_WRITE_LENGTH, "10010" },
		{ FATAL_WRITE_SEQ_LENGTH, "10011" },
		{ FATAL_RKEY, "10101" },
		{ FATAL_DMA_LEN, "10110" },
		{ FATAL_DMA_LEN_RKEY, "10111" },
		{ FATAL_BAD_AETH, "11001" },
		{ FATAL_READ_LENGTH, "11010" },
		{ FATAL_UNEXPECTED_RESPONSE, "11011" },
		{ FATAL_LAST_FOR_ONLY, "11100" },
		{ FATAL_READ_MIDDLE_LENGTH, "11110" },
		{ FATAL_READ_LAST_LENGTH, "11111" },
	};

	(void)state;
	assert_int_equal(ARRAY_LEN(rows), ARRAY_LEN(vector_fatals));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_string_equal(rows[i].bits, vector_fatals[i].bits);
		assert_int_equal(rows[i].code, vector_fatals[i].code);
	}
}

/* From the formula, for whoever makes connections: 2^14 * 4.096 us is 67.1 ms. */
static void
TMR_11_exponent(void **state)
{
	(void)state;
	assert_int_equal(wire_ack_timeout(0, 0), 1);
	assert_int_equal(wire_ack_timeout(4096, 0), 1);
	assert_int_equal(wire_ack_timeout(4096, 1), 2);
	assert_int_equal(wire_ack_timeout(0, UINT64_C(67108864)), 14);
	assert_int_equal(wire_ack_timeout(UINT64_C(67108864) / 2, 1), 15);
	assert_int_equal(wire_ack_timeout(UINT64_C(1) << 60, 0), 31);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(TMR_11_exponent),
		cmocka_unit_test(WIRE_06_all_256_opcodes),
		cmocka_unit_test(WIRE_06_reserved_rc_values),
		cmocka_unit_test(RESP_RNR_03_timer_codes),
		cmocka_unit_test(RESP_NAK_01_codes),
		cmocka_unit_test(RX_SYN_32_syndrome_bits),
		cmocka_unit_test(RX_HDR_03_reasons_without_syndrome),
		cmocka_unit_test(RX_PREC_01_the_smaller_number_is_charged),
		cmocka_unit_test(RX_PREC_02_the_lowest_of_equal_bits_is_charged),
		cmocka_unit_test(RX_FATAL_13_codes),
		cmocka_unit_test(RX_FATAL_01_names_have_their_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
