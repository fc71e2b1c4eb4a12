/* SPDX-License-Identifier: BSD-3-Clause */
/* ICRC-01 .. ICRC-04: the vectors, what is masked, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cpu.h"
#include "crc_isal.h"
#include "crc_zlib.h"
#include "icrc_internal.h"
#include "../../vectors/hex.h"
#include "../../vectors/tables.h"
#include "../guard.h"
#include "reference.h"

static const struct crc_ops bitwise_ops = { .name = "bitwise", .update = bitwise };

static const struct crc_ops *
backend(int i)
{
	return i == 0 ? crc_isal() : i == 1 ? crc_zlib() : &bitwise_ops;
}

/* ICRC-01: polynomial, reflection and the slot's convention, by CRC-32's usual check value. */
static void
ICRC_01_backends_are_crc32(void **state)
{
	static const char check[] = "123456789";

	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct crc_ops *ops = backend(i);
		uint32_t s = ops->update(0xffffffff, check, 4);

		assert_int_equal(s, bitwise(0xffffffff, check, 4));
		assert_int_equal(ops->update(s, check, 0), s);
		assert_int_equal(~ops->update(s, check + 4, 5), 0xcbf43926);
		assert_non_null(ops->name);
	}
}

static void
ICRC_01_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vector_icrcs); i++) {
		const struct vector_icrc *v = &vector_icrcs[i];
		uint8_t packet[512], want[4], got[4];
		size_t len = hex_bytes(v->packet, packet, sizeof(packet));

		assert_int_equal(hex_bytes(v->icrc, want, 4), 4);
		for (int b = 0; b < 3; b++) {
			icrc_store(got, icrc_compute(backend(b), packet, v->ipv6, (uint32_t)len));
			if (memcmp(got, want, 4) != 0)
				fail_msg("%s with %s", v->name, backend(b)->name);
		}
	}
	assert_int_equal(ARRAY_LEN(vector_icrcs), 10);
}

/** Every way that is left with vector registers of `bits`. */
static void
assert_paths_up_to(uint32_t bits, const uint8_t *p, bool ipv6, uint32_t len, uint32_t want)
{
	const uint32_t head = icrc_head_len(ipv6), half = (len - head) / 2;

	cpu_limit(bits);
	for (int b = 0; b < 2; b++) {
		const struct crc_ops *ops = backend(b);
		uint32_t s = icrc_begin_portable(ops, p, ipv6);

		assert_int_equal(icrc_compute(ops, p, ipv6, len), want);
		assert_int_equal(icrc_begin(ops, p, ipv6), s);
		/* In two pieces. */
		s = icrc_update(ops, s, p + head, half);
		s = icrc_update(ops, s, p + head + half, len - head - half);
		assert_int_equal(icrc_final(s), want);
	}
#if ICRC_CLMUL
	if (icrc_has_clmul()) {
		assert_int_equal(
			icrc_begin_clmul(p, ipv6), icrc_begin_portable(&bitwise_ops, p, ipv6));
		assert_int_equal(~icrc_whole_clmul(p, ipv6, len), want);
	}
	if (icrc_has_ymm())
		assert_int_equal(~icrc_whole_ymm(p, ipv6, len), want);
	if (icrc_has_wide())
		assert_int_equal(~icrc_whole_wide(p, ipv6, len), want);
#endif
}

/** Every way to compute it. */
static void
assert_all_paths(const uint8_t *p, bool ipv6, uint32_t len, uint32_t want)
{
	for (uint32_t bits = 64; bits <= 512; bits *= 2)
		assert_paths_up_to(bits, p, ipv6, len, want);
}

/*
 * ICRC-01: for every length of the tail and the switch between the ways, with nothing before the
 * IP header and with nothing behind the last byte.
 */
