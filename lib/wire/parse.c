/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a frame to a wire_pkt. wire_plain.h reads untagged IPv4 packets without a fault. All others
 * are read here, and every fault becomes a bit; wire_fault_winner() says which one is charged.
 *
 * The UDP checksum is not checked here (WIRE-15): the ICRC is always verified, and covers
 * everything that it covers. Stage 2 checks it for users who ask for that (rx.udp_checksum).
 */
#include "parse_bth.h"
#include "invariant.h"

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_ARP = 0x0806,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,

	PROTO_HOP_BY_HOP = 0,
	PROTO_ICMP = 1,
	PROTO_IGMP = 2,
	PROTO_UDP = 17,
	PROTO_ICMPV6 = 58,

	ECN_CE = 3,

	/* Smallest UDP datagram that is a RoCE packet. */
	UDP_ROCE_MIN = WIRE_UDP_LEN + WIRE_BTH_LEN + WIRE_ICRC_LEN,
};

/** One's complement sum of an IPv4 header with `more` bytes of options: 0xffff if it is right. */
static ALWAYS_INLINE uint32_t
ipv4_sum(const uint8_t *h, uint32_t more)
{
	uint64_t sum = (uint64_t)wire_load32(h) + wire_load32(h + 4) + wire_load32(h + 8) +
		       wire_load32(h + 12) + wire_load32(h + 16);

	for (uint32_t i = 0; i < more; i += 4)
		sum += wire_load32(h + WIRE_IPV4_LEN + i);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

/**
 * The EtherType says one IP version and the header another. It is taken for RoCE, and so counted,
 * if either layout leads to the RoCE port.
 */
static enum wire_class
parse_wrong_version(const struct wire_port *port, const uint8_t *frame, uint32_t len,
	struct lower lo, struct wire_pkt *out)
{
	const uint8_t *h = frame + lo.l3_off;
	bool v4 = len >= lo.l3_off + WIRE_IPV4_LEN + WIRE_UDP_LEN && h[9] == PROTO_UDP &&
		  be16_load(h + WIRE_IPV4_LEN + 2) == WIRE_UDP_PORT;
	bool v6 = len >= lo.l3_off + WIRE_IPV6_LEN + WIRE_UDP_LEN && h[6] == PROTO_UDP &&
		  be16_load(h + WIRE_IPV6_LEN + 2) == WIRE_UDP_PORT;

	if (!v4 && !v6)
		return WIRE_CLASS_OTHER;
	lo.faults = mac_faults(port, frame) | FAULT_BIT(FAULT_IP_VERSION);
	parse_bth(frame, len, lo, out);
	return WIRE_CLASS_ROCE;
}

/** What the flags, the offset and the lengths of an IPv4 header say that they should not. */
static ALWAYS_INLINE fault_mask_t
ipv4_field_faults(const struct wire_port *port, const uint8_t *h, uint32_t room, uint32_t hdr_len)
{
	uint32_t total_len = be16_load(h + 2);
	uint32_t frag = be16_load(h + 6);
	uint32_t udp_len = be16_load(h + hdr_len + 4);
	fault_mask_t f = 0;

	if (UNLIKELY(frag != WIRE_IPV4_DF))
		f |= fault_if((frag & WIRE_IPV4_MF) != 0, FAULT_IP_FLAGS) |
		     fault_if(port->require_df && (frag & WIRE_IPV4_FLAGS) != WIRE_IPV4_DF,
			     FAULT_IP_FLAGS) |
		     fault_if((frag & WIRE_IPV4_OFFSET) != 0, FAULT_IP_FRAGMENT);
	if (UNLIKELY(total_len < hdr_len + UDP_ROCE_MIN || total_len > room))
		f |= FAULT_BIT(FAULT_IP_LEN);
	if (UNLIKELY(udp_len + hdr_len != total_len))
		f |= FAULT_BIT(FAULT_UDP_LEN);
	return f;
}

/**
 * Every fault of an IPv4 packet below the BTH. All packets of a flood are wrong in the same way, so
 * branches are predicted, and cost less than making a bit of each condition.
 */
static ALWAYS_INLINE fault_mask_t
ipv4_faults(const struct wire_port *port, const uint8_t *frame, uint32_t len, uint32_t l3_off,
	uint32_t hdr_len)
{
	const uint8_t *h = frame + l3_off;
	fault_mask_t f = ipv4_field_faults(port, h, len - l3_off, hdr_len);
	bool is_good = hdr_len == WIRE_IPV4_LEN ? wire_ipv4_sum_is_good(h)
						: ipv4_sum(h, hdr_len - WIRE_IPV4_LEN) == 0xffff;

	if (mac_diff(port, frame) != 0)
		f |= FAULT_BIT(FAULT_DST_MAC);
	if (UNLIKELY(h[0] != 0x45))
		f |= FAULT_BIT(FAULT_IP_HDR_LEN);
	if (UNLIKELY(!is_good))
		f |= FAULT_BIT(FAULT_IP_CHECKSUM);
	if (!port->has_ipv4 || wire_load32(h + 16) != wire_load32(port->ipv4))
		f |= FAULT_BIT(FAULT_DST_IP);
	return f;
}

/** From a header of known length on, options included. */
static ALWAYS_INLINE enum wire_class
parse_ipv4_udp(const struct wire_port *port, const uint8_t *frame, uint32_t len, uint32_t hdr_len,
	struct lower lo, struct wire_pkt *out)
{
	const uint8_t *h = frame + lo.l3_off;

	if (UNLIKELY(h[9] != PROTO_UDP))
		return h[9] == PROTO_ICMP || h[9] == PROTO_IGMP ? WIRE_CLASS_CONTROL
								: WIRE_CLASS_OTHER;
	if (UNLIKELY(len < lo.l3_off + hdr_len + WIRE_UDP_LEN))
		return WIRE_CLASS_OTHER;
	if (UNLIKELY(be16_load(h + hdr_len + 2) != WIRE_UDP_PORT))
		return WIRE_CLASS_OTHER;

	lo.faults = ipv4_faults(port, frame, len, lo.l3_off, hdr_len);
	lo.bth_off = lo.l3_off + hdr_len + WIRE_UDP_LEN;
	lo.udp_len = be16_load(h + hdr_len + 4);
	lo.flags |= (h[1] & ECN_CE) == ECN_CE ? PKT_CE : 0;
	parse_bth(frame, len, lo, out);
	return WIRE_CLASS_ROCE;
}

/** The first byte is not 0x45: another version, options, or a length below the smallest. */
static __attribute__((noinline)) enum wire_class
parse_ipv4_odd(const struct wire_port *port, const uint8_t *frame, uint32_t len, struct lower lo,
	struct wire_pkt *out)
{
	uint32_t hdr_len = (frame[lo.l3_off] & 0xfu) * 4;

	if (frame[lo.l3_off] >> 4 != 4)
		return parse_wrong_version(port, frame, len, lo, out);
	if (hdr_len < WIRE_IPV4_LEN)
		hdr_len = WIRE_IPV4_LEN;
	return parse_ipv4_udp(port, frame, len, hdr_len, lo, out);
}

static ALWAYS_INLINE enum wire_class
parse_ipv4(const struct wire_port *port, const uint8_t *frame, uint32_t len, uint32_t l3_off,
	uint32_t flags, struct wire_pkt *out)
{
	struct lower lo = { .l3_off = l3_off, .flags = flags };

	if (UNLIKELY(len < l3_off + WIRE_IPV4_LEN))
		return WIRE_CLASS_OTHER;
	if (UNLIKELY(frame[l3_off] != 0x45))
		return parse_ipv4_odd(port, frame, len, lo, out);
	return parse_ipv4_udp(port, frame, len, WIRE_IPV4_LEN, lo, out);
}

/** What asks for members of groups comes with options for every hop (RFC 3810). */
static bool
is_icmp6_behind_options(const uint8_t *h, uint32_t len)
{
	return h[6] == PROTO_HOP_BY_HOP && len > WIRE_IPV6_LEN && h[WIRE_IPV6_LEN] == PROTO_ICMPV6;
}

static ALWAYS_INLINE enum wire_class
parse_ipv6(const struct wire_port *port, const uint8_t *frame, uint32_t len, uint32_t l3_off,
	uint32_t flags, struct wire_pkt *out)
{
	const uint8_t *h = frame + l3_off;
	struct lower lo = { .l3_off = l3_off, .flags = flags | PKT_IPV6 };
	uint32_t payload_len;

	if (UNLIKELY(len <= l3_off))
		return WIRE_CLASS_OTHER;
	if (UNLIKELY(h[0] >> 4 != 6))
		return parse_wrong_version(port, frame, len, lo, out);
	if (UNLIKELY(len < l3_off + WIRE_IPV6_LEN))
		return WIRE_CLASS_OTHER;
	if (UNLIKELY(h[6] != PROTO_UDP))
		return h[6] == PROTO_ICMPV6 || is_icmp6_behind_options(h, len - l3_off)
			       ? WIRE_CLASS_CONTROL
			       : WIRE_CLASS_OTHER;
	if (UNLIKELY(len < l3_off + WIRE_IPV6_LEN + WIRE_UDP_LEN))
		return WIRE_CLASS_OTHER;
	if (UNLIKELY(be16_load(h + WIRE_IPV6_LEN + 2) != WIRE_UDP_PORT))
		return WIRE_CLASS_OTHER;

	payload_len = be16_load(h + 4);
	lo.bth_off = l3_off + WIRE_IPV6_LEN + WIRE_UDP_LEN;
	lo.udp_len = be16_load(h + WIRE_IPV6_LEN + 4);
	lo.flags |= (h[1] >> 4 & ECN_CE) == ECN_CE ? PKT_CE : 0;

	lo.faults |= mac_faults(port, frame);
	lo.faults |= fault_if(
		!port->has_ipv6 |
			(((wire_load64(h + 24) ^ wire_load64(port->ipv6)) |
				 (wire_load64(h + 32) ^ wire_load64(port->ipv6 + 8))) != 0),
		FAULT_DST_IP);
	lo.faults |= fault_if(
		(payload_len < UDP_ROCE_MIN) | (l3_off + WIRE_IPV6_LEN + payload_len > len),
		FAULT_IP_LEN);
	lo.faults |= fault_if(lo.udp_len != payload_len, FAULT_UDP_LEN);
	parse_bth(frame, len, lo, out);
	return WIRE_CLASS_ROCE;
}

static __attribute__((noinline)) enum wire_class
parse_vlan(const struct wire_port *port, const uint8_t *frame, uint32_t len, struct wire_pkt *out)
{
	const uint32_t l3_off = WIRE_ETH_LEN + WIRE_VLAN_LEN;

	if (len < l3_off)
		return WIRE_CLASS_OTHER;
	switch (be16_load(frame + WIRE_ETH_LEN + 2)) {
	case ETHERTYPE_IPV4:
		return parse_ipv4(port, frame, len, l3_off, PKT_VLAN, out);
	case ETHERTYPE_IPV6:
		return parse_ipv6(port, frame, len, l3_off, PKT_VLAN, out);
	case ETHERTYPE_ARP:
		return WIRE_CLASS_CONTROL;
	default:
		return WIRE_CLASS_OTHER;
	}
}

/* A frame with a VLAN tag, IPv6, what is no RoCE, and whatever has a fault. */
enum wire_class
wire_parse_any(
	const struct wire_port *port, const uint8_t *frame, uint32_t len, struct wire_pkt *out)
{
	/* Offsets are 16 bits wide. What an IP length can say beyond is then a length fault. */
	if (UNLIKELY(len > UINT16_MAX))
		len = UINT16_MAX;
	if (UNLIKELY(len < WIRE_ETH_LEN))
		return WIRE_CLASS_OTHER;
	switch (be16_load(frame + 12)) {
	case ETHERTYPE_IPV4:
		return parse_ipv4(port, frame, len, WIRE_ETH_LEN, 0, out);
	case ETHERTYPE_IPV6:
		return parse_ipv6(port, frame, len, WIRE_ETH_LEN, 0, out);
	case ETHERTYPE_VLAN:
		return parse_vlan(port, frame, len, out);
	case ETHERTYPE_ARP:
		return WIRE_CLASS_CONTROL;
	default:
		return WIRE_CLASS_OTHER;
	}
}

enum wire_class
wire_parse(const struct wire_port *port, const uint8_t *frame, uint32_t len, struct wire_pkt *out)
{
	if (wire_is_plain_len(len) && LIKELY(wire_match(port, frame)) &&
		LIKELY(wire_read_plain(frame, len, out))) {
		ASSERT(lies_in_frame(out));
		return WIRE_CLASS_ROCE;
	}
	return wire_parse_any(port, frame, len, out);
}
