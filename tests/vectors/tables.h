/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VECTORS_TABLES_H
#define VECTORS_TABLES_H
/**
 * @file tables.h  What the specification's tables say, for comparison with lib/wire/tables.
 *
 * Owner:   tests only; nothing of the dataplane may include it.
 * Memory:  constant.
 * Depends: nothing, on purpose. README.md says where the rows are from.
 * Spec:    WIRE-06, RX-SYN, RX-FATAL, RESP-NAK-01, RESP-RNR-03.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */

struct vector_opcode {
	uint8_t code;
	const char *name;
	const char *headers;
	const char *role;
	const char *kind;
	const char *payload;
	bool takes_wqe;
	bool recv_cqe;
};

static const struct vector_opcode vector_opcodes[] = {
	{ 0x00, "RC_SEND_FIRST",           "BTH",                             "first",   "request",   "pmtu",          true,  false },
	{ 0x01, "RC_SEND_MIDDLE",          "BTH",                             "middle",  "request",   "pmtu",          false, false },
	{ 0x02, "RC_SEND_LAST",            "BTH",                             "last",    "request",   "1..pmtu",       false, true },
	{ 0x03, "RC_SEND_LAST_IMM",        "BTH ImmDt",                       "last",    "request",   "1..pmtu",       false, true },
	{ 0x04, "RC_SEND_ONLY",            "BTH",                             "only",    "request",   "0..pmtu",       true,  true },
	{ 0x05, "RC_SEND_ONLY_IMM",        "BTH ImmDt",                       "only",    "request",   "0..pmtu",       true,  true },
	{ 0x06, "RC_WRITE_FIRST",          "BTH RETH",                        "first",   "request",   "pmtu",          false, false },
	{ 0x07, "RC_WRITE_MIDDLE",         "BTH",                             "middle",  "request",   "pmtu",          false, false },
	{ 0x08, "RC_WRITE_LAST",           "BTH",                             "last",    "request",   "1..pmtu",       false, false },
	{ 0x09, "RC_WRITE_LAST_IMM",       "BTH ImmDt",                       "last",    "request",   "1..pmtu",       true,  true },
	{ 0x0A, "RC_WRITE_ONLY",           "BTH RETH",                        "only",    "request",   "0..pmtu",       false, false },
	{ 0x0B, "RC_WRITE_ONLY_IMM",       "BTH RETH ImmDt",                  "only",    "request",   "0..pmtu",       true,  true },
	{ 0x0C, "RC_READ_REQUEST",         "BTH RETH",                        "only",    "request",   "0",             false, false },
	{ 0x0D, "RC_READ_RESPONSE_FIRST",  "BTH AETH",                        "first",   "response",  "pmtu",          false, false },
	{ 0x0E, "RC_READ_RESPONSE_MIDDLE", "BTH",                             "middle",  "response",  "pmtu",          false, false },
	{ 0x0F, "RC_READ_RESPONSE_LAST",   "BTH AETH",                        "last",    "response",  "1..pmtu",       false, false },
	{ 0x10, "RC_READ_RESPONSE_ONLY",   "BTH AETH",                        "only",    "response",  "0..pmtu",       false, false },
	{ 0x11, "RC_ACKNOWLEDGE",          "BTH AETH",                        "only",    "response",  "0",             false, false },
	{ 0x12, "RC_ATOMIC_ACKNOWLEDGE",   "BTH AETH AtomicAckETH",           "only",    "response",  "0",             false, false },
	{ 0x13, "RC_COMPARE_SWAP",         "BTH AtomicETH",                   "only",    "request",   "0",             false, false },
	{ 0x14, "RC_FETCH_ADD",            "BTH AtomicETH",                   "only",    "request",   "0",             false, false },
	{ 0x16, "RC_SEND_LAST_INV",        "BTH IETH",                        "last",    "request",   "1..pmtu",       false, true },
	{ 0x17, "RC_SEND_ONLY_INV",        "BTH IETH",                        "only",    "request",   "0..pmtu",       true,  true },
	{ 0x1C, "RC_FLUSH",                "BTH FETH RETH",                   "only",    "request",   "0",             false, false },
	{ 0x1D, "RC_ATOMIC_WRITE",         "BTH RETH",                        "only",    "request",   "8",             false, false },
	{ 0x20, "UC_SEND_FIRST",           "BTH",                             "first",   "request",   "pmtu",          true,  false },
	{ 0x21, "UC_SEND_MIDDLE",          "BTH",                             "middle",  "request",   "pmtu",          false, false },
	{ 0x22, "UC_SEND_LAST",            "BTH",                             "last",    "request",   "1..pmtu",       false, true },
	{ 0x23, "UC_SEND_LAST_IMM",        "BTH ImmDt",                       "last",    "request",   "1..pmtu",       false, true },
	{ 0x24, "UC_SEND_ONLY",            "BTH",                             "only",    "request",   "0..pmtu",       true,  true },
	{ 0x25, "UC_SEND_ONLY_IMM",        "BTH ImmDt",                       "only",    "request",   "0..pmtu",       true,  true },
	{ 0x26, "UC_WRITE_FIRST",          "BTH RETH",                        "first",   "request",   "pmtu",          false, false },
	{ 0x27, "UC_WRITE_MIDDLE",         "BTH",                             "middle",  "request",   "pmtu",          false, false },
	{ 0x28, "UC_WRITE_LAST",           "BTH",                             "last",    "request",   "1..pmtu",       false, false },
	{ 0x29, "UC_WRITE_LAST_IMM",       "BTH ImmDt",                       "last",    "request",   "1..pmtu",       true,  true },
	{ 0x2A, "UC_WRITE_ONLY",           "BTH RETH",                        "only",    "request",   "0..pmtu",       false, false },
	{ 0x2B, "UC_WRITE_ONLY_IMM",       "BTH RETH ImmDt",                  "only",    "request",   "0..pmtu",       true,  true },
	{ 0x64, "UD_SEND_ONLY",            "BTH DETH",                        "only",    "request",   "0..pmtu",       true,  true },
	{ 0x65, "UD_SEND_ONLY_IMM",        "BTH DETH ImmDt",                  "only",    "request",   "0..pmtu",       true,  true },
	{ 0x81, "CNP",                     "BTH",                             "only",    "cnp",       "16 zero bytes", false, false },
	{ 0xA0, "XRC_SEND_FIRST",          "BTH XRCETH",                     "first",  "request",   "pmtu",          true,  false },
	{ 0xA1, "XRC_SEND_MIDDLE",         "BTH XRCETH",                     "middle", "request",   "pmtu",          false, false },
	{ 0xA2, "XRC_SEND_LAST",           "BTH XRCETH",                     "last",   "request",   "1..pmtu",       false, true },
	{ 0xA3, "XRC_SEND_LAST_IMM",       "BTH XRCETH ImmDt",               "last",   "request",   "1..pmtu",       false, true },
	{ 0xA4, "XRC_SEND_ONLY",           "BTH XRCETH",                     "only",   "request",   "0..pmtu",       true,  true },
	{ 0xA5, "XRC_SEND_ONLY_IMM",       "BTH XRCETH ImmDt",               "only",   "request",   "0..pmtu",       true,  true },
	{ 0xA6, "XRC_WRITE_FIRST",         "BTH XRCETH RETH",                "first",  "request",   "pmtu",          false, false },
	{ 0xA7, "XRC_WRITE_MIDDLE",        "BTH XRCETH",                     "middle", "request",   "pmtu",          false, false },
	{ 0xA8, "XRC_WRITE_LAST",          "BTH XRCETH",                     "last",   "request",   "1..pmtu",       false, false },
	{ 0xA9, "XRC_WRITE_LAST_IMM",      "BTH XRCETH ImmDt",               "last",   "request",   "1..pmtu",       true,  true },
	{ 0xAA, "XRC_WRITE_ONLY",          "BTH XRCETH RETH",                "only",   "request",   "0..pmtu",       false, false },
	{ 0xAB, "XRC_WRITE_ONLY_IMM",      "BTH XRCETH RETH ImmDt",          "only",   "request",   "0..pmtu",       true,  true },
	{ 0xAC, "XRC_READ_REQUEST",        "BTH XRCETH RETH",                "only",   "request",   "0",             false, false },
	{ 0xAD, "XRC_READ_RESPONSE_FIRST", "BTH AETH",                       "first",  "response",  "pmtu",          false, false },
	{ 0xAE, "XRC_READ_RESPONSE_MIDDLE", "BTH",                            "middle", "response",  "pmtu",          false, false },
	{ 0xAF, "XRC_READ_RESPONSE_LAST",  "BTH AETH",                       "last",   "response",  "1..pmtu",       false, false },
	{ 0xB0, "XRC_READ_RESPONSE_ONLY",  "BTH AETH",                       "only",   "response",  "0..pmtu",       false, false },
	{ 0xB1, "XRC_ACKNOWLEDGE",         "BTH AETH",                       "only",   "response",  "0",             false, false },
	{ 0xB2, "XRC_ATOMIC_ACKNOWLEDGE",  "BTH AETH AtomicAckETH",          "only",   "response",  "0",             false, false },
	{ 0xB3, "XRC_COMPARE_SWAP",        "BTH XRCETH AtomicETH",           "only",   "request",   "0",             false, false },
	{ 0xB4, "XRC_FETCH_ADD",           "BTH XRCETH AtomicETH",           "only",   "request",   "0",             false, false },
	{ 0xB6, "XRC_SEND_LAST_INV",       "BTH XRCETH IETH",                "last",   "request",   "1..pmtu",       false, true },
	{ 0xB7, "XRC_SEND_ONLY_INV",       "BTH XRCETH IETH",                "only",   "request",   "0..pmtu",       true,  true },
	{ 0xBC, "XRC_FLUSH",               "BTH XRCETH FETH RETH",           "only",   "request",   "0",             false, false },
	{ 0xBD, "XRC_ATOMIC_WRITE",        "BTH XRCETH RETH",                "only",   "request",   "8",             false, false },
};

