/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICRCs on CPUs that multiply two pairs at once, in 256-bit registers.
 *
 * As in icrc_wide.h the message begins with four dummy bytes and is cut from its end on, so that
 * the first block is the short one. Each block but those in the middle of a long packet is
 * multiplied by its own distance to the end, so no multiplication waits for another. There are no
 * masked loads in AVX2: the first block is loaded from the packet's start and shifted by a shuffle.
 */
#include "icrc_internal.h"
#include "invariant.h"

#if ICRC_CLMUL
#include "icrc_fold.h"

#define TARGET_YMM __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.1")))
#define DUMMY      4u
#define BLOCK      32u
#define HALF       16u
#define LONG       8 /* blocks behind the first from which on four are folded side by side */

/**
 * Multipliers of a block that is moved ahead by one block, by two, and so on: of 128 bits the first
 * one is for the first 64, x^(n + 32) modulo 0x04C11DB7 and bit-reflected, the other one is
 * x^(n - 32).
 */
static const uint64_t ahead_table[LONG][2] CACHE_ALIGNED = {
	{ 0x1751997d0, 0x0ccaa009e }, /* 128 bits, of the first half of a sum */
	{ 0x0f1da05aa, 0x15a546366 }, /* 256 bits */
	{ 0x154442bd4, 0x1c6e41596 },
	{ 0x0df068dc2, 0x18cb44e58 },
	{ 0x1e88ef372, 0x14a7fe880 },
	{ 0x0e3543be0, 0x14b57d3f0 },
	{ 0x1821d8bc0, 0x12e958ac4 },
	{ 0x19159bb02, 0x125f17dfc },
};

/* What a remainder is that was taken over the right ICRC, too, and a sum that has it. */
#define RESIDUE   0xdebb20e3u
#define SUM_RIGHT _mm256_set_epi32(-1, 0, 0, 0, 0, 0, 0, 0)
#define SUM_WRONG _mm256_setzero_si256()

