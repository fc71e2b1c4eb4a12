/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_HALF_H
#define WIRE_HALF_H
/**
 * @file wire_half.h  What wire_wide.h reads, with 32-byte registers: two compares, two stores.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's frame.
 * Depends: wire_wide.h; x86 with AVX2, asked for with wire_has_half().
 * Spec:    WIRE-01..18.
 *
 * A header is read in two pieces that overlap: the smallest packet is shorter than two registers.
 */
#include "wire_wide.h"

#if WIRE_WIDE
#define TARGET_WIRE_HALF __attribute__((target("avx2,avx,sse4.1")))

/** May wire_read_half() be called on this machine? Cost: a load. */
static inline bool
wire_has_half(void)
{
	return cpu_has(CPU_AVX2);
}

enum { WIRE_HALF_END = WIRE_PLAIN_MIN - 32 }; /* where the second piece begins */

/** The bytes of a header that are looked at; also a pattern or a mask of them. */
struct wire_half {
	__m256i begin;
	__m256i end;
};

/** 32 bytes at any address: gcc makes two loads of _mm256_loadu_si256() where it tunes for all. */
TARGET_WIRE_HALF static ALWAYS_INLINE __m256i
wire_half_piece(const void *at)
{
	return _mm256_lddqu_si256((const __m256i *)at);
}

/** @param at 64 bytes of a pattern or a mask, or a frame of at least WIRE_PLAIN_MIN bytes. */
TARGET_WIRE_HALF static ALWAYS_INLINE struct wire_half
wire_half_load(const uint8_t *at)
{
	return (struct wire_half){
		.begin = wire_half_piece(at),
		.end = wire_half_piece(at + WIRE_HALF_END),
	};
}

/** The bits that both have. */
TARGET_WIRE_HALF static ALWAYS_INLINE struct wire_half
wire_half_and(struct wire_half a, struct wire_half b)
{
	return (struct wire_half){
		.begin = _mm256_and_si256(a.begin, b.begin),
		.end = _mm256_and_si256(a.end, b.end),
	};
}

/** The bits in which they differ. */
TARGET_WIRE_HALF static ALWAYS_INLINE struct wire_half
wire_half_xor(struct wire_half a, struct wire_half b)
{
	return (struct wire_half){
		.begin = _mm256_xor_si256(a.begin, b.begin),
		.end = _mm256_xor_si256(a.end, b.end),
	};
}

/** Has it no bit? */
TARGET_WIRE_HALF static ALWAYS_INLINE bool
wire_half_is_zero(struct wire_half a)
{
	const __m256i all = _mm256_or_si256(a.begin, a.end);

	return _mm256_testz_si256(all, all) != 0;
}

/** Four bytes of WIRE_LIKE_SUMMED, from its word `i` on. */
#define WIRE_HALF_SUMMED(i)                                     \
	((int)((WIRE_LIKE_SUMMED >> (i)&1) * UINT32_C(0xffff) | \
		(WIRE_LIKE_SUMMED >> ((i) + 1) & 1) * UINT32_C(0xffff0000)))

/** Are the bits of WIRE_LIKE_SUMMED the only ones? */
TARGET_WIRE_HALF static ALWAYS_INLINE bool
wire_half_is_summed(struct wire_half differ)
{
	enum { END = WIRE_HALF_END / 2 };
	const __m256i begin = _mm256_set_epi32(WIRE_HALF_SUMMED(14), WIRE_HALF_SUMMED(12),
		WIRE_HALF_SUMMED(10), WIRE_HALF_SUMMED(8), WIRE_HALF_SUMMED(6), WIRE_HALF_SUMMED(4),
		WIRE_HALF_SUMMED(2), WIRE_HALF_SUMMED(0));
	const __m256i end = _mm256_set_epi32(WIRE_HALF_SUMMED(END + 14), WIRE_HALF_SUMMED(END + 12),
		WIRE_HALF_SUMMED(END + 10), WIRE_HALF_SUMMED(END + 8), WIRE_HALF_SUMMED(END + 6),
		WIRE_HALF_SUMMED(END + 4), WIRE_HALF_SUMMED(END + 2), WIRE_HALF_SUMMED(END));

	return _mm256_testc_si256(begin, differ.begin) != 0 &&
	       _mm256_testc_si256(end, differ.end) != 0;
}
_Static_assert(WIRE_HALF_END % 2 == 0 && WIRE_HALF_END / 2 + 15 < 32,
	"the words of WIRE_LIKE_SUMMED in the second piece");

