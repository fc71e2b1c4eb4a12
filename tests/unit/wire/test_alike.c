/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame that is compared with one that was read in full (wire_alike.h), behind a VLAN tag, over
 * IPv6, or with faults: what is said of it is what wire_parse_any() says, and frames of one flow
 * are known. No frame has a readable byte behind it.
 */
#include "frames.h"
#include "rounds.h"
#include "wire_alike.h"

#if WIRE_WIDE

/* IPv4, tagged IPv4, IPv6, tagged IPv6. */
enum { KIND_TAG = 1, KIND_IPV6 = 2, KINDS = 4 };

/* What is special about a frame. */
enum { PLAIN, SMALLEST, MARKED, FAULTY, TRUNCATED, TRAILED, FORMS };

enum {
	PAIRS = ROUNDS(1000000),
	ROOM = 160,
	PRIORITY = 3 << 5,
	ALL_LENS = 200,
	NO_MODEL = UINT32_MAX
};

struct frame {
	uint8_t bytes[ROOM];
	uint32_t len;
	uint32_t ip, bth;
	bool ipv6;
};

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

/** Mend the checksum of an IPv4 header. */
static void
mend(struct frame *f)
{
	if (!f->ipv6)
		ipv4_fix_sum(f->bytes + f->ip);
}

/** A good SEND ONLY of 16 bytes. */
static struct frame
good(uint32_t kind)
{
	const bool tag = (kind & KIND_TAG) != 0, ipv6 = (kind & KIND_IPV6) != 0;
	const uint32_t l3 = WIRE_ETH_LEN, hdr = ipv6 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN;
	const uint32_t udp_len = WIRE_UDP_LEN + WIRE_BTH_LEN + 16 + WIRE_ICRC_LEN;
	struct frame f = { .ip = l3, .bth = l3 + hdr + WIRE_UDP_LEN, .ipv6 = ipv6 };

	memset(f.bytes, 0x5a, ROOM);
	hex_bytes(ipv6 ? v6_send : v4_send, f.bytes, ROOM);
	f.bytes[f.bth + 1] = 0x40;
	put16(f.bytes + l3 + (ipv6 ? 4 : 2), udp_len + (ipv6 ? 0 : hdr));
	put16(f.bytes + l3 + hdr + 4, udp_len);
	f.len = l3 + hdr + udp_len;
	if (tag) {
		memmove(f.bytes + 16, f.bytes + 12, f.len - 12);
		memcpy(f.bytes + 12, (const uint8_t[]){ 0x81, 0, PRIORITY, 7 }, 4);
		f.ip += WIRE_VLAN_LEN;
		f.bth += WIRE_VLAN_LEN;
		f.len += WIRE_VLAN_LEN;
	}
	mend(&f);
	return f;
}

/** Say another length, of the bytes behind the UDP header. */
static void
resize(struct frame *f, uint32_t behind_udp)
{
	const uint32_t udp_len = WIRE_UDP_LEN + behind_udp;

	put16(f->bytes + f->ip + (f->ipv6 ? 4 : 2), udp_len + (f->ipv6 ? 0 : WIRE_IPV4_LEN));
	put16(f->bytes + f->bth - 4, udp_len);
	f->len = f->bth + behind_udp;
	mend(f);
}

static struct frame
base(uint32_t kind, uint32_t form)
{
	struct frame f = good(kind);

	switch (form) {
	case SMALLEST:
		resize(&f, WIRE_BTH_LEN + WIRE_ICRC_LEN);
		break;
	case MARKED: /* CE, FECN and BECN, SE, a pad, another P_Key */
		f.bytes[f.ip + 1] |= f.ipv6 ? 0x30 : 3;
		f.bytes[f.bth + 1] = 0xb0;
		f.bytes[f.bth + 2] = 0x7f;
		f.bytes[f.bth + 4] = 0xc0;
		mend(&f);
		break;
	case FAULTY: /* RX-SYN-00, -05, -06, -08, -13 */
		f.bytes[5] ^= 1;
		f.bytes[f.ip + (f.ipv6 ? 39 : 19)] ^= 1;
		if (!f.ipv6)
			put16(f.bytes + f.ip + 6, WIRE_IPV4_MF | 5);
		f.bytes[f.bth + 1] = 0x43;
		mend(&f);
		break;
	case TRUNCATED: /* RX-HDR-03: a WRITE without a RETH */
		f.bytes[f.bth] = OP_RC_WRITE_ONLY;
		resize(&f, WIRE_BTH_LEN + 4 + WIRE_ICRC_LEN);
		break;
	case TRAILED: /* bytes behind what IP says */
		f.len += 5;
		break;
	default:
		break;
	}
	return f;
}

