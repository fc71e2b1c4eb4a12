/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_WIDE_H
#define WIRE_WIDE_H
/**
 * @file wire_wide.h  What wire_plain.h reads, with 64-byte registers: one compare, few stores.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's frame.
 * Depends: base, wire_front.h; x86 with AVX-512 (F, BW, VL), asked for with wire_has_wide().
 * Spec:    WIRE-01..18.
 */
#include "wire_front.h"

#if WIRE_WIDE
#include <immintrin.h>

/* Where wire_read_wide()'s words stand in a wire_pkt: from `op` on. */
#define WIRE_WORD(field) ((offsetof(struct wire_pkt, field) - offsetof(struct wire_pkt, op)) / 2)
_Static_assert(WIRE_WORD(frame_len) == 2 && WIRE_WORD(payload_off) == 3 &&
		       WIRE_WORD(payload_len) == 4 && WIRE_WORD(icrc_off) == 5 &&
		       WIRE_WORD(l3_off) == 6 && WIRE_WORD(bth_off) == 7 && WIRE_WORD(psn) == 8 &&
		       WIRE_WORD(dest_qpn) == 10 && WIRE_WORD(pkey) == 12 &&
		       WIRE_WORD(opcode) == 13 && WIRE_WORD(pad) == 14 && WIRE_WORD(reserved) == 15,
	"the words of wire_read_wide()");

/**
 * The 32 bytes from a wire_pkt's `op` on, of a header with this opcode. They are made as words
 * a + row + b: `a` are bytes of the header as they are, little-endian; of `b` a shift and a mask
 * take bits out, and it counts as a number to add (flags, pad) or as the complement of one to
 * subtract (pad from the payload's length, the UDP length from the IP length, which leaves 0 in
 * the last word).
 */
TARGET_WIRE_WIDE static ALWAYS_INLINE __m256i
wire_words(__m512i head, uint8_t opcode)
{
	const __m512i from = _mm512_set_epi8(
		/* b */
		38, 39, 0, 43, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* */
		0, 0, 0, 0, 0, 0, 0, 43, 0, 0, 0, 0, 0, 0, 0, 0,
		/* a */
		16, 17, 0, 0, 43, 42, 44, 45, 0, 47, 48, 49, 0, 51, 52, 53, /* */
		0, 0, 0, 0, 38, 39, 38, 39, 0, 0, 0, 0, 0, 0, 0, 0);
	const __m256i b_shift = _mm256_set_epi16(0, 4, 7, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0);
	const __m256i b_mask =
		_mm256_set_epi16(-1, 3, 0x100, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0);
	const __m256i b_not = _mm256_set_epi16(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0);
	const __m256i a_mask = _mm256_set_epi16(-1, 0, (short)0xc0ff, -1, 0xff, -1, 0xff, -1, /* */
		0, 0, -1, -1, 0, 0, 0, 0);
	const __m256i less = _mm256_set_epi16(1 - WIRE_IPV4_LEN, 0, 0, 0, 0, 0, 0, 0, /* */
		0, 0, 0, 0, 0, 0, 0, 0);
	__m256i row = _mm256_zextsi128_si256(
		_mm_load_si128((const __m128i *)(const void *)&wire_rows[opcode]));
	__m256i a, b;

	head = _mm512_permutexvar_epi8(from, head);
	a = _mm512_castsi512_si256(head);
	b = _mm256_srlv_epi16(_mm512_extracti64x4_epi64(head, 1), b_shift);
	b = _mm256_ternarylogic_epi32(b, b_mask, b_not, 0x6a); /* (b & mask) ^ not */
	a = _mm256_add_epi16(_mm256_and_si256(a, a_mask), _mm256_add_epi16(row, less));
	return _mm256_add_epi16(a, b);
}

/** Do the lengths of IP, UDP and payload contradict each other, or is it beyond INT16_MAX? */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
wire_words_are_wrong(__m256i words)
{
	return !_mm256_testz_si256(words, _mm256_set_epi16(-1, 0, 0, 0, 0, 0, 0, 0, /* */
						  0, 0, 0, INT16_MIN, 0, 0, 0, 0));
}

/** The frame before: what was read of it, but for what packets of a burst differ in. */
struct wire_like {
	__m512i head;
	__m512i pkt;  /* no frame, PSN, QPN and AckReq */
	uint32_t len;
};
#define WIRE_LIKE_NONE { .len = UINT32_MAX } /* there is none; a frame may have no byte */

/** Words of a wire_pkt of two and four bytes. */
enum {
	WIRE_AT_LEN = offsetof(struct wire_pkt, frame_len) / 2,
	WIRE_AT_OPCODE = offsetof(struct wire_pkt, opcode) / 2,
	WIRE_AT_PSN = offsetof(struct wire_pkt, psn) / 4,
	WIRE_AT_QPN = offsetof(struct wire_pkt, dest_qpn) / 4,
};
_Static_assert(offsetof(struct wire_pkt, frame) == 0 && offsetof(struct wire_pkt, op) == 16 &&
		       offsetof(struct wire_pkt, flags) == 2 * WIRE_AT_OPCODE + 1,
	"wire_like_of() makes all of a wire_pkt but the frame's place");

/** @param words of its wire_pkt. */
TARGET_WIRE_WIDE static ALWAYS_INLINE struct wire_like
wire_like_of(__m512i head, __m256i words, uint32_t len)
{
	const __m256i own = _mm256_set_epi32(0, PKT_ACKREQ << 24, -1, -1, 0, 0, 0, 0);
	__m512i pkt = _mm512_alignr_epi64(_mm512_zextsi256_si512(_mm256_andnot_si256(own, words)),
		_mm512_setzero_si512(), 6);

	return (struct wire_like){ .head = head,
		.pkt = _mm512_mask_set1_epi16(pkt, BIT32(WIRE_AT_LEN), (short)len),
		.len = len };
}