TARGET_YMM static ALWAYS_INLINE __m128i
load_half(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

TARGET_YMM static ALWAYS_INLINE __m256i
load(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/** The multipliers of both halves of a block with n others behind it; of the first half, if 0. */
TARGET_YMM static ALWAYS_INLINE __m256i
ahead(uint32_t n)
{
	return _mm256_broadcastsi128_si256(load_half((const uint8_t *)ahead_table[n]));
}

TARGET_YMM static ALWAYS_INLINE __m256i
times(__m256i a, __m256i by)
{
	return _mm256_xor_si256(
		_mm256_clmulepi64_epi128(a, by, 0x00), _mm256_clmulepi64_epi128(a, by, 0x11));
}

/** `sum` plus a block that is moved ahead. */
TARGET_YMM static ALWAYS_INLINE __m256i
plus(__m256i sum, __m256i a, __m256i by)
{
	return _mm256_xor_si256(sum, times(a, by));
}

/** How a packet is cut into blocks. */
struct cut {
	const uint8_t *mask; /* of the first block */
	uint32_t first;      /* bytes of the first block, the dummy's included */
	uint32_t behind;     /* blocks behind it */
};

/** @param all bytes of the message, with the dummy. @return false: it is not for this file. */
static ALWAYS_INLINE bool
cut(struct cut *c, bool ipv6, uint32_t all)
{
	c->first = (all - 1) % BLOCK + 1;
	c->behind = (all - 1) / BLOCK;
	c->mask = icrc_masks[ipv6] + ICRC_MASK_LEN - BLOCK + c->first;
	/* No RoCE packet has such a length: a part of the dummy would be in the second block. */
	return c->first >= DUMMY;
}

/** What moves n bytes to the end of a block. @param over those of its upper half. */
TARGET_YMM static ALWAYS_INLINE __m256i
first_shuffle(uint32_t n, uint32_t over)
{
	return _mm256_set_m128i(
		load_half(icrc_shift_up + n - over), load_half(icrc_shift_up + over));
}

/** So many bytes of the packet, behind zeros. @param up first_shuffle(). */
TARGET_YMM static ALWAYS_INLINE __m256i
first_bytes(const uint8_t *l3, uint32_t over, __m256i up)
{
	const __m256i at = _mm256_set_m128i(load_half(l3 + over), load_half(l3));

	return _mm256_shuffle_epi8(at, up);
}

/** The first block: zeros, the dummy, and so many bytes of the packet that the block is full. */
TARGET_YMM static ALWAYS_INLINE __m256i
first_of(const uint8_t *l3, const struct cut *c)
{
	const uint32_t n = c->first - DUMMY, over = n > HALF ? n - HALF : 0;

	return _mm256_or_si256(first_bytes(l3, over, first_shuffle(n, over)), load(c->mask));
}

/** The second or third one, in which bytes of the header may be masked. */
TARGET_YMM static ALWAYS_INLINE __m256i
masked(const uint8_t *p, const struct cut *c, uint32_t i)
{
	return _mm256_or_si256(load(p), load(c->mask + i * BLOCK));
}

TARGET_YMM static ALWAYS_INLINE __m256i
block_at(const uint8_t *p, const struct blocks from)
{
	__m256i v;

	if (!from.away)
		return load(p);
	v = load(p + from.shift);
	_mm256_storeu_si256((__m256i *)(uintptr_t)p, v);
	return v;
}

/**
 * What has the remainder of a message once its first half is moved ahead, by 128 bits: these four
 * blocks, and n behind them, at p.
 */
TARGET_YMM static ALWAYS_INLINE __m256i
sum_long(__m256i a[4], const uint8_t *p, uint32_t n, const struct blocks from)
{
	const __m256i by = ahead(4);
	__m256i sum;

	for (; n >= 4; n -= 4, p += 4 * BLOCK) {
		a[0] = plus(block_at(p, from), a[0], by);
		a[1] = plus(block_at(p + BLOCK, from), a[1], by);
		a[2] = plus(block_at(p + 2 * BLOCK, from), a[2], by);
		a[3] = plus(block_at(p + 3 * BLOCK, from), a[3], by);
	}
	sum = _mm256_xor_si256(times(a[0], ahead(n + 3)), times(a[1], ahead(n + 2)));
	sum = plus(sum, a[2], ahead(n + 1));
	if (n == 0)
		return _mm256_xor_si256(sum, a[3]);
	sum = plus(sum, a[3], ahead(n));
	for (; n > 1; n--, p += BLOCK)
		sum = plus(sum, block_at(p, from), ahead(n - 1));
	return _mm256_xor_si256(sum, block_at(p, from));
}

/** The same of a packet. */
TARGET_YMM static ALWAYS_INLINE __m256i
sum_of(const uint8_t *l3, const struct cut *c)
{
	const uint8_t *p = l3 + c->first - DUMMY;
	const __m256i a = first_of(l3, c), b = masked(p, c, 1);
	uint32_t n = c->behind;
	__m256i sum, third;

	if (n < 2)
		return plus(b, a, ahead(1));
	third = masked(p + BLOCK, c, 2);
	if (n >= LONG) {
		__m256i four[4] = { a, b, third, load(p + 2 * BLOCK) };

		return sum_long(four, p + 3 * BLOCK, n - 3, (struct blocks){ false, 0 });
	}
	sum = _mm256_xor_si256(times(a, ahead(n)), times(b, ahead(n - 1)));
	if (n == 2)
		return _mm256_xor_si256(sum, third);
	sum = plus(sum, third, ahead(n - 2));
	for (p += 2 * BLOCK, n -= 2; n > 1; n--, p += BLOCK)
		sum = plus(sum, load(p), ahead(n - 1));
	return _mm256_xor_si256(sum, load(p));
}

/** How packets of one length are cut: the first block's shuffle, the masks of the first three. */
struct shape {
	__m256i up;
	__m256i mask[3];
	uint32_t over;   /* where the upper half of the first block is read */
	uint32_t skip;   /* bytes of the packet in the first block */
	uint32_t behind; /* blocks behind it */
};

#define ALIKE 4u /* most blocks behind the first of what sum_alike() takes */

/** @param all as of cut(). @return false: it is not for sum_alike(). */
TARGET_YMM static ALWAYS_INLINE bool
shape_make(struct shape *s, bool ipv6, uint32_t all)
{
	struct cut c;

	if (UNLIKELY(!cut(&c, ipv6, all)) || c.behind == 0 || c.behind > ALIKE)
		return false;
	s->behind = c.behind;
	s->skip = c.first - DUMMY;
	s->over = s->skip > HALF ? s->skip - HALF : 0;
	s->up = first_shuffle(s->skip, s->over);
	for (uint32_t i = 0; i < 3; i++)
		s->mask[i] = load(c.mask + i * BLOCK);
	return true;
}

/** sum_of() of such a packet. @param behind constant; that of the shape. */
TARGET_YMM static ALWAYS_INLINE __m256i
sum_alike(const uint8_t *l3, const struct shape *s, const uint32_t behind)
{
	const uint8_t *p = l3 + s->skip;
	const __m256i a = _mm256_or_si256(first_bytes(l3, s->over, s->up), s->mask[0]);
	const __m256i b = _mm256_or_si256(load(p), s->mask[1]);
	__m256i third;

	if (behind == 1)
		return plus(b, a, ahead(1));
	third = _mm256_or_si256(load(p + BLOCK), s->mask[2]);
	if (behind == 2)
		return plus(plus(third, b, ahead(1)), a, ahead(2));
	p += 2 * BLOCK;
	if (behind == 3)
		return plus(plus(plus(load(p), third, ahead(1)), b, ahead(2)), a, ahead(3));
	return plus(
		plus(plus(plus(load(p + BLOCK), load(p), ahead(1)), third, ahead(2)), b, ahead(3)),
		a, ahead(4));
}

/** fold_reduce() of two sums at once: a remainder stands in the second word of each half. */
TARGET_YMM static ALWAYS_INLINE __m256i
reduce_two(__m256i a, __m256i b)
{
	const __m256i low32 = _mm256_set1_epi64x(UINT32_MAX);
	const __m256i fold_128 = _mm256_broadcastsi128_si256(FOLD_128);
	const __m256i fold_64 = _mm256_broadcastsi128_si256(FOLD_64);
	const __m256i barrett = _mm256_broadcastsi128_si256(BARRETT);
	__m256i v = plus(_mm256_permute2x128_si256(a, b, 0x31),
		_mm256_permute2x128_si256(a, b, 0x20), fold_128);
	__m256i t;

	v = _mm256_xor_si256(
		_mm256_bsrli_epi128(v, 8), _mm256_clmulepi64_epi128(v, fold_128, 0x10));
	t = _mm256_clmulepi64_epi128(_mm256_and_si256(v, low32), fold_64, 0x00);
	v = _mm256_xor_si256(_mm256_bsrli_epi128(v, 4), t);
	t = _mm256_clmulepi64_epi128(_mm256_and_si256(v, low32), barrett, 0x10);
	t = _mm256_clmulepi64_epi128(_mm256_and_si256(t, low32), barrett, 0x00);
	return _mm256_xor_si256(v, t);
}

TARGET_YMM static ALWAYS_INLINE uint32_t
reduce(__m256i a)
{
	return (uint32_t)_mm256_extract_epi32(reduce_two(a, a), 1);
}

TARGET_YMM uint32_t
icrc_whole_ymm(const uint8_t *l3, bool ipv6, uint32_t len)
{
	struct cut c;

	ASSERT(len >= icrc_head_len(ipv6));
	if (UNLIKELY(!cut(&c, ipv6, DUMMY + len)))
		return icrc_whole_clmul(l3, ipv6, len);
	return reduce(sum_of(l3, &c));
}

/** A sum of a packet that is not cut. */
TARGET_YMM static __attribute__((noinline)) __m256i
sum_of_other(const struct wire_pkt *p)
{
	uint32_t icrc, got;

	if (p->icrc_off == 0)
		return SUM_RIGHT;
	memcpy(&icrc, p->frame + p->icrc_off, sizeof(icrc)); /* x86 is little-endian, too */
	got = icrc_whole_clmul(p->frame + p->l3_off, (p->flags & PKT_IPV6) != 0,
		(uint32_t)p->icrc_off - p->l3_off);
	return (got ^ icrc) == UINT32_MAX ? SUM_RIGHT : SUM_WRONG;
}

/** The sum of a packet and its ICRC. */
TARGET_YMM static ALWAYS_INLINE __m256i
sum_of_pkt(const struct wire_pkt *p)
{
	struct cut c;

	if (UNLIKELY(!cut(&c, (p->flags & PKT_IPV6) != 0,
		    DUMMY + (uint32_t)p->icrc_off - p->l3_off + (uint32_t)WIRE_ICRC_LEN)) ||
		UNLIKELY(p->icrc_off == 0))
		return sum_of_other(p);
	ASSERT(p->icrc_off + WIRE_ICRC_LEN <= p->frame_len);
	return sum_of(p->frame + p->l3_off, &c);
}

/** Bits 0 and 1: is the remainder of a, b not that of a packet with its ICRC? */
TARGET_YMM static ALWAYS_INLINE uint32_t
wrong_of(__m256i a, __m256i b)
{
	const __m256i same = _mm256_cmpeq_epi32(reduce_two(a, b), _mm256_set1_epi32((int)RESIDUE));
	const uint32_t words = ~(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(same));

	return (words >> 1 & 1) | (words >> 4 & 2);
}

/** Packets of the first one's shape, two a turn. @return how many, up to one of another shape. */
TARGET_YMM static ALWAYS_INLINE uint32_t
verify_alike(const struct wire_pkt *p, uint32_t n, const struct shape *s, const uint32_t behind,
	uint32_t *bad)
{
	const uint64_t shape = icrc_shape_of(p);
	const uint32_t l3 = p->l3_off;
	uint32_t wrong = 0, i;

	for (i = 0; i + 2 <= n; i += 2) {
		if (UNLIKELY(((icrc_shape_of(&p[i]) ^ shape) |
				     (icrc_shape_of(&p[i + 1]) ^ shape)) != 0))
			break;
		wrong |= wrong_of(sum_alike(p[i].frame + l3, s, behind),
				 sum_alike(p[i + 1].frame + l3, s, behind))
			 << i;
	}
	*bad = wrong;
	return i;
}

/** The same of any burst. @return how many: 0 where the first one is not such. */
TARGET_YMM static ALWAYS_INLINE uint32_t
verify_front(const struct wire_pkt *p, uint32_t n, uint32_t *bad)
{
	const bool ipv6 = (p->flags & PKT_IPV6) != 0;
	const int head = (int)icrc_head_len(ipv6) - WIRE_BTH_LEN;
	struct shape s;

	if (n < 2 || p->bth_off - p->l3_off != head || p->icrc_off <= p->bth_off ||
		!shape_make(&s, ipv6, DUMMY + (uint32_t)p->icrc_off - p->l3_off + WIRE_ICRC_LEN))
		return 0;
	switch (s.behind) {
	case 1:
		return verify_alike(p, n, &s, 1, bad);
	case 2:
		return verify_alike(p, n, &s, 2, bad);
	case 3:
		return verify_alike(p, n, &s, 3, bad);
	default:
		return verify_alike(p, n, &s, ALIKE, bad);
	}
}

TARGET_YMM uint32_t
icrc_verify_ymm(const struct wire_pkt *p, uint32_t n)
{
	uint32_t bad = 0, i;

	for (i = verify_front(p, n, &bad); i + 2 <= n; i += 2)
		bad |= wrong_of(sum_of_pkt(&p[i]), sum_of_pkt(&p[i + 1])) << i;
	if (i < n)
		bad |= wrong_of(sum_of_pkt(&p[i]), SUM_RIGHT) << i;
	return bad;
}

static ALWAYS_INLINE bool
cut_frame(struct cut *c, const struct icrc_frame *f)
{
	const uint32_t len = f->len - WIRE_ICRC_LEN - f->l3_off;

	ASSERT(f->len >= f->l3_off + icrc_head_len(f->ipv6) + WIRE_ICRC_LEN);
	return cut(c, f->ipv6, DUMMY + len);
}

static void
seal_one(const struct icrc_frame *f)
{
	seal(f, ~icrc_whole_ymm(f->frame + f->l3_off, f->ipv6, f->len - WIRE_ICRC_LEN - f->l3_off));
}

/** Store the ICRCs of two frames with these sums. */
TARGET_YMM static ALWAYS_INLINE void
seal_two(const struct icrc_frame *f, __m256i a, __m256i b)
{
	const __m256i crc = reduce_two(a, b);

	seal(&f[0], ~(uint32_t)_mm256_extract_epi32(crc, 1));
	seal(&f[1], ~(uint32_t)_mm256_extract_epi32(crc, 5));
}

/** Frames of the first one's shape, two a turn. @return how many, up to one of another shape. */
TARGET_YMM static ALWAYS_INLINE uint32_t
seal_alike(const struct icrc_frame *f, uint32_t n, const struct shape *s, const uint32_t behind)
{
	const uint32_t len = f->len, l3 = f->l3_off;
	const bool ipv6 = f->ipv6;
	uint32_t i;

	for (i = 0; i + 2 <= n; i += 2) {
		const struct icrc_frame *g = &f[i];

		if (UNLIKELY(((g[0].len ^ len) | (g[1].len ^ len) | (g[0].l3_off ^ l3) |
				     (g[1].l3_off ^ l3) | (g[0].ipv6 ^ ipv6) |
				     (g[1].ipv6 ^ ipv6)) != 0))
			break;
		seal_two(g, sum_alike(g[0].frame + l3, s, behind),
			sum_alike(g[1].frame + l3, s, behind));
	}
	return i;
}

/** The same of any frames. @return how many: 0 where the first one is not such. */
TARGET_YMM static ALWAYS_INLINE uint32_t
seal_front(const struct icrc_frame *f, uint32_t n)
{
	struct shape s;

	if (n < 2 || !shape_make(&s, f->ipv6, DUMMY + f->len - WIRE_ICRC_LEN - f->l3_off))
		return 0;
	switch (s.behind) {
	case 1:
		return seal_alike(f, n, &s, 1);
	case 2:
		return seal_alike(f, n, &s, 2);
	case 3:
		return seal_alike(f, n, &s, 3);
	default:
		return seal_alike(f, n, &s, ALIKE);
	}
}

TARGET_YMM void
icrc_seal_ymm(const struct icrc_frame *f, uint32_t n)
{
	uint32_t i;

	for (i = seal_front(f, n); i + 2 <= n; i += 2) {
		struct cut a, b;

		if (UNLIKELY(!cut_frame(&a, &f[i])) || UNLIKELY(!cut_frame(&b, &f[i + 1]))) {
			seal_one(&f[i]);
			seal_one(&f[i + 1]);
			continue;
		}
		seal_two(&f[i], sum_of(f[i].frame + f[i].l3_off, &a),
			sum_of(f[i + 1].frame + f[i + 1].l3_off, &b));
	}
	if (i < n)
		seal_one(&f[i]);
}

TARGET_YMM bool
icrc_copy_ymm(const struct icrc_frame *f, uint32_t at, const uint8_t *from, uint32_t len)
{
	const uint8_t *l3 = f->frame + f->l3_off, *p;
	uint8_t *payload = f->frame + at;
	__m256i four[4];
	struct cut c;

	if (UNLIKELY(!cut_frame(&c, f)) || UNLIKELY(c.behind < LONG) ||
		UNLIKELY(at + len + WIRE_ICRC_LEN != f->len))
		return false;
	p = l3 + c.first - DUMMY;
	/* The first four blocks have all of the header; what else they have is copied before. */
	if (UNLIKELY(payload > p + 3 * BLOCK))
		return false;
	memcpy(payload, from, (size_t)(p + 3 * BLOCK - payload));
	four[0] = first_of(l3, &c);
	four[1] = masked(p, &c, 1);
	four[2] = masked(p + BLOCK, &c, 2);
	four[3] = load(p + 2 * BLOCK);
	seal(f, ~reduce(sum_long(four, p + 3 * BLOCK, c.behind - 3,
			(struct blocks){ true, from - payload })));
	return true;
}
#endif
