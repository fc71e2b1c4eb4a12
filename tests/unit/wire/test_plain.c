/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ways through the parser: what wire_plain.h reads without a call is what wire_parse_any()
 * makes of it, over frames of one to three changed bytes, with and without a mended checksum.
 */
#include "frames.h"
#include "wire_plain.h"

enum { FRAMES = 400000 };

static uint32_t
next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static void
mutate(uint8_t *f, size_t *len, uint32_t *seed)
{
	uint32_t how = next(seed), n = how & 3;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = next(seed) % 56;

		f[at] = (how & 0x10) != 0 ? (uint8_t)next(seed)
					  : (uint8_t)(f[at] ^ 1u << (next(seed) & 7));
	}
	f[BTH4] = (how & 0x20) != 0 ? (uint8_t)(next(seed) % 25) : f[BTH4];
	if ((how & 0x40) != 0)
		*len = next(seed) % (*len + 1);
	if ((how & 0x80) != 0)
		fix_sum(f + IP4);
}

static void
WIRE_01_both_ways_agree(void **state)
{
	uint32_t seed = 0x20261121, plain = 0, good = 0;

	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct wire_port us = port;
		struct wire_pkt a = { 0 }, b = { 0 };
		enum wire_class class;
		uint8_t f[FRAME_MAX];
		size_t len = hex_bytes(v4_send, f, sizeof(f));

		mutate(f, &len, &seed);
		us.require_df = (seed & 1) != 0;
		us.has_ipv4 = (seed & 0x700) != 0;
		class = wire_parse_any(&us, f, (uint32_t)len, &b);
		good += class == WIRE_CLASS_ROCE && b.faults == 0;
		if (!wire_is_plain_len((uint32_t)len) || !wire_match(&us, f) ||
			!wire_read_plain(f, (uint32_t)len, &a))
			continue;
		plain++;
		assert_int_equal(class, WIRE_CLASS_ROCE);
		assert_true(b.faults == 0);
		assert_memory_equal(&a, &b, offsetof(struct wire_pkt, reserved));
	}
	/* Most good ones are plain; those without DF are not. */
	assert_true(plain > FRAMES / 16);
	assert_true(plain <= good && plain > good / 2);
}

/* The sum that is a multiple of 65535, against the one that a specification describes. */
static void
RX_SYN_09_sum(void **state)
{
	uint32_t seed = 7, good = 0;

	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint8_t h[WIRE_IPV4_LEN];
		uint32_t sum = 0;

		for (uint32_t k = 0; k < sizeof(h); k++)
			h[k] = (i & 2) != 0             ? (uint8_t)next(&seed)
			       : (next(&seed) & 1) != 0 ? 0xff
							: 0;
		h[0] = 0x45;
		if ((i & 1) != 0)
			fix_sum(h);
		for (uint32_t k = 0; k < sizeof(h); k += 2)
			sum += (uint32_t)h[k] << 8 | h[k + 1];
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		assert_int_equal(wire_ipv4_sum_is_good(h), sum == 0xffff);
		good += sum == 0xffff;
	}
	assert_true(good >= FRAMES / 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(WIRE_01_both_ways_agree),
		cmocka_unit_test(RX_SYN_09_sum),
	};

	return cmocka_run_group_tests_name("wire_plain", tests, NULL, NULL);
}