static void
ICRC_01_all_paths_agree(void **state)
{
	static uint8_t p[PACKET_MAX];
	struct guard g = { NULL };

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (uint32_t len = icrc_head_len(ipv6); len <= 4160; len += len < 420 ? 1 : 411) {
			uint32_t want;

			for (uint32_t k = 0; k < len; k++)
				p[k] = random_byte();
			want = reference(p, ipv6, len);
			assert_all_paths(guard_before_end(&g, p, len), ipv6, len, want);
			assert_all_paths(guard_from_start(&g, p, len), ipv6, len, want);
		}
	}
}

/** A sealed frame: 14 bytes of Ethernet, then a vector's packet and its ICRC. */
static uint32_t
sealed(const struct vector_icrc *v, uint8_t *frame, size_t room, struct wire_pkt *p)
{
	uint32_t len = 14;

	memset(frame, 0, 14);
	len += (uint32_t)hex_bytes(v->packet, frame + 14, room - 14);
	len += (uint32_t)hex_bytes(v->icrc, frame + len, 4);
	*p = (struct wire_pkt){ .frame = frame,
		.frame_len = (uint16_t)len,
		.l3_off = 14,
		.icrc_off = (uint16_t)(len - 4),
		.flags = v->ipv6 ? PKT_IPV6 : 0 };
	return len;
}

/* ICRC-02, ICRC-03: bits that may change in flight, by byte from the IP header on. */
static uint8_t
masked_bits(bool ipv6, uint32_t at)
{
	if (ipv6)
		return at == 0 ? 0x0f : /* class, upper half */
			       (at >= 1 && at <= 3) || at == 7 || at == 46 || at == 47 || at == 52
			       ? 0xff
			       : 0;
	return at == 1 || at == 8 || at == 10 || at == 11 || at == 26 || at == 27 || at == 32 ? 0xff
											      : 0;
}

/*
 * ICRC-02, ICRC-03: any change of a masked bit goes unnoticed. ICRC-04: any other single bit
 * breaks the ICRC, those of the ICRC itself included.
 */
static void
ICRC_04_every_single_bit(void **state)
{
	unsigned int masked[2] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vector_icrcs); i++) {
		const struct vector_icrc *v = &vector_icrcs[i];
		uint8_t frame[512];
		struct wire_pkt p;
		uint32_t len = sealed(v, frame, sizeof(frame), &p);

		assert_true(icrc_verify(crc_isal(), &p));
		assert_true(icrc_verify(crc_zlib(), &p));
		masked[v->ipv6] = 0;
		for (uint32_t bit = 14 * 8; bit < len * 8; bit++) {
			uint32_t at = bit / 8 - 14;
			uint8_t one = (uint8_t)(1u << bit % 8);
			bool free_to_change = (masked_bits(v->ipv6, at) & one) != 0;

			frame[at + 14] ^= one;
			if (icrc_verify(crc_isal(), &p) != free_to_change)
				fail_msg("%s: byte %u bit 0x%02x", v->name, at, one);
			frame[at + 14] ^= one;
			masked[v->ipv6] += free_to_change;
		}
	}
	/* IPv4: TOS 8, TTL 8, checksums 16 + 16, BTH 8. IPv6: class and label 28, 8, 16, 8. */
	assert_int_equal(masked[0], 56);
	assert_int_equal(masked[1], 60);
}

/* ICRC-05: what is sealed verifies, and only the last four bytes are written. */
static void
ICRC_05_seal(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vector_icrcs); i++) {
		const struct vector_icrc *v = &vector_icrcs[i];
		uint8_t want[512], frame[512];
		struct wire_pkt p;
		uint32_t len = sealed(v, want, sizeof(want), &p);

		memset(frame, 0x77, sizeof(frame));
		memcpy(frame, want, len - 4);
		icrc_seal(crc_zlib(), frame, 14, v->ipv6, len);
		assert_memory_equal(frame, want, len);
		assert_int_equal(frame[len], 0x77);
	}
}

