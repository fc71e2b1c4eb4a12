/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_05_FAULTS_H
#define STAGE_05_FAULTS_H
/**
 * @file stage_05_faults.h  What a QP finds about a packet: is it from its peer, and for its state?
 *
 * Owner:   stage_05_steer.c; the worker's lcore.
 * Memory:  none.
 * Depends: pipeline_priv.h.
 * Spec:    RX-SYN-02, -05, -08, -15, -27, -28; RX-HDR-01, -02, -05; CC-08, WIRE-01, WIRE-18.
 */
#include "pipeline_priv.h"

_Static_assert(offsetof(struct qp, qpn) == 0 && offsetof(struct qp, state) == 4 &&
		       offsetof(struct qp, type) == 5 && offsetof(struct qp, port) == 6 &&
		       offsetof(struct qp, worker) == 7,
	"the first eight bytes of a QP are compared as one word");

/** Number, type and worker of a QP's first word; the state is looked at elsewhere. */
#define STEER_MASK UINT64_C(0xff00ff00ffffffff)
#define STEER_PORT UINT64_C(0x00ff000000000000)

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

/**
 * Must the packet have come on the alternate path, because the QP is armed and it asks for a
 * migration?
 */
static ALWAYS_INLINE bool
is_migration(const struct qp *qp, const struct wire_pkt *p)
{
	return UNLIKELY((qp->flags & QPF_MIGRATION) != 0) && !op_has(p->op, OPF_CNP) &&
	       qp_migration_step(
		       (enum mig_state)qp->attr.path_mig_state, (p->flags & PKT_MIGREQ) != 0)
		       .alternate;
}

/** The same as path_faults() and what follows it there, against the alternate path. */
static __attribute__((noinline)) fault_mask_t
alternate_faults(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
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

/** What the path in use does not say, but the QP's other attributes. */
static ALWAYS_INLINE fault_mask_t
kind_faults(const struct qp *qp, uint8_t state, const struct wire_pkt *p)
{
	bool cnp = op_has(p->op, OPF_CNP);
	fault_mask_t f = 0;

	/* Only RC has a responder so far. */
	f |= fault_if((qp->type != QPT_RC || wire_transport_of(p->opcode) != WIRE_RC) && !cnp,
		FAULT_QP_TYPE);
	if (UNLIKELY(cnp))
		f |= fault_if(!pipeline_cnp_is_good(p), FAULT_CNP);
	else if (UNLIKELY(op_has(p->op, OPF_RESPONSE)))
		f |= fault_if(!sends(state), FAULT_RESPONSE_STATE);
	return f;
}

/** The tag and the key of a packet, and the port it came to, against the path in use. */
static ALWAYS_INLINE fault_mask_t
label_faults(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	fault_mask_t f = fault_if(!pkey_matches(p->pkey, qp->pkey), FAULT_PKEY) |
			 fault_if(port != qp->port, FAULT_PORT);

	if (UNLIKELY((qp->flags & QPF_VLAN) != 0))
		f |= vlan_fault(&qp->attr.path, p);
	else if (UNLIKELY((p->flags & PKT_VLAN) != 0) &&
		 (be16_load(p->frame + WIRE_ETH_LEN) & 0xfff) != 0)
		f |= FAULT_BIT(FAULT_VLAN);
	return f;
}

/** Everything about a packet that needs its QP, which is in a state that receives. */
static __attribute__((noinline)) fault_mask_t
qp_faults(const struct qp *qp, uint8_t state, const struct wire_pkt *p, uint8_t port)
{
	fault_mask_t f = kind_faults(qp, state, p);

	if (is_migration(qp, p))
		return f | alternate_faults(qp, p, port);
	if (UNLIKELY((qp->flags & QPF_CHECK_SRC_MAC) != 0))
		f |= fault_if(differs(p->frame + 6, qp->peer_mac, 6), FAULT_SRC_MAC);
	return f | path_faults(qp, p) | label_faults(qp, p, port);
}

/** Where the QP's first word is not that of the packet's, an RC QP of this owner. */
static ALWAYS_INLINE uint64_t
steer_diff(const struct qp *qp, const struct wire_pkt *p, uint64_t owner)
{
	uint64_t line;

	memcpy(&line, qp, sizeof(line));
	return line ^ p->dest_qpn ^ owner;
}

/** Is it the packet's QP, an RC QP, and one of this worker? */
static ALWAYS_INLINE bool
is_own(const struct qp *qp, const struct wire_pkt *p, uint64_t owner)
{
	return (steer_diff(qp, p, owner) & STEER_MASK) == 0;
}

/**
 * An RC packet over untagged IPv4 for a QP of this worker that receives, from its peer, to its
 * port, with its key and as a full member: one test for all of it. Responses are for a QP in RTS.
 * Whatever else may be good is qp_faults()'s.
 */
static ALWAYS_INLINE bool
is_plain(const struct qp *qp, const struct wire_pkt *p, uint64_t owner)
{
	const uint32_t flags = QPF_IPV6 | QPF_VLAN | QPF_CHECK_SRC_MAC | QPF_REQUIRE_DF |
			       QPF_MIGRATION | QPF_RESOLVED;

	return (p->flags & (PKT_IPV6 | PKT_VLAN)) == 0 &&
	       (steer_diff(qp, p, owner) & (STEER_MASK | STEER_PORT)) == 0 &&
	       (uint8_t)(qp_state_of(qp) - QPS_RTR) <= QPS_SQE - QPS_RTR &&
	       LIKELY(!op_has(p->op, OPF_RESPONSE) || qp_state_of(qp) == QPS_RTS) &&
	       (qp->flags & flags) == QPF_RESOLVED &&
	       wire_load32(p->frame + p->l3_off + 12) == wire_load32(qp->peer_ipv4) &&
	       p->pkey == qp->pkey && (p->pkey & WIRE_PKEY_FULL) != 0 && p->opcode < OP_RC_END &&
	       !op_has(p->op, OPF_CNP);
}

/** What is left of a packet without a fault that is from the QP's peer. */
static ALWAYS_INLINE fault_mask_t
last_faults(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
{
	fault_mask_t f = label_faults(qp, p, port);

	if (UNLIKELY(p->opcode >= OP_RC_END))
		f |= kind_faults(qp, qp_state_of(qp), p);
	else if (op_has(p->op, OPF_RESPONSE) && !sends(qp_state_of(qp)))
		f |= FAULT_BIT(FAULT_RESPONSE_STATE);
	return f;
}

/**
 * What an RC QP finds that receives and waits for no migration; of a packet with faults only what
 * may come before them. Where the packet is from comes before all else that a QP finds, and before
 * the BTH's faults.
 */
static ALWAYS_INLINE fault_mask_t
first_faults(const struct qp *qp, const struct wire_pkt *p, uint8_t port)
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

#endif