/** @param model out: can a frame be compared with the first? TARGET_WIRE_HALF inlines it. */
TARGET_WIRE_HALF static bool
read_after(const struct wire_port *us, const struct frame *first, const uint8_t *f, uint32_t len,
	bool *model, struct wire_pkt *out)
{
	struct wire_pkt p CACHE_ALIGNED;
	struct wire_alike alike;

	memset(&alike, 0xa5, sizeof(alike));
	wire_alike_end(&alike);
	if (wire_parse_any(us, first->bytes, first->len, &p) == WIRE_CLASS_ROCE)
		wire_alike_begin(&alike, &p);
	*model = alike.like.len != NO_MODEL;
	return wire_read_alike(&alike, f, len, out);
}

/** @return was the second one known? What is said of it is right then. */
static bool
check_at(const struct wire_port *us, const struct frame *first, const struct frame *second)
{
	static struct guard g;
	const uint8_t *f = guard_before_end(&g, second->bytes, second->len);
	struct wire_pkt a CACHE_ALIGNED, b = { 0 };
	bool model;

	memset(&a, 0xa5, sizeof(a));
	if (!read_after(us, first, f, second->len, &model, &a))
		return false;
	assert_true(model);
	assert_int_equal(wire_parse_any(us, f, second->len, &b), WIRE_CLASS_ROCE);
	assert_memory_equal(&a, &b, offsetof(struct wire_pkt, reserved));
	return true;
}

static bool
check(const struct frame *first, const struct frame *second)
{
	return check_at(&port, first, second);
}

/** May the byte differ between frames of a flow? The sum is mended. */
static bool
is_free(const struct frame *f, uint32_t at)
{
	const uint32_t ip = at - f->ip, bth = at - f->bth;

	if (at < f->ip) /* source MAC, priority and VLAN */
		return (at >= 6 && at < 12) || (f->ip == 18 && (at == 14 || at == 15));
	if (at >= f->bth)
		return bth >= 5;
	if (at >= f->bth - WIRE_UDP_LEN)
		return at < f->bth - WIRE_UDP_LEN + 2;
	if (f->ipv6) /* flow label, hop limit, source */
		return ip == 2 || ip == 3 || ip == 7 || (ip >= 8 && ip < 24);
	return ip == 4 || ip == 5 || ip == 8 || (ip >= 12 && ip < 16); /* identification, TTL */
}

/* WIRE-01, WIRE-15, RX-SYN-00..14: each byte with each value, with a sum that is mended or not. */
static void
WIRE_01_each_byte_of_an_alike_frame(void **state)
{
	uint32_t known = 0, others = 0;

	(void)state;
	if (!wire_has_half())
		return;
	for (uint32_t i = 0; i < KINDS * FORMS * ROOM * 256; i++) {
		const struct frame first = base(i % KINDS, i / KINDS % FORMS);
		const uint32_t at = i / (KINDS * FORMS) % ROOM;
		struct frame second = first;
		bool is_known;

		if (at >= first.len)
			continue;
		second.bytes[at] = (uint8_t)(i / (KINDS * FORMS * ROOM));
		is_known = check(&first, &second);
		if (second.bytes[at] == first.bytes[at])
			assert_true(is_known);
		mend(&second);
		is_known = check(&first, &second);
		if (is_free(&first, at) && (be32_load(second.bytes + first.bth + 4) & PSN_MASK) > 1)
			assert_true(is_known);
		if (at - (first.bth - 2) < 2 && second.bytes[at] != 0)
			assert_false(is_known); /* WIRE-15: who wants it looks at it */
		known += is_known;
		others += !is_known;
	}
	assert_true(known > 100000 && others > 100000);
}

