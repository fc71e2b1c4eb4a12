/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets a rule means, what a frame shows of itself, and which rules are refused. */
#include "packets.h"

#include <errno.h>
#include <math.h>

#include "../../vectors/hex.h"

#define QPN_ IMPAIR_GIVEN_QP_NUM
#define PSN_ IMPAIR_GIVEN_PSN
#define LAST IMPAIR_GIVEN_PSN_LAST
#define OPC_ IMPAIR_GIVEN_OPCODE

/* clang-format off */
static const struct {
	const char *what;
	struct impair_rule rule;
	uint32_t hits; /* bit i: packet i of the eight below */
} matches[] = {
	{ "RoCE by default", { .action = IMPAIR_DROP }, 0x7f },
	{ "all", { .frames = IMPAIR_FRAMES_ALL }, 0xff },
	{ "other", { .frames = IMPAIR_FRAMES_OTHER }, 0x80 },
	{ "qp_num", { .given = QPN_, .qp_num = 17 }, 0x17 },
	{ "qp_num 0", { .given = QPN_, .qp_num = 0 }, 0x40 },
	{ "psn", { .given = PSN_, .psn = 42 }, 0x0d },
	{ "psn 0", { .given = PSN_, .psn = 0 }, 0x40 },
	{ "opcode", { .given = OPC_, .opcode = 0x04 }, 0x0b },
	{ "opcode 0", { .given = OPC_, .opcode = 0x00 }, 0x40 },
	{ "opcode 0x81", { .given = OPC_, .opcode = 0x81 }, 0x20 },
	{ "request", { .direction = IMPAIR_REQUEST }, 0x1b },
	{ "response", { .direction = IMPAIR_RESPONSE }, 0x04 },
	{ "exact", { .given = QPN_ | PSN_ | OPC_, .qp_num = 17, .psn = 42, .opcode = 0x04 }, 0x01 },
	{ "content among all frames", { .frames = IMPAIR_FRAMES_ALL, .given = QPN_, .qp_num = 0 }, 0x40 },
	{ "psn range", { .given = PSN_ | LAST, .psn = 42, .psn_last = 43 }, 0x0f },
	{ "psn range of one", { .given = PSN_ | LAST, .psn = 43, .psn_last = 43 }, 0x02 },
	{ "psn range over the end", { .given = PSN_ | LAST, .psn = 0xffffff, .psn_last = 42 }, 0x7d },
	{ "psn range from 0 among all", { .frames = IMPAIR_FRAMES_ALL, .given = PSN_ | LAST, .psn = 0, .psn_last = 1 }, 0x40 },
	{ "packet", { .packet = 3 }, 0x04 },
	{ "packet that is not RoCE", { .packet = 8 }, 0x00 },
	{ "packet among all", { .packet = 8, .frames = IMPAIR_FRAMES_ALL }, 0x80 },
};
/* clang-format on */

static void
a_rule_meets_the_packets_it_names(void **state)
{
	struct impair_pkt p[8] = { roce(17, 42, SEND_ONLY), roce(17, 43, SEND_ONLY),
		roce(17, 42, ACK), roce(18, 42, SEND_ONLY), roce(17, 0xffffff, WRITE_MIDDLE),
		roce(0xffffff, 0xffffff, CNP_OPCODE), roce(0, 0, 0x00), other() };
	struct impair_verdict v[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(matches); i++) {
		struct impair_rule r = matches[i].rule;
		uint32_t hits = 0;

		print_message("# %s\n", matches[i].what);
		run_rules(0, &r, 1, p, 8, 8, v);
		for (uint32_t k = 0; k < 8; k++)
			hits |= (uint32_t)is_dropped(&v[k]) << k;
		assert_int_equal(hits, matches[i].hits);
	}
}

