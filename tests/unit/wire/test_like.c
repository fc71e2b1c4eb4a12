/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame that is compared with the one before it (wire_read_like(), wire_read_half_like()): what
 * is said of it is what wire_parse_any() says, whatever both are; and frames of one flow, and of
 * several peers, are known. Each test runs with each width of registers that this machine has.
 */
#include "frames.h"
#include "rounds.h"
#include "wire_half.h"

#if WIRE_WIDE

enum { PAIRS = ROUNDS(1000000), BASES = 6, ROOM = 160 };

/* Bytes of a header. */
enum {
	SRC_MAC = 6,
	ID = IP4 + 4,
	SUM = IP4 + 10,
	SRC_IP = IP4 + 12,
	SPORT = UDP4,
	UDP_SUM = UDP4 + 6,
	QPN = BTH4 + 5,
};

static uint32_t
next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

struct frame {
	uint8_t bytes[ROOM];
	uint32_t len;
};

/** A good frame: what follows the UDP header has this length. */
static struct frame
frame_of(uint8_t tos, uint8_t opcode, uint8_t bits, uint32_t behind_udp)
{
	struct frame f = { .len = BTH4 + behind_udp };

	hex_bytes(v4_send, f.bytes, ROOM);
	f.bytes[IP4 + 1] = tos;
	f.bytes[IP4 + 3] = (uint8_t)(WIRE_IPV4_LEN + WIRE_UDP_LEN + behind_udp);
	f.bytes[UDP4 + 5] = (uint8_t)(WIRE_UDP_LEN + behind_udp);
	f.bytes[BTH4] = opcode;
	f.bytes[BTH4 + 1] = bits;
	ipv4_fix_sum(f.bytes + IP4);
	return f;
}

/** Some kinds: small and large, pads, SE and MigReq, CE, another P_Key, no AckReq. */
static struct frame
base(uint32_t kind)
{
	struct frame f;

	switch (kind % BASES) {
	case 0:
		return frame_of(0, OP_RC_SEND_ONLY, 0x40, WIRE_BTH_LEN + 4 + WIRE_ICRC_LEN);
	case 1:
		return frame_of(3, OP_RC_SEND_ONLY, 0xf0, WIRE_BTH_LEN + 4 + WIRE_ICRC_LEN);
	case 2:
		return frame_of(
			0x68, OP_RC_WRITE_ONLY, 0x60, WIRE_BTH_LEN + 16 + 64 + WIRE_ICRC_LEN);
	case 3: /* as small as a frame can be */
		return frame_of(2, OP_RC_SEND_ONLY, 0, WIRE_BTH_LEN + WIRE_ICRC_LEN);
	case 4:
		f = frame_of(0, OP_RC_ACKNOWLEDGE, 0x40, WIRE_BTH_LEN + 4 + WIRE_ICRC_LEN);
		f.bytes[BTH4 + 8] = 0x7f; /* the reserved bits are not looked at */
		f.bytes[BTH4 + 2] = 0x7f;
		return f;
	default: /* bytes behind what IP says */
		f = frame_of(0, OP_UD_SEND_ONLY, 0x40, WIRE_BTH_LEN + 8 + 16 + WIRE_ICRC_LEN);
		f.len += 5;
		return f;
	}
}

/** @param known out: was the first one read? TARGET_WIRE_WIDE inlines what it calls. */
TARGET_WIRE_WIDE static uint32_t
after_wide(const struct frame *first, const uint8_t *f, uint32_t len, bool *known,
	struct wire_pkt *out)
{
	struct wire_like like = WIRE_LIKE_NONE;
	struct wire_front front;
	struct wire_pkt p CACHE_ALIGNED = { 0 };

	wire_front_init(&front, &port);
	*known = first->len >= WIRE_PLAIN_MIN &&
		 wire_read_wide(&front, first->bytes, first->len, &p, &like) != 0;
	return wire_read_like(&like, f, len, out);
}

TARGET_WIRE_HALF static uint32_t
after_half(const struct frame *first, const uint8_t *f, uint32_t len, bool *known,
	struct wire_pkt *out)
{
	struct wire_half_like like = WIRE_LIKE_NONE;
	struct wire_front front;
	struct wire_pkt p CACHE_ALIGNED = { 0 };

	wire_front_init(&front, &port);
	*known = first->len >= WIRE_PLAIN_MIN &&
		 wire_read_half(&front, first->bytes, first->len, &p, &like) != 0;
	return wire_read_half_like(&like, f, len, out);
}

/** A width of registers. */
static const struct form {
	bool (*has)(void); /* has this machine it? */
	uint32_t (*read_after)(const struct frame *first, const uint8_t *f, uint32_t len,
		bool *known, struct wire_pkt *out);
} wide = { wire_has_wide, after_wide }, half = { wire_has_half, after_half };

/** The one that is tested. */
static const struct form *form;

/** @return was it known? What is said of it is right then. */
static bool
check(const struct frame *first, const struct frame *second)
{
	static struct guard g;
	const uint8_t *f = guard_before_end(&g, second->bytes, second->len);
	struct wire_pkt a CACHE_ALIGNED = { .reserved = { 0 } }, b = { 0 };
	bool known;
	uint32_t qpn;

	memset(&a, 0xa5, sizeof(a));
	qpn = form->read_after(first, f, second->len, &known, &a);
	if (qpn == 0)
		return false;
	assert_true(known);
	assert_int_equal(wire_parse_any(&port, f, second->len, &b), WIRE_CLASS_ROCE);
	assert_true(b.faults == 0);
	assert_memory_equal(&a, &b, offsetof(struct wire_pkt, reserved));
	assert_int_equal(qpn, b.dest_qpn);
	return true;
}

