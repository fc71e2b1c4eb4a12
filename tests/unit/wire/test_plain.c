/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways through the parser: what wire_plain.h reads without a call is what wire_parse_any() makes of
 * it, and wire_wide.h, wire_half.h and wire_near.h, where this machine has it, read the same, and
 * what goes to another UDP port is known without it; over frames of one to three changed bytes,
 * with and without a mended checksum, and over lengths of all kinds.
 */
#include <stdlib.h>

#include "frames.h"
#include "wire_half.h"
#include "wire_near.h"

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
put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
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
		ipv4_fix_sum(f + IP4);
}

#if WIRE_WIDE
/** TARGET_WIRE_WIDE inlines it; the pipeline asks wire_has_wide(), too. */
TARGET_WIRE_WIDE static bool
read_wide(const struct wire_port *us, const uint8_t *f, uint32_t len, struct wire_pkt *out)
{
	struct wire_front front;
	uint32_t qpn;

	wire_front_init(&front, us);
	if (len < WIRE_PLAIN_MIN)
		return false;
	qpn = wire_read_wide(&front, f, len, out, NULL);
	assert_true(qpn == 0 || qpn == out->dest_qpn);
	return qpn != 0;
}
#endif

#if WIRE_WIDE
/** The same of TARGET_WIRE_HALF. */
TARGET_WIRE_HALF static bool
read_half(const struct wire_port *us, const uint8_t *f, uint32_t len, struct wire_pkt *out)
{
	struct wire_half_like like = WIRE_LIKE_NONE;
	struct wire_front front;
	uint32_t qpn;

	wire_front_init(&front, us);
	if (len < WIRE_PLAIN_MIN)
		return false;
	qpn = wire_read_half(&front, f, len, out, &like);
	assert_true(qpn == 0 || qpn == out->dest_qpn);
	assert_int_equal(like.len, qpn == 0 ? UINT32_MAX : len);
	return qpn != 0;
}

/** The same of packets with faults. */
TARGET_WIRE_WIDE static bool
read_near(const struct wire_port *us, const uint8_t *f, uint32_t len, struct wire_pkt *out)
{
	struct wire_front front;

	wire_front_init(&front, us);
	return wire_read_near(&front, us, f, len, out);
}
#endif

static bool
read_plain(const struct wire_port *us, const uint8_t *f, uint32_t len, struct wire_pkt *out)
{
	return wire_is_plain_len(len) && wire_match(us, f) && wire_read_plain(f, len, out);
}

/** All readers say the same of a frame. Beyond 32 KiB of payload the wide one may leave it. */
static void
check_widths(const struct wire_port *us, const uint8_t *f, uint32_t len, bool is_plain,
	const struct wire_pkt *want)
{
#if WIRE_WIDE
	struct wire_pkt got CACHE_ALIGNED = { 0 };
	bool is_wide;

	if (wire_has_half()) {
		assert_int_equal(read_half(us, f, len, &got), is_plain);
		if (is_plain)
			assert_memory_equal(&got, want, offsetof(struct wire_pkt, reserved));
	}
	if (!wire_has_wide())
		return;
	got = (struct wire_pkt){ 0 };
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
	uint32_t seed = 0x20261121, plain = 0, good = 0, other = 0;
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
		if (wire_is_other_udp(f, (uint32_t)len)) {
			assert_int_equal(class, WIRE_CLASS_OTHER);
			other++;
		}
		is_plain = read_plain(&us, f, (uint32_t)len, &a);
		check_widths(&us, f, (uint32_t)len, is_plain, &a);
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
	assert_true(other > FRAMES / 100);
}

#if WIRE_WIDE
/* IPv4, tagged IPv4, IPv6, tagged IPv6. */
enum { MORE = 28, KINDS = 4, KIND_TAG = 1, KIND_IPV6 = 2 };

