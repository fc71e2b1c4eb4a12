/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_05_HALF_H
#define STAGE_05_HALF_H
/**
 * @file stage_05_half.h  The comparison of stage_05_plain.h with 32-byte registers.
 *
 * Owner:   stage_05_half.c; the worker's lcore.
 * Memory:  none.
 * Depends: stage_05_plain.h, wire_half.h; x86 with AVX2, asked for with wire_has_half().
 *
 * What is compared, and which bits of it count, is said there.
 */
#include "stage_05_plain.h"
#include "wire_half.h"

#if WIRE_WIDE

/** What is compared with packets of one opcode that came to one port: halves of the QP's line. */
struct plain_half {
	__m256i from_low, from_high;   /* bytes of a part of the packet */
	__m256i want_low, want_high;   /* what does not come from there */
	__m256i count_low, count_high; /* bits that count */
};

/* Where the 16 bytes of a wire_pkt begin that go to a half. */
enum { PLAIN_LOW_PART = 32, PLAIN_HIGH_PART = 24 };
_Static_assert(offsetof(struct wire_pkt, psn) == PLAIN_LOW_PART &&
		       offsetof(struct wire_pkt, payload_len) == PLAIN_HIGH_PART,
	"the parts that hold what plain_from has for the halves");

/** Eight words of a table of stage_05_plain.h. */
TARGET_WIRE_HALF static ALWAYS_INLINE __m256i
plain_half_load(const uint32_t *words)
{
	return _mm256_load_si256((const __m256i *)(const void *)words);
}

/** Bytes of `part`, by plain_from: its zeros, which move nothing, become negative. */
TARGET_WIRE_HALF static ALWAYS_INLINE __m256i
plain_half_from(const uint32_t *from, uint32_t part)
{
	return _mm256_sub_epi8(plain_half_load(from), _mm256_set1_epi8((char)part));
}

/** @param owner steer_owner(). @param opcode as of plain_kind_of(). */
TARGET_WIRE_HALF static ALWAYS_INLINE struct plain_half
plain_half_of(uint64_t owner, uint8_t opcode)
{
	const enum plain_kind kind = plain_kind_of(opcode);

	return (struct plain_half){
		.from_low = plain_half_from(plain_from, PLAIN_LOW_PART),
		.from_high = plain_half_from(plain_from + 8, PLAIN_HIGH_PART),
		.want_low = _mm256_blend_epi32(plain_half_load(plain_want[kind]),
			_mm256_set1_epi32((int)(owner >> 32)), 1 << PLAIN_OWNER),
		.want_high = plain_half_load(plain_want[kind] + 8),
		.count_low = plain_half_load(plain_count[kind]),
		.count_high = plain_half_load(plain_count[kind] + 8),
	};
}

/** 16 bytes of the packet, from here on, each at its place in a half. */
TARGET_WIRE_HALF static ALWAYS_INLINE __m256i
plain_half_move(const struct wire_pkt *p, uint32_t part, __m256i from)
{
	const __m128i *at = (const __m128i *)(const void *)((const uint8_t *)p + part);

	return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(at)), from);
}

/** A bit for each word that is not 0. */
TARGET_WIRE_HALF static ALWAYS_INLINE uint32_t
plain_half_bits(__m256i words)
{
	const __m256i zero = _mm256_cmpeq_epi32(words, _mm256_setzero_si256());

	return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(zero)) ^ 0xff;
}

/** plain_wrong() with two comparisons. */
TARGET_WIRE_HALF static ALWAYS_INLINE uint32_t
plain_half_wrong(const struct plain_half *c, const struct qp *qp, const struct wire_pkt *p)
{
	const __m256i none = _mm256_setzero_si256();
	const __m256i *line = (const __m256i *)(const void *)qp;
	__m256i a, b, low, high;

	a = plain_half_move(p, PLAIN_LOW_PART, c->from_low);
	a = _mm256_blend_epi32(a,
		_mm256_set1_epi32((int)wire_load32(p->frame + WIRE_PLAIN_IP + 12)),
		1 << PLAIN_PEER);
	b = _mm256_blend_epi32(none, _mm256_load_si256(line), PLAIN_SHARED & 0xff);
	low = _mm256_xor_si256(_mm256_xor_si256(a, b), c->want_low);
	low = _mm256_and_si256(low, c->count_low);

	a = plain_half_move(p, PLAIN_HIGH_PART, c->from_high);
	b = _mm256_blend_epi32(none, _mm256_load_si256(line + 1), PLAIN_SHARED >> 8);
	high = _mm256_xor_si256(_mm256_xor_si256(a, b), c->want_high);
	high = _mm256_blend_epi32(high, _mm256_sub_epi32(a, b), 1 << (PLAIN_PSN - 8));
	/* The lowest half word of both lanes: nothing of the other's word counts. */
	high = _mm256_blend_epi16(high, _mm256_subs_epu16(a, b), 1);
	high = _mm256_and_si256(high, c->count_high);
	if (LIKELY(_mm256_testz_si256(low, low) != 0) &&
		LIKELY(_mm256_testz_si256(high, high) != 0))
		return 0;
	return plain_half_bits(low) | plain_half_bits(high) << 8;
}
_Static_assert(PLAIN_LEN == 12 && PLAIN_PSN > 8 && PLAIN_PEER < 8,
	"the words that plain_half_wrong() treats apart");
#endif

#endif
