/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RING_SEND_H
#define RING_SEND_H
/**
 * @file ring_send.h  Send work requests between a host and the dataplane: part of the ring ABI.
 *
 * Owner:   the posting side fills an entry and publishes it; the worker copies it before it looks.
 * Memory:  entries of a send ring; see ring.h.
 * Depends: base.
 *
 * An entry stays in the ring until its work request has completed: a full ring is a full send
 * queue, and inline bytes are there for a resend.
 */
#include "ring.h"

#define RING_MAX_INLINE 256 /* bytes */

/**
 * Where a request of a UD QP goes: the address handle in `rkey`, these in `remote_addr`.
 * @param qkey with its highest bit set: the QP's own (UD-07).
 */
static inline uint64_t
ring_send_to(uint32_t qpn, uint32_t qkey)
{
	return (uint64_t)qkey << 32 | qpn;
}

/**
 * BIND_MW: `rkey` is any key of the window's index, `imm` the new one (0 with type 1: the next),
 * `remote_addr` and `compare_add` address and length in the region, `swap` its L_Key, and the
 * access flags above that. LOCAL_INV: `imm` is the key.
 */
#define RING_BIND_ACCESS(swap)  ((access_t)((swap) >> 32))
#define RING_BIND(lkey, access) ((uint64_t)(lkey) | (uint64_t)(access) << 32)

/** FLUSH: `remote_addr`, `rkey`, its length in `compare_add`, and its FETH (FLUSH_x) in `swap`. */

/** A send work request; `sge` has the ring's max_sge entries, or as many inline bytes instead. */
struct ring_send_wqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t rkey;
	uint32_t imm; /* immediate (host order), or the key to invalidate */
	uint32_t num_sge;
	uint32_t inline_len; /* bytes at `sge`, with the flag INLINE */
	uint8_t opcode;      /* enum wr_opcode */
	uint8_t flags;       /* SEND_* */
	uint8_t reserved[2];
	uint32_t xrc_srqn; /* XRC: number of the peer's SRQ */
	uint8_t reserved2[8];
	struct ring_sge sge[];
};
_Static_assert(sizeof(struct ring_send_wqe) == 64, "one cache line before the SGEs");

/** Stride of a send ring; 0 if above RING_MAX_SGE or RING_MAX_INLINE. */
uint32_t ring_send_stride(uint32_t max_sge, uint32_t max_inline);

#endif