/** A frame for wire_near.h: 28 bytes more of payload. @return its length. */
static size_t
near_frame(uint32_t kind, uint8_t *f)
{
	bool ipv6 = (kind & KIND_IPV6) != 0;
	size_t len = hex_bytes(ipv6 ? v6_send : v4_send, f, FRAME_MAX);
	uint32_t l4 = WIRE_ETH_LEN + (ipv6 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN);
	uint8_t *ip_len = f + WIRE_ETH_LEN + (ipv6 ? 4 : 2);

	memset(f + len, 0x5a, MORE);
	put16(ip_len, be16_load(ip_len) + MORE);
	put16(f + l4 + 4, be16_load(f + l4 + 4) + MORE);
	len += MORE;
	if (!ipv6)
		ipv4_fix_sum(f + WIRE_ETH_LEN);
	if ((kind & KIND_TAG) == 0)
		return len;
	memmove(f + 16, f + 12, len - 12);
	memcpy(f + 12, (const uint8_t[]){ 0x81, 0, 0, 7 }, 4);
	return len + WIRE_VLAN_LEN;
}

/* RX-SYN-00..14, WIRE-01: what wire_near.h says of a frame is what wire_parse_any() says. */
static void
RX_SYN_near_ones_agree(void **state)
{
	const fault_mask_t both = FAULT_BIT(FAULT_DST_MAC) | FAULT_BIT(FAULT_DST_IP) |
				  FAULT_BIT(FAULT_TVER) | FAULT_BIT(FAULT_DST_QP);
	const fault_mask_t ipv4 = FAULT_BIT(FAULT_IP_HDR_LEN) | FAULT_BIT(FAULT_IP_FLAGS) |
				  FAULT_BIT(FAULT_IP_FRAGMENT) | FAULT_BIT(FAULT_IP_CHECKSUM);
	uint32_t seed = 0x20261122, known[KINDS] = { 0 }, faulty[KINDS] = { 0 };
	fault_mask_t seen[KINDS] = { 0 };

	(void)state;
	if (!wire_has_wide())
		return;
	assert_false(read_near(&port, (const uint8_t *)"", 0, &(struct wire_pkt){ 0 }));
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct wire_pkt a = { 0 }, b = { 0 };
		struct wire_port us = port;
		uint32_t kind = i % KINDS, n = next(&seed) % 4;
		uint8_t f[FRAME_MAX + MORE + 4], *exact;
		size_t len = near_frame(kind, f);

		for (uint32_t k = 0; k < n; k++)
			f[next(&seed) % 88] ^= (uint8_t)(1u << (next(&seed) & 7));
		if ((kind & KIND_IPV6) == 0 && (next(&seed) & 3) == 0)
			ipv4_fix_sum(f + WIRE_ETH_LEN + (kind == KIND_TAG ? WIRE_VLAN_LEN : 0));
		if ((next(&seed) & 15) == 0)
			len = next(&seed) % (len + 1);
		us.require_df = (seed & 1) != 0;
		us.has_ipv4 = (seed & 0x700) != 0;
		us.has_ipv6 = (seed & 0x7000) != 0;
		exact = malloc(len + 1); /* so that a sanitizer sees what is read beyond */
		assert_non_null(exact);
		memcpy(exact + 1, f, len);
		if (read_near(&us, exact + 1, (uint32_t)len, &a)) {
			assert_int_equal(
				wire_parse_any(&us, exact + 1, (uint32_t)len, &b), WIRE_CLASS_ROCE);
			assert_memory_equal(&a, &b, offsetof(struct wire_pkt, reserved));
			known[kind]++;
			faulty[kind] += a.faults != 0;
			seen[kind] |= a.faults;
		}
		free(exact);
	}
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		assert_true(known[kind] > FRAMES / 8 && faulty[kind] > known[kind] / 8);
		assert_true(seen[kind] == (both | ((kind & KIND_IPV6) == 0 ? ipv4 : 0)));
	}
}

