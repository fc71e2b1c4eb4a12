/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MIGRATION_H
#define MIGRATION_H
/**
 * @file migration.h  A QP's two paths: what packets and exhausted retries do to them.
 *
 * Owner:   the QP's worker, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 * Spec:    AE-12, REQ-RETRY-09, WIRE-18.
 */
#include "worker.h"

/** MigReq of the QP's packets: PKT_MIGREQ or 0 (WIRE-18). */
static inline uint8_t
migreq_of(const struct qp *qp)
{
	return LIKELY((qp->flags & QPF_MIGRATION) == 0) ? PKT_MIGREQ : 0;
}

/** The peer's MAC is not known, and this packet of its has passed all checks: it tells. */
void pipeline_path_learn(struct worker *w, struct qp *qp, const struct wire_pkt *p);
/** QPF_MIGRATION is set, and a packet that may move the state has passed all checks. */
void pipeline_migration_receive(struct worker *w, struct qp *qp, const struct wire_pkt *p);
/** A packet that asks for a migration did not come on the alternate path, and is dropped. */
void pipeline_migration_refuse(struct worker *w, struct qp *qp, const struct wire_pkt *p);
/** REQACT_MIGRATE. */
void pipeline_migration_exhausted(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, uint16_t rule);
/** The QP is on its alternate path now: count, record, PATH_MIG. @param p what did it, or NULL. */
void pipeline_migration_done(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, uint16_t rule);

#endif
