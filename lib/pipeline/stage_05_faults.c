/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a QP finds about a packet that is not an ordinary one (RX-SYN-02, -05, -08, -15, -27, -28;
 * RX-HDR-01, -02, -05; CC-08, WIRE-01, WIRE-18).
 */
#include "congestion.h"
#include "stage_05_faults.h"
#include "wire_service.h"

static inline fault_mask_t
fault_if(bool cond, enum wire_fault f)
{
	return (fault_mask_t)cond << f;
}

/** IPv4: DF is set, and no other flag. */
static inline bool
has_df_alone(const struct wire_pkt *p)
{
	return (p->frame[p->l3_off + 6] & WIRE_IPV4_FLAGS >> 8) == WIRE_IPV4_DF >> 8;
}

/** RX-HDR-01: the same key, and at least one of the two a full member. */
static inline bool
pkey_matches(uint16_t a, uint16_t b)
{
	return ((a ^ b) & ~WIRE_PKEY_FULL) == 0 && ((a | b) & WIRE_PKEY_FULL) != 0;
}

/** May a QP in this state wait for responses? */
static inline bool
sends(uint8_t state)
{
	return state == QPS_RTS || state == QPS_SQD;
}

static inline bool
differs(const uint8_t *a, const uint8_t *b, size_t n)
{
	return memcmp(a, b, n) != 0;
}

/**
 * The VLAN of a path is a property of the address that it goes to, as a GID's is: packets of
 * another one are not the QP's. No tag and a tag that has only a priority (VLAN 0) are the same.
 */
static inline fault_mask_t
vlan_fault(const struct wire_path *path, const struct wire_pkt *p)
{
	uint16_t own = path->vlan ? path->vlan_tci & 0xfff : 0, tag = 0;

	if ((p->flags & PKT_VLAN) != 0)
		tag = be16_load(p->frame + WIRE_ETH_LEN) & 0xfff;
	return fault_if(own != tag, FAULT_VLAN);
}

/** Network and link layer against the QP's path (RX-SYN-02, -05, -27, -28). */
static inline fault_mask_t
path_faults(const struct qp *qp, const struct wire_pkt *p)
{
	bool ipv6 = (p->flags & PKT_IPV6) != 0;
	fault_mask_t f = 0;

	if (UNLIKELY(ipv6 != ((qp->flags & QPF_IPV6) != 0)))
		return FAULT_BIT(FAULT_IP_VERSION);
	if (LIKELY(!ipv6))
		f |= fault_if(differs(wire_src_ip(p), qp->peer_ipv4, 4), FAULT_SRC_IP);
	else
		f |= fault_if(differs(wire_src_ip(p), qp->attr.path.dst_ip, 16), FAULT_SRC_IP);
	if (UNLIKELY((qp->flags & QPF_REQUIRE_DF) != 0) && !ipv6)
		f |= fault_if(!has_df_alone(p), FAULT_IP_FLAGS);
	return f;
}

/** The same as path_faults() and what follows it there, against the alternate path. */
fault_mask_t
pipeline_faults_alternate(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	const struct wire_path *alt = &qp->attr.alt_path;
	uint16_t pkey = qp->attr.alt_pkey != 0 ? qp->attr.alt_pkey : qp->pkey;
	bool ipv6 = (p->flags & PKT_IPV6) != 0;
	size_t n = ipv6 ? 16 : 4;
	fault_mask_t f = 0;

	if (ipv6 != alt->ipv6)
		return FAULT_BIT(FAULT_IP_VERSION);
	f |= fault_if(differs(wire_src_ip(p), alt->dst_ip, n), FAULT_SRC_IP);
	if ((qp->flags & QPF_REQUIRE_DF) != 0 && !ipv6)
		f |= fault_if(!has_df_alone(p), FAULT_IP_FLAGS);
	if ((qp->flags & QPF_CHECK_SRC_MAC) != 0)
		f |= fault_if(differs(p->frame + 6, alt->dmac, 6), FAULT_SRC_MAC);
	f |= vlan_fault(alt, p);
	f |= fault_if(!pkey_matches(p->pkey, pkey), FAULT_PKEY);
	if (port != qp->attr.alt_port)
		return f | FAULT_BIT(FAULT_PORT);
	return f | fault_if(differs(wire_src_ip(p) + n, alt->src_ip, n), FAULT_DST_IP);
}

/** XRC: requests are for the target, responses for the initiator (XRC-01). */
static bool
is_for_end(const struct qp *qp, const struct wire_pkt *p)
{
	return op_has(p->op, OPF_RESPONSE) == (qp->type == QPT_XRC_SEND);
}