/* RX-SYN-00: the MAC of a tagged frame is its own, not what stands four bytes behind it. */
static void
RX_SYN_00_mac_of_a_tagged_frame(void **state)
{
	static const struct {
		uint32_t at; /* where the port's MAC stands in the frame */
		bool is_wrong;
	} rows[] = { { 0, false }, { WIRE_VLAN_LEN, true }, { 6, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const fault_mask_t want = rows[i].is_wrong ? FAULT_BIT(FAULT_DST_MAC) : 0;
		uint8_t f[FRAME_MAX + MORE + 4];
		const uint32_t len = (uint32_t)near_frame(KIND_TAG, f);
		const struct wire_near n = {
			.frame = f, .l2 = f + WIRE_VLAN_LEN, .len = len, .tag = WIRE_VLAN_LEN
		};
		/* As the compare of what stands in front of the IP header says. */
		const uint32_t seen = rows[i].at == WIRE_VLAN_LEN ? 0 : WIRE_NEAR_MAC;
		struct wire_pkt p = { 0 };

		memset(f, 0xee, 12);
		memcpy(f + rows[i].at, port.mac, sizeof(port.mac));
		assert_int_equal(wire_parse_any(&port, f, len, &p), WIRE_CLASS_ROCE);
		assert_true(p.faults == want);
		assert_int_equal(wire_near_mac(&port, &n, seen) != 0, rows[i].is_wrong);
		if (!wire_has_wide())
			continue;
		assert_true(read_near(&port, f, len, &p));
		assert_true(p.faults == want);
	}
}

/* CC-02: of the four ECN fields 11 alone is CE, whoever reads the frame, and whatever its DSCP. */
static void
CC_02_ecn_of_every_reader(void **state)
{
	static const uint8_t dscps[] = { 0, 1, 26, 48, 63 };

	(void)state;
	for (uint32_t i = 0; i < KINDS * ARRAY_LEN(dscps) * 4; i++) {
		const uint32_t kind = i % KINDS, ecn = i / KINDS % 4;
		const uint32_t tos = dscps[i / KINDS / 4] * 4u | ecn;
		const uint16_t want = ecn == 3 ? PKT_CE : 0;
		uint8_t f[FRAME_MAX + MORE + 4];
		const uint32_t len = (uint32_t)near_frame(kind, f);
		uint8_t *ip = f + WIRE_ETH_LEN + ((kind & KIND_TAG) != 0 ? WIRE_VLAN_LEN : 0);
		struct wire_pkt p CACHE_ALIGNED;

		if ((kind & KIND_IPV6) != 0) {
			put16(ip, 0x6000 | tos << 4);
		} else {
			ip[1] = (uint8_t)tos;
			ipv4_fix_sum(ip);
		}
		assert_int_equal(wire_parse_any(&port, f, len, &p), WIRE_CLASS_ROCE);
		assert_true(p.faults == 0);
		assert_int_equal(p.flags & PKT_CE, want);
		if (wire_has_wide()) {
			assert_true(read_near(&port, f, len, &p));
			assert_int_equal(p.flags & PKT_CE, want);
		}
		if (kind != 0)
			continue;
		assert_true(read_plain(&port, f, len, &p));
		assert_int_equal(p.flags & PKT_CE, want);
		if (wire_has_half()) {
			assert_true(read_half(&port, f, len, &p));
			assert_int_equal(p.flags & PKT_CE, want);
		}
		if (wire_has_wide()) {
			assert_true(read_wide(&port, f, len, &p));
			assert_int_equal(p.flags & PKT_CE, want);
		}
	}
}
#endif

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
		ipv4_fix_sum(f + IP4);
		is_plain = read_plain(&port, f, len, &a);
		check_widths(&port, f, len, is_plain, &a);
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
			ipv4_fix_sum(h);
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
#if WIRE_WIDE
		cmocka_unit_test(RX_SYN_near_ones_agree),
		cmocka_unit_test(RX_SYN_00_mac_of_a_tagged_frame),
		cmocka_unit_test(CC_02_ecn_of_every_reader),
#endif
		cmocka_unit_test(RX_SYN_09_sum),
	};

	return cmocka_run_group_tests_name("wire_plain", tests, NULL, NULL);
}