/* RX-SYN-09: the sum has to be right, whatever else has changed. RX-SYN-14: and the QP number. */
static void
RX_SYN_09_sum_of_an_alike_frame(void **state)
{
	(void)state;
	if (!wire_has_half())
		return;
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		const struct frame first = good(kind);

		for (uint32_t id = 0; id <= UINT16_MAX; id++) {
			struct frame second = first;

			put16(second.bytes + first.ip + (first.ipv6 ? 2 : 4), id);
			mend(&second);
			assert_true(check(&first, &second));
			second.bytes[first.ip + 10] ^= (uint8_t)(1 + id % 254);
			assert_int_equal(check(&first, &second), first.ipv6);
		}
		for (uint32_t i = 0; i < 3; i++) {
			static const uint32_t none[] = { 0, 1, 0xffffff };
			struct frame second = first;

			second.bytes[first.bth + 5] = (uint8_t)(none[i] >> 16);
			put16(second.bytes + first.bth + 6, none[i]);
			assert_false(check(&first, &second));
			assert_false(check(&second, &second));
		}
	}
}

/* RX-SYN-00, -05, -06, -08, -13, RX-HDR-03: these faults are found in an alike frame, too. */
static void
RX_SYN_faults_of_an_alike_frame(void **state)
{
	(void)state;
	if (!wire_has_half())
		return;
	for (uint32_t i = 0; i < KINDS * FORMS; i++) {
		const struct frame first = base(i % KINDS, i / KINDS);
		struct frame second = first;
		struct wire_pkt p;

		memset(second.bytes + 6, 0x77, 6);
		second.bytes[first.bth + 11] ^= 0xff;
		second.bytes[first.bth + 8] ^= 0x80;
		assert_true(check(&first, &second));
		assert_int_equal(
			wire_parse_any(&port, second.bytes, second.len, &p), WIRE_CLASS_ROCE);
		assert_int_equal(p.faults != 0, i / KINDS == FAULTY || i / KINDS == TRUNCATED);
	}
}

/* RX-SYN-10, RX-SYN-12, RX-HDR-03: lengths beyond the frame, in it, and of another frame. */
static void
RX_SYN_10_lengths_of_alike_frames(void **state)
{
	(void)state;
	if (!wire_has_half())
		return;
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		const struct frame first = good(kind);

		for (uint32_t len = 0; len < ROOM; len++) {
			struct frame cut = first;

			cut.len = len; /* the headers say what they said */
			assert_int_equal(check(&first, &cut), len == first.len);
			assert_int_equal(check(&cut, &cut), len >= first.len);
		}
		for (uint32_t len = 0; len < ALL_LENS; len++) {
			struct frame second = first;

			put16(second.bytes + first.ip + (first.ipv6 ? 4 : 2), len);
			mend(&second);
			assert_int_equal(check(&first, &second),
				memcmp(second.bytes, first.bytes, ROOM) == 0);
			put16(second.bytes + first.bth - 4, len);
			assert_int_equal(check(&first, &second),
				be16_load(first.bytes + first.bth - 4) == len &&
					memcmp(second.bytes, first.bytes, ROOM) == 0);
		}
	}
}

