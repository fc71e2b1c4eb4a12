/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_MCAST_H
#define ADMIN_MCAST_H
/**
 * @file admin_mcast.h  Multicast groups: UD QPs that get what is sent to one.
 *
 * Owner:   control lcore; what workers read is qp_mcast.h's.
 * Memory:  a struct admin_mcast for each QP in each of its groups, until it leaves or is destroyed.
 * Depends: admin.
 * Spec:    UD-31.
 *
 * A QP is a member at the port that it has when it is attached. Switches and routers are told of it
 * by IGMP and MLD: net/members.h.
 */
#include "admin.h"

struct admin_mcast {
	uint32_t qpn;
	int16_t port; /* index in conf->ports */
	struct conf_ip group;
	const struct owner_user *user; /* whose application's the QP is; NULL: the operator's */
	TAILQ_ENTRY(admin_mcast) all;
};

/**
 * The QP gets what is sent to this group from now on.
 * @return 0 or a refusal: no UD QP, no port, a member already, no room, a limit.
 */
int admin_mcast_attach(
	struct admin *adm, struct admin_qp *rec, const struct conf_ip *group, struct refusal *r);
/** @param port of a QP that has none yet, in RESET, or -1. @return as admin_mcast_attach(). */
int admin_mcast_attach_at(struct admin *adm, struct admin_qp *rec, int16_t port,
	const struct conf_ip *group, struct refusal *r);
/** Not any more. @return 0 or a refusal: it is no member. */
int admin_mcast_detach(
	struct admin *adm, struct admin_qp *rec, const struct conf_ip *group, struct refusal *r);
/** The QP is going: it leaves all of its groups. */
void admin_mcast_leave(struct admin *adm, struct admin_qp *rec);
/** Devices are told once in a turn of what was left in it, however much that was, and at first. */
void admin_mcast_poll(struct admin *adm);
/** Groups with port and MAC; of one QP, or of all with 0. */
json_t *admin_mcast_json(const struct admin *adm, uint32_t qpn);

#endif