/* ICRC-05: a burst is sealed as its frames are one by one, whatever stands beside them. */
static void
ICRC_05_seal_burst(void **state)
{
	static uint8_t want[ARRAY_LEN(vector_icrcs)][512], frame[ARRAY_LEN(vector_icrcs)][512];

	(void)state;
	for (uint32_t n = 0; n <= ARRAY_LEN(vector_icrcs); n++) {
		struct icrc_frame f[ARRAY_LEN(vector_icrcs)];
		struct wire_pkt p;

		for (uint32_t i = 0; i < n; i++) {
			const struct vector_icrc *v =
				&vector_icrcs[ARRAY_LEN(vector_icrcs) - n + i];

			memset(want[i], 0x77, sizeof(want[i]));
			f[i] = (struct icrc_frame){ .frame = frame[i],
				.len = sealed(v, want[i], sizeof(want[i]), &p),
				.l3_off = 14,
				.ipv6 = v->ipv6 };
			memcpy(frame[i], want[i], sizeof(frame[i]));
			memset(frame[i] + f[i].len - 4, 0x55, 4);
		}
		icrc_seal_burst(crc_zlib(), f, n);
		assert_memory_equal(frame, want, n * sizeof(frame[0]));
	}
}

/* ICRC-05: frames of one shape, as most bursts have them, and now and then another. */
static void
ICRC_05_seal_bursts_of_one_shape(void **state)
{
	enum { FRAMES = 32, ROOM = 256 };
	static uint8_t want[FRAMES][ROOM], frame[FRAMES][ROOM];

	(void)state;
	for (uint32_t turn = 0; turn < (FRAMES + 1) * 80; turn++) {
		const bool six = turn / 33 % 2 != 0;
		const uint32_t n = turn % (FRAMES + 1);
		const uint32_t len = icrc_head_len(six) + turn / 66 * 4;
		struct icrc_frame f[FRAMES];

		for (uint32_t i = 0; i < n; i++) {
			/* Another length, a tag, or as many bytes of the other IP version. */
			const uint32_t other = (random_byte() & 15) == 0 ? random_byte() % 3 : 3;
			const bool ipv6 = six != (other == 2 && len >= ICRC_HEAD_IPV6);
			const uint32_t l = len + (other == 0 ? 4 : 0), l3 = other == 1 ? 18 : 14;

			for (uint32_t k = 0; k < ROOM; k++)
				frame[i][k] = random_byte();
			memcpy(want[i], frame[i], ROOM);
			icrc_store(want[i] + l3 + l, reference(want[i] + l3, ipv6, l));
			f[i] = (struct icrc_frame){ frame[i], l3 + l + WIRE_ICRC_LEN, (uint16_t)l3,
				ipv6 };
		}
		icrc_seal_burst(crc_zlib(), f, n);
		assert_memory_equal(frame, want, n * sizeof(frame[0]));
	}
}

/** A payload is copied into a frame whose headers are `head` bytes from the IP header on. */
static bool
copy_sealed(struct guard *g, bool ipv6, uint32_t head, uint32_t len, bool from_start)
{
	static uint8_t payload[PACKET_MAX], frame[PACKET_MAX + 64], want[PACKET_MAX + 64];
	const uint32_t at = 14 + head, end = at + len;
	const struct icrc_frame f = { frame, end + WIRE_ICRC_LEN, 14, ipv6 };
	const uint8_t *from;

	for (uint32_t i = 0; i < len; i++)
		payload[i] = random_byte();
	from = from_start ? guard_from_start(g, payload, len) : guard_before_end(g, payload, len);
	memset(frame, 0x77, sizeof(frame));
	for (uint32_t i = 14; i < at; i++)
		frame[i] = random_byte();
	memcpy(want, frame, sizeof(want));
	memcpy(want + at, payload, len);
	icrc_store(want + end, reference(want + 14, ipv6, end - 14));
	if (!icrc_copy_seal(&f, at, from, len)) {
		/* Neither headers nor what is behind the frame. */
		assert_memory_equal(frame, want, at);
		assert_memory_equal(frame + f.len, want + f.len, (uint32_t)sizeof(frame) - f.len);
		return false;
	}
	assert_memory_equal(frame, want, sizeof(frame));
	return true;
}

