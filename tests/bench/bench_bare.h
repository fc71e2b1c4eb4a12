/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H
/**
 * @file bench_bare.h  The loop without a protocol that a worker is compared with.
 *
 * Owner:   bench_pipeline.c.
 * Memory:  one cache line per QP.
 * Depends: base, wire, icrc, DPDK.
 *
 * For each RDMA WRITE ONLY: find the RoCE headers, find the QP, verify the ICRC, copy the payload,
 * turn the frame into an ACK from the QP's ready-made one, send. Nothing is counted, checked or
 * ordered, so no transport can be faster by much on the machine at hand.
 */
#include <stdint.h>

#include "icrc.h"
#include "wire_build.h"

struct bare_qp {
	uint8_t ack[50]; /* Ethernet to the PSN */
	uint32_t qpn;
	uint32_t crc; /* ICRC state in front of the PSN */
	uint32_t msn;
} CACHE_ALIGNED;
_Static_assert(sizeof(struct bare_qp) == 64, "one cache line");

struct bare {
	const struct crc_ops *crc;
	struct bare_qp *qps;
	uint8_t *host; /* of region_va */
	uint64_t region_va;
	uint64_t region_len;
	uint32_t qps_n; /* power of two */
	uint16_t port;
};

/** Make the QP's ACK. @param path from here to the peer, IPv4 without a VLAN tag. */
void bare_qp_init(const struct bare *b, uint32_t qpn, const struct wire_path *path);
/** One burst. @return packets received. */
uint32_t bare_poll(struct bare *b);

#endif
