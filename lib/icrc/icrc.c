/* SPDX-License-Identifier: BSD-3-Clause */
#include "icrc_internal.h"
#include "invariant.h"

/*
 * Up to this many bytes from the IP header on, folding in one piece beats handing the rest to the
 * backend, whose wide loop does not pay yet.
 */
#define SHORT_PACKET 192

/* A mask word by its bytes in the order of memory. */
#define BYTES(a, b, c, d, e, f, g, h)                  \
	{                                              \
		(a), (b), (c), (d), (e), (f), (g), (h) \
	}

/*
 * What is replaced by ones (ICRC-02, ICRC-03), from the IP header on. IPv4: TOS, TTL, checksum,
 * UDP checksum, and FECN, BECN and the reserved bits of the BTH. IPv6: traffic class, flow label,
 * hop limit and the same of UDP and BTH.
 */
/* clang-format off */
static const uint8_t mask_ipv4[ICRC_HEAD_IPV4 / 8][8] = {
	BYTES(0, 0xff, 0, 0, 0, 0, 0, 0),
	BYTES(0xff, 0, 0xff, 0xff, 0, 0, 0, 0),
	BYTES(0, 0, 0, 0, 0, 0, 0, 0),
	BYTES(0, 0, 0xff, 0xff, 0, 0, 0, 0),
	BYTES(0xff, 0, 0, 0, 0, 0, 0, 0),
};
/* Four dummy bytes in front fill up the first word. */
static const uint8_t mask_ipv6[(4 + ICRC_HEAD_IPV6) / 8][8] = {
	BYTES(0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff),
	BYTES(0, 0, 0, 0xff, 0, 0, 0, 0),
	BYTES(0, 0, 0, 0, 0, 0, 0, 0),
	BYTES(0, 0, 0, 0, 0, 0, 0, 0),
	BYTES(0, 0, 0, 0, 0, 0, 0, 0),
	BYTES(0, 0, 0, 0, 0, 0, 0, 0),
	BYTES(0, 0, 0xff, 0xff, 0, 0, 0, 0),
	BYTES(0xff, 0, 0, 0, 0, 0, 0, 0),
};
/* clang-format on */

static uint64_t
load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

uint32_t
icrc_begin_portable(const struct crc_ops *ops, const uint8_t *l3, bool ipv6)
{
	uint64_t head[8];

	if (ipv6) {
		uint8_t first[8] = { 0 };

		memcpy(first + 4, l3, 4);
		head[0] = load64(first) | load64(mask_ipv6[0]);
		for (size_t i = 1; i < ARRAY_LEN(mask_ipv6); i++)
			head[i] = load64(l3 + 8 * i - 4) | load64(mask_ipv6[i]);
		return ops->update(0, head, 4 + ICRC_HEAD_IPV6);
	}
	memset(head, 0, 4);
	memset((uint8_t *)head + 4, 0xff, 4);
	for (size_t i = 0; i < ARRAY_LEN(mask_ipv4); i++)
		head[i + 1] = load64(l3 + 8 * i) | load64(mask_ipv4[i]);
	return ops->update(0, head, 8 + ICRC_HEAD_IPV4);
}

uint32_t
icrc_begin(const struct crc_ops *ops, const uint8_t *l3, bool ipv6)
{
	ASSERT(ops != NULL);
#if ICRC_CLMUL
	if (LIKELY(icrc_has_clmul()))
		return icrc_begin_clmul(l3, ipv6);
#endif
	return icrc_begin_portable(ops, l3, ipv6);
}

uint32_t
icrc_update8(const struct crc_ops *ops, uint32_t state, uint64_t word)
{
	ASSERT(ops != NULL);
#if ICRC_CLMUL
	if (LIKELY(icrc_has_clmul()))
		return icrc_update8_clmul(state, word);
#endif
	return ops->update(state, &word, sizeof(word));
}