/** Can a QP have this number? */
static ALWAYS_INLINE bool
wire_is_qpn(uint32_t qpn)
{
	return LIKELY(qpn - 2 <= PSN_MASK - 3);
}

/**
 * wire_match() and wire_read_plain() in one, for a frame of at least WIRE_PLAIN_MIN bytes.
 * @return the QP number, only where both say true; 0: ask them. `out` is valid after another than
 * 0, and `like`, unless NULL, is what wire_read_like() needs for frames to the same port.
 */
TARGET_WIRE_WIDE static ALWAYS_INLINE uint32_t
wire_read_wide(const struct wire_front *front, const uint8_t *frame, uint32_t len,
	struct wire_pkt *out, struct wire_like *like)
{
	__m512i head = _mm512_maskz_loadu_epi8(~UINT64_C(0) >> (64 - WIRE_PLAIN_MIN), frame);
	__m512i want = _mm512_and_si512(head, _mm512_load_si512(wire_front_mask));
	uint32_t qpn, udp_len;
	__m256i words;

	if (UNLIKELY(_mm512_cmpneq_epi32_mask(want, _mm512_load_si512(front->want)) != 0))
		return 0;
	words = wire_words(head, frame[WIRE_PLAIN_BTH]);
	if (UNLIKELY(wire_words_are_wrong(words)))
		return 0;
	udp_len = __builtin_bswap16(wire_load16(frame + WIRE_PLAIN_UDP + 4));
	if (UNLIKELY(udp_len + WIRE_PLAIN_UDP > len) ||
		UNLIKELY(!wire_ipv4_sum_is_good(frame + WIRE_PLAIN_IP)))
		return 0;
	qpn = be32_load(frame + WIRE_PLAIN_BTH + 4); /* the byte before it is 0 */
	if (UNLIKELY(!wire_is_qpn(qpn)))
		return 0;
	if (UNLIKELY((frame[WIRE_PLAIN_IP + 1] & 3) == 3))
		words = _mm256_or_si256(words, _mm256_set_epi32(0, PKT_CE << 24, 0, 0, 0, 0, 0, 0));
	_mm256_storeu_si256((__m256i *)(void *)&out->op, words);
	out->frame = frame;
	out->faults = 0;
	out->frame_len = (uint16_t)len;
	if (like != NULL)
		*like = wire_like_of(head, words, len);
	return qpn;
}

extern const uint8_t wire_like_mask[64];

/** Words of a header that may differ if its checksum is right: identification, sum, source. */
#define WIRE_LIKE_SUMMED (BIT32(9) | BIT32(12) | BIT32(13) | BIT32(14))

/**
 * The same of a frame that is like the one before it but for what is judged of each frame alone:
 * identification, source and checksum of IP, and the QP number. All else was judged there.
 * @return the QP number; 0: it is not so alike, or not good: ask wire_read_wide().
 */
TARGET_WIRE_WIDE static ALWAYS_INLINE uint32_t
wire_read_like(
	const struct wire_like *like, const uint8_t *frame, uint32_t len, struct wire_pkt *out)
{
	/* PSN, QPN, and AckReq's byte, from the BTH; the lowest byte of a word last. */
	const __m512i from = _mm512_set_epi32(0, 0, 0, 0, 0, 50 << 24, 0x2f3031, 0x333435, /* */
		0, 0, 0, 0, 0, 0, 0, 0);
	const __m512i shift = _mm512_maskz_set1_epi16(BIT32(WIRE_AT_OPCODE), 7);
	const __m512i own = _mm512_set_epi32(0, 0, 0, 0, 0, PKT_ACKREQ << 24, PSN_MASK, PSN_MASK,
		0, 0, 0, 0, 0, 0, 0, 0);
	__m512i head, pkt;
	uint32_t differ, qpn;

	if (UNLIKELY(len != like->len))
		return 0;
	head = _mm512_maskz_loadu_epi8(~UINT64_C(0) >> (64 - WIRE_PLAIN_MIN), frame);
	differ = _mm512_test_epi16_mask(
		_mm512_xor_si512(head, like->head), _mm512_load_si512(wire_like_mask));
	if (UNLIKELY(differ != 0) &&
		(UNLIKELY((differ & ~WIRE_LIKE_SUMMED) != 0) ||
			UNLIKELY(!wire_ipv4_sum_is_good(frame + WIRE_PLAIN_IP))))
		return 0;
	qpn = be32_load(frame + WIRE_PLAIN_BTH + 4); /* the byte before it is 0, as it was */
	if (UNLIKELY(!wire_is_qpn(qpn)))
		return 0;
	pkt = _mm512_srlv_epi16(_mm512_permutexvar_epi8(from, head), shift);
	pkt = _mm512_ternarylogic_epi32(pkt, own, like->pkt, 0xea); /* (pkt & own) | like */
	pkt = _mm512_mask_set1_epi64(pkt, 1, (long long)(uintptr_t)frame);
	_mm512_storeu_si512(out, pkt);
	return qpn;
}
_Static_assert(WIRE_AT_PSN == 8 && WIRE_AT_QPN == 9 && WIRE_AT_OPCODE == 21 && PKT_ACKREQ == 1,
	"the words of wire_read_like()");
#endif

#endif
