/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H
/**
 * @file bench_bare.h  The loops without a protocol that a worker is compared with.
 *
 * Owner:   bench_pipeline.c, bench_requests.c.
 * Memory:  one cache line per QP.
 * Depends: base, wire, icrc, DPDK.
 *
 * For each RDMA WRITE ONLY: find the RoCE headers, find the QP, verify the ICRC, copy the payload,
 * turn the frame into an ACK from the QP's ready-made one, send. Nothing is counted, checked or
 * ordered, so no transport can be faster by much on the machine at hand.
 *
 * The requester's: for each descriptor, headers from the QP's ready-made ones, RETH, payload, ICRC,
 * send; for each ACK, find the headers and the QP, verify the ICRC, note the PSN, free.
 */
#include <stdbool.h>
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

enum { BARE_LEN_MAX = 4096 };

/** A request to be made; what a ring entry of a host comes down to. */
struct bare_work {
	const uint8_t *from;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t len; /* a multiple of four */
	uint32_t qpn;
	bool asks; /* for an ACK */
};

struct bare_sender {
	uint8_t head[50]; /* Ethernet to the PSN, of an RDMA WRITE ONLY of `len` bytes */
	uint16_t len;
	uint32_t qpn;
	uint32_t psn;   /* of the next request */
	uint32_t acked; /* behind the newest */
} CACHE_ALIGNED;
_Static_assert(sizeof(struct bare_sender) == 64, "one cache line");

struct bare_requester {
	const struct crc_ops *crc;
	struct bare_sender *qps;
	struct rte_mempool *pool;
	uint32_t qps_n; /* power of two */
	uint16_t port;
};

/** Make the QP's headers. @param path from here to the peer, IPv4 without a VLAN tag. */
void bare_sender_init(
	const struct bare_requester *b, uint32_t qpn, const struct wire_path *path, uint16_t len);
/** Send requests, at most a burst of them. @return how many. */
uint32_t bare_send(struct bare_requester *b, const struct bare_work *work, uint32_t n);
/** Receive a burst of ACKs. @return packets received. */
uint32_t bare_acks(struct bare_requester *b);

/** Make the QP's ACK. @param path from here to the peer, IPv4 without a VLAN tag. */
void bare_qp_init(const struct bare *b, uint32_t qpn, const struct wire_path *path);
/** One burst. @return packets received. */
uint32_t bare_poll(struct bare *b);

#endif
