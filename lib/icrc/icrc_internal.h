/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ICRC_INTERNAL_H
#define ICRC_INTERNAL_H
/**
 * @file icrc_internal.h  The two ways to run the CRC over the masked header, for icrc.c and tests.
 *
 * Owner:   any lcore (pure functions).
 * Memory:  the caller's frame.
 * Depends: base, wire.
 * Spec:    IBTA vol. 1 annex A17.3.3; ICRC-01..03.
 *
 * Of the eight dummy 0xFF bytes the first four cancel the CRC's seed of all ones, so a CRC that
 * starts at 0 over four 0xFF bytes and the header gives the same. Leading zeros do not count then,
 * which makes the head a whole number of 16-byte blocks: three for IPv4, four for IPv6.
 */
#include "cpu.h"
#include "icrc.h"

#define ICRC_HEAD_IPV4 (WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)
#define ICRC_HEAD_IPV6 (WIRE_IPV6_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)

/** Bytes from the IP header to the end of the BTH: the part that is masked. */
static inline uint32_t
icrc_head_len(bool ipv6)
{
	return ipv6 ? ICRC_HEAD_IPV6 : ICRC_HEAD_IPV4;
}

/** Payload length, places of ICRC, IP header and BTH: alike where all of the packet is. */
static ALWAYS_INLINE uint64_t
icrc_shape_of(const struct wire_pkt *p)
{
	uint64_t v;

	memcpy(&v, &p->payload_len, sizeof(v));
	return v;
}
_Static_assert(
	offsetof(struct wire_pkt, icrc_off) == offsetof(struct wire_pkt, payload_len) + 2 &&
		offsetof(struct wire_pkt, l3_off) == offsetof(struct wire_pkt, payload_len) + 4 &&
		offsetof(struct wire_pkt, bth_off) == offsetof(struct wire_pkt, payload_len) + 6,
	"the words of a shape");

/** Any machine: the masked head is made in 64-bit words and given to the backend. */
uint32_t icrc_begin_portable(const struct crc_ops *ops, const uint8_t *l3, bool ipv6);

#if defined(__x86_64__)
#define ICRC_CLMUL 1

/** May the functions below be called on this machine? Cost: one load. */
static inline bool
icrc_has_clmul(void)
{
	return cpu_has(CPU_CLMUL);
}

/** The head in vector registers, folded there. */
uint32_t icrc_begin_clmul(const uint8_t *l3, bool ipv6);

/** icrc_update8(), where icrc_has_clmul(). */
uint32_t icrc_update8_clmul(uint32_t state, uint64_t word);
/** icrc_words8_burst(), where icrc_has_clmul(). */
void icrc_words8_burst_clmul(uint32_t *state, const uint64_t *word, uint32_t n);

/** Head and all that follows, folded in one piece; for short packets. Not complemented. */
uint32_t icrc_whole_clmul(const uint8_t *l3, bool ipv6, uint32_t len);

/** Can it fold 32 bytes at once, and the operating system keep the registers? Cost: one load. */
static inline bool
icrc_has_ymm(void)
{
	return cpu_has(CPU_CRC_256);
}

/** icrc_whole_clmul() for packets of any length, where icrc_has_ymm(). */
uint32_t icrc_whole_ymm(const uint8_t *l3, bool ipv6, uint32_t len);

/** icrc_verify_burst(), where icrc_has_ymm(). */
uint32_t icrc_verify_ymm(const struct wire_pkt *p, uint32_t n);

/** icrc_seal_burst(), where icrc_has_ymm(). */
void icrc_seal_ymm(const struct icrc_frame *f, uint32_t n);

/** icrc_copy_seal(), where icrc_has_ymm(). */
bool icrc_copy_ymm(const struct icrc_frame *f, uint32_t at, const uint8_t *from, uint32_t len);

/** Can it fold 64 bytes at once, and the operating system keep the registers? Cost: one load. */
static inline bool
icrc_has_wide(void)
{
	return cpu_has(CPU_WIDE_CRC);
}

/** icrc_whole_clmul() for packets of any length, where icrc_has_wide(). */
uint32_t icrc_whole_wide(const uint8_t *l3, bool ipv6, uint32_t len);

/** icrc_words8_burst(), where icrc_has_wide(). */
void icrc_words8_burst_wide(uint32_t *state, const uint64_t *word, uint32_t n);

/** icrc_verify_burst(), where icrc_has_wide(). */
uint32_t icrc_verify_wide(const struct wire_pkt *p, uint32_t n);

/** icrc_seal_burst(), where icrc_has_wide(). */
void icrc_seal_wide(const struct icrc_frame *f, uint32_t n);

/** icrc_copy_seal(), where icrc_has_wide(). */
bool icrc_copy_wide(const struct icrc_frame *f, uint32_t at, const uint8_t *from, uint32_t len);
#else
#define ICRC_CLMUL 0
#endif

#endif