/* clang-format off */
static const struct {
	const char *says; /* in the reason; NULL: allowed */
	struct impair_rule rule;
} checks[] = {
	{ NULL, { .action = IMPAIR_DROP } },
	{ "action", { .action = IMPAIR_ACTIONS } },
	{ "frames", { .frames = 3 } },
	{ "direction", { .direction = 3 } },
	{ "frames says other", { .frames = IMPAIR_FRAMES_OTHER, .given = PSN_ } },
	{ "frames says other", { .frames = IMPAIR_FRAMES_OTHER, .direction = IMPAIR_REQUEST } },
	{ "qp_num", { .given = QPN_, .qp_num = 1 << 24 } },
	{ NULL, { .given = QPN_, .qp_num = 0xffffff } },
	{ "psn ", { .given = PSN_, .psn = 1 << 24 } },
	{ "psn_last must", { .given = PSN_ | LAST, .psn_last = 1 << 24 } },
	{ "psn_last needs", { .given = LAST, .psn_last = 5 } },
	{ "probability", { .given = IMPAIR_GIVEN_PROBABILITY, .probability = 1.0001 } },
	{ "probability", { .given = IMPAIR_GIVEN_PROBABILITY, .probability = -0.1 } },
	{ "probability", { .given = IMPAIR_GIVEN_PROBABILITY, .probability = NAN } },
	{ NULL, { .given = IMPAIR_GIVEN_PROBABILITY, .probability = 1.0 } },
	{ "burst", { .given = IMPAIR_GIVEN_BURST, .burst = { 2, 0, 0, 0 } } },
	{ "burst", { .given = IMPAIR_GIVEN_BURST, .burst = { 0, 2, 0, 0 } } },
	{ "burst", { .given = IMPAIR_GIVEN_BURST, .burst = { 0, 0, 2, 0 } } },
	{ "burst", { .given = IMPAIR_GIVEN_BURST, .burst = { 0, 0, 0, INFINITY } } },
	{ "only one", { .given = IMPAIR_GIVEN_BURST, .every = 2 } },
	{ "only one", { .given = IMPAIR_GIVEN_BURST | IMPAIR_GIVEN_PROBABILITY } },
	{ "delay needs", { .action = IMPAIR_DELAY } },
	{ NULL, { .action = IMPAIR_DELAY, .jitter_us = 1 } },
	{ "jitter_us", { .action = IMPAIR_DELAY, .jitter_us = 10000001 } },
	{ "delay_us", { .action = IMPAIR_DUPLICATE, .delay_us = 10000001 } },
	{ "hold_us", { .action = IMPAIR_REORDER, .hold_us = 10000001 } },
	{ NULL, { .action = IMPAIR_REORDER, .hold_us = 10000000, .distance = 255 } },
	{ "distance", { .action = IMPAIR_REORDER, .distance = 256 } },
	{ "copies", { .action = IMPAIR_DUPLICATE, .copies = 9 } },
	{ "bits", { .action = IMPAIR_CORRUPT, .bits = 9 } },
	{ "offset", { .action = IMPAIR_CORRUPT, .given = IMPAIR_GIVEN_OFFSET, .offset = 65536 } },
	{ "xor needs", { .action = IMPAIR_CORRUPT, .xor_mask = 1 } },
};
/* clang-format on */

static void
what_is_out_of_range_is_refused_with_a_reason(void **state)
{
	struct impair_rule two[2] = { { .action = IMPAIR_DROP } };
	struct impair_conf conf = { .n_rules = 2, .rules = two };
	struct impair_model *m;
	char why[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		int want = checks[i].says == NULL ? 0 : -EINVAL;

		two[1] = checks[i].rule;
		assert_int_equal(impair_conf_check(&conf, why, sizeof(why)), want);
		if (want != 0) {
			print_message("# %s\n", why);
			assert_non_null(strstr(why, checks[i].says));
			assert_ptr_equal(strstr(why, "rules/1: "), why);
			assert_int_equal(impair_model_create(&conf, &m), -EINVAL);
		}
	}
	conf = (struct impair_conf){ .n_rules = IMPAIR_RULES_MAX + 1, .rules = two };
	assert_int_equal(impair_conf_check(&conf, NULL, 0), -EINVAL);
	conf = (struct impair_conf){ .n_rules = 1 };
	assert_int_equal(impair_conf_check(&conf, NULL, 0), -EINVAL);
	conf = (struct impair_conf){ .held_max = 65537 };
	assert_int_equal(impair_conf_check(&conf, why, sizeof(why)), -EINVAL);
	conf = (struct impair_conf){ .log_size = 100 };
	assert_int_equal(impair_conf_check(&conf, why, sizeof(why)), -EINVAL);
	conf = (struct impair_conf){ 0 };
	assert_int_equal(impair_conf_check(&conf, NULL, 0), 0);
}

/* ---- frames, typed by hand ------------------------------------------------------------------ */

#define MACS    "02 00 00 00 00 11  02 00 00 00 00 22 "
#define IP4     "45 00 00 30 00 00 40 00 40 11 b6 b9 c0 00 02 02 c0 00 02 01 "
#define IP4_OPT "46 00 00 34 00 00 40 00 40 11 b6 b9 c0 00 02 02 c0 00 02 01 01 01 01 01 "
#define IP6                                                                        \
	"60 00 00 00 00 1c 11 40 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 02 " \
	"20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 "
#define UDP     "c0 11 12 b7 00 1c 00 00 "
#define BTH     "04 40 ff ff 00 12 34 56 80 ab cd ef "
#define REST    "00 01 02 03 00 00 00 00"
#define ACK_BTH "11 40 ff ff 00 12 34 56 80 ab cd ef "

enum {
	R = IMPAIR_PKT_ROCE,
	Q = IMPAIR_PKT_REQUEST,
	S = IMPAIR_PKT_RESPONSE,
	V4 = IMPAIR_PKT_IPV4,
	V6 = IMPAIR_PKT_IPV6
};

