/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_GROUPS_H
#define NET_GROUPS_H
/**
 * @file net_groups.h  Multicast groups that a port is a member of without any queue pair.
 *
 * Owner:   control lcore.
 * Memory:  the caller's.
 * Depends: conf, wire.
 * Spec:    RFC 1112 (all hosts), RFC 4861, 7.2.1 (all nodes, solicited nodes).
 */
#include <stdint.h>

#include "conf.h"
#include "wire.h"

#define NET_GROUPS 4u

/**
 * 224.0.0.1 and ff02::1, at which routers ask for members; and the groups at which neighbours ask
 * for the port's IPv6 addresses, which may be one and the same.
 * @return how many.
 */
uint32_t net_groups(const struct wire_port *us, struct conf_ip out[NET_GROUPS]);

#endif
