/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_BUILD_H
#define WIRE_BUILD_H
/**
 * @file wire_build.h  Make RoCEv2 packets: a general builder, and the per-QP template.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's.
 * Depends: base.
 * Spec:    WIRE-01..18. The ICRC is lib/icrc's: the builder leaves its four bytes as zero.
 */
#include "wire.h"

/** Addresses of one direction of a path: what a QP's address vector says, ready to be written. */
struct wire_path {
	uint8_t smac[6];
	uint8_t dmac[6];
	bool ipv6;
	bool vlan : 1;      /* send an 802.1Q tag */
	bool local : 1;     /* dst_ip is of this process: nothing goes to the wire (LB-01) */
	uint8_t queue : 6;  /* of its port: for its priority (FLOW-09); 0: the port's own */
	uint16_t vlan_tci;  /* priority << 13 | VLAN id */
	uint8_t src_ip[16]; /* IPv4 uses the first four bytes */
	uint8_t dst_ip[16];
	uint8_t tos;    /* traffic class with the ECN bits (WIRE-14) */
	uint8_t ttl;    /* hop limit */
	uint16_t sport; /* 0xC000..0xFFFF, constant per QP (WIRE-15) */
	uint32_t flow_label;
};

/** Everything behind the UDP header. Extension headers are taken as the opcode's row says. */
struct wire_fields {
	uint8_t opcode;
	uint8_t flags; /* PKT_ACKREQ, PKT_SE, PKT_MIGREQ, PKT_FECN, PKT_BECN */
	uint8_t tver;
	uint16_t pkey;
	uint32_t dest_qpn;
	psn_t psn;
	uint32_t feth; /* ahead of the RETH */
	struct wire_reth reth;
	struct wire_atomiceth atomiceth;
	struct wire_aeth aeth;
	struct wire_deth deth;
	uint32_t xrc_srqn; /* XRCETH */
	uint64_t atomicack;
	uint32_t imm;
	uint32_t ieth;
	const void *payload;
	uint16_t payload_len; /* pad is added: (4 - len mod 4) mod 4 */
};

/**
 * Build a whole frame with lengths and IPv4 checksum; UDP checksum 0 for IPv4 and IPv6.
 * @param ip_id IPv4 identification; ignored for IPv6.
 * @return frame length including the four (zero) ICRC bytes, or -EMSGSIZE.
 */
int wire_build(const struct wire_path *path, const struct wire_fields *f, uint16_t ip_id,
	uint8_t *buf, size_t room);

#define WIRE_TEMPLATE_MAX \
	(WIRE_ETH_LEN + WIRE_VLAN_LEN + WIRE_IPV6_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)

/**
 * Ethernet to BTH of a QP's packets, made once when the QP gets its address vector. A sender
 * calls wire_template_write(), which patches lengths, checksum, opcode and PSN, and appends the
 * rest at `len`. Smaller than two cache lines; all of IPv4 without a tag is in the first. IPv4
 * identification is 0: with DF set it means nothing.
 */
struct wire_template {
	uint8_t len; /* Ethernet .. BTH */
	uint8_t l3_off;
	uint8_t bth_off;
	uint8_t ipv6;
	uint32_t ipv4_sum; /* one's complement sum of the constant IPv4 words */
	uint8_t bytes[WIRE_TEMPLATE_MAX + 2];
};

/**
 * Make the template of a path.
 * @param pkey in host byte order. @param dest_qpn the peer's QP, 24 bits.
 * Control lcore, when the address vector is set: the worker must not be sending from it.
 */
void wire_template_init(
	struct wire_template *t, const struct wire_path *path, uint16_t pkey, uint32_t dest_qpn);

/** How CNPs differ from a QP's other packets on their way. */
struct wire_cnp {
	uint8_t tos;  /* traffic class with ECN bits 0: nobody marks a CNP */
	uint8_t prio; /* of the tag, where the path has one: 0..7 */
};

/** A sum of 16-bit words with its carries added. */
static inline uint16_t
wire_sum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/**
 * Copy the template into `frame` and patch it.
 * @param frame room for sizeof(t->bytes) bytes is needed even where t->len is less: the rest is
 *        zeroed, so write what follows the BTH after this call.
 * @param bth_flags PKT_ACKREQ, PKT_SE, PKT_MIGREQ only.
 * @param after_bth bytes that will follow the BTH, pad included, ICRC not.
 * Cost: about 80 bytes stored; no checksum over the whole header.
 */
void wire_template_write(const struct wire_template *t, uint8_t *frame, uint8_t opcode,
	uint8_t bth_flags, uint8_t pad, psn_t p, uint16_t after_bth);

/**
 * A whole CNP (CC-01), its ICRC zero; `frame` as above, WIRE_CNP_PAYLOAD_LEN and WIRE_ICRC_LEN
 * bytes more. @return its length.
 */
uint32_t wire_cnp_write(const struct wire_template *t, uint8_t *frame, const struct wire_cnp *c);

#endif
