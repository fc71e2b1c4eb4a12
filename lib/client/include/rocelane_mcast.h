/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCELANE_MCAST_H
#define ROCELANE_MCAST_H
/**
 * @file rocelane_mcast.h  librocelane's multicast groups. Include rocelane.h.
 *
 * Owner:   any thread.
 * Memory:  none; a queue pair that is destroyed leaves its groups.
 * Depends: rocelane.h; the calls on ids, rocelane_cm.h.
 *
 * To send to a group: an address handle whose dgid is the group's address (::ffff:239.1.2.3 for an
 * IPv4 one), and remote_qpn RL_MCAST_QPN. Members of the same port get it, too, the sender among
 * them. Switches that snoop are told of members by IGMP and MLD.
 */
#include "rocelane.h"

struct rl_cm_id;
struct sockaddr;

#define RL_MCAST_QPN 0xffffffu

/**
 * The UD queue pair gets what is sent to this group at its port, as if it named its number: its
 * Q_Key is asked for. It needs a port, so it is in INIT or further. It stays a member in RESET, and
 * gets no other port then (-EBUSY).
 * @param gid an address of ff00::/8, or ::ffff:a.b.c.d of 224.0.0.0/4. @param lid ignored.
 * @return -EEXIST: it is a member already; -EINVAL: no UD queue pair, no group, a port without an
 * address of its family; -ENOSPC: over a limit of this client, or of the group: 56 members, some of
 * them kept for other users and the operator.
 */
int rl_attach_mcast(struct rl_qp *qp, const union rl_gid *gid, uint16_t lid);
/** The same in RESET, too, for a queue pair that has no port yet: it has this one from now on. */
int rl_attach_mcast_at(struct rl_qp *qp, const union rl_gid *gid, uint8_t port_num);
/** @return -EINVAL: it is no member. */
int rl_detach_mcast(struct rl_qp *qp, const union rl_gid *gid, uint16_t lid);

/**
 * As librdmacm's: the id's queue pair, if it has one, becomes a member, and MULTICAST_JOIN follows.
 * A queue pair of your own you attach yourself. The id's address was resolved; a group's may be,
 * that tells of the port alone. @return -EINVAL: no group, or no port yet; as rl_attach_mcast().
 */
int rl_cm_join_multicast(struct rl_cm_id *id, const struct sockaddr *group);
/** @return as rl_detach_mcast(). */
int rl_cm_leave_multicast(struct rl_cm_id *id, const struct sockaddr *group);

#endif
