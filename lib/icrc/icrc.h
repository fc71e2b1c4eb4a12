/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ICRC_H
#define ICRC_H
/**
 * @file icrc.h  The invariant CRC of RoCEv2: a CRC-32 over a masked pseudo-header and the rest.
 *
 * Owner:   any lcore; a crc_ops is constant after start.
 * Memory:  the caller's frame; the masked header lives in vector registers, never in the frame.
 * Depends: base, wire.
 * Spec:    IBTA vol. 1 annex A17.3.3; ICRC-01..06.
 */
#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/**
 * A CRC-32 (0x04C11DB7 reflected) backend: continue `crc` (not complemented) over `len` bytes. All
 * functions below need one, on each machine: which CPUs leave it alone is not the caller's concern.
 */
struct crc_ops {
	const char *name;
	uint32_t (*update)(uint32_t crc, const void *buf, uint64_t len);
};

/**
 * CRC of a packet.
 * @param l3 first byte of the IP header; an IPv4 header without options.
 * @param len bytes from l3 up to, not including, the ICRC; at least the end of the BTH: 40 bytes
 *        for IPv4, 60 for IPv6.
 * @return the four ICRC bytes as a little-endian number: store it with icrc_store().
 * Cost: packets are folded in place and leave `ops` alone where the CPU can do that: short ones
 * with PCLMULQDQ, all with VPCLMULQDQ, in registers of 256 or 512 bits.
 */
uint32_t icrc_compute(const struct crc_ops *ops, const uint8_t *l3, bool ipv6, uint32_t len);

/** Is the ICRC at p->icrc_off right? p->icrc_off must not be 0. */
bool icrc_verify(const struct crc_ops *ops, const struct wire_pkt *p);

/**
 * icrc_verify() for up to 32 packets. @return a bit for each whose ICRC is wrong; those without one
 * (icrc_off is 0) have none. Cost: about 20 cycles for a 64-byte WRITE with VPCLMULQDQ.
 */
uint32_t icrc_verify_burst(const struct crc_ops *ops, const struct wire_pkt *p, uint32_t n);

/**
 * Compute and write the ICRC of a built frame.
 * @param l3_off where its IP header starts.
 * @param len of the frame with the four ICRC bytes, which are its last, as wire_build() returns it.
 */
void icrc_seal(const struct crc_ops *ops, uint8_t *frame, uint16_t l3_off, bool ipv6, uint32_t len);

/** A built frame, as icrc_seal() takes it. */
struct icrc_frame {
	uint8_t *frame;
	uint32_t len;
	uint16_t l3_off;
	bool ipv6;
};

/**
 * icrc_seal() for n frames. A frame that was written just now in small pieces is read in large
 * ones, which waits for the pieces: seal a burst once all of it is written.
 */
void icrc_seal_burst(const struct crc_ops *ops, const struct icrc_frame *f, uint32_t n);

/**
 * Copy a payload into a frame that has all else, and write the frame's ICRC: in one pass over the
 * payload, where this CPU can, and the payload is long and needs no pad.
 * @param at where in the frame. @param from not in it. @param len up to the ICRC.
 * @return false: nothing is sealed, and of the frame's payload nothing is said.
 */
bool icrc_copy_seal(const struct icrc_frame *f, uint32_t at, const uint8_t *from, uint32_t len);

/**
 * Incremental form: header first (IP .. BTH, masked), then any number of pieces.
 * icrc_final(icrc_update(icrc_begin(..), ..)) equals icrc_compute over the concatenation.
 */
uint32_t icrc_begin(const struct crc_ops *ops, const uint8_t *l3, bool ipv6);
/** Continue over `len` bytes behind the header. */
static inline uint32_t
icrc_update(const struct crc_ops *ops, uint32_t state, const void *buf, uint32_t len)
{
	return ops->update(state, buf, len);
}
/**
 * icrc_update() over eight bytes in a register, the first one lowest: what differs between two ACKs
 * of a QP. Nothing is stored and read back.
 */
uint32_t icrc_update8(const struct crc_ops *ops, uint32_t state, uint64_t word);
/** The same of n words at once, each from a state of 0 on. @param state out: of word[i]. */
void icrc_words8_burst(
	const struct crc_ops *ops, uint32_t *state, const uint64_t *word, uint32_t n);
/** The ICRC of a state: what icrc_compute() returns. */
static inline uint32_t
icrc_final(uint32_t state)
{
	return ~state;
}

/** Store an ICRC: least significant byte first (ICRC-01). */
static inline void
icrc_store(uint8_t *p, uint32_t icrc)
{
	p[0] = (uint8_t)icrc;
	p[1] = (uint8_t)(icrc >> 8);
	p[2] = (uint8_t)(icrc >> 16);
	p[3] = (uint8_t)(icrc >> 24);
}

#endif
