/* SPDX-License-Identifier: BSD-3-Clause */
/* Path migration: the state machine as a table, and the move to the alternate path. */
#include <errno.h>

#include "invariant.h"
#include "qp.h"

enum { PRIMARY = 0, ALTERNATE = 1 };

static const struct qp_migration_step steps[MIG_MAX][2] = {
#define QP_MIGRATION(state, migreq, path, next, clause) \
	[MIG_##state][migreq] = { (path) == ALTERNATE, MIG_##next },
#include "tables/qp_migration.def"
#undef QP_MIGRATION
};

struct qp_migration_step
qp_migration_step(enum mig_state state, bool migreq)
{
	return steps[(unsigned int)state < MIG_MAX ? state : MIG_MIGRATED][migreq];
}

int
qp_migration_check(enum mig_state now, enum mig_state to, bool loaded, const char **why)
{
	*why = NULL;
	switch (to) {
	case MIG_MIGRATED:
		if (now == MIG_REARM)
			*why = "only ARMED leads back to MIGRATED";
		break;
	case MIG_REARM:
		if (now == MIG_ARMED)
			*why = "only MIGRATED leads to REARM";
		else if (!loaded)
			*why = "REARM needs alt_ah_attr, now or before";
		break;
	default:
		*why = "the QP becomes ARMED by itself: ask for REARM";
		break;
	}
	return *why == NULL ? 0 : -EINVAL;
}

void
qp_migration_set(struct qp *qp, enum mig_state to)
{
	ASSERT((unsigned int)to < MIG_MAX);
	qp->attr.path_mig_state = (uint8_t)to;
	/* MigReq stands in the ACK's constant part (WIRE-18). */
	qp->flags &= ~(uint32_t)(QPF_MIGRATION | QPF_ACK_CRC | QPF_MIG_REFUSED);
	if (to != MIG_MIGRATED)
		qp->flags |= QPF_MIGRATION;
	qp->req.unmigrated = to != MIG_MIGRATED;
	/* Where the neighbour is not known yet nothing could be sent: no way out of exhaustion. */
	qp->req.armed = to == MIG_ARMED && qp->attr.alt_resolved;
}

void
qp_attr_migrate(struct qp_attr *a)
{
	a->path = a->alt_path;
	a->path_resolved = a->alt_resolved;
	if (a->alt_pkey != 0)
		a->pkey = a->alt_pkey;
	if (a->alt_timeout != QP_ALT_TIMEOUT_SAME)
		a->timeout = a->alt_timeout;
	a->path_mig_state = MIG_MIGRATED;
}

void
qp_migrate(struct qp *qp)
{
	struct qp_attr *a = &qp->attr;

	qp_attr_migrate(a);
	qp->port = a->alt_port;
	qp->pkey = a->pkey;
	qp_path_changed(qp);
	qp_send_apply(qp, QP_ATTR_TIMEOUT, a->qp_state, a->qp_state);
	qp->req.retry_left = qp->req.retry_cnt; /* REQ-RETRY-09: on either side's initiative */
	qp_migration_set(qp, MIG_MIGRATED);
	ASSERT(!qp->req.armed && !qp->req.unmigrated);
	atomic_fetch_add_explicit(&qp->migrations, 1, memory_order_release);
}