/* clang-format off */
static const struct {
	const char *what;
	const char *frame;
	uint32_t needs; /* bytes without which it is not seen as RoCE; 0: it is not */
	uint8_t kind;
	uint8_t l3_off;
} frames[] = {
	{ "IPv4", MACS "08 00 " IP4 UDP BTH REST, 54, R | Q | V4, 14 },
	{ "IPv4, response", MACS "08 00 " IP4 UDP ACK_BTH REST, 54, R | S | V4, 14 },
	{ "IPv4 with options", MACS "08 00 " IP4_OPT UDP BTH REST, 58, R | Q | V4, 14 },
	{ "VLAN", MACS "81 00 60 05 08 00 " IP4 UDP BTH REST, 58, R | Q | V4, 18 },
	{ "IPv6", MACS "86 dd " IP6 UDP BTH REST, 74, R | Q | V6, 14 },
	{ "VLAN, IPv6", MACS "81 00 60 05 86 dd " IP6 UDP BTH REST, 78, R | Q | V6, 18 },
	{ "opcode of no table", MACS "08 00 " IP4 UDP "ff 40 ff ff 00 12 34 56 80 ab cd ef " REST, 54, R | V4, 14 },
	{ "another UDP port", MACS "08 00 " IP4 "c0 11 12 b8 00 1c 00 00 " BTH REST, 0, V4, 14 },
	{ "UDP too short for a BTH", MACS "08 00 " IP4 "c0 11 12 b7 00 13 00 00 " BTH REST, 0, V4, 14 },
	{ "TCP", MACS "08 00 45 00 00 30 00 00 40 00 40 06 b6 b9 c0 00 02 02 c0 00 02 01 " UDP BTH REST, 0, V4, 14 },
	{ "later fragment", MACS "08 00 45 00 00 30 00 00 00 01 40 11 b6 b9 c0 00 02 02 c0 00 02 01 " UDP BTH REST, 0, V4, 14 },
	{ "header length 4", MACS "08 00 44 00 00 30 00 00 40 00 40 11 b6 b9 c0 00 02 02 c0 00 02 01 " UDP BTH REST, 0, V4, 14 },
	{ "header length 15 beyond the frame", MACS "08 00 4f 00 00 30 00 00 40 00 40 11 b6 b9 c0 00 02 02 c0 00 02 01 " UDP BTH REST, 0, V4, 14 },
	{ "version 6 in an IPv4 frame", MACS "08 00 " IP6 UDP BTH REST, 0, 0, 14 },
	{ "version 4 in an IPv6 frame", MACS "86 dd " IP4 UDP BTH REST, 0, 0, 14 },
	{ "IPv6 with ICMP", MACS "86 dd 60 00 00 00 00 1c 3a 40 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 02 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 " UDP BTH REST, 0, V6, 14 },
	{ "ARP", MACS "08 06 00 01 08 00 06 04 00 01", 0, 0, 14 },
	{ "tag in a tag", MACS "81 00 60 05 81 00 60 05 08 00 " IP4 UDP BTH REST, 0, 0, 18 },
};
/* clang-format on */

/* WIRE-01, WIRE-06; each length from nothing to the whole frame, in a heap block of that size. */
static void
a_frame_shows_its_bth_and_no_byte_beyond_its_end_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		uint8_t bytes[128];
		size_t len = hex_bytes(frames[i].frame, bytes, sizeof(bytes));

		print_message("# %s\n", frames[i].what);
		for (size_t have = 0; have <= len; have++) {
			uint8_t *exact = malloc(have != 0 ? have : 1);
			bool roce_now = frames[i].needs != 0 && have >= frames[i].needs;
			struct impair_pkt p;

			assert_non_null(exact);
			memcpy(exact, bytes, have);
			p = impair_peek(exact, (uint32_t)have, (uint32_t)len);
			free(exact);
			assert_int_equal(p.len, len);
			assert_int_equal((p.kind & R) != 0, roce_now);
			assert_int_equal(p.qpn, roce_now ? 0x123456 : 0);
			assert_int_equal(p.psn, roce_now ? 0xabcdef : 0);
			if (have == len) {
				assert_int_equal(p.kind, frames[i].kind);
				assert_int_equal(p.l3_off, frames[i].l3_off);
			}
		}
	}
}

static void
noise_is_looked_at_without_harm(void **state)
{
	static uint8_t good[6][128];
	size_t lens[6];
	uint32_t seed = 1, found = 0;

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		lens[i] = hex_bytes(frames[i].frame, good[i], sizeof(good[i]));
	for (uint32_t round = 0; round < 100000; round++) {
		uint8_t bytes[128];
		size_t len = lens[round % 6];
		size_t have;
		uint8_t *exact;

		memcpy(bytes, good[round % 6], sizeof(bytes));
		for (uint32_t k = 0; k < 3; k++) {
			seed = seed * 1664525 + 1013904223;
			bytes[(seed >> 8) % len] = (uint8_t)(seed >> 24);
		}
		have = (seed >> 3) % 4 == 0 ? (seed >> 12) % (len + 1) : len;
		exact = malloc(have != 0 ? have : 1);
		assert_non_null(exact);
		memcpy(exact, bytes, have);
		found += impair_peek(exact, (uint32_t)have, (uint32_t)have).kind & R;
		free(exact);
	}
	assert_in_range(found, 30000, 95000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_meets_the_packets_it_names),
		cmocka_unit_test(what_is_out_of_range_is_refused_with_a_reason),
		cmocka_unit_test(a_frame_shows_its_bth_and_no_byte_beyond_its_end_is_read),
		cmocka_unit_test(noise_is_looked_at_without_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
