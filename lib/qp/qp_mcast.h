/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_MCAST_H
#define QP_MCAST_H
/**
 * @file qp_mcast.h  Multicast groups: which queue pairs get a datagram that was sent to one.
 *
 * Owner:   the control lcore adds and removes members; workers of all QPs ask for them.
 * Memory:  qp_mcast_table_create(): one table, which is never moved.
 * Depends: base.
 * Spec:    UD-31.
 *
 * A group is an address at a port. It has a place as long as it has members. Nobody waits: each
 * word is changed alone, and who asks while a place goes to another group finds nobody.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"

#define QP_MCAST_GROUPS 4096u                 /* at a time, on all ports */
#define QP_MCAST_QPS    56u                   /* of one group at one port */
#define QP_MCAST_PLACES (2 * QP_MCAST_GROUPS) /* a power of two */
#define QP_MCAST_QPN    0xffffffu             /* what a datagram to a group names */

/** An IPv6 address, or ::ffff:a.b.c.d for an IPv4 one. */
struct qp_mcast_group {
	uint8_t addr[16];
	uint32_t port; /* DPDK port id */
};

struct qp_mcast_place {
	_Atomic uint32_t life; /* odd: it goes to another group just now; 0: nobody ever had it */
	_Atomic uint32_t port;
	_Atomic uint64_t addr[2];
	_Atomic uint32_t n;                 /* members' places in use, with gaps */
	_Atomic uint32_t qpn[QP_MCAST_QPS]; /* 0: a gap */
} CACHE_ALIGNED;

struct qp_mcast_table {
	struct qp_mcast_place *place; /* QP_MCAST_PLACES of them */
	void *mem;
	uint32_t groups; /* (control) */
};

/** @return NULL: no memory. */
struct qp_mcast_table *qp_mcast_table_create(void);
/** After the workers have stopped. */
void qp_mcast_table_destroy(struct qp_mcast_table *t);
/**
 * Control lcore: the QP is a member from now on.
 * @return 0; -EEXIST: it is one already; -ENOSPC: QP_MCAST_QPS others are; -ENOMEM: no place is
 * left for another group.
 */
int qp_mcast_add(struct qp_mcast_table *t, const struct qp_mcast_group *g, uint32_t qpn);
/** Control lcore: not any more. @return 0; -ENOENT: it was none. */
int qp_mcast_remove(struct qp_mcast_table *t, const struct qp_mcast_group *g, uint32_t qpn);
/** Any lcore: the members' numbers. @param qpn room for QP_MCAST_QPS. @return how many. */
uint32_t qp_mcast_members(
	const struct qp_mcast_table *t, const struct qp_mcast_group *g, uint32_t *qpn);

#endif
