/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_MCAST_H
#define CONF_MCAST_H
/**
 * @file conf_mcast.h  A part of conf.h: multicast groups, memory windows.
 *
 * Owner:   the configuration's.
 * Memory:  none of its own.
 * Depends: conf.h.
 */
#include "conf.h"

#define CONF_MCAST_GROUPS 4096u /* on all ports */
#define CONF_MCAST_QPS    56u   /* of one group at one port */

/** A UD QP and a group that it is a member of. */
struct conf_mcast {
	uint32_t qp_num;
	struct conf_ip group;
};

/** A memory window, not bound. */
struct conf_mw {
	char name[CONF_NAME_MAX];
	char pd[CONF_NAME_MAX];
	uint32_t type; /* 1, 2 */
};

/** Is it an address of 224.0.0.0/4 or ff00::/8? */
bool conf_ip_is_group(const struct conf_ip *ip);
/** Can it be one host's: neither a group, nor broadcast, nor no address at all? */
bool conf_ip_is_unicast(const struct conf_ip *ip);

#endif