/* WIRE-01: extension headers, fragments, two tags and other protocols are like nothing. */
static void
WIRE_01_other_frames_are_like_none(void **state)
{
	static const uint8_t headers[] = { 0, 6, 43, 44, 50, 51, 58, 59, 60 };
	static const uint8_t types[][2] = { { 0x81, 0 }, { 0x88, 0xa8 }, { 8, 6 } };

	(void)state;
	if (!wire_has_half())
		return;
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		const struct frame first = good(kind);
		struct frame second = first;

		for (uint32_t i = 0; i < ARRAY_LEN(headers); i++) {
			second.bytes[first.ip + (first.ipv6 ? 6 : 9)] = headers[i];
			mend(&second);
			assert_false(check(&first, &second));
			assert_false(check(&second, &second));
		}
		second = first;
		for (uint32_t i = 0; i < ARRAY_LEN(types); i++) {
			memcpy(second.bytes + first.ip - 2, types[i], 2);
			assert_false(check(&first, &second));
			assert_false(check(&second, &second));
		}
		for (uint32_t other = 0; other < KINDS; other++) {
			second = good(other);
			assert_int_equal(check(&first, &second), other == kind);
			second.len = first.len;
			assert_int_equal(check(&first, &second), other == kind);
		}
	}
}

/* WIRE-15: a frame with a UDP checksum is no model: stage 2 may have to look at each. */
static void
WIRE_15_udp_checksum_is_like_none(void **state)
{
	(void)state;
	if (!wire_has_half())
		return;
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		struct frame f = good(kind);

		assert_true(check(&f, &f));
		f.bytes[f.bth - 1] = 1;
		assert_false(check(&f, &f));
		put16(f.bytes + f.bth - 2, 0x100);
		assert_false(check(&f, &f));
	}
}

/** Change what flows differ in, and sometimes something else, or the length. */
static void
change(struct frame *f, uint32_t *seed)
{
	const uint32_t how = next(seed);

	for (uint32_t n = f->len != 0 ? next(seed) % 4 : 0; n != 0; n--)
		f->bytes[(how & 8) != 0 ? next(seed) % f->len : f->bth + 5 + next(seed) % 7] =
			(uint8_t)next(seed);
	if ((how & 1) != 0)
		memcpy(f->bytes + f->ip + (f->ipv6 ? 8 : 12), seed, 4);
	if ((how & 2) != 0)
		memcpy(f->bytes + f->ip + (f->ipv6 ? 2 : 4), seed, 2);
	if ((how & 0x30) == 0)
		f->bytes[next(seed) % f->bth] ^= (uint8_t)(1u << (next(seed) & 7));
	if ((how & 0x7c0) == 0)
		f->len = next(seed) % ROOM;
	if ((how & 0x1800) != 0)
		mend(f);
}

/* WIRE-01, RX-SYN-00..14, RX-HDR-03: pairs of any frames, to ports of all kinds. */
static void
WIRE_01_pairs_of_any_frames(void **state)
{
	uint32_t seed = 0x20261127, known[KINDS] = { 0 };

	(void)state;
	if (!wire_has_half())
		return;
	for (uint32_t i = 0; i < PAIRS; i++) {
		struct frame first = base(i % KINDS, next(&seed) % FORMS), second;
		struct wire_port us = port;

		us.require_df = (seed & 1) != 0;
		us.has_ipv4 = (seed & 0x70) != 0;
		us.has_ipv6 = (seed & 0x700) != 0;
		if ((next(&seed) & 1) != 0)
			change(&first, &seed);
		second = (next(&seed) & 7) != 0 ? first : base(i % KINDS, next(&seed) % FORMS);
		change(&second, &seed);
		known[i % KINDS] += check_at(&us, &first, &second);
	}
	for (uint32_t kind = 0; kind < KINDS; kind++)
		assert_in_range(known[kind], PAIRS / KINDS / 8, PAIRS / KINDS * 3 / 4);
}
#endif

int
main(void)
{
#if WIRE_WIDE
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(WIRE_01_each_byte_of_an_alike_frame),
		cmocka_unit_test(RX_SYN_09_sum_of_an_alike_frame),
		cmocka_unit_test(RX_SYN_faults_of_an_alike_frame),
		cmocka_unit_test(RX_SYN_10_lengths_of_alike_frames),
		cmocka_unit_test(WIRE_01_other_frames_are_like_none),
		cmocka_unit_test(WIRE_15_udp_checksum_is_like_none),
		cmocka_unit_test(WIRE_01_pairs_of_any_frames),
	};

	return cmocka_run_group_tests_name("wire_alike", tests, NULL, NULL);
#else
	return 0;
#endif
}
