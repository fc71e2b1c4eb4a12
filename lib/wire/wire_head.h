/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_HEAD_H
#define WIRE_HEAD_H
/**
 * @file wire_head.h  Headers of packets that a QP sends one after another.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's.
 * Depends: wire_build.h.
 * Spec:    WIRE-13, WIRE-14, WIRE-16; what wire_template_write() makes.
 *
 * Such packets differ in PSN and AckReq, and sometimes in opcode and length. All other bytes are
 * kept in words, which change with opcode and length. The words of IPv4 without a tag are patched
 * in place: most paths are so. Those of any other template wire_template_write() makes.
 */
#include <string.h>

#include "invariant.h"
#include "wire_build.h"
#include "wire_plain.h"

enum {
	WIRE_HEAD_LEN = WIRE_PLAIN_BTH + WIRE_BTH_LEN, /* of IPv4 without a tag */
	WIRE_HEAD_WORDS = 7,                           /* which end in two free bytes */
	WIRE_HEAD_MOST = sizeof(((struct wire_template *)0)->bytes),
};

/** In the order of memory (the hosts are little-endian). */
struct wire_head {
	uint64_t word[WIRE_HEAD_MOST / sizeof(uint64_t)];
	uint32_t what; /* of the newest packet, see wire_head_what() */
};

/** Is it a template of IPv4 without a tag? All others are longer. */
static ALWAYS_INLINE bool
wire_head_fits(const struct wire_template *t)
{
	return t->len == WIRE_HEAD_LEN;
}
_Static_assert(WIRE_HEAD_LEN == WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN,
	"the shortest template");

/** Begin with a template: all packets by wire_head_write(), or all by wire_head_write_any(). */
static inline void
wire_head_init(struct wire_head *h)
{
	h->what = UINT32_MAX; /* no packet: the low bits of its byte 1 are the pad's and zeros */
}

/** What may differ between packets besides PSN and AckReq, as one number. */
static ALWAYS_INLINE uint32_t
wire_head_what(uint8_t opcode, uint8_t bth_flags, uint8_t pad, uint16_t after_bth)
{
	return opcode | (uint32_t)((bth_flags & (PKT_SE | PKT_MIGREQ)) | (pad & 3) << 4) << 8 |
	       (uint32_t)after_bth << 16;
}

/** For another opcode, length or flags than those of the packet before. */
static inline void
wire_head_patch(struct wire_head *h, const struct wire_template *t, uint32_t what)
{
	const uint32_t udp_len = WIRE_UDP_LEN + WIRE_BTH_LEN + (what >> 16) + WIRE_ICRC_LEN;
	const uint32_t total = WIRE_IPV4_LEN + udp_len;
	const uint16_t sum = (uint16_t)~wire_sum_fold(t->ipv4_sum + total);
	uint64_t w[WIRE_HEAD_WORDS];

	ASSERT(wire_head_fits(t) && t->ipv6 == 0);
	memcpy(w, t->bytes, sizeof(w));
	h->word[0] = w[0];
	h->word[1] = w[1];
	h->word[2] = (w[2] & ~UINT64_C(0xffff)) | __builtin_bswap16((uint16_t)total);
	h->word[3] = (w[3] & ~UINT64_C(0xffff)) | __builtin_bswap16(sum);
	h->word[4] = (w[4] & UINT64_MAX >> 16) | (uint64_t)__builtin_bswap16((uint16_t)udp_len)
							 << 48;
	h->word[5] = (w[5] & ~UINT64_C(0xffff0000)) | (uint64_t)(what & 0xffff) << 16;
	h->word[6] = w[6] & 0xffff;
	h->what = what;
}
_Static_assert(WIRE_HEAD_MOST >= WIRE_HEAD_WORDS * 8 && WIRE_HEAD_MOST % 8 == 0, "read in words");

/**
 * wire_template_write() of a template that wire_head_fits(), and up to two bytes behind the BTH
 * zeroed. @param h of this template.
 */
static ALWAYS_INLINE void
wire_head_write(struct wire_head *h, const struct wire_template *t, uint8_t *frame, uint32_t what,
	bool ackreq, psn_t p)
{
	const uint32_t bits = __builtin_bswap32((uint32_t)ackreq << 31 | p.v);
	const size_t before = (WIRE_HEAD_WORDS - 1) * sizeof(uint64_t);
	uint64_t last;

	ASSERT(p.v <= PSN_MASK);
	if (UNLIKELY(what != h->what))
		wire_head_patch(h, t, what);
	last = h->word[6] | (uint64_t)bits << 16;
	memcpy(frame, h->word, before);
	memcpy(frame + before, &last, sizeof(last));
}

/** The same of any template; WIRE_HEAD_MOST bytes are written. */
static ALWAYS_INLINE void
wire_head_write_any(struct wire_head *h, const struct wire_template *t, uint8_t *frame,
	uint32_t what, bool ackreq, psn_t p)
{
	ASSERT(p.v <= PSN_MASK);
	if (UNLIKELY(what != h->what)) {
		wire_template_write(t, (uint8_t *)h->word, (uint8_t)what,
			what >> 8 & (PKT_SE | PKT_MIGREQ), what >> 12 & 3, psn(0),
			(uint16_t)(what >> 16));
		h->what = what;
	}
	memcpy(frame, h->word, sizeof(h->word));
	be32_store(frame + t->bth_off + 8, (uint32_t)ackreq << 31 | p.v);
}

#endif