void
icrc_words8_burst(const struct crc_ops *ops, uint32_t *state, const uint64_t *word, uint32_t n)
{
	ASSERT(ops != NULL);
#if ICRC_CLMUL
	/* A word that was stored just now is no part of a wide load: one or two wait less alone. */
	if (LIKELY(n > 2) && LIKELY(icrc_has_wide())) {
		icrc_words8_burst_wide(state, word, n);
		return;
	}
	if (LIKELY(icrc_has_clmul())) {
		icrc_words8_burst_clmul(state, word, n);
		return;
	}
#endif
	for (uint32_t i = 0; i < n; i++)
		state[i] = ops->update(0, &word[i], sizeof(word[i]));
}

uint32_t
icrc_compute(const struct crc_ops *ops, const uint8_t *l3, bool ipv6, uint32_t len)
{
	uint32_t head = icrc_head_len(ipv6);
	uint32_t state;

	ASSERT(ops != NULL && len >= head);
#if ICRC_CLMUL
	if (LIKELY(icrc_has_wide()))
		return icrc_final(icrc_whole_wide(l3, ipv6, len));
	if (LIKELY(icrc_has_ymm()))
		return icrc_final(icrc_whole_ymm(l3, ipv6, len));
	if (len <= SHORT_PACKET && LIKELY(icrc_has_clmul()))
		return icrc_final(icrc_whole_clmul(l3, ipv6, len));
#endif
	state = icrc_begin(ops, l3, ipv6);
	if (len > head)
		state = icrc_update(ops, state, l3 + head, len - head);
	return icrc_final(state);
}

bool
icrc_verify(const struct crc_ops *ops, const struct wire_pkt *p)
{
	uint8_t want[WIRE_ICRC_LEN];

	ASSERT(p->icrc_off != 0);
	ASSERT(p->icrc_off + WIRE_ICRC_LEN <= p->frame_len);
	icrc_store(want, icrc_compute(ops, p->frame + p->l3_off, (p->flags & PKT_IPV6) != 0,
				 (uint32_t)p->icrc_off - p->l3_off));
	return memcmp(want, p->frame + p->icrc_off, sizeof(want)) == 0;
}

uint32_t
icrc_verify_burst(const struct crc_ops *ops, const struct wire_pkt *p, uint32_t n)
{
	uint32_t bad = 0;

	ASSERT(ops != NULL && n <= 32); /* bits of `bad` */
#if ICRC_CLMUL
	if (LIKELY(icrc_has_wide()))
		return icrc_verify_wide(p, n);
	if (LIKELY(icrc_has_ymm()))
		return icrc_verify_ymm(p, n);
#endif
	for (uint32_t i = 0; i < n; i++)
		if (LIKELY(p[i].icrc_off != 0) && UNLIKELY(!icrc_verify(ops, &p[i])))
			bad |= BIT32(i);
	return bad;
}

void
icrc_seal(const struct crc_ops *ops, uint8_t *frame, uint16_t l3_off, bool ipv6, uint32_t len)
{
	uint32_t icrc_off = len - WIRE_ICRC_LEN;

	ASSERT(len >= l3_off + icrc_head_len(ipv6) + WIRE_ICRC_LEN);
	icrc_store(frame + icrc_off, icrc_compute(ops, frame + l3_off, ipv6, icrc_off - l3_off));
}

bool
icrc_copy_seal(const struct icrc_frame *f, uint32_t at, const uint8_t *from, uint32_t len)
{
#if ICRC_CLMUL
	if (LIKELY(icrc_has_wide()))
		return icrc_copy_wide(f, at, from, len);
	if (LIKELY(icrc_has_ymm()))
		return icrc_copy_ymm(f, at, from, len);
#endif
	(void)f, (void)at, (void)from, (void)len;
	return false;
}

void
icrc_seal_burst(const struct crc_ops *ops, const struct icrc_frame *f, uint32_t n)
{
	ASSERT(ops != NULL);
#if ICRC_CLMUL
	if (LIKELY(icrc_has_wide())) {
		icrc_seal_wide(f, n);
		return;
	}
	if (LIKELY(icrc_has_ymm())) {
		icrc_seal_ymm(f, n);
		return;
	}
#endif
	for (uint32_t i = 0; i < n; i++)
		icrc_seal(ops, f[i].frame, f[i].l3_off, f[i].ipv6, f[i].len);
}