/** The frame before, as struct wire_like has it. WIRE_LIKE_NONE: there is none. */
struct wire_half_like {
	struct wire_half head;
	__m256i pkt; /* up to `bth_off`, no frame */
	__m128i bth; /* no PSN, QPN and AckReq */
	uint32_t len;
};
_Static_assert(offsetof(struct wire_pkt, frame) == 0 && offsetof(struct wire_pkt, psn) == 32 &&
		       offsetof(struct wire_pkt, dest_qpn) == 36 &&
		       offsetof(struct wire_pkt, flags) == 43 &&
		       offsetof(struct wire_pkt, reserved) == 46 && PKT_ACKREQ == 1 &&
		       WIRE_PLAIN_BTH + sizeof(__m128i) <= WIRE_PLAIN_MIN,
	"the pieces of a wire_half_like");

/** @param p a packet that was read; it begins a cache line. */
TARGET_WIRE_HALF static ALWAYS_INLINE struct wire_half_like
wire_half_like_of(struct wire_half head, const struct wire_pkt *p, uint32_t len)
{
	const __m256i pkt = _mm256_load_si256((const __m256i *)(const void *)p);
	const __m128i bth = _mm_load_si128((const __m128i *)(const void *)&p->psn);

	return (struct wire_half_like){
		.head = head,
		.pkt = _mm256_and_si256(pkt, _mm256_set_epi64x(-1, -1, -1, 0)),
		.bth = _mm_and_si128(bth, _mm_set_epi32(0xffff, ~(PKT_ACKREQ << 24), 0, 0)),
		.len = len,
	};
}

/**
 * wire_match() and wire_read_plain() in one, for a frame of at least WIRE_PLAIN_MIN bytes.
 * @return the QP number, only where both say true; 0: ask them. `out`, which begins a cache
 * line, is valid after another than 0, and `like` is what wire_read_half_like() needs for frames to
 * the same port.
 */
TARGET_WIRE_HALF static ALWAYS_INLINE uint32_t
wire_read_half(const struct wire_front *front, const uint8_t *frame, uint32_t len,
	struct wire_pkt *out, struct wire_half_like *like)
{
	const struct wire_half head = wire_half_load(frame);
	const struct wire_half seen = wire_half_and(head, wire_half_load(wire_front_mask));

	/* For a port without IPv4 the pattern has a bit that the mask has not. */
	if (UNLIKELY(!wire_half_is_zero(wire_half_xor(seen, wire_half_load(front->want)))) ||
		UNLIKELY(!wire_read_plain(frame, len, out)))
		return 0;
	*like = wire_half_like_of(head, out, len);
	return out->dest_qpn;
}

/** Store what is read of a frame like that one: PSN, QPN and AckReq are its own. */
TARGET_WIRE_HALF static ALWAYS_INLINE void
wire_half_like_store(const struct wire_half_like *like, const uint8_t *frame, uint32_t bth_off,
	struct wire_pkt *out)
{
	/* PSN, QPN, and AckReq's byte, from the BTH; the lowest byte of a word last. */
	const __m128i from =
		_mm_set_epi32(-1, 8 << 24 | 0xffffff, (int)0xff050607, (int)0xff090a0b);
	const __m128i shift = _mm_set_epi32(0, 7, 0, 0);
	const __m128i own = _mm_set_epi32(0, PKT_ACKREQ << 24, PSN_MASK, PSN_MASK);
	__m128i bth = _mm_loadu_si128((const __m128i *)(const void *)(frame + bth_off));

	bth = _mm_and_si128(_mm_srlv_epi32(_mm_shuffle_epi8(bth, from), shift), own);
	_mm256_store_si256((__m256i *)(void *)out,
		_mm256_or_si256(like->pkt,
			_mm256_zextsi128_si256(_mm_cvtsi64_si128((long long)(uintptr_t)frame))));
	_mm_store_si128((__m128i *)(void *)&out->psn, _mm_or_si128(bth, like->bth));
}

/**
 * The same of a frame that is like the one before it but for what is judged of each frame alone:
 * as wire_read_like(). @return the QP number; 0: it is not so alike, or not good.
 */
TARGET_WIRE_HALF static ALWAYS_INLINE uint32_t
wire_read_half_like(
	const struct wire_half_like *like, const uint8_t *frame, uint32_t len, struct wire_pkt *out)
{
	struct wire_half differ;
	uint32_t qpn;

	if (UNLIKELY(len != like->len))
		return 0;
	differ = wire_half_and(
		wire_half_xor(wire_half_load(frame), like->head), wire_half_load(wire_like_mask));
	if (UNLIKELY(!wire_half_is_zero(differ)) &&
		(UNLIKELY(!wire_half_is_summed(differ)) ||
			UNLIKELY(!wire_ipv4_sum_is_good(frame + WIRE_PLAIN_IP))))
		return 0;
	qpn = be32_load(frame + WIRE_PLAIN_BTH + 4); /* the byte before it is 0, as it was */
	if (UNLIKELY(!wire_is_qpn(qpn)))
		return 0;
	wire_half_like_store(like, frame, WIRE_PLAIN_BTH, out);
	return qpn;
}
#endif

#endif
