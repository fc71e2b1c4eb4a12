/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TO_CONTROL_H
#define TO_CONTROL_H
/**
 * @file to_control.h  Received frames that are the control lcore's: ARP, ICMP, ICMPv6, datagrams of
 *                     connection management.
 *
 * Owner:   the worker's lcore.
 * Memory:  the mbuf goes with the message, or back to its pool.
 * Depends: stage.h.
 * Spec:    CM-01, CM-37.
 */
#include "mad.h"
#include "stage.h"

/** Packet i of the burst leaves for the control lcore, or is counted as over the limit, or lost. */
void pipeline_to_control(struct worker *w, struct burst *b, uint32_t i);

/** Is it for the queue pair of connection management? Nothing else may be wrong with it so far. */
static inline bool
is_management(const struct wire_pkt *p, fault_mask_t faults)
{
	return p->dest_qpn == MAD_QPN && p->opcode == OP_UD_SEND_ONLY &&
	       faults == FAULT_BIT(FAULT_DST_QP);
}

/** What is wrong with such a packet (CM-37). @return 0: nothing. */
fault_mask_t pipeline_management_faults(const struct wire_pkt *p);

#endif