struct vector_header {
	const char *name;
	uint8_t bytes;
};

static const struct vector_header vector_headers[] = {
	{ "BTH",          12 },
	{ "FETH",          4 },
	{ "RETH",         16 },
	{ "AtomicETH",    28 },
	{ "AETH",          4 },
	{ "AtomicAckETH",  8 },
	{ "ImmDt",         4 },
	{ "IETH",          4 },
	{ "DETH",          8 },
	{ "XRCETH",        4 },
	{ "ICRC",          4 },
};

/* RNR NAK timer by its five-bit code, in microseconds. */
static const uint32_t vector_rnr_us[32] = {
	655360, 10, 20, 30, 40, 60, 80, 120,
	160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720,
	40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

struct vector_nak {
	uint8_t code;
	uint8_t syndrome;
	bool retry;
	const char *status; /* of the requester's completion; NULL: none by itself */
};

/* Those that exist on RC and XRC; every other code is reserved there, but for the one of XRC below. */
static const struct vector_nak vector_naks[] = {
	{ 0, 0x60, true, NULL },
	{ 1, 0x61, false, "IBV_WC_REM_INV_REQ_ERR" },
	{ 2, 0x62, false, "IBV_WC_REM_ACCESS_ERR" },
	{ 3, 0x63, false, "IBV_WC_REM_OP_ERR" },
};

/* XRC alone. */
static const struct vector_nak vector_nak_xrc = { 4, 0x64, false, "IBV_WC_REM_INV_RD_REQ_ERR" };

struct vector_syndrome {
	uint8_t bit;
	bool reserved;
	uint8_t precedence;
	const char *impact; /* profile iba */
	const char *rule;
};

static const struct vector_syndrome vector_syndromes[] = {
	{  0, false,  4, "drop",  "RX-SYN-00" },
	{  1, true,   0, NULL,    "RX-SYN-32" },
	{  2, false,  5, "drop",  "RX-SYN-02" },
	{  3, false,  7, "drop",  "RX-SYN-03" },
	{  4, true,   0, NULL,    "RX-SYN-32" },
	{  5, false,  8, "drop",  "RX-SYN-05" },
	{  6, false,  8, "drop",  "RX-SYN-06" },
	{  7, true,   0, NULL,    "RX-SYN-32" },
	{  8, false,  8, "drop",  "RX-SYN-08" },
	{  9, false,  6, "drop",  "RX-SYN-09" },
	{ 10, false,  8, "drop",  "RX-SYN-10" },
	{ 11, true,   0, NULL,    "RX-SYN-32" },
	{ 12, false,  9, "drop",  "RX-SYN-12" },
	{ 13, false, 10, "drop",  "RX-SYN-13" },
	{ 14, false, 10, "drop",  "RX-SYN-14" },
	{ 15, false, 11, "drop",  "RX-SYN-15" },
	{ 16, false, 14, "fatal", "RX-SYN-16" },
	{ 17, false, 10, "fatal", "RX-SYN-17" },
	{ 18, false, 14, "fatal", "RX-SYN-18" },
	{ 19, false, 14, "fatal", "RX-SYN-19" },
	{ 20, false, 13, "rnr",   "RX-SYN-20" },
	{ 21, false, 12, "nak",   "RX-SYN-21" },
	{ 22, false, 14, "fatal", "RX-SYN-22" },
	{ 23, false, 14, "fatal", "RX-SYN-23" },
	{ 24, true,   0, NULL,    "RX-SYN-32" },
	{ 25, true,   0, NULL,    "RX-SYN-32" },
	{ 26, true,   0, NULL,    "RX-SYN-32" },
	{ 27, false,  5, "drop",  "RX-SYN-27" },
	{ 28, false,  4, "drop",  "RX-SYN-28" },
	{ 29, true,   0, NULL,    "RX-SYN-32" },
	{ 30, false,  2, "drop",  "RX-SYN-30" },
	{ 31, false,  1, "drop",  "RX-SYN-31" },
};

struct vector_fatal {
	const char *bits;
	uint8_t code;
	const char *rule;
};

/* 01101 is left out: it is never produced (RX-FATAL-13). */
static const struct vector_fatal vector_fatals[] = {
	{ "00001",  1, "RX-FATAL-01" },
	{ "00010",  2, "RX-FATAL-02" },
	{ "00011",  3, "RX-FATAL-03" },
	{ "00100",  4, "RX-FATAL-04" },
	{ "00101",  5, "RX-FATAL-05" },
	{ "00110",  6, "RX-FATAL-06" },
	{ "01001",  9, "RX-FATAL-09" },
	{ "01010", 10, "RX-FATAL-10" },
	{ "01100", 12, "RX-FATAL-12" },
	{ "10000", 16, "RX-FATAL-16" },
	{ "10001", 17, "RX-FATAL-17" },
	{ "10010", 18, "RX-FATAL-18" },
	{ "10011", 19, "RX-FATAL-17" },
	{ "10101", 21, "RX-FATAL-21" },
	{ "10110", 22, "RX-FATAL-22" },
	{ "10111", 23, "RX-FATAL-22" },
	{ "11001", 25, "RX-FATAL-25" },
	{ "11010", 26, "RX-FATAL-26" },
	{ "11011", 27, "RX-FATAL-28" },
	{ "11100", 28, "RX-FATAL-28" },
	{ "11110", 30, "RX-FATAL-26" },
	{ "11111", 31, "RX-FATAL-26" },
};

struct vector_icrc {
	const char *name;
	bool ipv6;
	const char *packet; /* hex, IP header to the last pad byte */
	const char *icrc;   /* hex, as it stands on the wire */
};

static const struct vector_icrc vector_icrcs[] = {
	{ "CNP captured on an adapter (public sample)", false,
		"45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000"
		"00000000000000000000000000000000",
		"82fd002a" },
	{ "UC SEND ONLY, UDP checksum present (public sample)", false,
		"45010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff000000d300cf1710"
		"4630818be28935d90e9a95505401be885e500000",
		"78f353f3" },
	{ "RC_SEND_ONLY_v4_4B", false,
		"45000030000040004011b6b9c0000202c0000201c01112b7001c00000440ffff0000001180000100"
		"00010203",
		"2afe69b1" },
	{ "RC_SEND_ONLY_v6_5B_pad3", true,
		"600000000020114020010db800000000000000000000000220010db8000000000000000000000001"
		"c01112b70020000004f0ffff00000011800001000001020304000000",
		"b7f3213e" },
	{ "RC_ACK_v4", false,
		"45000030000040004011b6b9c0000202c0000201c01112b7001c00001140ffff0000001100000200"
		"1f000001",
		"86c4382d" },
	{ "RC_NAK_SEQ_v6", true,
		"60000000001c114020010db800000000000000000000000220010db8000000000000000000000001"
		"c01112b7001c00001140ffff000000110000020060000000",
		"e09715c2" },
	{ "RC_WRITE_ONLY_v4_1B", false,
		"45000040000040004011b6a9c0000202c0000201c01112b7002c00000a70ffff0000001180ffffff"
		"00000000000010001234567800000001ab000000",
		"c5727d8a" },
	{ "RC_READ_REQ_v6", true,
		"600000000028114020010db800000000000000000000000220010db8000000000000000000000001"
		"c01112b7002800000c40ffff000000118000010000000000000010001234567800001000",
		"a837d4a5" },
	{ "RC_FETCH_ADD_v4", false,
		"45000048000040004011b6a1c0000202c0000201c01112b7003400001440ffff0000001180000100"
		"00000000000010001234567800000000000000050000000000000000",
		"342a1a6b" },
	{ "RC_SEND_ONLY_v4_4B_ECN_CE_FECN", false,
		"45030030000040004011b6b6c0000202c0000201c01112b7001c00000440ffff8000001180000100"
		"00010203",
		"2afe69b1" },
};
/* clang-format on */

#endif
