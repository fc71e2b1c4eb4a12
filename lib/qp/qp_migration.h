/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_MIGRATION_H
#define QP_MIGRATION_H
/**
 * @file qp_migration.h  Automatic path migration: a QP's second path, and how it gets there.
 *
 * Owner:   the pure functions: anybody; qp_migration_set(), qp_migrate(): the QP's worker.
 * Memory:  none of its own.
 * Depends: base; qp.h.
 * Spec:    IBTA vol. 1, 17.2.8; rules REQ-RETRY-09, AE-12, WIRE-18.
 *
 * MIGRATED: the path in use is the only one, and MigReq is 1 in every packet. REARM: MigReq is 0,
 * and the first packet of the peer with MigReq 0 leads to ARMED. ARMED: the requester moves to the
 * alternate path where it would give up, and a packet with MigReq 1 on the alternate path shows
 * that the peer has moved. After either the alternate path is the primary one, and stays the
 * alternate one too until another is loaded.
 */
#include <stdbool.h>
#include <stdint.h>

#include "verbs.h"

struct qp;

/** What a packet means in a state; qp_migration.def. */
struct qp_migration_step {
	bool alternate; /* it must have come on the alternate path, not on the primary one */
	uint8_t next;   /* enum mig_state, if it did */
};
/**
 * What a packet means to a QP in this state.
 * @param migreq the MigReq bit of the packet's BTH.
 */
struct qp_migration_step qp_migration_step(enum mig_state state, bool migreq);

/**
 * May software ask for this state? MIGRATED to itself is no change; it is an order where the QP is
 * ARMED. REARM leads away from MIGRATED only.
 * @param loaded an alternate path was given since RESET.
 * @param why out: static text.
 * @return 0 or -EINVAL.
 */
int qp_migration_check(enum mig_state now, enum mig_state to, bool loaded, const char **why);

/** Owner worker: go to a state, and have MigReq and exhaustion follow it. */
void qp_migration_set(struct qp *qp, enum mig_state to);
/**
 * Owner worker: the alternate path is the primary one from now on: port, P_Key, timeout, template;
 * the state is MIGRATED.
 */
void qp_migrate(struct qp *qp);

#endif