/** May the byte differ from the one before, in a flow? The sum is mended. */
static bool
is_free(uint32_t at)
{
	return (at >= SRC_MAC && at < SRC_MAC + 6) || at == ID || at == ID + 1 ||
	       (at >= SRC_IP && at < SRC_IP + 4) || at == SPORT || at == SPORT + 1 ||
	       (at >= QPN && at < BTH4 + WIRE_BTH_LEN) || at >= BTH4 + WIRE_BTH_LEN;
}

/* WIRE-01, WIRE-15: each byte with each value, with a sum that is mended, and as it was. */
static void
WIRE_01_each_byte_of_a_like_frame(void **state)
{
	uint32_t known = 0, others = 0;

	form = *state;
	if (!form->has())
		return;
	for (uint32_t i = 0; i < BASES * ROOM * 256 * 2; i++) {
		const uint32_t at = i / BASES % ROOM;
		const struct frame first = base(i);
		struct frame second = first;
		bool is_known;

		if (at >= first.len)
			continue;
		second.bytes[at] = (uint8_t)(i / BASES / ROOM);
		if (i >= BASES * ROOM * 256)
			ipv4_fix_sum(second.bytes + IP4);
		is_known = check(&first, &second);
		if (i >= BASES * ROOM * 256 && is_free(at) &&
			be32_load(second.bytes + QPN - 1) - 2 < PSN_MASK - 2)
			assert_true(is_known);
		if ((at & ~1u) == UDP_SUM && second.bytes[at] != 0)
			assert_false(is_known); /* WIRE-15: who wants it looks at it */
		known += is_known;
		others += !is_known;
	}
	assert_true(known > 1000 && others > 1000);
}

/* RX-SYN-09: the sum has to be right, whatever else has changed; and 0 and 0xffff are one. */
static void
RX_SYN_09_sum_of_a_like_frame(void **state)
{
	const struct frame first = base(0);
	uint32_t good = 0;

	form = *state;
	if (!form->has())
		return;
	for (uint32_t id = 0; id <= UINT16_MAX; id += 5) {
		struct frame second = first;
		uint16_t sum;

		second.bytes[ID] = (uint8_t)(id >> 8);
		second.bytes[ID + 1] = (uint8_t)id;
		ipv4_fix_sum(second.bytes + IP4);
		assert_true(check(&first, &second));
		sum = be16_load(second.bytes + SUM);
		for (uint32_t wrong = 1; wrong <= UINT16_MAX; wrong += 251) {
			const uint16_t v = (uint16_t)(sum + wrong);

			second.bytes[SUM] = (uint8_t)(v >> 8);
			second.bytes[SUM + 1] = (uint8_t)v;
			good += check(&first, &second);
			if (v % UINT16_MAX != sum % UINT16_MAX)
				assert_false(check(&first, &second));
		}
	}
	assert_true(good < UINT16_MAX);
}

/** Change what flows differ in, and sometimes something else, or the length. */
static void
change(struct frame *f, uint32_t *seed)
{
	const uint32_t how = next(seed);

	for (uint32_t n = f->len != 0 ? next(seed) % 4 : 0; n != 0; n--)
		f->bytes[next(seed) % f->len] = (uint8_t)next(seed);
	if ((how & 1) != 0)
		memcpy(f->bytes + SRC_IP, seed, 4);
	if ((how & 2) != 0)
		memcpy(f->bytes + ID, seed, 2);
	if ((how & 4) != 0)
		f->bytes[QPN] = f->bytes[QPN + 1] = 0;
	if ((how & 0x30) == 0)
		f->bytes[next(seed) % BTH4] ^= (uint8_t)(1u << (next(seed) & 7));
	if ((how & 0x1c0) == 0)
		f->len = next(seed) % ROOM;
	if ((how & 0x600) != 0)
		ipv4_fix_sum(f->bytes + IP4);
}

/* WIRE-01, RX-SYN-00, -06, -08, -09, -10, -13, -14: pairs of any frames. */
static void
WIRE_01_pairs_of_any_frames(void **state)
{
	uint32_t seed = 0x20261126, known = 0;

	form = *state;
	if (!form->has())
		return;
	for (uint32_t i = 0; i < PAIRS; i++) {
		struct frame first = base(i), second;

		if ((next(&seed) & 1) != 0)
			change(&first, &seed);
		second = (next(&seed) & 7) != 0 ? first : base(i + next(&seed) % BASES);
		change(&second, &seed);
		known += check(&first, &second);
	}
	assert_true(known > PAIRS / 16 && known < PAIRS / 2);
}
#endif

int
main(void)
{
#if WIRE_WIDE
#define TEST(test, form)                                                        \
	{                                                                       \
#test "_" #form, test, NULL, NULL, (void *)(uintptr_t) & (form) \
	}
	const struct CMUnitTest tests[] = {
		TEST(WIRE_01_each_byte_of_a_like_frame, wide),
		TEST(WIRE_01_each_byte_of_a_like_frame, half),
		TEST(RX_SYN_09_sum_of_a_like_frame, wide),
		TEST(RX_SYN_09_sum_of_a_like_frame, half),
		TEST(WIRE_01_pairs_of_any_frames, wide),
		TEST(WIRE_01_pairs_of_any_frames, half),
	};

	return cmocka_run_group_tests_name("wire_like", tests, NULL, NULL);
#else
	return 0;
#endif
}