/** What the path in use does not say, but the QP's other attributes. */
static inline fault_mask_t
kind_faults(const struct qp *qp, uint8_t state, const struct wire_pkt *p)
{
	bool cnp = op_has(p->op, OPF_CNP);
	fault_mask_t f = 0;

	f |= fault_if(
		wire_transport_of(p->opcode) != wire_transport_on(qp->type) && !cnp, FAULT_QP_TYPE);
	if (UNLIKELY(cnp))
		f |= fault_if(!pipeline_cnp_is_good(p), FAULT_CNP);
	else if (UNLIKELY(op_has(p->op, OPF_RESPONSE)))
		f |= fault_if(!sends(state), FAULT_RESPONSE_STATE);
	if (UNLIKELY((qp->flags & QPF_XRC) != 0) && !cnp && !is_for_end(qp, p))
		f |= FAULT_BIT(FAULT_QP_TYPE);
	return f;
}

/** The tag of a packet against the path in use, which is read only where it has a VLAN. */
static inline fault_mask_t
tag_faults(const struct qp *qp, const struct wire_pkt *p)
{
	if (UNLIKELY((qp->flags & QPF_VLAN) != 0))
		return vlan_fault(&qp->attr.path, p);
	if (LIKELY((p->flags & PKT_VLAN) == 0))
		return 0;
	return fault_if((be16_load(p->frame + WIRE_ETH_LEN) & 0xfff) != 0, FAULT_VLAN);
}

/** The tag and the key of a packet, and the port it came to, against the path in use. */
static inline fault_mask_t
label_faults(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	return tag_faults(qp, p) | fault_if(!pkey_matches(p->pkey, qp->pkey), FAULT_PKEY) |
	       fault_if(port != qp->port, FAULT_PORT);
}

bool
pipeline_is_from_peer(const struct qp *qp, const struct wire_pkt *p)
{
	return (path_faults(qp, p) | tag_faults(qp, p)) == 0;
}

/** A datagram comes from anywhere, and shows a key instead (UD-02, UD-10, UD-18). */
static fault_mask_t
datagram_faults(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	const bool has_key = p->payload_off != 0 && op_has(p->op, OPF_DETH);

	return fault_if(has_key && wire_deth(p).qkey != qp->qkey, FAULT_QKEY) |
	       fault_if(!pkey_matches(p->pkey, qp->pkey), FAULT_PKEY) |
	       fault_if(port != qp->port, FAULT_PORT);
}

fault_mask_t
pipeline_faults_all(const struct qp *qp, uint8_t state, const struct wire_pkt *p, uint8_t port)
{
	fault_mask_t f = kind_faults(qp, state, p);

	if (UNLIKELY(!wire_is_connected(qp->resp.transport)))
		return f | datagram_faults(qp, p, port);
	if (is_migration(qp, p))
		return f | pipeline_faults_alternate(qp, p, port);
	if (UNLIKELY((qp->flags & QPF_CHECK_SRC_MAC) != 0))
		f |= fault_if(differs(p->frame + 6, qp->peer_mac, 6), FAULT_SRC_MAC);
	return f | path_faults(qp, p) | label_faults(qp, p, port);
}

/** What is left of a packet without a fault that is from the QP's peer. */
static inline fault_mask_t
last_faults(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	fault_mask_t f = label_faults(qp, p, port);

	if (UNLIKELY(p->opcode >= OP_RC_END))
		f |= kind_faults(qp, qp_state_of(qp), p);
	else if (op_has(p->op, OPF_RESPONSE) && !sends(qp_state_of(qp)))
		f |= FAULT_BIT(FAULT_RESPONSE_STATE);
	return f;
}

fault_mask_t
pipeline_faults_first(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	fault_mask_t f;

	if (LIKELY((qp->flags & (QPF_IPV6 | QPF_REQUIRE_DF | QPF_CHECK_SRC_MAC)) == 0)) {
		if ((p->flags & PKT_IPV6) != 0)
			return FAULT_BIT(FAULT_IP_VERSION);
		if (wire_load32(p->frame + p->l3_off + 12) != wire_load32(qp->peer_ipv4))
			return FAULT_BIT(FAULT_SRC_IP);
		return p->faults != 0 ? 0 : last_faults(qp, p, port);
	}
	if ((qp->flags & QPF_CHECK_SRC_MAC) != 0 && differs(p->frame + 6, qp->peer_mac, 6))
		return FAULT_BIT(FAULT_SRC_MAC);
	f = path_faults(qp, p);
	return f != 0 || p->faults != 0 ? f : last_faults(qp, p, port);
}
