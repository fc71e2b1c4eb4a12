/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_05_FAULTS_H
#define STAGE_05_FAULTS_H
/**
 * @file stage_05_faults.h  What a QP finds about a packet: is it from its peer, and for its state?
 *
 * Owner:   stage_05_steer.c; the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: count.h.
 *
 * Inline is only what each good packet needs: one comparison of words.
 */
#include "count.h"

_Static_assert(offsetof(struct qp, qpn) == 0 && offsetof(struct qp, state) == 4 &&
		       offsetof(struct qp, type) == 5 && offsetof(struct qp, port) == 6 &&
		       offsetof(struct qp, worker) == 7,
	"the first eight bytes of a QP are compared as one word");

/** Number, type and worker of a QP's first word; the state is looked at elsewhere. */
#define STEER_MASK UINT64_C(0xff00ff00ffffffff)
#define STEER_PORT UINT64_C(0x00ff000000000000)

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

/**
 * Everything about a packet that needs its QP.
 * @param state of the QP: one that receives. @param port DPDK port id that the packet came to.
 * @return faults, 0 for none.
 */
fault_mask_t pipeline_faults_all(
	const struct qp *qp, uint8_t state, const struct wire_pkt *p, uint8_t port);
/**
 * The same as far as it decides what the packet is charged to: the QP receives and waits for no
 * migration. Where the packet is from comes before all else that a QP finds, and before the BTH's
 * faults.
 */
fault_mask_t pipeline_faults_first(const struct qp *qp, const struct wire_pkt *p, uint8_t port);
/** The packet asks for a migration: faults against the alternate path. */
fault_mask_t pipeline_faults_alternate(const struct qp *qp, const struct wire_pkt *p, uint8_t port);

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

/** The bit in which the types of RC and UC differ. */
#define STEER_UC (UINT64_C(1) << 40)
_Static_assert((QPT_RC ^ 1) == QPT_UC && ((QPT_RC ^ QPT_UD) & ~1) != 0 &&
		       ((QPT_RC ^ QPT_XRC_SEND) & ~1) != 0 && ((QPT_RC ^ QPT_XRC_RECV) & ~1) != 0,
	"no other type is like RC but for that bit");

/**
 * Is the packet from the QP's peer, and its tag of the QP's VLAN (RX-SYN-02, -05, -27)? For what is
 * not untagged IPv4 at both; without a migration.
 */
bool pipeline_is_from_peer(const struct qp *qp, const struct wire_pkt *p);

/** Flags of a QP that say how a packet from its peer looks. */
#define STEER_NET (QPF_IPV6 | QPF_VLAN | QPF_REQUIRE_DF)

/** @param odd flags of the QP that are not as those of most are. */
static ALWAYS_INLINE bool
is_from_peer(const struct qp *qp, const struct wire_pkt *p, uint32_t odd)
{
	if (LIKELY((odd | (p->flags & (PKT_IPV6 | PKT_VLAN))) == 0))
		return LIKELY(
			wire_load32(p->frame + p->l3_off + 12) == wire_load32(qp->peer_ipv4));
	return (odd & ~(uint32_t)STEER_NET) == 0 && pipeline_is_from_peer(qp, p);
}

/**
 * An RC or UC packet for a QP of this worker that receives, from its peer, to its port, with its
 * key and as a full member: one test for all of it where it is untagged IPv4. Responses are for a
 * QP in RTS. Whatever else may be good is pipeline_faults_all()'s. A CNP has a service of its own.
 */
static ALWAYS_INLINE bool
is_fast(const struct qp *qp, const struct wire_pkt *p, uint64_t owner)
{
	const uint32_t flags =
		STEER_NET | QPF_CHECK_SRC_MAC | QPF_MIGRATION | QPF_RESOLVED | QPF_SERVICE;
	const uint32_t odd = (qp->flags ^ QPF_RESOLVED ^ (p->opcode & QPF_SERVICE)) & flags;

	/* One test of all flags. That of a response is the last: fetch() goes on from it. */
	return LIKELY((steer_diff(qp, p, owner) & ((STEER_MASK & ~STEER_UC) | STEER_PORT)) == 0) &&
	       LIKELY((uint8_t)(qp_state_of(qp) - QPS_RTR) <= QPS_SQE - QPS_RTR) &&
	       is_from_peer(qp, p, odd) && LIKELY(p->pkey == qp->pkey) &&
	       LIKELY((p->pkey & WIRE_PKEY_FULL) != 0) &&
	       (!op_has(p->op, OPF_RESPONSE) || LIKELY(qp_state_of(qp) == QPS_RTS));
}

/** The same for a datagram: whoever it is from (UD-10), it has to show the Q_Key (UD-02). */
static ALWAYS_INLINE bool
is_fast_datagram(const struct qp *qp, const struct wire_pkt *p, uint64_t owner)
{
	const uint64_t type = (uint64_t)(QPT_RC ^ QPT_UD) << 40;

	return (p->opcode == OP_UD_SEND_ONLY || p->opcode == OP_UD_SEND_ONLY_IMM) &&
	       (steer_diff(qp, p, owner ^ type) & (STEER_MASK | STEER_PORT)) == 0 &&
	       (uint8_t)(qp_state_of(qp) - QPS_RTR) <= QPS_SQE - QPS_RTR && p->pkey == qp->pkey &&
	       (p->pkey & WIRE_PKEY_FULL) != 0 && wire_deth(p).qkey == qp->qkey;
}

#endif
