/* SPDX-License-Identifier: BSD-3-Clause */
/* ICRCs of whole packets and of frames that are made, on CPUs that multiply four pairs at once. */
#include "icrc_wide.h"

#if ICRC_CLMUL
/** Bits 64 - n + DUMMY and up, for n bytes of a first block: those that are in the packet. */
const uint64_t icrc_in_packet[BLOCK + 1] = {
#define BITS(n)    ~UINT64_C(0) << (BLOCK - (n)) << DUMMY
#define BITS_4(n)  BITS(n), BITS((n) + 1), BITS((n) + 2), BITS((n) + 3)
#define BITS_16(n) BITS_4(n), BITS_4((n) + 4), BITS_4((n) + 8), BITS_4((n) + 12)
	0, BITS(1), BITS(2), BITS(3), BITS_4(4), BITS_4(8), BITS_4(12), BITS_16(16), BITS_16(32),
	BITS_16(48), BITS(64)
};

TARGET_WIDE uint32_t
icrc_whole_wide(const uint8_t *l3, bool ipv6, uint32_t len)
{
	ASSERT(len >= icrc_head_len(ipv6));
	return whole(l3, ipv6, len);
}

TARGET_WIDE static ALWAYS_INLINE __m512i
parts_of_frame(const struct icrc_frame *f)
{
	const uint32_t len = f->len - WIRE_ICRC_LEN - f->l3_off;
	__m512i a;

	ASSERT(f->len >= f->l3_off + icrc_head_len(f->ipv6) + WIRE_ICRC_LEN);
	if (!f->ipv6 && parts_short(f->frame + f->l3_off, len, &a))
		return a;
	return parts(f->frame + f->l3_off, f->ipv6, len);
}

TARGET_WIDE void
icrc_seal_wide(const struct icrc_frame *f, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 4 <= n; i += 4) {
		__m128i crc = _mm_xor_si128(_mm_set1_epi32(-1),
			remainders(parts_of_frame(&f[i]), parts_of_frame(&f[i + 1]),
				parts_of_frame(&f[i + 2]), parts_of_frame(&f[i + 3])));

		seal(&f[i], (uint32_t)_mm_extract_epi32(crc, 0));
		seal(&f[i + 1], (uint32_t)_mm_extract_epi32(crc, 1));
		seal(&f[i + 2], (uint32_t)_mm_extract_epi32(crc, 2));
		seal(&f[i + 3], (uint32_t)_mm_extract_epi32(crc, 3));
	}
	for (; i < n; i++)
		seal(&f[i], ~whole(f[i].frame + f[i].l3_off, f[i].ipv6,
				    f[i].len - WIRE_ICRC_LEN - f[i].l3_off));
}

TARGET_WIDE bool
icrc_copy_wide(const struct icrc_frame *f, uint32_t at, const uint8_t *from, uint32_t len)
{
	const uint32_t l3_len = f->len - WIRE_ICRC_LEN - f->l3_off, first = first_len(l3_len);
	const uint8_t *l3 = f->frame + f->l3_off, *end = l3 + l3_len;
	uint8_t *payload = f->frame + at, *p = f->frame + f->l3_off + first - DUMMY;
	const struct blocks away = { true, from - payload };
	__m512i a, b;

	if (UNLIKELY(payload + len != end) || UNLIKELY(p + BLOCK < payload) ||
		UNLIKELY(end - p < LONG + (int)BLOCK))
		return false;
	if (p >= payload) { /* no header in the second block */
		if (p != payload)
			memcpy(payload, from, (size_t)(p - payload));
		b = block_at(p, away);
		b = _mm512_or_si512(b, load(icrc_masks[f->ipv6] + BLOCK + first));
	} else {
		if (p + BLOCK != payload)
			memcpy(payload, from, (size_t)(p + BLOCK - payload));
		b = second_of(l3, f->ipv6, first);
	}
	a = first_of(l3, f->ipv6, first);
	seal(f, ~reduce(parts_long(a, b, p + BLOCK, end, away)));
	return true;
}
#endif
