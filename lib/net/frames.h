/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRAMES_H
#define FRAMES_H
/**
 * @file frames.h  Frames of the control lcore: ARP, ICMP, ICMPv6, IGMP and MLD in and out.
 *
 * Owner:   control lcore.
 * Memory:  frames are read from and built in flat buffers; mbufs come from the port's pool.
 * Depends: mbox wire; DPDK (mbufs).
 * Spec:    RFC 826, RFC 792, RFC 4861, RFC 4443.
 */
#include <stdbool.h>
#include <stdint.h>

#include "neigh.h"

#define FRAME_MAX 16384

struct net;
struct rte_mbuf;
struct wire_port;

/** A received frame; l2 and l3 point into it, bounds checked up to the Ethernet header. */
struct frame_in {
	const uint8_t *l2;
	const uint8_t *l3;
	uint32_t l3_len;
	uint16_t ethertype;
	uint16_t port; /* index */
	uint16_t tci;  /* of an 802.1Q tag; 0: untagged */
	bool tagged;
};

/** Counts of what went wrong; read by stats. */
struct frame_stats {
	uint64_t rx;
	uint64_t rx_ignored;
	uint64_t tx;
	uint64_t tx_lost;
};

/** Whose CNP a frame is, and how it leaves. */
struct frames_cnp {
	uint32_t qpn;
	uint16_t port;   /* index */
	uint16_t worker; /* the QP's */
	bool local;      /* not to the port's wire (LB-01) */
};

/** Frame of a PACKET message; the mbuf is freed. */
void frames_receive(struct net *net, struct rte_mbuf *m, uint16_t dpdk_port);
/** Hand a frame to the port's worker. Frames below 60 bytes are padded. @return 0 or -errno. */
int frames_send(struct net *net, uint16_t port, const uint8_t *frame, uint32_t len);
/** As frames_send(), on the QP's worker, which is told that it is the QP's CNP. */
int frames_send_cnp(
	struct net *net, const struct frames_cnp *of, const uint8_t *frame, uint32_t len);
/** Start a frame: Ethernet header, and a tag when tci is not 0. @return bytes written. */
uint32_t frames_header(
	uint8_t *out, const uint8_t dst[6], const uint8_t src[6], uint16_t tci, uint16_t ethertype);
/** One's complement checksum, `sum` carried in. */
uint16_t frames_checksum(uint64_t sum, const uint8_t *p, uint32_t len);
/** The same of ICMPv6, with the addresses of its IPv6 header. */
uint16_t frames_checksum6(const uint8_t *ip, const uint8_t *icmp, uint32_t len);

/** Can somebody else on the link have this MAC? Not nobody's, a group's, or the port's own. */
bool frames_is_other(const struct wire_port *us, const uint8_t mac[6]);

/** fe80::/64 with the modified EUI-64 of the port's MAC (RFC 4291). */
void frames_link_local(const struct wire_port *us, uint8_t out[16]);

/** A request for one of our addresses is answered; who asks, or answers, is learned (RFC 826). */
void arp_receive(struct net *net, const struct frame_in *f);
/** Ask for an IPv4 neighbour. */
void arp_request(struct net *net, const struct neigh *n);
/** An echo request to one of our addresses is answered (RFC 792). */
void icmp_receive(struct net *net, const struct frame_in *f);
/** Neighbour discovery and echo over IPv6 (RFC 4861, RFC 4443). */
void icmp6_receive(struct net *net, const struct frame_in *f);
/** Neighbour solicitation. */
void icmp6_solicit(struct net *net, const struct neigh *n);

#endif
