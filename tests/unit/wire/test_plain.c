/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three ways through the parser: what wire_plain.h reads without a call is what wire_parse_any()
 * makes of it, and wire_wide.h, where this machine has it, reads the same; over frames of one to
 * three changed bytes, with and without a mended checksum, and over lengths of all kinds.
 */
#include "frames.h"
#include "wire_wide.h"

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

#if WIRE_WIDE
/** TARGET_WIRE_WIDE inlines it; the pipeline asks wire_has_wide(), too. */
TARGET_WIRE_WIDE static bool
read_wide(const struct wire_port *us, const uint8_t *f, uint32_t len, struct wire_pkt *out)
{
	struct wire_front front;

	wire_front_init(&front, us);
	return len >= WIRE_PLAIN_MIN && wire_read_wide(&front, f, len, out);
}
#endif

static bool
read_plain(const struct wire_port *us, const uint8_t *f, uint32_t len, struct wire_pkt *out)
{
	return wire_is_plain_len(len) && wire_match(us, f) && wire_read_plain(f, len, out);
}

/** Both readers say the same of a frame. Beyond 32 KiB of payload the wide one may leave it. */
static void
check_wide(const struct wire_port *us, const uint8_t *f, uint32_t len, bool is_plain,
	const struct wire_pkt *want)
{
#if WIRE_WIDE
	struct wire_pkt got = { 0 };
	bool is_wide;

	if (!wire_has_wide())
		return;
	is_wide = read_wide(us, f, len, &got);
	if (is_plain && want->payload_len > INT16_MAX)
		assert_false(is_wide);
	else
		assert_int_equal(is_wide, is_plain);
	if (is_wide)
		assert_memory_equal(&got, want, offsetof(struct wire_pkt, reserved));
#else
	(void)us;
	(void)f;
	(void)len;
	(void)is_plain;
	(void)want;
#endif
}

static void
WIRE_01_both_ways_agree(void **state)
{
	uint32_t seed = 0x20261121, plain = 0, good = 0;
	struct guard g = { NULL };

	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct wire_port us = port;
		struct wire_pkt a = { 0 }, b = { 0 };
		enum wire_class class;
		uint8_t bytes[FRAME_MAX];
		size_t len = hex_bytes(v4_send, bytes, sizeof(bytes));
		const uint8_t *f;
		bool is_plain;

		mutate(bytes, &len, &seed);
		f = guard_before_end(&g, bytes, len);
		us.require_df = (seed & 1) != 0;
		us.has_ipv4 = (seed & 0x700) != 0;
		class = wire_parse_any(&us, f, (uint32_t)len, &b);
		good += class == WIRE_CLASS_ROCE && b.faults == 0;
		is_plain = read_plain(&us, f, (uint32_t)len, &a);
		check_wide(&us, f, (uint32_t)len, is_plain, &a);
		if (!is_plain)
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

static void
put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* RX-SYN-10, RX-SYN-12, RX-SYN-00: lengths that agree, all but agree, wrap, and are cut short. */
static void
RX_SYN_10_lengths_agree(void **state)
{
	static uint8_t f[UINT16_MAX];
	uint32_t seed = 11, plain = 0, large = 0;

	(void)state;
	hex_bytes(v4_send, f, FRAME_MAX);
	for (uint32_t i = 0; i < FRAMES; i++) {
		static const uint16_t most[] = { 40, 100, 1100, 9000, UINT16_MAX };
		uint32_t udp = next(&seed) % (most[next(&seed) % ARRAY_LEN(most)] + 1u);
		uint32_t ip = udp + WIRE_IPV4_LEN, len = ip + WIRE_PLAIN_IP;
		struct wire_pkt a = { 0 }, b = { 0 };
		bool is_plain;

		if ((next(&seed) & 7) == 0)
			ip += next(&seed) % 5 - 2;
		if ((next(&seed) & 3) == 0)
			len += next(&seed) % 9 - 4;
		len = len > UINT16_MAX ? UINT16_MAX : len;
		put16(f + IP4 + 2, ip);
		put16(f + WIRE_PLAIN_UDP + 4, udp);
		f[BTH4] = (uint8_t)(next(&seed) % 25);
		f[BTH4 + 1] = (uint8_t)(next(&seed) & 0xf0);
		f[IP4 + 1] = (uint8_t)next(&seed);
		fix_sum(f + IP4);
		is_plain = read_plain(&port, f, len, &a);
		check_wide(&port, f, len, is_plain, &a);
		if (!is_plain)
			continue;
		plain++;
		large += a.payload_len > INT16_MAX;
		assert_int_equal(wire_parse_any(&port, f, len, &b), WIRE_CLASS_ROCE);
		assert_memory_equal(&a, &b, offsetof(struct wire_pkt, reserved));
	}
	assert_true(plain > FRAMES / 4);
	assert_true(large > FRAMES / 100);
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
		cmocka_unit_test(RX_SYN_10_lengths_agree),
		cmocka_unit_test(RX_SYN_09_sum),
	};

	return cmocka_run_group_tests_name("wire_plain", tests, NULL, NULL);
}