/*
 * ICRC-05: copied and sealed in one pass, a frame is what it is in two: for all extensions, all
 * places where the second block may begin, and nothing before or behind the source.
 */
static void
ICRC_05_copy_and_seal(void **state)
{
	static const uint32_t lens[] = { 0, 1, 64, 640, 768, 1020, 1024, 2048, 4096 };
	struct guard g = { NULL };
	uint32_t sealed_n = 0, all = 0;

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (uint32_t ext = 0; ext <= 28; ext += 4) {
			const uint32_t head = icrc_head_len(ipv6) + ext;

			for (uint32_t len = 768; len < 768 + 5 * 64; len += 4, all++)
				sealed_n += copy_sealed(&g, ipv6, head, len, len % 8 == 0);
			for (size_t i = 0; i < ARRAY_LEN(lens); i++)
				copy_sealed(&g, ipv6, head, lens[i], i % 2 == 0);
		}
		/* Headers that no packet has: it may say no. */
		for (uint32_t len = 1024; len < 1024 + 64; len += 4)
			copy_sealed(&g, ipv6, icrc_head_len(ipv6) + 60, len, len % 8 == 0);
	}
#if ICRC_CLMUL
	if (icrc_has_ymm() || icrc_has_wide()) {
		assert_in_range(sealed_n, all * 3 / 4, all);
		assert_true(copy_sealed(&g, false, ICRC_HEAD_IPV4 + WIRE_AETH_LEN, 4096, true));
		assert_true(copy_sealed(&g, false, ICRC_HEAD_IPV4 + WIRE_RETH_LEN, 1024, true));
		assert_true(copy_sealed(&g, true, ICRC_HEAD_IPV6 + WIRE_AETH_LEN, 4096, true));
	}
#endif
}

/* ICRC-01: eight bytes in a register give what the backend gives for them in memory. */
static void
ICRC_01_eight_bytes(void **state)
{
	uint64_t word = 0x0123456789abcdef;
	uint32_t crc = 0xffffffff;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint32_t want = crc_zlib()->update(crc, &word, sizeof(word));

		assert_int_equal(icrc_update8(crc_zlib(), crc, word), want);
		crc = want;
		word = word * 6364136223846793005u + crc;
	}
}

/**
 * A packet of `len` random bytes from its IP header on, and its ICRC, right or not; nothing lies
 * behind it, or nothing before it.
 */
static void
random_packet(struct wire_pkt *p, struct guard *g, bool ipv6, uint32_t len, bool good)
{
	static uint8_t f[PACKET_MAX];
	const uint32_t all = len + WIRE_ICRC_LEN;

	for (uint32_t i = 0; i < len; i++)
		f[i] = random_byte();
	icrc_store(f + len, reference(f, ipv6, len));
	if (!good)
		f[random_byte() % all] ^= 0x10; /* in a bit that counts, or not */
	*p = (struct wire_pkt){ .frame = (random_byte() & 1) != 0 ? guard_before_end(g, f, all)
								  : guard_from_start(g, f, all),
		.frame_len = (uint16_t)all,
		.icrc_off = (uint16_t)len,
		.flags = ipv6 ? PKT_IPV6 : 0 };
}

