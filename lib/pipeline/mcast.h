/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MCAST_H
#define MCAST_H
/**
 * @file mcast.h  Datagrams to multicast groups: one comes in, each member of the group gets it.
 *
 * Owner:   the worker's lcore.
 * Memory:  worker.mcast: those of this burst.
 * Depends: stage.h, qp_mcast.h.
 * Spec:    UD-31.
 *
 * The parser knows the port's own addresses alone, so a datagram to a group has three faults: MAC,
 * IP address, and a QP number that nobody has. Stage 5 takes those with members here out of their
 * burst. They are served behind it: a member gets them as if they named its own number, with all of
 * a QP's checks; another worker with members gets a frame, and looks for its own. While a QP moves
 * from worker to worker, such frames say whether they are for it, too: it gets each once.
 */
#include "qp_mcast.h"
#include "stage.h"

#define MCAST_FAULTS (FAULT_BIT(FAULT_DST_MAC) | FAULT_BIT(FAULT_DST_IP) | FAULT_BIT(FAULT_DST_QP))

/** May it be for a group? Nothing else may be wrong with it. */
static ALWAYS_INLINE bool
is_to_group(const struct wire_pkt *p, fault_mask_t faults)
{
	return faults == MCAST_FAULTS && p->dest_qpn == QP_MCAST_QPN &&
	       (p->opcode == OP_UD_SEND_ONLY || p->opcode == OP_UD_SEND_ONLY_IMM);
}

/**
 * Packet i of the burst is_to_group(). @return false: nobody here is a member, or its MAC is
 * another group's; it stays where it is. Else it leaves the burst.
 */
bool pipeline_mcast_take(struct worker *w, const struct burst *b, uint32_t i);
/** Behind the burst: to each member. */
void pipeline_mcast_serve(struct worker *w);
/**
 * A frame that leaves for a group: one more of it for the port's own members, if there are any.
 * @param port index. @param l3_off of its IP header.
 */
void pipeline_mcast_loop(struct worker *w, uint8_t port, const struct rte_mbuf *m, uint32_t l3_off);

#endif