/* ICRC-01, ICRC-06: bursts of all sizes, some packets wrong, some without an ICRC. */
static void
ICRC_01_bursts(void **state)
{
	static struct guard g[32];

	(void)state;
	for (uint32_t turn = 0; turn < 33 * 40; turn++) {
		struct wire_pkt p[32];
		uint32_t want = 0, n = turn % 33;
		/* Short ones are read another way, if the first one is. */
		uint8_t most = turn % 2 == 0 ? 0xff : 0x7f;

		for (uint32_t i = 0; i < n; i++) {
			bool ipv6 = (random_byte() & 3) == 0, good = (random_byte() & 3) != 0;
			uint32_t len = icrc_head_len(ipv6) + (random_byte() & most) +
				       ((random_byte() & 15) == 0 ? 2048 : 0);
			uint32_t icrc;

			random_packet(&p[i], &g[i], ipv6, len, good);
			memcpy(&icrc, p[i].frame + len, sizeof(icrc));
			if (reference(p[i].frame, ipv6, len) != icrc)
				want |= UINT32_C(1) << i;
			if ((random_byte() & 7) == 0) {
				p[i].icrc_off = 0;
				want &= ~(UINT32_C(1) << i);
			}
		}
		assert_int_equal(icrc_verify_burst(crc_zlib(), p, n), want);
	}
}

/* ICRC-01, ICRC-06: packets of one shape, as most bursts have them, and now and then another. */
static void
ICRC_01_bursts_of_one_shape(void **state)
{
	static struct guard g[32];

	(void)state;
	for (uint32_t turn = 0; turn < 33 * 80; turn++) {
		/* One or two blocks, and every number of them up to those of 2 KiB. */
		const bool six = turn / 33 % 2 != 0;
		const uint32_t n = turn % 33, step = turn % 2 == 0 ? 4 : 52;
		const uint32_t len = icrc_head_len(six) + turn / 66 * step;
		struct wire_pkt p[32];
		uint32_t want = 0;

		for (uint32_t i = 0; i < n; i++) {
			const bool other = (random_byte() & 31) == 0,
				   good = (random_byte() & 7) != 0;
			/* As many bytes of the other IP version are of another shape. */
			const bool another =
				other && len >= ICRC_HEAD_IPV6 && (random_byte() & 1) != 0;
			const bool ipv6 = six != another;
			const uint32_t l = other && !another ? len + 4 : len;
			uint32_t icrc;

			random_packet(&p[i], &g[i], ipv6, l, good);
			p[i].bth_off = (uint16_t)(icrc_head_len(ipv6) - WIRE_BTH_LEN);
			p[i].payload_len = (uint16_t)(l - icrc_head_len(ipv6));
			memcpy(&icrc, p[i].frame + l, sizeof(icrc));
			if (reference(p[i].frame, ipv6, l) != icrc)
				want |= UINT32_C(1) << i;
		}
		assert_int_equal(icrc_verify_burst(crc_zlib(), p, n), want);
	}
}

/** With vector registers of no more than so many bits. */
static int
with_bits(void **state)
{
	cpu_limit(*(const uint32_t *)*state);
	return 0;
}

int
main(void)
{
	static uint32_t widths[] = { 64, 128, 256, 512 };
	static const struct CMUnitTest at_each_width[] = {
		cmocka_unit_test(ICRC_04_every_single_bit),
		cmocka_unit_test(ICRC_05_seal),
		cmocka_unit_test(ICRC_05_seal_burst),
		cmocka_unit_test(ICRC_05_seal_bursts_of_one_shape),
		cmocka_unit_test(ICRC_05_copy_and_seal),
		cmocka_unit_test(ICRC_01_eight_bytes),
		cmocka_unit_test(ICRC_01_bursts),
		cmocka_unit_test(ICRC_01_bursts_of_one_shape),
	};
	static char names[ARRAY_LEN(widths) * ARRAY_LEN(at_each_width)][64];
	struct CMUnitTest tests[3 + ARRAY_LEN(names)] = {
		cmocka_unit_test(ICRC_01_backends_are_crc32),
		cmocka_unit_test(ICRC_01_vectors),
		cmocka_unit_test(ICRC_01_all_paths_agree),
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct CMUnitTest *t = &tests[3 + i];
		uint32_t *bits = &widths[i % ARRAY_LEN(widths)];

		*t = at_each_width[i / ARRAY_LEN(widths)];
		snprintf(names[i], sizeof(names[i]), "%s, %u bits", t->name, *bits);
		t->name = names[i];
		t->setup_func = with_bits;
		t->initial_state = bits;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
